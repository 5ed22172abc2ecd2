//! Batches of the stream, and messages of the queue.

use table::keys::LATE;
use table::memory_db::on;
use table::{Action, Backlog, KeepRollupState as _, RegisterDevices as _, StoreError, Target};

use super::*;

#[tokio::test]
async fn an_open_quarter_is_left_to_the_sweep_and_one_that_is_over_is_folded_once() {
    let bench = Bench::new().await;
    let open = bench.write("d", 0, "1").await;
    let over = [bench.write("d", -30, "2").await, bench.write("d", -29, "3").await];
    let [first, second] = over;
    assert_eq!(bench.deliver(&[open, first, second]).await, None);
    assert_eq!(bench.quarter("d", 0), None);
    let rollup = bench.quarter("d", -30).expect("folded");
    assert_eq!(rollup.rollup, folded(&[reading("d", -30, "2"), reading("d", -29, "3")]));
    assert_eq!(rollup.version, 1, "folded once");
    assert_eq!(
        (bench.logged("rollup.quarters"), bench.logged("rollup.left_to_sweep")),
        (1.into(), 1.into())
    );
}

#[tokio::test]
async fn a_quarter_is_over_ten_minutes_after_its_end() {
    let bench = Bench::new().await;
    let record = bench.write("d", 0, "1").await;
    bench.clock.set(at_minute(25).saturating_add(-TimeDelta::milliseconds(1)));
    bench.deliver(std::slice::from_ref(&record)).await;
    assert_eq!(bench.quarter("d", 0), None);
    bench.clock.set(at_minute(25));
    bench.deliver(&[record]).await;
    assert!(bench.quarter("d", 0).is_some());
}

#[tokio::test]
async fn an_open_quarter_is_folded_at_once_where_a_sweep_has_passed_it() {
    let bench = Bench::new().await;
    let record = bench.write("d", 0, "1").await;
    let group = [sweep_group(&device("d"))].into();
    for (sealed, is_folded) in [(0, false), (15, true)] {
        let moved =
            bench.store.advance_sealed(&group, at_minute(sealed), None, &bench.invocation).await;
        moved.expect("memory");
        bench.deliver(std::slice::from_ref(&record)).await;
        assert_eq!(bench.quarter("d", 0).is_some(), is_folded, "sealed up to {sealed}");
    }
}

#[tokio::test]
async fn changes_that_come_late_are_noted_at_most_twice_a_minute() {
    let bench = Bench::new().await;
    let mut late = bench.write("d", -30, "1").await;
    let written = |record: &mut Value, at: Timestamp| {
        record["dynamodb"]["ApproximateCreationDateTime"] = (at.as_millis() / 1_000).into();
    };
    bench.deliver(std::slice::from_ref(&late)).await;
    assert_eq!(bench.backlog().await, None, "nobody says when it was written");
    let new = bench.clock.now();
    written(&mut late, new.saturating_add(-TimeDelta::seconds(67)));
    bench.deliver(std::slice::from_ref(&late)).await;
    assert_eq!(bench.backlog().await, None);
    for (age, now, noted) in [(68, 0, (-68, 0)), (200, 29, (-68, 0)), (200, 30, (-170, 30))] {
        let at = |seconds| new.saturating_add(TimeDelta::seconds(seconds));
        bench.clock.set(at(now));
        written(&mut late, at(now - age));
        // One that is left to the sweep does not count.
        let mut open = bench.write("d", 0, "1").await;
        written(&mut open, at(now - 600));
        bench.deliver(&[open, late.clone()]).await;
        let backlog = Backlog { since: at(noted.0), at: at(noted.1) };
        assert_eq!(bench.backlog().await, Some(backlog));
    }
}

/// A fold that takes longer than marks and notes hold: at no moment is a change folded that is not.
#[tokio::test(start_paused = true)]
async fn while_a_slow_fold_is_under_way_nothing_says_that_all_is_folded() {
    let bench = Bench::new().await;
    let written = bench.clock.now();
    let mut records = vec![bench.write("d", -90, "1").await, bench.write("d", -2_000, "2").await];
    for record in &mut records {
        record["dynamodb"]["ApproximateCreationDateTime"] = (written.as_millis() / 1_000).into();
    }
    let rollup_delay = rollups::RollupDelay::default();
    let named_for = rollup_delay.named_for().num_seconds();
    bench.store.slow_down(on(Action::Query, Target::Readings), Duration::from_mins(5));
    let deadline = Deadline::after(Duration::from_hours(1));
    let mut delivery = std::pin::pin!(bench.deliver_within(&records, deadline));
    let mut seconds = 0;
    while tokio::time::timeout(Duration::from_secs(1), delivery.as_mut()).await.is_err() {
        bench.clock.advance(Duration::from_secs(1));
        seconds += 1;
        let (now, late) = (bench.clock.now(), bench.store.late_changes(&bench.invocation).await);
        let folded = rollup_delay.folded_until(&late.expect("memory"), now);
        // Until then the mark of whoever wrote it tells.
        assert!(seconds < named_for || folded <= written, "{seconds} seconds after, {folded}");
    }
    assert!(seconds > 500, "{seconds}");
    assert!(bench.quarter("d", -90).is_some() && bench.quarter("d", -2_000).is_some());
}

/// Ingest stores the first readings of a device, and registers it then with what the sender says of its metrics. A
/// rollup that was folded before would lack that, and nobody would know.
#[tokio::test(start_paused = true)]
async fn a_device_that_is_not_registered_yet_is_waited_for() {
    let bench = Bench::new().await;
    let records = [bench.write("new", -30, "1").await, bench.write("new", -29, "3").await];
    let readings = [reading("new", -30, "1"), reading("new", -29, "3")];
    let hinted = gauge(&given::device_of(&readings));
    let register = async {
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        bench.store.register_device(&hinted, &bench.invocation).await.expect("memory");
    };
    let (left, ()) = tokio::join!(bench.deliver(&records), register);
    assert_eq!((left, bench.work.messages()), (None, vec![]));
    let rollup = bench.quarter("new", -30).expect("folded");
    assert_eq!(rollup.rollup, Folded::fold(&readings, &FoldRules::of(&hinted)));
    assert_ne!(rollup.rollup, folded(&readings), "the hints matter");
}

#[tokio::test(start_paused = true)]
async fn a_device_that_nobody_registers_is_left_to_the_queue_until_somebody_does() {
    let bench = Bench::new().await;
    let records = [bench.write("new", -30, "1").await, bench.write("new", 0, "1").await];
    assert_eq!(bench.deliver(&records).await, None);
    let left = bench.work.messages();
    assert_eq!(left.iter().map(|it| it.device.as_str()).collect::<Vec<_>>(), ["new", "new"]);
    assert!(!bench.message("new", -30).await, "it is delivered again");
    assert_eq!((bench.quarter("new", -30), bench.quarter("new", 0)), (None, None));
    bench.register("new").await;
    assert!(bench.message("new", -30).await && bench.message("new", 0).await);
    assert!(bench.quarter("new", -30).is_some() && bench.quarter("new", 0).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_device_without_readings_that_is_not_registered_is_gone() {
    let bench = Bench::new().await;
    let records = [record("INSERT", "gone", -30), record("REMOVE", "gone", 0)];
    let delivered = tokio::time::timeout(Duration::from_millis(50), bench.deliver(&records));
    assert_eq!(delivered.await, Ok(None), "nobody waits for it");
    assert_eq!((bench.work.messages(), bench.quarter("gone", -30)), (vec![], None));
}

#[tokio::test]
async fn a_registered_device_is_asked_for_once() {
    let bench = Bench::new().await;
    let record = bench.write("d", 0, "1").await;
    bench.deliver(std::slice::from_ref(&record)).await;
    let reads = bench.store.calls().reads;
    bench.deliver(&[record]).await;
    assert_eq!(bench.store.calls().reads, reads + 1, "the state");
}

#[tokio::test]
async fn a_deletion_is_folded_at_once_unless_it_is_by_expiry() {
    let bench = Bench::new().await;
    bench.write("d", 0, "1").await;
    bench.write("d", 1, "2").await;
    let deleted = bench.delete("d", 0).await;
    let mut expired = deleted.clone();
    expired["userIdentity"] = json!({"type": "Service", "principalId": "dynamodb.amazonaws.com"});
    bench.deliver(&[expired]).await;
    assert_eq!(bench.quarter("d", 0), None);
    bench.deliver(&[deleted]).await;
    assert_eq!(bench.quarter("d", 0).expect("folded").rollup, folded(&[reading("d", 1, "2")]));
}

#[tokio::test]
async fn a_day_is_folded_once_it_is_over_after_its_quarters() {
    let bench = Bench::new().await;
    // 23:30 and 23:45 of 2026-01-11 in Tokyo, and 00:00 of the day after.
    let minutes = [(-90, "1"), (-75, "2"), (-60, "3")];
    let mut records = Vec::new();
    for (minute, value) in minutes {
        records.push(bench.write("d", minute, value).await);
    }
    bench.deliver(&records).await;
    let day = bench.day("d", "2026-01-11").expect("it is over");
    assert_eq!(day.rollup, folded(&[reading("d", -90, "1"), reading("d", -75, "2")]));
    assert_eq!(day.version, 1, "folded once");
    assert_eq!(bench.day("d", "2026-01-12"), None, "it is not over");
    // A late reading and a deletion are followed by both levels.
    let late = bench.write("d", -89, "1.5").await;
    bench.deliver(&[late]).await;
    let deleted = bench.delete("d", -75).await;
    bench.deliver(&[deleted]).await;
    let day = bench.day("d", "2026-01-11").expect("it is over");
    assert_eq!(day.rollup, folded(&[reading("d", -90, "1"), reading("d", -89, "1.5")]));
    assert!(bench.quarter("d", -75).expect("kept").rollup.is_empty());
}

#[tokio::test]
async fn other_items_say_nothing_and_an_impossible_key_is_a_dead_letter() {
    let bench = Bench::new().await;
    let good = bench.write("d", -60, "1").await;
    let mut own = good.clone();
    own["dynamodb"]["Keys"] = json!({"pk": {"S": "DEVICE"}, "sk": {"S": "d"}});
    let mut poison = good.clone();
    poison["dynamodb"]["Keys"]["sk"] =
        json!({"S": table::keys::READING_PREFIX.to_owned() + "noon"});
    assert_eq!(bench.deliver(&[own, poison, good]).await, None);
    assert!(bench.quarter("d", -60).is_some());
    let letters = bench.dead_letters.messages();
    assert_eq!(letters.len(), 1);
    assert!(letters[0].reason.contains("noon"), "{letters:?}");
}

#[tokio::test]
async fn a_bucket_that_fails_for_itself_goes_to_the_queue_and_blocks_nothing() {
    let bench = Bench::new().await;
    bench.damage("d", -60).await;
    let records = [bench.write("d", -60, "1").await, bench.write("d", -30, "2").await];
    assert_eq!(bench.deliver(&records).await, None);
    let [left] = &bench.work.messages()[..] else { panic!("one message") };
    assert_eq!((left.device.as_str(), left.quarter.start()), ("d", at_minute(-60)));
    assert!(bench.quarter("d", -30).is_some());
    let buckets = bench.logged("rollup.queued_buckets");
    assert!(buckets[0].as_str().expect("text").contains("newer settings"), "{buckets}");
}

#[tokio::test]
async fn where_the_queue_takes_nothing_the_record_comes_again() {
    let bench = Bench::new().await;
    bench.damage("d", -60).await;
    bench.work.fail(true);
    let records = [bench.write("d", 0, "1").await, bench.write("d", -60, "1").await];
    assert_eq!(bench.deliver(&records).await, Some(1));
    bench.work.fail(false);
    assert_eq!(bench.deliver(&records).await, None);
    assert_eq!(bench.work.messages().len(), 1);
}

#[tokio::test]
async fn a_panic_is_one_bucket_s() {
    let bench = Bench::new().await;
    let known = bench.write("d", 0, "1").await;
    bench.deliver(&[known]).await;
    let records = [bench.write("d", -300, "1").await, bench.write("d", -30, "2").await];
    // The state, the device, then the rollup of the first quarter.
    bench.store.panic_after(2, "on purpose");
    assert_eq!(bench.deliver(&records).await, None);
    assert_eq!(bench.work.messages().len(), 1);
    assert_eq!(bench.quarter("d", -300), None);
    assert!(bench.quarter("d", -30).is_some());
}

#[tokio::test]
async fn a_panic_over_several_quarters_is_none_of_them_s() {
    let bench = Bench::new().await;
    let known = bench.write("d", 0, "1").await;
    bench.deliver(&[known]).await;
    let records = [bench.write("d", -60, "1").await, bench.write("d", -30, "2").await];
    bench.store.panic_after(2, "on purpose");
    assert_eq!(bench.deliver(&records).await, None);
    assert_eq!(bench.work.messages().len(), 0, "one by one they are folded");
    assert!(bench.quarter("d", -60).is_some() && bench.quarter("d", -30).is_some());
}

#[tokio::test]
async fn what_the_table_refuses_for_now_comes_again_from_its_record() {
    let bench = Bench::new().await;
    let records = [bench.write("d", 0, "1").await, bench.write("d", -60, "1").await];
    bench.deliver(&records[..1]).await;
    bench.store.fail_with([StoreError::Throttled("for now".into())]);
    // The state cannot be read: from the first record that is not left to the sweep, or earlier.
    assert_eq!(bench.deliver(&records).await, Some(0));
    assert_eq!(bench.logged("level"), "ERROR");
    assert_eq!(bench.deliver(&records).await, None);
    assert!(bench.quarter("d", -60).is_some());
}

#[tokio::test]
async fn without_time_the_first_record_that_is_not_done_comes_again() {
    let bench = Bench::new().await;
    let records = [bench.write("d", 0, "1").await, bench.write("d", -60, "1").await];
    let reported = bench.deliver_within(&records, Deadline::after(Duration::ZERO)).await;
    assert_eq!(reported, Some(1));
    assert_eq!(bench.logged("rollup.out_of_time"), true);
    assert_eq!(bench.logged("level"), "INFO");
}

#[tokio::test]
async fn a_message_folds_its_quarter_and_the_day_that_is_over() {
    let bench = Bench::new().await;
    bench.write("d", -75, "1").await;
    assert!(bench.message("d", -75).await);
    assert_eq!(bench.quarter("d", -75).expect("folded").rollup, folded(&[reading("d", -75, "1")]));
    assert!(bench.day("d", "2026-01-11").is_some());
    bench.write("d", -60, "1").await;
    assert!(bench.message("d", -60).await);
    assert_eq!(bench.day("d", "2026-01-12"), None, "it is not over");
}

#[tokio::test]
async fn a_message_that_fails_is_delivered_again_and_never_sent_again() {
    let bench = Bench::new().await;
    bench.damage("d", -75).await;
    assert!(!bench.message("d", -75).await);
    assert_eq!(bench.work.messages(), []);
}

#[tokio::test]
async fn a_new_schema_is_known_to_the_next_fold() {
    let bench = Bench::begun_on(MemoryDb::with_conditions_index()).await;
    let schema = |version| {
        let metric = |name: &str| {
            let name = metric(name);
            SchemaMetric { name, encoding: Encoding::Float, bits: 8 }
        };
        ConditionsSchema::new(version, ["t", "u"].map(metric).into()).expect("a schema")
    };
    let mut expected = Expected::Absent;
    for version in 1..3 {
        let new = schema(version);
        let put = bench.store.put_conditions_schema(&new, expected, &bench.invocation).await;
        assert!(put.expect("memory"));
        expected = Expected::Version(version.into());
        let record = bench.write("d", -60, &version.to_string()).await;
        assert_eq!(bench.deliver(&[record]).await, None);
        let by = |it: StoredRollup| it.indexed.map(|it| it.schema);
        assert_eq!(bench.quarter("d", -60).and_then(by), Some(version));
        assert_eq!(bench.day("d", "2026-01-11").and_then(by), None, "no day is in the index");
    }
    // The sweep knows it too.
    bench.write("d", 1, "3").await;
    bench.minutes(26, 45).await;
    let swept = bench.quarter("d", 1).expect("it is over");
    assert_eq!(swept.indexed.map(|it| it.schema), Some(2));
}

/// The device, whose sender says that its metrics are gauges.
fn gauge(device: &Device) -> Device {
    let as_gauge = |parts: &mut domain::DeviceParts| {
        parts.metrics.values_mut().for_each(|it| it.kind = domain::MetricKind::Gauge);
    };
    device.changed(as_gauge).expect("a device")
}

#[tokio::test(start_paused = true)]
async fn a_throttled_device_holds_up_no_other_of_its_batch() {
    let bench = Bench::new().await;
    bench.register("b").await;
    bench.minutes(60, 76).await;
    bench.store.throttle(|action, partition| action == Action::Query && partition == "d");
    let late = [bench.write("d", 20, "1").await, bench.write("b", 20, "2").await];

    assert_eq!(bench.deliver_within(&late, minutes()).await, None);
    assert!(bench.quarter("b", 20).is_some());
    let [left] = &bench.work.messages()[..] else { panic!("one") };
    assert_eq!((left.device.as_str(), left.quarter), ("d", QuarterHour::of(at_minute(20))));

    // By it alone nobody can tell a device from a table that is throttled.
    assert_eq!(bench.deliver_within(&late[..1], minutes()).await, Some(0));
}

/// As long as the function has on AWS.
fn minutes() -> Deadline {
    Deadline::after(Duration::from_secs(299))
}

/// Throttles the queries of the readings of these devices.
fn throttle(bench: &Bench, devices: impl Fn(&str) -> bool + Send + 'static) {
    let hits = move |action, partition: &str| action == Action::Query && devices(partition);
    bench.store.throttle(hits);
}

/// Late readings of ten devices `b0` to `b9`.
async fn late_readings_of_others(bench: &Bench) -> Vec<Value> {
    let mut records = Vec::new();
    for n in 0..10 {
        bench.register(&format!("b{n}")).await;
        records.push(bench.write(&format!("b{n}"), 20, "2").await);
    }
    records
}

fn are_others_folded(bench: &Bench) -> bool {
    (0..10).all(|n| bench.quarter(&format!("b{n}"), 20).is_some())
}

#[tokio::test(start_paused = true)]
async fn many_days_of_a_throttled_device_take_as_long_as_one() {
    let bench = Bench::new().await;
    bench.minutes(60, 76).await;
    throttle(&bench, |device| device == "d");
    let mut records = Vec::new();
    for day in 1..=60 {
        records.push(bench.write("d", 20 - day * 1_440, "1").await);
    }
    records.extend(late_readings_of_others(&bench).await);

    let begun = runtime::clock::Stopwatch::start();
    assert_eq!(bench.deliver_within(&records, minutes()).await, None);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(are_others_folded(&bench));
    assert_eq!(bench.work.messages().len(), 60);
    let failed = bench.logged("rollup.failed_devices");
    assert_eq!(failed, "d: the capacity of the table is used up: on demand");
    assert_eq!(bench.logged("level"), "WARN");
}

#[tokio::test(start_paused = true)]
async fn however_many_devices_are_throttled_the_others_of_a_batch_are_folded() {
    let bench = Bench::new().await;
    bench.minutes(60, 76).await;
    let mut records = Vec::new();
    for n in 0..60 {
        bench.register(&format!("hot{n}")).await;
        records.push(bench.write(&format!("hot{n}"), 20, "1").await);
    }
    throttle(&bench, |device| device.starts_with("hot"));
    records.extend(late_readings_of_others(&bench).await);

    assert_eq!(bench.deliver_within(&records, minutes()).await, None);
    assert!(are_others_folded(&bench));
    assert_eq!(bench.work.messages().len(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_new_device_that_is_throttled_is_left_to_the_queue() {
    let bench = Bench::new().await;
    bench.minutes(60, 76).await;
    throttle(&bench, |device| device == "new");
    let mut records = vec![bench.write("new", 20, "1").await];
    records.extend(late_readings_of_others(&bench).await);

    assert_eq!(bench.deliver_within(&records, minutes()).await, None);
    assert!(are_others_folded(&bench));
    let [left] = &bench.work.messages()[..] else { panic!("one message") };
    assert_eq!(left.device.as_str(), "new");
    let buckets = bench.logged("rollup.queued_buckets");
    assert!(buckets[0].as_str().expect("text").contains("capacity"), "{buckets}");
}

#[tokio::test(start_paused = true)]
async fn a_room_that_is_throttled_holds_up_its_devices_only() {
    let bench = Bench::new().await;
    bench.minutes(60, 76).await;
    let in_hall = |action, partition: &str| action == Action::GetItem && partition.contains("hall");
    bench.store.throttle(in_hall);
    let mut open = bench.write("d", 74, "2").await;
    open["dynamodb"]["NewImage"]["room"] = json!({"S": "hall"});
    let mut records = vec![open];
    records.extend(late_readings_of_others(&bench).await);

    assert_eq!(bench.deliver_within(&records, minutes()).await, None);
    assert!(are_others_folded(&bench));
    let [left] = &bench.work.messages()[..] else { panic!("one message") };
    assert_eq!((left.device.as_str(), left.quarter), ("d", QuarterHour::of(at_minute(74))));
    assert_eq!(bench.deliver_within(&records[..1], minutes()).await, Some(0), "by it alone");
}

#[tokio::test(start_paused = true)]
async fn a_throttled_device_among_punctual_ones_is_left_to_the_queue() {
    let bench = Bench::new().await;
    bench.minutes(60, 76).await;
    throttle(&bench, |device| device == "d");
    bench.register("b").await;
    // Both are known to be registered.
    for id in ["d", "b"] {
        let open = bench.write(id, 75, "2").await;
        bench.deliver(&[open]).await;
    }
    let records = [bench.write("d", 20, "1").await, bench.write("b", 76, "2").await];
    assert_eq!(bench.deliver_within(&records, minutes()).await, None);
    assert_eq!((bench.work.messages().len(), bench.logged("rollup.left_to_sweep")), (1, 1.into()));
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_left_to_the_queue_also_where_the_time_ends() {
    let bench = Bench::new().await;
    bench.minutes(60, 76).await;
    throttle(&bench, |device| device == "d");
    let mut records = vec![bench.write("d", 20, "1").await];
    records.extend(late_readings_of_others(&bench).await);
    bench.store.slow_down(on(Action::Query, Target::Readings), Duration::from_secs(60));

    let reported = bench.deliver_within(&records, minutes()).await;
    assert!(reported.is_some_and(|record| record > 1), "{reported:?}");
    assert_eq!(bench.work.messages().len(), 1);
    let logged = (bench.logged("rollup.out_of_time"), bench.logged("level"));
    assert_eq!(logged, (true.into(), "WARN".into()));
}

/// Answers lack what is not folded, with the note and without it.
#[tokio::test(start_paused = true)]
async fn a_note_of_a_backlog_that_is_throttled_keeps_nothing_from_being_folded() {
    let bench = Bench::new().await;
    bench.minutes(60, 76).await;
    let written = bench.clock.now().saturating_add(-TimeDelta::seconds(200));
    let mut records = late_readings_of_others(&bench).await;
    for record in &mut records {
        record["dynamodb"]["ApproximateCreationDateTime"] = (written.as_millis() / 1_000).into();
    }
    bench.store.throttle(|_, partition| partition == LATE);

    let begun = runtime::clock::Stopwatch::start();
    assert_eq!(bench.deliver_within(&records, minutes()).await, None);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(are_others_folded(&bench));
    assert_eq!(bench.logged("level"), "WARN");
    let told = bench.logged("rollup.backlog_error");
    assert!(told.as_str().is_some_and(|told| told.contains("capacity")), "{told}");

    bench.store.end_troubles();
    bench.clock.advance(Duration::from_mins(1));
    assert_eq!(bench.deliver_within(&records, minutes()).await, None);
    assert!(bench.backlog().await.is_some());
}

/// Nobody has counted it.
#[tokio::test]
async fn what_the_stream_left_to_a_queue_that_tells_no_depth_is_not_taken_for_folded() {
    let bench = Bench::new().await;
    bench.damage("d", -90).await;
    let record = bench.write("d", -90, "1").await;
    bench.work.fail_depth(true);
    assert_eq!(bench.deliver(&[record]).await, None);
    assert_eq!(bench.work.messages().len(), 1);
    bench.minutes(30, 30).await;
    assert_eq!(bench.state().await.queue.map(|depth| depth.messages), Some(1));
}
