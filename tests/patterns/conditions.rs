//! What conditions cost: by all rollups, by the index, and the index's own price. Checks no episode.

use super::{Row, row};
use crate::conditions_costs::Year;

pub(super) async fn rows() -> Vec<Row> {
    let days = Year::build(10, 2).await;
    let windows = days.windows(92, 8);
    let (_, plain) = days.ask(days.table.store_without_conditions_index(), &windows).await;
    let (answer, indexed) = days.ask(days.table.store(), &windows).await;
    assert_eq!(answer["explain"]["plan"], "z-order", "{answer}");
    vec![
        row("11a", "ten days' conditions on two metrics of a device with three", (plain, 0.0)),
        row("11b", "the same with `ConditionsIndex=on`", (indexed, 0.0)),
        row(
            "11c",
            "store the rollup of 15 minutes of a device with the metrics of the schema",
            (0.0, days.put_next().await),
        ),
    ]
}
