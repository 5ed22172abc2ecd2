//! Folds on a table in memory. Interleaved folds are tested by the model of the workspace's tests.

use std::ops::RangeInclusive;

use chrono::TimeDelta;
use domain::given::at_minute;
use domain::{
    Bucket, ConditionsSchema, DeviceId, Encoding, Extent, FoldRules, FoldSettings, LocalDate,
    QuarterHour, Reading, Rollup, RoomId, SchemaMetric, TimeRange, Timestamp, Zone,
};
use table::given;
use table::memory_db::MemoryDb;
use table::{
    DeleteReadings as _, Expected, Indexing, Invocation, NoteSeen, PutReadings as _, PutRollups,
    ReadRollups, ReadStoredReadings, ReadingKey, RollupKey, RoomVisit, Session, StoreError,
    StoreResult, StoredReading, StoredRollup,
};

use crate::{Assumed, DeviceFolds, DeviceRules, Folded, FoldedWindow, Retention, SeenRooms};

struct Bench {
    store: MemoryDb,
    device: DeviceRules,
    seen: SeenRooms,
    retention: Retention,
    now: Timestamp,
    invocation: Invocation,
}

impl Bench {
    /// An hour after the start, and everything is kept for ever.
    fn new() -> Self {
        Self {
            store: MemoryDb::default(),
            device: DeviceRules {
                id: device(),
                rules: FoldRules::default(),
                settings: FoldSettings::default(),
                indexing: Indexing::Off,
            },
            seen: SeenRooms::default(),
            retention: Retention::default(),
            now: at_minute(60),
            invocation: given::invocation(),
        }
    }

    fn keeping(readings: i64, quarters: i64, days: i64) -> Self {
        let kept = |days| Some(TimeDelta::days(days));
        let retention =
            Retention { readings: kept(readings), quarters: kept(quarters), days: kept(days) };
        Self { retention, ..Self::new() }
    }

    fn fold(&self) -> DeviceFolds<'_, MemoryDb> {
        self.fold_on(&self.store)
    }

    fn fold_on<'a, S>(&'a self, store: &'a S) -> DeviceFolds<'a, S> {
        let Self { device, seen, retention, .. } = self;
        DeviceFolds {
            session: Session::new(store, &self.invocation, self.now),
            device,
            seen,
            retention,
        }
    }

    async fn write(&self, minute: i64, value: &str) {
        let kept = self.retention.readings;
        let put = self.store.put_readings(&[reading(minute, value)], kept, &self.invocation).await;
        assert!(put.not_stored.is_empty());
    }

    async fn delete(&self, minute: i64) {
        let key = ReadingKey { at: at_minute(minute), device: device() };
        self.store.delete_readings(&[key], &self.invocation).await;
    }

    async fn quarter(&self, n: i64) -> Folded {
        self.fold().quarter(quarter(n), Assumed::Nothing).await.expect("memory")
    }

    async fn day(&self, zone: &str) -> Folded {
        let zone: Zone = given::zone(zone);
        self.fold()
            .day(zone, zone.date(at_minute(0)), Timestamp::MAX, Assumed::Nothing)
            .await
            .expect("memory")
    }

    async fn stored(&self, bucket: Bucket) -> StoredRollup {
        let key = RollupKey { device: device(), bucket };
        self.store.rollup(&key, &self.invocation).await.expect("memory").expect("a rollup")
    }

    async fn stored_quarter(&self, n: i64) -> StoredRollup {
        self.stored(Bucket::QuarterHour(quarter(n))).await
    }
}

fn device() -> DeviceId {
    given::device("d")
}

fn quarter(n: i64) -> QuarterHour {
    QuarterHour::of(at_minute(15 * n))
}

fn reading(minute: i64, value: &str) -> Reading {
    given::reading(
        "d",
        at_minute(minute),
        None,
        &["temperature", "cumulative_kwh_p"].map(|it| (it, value)),
    )
}

fn folded(readings: &[Reading]) -> Rollup {
    Rollup::fold(readings, &FoldRules::default())
}

#[tokio::test]
async fn a_rollup_is_the_fold_of_its_readings_and_every_put_has_the_next_version() {
    let bench = Bench::new();
    bench.write(1, "20").await;
    bench.write(14, "21").await;
    bench.write(15, "99").await;
    assert_eq!(bench.quarter(0).await, Folded::Stored);
    let first = bench.stored_quarter(0).await;
    assert_eq!(first.rollup, folded(&[reading(1, "20"), reading(14, "21")]));
    assert_eq!((first.version, first.raw_until, first.expires), (1, None, None));
    // The same again is put again: an older fold on its way must be refused.
    assert_eq!(bench.quarter(0).await, Folded::Stored);
    assert_eq!(bench.stored_quarter(0).await, StoredRollup { version: 2, ..first });
}

#[tokio::test]
async fn an_emptied_rollup_stays_for_a_week() {
    let bench = Bench::keeping(30, 30, 30);
    bench.write(1, "20").await;
    bench.quarter(0).await;
    assert_eq!(bench.stored_quarter(0).await.expires, Some(at_minute(33 * 24 * 60)));
    bench.delete(1).await;
    assert_eq!(bench.quarter(0).await, Folded::Stored);
    let emptied = bench.stored_quarter(0).await;
    assert!(emptied.rollup.is_empty());
    assert_eq!((emptied.version, emptied.raw_until), (2, None));
    assert_eq!(emptied.expires, Some(at_minute(60 + 7 * 24 * 60)));
    bench.write(2, "21").await;
    bench.quarter(0).await;
    assert_eq!(bench.stored_quarter(0).await.expires, Some(at_minute(33 * 24 * 60)));
}

#[tokio::test]
async fn a_reading_that_was_deleted_before_its_first_fold_leaves_a_rollup_of_nothing() {
    let bench = Bench::new();
    // A fold that still saw the reading is on its way, and expects no rollup.
    assert_eq!(bench.quarter(0).await, Folded::Stored);
    assert!(bench.stored_quarter(0).await.rollup.is_empty());
}

#[tokio::test]
async fn a_wrong_assumption_costs_a_read_and_nothing_else() {
    let bench = Bench::new();
    bench.write(1, "20").await;
    for version in [1, 2] {
        let before = bench.store.calls().reads;
        let result = bench.fold().quarter(quarter(0), Assumed::Absent).await;
        assert_eq!(result.expect("memory"), Folded::Stored);
        assert_eq!(bench.stored_quarter(0).await.version, version);
        // The readings, and behind the refused put the rollup and the readings; one read is the test's.
        let reads = bench.store.calls().reads - before - 1;
        assert_eq!(reads, if version == 1 { 1 } else { 3 });
    }
}

#[tokio::test]
async fn readings_that_may_have_begun_to_expire_replace_no_rollup() {
    let mut bench = Bench::keeping(30, 300, 300);
    bench.write(1, "20").await;
    bench.quarter(0).await;
    let good = bench.stored_quarter(0).await;
    assert_eq!(good.raw_until, Some(at_minute(33 * 24 * 60 + 1)));
    // A longer retention allows a late reading, but the first one is nearly gone.
    bench.retention.readings = None;
    bench.now = at_minute(32 * 24 * 60 + 1);
    bench.write(2, "99").await;
    for _ in 0..2 {
        assert_eq!(bench.quarter(0).await, Folded::Frozen);
        let frozen = StoredRollup { version: 2, is_frozen: true, ..good.clone() };
        assert_eq!(bench.stored_quarter(0).await, frozen, "flagged once");
    }
    // A minute earlier all readings were there for certain.
    bench.now = at_minute(32 * 24 * 60);
    assert_eq!(bench.quarter(0).await, Folded::Stored);
    assert!(!bench.stored_quarter(0).await.is_frozen);
}

#[tokio::test]
async fn expired_readings_are_passed_over_and_no_expired_rollup_is_put() {
    let mut bench = Bench::keeping(30, 40, 40);
    bench.write(1, "20").await;
    bench.write(14, "21").await;
    bench.now = at_minute(33 * 24 * 60 + 2);
    assert_eq!(bench.quarter(0).await, Folded::Stored);
    assert_eq!(bench.stored_quarter(0).await.rollup, folded(&[reading(14, "21")]));
    bench.retention.readings = None;
    bench.write(16, "22").await;
    bench.now = at_minute(60 * 24 * 60);
    assert_eq!(bench.quarter(1).await, Folded::Skipped);
    assert_eq!(bench.store.rollups().len(), 1);
}

#[tokio::test]
async fn under_a_shorter_retention_a_stored_rollup_is_still_right() {
    let mut bench = Bench::keeping(300, 300, 300);
    bench.write(1, "20").await;
    bench.quarter(0).await;
    let expires = bench.stored_quarter(0).await.expires;
    bench.retention.quarters = Some(TimeDelta::days(1));
    bench.now = at_minute(10 * 24 * 60);
    bench.write(2, "21").await;
    assert_eq!(bench.quarter(0).await, Folded::Stored);
    let stored = bench.stored_quarter(0).await;
    assert_eq!(stored.rollup, folded(&[reading(1, "20"), reading(2, "21")]));
    assert_eq!(stored.expires, expires);
}

#[tokio::test]
async fn older_settings_replace_nothing() {
    let mut bench = Bench::new();
    bench.write(1, "20").await;
    bench.device.settings.number = 3;
    bench.quarter(0).await;
    bench.day("UTC").await;
    let stored = bench.store.rollups();
    bench.device.settings.number = 2;
    assert_eq!(bench.quarter(0).await, Folded::Outdated);
    assert_eq!(bench.day("UTC").await, Folded::Outdated);
    // Another day of these quarters is not there yet, but it would be made of newer ones.
    assert_eq!(bench.day("Asia/Tokyo").await, Folded::Outdated);
    let window = bench.fold().quarters_of(quarter(0).range(), Assumed::Absent).await;
    let window = window.expect("memory");
    assert_eq!(window, FoldedWindow { is_outdated: true, ..FoldedWindow::default() });
    assert_eq!(bench.store.rollups(), stored);
}

#[tokio::test]
async fn a_day_of_quarters_that_are_to_be_folded_again_is_to_be_folded_again() {
    let mut bench = Bench::new();
    for (minute, value) in [(1, "20"), (16, "21")] {
        bench.write(minute, value).await;
    }
    for n in 0..2 {
        bench.quarter(n).await;
    }
    // The change concerns the first quarter only; then the second is written late.
    let extent = Extent { first: at_minute(1), last: at_minute(1) };
    bench.device.settings = FoldSettings { number: 1, changes: [(1, extent)].into() };
    bench.quarter(1).await;
    bench.day("UTC").await;
    let date = Zone::UTC.date(at_minute(0));
    let is_outdated = async |bench: &Bench| {
        let day = bench.stored(Bucket::Day(date)).await;
        bench.device.is_outdated(&day)
    };
    assert!(is_outdated(&bench).await);
    bench.quarter(0).await;
    bench.day("UTC").await;
    assert!(!is_outdated(&bench).await);
    // A change of other days leaves the quarters as they are, and the day right.
    let extent = Extent { first: at_minute(-2_000), last: at_minute(-2_000) };
    bench.device.settings.number = 2;
    bench.device.settings.changes.insert(2, extent);
    bench.day("UTC").await;
    assert_eq!(bench.stored(Bucket::Day(date)).await.settings, 2);
}

#[tokio::test]
async fn a_day_is_the_fold_of_its_quarters() {
    let bench = Bench::keeping(30, 40, 50);
    // 00:45, 01:00 and 01:15 in Tokyo are 15:45, 16:00 and 16:15 of the day before.
    for (minute, value) in [(-15, "20"), (0, "21"), (15, "22"), (-61, "19")] {
        bench.write(minute, value).await;
    }
    for n in -5..2 {
        bench.quarter(n).await;
    }
    assert_eq!(bench.day("Asia/Tokyo").await, Folded::Stored);
    let tokyo: Zone = given::zone("Asia/Tokyo");
    let day = bench.stored(Bucket::Day(given::date("2026-01-12"))).await;
    assert_eq!(day.range, tokyo.day(tokyo.date(at_minute(0))).expect("a day"));
    assert_eq!(day.zone.as_deref(), Some("Asia/Tokyo"));
    let inside = [reading(-15, "20"), reading(0, "21"), reading(15, "22")];
    assert_eq!(day.rollup, folded(&inside));
    assert_eq!(day.expires, Some(day.range.from().saturating_add(TimeDelta::days(53))));
    // Its quarters expire before it does, the first one first.
    assert_eq!(day.raw_until, Some(at_minute(43 * 24 * 60 - 15)));
}

#[tokio::test]
async fn an_open_day_has_its_parts_that_are_over_and_a_slower_clock_takes_nothing_from_it() {
    let bench = Bench::new();
    let date: LocalDate = given::date("2026-01-11");
    // 07:45, 08:00 and 16:00 of a day that ends at 24:00.
    let minutes = [-8 * 60 - 15, -8 * 60, 0];
    for minute in minutes {
        bench.write(minute, "20").await;
        bench
            .fold()
            .quarter(QuarterHour::of(at_minute(minute)), Assumed::Nothing)
            .await
            .expect("memory");
    }
    let fold = async |until| {
        let folded = bench.fold().day(Zone::UTC, date, at_minute(until), Assumed::Nothing).await;
        folded.expect("memory")
    };
    assert_eq!(fold(-8 * 60 - 1).await, Folded::Skipped);
    for (until, end, count) in [
        (-8 * 60, -8 * 60, 1),
        (-1, -8 * 60, 1),
        (0, 0, 2),
        (-1, 0, 2),
        (8 * 60 - 1, 0, 2),
        (8 * 60, 8 * 60, 3),
        (0, 8 * 60, 3),
        (20 * 60, 8 * 60, 3),
    ] {
        assert_eq!(fold(until).await, Folded::Stored);
        let day = bench.stored(Bucket::Day(date)).await;
        assert_eq!(
            (day.range.from(), day.range.to()),
            (at_minute(-16 * 60), at_minute(end)),
            "{until}"
        );
        assert_eq!(day.rollup.metrics.values().map(|it| it.count).max(), Some(count), "{until}");
    }
    // Of another zone it is no part.
    let lagos: Zone = given::zone("Africa/Lagos");
    let folded = bench.fold().day(lagos, date, at_minute(-9 * 60), Assumed::Nothing).await;
    assert_eq!(folded.expect("memory"), Folded::Stored);
    let day = bench.stored(Bucket::Day(date)).await;
    assert_eq!((day.range.from(), day.range.to()), (at_minute(-17 * 60), at_minute(-9 * 60)));
}

#[tokio::test]
async fn a_part_of_a_day_is_completed_late_only_while_its_quarters_are_there() {
    const DAY: i64 = 24 * 60;
    // The quarters expire after 33 days.
    for (minute, expected, count) in
        [(32 * DAY + 12 * 60, Folded::Stored, 2), (40 * DAY, Folded::Frozen, 1)]
    {
        let mut bench = Bench::keeping(30, 30, 300);
        bench.write(-8 * 60, "20").await;
        bench.write(0, "21").await;
        bench
            .fold()
            .quarter(QuarterHour::of(at_minute(-8 * 60)), Assumed::Nothing)
            .await
            .expect("memory");
        let date: LocalDate = given::date("2026-01-11");
        let part = bench.fold().day(Zone::UTC, date, at_minute(0), Assumed::Nothing).await;
        assert_eq!(part.expect("memory"), Folded::Stored);
        bench.quarter(0).await;
        bench.now = at_minute(minute);
        assert_eq!(bench.day("UTC").await, expected);
        let stored = bench.stored(Bucket::Day(date)).await.rollup;
        assert_eq!(stored.metrics.values().map(|it| it.count).max(), Some(count));
    }
}

#[tokio::test]
async fn a_day_of_another_zone_is_replaced() {
    let bench = Bench::new();
    bench.write(0, "21").await;
    bench.quarter(0).await;
    bench.day("UTC").await;
    assert_eq!(bench.day("Africa/Lagos").await, Folded::Stored);
    let day = bench.stored(Bucket::Day(given::date("2026-01-11"))).await;
    assert_eq!((day.zone.as_deref(), day.version), (Some("Africa/Lagos"), 2));
    assert_eq!(day.range.from(), at_minute(-17 * 60));
}

#[tokio::test]
async fn a_day_whose_quarters_have_expired_is_folded_from_readings_or_left() {
    let mut bench = Bench::new();
    bench.write(0, "21").await;
    bench.retention.quarters = Some(TimeDelta::days(1));
    bench.now = at_minute(30 * 24 * 60);
    assert_eq!(bench.quarter(0).await, Folded::Skipped);
    assert_eq!(bench.day("UTC").await, Folded::Stored);
    let day = Bucket::Day(given::date("2026-01-11"));
    assert_eq!(bench.stored(day).await.rollup, folded(&[reading(0, "21")]));

    let mut bench = Bench::keeping(30, 30, 300);
    bench.write(0, "21").await;
    bench.quarter(0).await;
    bench.day("UTC").await;
    let good = bench.stored(day).await;
    bench.delete(0).await;
    bench.now = at_minute(40 * 24 * 60);
    assert_eq!(bench.day("UTC").await, Folded::Frozen);
    assert_eq!(bench.stored(day).await.rollup, good.rollup);
}

#[tokio::test]
async fn a_day_is_folded_from_quarters_that_were_put_under_a_longer_retention() {
    let mut bench = Bench::keeping(30, 300, 300);
    bench.write(0, "21").await;
    bench.quarter(0).await;
    bench.day("UTC").await;
    let day = Bucket::Day(given::date("2026-01-11"));
    let good = bench.stored(day).await;
    // Its readings are gone, and by the present retention its quarters should be too.
    bench.retention.quarters = Some(TimeDelta::days(1));
    bench.delete(0).await;
    bench.now = at_minute(40 * 24 * 60);
    assert_eq!(bench.day("UTC").await, Folded::Stored);
    assert_eq!(bench.stored(day).await.rollup, good.rollup);
}

#[tokio::test]
async fn a_day_without_quarters_has_no_rollup() {
    let bench = Bench::new();
    assert_eq!(bench.day("UTC").await, Folded::Skipped);
    let apia: Zone = given::zone("Pacific/Apia");
    let skipped: LocalDate = given::date("2011-12-30");
    let folded =
        bench.fold().day(apia, skipped, Timestamp::MAX, Assumed::Nothing).await.expect("memory");
    assert_eq!(folded, Folded::Skipped);
    assert_eq!(bench.store.rollups(), []);
}

#[tokio::test]
async fn a_range_is_folded_with_one_query_of_readings() {
    let bench = Bench::new();
    for minute in [1, 2, 46, 61] {
        bench.write(minute, "20").await;
    }
    bench.quarter(3).await;
    let range = given::range(at_minute(0), at_minute(60));
    let before = bench.store.calls().reads;
    let window = bench.fold().quarters_of(range, Assumed::Absent).await.expect("memory");
    assert_eq!(window.folded, [quarter(0), quarter(3)].into());
    // The range, and again the rollup and the readings of the quarter that had a rollup.
    assert_eq!(bench.store.calls().reads - before, 3);
    let versions: Vec<_> = bench.store.rollups().iter().map(|it| it.version).collect();
    assert_eq!(versions, [1, 2]);
    // With the rollups read first, one whose readings are gone becomes that of nothing.
    bench.delete(46).await;
    let window = bench.fold().quarters_of(range, Assumed::Nothing).await.expect("memory");
    assert_eq!(window.folded.len(), 2);
    assert!(bench.stored_quarter(3).await.rollup.is_empty());
    assert_eq!(bench.stored_quarter(0).await.version, 2);
}

/// A table whose rollups somebody else always puts first.
struct Contended(MemoryDb);

impl ReadRollups for Contended {
    async fn rollup(
        &self,
        key: &RollupKey,
        invocation: &Invocation,
    ) -> StoreResult<Option<StoredRollup>> {
        self.0.rollup(key, invocation).await
    }

    async fn quarters(
        &self,
        device: &DeviceId,
        range: TimeRange,
        consistent: bool,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        self.0.quarters(device, range, consistent, invocation).await
    }

    async fn days(
        &self,
        device: &DeviceId,
        dates: RangeInclusive<LocalDate>,
        order: domain::Order,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        self.0.days(device, dates, order, limit, invocation).await
    }
}

impl ReadStoredReadings for Contended {
    async fn stored_readings(
        &self,
        device: &DeviceId,
        range: TimeRange,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredReading>> {
        self.0.stored_readings(device, range, invocation).await
    }
}

impl NoteSeen for Contended {
    async fn seen(
        &self,
        room: &RoomId,
        device: &DeviceId,
        invocation: &Invocation,
    ) -> StoreResult<Option<RoomVisit>> {
        self.0.seen(room, device, invocation).await
    }

    async fn put_seen(
        &self,
        seen: &RoomVisit,
        expected: Expected,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        self.0.put_seen(seen, expected, invocation).await
    }
}

impl PutRollups for Contended {
    async fn put_rollup(
        &self,
        stored: &StoredRollup,
        expected: Expected,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let other = StoredRollup { rollup: Rollup::default(), ..stored.clone() };
        assert!(self.0.put_rollup(&other, expected, invocation).await?);
        self.0.put_rollup(stored, expected, invocation).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollup_that_keeps_changing_is_left_for_another_time() {
    let bench = Bench::new();
    let store = Contended(bench.store.clone());
    let folding = bench.fold_on(&store).quarter(quarter(0), Assumed::Nothing).await;
    let error = folding.expect_err("it is always refused");
    assert!(matches!(&error, StoreError::Contended(_)), "{error}");
    assert!(error.is_retryable());
    assert_eq!(bench.stored_quarter(0).await.version, 5, "attempts");
}

fn indexing(version: u8) -> Indexing {
    let metric = |name: &str| {
        let name = given::metric(name);
        SchemaMetric { name, encoding: Encoding::Signed, bits: 12 }
    };
    let metrics = ["temperature", "cumulative_kwh_p"].map(metric);
    Indexing::By(ConditionsSchema::new(version, metrics.into()).expect("a schema").into())
}

#[tokio::test]
async fn a_quarter_is_put_with_its_entry_and_a_fold_by_an_older_schema_is_told() {
    let mut bench = Bench::new();
    bench.write(1, "20").await;
    bench.device = bench.device.clone().indexed(&indexing(2));
    assert_eq!(bench.quarter(0).await, Folded::Stored);
    let first = bench.stored_quarter(0).await;
    assert_eq!(first.indexed, indexing(2).of(first.key.bucket, &first.rollup));
    assert_eq!(first.indexed.and_then(|it| it.entry).map(|it| it.address[0]), Some(2));
    for older in [indexing(1), Indexing::Unset] {
        bench.device = bench.device.clone().indexed(&older);
        assert_eq!(bench.quarter(0).await, Folded::Outdated);
        let window = bench.fold().quarters_of(quarter(0).range(), Assumed::Nothing).await;
        assert!(window.expect("memory").is_outdated);
        // One that does not know of the rollup is refused by the table, and then told.
        let folded = bench.fold().quarter(quarter(0), Assumed::Absent).await;
        assert_eq!(folded.expect("memory"), Folded::Outdated);
    }
    bench.device = bench.device.clone().indexed(&indexing(3));
    assert_eq!(bench.quarter(0).await, Folded::Stored);
    assert_eq!(bench.stored_quarter(0).await.indexed.map(|it| it.schema), Some(3));
}

#[tokio::test]
async fn a_quarter_whose_readings_have_expired_comes_into_the_index_as_it_is() {
    let mut bench = Bench::keeping(30, 3_000, 3_000);
    bench.write(1, "20").await;
    bench.quarter(0).await;
    let first = bench.stored_quarter(0).await;
    bench.now = at_minute(0).saturating_add(TimeDelta::days(100));
    bench.delete(1).await;
    bench.device = bench.device.clone().indexed(&indexing(1));
    for indexed in [1, 0] {
        let found = bench.fold().index_quarters(quarter(0).range()).await.expect("memory");
        assert_eq!(found, indexed);
    }
    let now = bench.stored_quarter(0).await;
    let indexed = indexing(1).of(first.key.bucket, &first.rollup);
    assert_eq!(now, StoredRollup { version: first.version + 1, indexed, ..first });
}
