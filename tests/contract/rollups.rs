//! Rollups and their state: what is put over what, and what is read back.

use chrono::TimeDelta;
use domain::{
    Bucket, FoldRules, LocalDate, MetricKind, Order, QuarterHour, Rollup, SWEEP_GROUPS, TimeRange,
    Timestamp,
};
use futures_util::future::join_all;
use table::{
    Backlog, DeviceGroups, Expected, InsertOutcome, LateChanges, LateMark, MarksOutcome,
    QueueDepth, ReadingKey, Refold, RollupKey, RollupState, StoredRollup,
};

use super::Ports;
use super::registry::registered;
use crate::given::{
    always, answer, at, device, invocation, range, reading, reading_in, stored_quarter,
};

const QUARTER: i64 = 900_000;

fn quarter(n: i64) -> QuarterHour {
    QuarterHour::of(at(n * QUARTER))
}

/// The rollup of one reading.
fn rollup(id: &str, n: i64, version: u64) -> StoredRollup {
    let quarter = quarter(n);
    let metrics = [("temperature", "21.5"), ("cumulative_kwh_p", "8048.1"), ("current_w", "512")];
    let readings = [reading(id, n * QUARTER, &metrics), reading(id, n * QUARTER + 1, &metrics)];
    let rollup = Rollup::fold(&readings, &FoldRules::default());
    StoredRollup { version, ..stored_quarter(&device(id), quarter, rollup) }
}

fn day(id: &str, date: &str) -> StoredRollup {
    let date: LocalDate = date.parse().expect("a date");
    StoredRollup {
        key: RollupKey::day(device(id), date),
        range: range(0, 86_400_000),
        zone: Some("Europe/Berlin".to_owned()),
        ..rollup(id, 0, 1)
    }
}

async fn put(store: &impl Ports, rollup: &StoredRollup, expected: Expected) -> bool {
    answer!(store.put_rollup(rollup, expected))
}

async fn stored(store: &impl Ports, key: &RollupKey) -> Option<StoredRollup> {
    answer!(store.rollup(key))
}

pub(super) async fn a_rollup_is_put_only_over_what_was_read(store: &impl Ports) {
    let first = rollup("d", 0, 1);
    assert_eq!(stored(store, &first.key).await, None);
    assert!(!put(store, &first, Expected::Version(0)).await, "none is no version");
    assert!(put(store, &first, Expected::Absent).await);
    assert!(!put(store, &first, Expected::Absent).await);
    assert_eq!(stored(store, &first.key).await, Some(first.clone()));
    let empty = StoredRollup { version: 2, rollup: Rollup::default(), ..first.clone() };
    assert!(!put(store, &empty, Expected::Version(2)).await);
    assert!(put(store, &empty, Expected::Version(1)).await);
    assert!(!put(store, &empty, Expected::Version(1)).await);
    assert_eq!(stored(store, &first.key).await, Some(empty));
}

pub(super) async fn of_puts_at_once_one_is_stored(store: &impl Ports) {
    for (expected, version) in [(Expected::Absent, 1), (Expected::Version(1), 2)] {
        let new = rollup("d", 0, version);
        let done = join_all((0..5).map(|_| put(store, &new, expected))).await;
        assert_eq!(done.iter().filter(|done| **done).count(), 1, "{expected:?}");
    }
}

pub(super) async fn newer_settings_are_never_replaced(store: &impl Ports) {
    let with = |version, settings| StoredRollup { settings, ..rollup("d", 0, version) };
    assert!(put(store, &with(1, 3), Expected::Absent).await);
    assert!(!put(store, &with(2, 2), Expected::Version(1)).await);
    assert!(put(store, &with(2, 3), Expected::Version(1)).await);
    assert!(put(store, &with(3, 4), Expected::Version(2)).await);
}

pub(super) async fn quarters_and_days_are_ranges_of_their_own(store: &impl Ports) {
    for n in 0..4 {
        assert!(put(store, &rollup("d", n, 1), Expected::Absent).await);
    }
    for date in ["2026-01-10", "2026-01-11", "2026-01-12"] {
        assert!(put(store, &day("d", date), Expected::Absent).await);
    }
    assert!(put(store, &rollup("d:other", 0, 1), Expected::Absent).await);
    for consistent in [true, false] {
        let found = answer!(store.quarters(&device("d"), range(QUARTER, 3 * QUARTER), consistent));
        assert_eq!(found, [rollup("d", 1, 1), rollup("d", 2, 1)]);
    }
    assert_eq!(answer!(store.quarters(&device("d"), always(), true)).len(), 4);
    let date = |text: &str| text.parse::<LocalDate>().expect("a date");
    let days = async |first, last, order, limit| -> Vec<Bucket> {
        let dates = date(first)..=date(last);
        let found = answer!(store.days(&device("d"), dates, order, limit));
        found.into_iter().map(|day| day.key.bucket).collect()
    };
    let [ten, eleven, twelve] =
        ["2026-01-10", "2026-01-11", "2026-01-12"].map(|it| Bucket::Day(date(it)));
    let (oldest, newest) = (Order::Ascending, Order::Descending);
    assert_eq!(days("2026-01-11", "2026-01-12", oldest, 9).await, [eleven, twelve]);
    assert_eq!(days("2000-01-01", "9999-12-31", oldest, 2).await, [ten, eleven]);
    assert_eq!(days("2000-01-01", "9999-12-31", newest, 2).await, [twelve, eleven]);
    assert_eq!(days("2026-01-13", "2026-01-13", newest, 2).await, []);
}

pub(super) async fn a_thousand_quarters_are_read(store: &impl Ports) {
    let new: Vec<StoredRollup> = (0..1_000).map(|n| rollup("d", n, 1)).collect();
    for chunk in new.chunks(50) {
        join_all(chunk.iter().map(|it| put(store, it, Expected::Absent))).await;
    }
    assert_eq!(answer!(store.quarters(&device("d"), always(), false)), new);
}

fn state(zone: &str) -> RollupState {
    RollupState { zone: zone.to_owned(), since: at(0), sealed: [at(0); SWEEP_GROUPS], queue: None }
}

async fn state_now(store: &impl Ports) -> RollupState {
    answer!(store.rollup_state()).expect("a state")
}

pub(super) async fn a_mark_moves_forward_and_back_where_it_is_ahead(store: &impl Ports) {
    answer!(store.begin_rollups(&state("UTC")));
    for (groups, millis) in [(&[3][..], 5), (&[14], 7), (&[3, 9, 14], 6), (&[3, 14], 4)] {
        let groups = groups.iter().copied().collect();
        // What is not known leaves what was.
        let queue = (millis < 7).then(|| QueueDepth { messages: 4, at: at(millis) });
        answer!(store.advance_sealed(&groups, at(millis), queue));
    }
    let mut expected = state("UTC");
    // The last moved no mark, and noted its depth.
    expected.queue = Some(QueueDepth { messages: 4, at: at(4) });
    (expected.sealed[3], expected.sealed[9], expected.sealed[14]) = (at(6), at(6), at(7));
    assert_eq!(state_now(store).await, expected);
    for since in [5, 3] {
        let backlog = Backlog { since: at(since), at: at(8) };
        answer!(store.note_backlog(backlog));
        let late = LateChanges { backlog: Some(backlog), ..LateChanges::default() };
        assert_eq!(answer!(store.late_changes()), late);
    }
    // Back where it is ahead, and nowhere else.
    answer!(store.set_back_sealed(&[3, 5, 14].into(), at(6)));
    expected.sealed[14] = at(6);
    assert_eq!(state_now(store).await, expected);
    let id = device("d");
    assert_eq!(answer!(store.refold(&id)), Refold::default());
    for refold in [
        Refold { settings: 0, under_way: Some((2, at(9))) },
        Refold { settings: 2, under_way: None },
    ] {
        answer!(store.set_refold(&id, &refold));
        assert_eq!(answer!(store.refold(&id)), refold);
    }
}

/// Whoever marks late changes at the same time, each mark is there, and so is the backlog.
pub(super) async fn of_marks_at_once_none_is_lost(store: &impl Ports) {
    let backlog = Backlog { since: at(0), at: at(1) };
    answer!(store.note_backlog(backlog));
    let mark = |n: i64| LateMark {
        range: TimeRange::new(at(n), at(n + 1)).expect("a range"),
        groups: DeviceGroups::of(&device("d")),
        until: at(n),
    };
    let marking = (0..8).map(|n| async move {
        let mut known = LateChanges::default();
        loop {
            let marks = known.marks_with(mark(n), at(n));
            let stored = answer!(store.put_late_marks(&marks, known.version));
            match stored {
                MarksOutcome::Stored => break,
                MarksOutcome::Outdated(now) => known = now,
            }
        }
    });
    join_all(marking).await;
    let found = answer!(store.late_changes());
    assert_eq!((found.version, found.backlog), (8, Some(backlog)));
    assert_eq!(found.marks, (0..8).map(mark).collect::<Vec<_>>());
    assert_eq!(answer!(store.put_late_marks(&[], 7)), MarksOutcome::Outdated(found));
}

pub(super) async fn the_first_state_stays(store: &impl Ports) {
    assert_eq!(answer!(store.rollup_state()), None);
    let begin = async |state| answer!(store.begin_rollups(&state));
    assert_eq!(begin(state("Europe/Berlin")).await, InsertOutcome::Inserted);
    assert_eq!(begin(state("UTC")).await, InsertOutcome::Exists(state("Europe/Berlin")));
    answer!(store.set_rebuilt(Timestamp::MIN, "Asia/Tokyo"));
    let now = RollupState { since: Timestamp::MIN, ..state("Asia/Tokyo") };
    assert_eq!(state_now(store).await, now);
}

pub(super) async fn readings_come_with_their_expiry(store: &impl Ports) {
    let (lasting, passing) = (reading_in("d", 0, "room-a"), reading_in("d", 1_000, "room-a"));
    let keep = async |reading, retention| {
        let outcome = store.put_readings(&[reading], retention, &invocation()).await;
        assert!(outcome.cause.is_none());
    };
    keep(lasting.clone(), None).await;
    keep(passing.clone(), Some(TimeDelta::days(1))).await;
    let all = TimeRange::new(at(0), at(2_000)).expect("a range");
    let found = answer!(store.stored_readings(&device("d"), all));
    let expiries: Vec<_> = found.iter().map(|it| it.expires).collect();
    // A day of retention, and three of grace.
    assert_eq!(expiries, [None, Some(at(1_000 + 4 * 86_400_000))]);
    assert_eq!(found.into_iter().map(|it| it.reading).collect::<Vec<_>>(), [lasting, passing]);
}

pub(super) async fn every_device_is_listed(store: &impl Ports) {
    assert_eq!(answer!(store.all_devices()).found, []);
    registered(store, "b").await;
    registered(store, "a").await;
    let found = answer!(store.all_devices()).found;
    assert_eq!(found.iter().map(|it| it.id().as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(found.iter().all(|it| it.metrics().values().all(|it| it.kind == MetricKind::Gauge)));
}

pub(super) async fn deleted_twice_is_deleted_once(store: &impl Ports) {
    let readings: Vec<_> = (0..40).map(|n| reading_in("d", n, "room-a")).collect();
    let outcome = store.put_readings(&readings, None, &invocation()).await;
    assert!(outcome.cause.is_none());
    let keys: Vec<ReadingKey> = readings[..39].iter().map(ReadingKey::of).collect();
    for _ in 0..2 {
        let outcome = store.delete_readings(&keys, &invocation()).await;
        assert!(outcome.not_stored.is_empty() && outcome.cause.is_none());
        let left = store.stored_readings(&device("d"), always(), &invocation()).await;
        let left: Vec<_> = left.expect("read").into_iter().map(|it| it.reading).collect();
        assert_eq!(left, readings[39..]);
    }
}
