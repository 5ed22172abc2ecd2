//! The index by conditions and its schema: what is put over what, and what is found.

use domain::{Bucket, FoldRules, QuarterHour, Rollup};
use table::{
    ConditionsQuery, Expected, IndexedQuarter, Indexing, KeepRollupState as _, Page,
    SetConditionsReady as _, StoredRollup, StoredSchema,
};

use super::ConditionsPorts;
use crate::given::{answer, at, device, invocation, reading, schema, stored_quarter};

const QUARTER: i64 = 900_000;

async fn put_schema(store: &impl ConditionsPorts, version: u8, expected: Expected) -> bool {
    answer!(store.put_conditions_schema(&schema(version), expected))
}

async fn stored_schema(store: &impl ConditionsPorts) -> Option<StoredSchema> {
    answer!(store.conditions_schema())
}

pub(super) async fn a_schema_is_put_only_over_what_was_read(store: &impl ConditionsPorts) {
    assert!(store.has_conditions_index(&invocation()));
    assert_eq!(stored_schema(store).await, None);
    assert_eq!(answer!(store.indexing()), Indexing::Unset);
    assert!(!put_schema(store, 1, Expected::Version(0)).await);
    assert!(put_schema(store, 1, Expected::Absent).await);
    assert!(!put_schema(store, 1, Expected::Absent).await, "twice");
    assert!(put_schema(store, 2, Expected::Version(1)).await);
    assert!(!put_schema(store, 3, Expected::Version(1)).await);
    let stored = StoredSchema { schema: schema(2), is_ready: false };
    assert_eq!(stored_schema(store).await, Some(stored));
    let by = Indexing::By(schema(2).into());
    assert_eq!(answer!(store.indexing()), by);
}

pub(super) async fn only_the_stored_schema_becomes_ready(store: &impl ConditionsPorts) {
    let ready = async |version| answer!(store.set_conditions_ready(version));
    assert!(!ready(1).await, "there is none");
    put_schema(store, 1, Expected::Absent).await;
    assert!(ready(1).await && ready(1).await, "twice");
    assert!(stored_schema(store).await.expect("there is one").is_ready);
    put_schema(store, 2, Expected::Version(1)).await;
    assert!(!ready(1).await);
    assert!(!stored_schema(store).await.expect("there is one").is_ready);
}

/// While the index is off rollups are put that it lacks when it is made again.
#[tokio::test]
async fn an_index_that_was_off_is_not_complete() {
    let engine = crate::engine::Engine::embedded().await;
    let table = engine.table_of(&[("ConditionsIndex", "on")]).await;
    let store = table.store();
    put_schema(&store, 1, Expected::Absent).await;
    assert!(answer!(store.set_conditions_ready(1)));
    answer!(store.distrust_conditions());
    assert!(stored_schema(&store).await.expect("there is one").is_ready);
    let off = table.store_without_conditions_index();
    for _ in 0..2 {
        answer!(off.distrust_conditions());
        assert!(!stored_schema(&store).await.expect("there is one").is_ready);
    }
    let empty = engine.table_of(&[("ConditionsIndex", "off")]).await.store();
    answer!(empty.distrust_conditions());
    assert_eq!(stored_schema(&store).await.map(|it| it.schema), Some(schema(1)));
}

/// The rollup of one reading of a temperature and a humidity.
fn rollup(id: &str, n: i64, values: (&str, &str), indexing: &Indexing) -> StoredRollup {
    let metrics = [("temperature", values.0), ("humidity", values.1)];
    let quarter = QuarterHour::of(at(n * QUARTER));
    let rollup = Rollup::fold(&[reading(id, n * QUARTER, &metrics)], &FoldRules::default());
    let (expires, indexed) =
        (Some(at(900_000_000)), indexing.of(Bucket::QuarterHour(quarter), &rollup));
    StoredRollup { expires, indexed, ..stored_quarter(&device(id), quarter, rollup) }
}

async fn put(store: &impl ConditionsPorts, rollup: &StoredRollup, expected: Expected) -> bool {
    answer!(store.put_rollup(rollup, expected))
}

fn by(version: u8) -> Indexing {
    Indexing::By(schema(version).into())
}

/// The quarters of `d` in the month of the start, between two addresses.
async fn page(
    store: &impl ConditionsPorts,
    (first, last): (&[u8], &[u8]),
    after: Option<&IndexedQuarter>,
    limit: usize,
) -> Page<IndexedQuarter> {
    let device = &device("d");
    let query = ConditionsQuery { device, month: at(0), first, last, after, limit };
    answer!(store.indexed_quarters(&query))
}

const ALL: (&[u8], &[u8]) = (&[1, 0, 0, 0], &[1, 255, 255, 255]);

pub(super) async fn quarters_are_found_by_their_addresses(store: &impl ConditionsPorts) {
    let far = 40 * 96;
    for (id, n, values) in [
        ("d", 0, ("21", "50")),
        ("d", 1, ("28", "75")),
        ("d", 2, ("28.1", "75")),
        ("d", far, ("28", "75")),
        ("other", 1, ("28", "75")),
    ] {
        assert!(put(store, &rollup(id, n, values, &by(1)), Expected::Absent).await);
    }
    let alone =
        Rollup::fold(&[reading("d", 3 * QUARTER, &[("temperature", "28")])], &FoldRules::default());
    let bucket = rollup("d", 3, ("1", "1"), &by(1)).key.bucket;
    let without = StoredRollup {
        indexed: by(1).of(bucket, &alone),
        rollup: alone,
        ..rollup("d", 3, ("1", "1"), &by(1))
    };
    assert!(put(store, &without, Expected::Absent).await);
    assert!(put(store, &rollup("d", 4, ("28", "75"), &Indexing::Off), Expected::Absent).await);
    let old = rollup("d", 5, ("28", "75"), &by(2));
    assert!(put(store, &old, Expected::Absent).await, "another schema is another range");
    let found = page(store, ALL, None, 100).await;
    let starts: Vec<_> = found.items.iter().map(|it| it.quarter.start()).collect();
    assert_eq!(starts, [at(0), at(QUARTER), at(2 * QUARTER)]);
    assert!(!found.has_more);
    let whole = rollup("d", 1, ("28", "75"), &by(1));
    let entry = whole.indexed.and_then(|it| it.entry).expect("both metrics");
    let second = &found.items[1];
    assert_eq!((&second.entry, &second.rooms), (&entry, &whole.rollup.rooms));
    assert_eq!((second.expires, &second.key), (whole.expires, &whole.key));
    let one = page(store, (&entry.address, &entry.address), None, 100).await;
    assert_eq!(one.items, std::slice::from_ref(second));
    // A later fold moves it.
    let moved = StoredRollup { version: 2, ..rollup("d", 1, ("15", "20"), &by(1)) };
    assert!(put(store, &moved, Expected::Version(1)).await);
    assert!(page(store, (&entry.address, &entry.address), None, 100).await.items.is_empty());
    assert_eq!(page(store, ALL, None, 100).await.items[0].quarter.start(), at(QUARTER));
}

pub(super) async fn a_walk_meets_each_quarter_once(store: &impl ConditionsPorts) {
    for n in 0..20 {
        // Several have one address.
        let temperature = format!("{}", 20 + n % 3);
        let rollup = rollup("d", n, (&temperature, "50"), &by(1));
        assert!(put(store, &rollup, Expected::Absent).await);
    }
    let mut found: Vec<IndexedQuarter> = Vec::new();
    loop {
        let page = page(store, ALL, found.last(), 3).await;
        assert!(page.items.len() <= 3);
        found.extend(page.items);
        if !page.has_more {
            break;
        }
    }
    assert!(found.is_sorted_by_key(|it| it.entry.address.clone()));
    let mut starts: Vec<_> = found.iter().map(|it| it.quarter.start()).collect();
    starts.sort_unstable();
    assert_eq!(starts, (0..20).map(|n| at(n * QUARTER)).collect::<Vec<_>>());
}

pub(super) async fn a_rollup_by_an_older_schema_replaces_none(store: &impl ConditionsPorts) {
    let stored = |version, indexing: &Indexing| StoredRollup {
        version,
        ..rollup("d", 0, ("28", "75"), indexing)
    };
    let first = stored(1, &by(2));
    assert!(put(store, &first, Expected::Absent).await);
    assert_eq!(answer!(store.rollup(&first.key)), Some(first));
    for older in [&Indexing::Unset, &by(1)] {
        assert!(!put(store, &stored(2, older), Expected::Version(1)).await, "{older:?}");
    }
    assert!(put(store, &stored(2, &by(2)), Expected::Version(1)).await);
    assert!(put(store, &stored(3, &by(3)), Expected::Version(2)).await);
    assert!(put(store, &stored(4, &Indexing::Off), Expected::Version(3)).await, "no index");
    assert!(put(store, &stored(5, &Indexing::Unset), Expected::Version(4)).await);
}
