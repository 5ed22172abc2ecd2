//! What the index of attributes costs: an edit of a device, and a search.

use domain::{
    AttributeValue, AttributeValues, Comparison, DeviceObservation, DevicePatch, Edit, SearchRange,
    SearchValue, Subject,
};
use table::{
    EditRegistry as _, RegisterDevices as _, SearchDevices as _, SearchQuery, UpdateOutcome,
};

use super::{Row, cost, measured_at};
use crate::engine::Engine;
use crate::given::{at, device, invocation, label, number, tags};

/// A fleet of a hundred devices with a name, a kind, two tags and two attributes, one of them a number, in a
/// table with the index of attributes.
pub(super) async fn rows() -> Vec<Row> {
    let engine = Engine::embedded().await;
    let store = engine.table_of(&[("AttributeIndex", "on")]).await.store();
    let patch = |n: usize| {
        let text = |text: &str| AttributeValue::Text(label(text));
        let firmware = text(if n.is_multiple_of(10) { "1.10" } else { "1.4" });
        let attribute = |name: &str, value| {
            let values = AttributeValues::try_from(vec![value]).expect("one");
            (name.parse().expect("a name"), Some(values))
        };
        DevicePatch {
            name: Edit::Set(label(&format!("Sensor {n}"))),
            kind: Edit::Set(label("sensor")),
            tags: Edit::Set(tags(&["window", "south"])),
            attributes: [attribute("model", text("SHT45")), attribute("firmware", firmware)].into(),
            ..DevicePatch::default()
        }
    };
    for n in 0..100 {
        let id = device(&format!("sensor-{n:02}"));
        let new = DeviceObservation::of(&measured_at(n, 0)).new_device(id.clone(), |_| true);
        store.register_device(&new, &invocation()).await.expect("written");
        if n > 0 {
            store.edit_device(&id, &patch(n), at(0), &invocation()).await.expect("written");
        }
    }
    let edit = async |patch: DevicePatch| {
        cost(async |invocation| {
            let edited = store.edit_device(&device("sensor-00"), &patch, at(0), invocation).await;
            assert!(matches!(edited, Ok(UpdateOutcome::Updated(_))));
        })
        .await
    };
    let found = async |range: SearchRange, hits: usize| {
        let subject = Subject::Attribute("firmware".parse().expect("a name"));
        let query = SearchQuery { subject: &subject, range: &range, after: None, limit: 100 };
        cost(async |invocation| {
            let page = store.search(&query, invocation).await.expect("asked");
            assert_eq!(page.hits.len(), hits);
        })
        .await
    };
    let firmware = SearchRange::Equals(SearchValue::text("1.4"));
    let entries = "pk = `ATTR#<device>`, sk = `<name>#<value>`";
    vec![
        Row {
            number: "12a",
            pattern: "the first edit of a device with 7 values, with `AttributeIndex=on`",
            operation: "GetItem, TransactWriteItems",
            condition: "pk = `DEVICE`, sk = `<device>`; pk = `ATTR#<device>`, sk = `<name>#<value>`",
            expected: (1.0, 24.0),
            measured: edit(patch(0)).await,
        },
        Row {
            number: "12b",
            pattern: "change one value, with `AttributeIndex=on`",
            operation: "GetItem, TransactWriteItems",
            condition: entries,
            expected: (1.0, 9.0),
            measured: edit(DevicePatch {
                name: Edit::Set(label("Window")),
                ..DevicePatch::default()
            })
            .await,
        },
        Row {
            number: "12c",
            pattern: "90 entries of one value of an attribute",
            operation: "Query on attribute-index",
            condition: "_attr = `<name>`, _value BETWEEN `s:<text>#` AND `s:<text>#~`",
            expected: (1.0, 0.0),
            measured: found(firmware, 90).await,
        },
        Row {
            number: "12d",
            pattern: "10 entries of the numbers below one",
            operation: "Query on attribute-index",
            condition: "_attr = `<name>`, _value BETWEEN `n:` AND `n:<number>`",
            expected: (0.5, 0.0),
            measured: found(
                SearchRange::Is(Comparison::Below, SearchValue::number(&number("1.4"))),
                10,
            )
            .await,
        },
        Row {
            number: "12e",
            pattern: "tell whether the index holds every device",
            operation: "GetItem, consistent",
            condition: "pk = `ATTR#`, sk = `indexed`",
            expected: (1.0, 0.0),
            measured: cost(async |invocation| {
                assert!(!store.is_indexed(invocation).await.expect("asked"));
            })
            .await,
        },
    ]
}
