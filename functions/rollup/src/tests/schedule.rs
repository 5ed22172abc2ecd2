//! Invocations by the schedule: the state, the sweep, and the folds after changes of settings.

use std::sync::atomic::{AtomicUsize, Ordering};

use runtime::clock::Stopwatch;
use runtime::work_queue::{FoldRequest, WorkQueue as _};
use table::db::{Db as _, delete};
use table::given::damage_rollup_state;
use table::keys::{ALERT_RECHECKS, ALERT_RULES, DEVICES, Key, LATE, STATE};
use table::memory_db::on;
use table::{
    Action, Backlog, EditAlertRules as _, ItemKey, KeepRollupState as _, QueueDepth,
    ReadRechecks as _, ReadRefold as _, RemoveBelongings as _, StoreError, Target,
};

use super::*;

/// Units a second that are enough in a turn for five quarters of an hour of ten devices, as the provisioned ones of a home
/// with more devices.
const SMALL: u32 = 5;

/// A minute of the quarter from 17:00 on in which the group of `d` is swept.
fn turn() -> i64 {
    let group = i64::try_from(sweep_group(&device("d"))).expect("small");
    let minute = (group - at_minute(0).as_millis() / 60_000).rem_euclid(15);
    60 + minute
}

#[tokio::test]
async fn the_state_of_a_new_table_is_complete_from_the_beginning_of_time() {
    let bench = Bench::on(MemoryDb::default(), "Asia/Tokyo");
    bench.schedule().await;
    let state = bench.state().await;
    assert_eq!((state.zone.as_str(), state.since), ("Asia/Tokyo", Timestamp::MIN));
    // 15:45 ends 15 minutes ago; 16:00 is not sealable before 16:11.
    assert_eq!(state.sealed, [at_minute(-15); SWEEP_GROUPS]);
}

#[tokio::test]
async fn a_mark_tells_what_waits_in_the_queue_and_no_queue_holds_it_up() {
    let bench = Bench::new().await;
    bench.minutes(60, 60).await;
    let queue = |messages, minute| Some(QueueDepth { messages, at: at_minute(minute) });
    assert_eq!(bench.state().await.queue, queue(0, 60));
    bench.work.fail(true);
    bench.minutes(75, 75).await;
    let state = bench.state().await;
    assert_eq!((state.sealed, state.queue), ([at_minute(60); SWEEP_GROUPS], queue(1, 75)));
}

#[tokio::test]
async fn the_state_of_a_table_with_devices_is_complete_from_now_on() {
    let bench = Bench::on(MemoryDb::default(), "Asia/Tokyo");
    bench.register("d").await;
    let record = bench.write("d", 0, "1").await;
    bench.deliver(&[record]).await;
    assert_eq!(bench.state().await.since, at_minute(0));
}

#[tokio::test]
async fn the_stored_time_zone_stays_and_another_setting_is_told() {
    let bench = Bench::new().await;
    let other = Bench::on(bench.store.clone(), "Europe/Berlin");
    other.schedule().await;
    assert_eq!(other.state().await.zone, "Asia/Tokyo");
    let told = other.logged("rollup.time_zone");
    let told = told.as_str().expect("text");
    assert!(told.contains("Europe/Berlin") && told.contains("Asia/Tokyo"), "{told}");
    assert_eq!(other.logged("level"), "WARN");
    let record = other.write("d", -75, "1").await;
    other.deliver(&[record]).await;
    let day = other.day("d", "2026-01-11").expect("it is over in Tokyo only");
    assert_eq!(day.zone.as_deref(), Some("Asia/Tokyo"));
}

#[tokio::test]
async fn a_home_is_swept_at_once_and_its_marks_are_written_once() {
    let bench = Bench::new().await;
    for minute in [0, 1, 31, 46, 61] {
        bench.write("d", minute, "1").await;
    }
    let writes = bench.store.calls().registry_writes;
    bench.minutes(60, 60).await;
    // Nothing of 16:15, which has no reading; 16:45 is not over yet.
    let stored = |minute| bench.quarter("d", minute).map(|it| it.version);
    assert_eq!([stored(0), stored(15), stored(30), stored(45)], [Some(1), None, Some(1), None]);
    assert_eq!(bench.state().await.sealed, [at_minute(45); SWEEP_GROUPS]);
    // An hour is behind: windows of one quarter, of two and of the last one.
    assert_eq!(bench.store.calls().registry_writes - writes, 5, "two rollups and the marks");
    bench.minutes(61, 70).await;
    assert_eq!(bench.store.calls().registry_writes - writes, 5);
    bench.minutes(71, 71).await;
    assert_eq!(stored(45), Some(1));
    assert_eq!(bench.store.calls().registry_writes - writes, 7, "a rollup and the marks");
    assert_eq!(bench.logged("rollup.lag_seconds"), 900, "before this sweep");
}

#[tokio::test]
async fn each_group_of_a_fleet_is_swept_in_its_minute_and_each_quarter_once() {
    let bench = Bench::new().await;
    for n in 0..100 {
        bench.register(&format!("other-{n}")).await;
    }
    for minute in [0, 1, 31, 46, 61] {
        bench.write("d", minute, "1").await;
    }
    let reads = bench.store.calls().reads;
    bench.minutes(60, 74).await;
    assert!(bench.store.calls().reads > reads);
    // All that is over before 17:00 or 16:45, as the minute is; nothing of 16:15, which has no reading.
    let stored = |minute| bench.quarter("d", minute).map(|it| it.version);
    assert_eq!([stored(0), stored(15), stored(30)], [Some(1), None, Some(1)]);
    assert_eq!(stored(60), None);
    bench.minutes(75, 104).await;
    assert_eq!([stored(0), stored(30), stored(45), stored(60)], [Some(1); 4]);
    let state = bench.state().await;
    assert!(state.sealed() >= at_minute(75), "{}", state.sealed());
    assert_eq!(bench.logged("rollup.lag_seconds"), 900);
}

#[tokio::test]
async fn marks_of_a_clock_that_was_ahead_are_set_back_and_what_they_hid_is_folded() {
    let bench = Bench::new().await;
    bench.minutes(20, 20).await;
    bench.minutes(20 + 9 * 60, 20 + 9 * 60).await;
    assert_eq!(bench.state().await.sealed, [at_minute(9 * 60); SWEEP_GROUPS]);
    // The clock is right again; an older program left this to a sweep that had passed.
    bench.write("d", 21, "1").await;
    bench.minutes(22, 22).await;
    assert_eq!(bench.logged("level"), "WARN");
    let told = bench.logged("rollup.clock");
    assert!(told.as_str().is_some_and(|it| it.contains(&at_minute(9 * 60).to_string())), "{told}");
    assert_eq!(bench.state().await.sealed, [at_minute(0); SWEEP_GROUPS]);
    bench.minutes(45, 45).await;
    assert_eq!(bench.quarter("d", 15).map(|it| it.version), Some(1));
    assert_eq!(bench.logged("level"), "INFO");
    // Two clocks that differ by what they may differ set nothing back.
    bench.minutes(76, 76).await;
    bench.clock.set(at_minute(75).saturating_add(-TimeDelta::seconds(1)));
    bench.schedule().await;
    assert_eq!(bench.state().await.sealed, [at_minute(60); SWEEP_GROUPS]);
}

#[tokio::test]
async fn a_day_is_swept_when_it_ends() {
    let bench = Bench::new().await;
    bench.write("d", 0, "1").await;
    bench.write("d", 15, "2").await;
    // Tokyo's midnight is 23 hours after the start. The schedule was off for the day.
    bench.minutes(23 * 60, 23 * 60 + 10).await;
    let end = bench.day("d", "2026-01-12").map(|day| day.range.to());
    assert_eq!(end, Some(at_minute(15 * 60)), "the part that is over");
    bench.minutes(23 * 60 + 11, 23 * 60 + 26).await;
    let day = bench.day("d", "2026-01-12").expect("it is over");
    assert_eq!(day.range.to(), at_minute(23 * 60));
    assert_eq!(day.rollup, folded(&[reading("d", 0, "1"), reading("d", 15, "2")]));
    assert_eq!(bench.day("d", "2026-01-11"), None, "it has no quarter");
}

#[tokio::test]
async fn an_open_day_is_swept_after_8_and_16_hours_and_what_comes_late_is_in_it() {
    let bench = Bench::new().await;
    // Tokyo's midnight is an hour before the start: 8 hours are over at 23:00, 16 at 07:00 in UTC.
    let (third, two_thirds) = (7 * 60, 15 * 60);
    bench.write("d", 0, "1").await;
    bench.write("d", third, "2").await;
    let day = || bench.day("d", "2026-01-12").map(|day| (day.range.to(), day.rollup));
    bench.minutes(0, third + 10).await;
    assert_eq!(day(), None);
    bench.minutes(third + 11, third + 11).await;
    assert_eq!(day(), Some((at_minute(third), folded(&[reading("d", 0, "1")]))));
    let version = || bench.day("d", "2026-01-12").map(|day| day.version);
    // What is behind the part does not change it.
    let record = bench.write("d", third + 1, "2").await;
    bench.minutes(third + 12, third + 30).await;
    bench.deliver(&[record]).await;
    assert_eq!(version(), Some(1));
    let record = bench.write("d", third - 1, "2").await;
    bench.deliver(&[record]).await;
    let early = [reading("d", 0, "1"), reading("d", third - 1, "2")];
    assert_eq!(day(), Some((at_minute(third), folded(&early))));
    assert!(bench.message("d", 0).await);
    assert_eq!(version(), Some(3), "a message folds it too");
    bench.minutes(third + 31, two_thirds + 11).await;
    let record = bench.delete("d", third - 1).await;
    bench.deliver(&[record]).await;
    let left = [reading("d", 0, "1"), reading("d", third, "2"), reading("d", third + 1, "2")];
    assert_eq!(day(), Some((at_minute(two_thirds), folded(&left))));
    bench.minutes(two_thirds + 12, 23 * 60 + 11).await;
    assert_eq!(day(), Some((at_minute(23 * 60), folded(&left))));
    assert_eq!(version(), Some(6), "once each: twice at 8 hours, at 16, late, and at the end");
}

#[tokio::test]
async fn a_sweep_that_is_far_behind_folds_each_day_once() {
    let bench = Bench::new().await;
    for hour in [0, 10, 30, 50] {
        bench.write("d", hour * 60, "1").await;
    }
    // Its windows end at other times of the day than the day does.
    bench.minutes(3 * 24 * 60, 3 * 24 * 60).await;
    let version = |date| bench.day("d", date).map(|day| day.version);
    assert_eq!([version("2026-01-12"), version("2026-01-13")], [Some(1), Some(1)]);
    assert_eq!(version("2026-01-14"), Some(1));
}

#[tokio::test]
async fn new_settings_fold_the_part_of_an_open_day_again() {
    let bench = Bench::new().await;
    bench.write("d", 0, "1").await;
    bench.minutes(0, 8 * 60).await;
    assert_eq!(bench.day("d", "2026-01-12").map(|day| day.settings), Some(0));
    bench.set_max_w("d", "10").await;
    bench.minutes(8 * 60 + 1, 8 * 60 + 40).await;
    assert_eq!(bench.day("d", "2026-01-12").map(|day| day.settings), Some(1));
}

#[tokio::test]
async fn all_groups_catch_up_at_once_after_an_outage() {
    let bench = Bench::new().await;
    bench.write("d", 0, "1").await;
    bench.write("d", 3 * 24 * 60, "1").await;
    bench.clock.set(at_minute(10 * 24 * 60));
    bench.schedule().await;
    assert_eq!(bench.logged("rollup.groups").as_array().expect("a list").len(), SWEEP_GROUPS);
    assert_eq!(bench.state().await.sealed, [at_minute(10 * 24 * 60 - 15); SWEEP_GROUPS]);
    assert!(bench.quarter("d", 3 * 24 * 60).is_some());
    assert!(bench.day("d", "2026-01-15").is_some());
}

/// Each invocation ends after some calls, as one does whose time is over, and the next one is by a new process.
#[tokio::test]
async fn a_sweep_that_never_has_time_for_a_day_of_all_devices_moves_on() {
    const DEVICES: usize = 10;
    // Enough for a window of an hour, also for one whose rollups an invocation before has put in part; a day needs more.
    const CALLS: usize = 400;
    let first = Bench::new().await;
    let day = 24 * 60;
    for device in 0..DEVICES {
        first.register(&format!("many-{device}")).await;
        for minute in (0..day).step_by(15) {
            first.write(&format!("many-{device}"), minute, "1").await;
        }
    }

    let reached = async |bench: &Bench| bench.state().await.sealed();
    for invocation in 0..100 {
        let bench = Bench::with(first.store.clone(), "Asia/Tokyo", SMALL);
        bench.clock.set(at_minute(2 * day));
        bench.store.fail_after(CALLS, (0..CALLS).map(|_| StoreError::TimedOut));
        let done = bench.rollup.handle_schedule(minute()).await;
        bench.store.end_troubles();
        if done.is_ok() && reached(&bench).await >= at_minute(2 * day - 15) {
            assert!(invocation > 2, "the time sufficed");
            let last = format!("many-{}", DEVICES - 1);
            assert!((0..day).step_by(15).all(|minute| bench.quarter(&last, minute).is_some()));
            return;
        }
    }
    panic!("sealed up to {}", reached(&first).await);
}

/// Devices that send often have more in a quarter, or in the day that a sweep is behind, than an invocation reads. Each
/// invocation is by a new process.
#[tokio::test(start_paused = true)]
async fn a_sweep_that_never_has_time_to_read_a_window_of_all_devices_moves_on() {
    for (devices, minutes, time_of_reading) in [(10, 60, 3), (1, 24 * 60, 1)] {
        let first = Bench::new().await;
        for device in 0..devices {
            first.register(&format!("many-{device}")).await;
            for minute in 0..minutes {
                first.write(&format!("many-{device}"), minute, "1").await;
            }
        }
        first
            .store
            .slow_down(on(Action::Query, Target::Readings), Duration::from_secs(time_of_reading));

        let mut invocations = 0;
        while first.state().await.sealed() < at_minute(minutes) {
            let bench = Bench::with(first.store.clone(), "Asia/Tokyo", 500);
            bench.clock.set(at_minute(minutes + 15));
            let deadline = Deadline::after(Duration::from_mins(5));
            bench.rollup.handle_schedule(deadline).await.expect("what is done is noted");
            invocations += 1;
            assert!(invocations < 50, "sealed up to {:?}", first.state().await.sealed);
        }
        assert!(invocations > 5, "the time sufficed");
        for device in 0..devices {
            let device = format!("many-{device}");
            assert!((0..minutes).step_by(15).all(|it| first.quarter(&device, it).is_some()));
        }
    }
}

/// The group of `d` cannot be swept, for as long as the queue does not take what is damaged.
#[tokio::test]
async fn a_group_that_fails_holds_up_no_other_and_no_new_settings() {
    for others in [1, 120] {
        let bench = Bench::new().await;
        let ids = (0..).map(|n| format!("other-{n}"));
        let ids = ids.filter(|other| sweep_group(&device(other)) != sweep_group(&device("d")));
        let ids: Vec<String> = ids.take(others).collect();
        for other in &ids {
            bench.register(other).await;
            bench.write(other, 0, "1").await;
        }
        bench.minutes(41, 41).await;
        bench.damage("d", 31).await;
        bench.write("d", 31, "1").await;
        bench.work.fail(true);
        let before = bench.state().await.sealed[sweep_group(&device("d"))];
        bench.set_max_w(&ids[0], "7").await;

        for minute in 120..135 {
            bench.clock.set(at_minute(minute));
            let done = bench.rollup.handle_schedule(given::minute()).await;
            assert!(matches!(done, Err(NotDone::Queue(_))), "{done:?}");
            assert_eq!(bench.logged("level"), "ERROR");
        }
        let sealed = bench.state().await.sealed;
        for (group, sealed) in sealed.into_iter().enumerate() {
            let is_failing = group == sweep_group(&device("d"));
            let expected =
                if is_failing { before..at_minute(31) } else { at_minute(105)..at_minute(135) };
            assert!(
                expected.contains(&sealed),
                "{others} others: {group} is sealed up to {sealed}"
            );
        }
        let refolded = bench.quarter(&ids[0], 0).map(|quarter| quarter.settings);
        assert_eq!(refolded, Some(1), "{others} others");
    }
}

/// Who comes after an invocation that ended anywhere leaves the rechecks that it did not leave.
#[tokio::test]
async fn a_breach_in_a_sealed_quarter_is_looked_at_though_an_invocation_ends_before() {
    for calls in 0.. {
        let bench = Bench::new().await;
        let rule = given::alert_rule("r", at_minute(0));
        assert!(bench.store.put_alert_rule(&rule, &bench.invocation).await.expect("memory"));
        let hot = given::reading("d", at_minute(0), None, &[("temperature", "9")]);
        bench.store.put_readings(&[hot], None, &bench.invocation).await;

        bench.clock.set(at_minute(30));
        bench.store.fail_after(calls, [StoreError::Unavailable("lost".into())]);
        let is_done = bench.rollup.handle_schedule(minute()).await.is_ok();
        bench.store.end_troubles();
        bench.schedule().await;
        let rechecks = bench.store.rechecks(None, 9, &bench.invocation).await.expect("memory");
        let rechecks: Vec<_> =
            rechecks.listing.found.iter().map(|recheck| recheck.target.to_string()).collect();
        assert_eq!(rechecks, ["d"], "after {calls} calls");
        // A mark that is lost is covered by that of the next window.
        if is_done && calls > 6 {
            break;
        }
    }
}

/// Of a fleet that is far behind, groups are done one after the other: all of them at once would fit into no invocation.
#[tokio::test]
async fn a_fleet_that_is_far_behind_is_swept_group_by_group() {
    let first = Bench::new().await;
    for n in 0..120 {
        first.register(&format!("other-{n}")).await;
        first.write(&format!("other-{n}"), 0, "1").await;
    }
    first.clock.set(at_minute(60));
    // After the writes of some groups the time is over.
    first.store.fail_after(120, [StoreError::TimedOut]);
    first.rollup.handle_schedule(minute()).await.expect_err("its time is over");
    first.store.end_troubles();
    let sealed = first.state().await.sealed;
    let done = sealed.iter().filter(|sealed| **sealed == at_minute(45)).count();
    assert!(done > 0 && done < SWEEP_GROUPS, "{sealed:?}");
}

#[tokio::test]
async fn nothing_is_sealed_where_the_table_failed() {
    let bench = Bench::new().await;
    bench.write("d", 0, "1").await;
    bench.clock.set(at_minute(turn()));
    // Whichever call fails, what is not folded is not sealed.
    for call in 0..20 {
        bench.store.fail_after(call, [StoreError::Throttled("for now".into())]);
        let done = bench.rollup.handle_schedule(minute()).await;
        bench.store.end_troubles();
        if done.is_ok() {
            break;
        }
        let group = sweep_group(&device("d"));
        if bench.quarter("d", 0).is_none() {
            assert!(bench.state().await.sealed[group] <= at_minute(0), "call {call}");
        }
        assert_eq!(bench.logged("level"), "ERROR");
    }
    assert!(bench.quarter("d", 0).is_some());
}

#[tokio::test]
async fn a_bucket_that_fails_for_itself_holds_the_mark_of_no_other_up() {
    let bench = Bench::new().await;
    bench.damage("d", 0).await;
    bench.write("d", 0, "1").await;
    bench.write("d", 16, "1").await;
    bench.clock.set(at_minute(turn()));
    bench.schedule().await;
    let [left] = &bench.work.messages()[..] else { panic!("one message") };
    assert_eq!((left.device.as_str(), left.quarter.start()), ("d", at_minute(0)));
    assert!(bench.quarter("d", 16).is_some());
    assert!(bench.state().await.sealed[sweep_group(&device("d"))] > at_minute(15));
    // Where the queue takes nothing either, it does.
    bench.damage("d", 61).await;
    bench.write("d", 61, "1").await;
    bench.work.fail(true);
    bench.clock.set(at_minute(turn() + 45));
    let error = bench.rollup.handle_schedule(minute()).await.expect_err("the queue is full");
    assert!(matches!(error, NotDone::Queue(_)), "{error}");
    assert_eq!(bench.state().await.sealed[sweep_group(&device("d"))], at_minute(60));
}

#[tokio::test]
async fn new_settings_fold_again_what_they_concern() {
    let bench = Bench::new().await;
    for (minute, value) in [(0, "1"), (1, "2.5"), (16, "2")] {
        bench.write("d", minute, value).await;
    }
    bench.minutes(60, 75).await;
    bench.set_max_w("d", "7").await;
    let rules = FoldRules::of(&bench.device("d").await);
    bench.minutes(76, 105).await;
    let quarter = bench.quarter("d", 0).expect("folded");
    let readings = [reading("d", 0, "1"), reading("d", 1, "2.5")];
    assert_eq!((quarter.settings, quarter.version), (1, 2));
    assert_eq!(quarter.rollup, Folded::fold(&readings, &rules));
    assert_ne!(quarter.rollup, folded(&readings), "7 W is less than the default");
    let refold = bench.store.refold(&device("d"), &bench.invocation).await.expect("memory");
    assert_eq!(refold, table::Refold { settings: 1, under_way: None });
    // An exchange of the meter concerns one quarter.
    bench.exchange_meter("d", 17).await;
    bench.minutes(106, 135).await;
    assert_eq!(bench.quarter("d", 0).map(|it| it.settings), Some(1));
    assert_eq!(bench.quarter("d", 16).map(|it| it.settings), Some(2));
}

/// Its settings are numbered from 0 again.
#[tokio::test]
async fn settings_of_a_device_that_comes_back_after_its_tombstone_fold_again() {
    let bench = Bench::new().await;
    bench.write("d", 0, "1").await;
    bench.minutes(1, 31).await;
    bench.set_max_w("d", "7").await;
    bench.set_max_w("d", "8").await;
    bench.minutes(32, 63).await;
    assert_eq!(bench.quarter("d", 0).map(|it| it.settings), Some(2));

    let (id, back) = (device("d"), 8 * 24 * 60);
    let found = bench.store.belongings(&id, 100, &bench.invocation).await.expect("memory");
    bench.store.remove_belongings(&found.found, &bench.invocation).await;
    let tombstone = delete(ItemKey::new(DEVICES, "d"));
    bench.store.write(tombstone, &bench.invocation).await.expect("memory");

    bench.minutes(back, back).await;
    given::register_devices_of(&bench.store, &[reading("d", back, "1")]).await;
    bench.write("d", back, "1").await;
    bench.minutes(back + 1, back + 31).await;
    assert_eq!(bench.quarter("d", back).map(|it| it.settings), Some(0));
    bench.set_max_w("d", "7").await;
    bench.minutes(back + 32, back + 63).await;
    assert_eq!(bench.quarter("d", back).map(|it| it.settings), Some(1));
}

#[tokio::test]
async fn a_fold_under_way_goes_on_where_it_stopped() {
    let bench = Bench::new().await;
    for day in 0..5 {
        bench.write("d", day * 24 * 60, "1").await;
    }
    let later = 6 * 24 * 60;
    bench.minutes(later, later + 15).await;
    bench.set_max_w("d", "7").await;
    let under_way = Some((1, at_minute(3 * 24 * 60)));
    let refold = table::Refold { settings: 0, under_way };
    bench.store.set_refold(&device("d"), &refold, &bench.invocation).await.expect("memory");
    bench.minutes(later + 16, later + 31).await;
    let settings = |day: i64| bench.quarter("d", day * 24 * 60).map(|it| it.settings);
    assert_eq!([0, 1, 2, 3, 4].map(settings), [Some(0), Some(0), Some(0), Some(1), Some(1)]);
    // Newer settings begin at the beginning.
    bench.set_max_w("d", "8").await;
    let refold = table::Refold { settings: 0, under_way };
    bench.store.set_refold(&device("d"), &refold, &bench.invocation).await.expect("memory");
    bench.minutes(later + 32, later + 47).await;
    assert_eq!([0, 1, 2, 3, 4].map(settings), [Some(2); 5]);
}

#[tokio::test(start_paused = true)]
async fn work_that_nobody_waits_for_takes_a_fifth_of_the_ceilings() {
    let settings = Settings {
        zone: Zone::UTC,
        retention: Retention::default(),
        rollup_delay: rollups::RollupDelay::default(),
        max_read_units: 100,
        max_write_units: 50,
    };
    let pace = pace::BackgroundPace::new(&settings);
    let clock = Stopwatch::start();
    let invocation = given::invocation();
    invocation.add_read(20.0);
    pace.wait(&invocation).await;
    assert_eq!(clock.elapsed().as_millis(), 1_000);
    invocation.add_write(30.0);
    pace.wait(&invocation).await;
    assert_eq!(clock.elapsed().as_millis(), 3_000);
    invocation.add_write(1e6);
    pace.wait(&invocation).await;
    assert!(invocation.remaining().is_zero(), "never longer than the invocation");
}

/// An alarm watches it: it is told each minute, at zero too, and when the sweep fails.
#[tokio::test]
async fn the_age_of_the_oldest_work_is_told_each_minute() {
    let bench = Bench::new().await;
    let age = || bench.logged("rollup.oldest_unfinished_seconds");
    bench.minutes(60, 60).await;
    assert_eq!(age(), 0);
    // What waits in the queue is as old as the first count that met it.
    let waiting = FoldRequest { device: device("d"), quarter: QuarterHour::of(at_minute(0)) };
    bench.work.send(&[waiting], &bench.invocation).await.expect("memory");
    bench.minutes(75, 76).await;
    assert_eq!(age(), 60);
    bench.minutes(90, 100).await;
    assert_eq!(age(), 25 * 60);
    drop(bench.work.take());
    bench.minutes(105, 106).await;
    assert_eq!(age(), 0);
    // What the stream brought late, as its handler noted it.
    let backlog = Backlog { since: at_minute(100), at: at_minute(107) };
    bench.store.note_backlog(backlog, &bench.invocation).await.expect("memory");
    bench.minutes(107, 107).await;
    assert_eq!(age(), 7 * 60);
    // A sweep that fails leaves its quarter.
    bench.clock.set(at_minute(116));
    bench.store.fail_after(1, [StoreError::Throttled("x".into())]);
    bench.rollup.handle_schedule(minute()).await.expect_err("it fails");
    bench.store.end_troubles();
    assert_eq!((age(), bench.logged("requests.throttled")), (json!(900), json!(1)));
    bench.minutes(117, 117).await;
    assert_eq!(age(), 0);
}

/// The sweep is hours behind and fails in one of its windows.
#[tokio::test]
async fn the_age_of_the_oldest_work_is_that_of_what_a_sweep_that_fails_has_left() {
    let mut ages = std::collections::BTreeSet::new();
    for reads in 0..20 {
        let bench = Bench::new().await;
        bench.minutes(15, 15).await;
        bench.clock.set(at_minute(600));
        for _ in 0..20 {
            let reading = on(Action::Query, Target::Readings);
            bench.store.fail(reading, reads, StoreError::Unavailable("for now".into()));
        }
        drop(bench.rollup.handle_schedule(minute()).await);

        let left = at_minute(585).since(bench.state().await.sealed()).num_seconds();
        assert_eq!(bench.logged("rollup.oldest_unfinished_seconds"), left, "{reads}");
        ages.insert(left);
    }
    assert!(ages.len() > 3, "{ages:?}");
}

/// The readings of one device are throttled for as long as the sweep asks for them.
#[tokio::test(start_paused = true)]
async fn a_throttled_device_holds_up_no_other_group_and_no_new_settings() {
    let bench = Bench::new().await;
    let ids: Vec<String> = (0..30).map(|number| format!("b-{number}")).collect();
    for id in &ids {
        bench.register(id).await;
        bench.write(id, 20, "2").await;
    }
    let throttled = ids.iter().min_by_key(|id| sweep_group(&device(id))).expect("some").clone();
    let other = ids.iter().max_by_key(|id| sweep_group(&device(id))).expect("some");
    let hits = throttled.clone();
    bench.store.throttle(move |action, partition| action == Action::Query && partition == hits);
    bench.set_max_w(other, "100").await;

    for minute in 60..80 {
        bench.clock.set(at_minute(minute));
        let begun = Stopwatch::start();
        drop(bench.rollup.handle_schedule(Deadline::after(Duration::from_secs(299))).await);
        assert!(begun.elapsed() < Duration::from_secs(60), "the next one is due");
    }
    let state = bench.state().await;
    assert_eq!(state.sealed_of(&device(other)), at_minute(60));
    assert_eq!(state.sealed_of(&device(&throttled)), at_minute(60));
    assert!(bench.work.messages().iter().all(|left| left.device.as_str() == throttled));
    assert_eq!(bench.work.messages().len(), 5, "its quarters since 15:45");
    assert_eq!(bench.quarter(other, 20).expect("folded").settings, 1);
    let refold = bench.store.refold(&device(other), &bench.invocation).await.expect("memory");
    assert_eq!(refold.settings, 1);
}

/// More of them than may fail before any is swept.
#[tokio::test(start_paused = true)]
async fn devices_that_the_table_throttles_hold_up_none_of_their_group() {
    let bench = Bench::new().await;
    let is_of_group = |id: &String| sweep_group(&device(id)) == sweep_group(&device("d"));
    let of_group = |name: &'static str| {
        (0..).map(move |n| format!("{name}-{n}")).filter(is_of_group).take(4).collect::<Vec<_>>()
    };
    let (others, throttled) = (of_group("b"), of_group("hot"));
    for id in others.iter().chain(&throttled) {
        bench.register(id).await;
    }
    bench
        .store
        .throttle(|action, partition| action == Action::Query && partition.starts_with("hot"));

    for minute in (5..400).step_by(5) {
        bench.clock.set(at_minute(minute));
        for id in &others {
            bench.write(id, minute, "1").await;
        }
        drop(bench.rollup.handle_schedule(Deadline::after(Duration::from_secs(299))).await);
    }
    for id in &others {
        let folded = (0..25).filter(|quarter| bench.quarter(id, quarter * 15).is_some());
        assert_eq!(folded.count(), 25, "{id}");
    }
    let left: std::collections::BTreeSet<_> = bench.work.messages().into_iter().collect();
    assert_eq!(left.len(), 4 * 26, "each quarter since 15:45 of each throttled device");
}

#[tokio::test(start_paused = true)]
async fn throttled_devices_of_many_groups_make_a_sweep_of_a_home_little_longer_than_its_turn() {
    let bench = Bench::new().await;
    let ids: Vec<String> = (0..99).map(|n| format!("b-{n}")).collect();
    for id in &ids {
        bench.register(id).await;
        bench.write(id, 20, "2").await;
    }
    let of_group =
        |group| ids.iter().filter(move |id| sweep_group(&device(id)) == group).take(3).cloned();
    let throttled: Vec<String> = (0..7).flat_map(of_group).collect();
    let hits = throttled.clone();
    bench.store.throttle(move |action, partition| {
        action == Action::Query && hits.iter().any(|id| id == partition)
    });

    for minute in 60..120 {
        bench.clock.set(at_minute(minute));
        let begun = Stopwatch::start();
        drop(bench.rollup.handle_schedule(Deadline::after(Duration::from_secs(299))).await);
        assert!(begun.elapsed() < Duration::from_secs(65), "{:?}", begun.elapsed());
    }
    assert!(bench.state().await.sealed() >= at_minute(45));
    for id in ids.iter().filter(|id| !throttled.contains(id)) {
        assert!(bench.quarter(id, 20).is_some(), "{id}");
    }
}

/// By a rule on many devices only a recheck tells of it, and the queue leaves none.
#[tokio::test(start_paused = true)]
async fn a_device_whose_quarters_are_left_to_the_queue_is_rechecked() {
    let bench = Bench::new().await;
    bench.register("b").await;
    let rule = given::alert_rule("r", at_minute(0));
    assert!(bench.store.put_alert_rule(&rule, &bench.invocation).await.expect("memory"));
    bench.store.throttle(|action, partition| action == Action::Query && partition == "d");
    bench.clock.set(at_minute(30));
    bench.schedule().await;
    let rechecks = bench.store.rechecks(None, 9, &bench.invocation).await.expect("memory");
    let rechecks: Vec<_> =
        rechecks.listing.found.iter().map(|recheck| recheck.target.to_string()).collect();
    assert_eq!(rechecks, ["d"]);
}

/// With rules that nobody knows no quarter is sealed, because breaches would leave no recheck.
#[tokio::test(start_paused = true)]
async fn while_the_rules_are_throttled_quarters_are_sealed_by_those_of_the_last_hour() {
    let bench = Bench::new().await;
    let rule = given::alert_rule("r", at_minute(0));
    assert!(bench.store.put_alert_rule(&rule, &bench.invocation).await.expect("memory"));
    bench.minutes(26, 55).await;
    bench.store.throttle(|_, partition| partition == ALERT_RULES);

    for minute in 56..=130 {
        bench.clock.set(at_minute(minute));
        let begun = Stopwatch::start();
        drop(bench.rollup.handle_schedule(Deadline::after(Duration::from_secs(299))).await);
        assert!(begun.elapsed() < Duration::from_secs(30), "{minute}: {:?}", begun.elapsed());
    }
    let sealed = bench.state().await.sealed();
    assert!((at_minute(75)..=at_minute(90)).contains(&sealed), "{sealed}");
    bench.store.end_troubles();
    bench.minutes(131, 145).await;
    assert_eq!(bench.state().await.sealed(), at_minute(120));
}

/// Rechecks are throttled, or the items of the devices that they are about.
#[tokio::test(start_paused = true)]
async fn a_recheck_that_cannot_be_noted_holds_up_the_group_of_its_device_and_no_other() {
    for throttled in [(Action::UpdateItem, ALERT_RECHECKS), (Action::BatchGetItem, DEVICES)] {
        let bench = Bench::new().await;
        let rule = given::alert_rule("r", at_minute(0));
        assert!(bench.store.put_alert_rule(&rule, &bench.invocation).await.expect("memory"));
        let hot = given::reading("d", at_minute(0), None, &[("temperature", "9")]);
        bench.store.put_readings(&[hot], None, &bench.invocation).await;
        bench.store.throttle(move |action, partition| (action, partition) == throttled);

        for minute in 30..46 {
            bench.clock.set(at_minute(minute));
            let begun = Stopwatch::start();
            drop(bench.rollup.handle_schedule(Deadline::after(Duration::from_secs(299))).await);
            assert!(begun.elapsed() < Duration::from_secs(60), "the next one is due");
            assert_eq!(bench.logged("level"), "ERROR", "it is said");
        }
        let sealed = bench.state().await.sealed;
        for (group, sealed) in sealed.into_iter().enumerate() {
            let is_waiting = group == sweep_group(&device("d"));
            assert_eq!(sealed, at_minute(if is_waiting { 0 } else { 30 }), "{throttled:?} {group}");
        }

        bench.store.end_troubles();
        bench.minutes(46, 46).await;
        assert_eq!(bench.state().await.sealed, [at_minute(30); SWEEP_GROUPS]);
        let rechecks = bench.store.rechecks(None, 9, &bench.invocation).await.expect("memory");
        assert_eq!(rechecks.listing.found.len(), 1, "{throttled:?}");
    }
}

/// The mark of the sweeps, the note that a device is folded with its new settings, which follows one of how far it is
/// folded, and what the log reads of unfinished work.
#[tokio::test(start_paused = true)]
async fn what_a_sweep_notes_or_reads_beside_it_takes_no_more_than_a_turn_and_no_new_settings_wait()
{
    for (action, partition, taken) in [
        (Action::UpdateItem, STATE, 0),
        (Action::UpdateItem, "ROLLUP#d", 1),
        (Action::GetItem, LATE, 0),
    ] {
        let bench = Bench::new().await;
        bench.write("d", 0, "1").await;
        bench.write("d", 1, "100000").await;
        bench.minutes(30, 30).await;
        bench.set_max_w("d", "5").await;
        let calls = AtomicUsize::new(0);
        bench.store.throttle(move |asked, of| {
            (asked, of) == (action, partition) && calls.fetch_add(1, Ordering::Relaxed) >= taken
        });

        for minute in 45..50 {
            bench.clock.set(at_minute(minute));
            let begun = Stopwatch::start();
            drop(bench.rollup.handle_schedule(Deadline::after(Duration::from_secs(299))).await);
            assert!(begun.elapsed() < Duration::from_secs(60), "{partition}: the next is due");
        }
        assert_eq!(bench.quarter("d", 0).expect("folded").settings, 1, "{partition}");
    }
}

/// The recheck of one device, after a time without sweeps.
#[tokio::test(start_paused = true)]
async fn a_group_that_waits_for_a_recheck_keeps_no_other_from_folding_all_windows() {
    let bench = Bench::new().await;
    bench.register("b").await;
    bench.minutes(15, 15).await;
    let rule = given::alert_rule("r", at_minute(0));
    assert!(bench.store.put_alert_rule(&rule, &bench.invocation).await.expect("memory"));
    let hot = given::reading("d", at_minute(15), None, &[("temperature", "9")]);
    bench.store.put_readings(&[hot], None, &bench.invocation).await;
    bench.write("b", 120, "1").await;
    bench.store.throttle(|asked, of| (asked, of) == (Action::UpdateItem, ALERT_RECHECKS));
    bench.clock.set(at_minute(150));

    let begun = Stopwatch::start();
    drop(bench.rollup.handle_schedule(Deadline::after(Duration::from_secs(299))).await);
    assert!(begun.elapsed() < Duration::from_secs(60), "the next one is due");
    assert_ne!(sweep_group(&device("b")), sweep_group(&device("d")));
    let state = bench.state().await;
    assert_eq!(state.sealed_of(&device("b")), at_minute(135));
    assert!(state.sealed_of(&device("d")) <= at_minute(15));
    assert!(bench.quarter("b", 120).is_some());
}

/// The marks of all windows are throttled, or that of the first one.
#[tokio::test(start_paused = true)]
async fn while_marks_are_throttled_all_windows_are_folded_and_a_later_mark_covers_them() {
    for are_all in [true, false] {
        let bench = Bench::new().await;
        bench.minutes(15, 15).await;
        let quarters = || (15..135).step_by(15);
        for minute in quarters() {
            bench.write("d", minute, "1").await;
        }
        let is_mark = |asked, of: &str| (asked, of) == (Action::UpdateItem, STATE);
        if are_all {
            bench.store.throttle(is_mark);
        } else {
            let first = on(Action::UpdateItem, Target::RollupState);
            bench.store.fail(first, 0, StoreError::Throttled("for now".into()));
        }

        bench.clock.set(at_minute(150));
        let begun = Stopwatch::start();
        drop(bench.rollup.handle_schedule(Deadline::after(Duration::from_secs(299))).await);
        assert!(begun.elapsed() < Duration::from_secs(60), "the next one is due");
        assert!(quarters().all(|minute| bench.quarter("d", minute).is_some()), "{are_all}");
        let sealed = if are_all { 0 } else { 135 };
        assert_eq!(bench.state().await.sealed(), at_minute(sealed), "{are_all}");

        bench.store.end_troubles();
        bench.minutes(151, 151).await;
        assert_eq!(bench.state().await.sealed(), at_minute(135), "{are_all}");
    }
}

/// The marks of one group are ahead of the clock, and the table does not take them back.
#[tokio::test(start_paused = true)]
async fn groups_that_cannot_be_set_back_hold_up_no_other() {
    let bench = Bench::new().await;
    let ahead = (sweep_group(&device("d")) + 1) % SWEEP_GROUPS;
    let wrong = at_minute(9 * 60);
    bench
        .store
        .advance_sealed(&[ahead].into(), wrong, None, &bench.invocation)
        .await
        .expect("memory");
    bench.write("d", 0, "1").await;
    // One request in place of all that set marks.
    let calls = AtomicUsize::new(0);
    bench.store.throttle(move |asked, of| {
        (asked, of) == (Action::UpdateItem, STATE) && calls.fetch_add(1, Ordering::Relaxed) < 60
    });
    bench.clock.set(at_minute(30));
    let begun = Stopwatch::start();
    drop(bench.rollup.handle_schedule(Deadline::after(Duration::from_secs(299))).await);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(bench.logged("level"), "ERROR", "it is said");
    assert!(bench.quarter("d", 0).is_some());

    bench.store.end_troubles();
    bench.minutes(31, 31).await;
    assert_eq!(bench.state().await.sealed, [at_minute(15); SWEEP_GROUPS]);
}

/// Without the number, an answer would take quarters in the queue for folded.
#[tokio::test]
async fn where_the_queue_tells_no_depth_what_was_left_to_it_counts_and_the_log_says_why() {
    let bench = Bench::new().await;
    bench.damage("d", 0).await;
    bench.write("d", 0, "1").await;
    bench.work.fail_depth(true);
    bench.minutes(30, 30).await;
    assert_eq!(bench.work.messages().len(), 1);
    let queue = bench.state().await.queue;
    assert_eq!(queue, Some(QueueDepth { messages: 1, at: at_minute(30) }));
    assert_eq!(bench.logged("level"), "WARN");
    let told = bench.logged("rollup.queue_error");
    assert!(told.as_str().is_some_and(|told| told.contains("depth")), "{told}");
}

#[tokio::test]
async fn a_damaged_state_is_said_with_what_mends_it() {
    let bench = Bench::new().await;
    damage_rollup_state(&bench.store).await;
    bench.clock.set(at_minute(30));
    bench.rollup.handle_schedule(minute()).await.expect_err("nobody knows the time zone");
    let told = bench.logged("rollup.error").to_string();
    for part in ["STATE# rollup: tz is missing", "delete the item", "roomtide rollups rebuild"] {
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(bench.logged("level"), "ERROR");

    bench.store.write(delete(&Key::RollupState), &bench.invocation).await.expect("memory");
    bench.schedule().await;
    assert_eq!(bench.state().await.sealed, [at_minute(15); SWEEP_GROUPS]);
}
