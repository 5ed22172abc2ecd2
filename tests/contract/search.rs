//! The index of attributes: what is found is what the devices have, however they are edited.

use std::collections::BTreeSet;

use domain::{
    About, AttributeValue, Comparison, Device, DevicePatch, DeviceUpdate, Edit, SearchEntry,
    SearchRange, SearchValue, Subject,
};
use dynamodb::DynamoStore;
use futures_util::future::join_all;
use serde_json::json;
use table::{
    EditRegistry, IndexDevices as _, ItemKey, LookUpRegistry, MarkIndexed as _, RegisterDevices,
    SearchDevices, SearchHit, SearchQuery, UpdateOutcome, UpdateRegistry as _,
};

use super::registry::new_device;
use crate::engine::Table;
use crate::given::{answer, at, device, invocation, label, named, number, tags};
use crate::home::Home;

table::store! {
    /// The ports of a search, and of what is searched.
    pub(super) trait Searched: SearchDevices + EditRegistry + RegisterDevices + LookUpRegistry
}

fn attribute(name: &str) -> Subject {
    Subject::Attribute(name.parse().expect("a name"))
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::Text(label(text))
}

fn set(name: &str, values: Vec<AttributeValue>) -> DevicePatch {
    let values = (!values.is_empty()).then(|| values.try_into().expect("values"));
    let attributes = [(name.parse().expect("a name"), values)].into();
    DevicePatch { attributes, ..DevicePatch::default() }
}

async fn registered(store: &impl Searched, id: &str) {
    answer!(store.register_device(&new_device(id)));
}

async fn edited(store: &impl EditRegistry, id: &str, patch: &DevicePatch) -> Device {
    match answer!(store.edit_device(&device(id), patch, at(0))) {
        UpdateOutcome::Updated(edited) => edited.device,
        UpdateOutcome::ConditionFailed(was) => panic!("refused: {was:?}"),
    }
}

/// All entries of a range, page by page.
async fn walk(
    store: &impl SearchDevices,
    subject: &Subject,
    range: &SearchRange,
    limit: usize,
) -> Vec<SearchHit> {
    let mut found: Vec<SearchHit> = Vec::new();
    loop {
        let after = found.last().cloned();
        let query = SearchQuery { subject, range, after: after.as_ref(), limit };
        let page = answer!(store.search(&query));
        assert!(page.items.len() <= limit);
        let is_last = !page.has_more || page.items.is_empty();
        found.extend(page.items);
        if is_last {
            return found;
        }
    }
}

async fn ids(store: &impl SearchDevices, subject: &Subject, range: &SearchRange) -> Vec<String> {
    let found = walk(store, subject, range, 100).await;
    found.iter().map(|hit| hit.device.to_string()).collect()
}

/// The entries of a device that are in the index.
async fn entries(
    store: &impl SearchDevices,
    id: &str,
    subjects: &[Subject],
) -> BTreeSet<SearchEntry> {
    let mut entries = BTreeSet::new();
    for subject in subjects {
        let hits = walk(store, subject, &SearchRange::All, 100).await;
        let own = hits.into_iter().filter(|hit| hit.device == device(id));
        entries.extend(own.map(|hit| SearchEntry { subject: subject.clone(), value: hit.value }));
    }
    entries
}

pub(super) async fn an_edit_is_found_and_what_it_replaces_is_not(store: &impl Searched) {
    registered(store, "d").await;
    registered(store, "e").await;
    let equals = |it: &str| SearchRange::Equals(SearchValue::text(it));
    let begins = |it: &str| SearchRange::BeginsWith(SearchValue::text(it));
    edited(store, "d", &named("Kitchen")).await;
    edited(store, "e", &named("kitchen 2")).await;
    assert_eq!(ids(store, &Subject::Name, &equals("KITCHEN")).await, ["d"]);
    assert_eq!(ids(store, &Subject::Name, &begins("kit")).await, ["e", "d"]);
    edited(store, "d", &named("Hall")).await;
    assert_eq!(ids(store, &Subject::Name, &begins("kit")).await, ["e"]);
    edited(store, "d", &named("HALL")).await;
    assert_eq!(ids(store, &Subject::Name, &equals("hall")).await, ["d"], "the same entry");
    let nameless = DevicePatch { name: Edit::Clear, ..DevicePatch::default() };
    edited(store, "d", &nameless).await;
    assert_eq!(ids(store, &Subject::Name, &SearchRange::All).await, ["e"]);
    let tagged = |texts| DevicePatch { tags: Edit::Set(tags(texts)), ..DevicePatch::default() };
    edited(store, "d", &tagged(&["a", "b"])).await;
    edited(store, "d", &tagged(&["b", "c"])).await;
    let tag = |value| SearchEntry { subject: Subject::Tag, value: SearchValue::text(value) };
    let found = entries(store, "d", &[Subject::Tag, Subject::Name, Subject::Kind]).await;
    assert_eq!(found, [tag("b"), tag("c")].into());
}

pub(super) async fn entries_are_in_the_order_of_numbers_and_walked_page_by_page(
    store: &impl Searched,
) {
    let values = ["1.10", "1.4", "-3", "20", "beta", "0", "1.1000000001"];
    for (n, value) in values.iter().enumerate() {
        let id = format!("d{n}");
        registered(store, &id).await;
        edited(store, &id, &set("firmware", vec![text(value)])).await;
    }
    let firmware = attribute("firmware");
    let range =
        |comparison, limit| SearchRange::Is(comparison, SearchValue::number(&number(limit)));
    for (range, expected) in [
        (range(Comparison::Below, "1.4"), &["d2", "d5", "d0", "d6"][..]),
        (range(Comparison::AtMost, "1.4"), &["d2", "d5", "d0", "d6", "d1"]),
        (range(Comparison::Above, "1.1"), &["d6", "d1", "d3"]),
        (range(Comparison::AtLeast, "1.1"), &["d0", "d6", "d1", "d3"]),
        (range(Comparison::Below, "-3"), &[]),
        (range(Comparison::Above, "1E125"), &[]),
    ] {
        for limit in [1, 2, 3, 100] {
            let found = walk(store, &firmware, &range, limit).await;
            let found: Vec<_> = found.iter().map(|hit| hit.device.to_string()).collect();
            assert_eq!(found, expected, "{range:?} {limit}");
        }
    }
    let texts = SearchRange::BeginsWith(SearchValue::text(""));
    assert_eq!(walk(store, &firmware, &texts, 2).await.len(), values.len());
    assert_eq!(walk(store, &firmware, &SearchRange::All, 3).await.len(), 2 * values.len() - 1);
}

pub(super) async fn texts_that_contain_a_separator_are_told_apart(store: &impl Searched) {
    for (id, name) in [("d", "a"), ("a", "a#d"), ("e", "a#d#e"), ("f", "a!"), ("g", "a~")] {
        registered(store, id).await;
        edited(store, id, &named(name)).await;
    }
    let hits = walk(store, &Subject::Name, &SearchRange::All, 1).await;
    assert_eq!(hits.len(), 5);
    let of = |id: &str| hits.iter().find(|hit| hit.device == device(id)).map(|it| &it.value);
    assert_eq!(of("d"), Some(&SearchValue::text("a")));
    assert_eq!(of("a"), Some(&SearchValue::text("a#d")));
    let equal = SearchRange::Equals(SearchValue::text("a"));
    assert!(ids(store, &Subject::Name, &equal).await.contains(&"d".to_owned()));
}

pub(super) async fn of_edits_at_once_the_entries_are_those_of_the_device(store: &impl Searched) {
    registered(store, "d").await;
    let edits = (0..4).map(async |n| {
        let patch = DevicePatch {
            tags: Edit::Set(tags(&[&format!("t{n}"), "all"])),
            ..set("n", vec![AttributeValue::Number(number(&n.to_string()))])
        };
        // One of several may have lost too often.
        drop(store.edit_device(&device("d"), &patch, at(0), &invocation()).await);
    });
    join_all(edits).await;
    let now = answer!(store.device(&device("d"))).expect("is there");
    assert_eq!(now.tags().len(), 2, "at least one edit was made");
    let found = entries(store, "d", &[Subject::Tag, attribute("n")]).await;
    assert_eq!(found, now.search_entries());
}

pub(super) async fn all_values_are_replaced_at_once(store: &impl Searched) {
    registered(store, "d").await;
    let values = |from: i64| -> Vec<AttributeValue> {
        (from..from + 16).map(|n| AttributeValue::Number(number(&n.to_string()))).collect()
    };
    edited(store, "d", &set("a", values(0))).await;
    let mut patch = set("b", values(100));
    patch.attributes.extend(set("a", Vec::new()).attributes);
    patch.room = Edit::Set("new-room".parse().expect("an id"));
    let now = edited(store, "d", &patch).await;
    assert_eq!(now.search_entries().len(), 32);
    let found = entries(store, "d", &[attribute("a"), attribute("b")]).await;
    assert_eq!(found, now.search_entries());
}

pub(super) async fn more_values_than_a_device_may_have_change_nothing(store: &impl Searched) {
    registered(store, "d").await;
    let names: Vec<String> = (0..33).map(|n| format!("t{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let patch = |names| DevicePatch { tags: Edit::Set(tags(names)), ..DevicePatch::default() };
    let refused = answer!(store.edit_device(&device("d"), &patch(&names), at(0)));
    assert!(matches!(refused, UpdateOutcome::ConditionFailed(Some(_))));
    assert_eq!(ids(store, &Subject::Tag, &SearchRange::All).await, [""; 0]);
    edited(store, "d", &patch(&names[1..])).await;
    assert_eq!(ids(store, &Subject::Tag, &SearchRange::All).await.len(), 32);
}

async fn is_indexed(table: &Table) -> bool {
    answer!(table.store().is_indexed())
}

/// A table whose devices are all in the index, as a run says.
async fn indexed(table: &Table) {
    let store = table.store();
    answer!(store.begin_index("1"));
    assert!(!is_indexed(table).await);
    assert!(answer!(store.end_index("1", at(0))));
    assert!(is_indexed(table).await);
}

async fn marked(store: &DynamoStore) -> bool {
    answer!(store.mark_indexed(at(0)))
}

pub(super) async fn a_table_without_values_is_marked_by_itself(table: &Table) {
    let (store, without) = (table.store(), table.store_without_attribute_index());
    assert!(!marked(&without).await && !is_indexed(table).await);
    registered(&store, "d").await;
    let about = About { name: Some(label("Said")), ..About::default() };
    let known = answer!(store.device(&device("d"))).expect("there");
    let learned = DeviceUpdate { about: Some(about), ..DeviceUpdate::default() };
    answer!(store.update_device(&known, &learned));
    assert!(marked(&store).await && is_indexed(table).await);
    // Whoever writes a value then writes it into the index.
    edited(&store, "d", &named("Kitchen")).await;
    assert!(marked(&store).await && is_indexed(table).await);
    assert_eq!(ids(&store, &Subject::Name, &SearchRange::All).await, ["d"]);
    // Or takes the mark away, and it does not come back by itself.
    edited(&without, "d", &named("Hall")).await;
    assert!(!marked(&store).await && !is_indexed(table).await);
}

pub(super) async fn a_table_with_a_value_is_not_marked_by_itself(table: &Table) {
    let (store, without) = (table.store(), table.store_without_attribute_index());
    registered(&store, "d").await;
    registered(&store, "e").await;
    edited(&without, "d", &named("Kitchen")).await;
    assert!(!marked(&store).await && !is_indexed(table).await);
    // Nor where the value goes, or a run has begun: that is for a run to end.
    let unnamed = DevicePatch { name: Edit::Clear, ..DevicePatch::default() };
    edited(&store, "d", &unnamed).await;
    answer!(store.begin_index("1"));
    assert!(!marked(&store).await && !is_indexed(table).await);
    assert!(answer!(store.end_index("1", at(0))));
    assert!(marked(&store).await);
}

pub(super) async fn a_function_that_starts_marks_an_empty_table(table: &Table) {
    Home::at(table.store(), at(0)).query().load().await;
    assert!(is_indexed(table).await);
}

pub(super) async fn an_edit_without_the_index_takes_the_mark_away(table: &Table) {
    let (store, without) = (table.store(), table.store_without_attribute_index());
    registered(&store, "d").await;
    registered(&store, "e").await;
    indexed(table).await;
    assert!(!answer!(without.is_indexed()));
    edited(&store, "d", &named("Kitchen")).await;
    let behind = DevicePatch { behind: Edit::Set(device("e")), ..DevicePatch::default() };
    edited(&without, "d", &behind).await;
    assert!(is_indexed(table).await, "nothing is found by it");
    edited(&without, "d", &named("Hall")).await;
    assert!(!is_indexed(table).await);
    assert_eq!(ids(&store, &Subject::Name, &SearchRange::All).await, ["d"], "by the old name");

    answer!(store.begin_index("2"));
    edited(&without, "d", &named("Attic")).await;
    let ended = answer!(store.end_index("2", at(0)));
    assert!(!ended && !is_indexed(table).await, "the run may have been past the device");
}

pub(super) async fn a_run_stores_what_is_missing_and_deletes_what_is_wrong(table: &Table) {
    let (store, without) = (table.store(), table.store_without_attribute_index());
    registered(&store, "d").await;
    edited(&store, "d", &named("Kitchen")).await;
    let mut now = edited(&without, "d", &named("Hall")).await;
    let index = async |device: &Device| answer!(store.index_device(device));
    assert_eq!(index(&new_device("d")).await, 2, "a device that is no longer so is read again");
    assert_eq!(index(&now).await, 0);
    assert_eq!(entries(&store, "d", &[Subject::Name]).await, now.search_entries());
    let many: Vec<String> = (0..50).map(|n| format!("t{n}")).collect();
    let list: Vec<_> = many.iter().map(|tag| json!({"S": tag})).collect();
    // From a time when a device had more values than one transaction replaces.
    table
        .put_item(json!({
            "pk": {"S": ItemKey::of(&table.layout().device_key(&device("e"))).pk}, "sk": {"S": "e"},
            "first_seen": {"S": at(0).to_string()}, "tags": {"L": list}, "metrics": {"M": {}},
        }))
        .await;
    now = answer!(store.device(&device("e"))).expect("is there");
    assert_eq!(index(&now).await, 50);
    assert_eq!(entries(&store, "e", &[Subject::Tag]).await.len(), 50);
    assert_eq!(index(&new_device("gone")).await, 0, "of no device nothing is stored");
}

pub(super) async fn of_two_runs_the_later_one_ends(table: &Table) {
    let store = table.store();
    answer!(store.begin_index("1"));
    answer!(store.begin_index("2"));
    assert!(!answer!(store.end_index("1", at(0))));
    assert!(answer!(store.end_index("2", at(0))));
    answer!(store.begin_index("3"));
    assert!(is_indexed(table).await, "what is complete stays so");
}
