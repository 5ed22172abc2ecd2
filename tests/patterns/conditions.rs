//! What conditions cost: by all rollups, by the index, and the index's own price. Checks no episode.

use super::Row;
use crate::conditions_costs::Year;

pub(super) async fn rows() -> Vec<Row> {
    let days = Year::build(10, 2).await;
    let windows = days.windows(92, 8);
    let (_, plain) = days.ask(days.table.store_without_conditions_index(), &windows).await;
    let (answer, indexed) = days.ask(days.table.store(), &windows).await;
    assert_eq!(answer["explain"]["plan"], "z-order", "{answer}");
    vec![
        Row {
            number: "11a",
            pattern: "ten days' conditions on two metrics of a device with three",
            operation: "GetItem, Query, a month at once",
            condition: "pk = `ROLLUP#<device>`, sk BETWEEN `M15#<from>` AND `M15#<to>`",
            expected: (34.5, 0.0),
            measured: (plain, 0.0),
        },
        Row {
            number: "11b",
            pattern: "the same with `ConditionsIndex=on`",
            operation: "2 × GetItem, 4 × Query on conditions-index a month, 3 × Query",
            condition: "_zpk = `conditions#<device>#<month>`, _z BETWEEN `<address>` AND `<address>`",
            expected: (5.5, 0.0),
            measured: (indexed, 0.0),
        },
        Row {
            number: "11c",
            pattern: "store the rollup of 15 minutes of a device with the metrics of the schema",
            operation: "PutItem, if as it was read",
            condition: "pk = `ROLLUP#<device>`, sk = `M15#<start>`",
            expected: (0.0, 2.0),
            measured: (0.0, days.put_next().await),
        },
    ]
}
