//! Rebuilds and verifies on a table in memory. The program itself is tested with a server.

use std::path::PathBuf;
use std::process::ExitCode;

use chrono::TimeDelta;
use domain::given::{at, range};
use domain::{
    Bucket, ConditionsSchema, DevicePatch, Edit, Encoding, Exact, FoldRules, MetricKind,
    MetricPatch, QuarterHour, Reading, Rollup, SWEEP_GROUPS, SchemaMetric, Timestamp, Verdict,
};
use runtime::clock::TestClock;
use table::given::{self, invocation};
use table::layout::Layout;
use table::memory_db::MemoryDb;
use table::{
    Belonging, DeleteReadings as _, EditRegistry as _, Expected, KeepRollupState as _,
    PutConditionsSchema as _, PutReadings as _, PutRollups as _, ReadConditionsSchema as _,
    ReadRollupState as _, ReadRollups as _, ReadingKey, Refold, RemoveBelongings as _, RollupKey,
    RollupState, StoreError, StoredRollup,
};

use super::rebuild::{self, Rebuild, Rebuilt};
use super::verify::{self, Verify};
use crate::kept_progress::RunScope;
use crate::rollups::{Args, Command};
use crate::tests::parsed;

/// A table with a year of the state that the rollup function keeps, and a directory for progress.
struct Bench {
    store: MemoryDb,
    clock: TestClock,
    directory: tempfile::TempDir,
    retention: Option<TimeDelta>,
}

fn reading(device: &str, timestamp: &str, value: &str) -> Reading {
    let json = format!(r#"{{"device_id":"{device}","timestamp":"{timestamp}","t":{value}}}"#);
    history::read_reading(&json, Timestamp::MAX).unwrap()
}

impl Bench {
    async fn new() -> Self {
        let bench = Self {
            store: MemoryDb::default(),
            clock: TestClock::at(at("2026-03-01T00:00:00Z")),
            directory: tempfile::tempdir().unwrap(),
            retention: None,
        };
        let sealed = [at("2026-02-28T23:45:00Z"); SWEEP_GROUPS];
        let (zone, since) = ("UTC".to_owned(), at("2026-01-15T00:00:00Z"));
        let state = RollupState { zone, since, sealed, queue: None };
        bench.store.begin_rollups(&state, &invocation()).await.unwrap();
        bench
    }

    async fn write(&self, device: &str, timestamp: &str, value: &str) {
        let reading = reading(device, timestamp, value);
        given::register_devices_of(&self.store, std::slice::from_ref(&reading)).await;
        let put = self.store.put_readings(&[reading], self.retention, &invocation()).await;
        assert!(put.not_stored.is_empty());
    }

    fn progress(&self) -> PathBuf {
        self.directory.path().join("progress")
    }

    fn run_scope(&self, scope: &super::scope::RollupScope) -> RunScope {
        let (path, table) = (self.progress(), "the bench".to_owned());
        RunScope { path, table, again: scope.progress.again }
    }

    async fn rebuild(&self, options: &[&str]) -> anyhow::Result<Rebuilt> {
        let options = [&["roomtide", "rebuild"], options].concat();
        let Command::Rebuild(args) = parsed::<Args>(options)?.action else { panic!("asked") };
        let args: Rebuild = args;
        let run = self.run_scope(&args.scope);
        rebuild::run(&args, &self.store, None, &run, self.clock.clone()).await
    }

    /// Returns whether the rollups are what they should be.
    async fn verify(&self, options: &[&str]) -> bool {
        self.exit_code(options).await == ExitCode::SUCCESS
    }

    async fn exit_code(&self, options: &[&str]) -> ExitCode {
        self.try_verify(options).await.unwrap()
    }

    async fn try_verify(&self, options: &[&str]) -> anyhow::Result<ExitCode> {
        let options = [&["roomtide", "verify", "--again-after", "0s"], options].concat();
        let Command::Verify(args) = parsed::<Args>(options).unwrap().action else {
            panic!("asked")
        };
        let args: Verify = args;
        verify::run(&args, &self.store, &self.run_scope(&args.scope), self.clock.clone()).await
    }

    async fn edit(&self, device: &str, metric: MetricPatch) {
        let metrics = [(given::metric("t"), Some(metric))].into();
        let patch = DevicePatch { metrics, ..DevicePatch::default() };
        self.store
            .edit_device(&given::device(device), &patch, Timestamp::MIN, &invocation())
            .await
            .unwrap();
    }

    async fn quarter(&self, device: &str, start: &str) -> Option<StoredRollup> {
        let quarter = QuarterHour::starting_at(at(start)).unwrap();
        let key = RollupKey::quarter(given::device(device), quarter);
        self.store.rollup(&key, &invocation()).await.unwrap()
    }

    async fn day(&self, device: &str, date: &str) -> Option<StoredRollup> {
        let key = RollupKey::day(given::device(device), given::date(date));
        self.store.rollup(&key, &invocation()).await.unwrap()
    }

    async fn state(&self) -> RollupState {
        self.store.rollup_state(&invocation()).await.unwrap().unwrap()
    }

    /// Deletes the reading of a device `a`, as if it expired.
    async fn delete(&self, timestamp: &str) {
        let key = ReadingKey { at: at(timestamp), device: given::device("a") };
        self.store.delete_readings(&[key], &invocation()).await;
    }

    async fn put(&self, rollup: &StoredRollup, expected: Expected) {
        assert!(self.store.put_rollup(rollup, expected, &invocation()).await.unwrap());
    }

    async fn replace(&self, mut rollup: StoredRollup, change: impl FnOnce(&mut StoredRollup)) {
        let expected = Expected::Version(rollup.version);
        rollup.version += 1;
        change(&mut rollup);
        self.put(&rollup, expected).await;
    }
}

fn count(rollup: &StoredRollup) -> u64 {
    rollup.rollup.metrics.values().map(|metric| metric.count).sum()
}

#[tokio::test]
async fn a_rebuild_makes_every_rollup_and_notes_that_they_are_complete() {
    let bench = Bench::new().await;
    // Two devices, a gap of weeks, and a 15 minutes that is not over.
    bench.write("a", "2026-01-01T10:00:00Z", "1").await;
    bench.write("a", "2026-01-01T10:14:00Z", "2").await;
    bench.write("a", "2026-02-20T23:59:00Z", "3").await;
    bench.write("b", "2026-02-28T23:59:00Z", "4").await;
    let rebuilt = bench.rebuild(&[]).await.unwrap();
    assert_eq!(rebuilt, Rebuilt { quarters: 2, days: 2, kept: 0 });
    assert_eq!(count(&bench.quarter("a", "2026-01-01T10:00:00Z").await.unwrap()), 2);
    assert_eq!(count(&bench.day("a", "2026-02-20").await.unwrap()), 1);
    assert_eq!(bench.quarter("b", "2026-02-28T23:45:00Z").await, None);
    assert_eq!(bench.state().await.since, Timestamp::MIN);
    assert!(bench.verify(&[]).await);
    assert!(!bench.progress().exists());
}

#[tokio::test]
async fn a_part_is_rebuilt_without_saying_that_all_is() {
    let bench = Bench::new().await;
    for device in ["a", "b"] {
        bench.write(device, "2026-01-01T10:00:00Z", "1").await;
        bench.write(device, "2026-01-02T10:00:00Z", "1").await;
    }
    let part = ["--device", "a", "--from", "2026-01-02T00:00:00Z", "--to", "2026-01-03T00:00:00Z"];
    assert_eq!(bench.rebuild(&part).await.unwrap(), Rebuilt { quarters: 1, days: 1, kept: 0 });
    assert_eq!(bench.state().await.since, at("2026-01-15T00:00:00Z"));
    let unknown = bench.rebuild(&["--device", "c"]).await.unwrap_err();
    assert_eq!(unknown.to_string(), "there is no device c");
    let empty = bench.rebuild(&["--from", "2026-03-01T00:00:00Z"]).await.unwrap_err();
    assert!(format!("{empty:#}").contains("--from"), "{empty:#}");
}

#[tokio::test]
async fn a_planted_a_missing_and_an_orphaned_rollup_are_found_and_rebuilt() {
    let bench = Bench::new().await;
    for day in 1..=20 {
        bench.write("a", &format!("2026-02-{day:02}T10:00:00Z"), "1").await;
    }
    assert!(!bench.verify(&[]).await, "there is no rollup at all");
    bench.rebuild(&[]).await.unwrap();
    assert!(bench.verify(&[]).await);

    let rollup = bench.quarter("a", "2026-02-03T10:00:00Z").await.unwrap();
    bench
        .replace(rollup, |it| {
            it.rollup.metrics.values_mut().for_each(|metric| metric.sum = Exact::from(5_i64));
        })
        .await;
    assert!(!bench.verify(&[]).await);
    let part = ["--from", "2026-02-05T00:00:00Z", "--to", "2026-02-06T00:00:00Z"];
    assert!(bench.verify(&part).await, "it is not in this part");
    bench.rebuild(&[]).await.unwrap();
    assert!(bench.verify(&[]).await);

    // A day that lost a metric, which no quarter tells.
    let rollup = bench.day("a", "2026-02-04").await.unwrap();
    bench.replace(rollup, |it| it.rollup.metrics.clear()).await;
    assert!(!bench.verify(&[]).await);
    bench.rebuild(&[]).await.unwrap();

    // The reading of a rollup is gone: the rollup stays, as that of nothing.
    bench.delete("2026-02-05T10:00:00Z").await;
    assert!(!bench.verify(&[]).await);
    bench.rebuild(&[]).await.unwrap();
    assert_eq!(count(&bench.quarter("a", "2026-02-05T10:00:00Z").await.unwrap()), 0);
    assert_eq!(count(&bench.day("a", "2026-02-05").await.unwrap()), 0);
    assert!(bench.verify(&[]).await);

    // A quarter before everything else, as after a part of a backup was restored.
    let mut older = bench.quarter("a", "2026-02-06T10:00:00Z").await.unwrap();
    let quarter = QuarterHour::starting_at(at("2025-12-31T10:00:00Z")).unwrap();
    older.key.bucket = Bucket::QuarterHour(quarter);
    older.range = quarter.range();
    bench.put(&older, Expected::Absent).await;
    assert!(!bench.verify(&[]).await);
    bench.rebuild(&[]).await.unwrap();
    assert!(bench.verify(&[]).await);
}

/// A room that rollups name and no note leads to, as it was left by versions before this was noted anew for a device
/// that had been deleted: answers about the room lack the device.
#[tokio::test]
async fn a_room_that_rollups_name_and_nobody_has_noted_is_found_and_noted_by_a_rebuild() {
    let mut bench = Bench::new().await;
    bench.retention = Some(TimeDelta::days(30));
    for (timestamp, room) in [("2025-11-03T10:00:00Z", "hall"), ("2026-02-20T10:00:00Z", "hall")] {
        let mut reading = reading("a", timestamp, "1");
        reading.room = Some(given::room(room));
        given::register_devices_of(&bench.store, std::slice::from_ref(&reading)).await;
        let put = bench.store.put_readings(&[reading], bench.retention, &invocation()).await;
        assert!(put.not_stored.is_empty());
        // The first is folded before it expires.
        bench.clock.set(at(timestamp).saturating_add(TimeDelta::days(9)));
        bench.rebuild(&["--again"]).await.unwrap();
    }
    bench.clock.set(at("2026-03-01T00:00:00Z"));
    bench.delete("2025-11-03T10:00:00Z").await;
    let months = || {
        let seen = bench.store.all_seen();
        seen.into_iter().map(|it| (it.first.to_string(), it.last.to_string())).collect::<Vec<_>>()
    };
    let all = [("2025-11".to_owned(), "2026-02".to_owned())];
    assert_eq!(months(), all);
    assert!(bench.verify(&[]).await);

    let (device, room) = ("a".parse().unwrap(), "hall".parse().unwrap());
    let note = Belonging::of_seen(&device, &room);
    bench.store.remove_belongings(&[note], &invocation()).await;
    assert!(!bench.verify(&["--again"]).await);
    assert_eq!(months(), [], "a verification writes nothing");
    bench.rebuild(&["--again"]).await.unwrap();
    assert_eq!(months(), all);
    assert!(bench.verify(&["--again"]).await);
    bench.store.remove_belongings(&[Belonging::of_seen(&device, &room)], &invocation()).await;
    bench.write("a", "2026-02-21T10:00:00Z", "1").await;
    bench.rebuild(&["--again", "--from", "2026-02-01T00:00:00Z"]).await.unwrap();
    assert_eq!(months(), [("2026-02".to_owned(), "2026-02".to_owned())]);
    assert!(!bench.verify(&["--again"]).await, "November is not noted");
}

#[tokio::test]
async fn rollups_with_older_settings_are_told_from_wrong_ones() {
    let bench = Bench::new().await;
    bench.write("a", "2026-02-03T10:00:00Z", "5").await;
    bench.write("a", "2026-02-03T10:01:00Z", "1").await;
    bench.write("b", "2026-02-03T10:00:00Z", "1").await;
    bench.rebuild(&[]).await.unwrap();
    let kind = Edit::Set(MetricKind::Counter);
    bench.edit("a", MetricPatch { kind, ..MetricPatch::default() }).await;
    assert_eq!(bench.exit_code(&[]).await, ExitCode::from(3), "the function folds them again");
    assert!(bench.verify(&["--device", "b"]).await);

    let rollup = bench.quarter("b", "2026-02-03T10:00:00Z").await.unwrap();
    bench.replace(rollup, |it| it.rollup.metrics.clear()).await;
    assert_eq!(bench.exit_code(&[]).await, ExitCode::FAILURE, "that of another device is wrong");

    // The function says that it has folded everything: what still differs is wrong.
    let done = Refold { settings: 1, under_way: None };
    bench.store.set_refold(&given::device("a"), &done, &invocation()).await.unwrap();
    assert_eq!(bench.exit_code(&["--device", "a"]).await, ExitCode::FAILURE);
    bench.rebuild(&[]).await.unwrap();

    // A verdict on a later step does not concern the rollups of this day.
    let verdicts = Edit::Set([(at("2026-02-20T10:00:00Z"), Verdict::Accept)].into());
    bench.edit("a", MetricPatch { verdicts, ..MetricPatch::default() }).await;
    let rollup = bench.quarter("a", "2026-02-03T10:00:00Z").await.unwrap();
    bench.replace(rollup, |it| it.rollup.metrics.clear()).await;
    assert_eq!(bench.exit_code(&[]).await, ExitCode::FAILURE);
}

#[tokio::test]
async fn rollups_whose_readings_expire_are_neither_compared_nor_touched() {
    let bench = Bench { retention: Some(TimeDelta::days(10)), ..Bench::new().await };
    bench.write("a", "2026-02-10T10:00:00Z", "1").await;
    bench.write("a", "2026-02-26T10:00:00Z", "1").await;
    bench.clock.set(at("2026-02-21T00:00:00Z"));
    bench.rebuild(&["--to", "2026-02-11T00:00:00Z"]).await.unwrap();
    bench.clock.set(at("2026-03-01T00:00:00Z"));
    let good = bench.quarter("a", "2026-02-10T10:00:00Z").await.unwrap();
    bench.delete("2026-02-10T10:00:00Z").await;
    // The day is folded from its rollup of 15 minutes, which stays.
    let rebuilt = bench.rebuild(&[]).await.unwrap();
    assert_eq!(rebuilt, Rebuilt { quarters: 1, days: 2, kept: 1 });
    assert_eq!(bench.quarter("a", "2026-02-10T10:00:00Z").await.unwrap(), good, "not flagged");
    assert!(bench.verify(&[]).await);
}

#[tokio::test]
async fn a_rebuild_of_everything_makes_the_index_by_conditions_complete() {
    let mut bench = Bench { retention: Some(TimeDelta::days(10)), ..Bench::new().await };
    bench.write("a", "2026-02-10T10:00:00Z", "1").await;
    bench.write("a", "2026-02-26T10:00:00Z", "1").await;
    bench.clock.set(at("2026-02-21T00:00:00Z"));
    bench.rebuild(&["--to", "2026-02-11T00:00:00Z"]).await.unwrap();
    bench.clock.set(at("2026-03-01T00:00:00Z"));
    bench.store = bench.store.with_layout(Layout { conditions_index: true, ..Layout::default() });
    let metric =
        |name: &str| SchemaMetric { name: given::metric(name), encoding: Encoding::Float, bits: 8 };
    let schema = ConditionsSchema::new(1, ["t", "u"].map(metric).into()).unwrap();
    let put = bench.store.put_conditions_schema(&schema, Expected::Absent, &invocation()).await;
    assert!(put.unwrap());
    let is_ready = async || {
        let stored = bench.store.conditions_schema(&invocation()).await.unwrap();
        stored.is_some_and(|it| it.is_ready)
    };
    bench.rebuild(&["--from", "2026-02-26T00:00:00Z"]).await.unwrap();
    assert!(!is_ready().await, "a part is not everything");
    bench.rebuild(&[]).await.unwrap();
    assert!(is_ready().await);
    // The first one's readings have begun to expire.
    for start in ["2026-02-10T10:00:00Z", "2026-02-26T10:00:00Z"] {
        let stored = bench.quarter("a", start).await.unwrap();
        assert_eq!(stored.indexed.map(|it| it.schema), Some(1), "{start}");
        assert!(!stored.is_frozen);
    }
    assert!(bench.verify(&[]).await);
}

#[tokio::test]
async fn days_of_another_zone_are_folded_where_they_can_be() {
    let bench = Bench::new().await;
    bench.write("a", "2026-02-10T23:30:00Z", "1").await;
    bench.rebuild(&[]).await.unwrap();
    bench.rebuild(&["--time-zone", "Europe/Berlin"]).await.unwrap();
    let state = bench.state().await;
    assert_eq!((state.zone.as_str(), state.since), ("Europe/Berlin", Timestamp::MIN));
    let day = bench.day("a", "2026-02-11").await.unwrap();
    assert_eq!((day.zone.as_deref(), count(&day)), (Some("Europe/Berlin"), 1));
    assert!(bench.verify(&[]).await, "the day of the zone before counts as absent");
}

#[tokio::test]
async fn a_zone_is_not_changed_where_that_would_lose_a_day() {
    let bench = Bench::new().await;
    for day in ["2026-02-10", "2026-02-11", "2026-02-12"] {
        bench.write("a", &format!("{day}T12:00:00Z"), "1").await;
    }
    // Only the rollup of the day is left of the first.
    bench.rebuild(&["--quarter-retention-days", "1000"]).await.unwrap();
    let rollup = bench.quarter("a", "2026-02-10T12:00:00Z").await.unwrap();
    bench.replace(rollup, |it| it.expires = Some(at("2026-02-20T00:00:00Z"))).await;
    bench.delete("2026-02-10T12:00:00Z").await;
    let error = bench.rebuild(&["--time-zone", "Europe/Berlin"]).await.unwrap_err().to_string();
    assert!(
        error.starts_with("days before 2026-02-12 cannot be folded in Europe/Berlin"),
        "{error}"
    );
    assert_eq!(bench.state().await.zone, "UTC");

    let from = "2026-02-11T23:00:00.000Z";
    assert!(error.contains(&format!("--from {from}")), "{error}");
    std::fs::write(bench.progress(), "somebody's").unwrap();
    let error = bench.rebuild(&["--time-zone", "Europe/Berlin", "--from", from]).await.unwrap_err();
    assert!(error.to_string().contains("is not replaced"), "{error}");
    assert_eq!(bench.state().await.zone, "UTC", "as long as no progress can be kept");
    std::fs::remove_file(bench.progress()).unwrap();
    bench.rebuild(&["--time-zone", "Europe/Berlin", "--from", from]).await.unwrap();
    let zone = async |date| bench.day("a", date).await.and_then(|day| day.zone);
    assert_eq!(zone("2026-02-10").await.as_deref(), Some("UTC"));
    assert_eq!(zone("2026-02-12").await.as_deref(), Some("Europe/Berlin"));
}

#[tokio::test]
async fn an_interrupted_rebuild_continues_where_it_stopped() {
    let bench = Bench::new().await;
    for device in ["a", "b"] {
        for day in 1..=20 {
            bench.write(device, &format!("2026-02-{day:02}T10:00:00Z"), "1").await;
        }
    }
    let asked = r#"{"of":"rollups rebuild of the bench","began":1770681600000,"asked":"[] None None UTC 0 0 0 in the bench","under_way":["b",1770681600000],"found":{"quarters":29,"days":29,"kept":0}}"#;
    std::fs::write(bench.progress(), asked).unwrap();
    let rebuilt = bench.rebuild(&[]).await.unwrap();
    assert_eq!(rebuilt, Rebuilt { quarters: 40, days: 40, kept: 0 });
    assert_eq!(bench.quarter("a", "2026-02-20T10:00:00Z").await, None, "done before");
    assert!(bench.quarter("b", "2026-02-10T10:00:00Z").await.is_some());
    assert!(!bench.progress().exists());

    for options in [&["--again"][..], &["--again", "--day-retention-days", "36500"]] {
        std::fs::write(bench.progress(), asked).unwrap();
        let rebuilt = bench.rebuild(options).await.unwrap();
        assert_eq!(rebuilt, Rebuilt { quarters: 40, days: 40, kept: 0 }, "{options:?}");
        assert!(bench.verify(&[]).await);
    }
}

#[tokio::test]
async fn a_relative_time_is_counted_from_the_first_run_of_an_interrupted_rebuild() {
    let bench = Bench::new().await;
    for day in 1..=20 {
        bench.write("b", &format!("2026-02-{day:02}T10:00:00Z"), "1").await;
    }
    let began = at("2026-02-21T00:00:00Z").as_millis();
    let kept = format!(
        r#"{{"of":"rollups rebuild of the bench","asked":"[] Some(\"-10d\") None UTC 0 0 0 in the bench","began":{began},"under_way":["a",{began}],"found":{{"quarters":0,"days":0,"kept":0}}}}"#
    );
    std::fs::write(bench.progress(), kept).unwrap();
    let rebuilt = bench.rebuild(&["--from", "-10d"]).await.unwrap();
    assert_eq!(rebuilt, Rebuilt { quarters: 10, days: 10, kept: 0 }, "from 11 February on");
}

#[tokio::test]
async fn progress_of_another_table_or_command_is_named_and_kept() {
    let bench = Bench::new().await;
    bench.write("a", "2026-02-10T10:00:00Z", "1").await;
    let keep = |of: &str| {
        let kept = format!(
            r#"{{"of":"{of}","asked":"x","began":1,"under_way":["a",1],"found":{{"quarters":1,"days":1,"kept":0}}}}"#
        );
        std::fs::write(bench.progress(), &kept).unwrap();
        kept
    };
    let refused = |of: &str, kept: &str, error: anyhow::Error| {
        let (error, path) = (error.to_string(), bench.progress().display().to_string());
        for expected in [path.as_str(), of, "--state", "--again"] {
            assert!(error.contains(expected), "{expected} is not in {error}");
        }
        assert_eq!(std::fs::read_to_string(bench.progress()).unwrap(), kept);
    };

    for of in ["rollups rebuild of another table", "rollups verify of the bench"] {
        let kept = keep(of);
        refused(of, &kept, bench.rebuild(&[]).await.unwrap_err());
    }
    let rebuild = "rollups rebuild of the bench";
    let kept = keep(rebuild);
    refused(rebuild, &kept, bench.try_verify(&[]).await.unwrap_err());

    let kept = keep(rebuild);
    refused("with other options", &kept, bench.rebuild(&[]).await.unwrap_err());
    for of in [rebuild, "rollups verify of another table"] {
        keep(of);
        let answer = bench.rebuild(&["--again"]).await.unwrap();
        assert_eq!(answer, Rebuilt { quarters: 1, days: 1, kept: 0 }, "{of}");
    }
}

#[tokio::test]
async fn a_table_without_a_state_says_what_makes_it() {
    let bench = Bench { store: MemoryDb::default(), ..Bench::new().await };
    let error = bench.rebuild(&[]).await.unwrap_err().to_string();
    assert!(error.contains("the rollup function"), "{error}");
}

#[tokio::test]
async fn a_mark_ahead_of_the_clock_is_found() {
    let bench = Bench::new().await;
    bench.write("a", "2026-02-20T10:00:00Z", "1").await;
    bench.rebuild(&[]).await.unwrap();
    assert!(bench.verify(&[]).await);
    let mark = async |text| {
        bench.store.advance_sealed(&[3].into(), at(text), None, &invocation()).await.unwrap();
    };
    // Clocks that differ by a minute leave a mark of the quarter that is not over by this one.
    bench.clock.set(at("2026-03-01T00:10:30Z"));
    mark("2026-03-01T00:00:00Z").await;
    assert!(bench.verify(&[]).await);
    mark("2026-03-01T00:15:00Z").await;
    assert_eq!(bench.exit_code(&[]).await, ExitCode::FAILURE);
    // The function has set it back.
    bench
        .store
        .set_back_sealed(&[3].into(), at("2026-02-28T00:00:00Z"), &invocation())
        .await
        .unwrap();
    assert!(bench.verify(&[]).await);
}

#[tokio::test]
async fn of_an_open_day_the_part_that_is_folded_is_verified_and_rebuilt() {
    let bench = Bench::new().await;
    let seal = async |text| {
        let all = (0..SWEEP_GROUPS).collect();
        bench.store.advance_sealed(&all, at(text), None, &invocation()).await.unwrap();
    };
    let times = ["00:30", "07:59", "08:00", "12:10", "15:59", "16:00", "19:40"];
    for (time, value) in times.iter().zip(1..) {
        bench.write("a", &format!("2026-03-01T{time}:00Z"), &value.to_string()).await;
    }
    let part = async || {
        let day = bench.day("a", "2026-03-01").await?;
        Some((day.range.to().to_string(), count(&day)))
    };
    // Less than 8 hours are over: there is no day yet, and none is missing.
    bench.clock.set(at("2026-03-01T07:00:00Z"));
    seal("2026-03-01T06:45:00Z").await;
    assert_eq!(bench.rebuild(&[]).await.unwrap(), Rebuilt { quarters: 1, days: 0, kept: 0 });
    assert_eq!(part().await, None);
    assert!(bench.verify(&[]).await);
    // 16 hours are over. A reading of the quarter that is open is in no rollup, and none is missing.
    bench.clock.set(at("2026-03-01T19:50:00Z"));
    seal("2026-03-01T19:30:00Z").await;
    assert!(!bench.verify(&[]).await, "five quarters are missing");
    assert_eq!(bench.rebuild(&[]).await.unwrap(), Rebuilt { quarters: 6, days: 1, kept: 0 });
    assert_eq!(part().await, Some(("2026-03-01T16:00:00.000Z".to_owned(), 5)));
    assert!(bench.quarter("a", "2026-03-01T19:30:00Z").await.is_none());
    assert!(bench.verify(&[]).await);
    // What is wrong in the part or behind it is found, and mended by a rebuild of the day alone.
    let since = ["--from", "2026-03-01T00:00:00Z"];
    for (time, value) in [("12:11", "9"), ("17:00", "10")] {
        bench.write("a", &format!("2026-03-01T{time}:00Z"), value).await;
        assert!(!bench.verify(&[]).await, "a reading of {time} is in no rollup");
        bench.rebuild(&since).await.unwrap();
        assert!(bench.verify(&[]).await);
    }
    assert_eq!(part().await, Some(("2026-03-01T16:00:00.000Z".to_owned(), 6)));
    let day = bench.day("a", "2026-03-01").await.unwrap();
    bench.replace(day, |day| day.rollup.metrics.clear()).await;
    assert!(!bench.verify(&[]).await);
    bench.rebuild(&[]).await.unwrap();
    assert!(bench.verify(&[]).await);
    // A sweep that is late leaves the part of 8 hours, whose quarters are right.
    let day = bench.day("a", "2026-03-01").await.unwrap();
    let early = ["00:30", "07:59"]
        .iter()
        .zip(1..)
        .map(|(time, value)| reading("a", &format!("2026-03-01T{time}:00Z"), &value.to_string()));
    let early: Vec<_> = early.collect();
    bench
        .replace(day, |day| {
            day.range = range(day.range.from(), at("2026-03-01T08:00:00Z"));
            day.rollup = Rollup::fold(&early, &FoldRules::default());
        })
        .await;
    assert!(bench.verify(&[]).await, "a part that is shorter is right too");
    bench.rebuild(&[]).await.unwrap();
    assert_eq!(part().await, Some(("2026-03-01T16:00:00.000Z".to_owned(), 6)));
    // The day is over: its part is not the day.
    bench.clock.set(at("2026-03-02T00:20:00Z"));
    seal("2026-03-02T00:00:00Z").await;
    assert!(!bench.verify(&[]).await);
    bench.rebuild(&[]).await.unwrap();
    assert_eq!(part().await, Some(("2026-03-02T00:00:00.000Z".to_owned(), 9)));
    assert!(bench.verify(&[]).await);
}

fn failures(number: usize) -> Vec<StoreError> {
    let failure = |n: usize| match n % 4 {
        0 => StoreError::TimedOut,
        1 => StoreError::Throttled("too much".into()),
        2 => StoreError::Unavailable("no answer".into()),
        _ => StoreError::Contended("an item".to_owned()),
    };
    (0..number).map(failure).collect()
}

#[tokio::test(start_paused = true)]
async fn rebuild_and_verify_go_on_after_failures_of_the_table() {
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..10 {
        let (bench, calm) = (Bench::new().await, Bench::new().await);
        for bench in [&bench, &calm] {
            for day in 1..=20 {
                bench.write("a", &format!("2026-02-{day:02}T10:00:00Z"), "1").await;
                bench.write("b", &format!("2026-02-{day:02}T23:00:00Z"), "2").await;
            }
        }
        let fail = |random: &mut fastrand::Rng| {
            let mut calls = 0;
            for _ in 0..10 {
                calls += random.usize(0..50);
                let more = failures(random.usize(0..4));
                bench.store.fail_after(calls, [StoreError::TimedOut].into_iter().chain(more));
            }
        };
        fail(&mut random);
        assert_eq!(bench.rebuild(&[]).await.unwrap(), calm.rebuild(&[]).await.unwrap());
        bench.store.end_troubles();
        // One that was stored before a failure is stored again.
        let contents = |bench: &Bench| -> Vec<StoredRollup> {
            let rollups = bench.store.rollups().into_iter();
            rollups.map(|it| StoredRollup { version: 0, ..it }).collect()
        };
        assert_eq!(contents(&bench), contents(&calm));
        fail(&mut random);
        assert!(bench.verify(&[]).await);
        bench.store.end_troubles();
        let rollup = bench.day("a", "2026-02-04").await.unwrap();
        bench.replace(rollup, |it| it.rollup.metrics.clear()).await;
        fail(&mut random);
        assert!(!bench.verify(&[]).await);
    }
}

#[tokio::test(start_paused = true)]
async fn rebuild_and_verify_give_up_when_the_table_never_answers_and_continue_later() {
    for calls in [0, 1, 20, 60] {
        let bench = Bench::new().await;
        for day in 1..=20 {
            bench.write("a", &format!("2026-02-{day:02}T10:00:00Z"), "1").await;
        }
        let silent = || {
            bench.store.fail_after(calls, failures(400));
        };
        let said = |error: anyhow::Error| {
            bench.store.end_troubles();
            let said = format!("{error:#}");
            let expected =
                "gave up after 8 attempts; the same command continues where it stopped: ";
            assert!(said.starts_with(expected), "{said}");
            bench.progress().exists()
        };
        silent();
        let has_begun = said(bench.rebuild(&[]).await.unwrap_err());
        assert_eq!(has_begun, calls > 50);
        let rebuilt = bench.rebuild(&[]).await.unwrap();
        assert_eq!(rebuilt, Rebuilt { quarters: 20, days: 20, kept: 0 });
        silent();
        said(bench.try_verify(&[]).await.unwrap_err());
        assert!(bench.verify(&[]).await);
    }
}
