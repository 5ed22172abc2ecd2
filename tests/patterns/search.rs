//! What the index of attributes costs: an edit of a device, and a search.

use domain::{
    AttributeValue, AttributeValues, Comparison, DevicePatch, Edit, SearchRange, SearchValue,
    Subject,
};
use table::{EditRegistry as _, SearchDevices as _, SearchQuery, UpdateOutcome};

use super::{Row, cost, costs, measured_at, row};
use crate::engine::Engine;
use crate::given::{answer, at, device, label, named, number, register_devices_of, tags};

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
        let first = measured_at(n, 0);
        register_devices_of(&store, std::slice::from_ref(&first)).await;
        if n > 0 {
            answer!(store.edit_device(&first.device, &patch(n), at(0)));
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
            assert_eq!(page.items.len(), hits);
        })
        .await
    };
    let firmware = SearchRange::Equals(SearchValue::text("1.4"));
    vec![
        row(
            "12a",
            "the first edit of a device with 7 values, with `AttributeIndex=on`",
            edit(patch(0)).await,
        ),
        row("12b", "change one value, with `AttributeIndex=on`", edit(named("Window")).await),
        row("12c", "90 entries of one value of an attribute", found(firmware, 90).await),
        row(
            "12d",
            "10 entries of the numbers below one",
            found(SearchRange::Is(Comparison::Below, SearchValue::number(&number("1.4"))), 10)
                .await,
        ),
        costs("12e", "tell whether the index holds every device", async |invocation| {
            assert!(!store.is_indexed(invocation).await.expect("asked"));
        })
        .await,
    ]
}
