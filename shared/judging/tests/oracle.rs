//! What is judged of silence, budgets, demand and means of rooms, and previews, against oracles that share no code with
//! it. Has no table of DynamoDB.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use alerts::{AlertSubject, MAX_BACK, News, Rule, Watch};
use chrono::TimeDelta;
use domain::given::rule_id;
use domain::{
    CalendarUnit, Device, DeviceId, DevicePatch, Edit, QuarterHour, Reading, SWEEP_GROUPS,
    TimeRange, Timestamp, Zone, sweep_group,
};
use fastrand::Rng;
use judging::{
    AlertRules, Judging, JudgingReport, JudgingSession, MAX_FEW, PreviewQuestion, Previewed,
    ReadingsByTime,
};
use rollups::{Assumed, DeviceFolds, DeviceRules, Retention, RollupDelay, SeenRooms};
use serde_json::{Value, json};
use series::{MAX_DEVICES, RollupStateCache, SeriesError};
use table::given::{self, invocation};
use table::memory_db::{MemoryDb, on};
use table::{
    Action, Deadline, DeleteAlertStates as _, DeleteReadings as _, EditAlertRules as _,
    EditRegistry as _, Expected, FinishRechecks as _, Invocation, KeepRollupState as _,
    ListDevices as _, LoggedMessage, MAX_CACHED_ENTRIES, NoteRechecks as _, NoteRunning as _,
    PutReadings as _, QueueDepth, ReadAlertRules as _, ReadAlertStates as _, ReadRechecks as _,
    ReadRollupState as _, ReadingKey, Recheck, Rechecked, RunningNote, Session, StoreError,
    StoredRule, Target, UpdateOutcome,
};

/// The schedules of each test.
const SCHEDULES: u64 = 10;
const ZONE: &str = "Europe/Berlin";

fn minutes(number: i64) -> TimeDelta {
    TimeDelta::minutes(number)
}

/// Minutes since the evening before the day in March that has 23 hours in Berlin.
fn at(minute: i64) -> Timestamp {
    let start = given::at("2026-03-28T18:00:00Z");
    start.saturating_add(minutes(minute))
}

fn rule_of(members: Value, saved: Timestamp) -> Rule {
    Rule::from_json(members, saved).expect("a rule")
}

/// A version of the rule of a story.
fn stored(version: u64, members: Value, saved: Timestamp) -> StoredRule {
    StoredRule { id: rule_id("r"), version, definition: rule_of(members, saved) }
}

/// Readings as a batch of the stream has them.
fn by_device(readings: &[Reading]) -> BTreeMap<DeviceId, ReadingsByTime> {
    let mut batch: BTreeMap<DeviceId, ReadingsByTime> = BTreeMap::new();
    for reading in readings {
        batch.entry(reading.device.clone()).or_default().insert(reading.at, reading.clone());
    }
    batch
}

/// A table, and one process that judges.
struct World {
    store: MemoryDb,
    judging: Judging,
}

impl World {
    /// A world with one rule, and with the devices of some readings, which are stored.
    async fn new(rule: Value, first: &[Reading]) -> Self {
        let store = MemoryDb::default();
        given::store_home(&store, first).await;
        given::seal(&store, ZONE, at(-60)).await;
        let world = Self { store, judging: Judging::default() };
        world.save(stored(1, rule, at(-10))).await;
        world
    }

    /// A person saves a rule.
    async fn save(&self, rule: StoredRule) {
        assert!(self.store.put_alert_rule(&rule, &invocation()).await.expect("memory"));
    }

    fn session<'a>(
        &'a self,
        now: Timestamp,
        invocation: &'a Invocation,
    ) -> JudgingSession<'a, MemoryDb> {
        self.judging.session(Session::new(&self.store, invocation, now))
    }

    async fn rules(&self, now: Timestamp) -> Arc<AlertRules> {
        self.session(now, &invocation()).rules().await.expect("memory")
    }

    /// Judges what a recheck names by rules that were read before.
    async fn recheck(
        &self,
        rules: &AlertRules,
        target: Rechecked,
        now: Timestamp,
    ) -> JudgingReport {
        let recheck = Recheck { target, since: at(0), after: None, touch: 1 };
        let given = invocation();
        let session = self.session(now, &given);
        let judged = Box::pin(session.recheck(rules, &recheck)).await.expect("memory");
        judged.expect("every process knows the rule")
    }

    /// The time after which `d1` counts as silent, as it is learned.
    async fn usual_silence(&self, now: Timestamp) -> TimeDelta {
        let given = invocation();
        let usual = Watch::Silence { after: None };
        let limit = self.session(now, &given).silent_after(&usual, &given::device("d1")).await;
        limit.expect("memory")
    }

    /// Judges silence, as each minute does.
    async fn judge_silence(&self, now: i64) {
        let given = invocation();
        let session = self.session(at(now), &given);
        let judged = Box::pin(session.judge_silence()).await;
        assert!(judged.expect("memory").is_done());
    }

    async fn put(&self, readings: &[Reading]) {
        let put = self.store.put_readings(readings, None, &invocation()).await;
        assert!(put.not_stored.is_empty());
    }

    /// The stream delivers readings.
    async fn batch(&self, readings: &[Reading], now: Timestamp) -> usize {
        let batch = by_device(readings);
        let given = invocation();
        let found = self.session(now, &given).judge_batch(&batch).await;
        assert!(found.cause.is_none() && found.rechecks.is_empty(), "{found:?}");
        found.judgements.judged
    }

    /// States that are due.
    async fn due(&self, now: Timestamp) {
        let rules = self.rules(now).await;
        let due = self.store.due_alert_states(now, None, 1_000, &invocation()).await;
        let given = invocation();
        let due = due.expect("memory").listing.found;
        let session = self.session(now, &given);
        let report = Box::pin(session.judge_due(&rules, &due)).await;
        assert!(report.is_done() && report.failures.is_empty(), "{report:?}");
    }

    /// Seals a quarter, and judges what waited for it.
    async fn seal(&self, quarter: QuarterHour, now: Timestamp) {
        self.seal_unjudged(quarter, now).await;
        self.judge_sealed(now).await;
    }

    async fn judge_sealed(&self, now: Timestamp) {
        let given = invocation();
        let session = self.session(now, &given);
        let judged = Box::pin(session.judge_sealed()).await;
        assert!(judged.expect("memory").is_done());
    }

    /// What is not done within a sealing: the quarters and days of all devices, as the rollup function folds them.
    async fn seal_unjudged(&self, quarter: QuarterHour, now: Timestamp) {
        self.seal_groups(&(0..SWEEP_GROUPS).collect(), quarter, now).await;
        let state = self.store.rollup_state(&invocation()).await.expect("memory");
        assert!(state.is_some_and(|it| it.sealed == [quarter.end(); SWEEP_GROUPS]));
    }

    /// The same of the devices of some groups.
    async fn seal_groups(&self, groups: &BTreeSet<usize>, quarter: QuarterHour, now: Timestamp) {
        let zone: Zone = ZONE.parse().expect("a zone");
        let seen = SeenRooms::default();
        let mut devices = self.devices().await;
        devices.retain(|device| groups.contains(&sweep_group(device.id())));
        for device in devices {
            let invocation = &invocation();
            let fold = DeviceFolds {
                session: Session::new(&self.store, invocation, now),
                device: &DeviceRules::of(&device),
                seen: &seen,
                retention: &Retention::default(),
            };
            fold.quarter(quarter, Assumed::Nothing).await.expect("memory");
            let date = zone.date(quarter.start());
            fold.day(zone, date, quarter.end(), Assumed::Nothing).await.expect("memory");
        }
        let end = quarter.end();
        self.store.advance_sealed(groups, end, None, &invocation()).await.expect("memory");
    }

    /// Seals all quarters from the first one of a story up to an instant.
    async fn seal_up_to(&self, end: Timestamp, now: Timestamp) {
        let mut quarter = QuarterHour::of(at(-60));
        while quarter.end() <= end {
            self.seal(quarter, now).await;
            quarter = quarter.next();
        }
    }

    /// What a preview from a minute up to now tells.
    async fn previewed(
        &self,
        (rule, subject): (&Rule, &AlertSubject),
        from: i64,
        now: Timestamp,
    ) -> Vec<Previewed> {
        let range = given::range(at(from), now);
        let given = &invocation();
        let session = self.session(now, given);
        let horizon = RollupStateCache::new(RollupDelay::default()).read(session.table).await;
        let horizon = &horizon.expect("memory");
        let question = PreviewQuestion { rule, subject, range, horizon };
        Box::pin(session.preview(question)).await.expect("memory").episodes
    }

    /// A person moves a device.
    async fn move_to(&self, device: &str, room: &str, now: Timestamp) {
        let room = Edit::Set(room.parse().expect("an id"));
        let patch = DevicePatch { room, ..DevicePatch::default() };
        let device = given::device(device);
        let edited = self.store.edit_device(&device, &patch, now, &invocation()).await;
        assert!(matches!(edited, Ok(UpdateOutcome::Updated(_))), "{edited:?}");
    }

    async fn devices(&self) -> Vec<Device> {
        let page = self.store.device_page(None, 5_000, &invocation()).await;
        page.expect("memory").listing.found
    }

    /// What was told, in order of time.
    fn told(&self) -> Vec<LoggedMessage> {
        let mut told = self.store.all_told();
        told.sort_by_key(LoggedMessage::key);
        told
    }

    fn news(&self) -> Vec<News> {
        self.told().iter().map(|told| told.message.news).collect()
    }

    /// When each message was told.
    fn times_told(&self) -> Vec<Timestamp> {
        self.told().iter().map(|told| told.at).collect()
    }

    /// The begin of the episode of each message.
    fn since(&self) -> Vec<Timestamp> {
        self.told().iter().map(|told| told.message.since).collect()
    }
}

// ---- A throttled device ------------------------------------------------------------------------

/// Thirty sensors in the hall with one rule. The readings of the first are throttled to the end of everybody's
/// patience.
async fn beside_a_throttled_device(rule: Value) -> (World, Vec<Reading>) {
    let sensors: Vec<_> = (10..40).map(|number| sensor(number, 0)).collect();
    let world = World::new(rule, &sensors).await;
    world.store.throttle(|action, partition| action == Action::Query && partition == "d10");
    (world, sensors)
}

#[tokio::test(start_paused = true)]
async fn a_throttled_device_leaves_time_for_the_others_of_its_batch() {
    let rule = json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 1});
    let (world, sensors) = beside_a_throttled_device(rule).await;
    let given = Invocation::until(Deadline::after(Duration::from_secs(20)));
    let batch = by_device(&sensors);
    let session = world.session(at(1), &given);
    let found = Box::pin(session.judge_batch(&batch)).await;
    assert_eq!(found.rechecks.into_keys().collect::<Vec<_>>(), [given::device("d10")]);
    assert_eq!((found.judgements.judged, world.told().len()), (29, 29));
}

/// A device that is throttled costs a batch one share, however many rules are about it.
#[tokio::test(start_paused = true)]
async fn a_throttled_device_with_several_rules_leaves_time_for_the_others_of_its_batch() {
    let rule = json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 1});
    let (world, sensors) = beside_a_throttled_device(rule.clone()).await;
    for number in 1..12 {
        let id = rule_id(&format!("r{number}"));
        world.save(StoredRule { id, ..stored(1, rule.clone(), at(-10)) }).await;
    }
    let given = Invocation::until(Deadline::after(Duration::from_secs(20)));
    let batch = by_device(&sensors);
    let session = world.session(at(1), &given);
    let found = Box::pin(session.judge_batch(&batch)).await;
    assert_eq!(found.rechecks.into_keys().collect::<Vec<_>>(), [given::device("d10")]);
    assert_eq!((found.judgements.judged, found.judgements.failures.len()), (12 * 29, 1));
}

#[tokio::test(start_paused = true)]
async fn a_throttled_device_leaves_time_for_the_silence_of_others() {
    let rule = json!({"name": "Gone", "room": "hall", "silent_for": "10m"});
    let (world, _) = beside_a_throttled_device(rule).await;
    let given = Invocation::until(Deadline::after(Duration::from_secs(8)));
    let session = world.session(at(20), &given);
    let judged = Box::pin(session.judge_silence()).await;
    assert_eq!(judged.expect("memory").judged, 29);
    assert_eq!(world.told().len(), 29);
}

/// Each value is a breach, however long its device may be silent.
#[tokio::test(start_paused = true)]
async fn values_are_told_though_what_says_when_devices_are_silent_is_throttled() {
    let rule = json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 1});
    let sensors: Vec<_> = (10..40).map(|number| sensor(number, 0)).collect();
    for throttled in ["STATE#", "ROLLUP#"] {
        let world = World::new(rule.clone(), &sensors).await;
        world.store.throttle(move |_, partition| partition.starts_with(throttled));
        let given = Invocation::until(Deadline::after(Duration::from_secs(20)));
        let batch = by_device(&sensors);
        let session = world.session(at(1), &given);
        let found = Box::pin(session.judge_batch(&batch)).await;
        assert_eq!((found.judgements.judged, world.told().len()), (30, 30), "{throttled}");
        assert!(found.rechecks.is_empty() && found.cause.is_none(), "{throttled}: {found:?}");
    }
}

#[tokio::test]
async fn values_are_told_though_the_state_of_the_rollups_is_damaged() {
    let rule = json!({"name": "Warm", "device": "d1", "metric": "temperature", "above": 1});
    let world = World::new(rule, &[sensor(1, 0)]).await;
    given::damage_rollup_state(&world.store).await;
    world.batch(&[sensor(1, 0)], at(1)).await;
    assert_eq!(world.news(), [News::Fired]);
}

/// The value may have ceased to hold: the device counts as silent after ten minutes, or later.
#[tokio::test(start_paused = true)]
async fn a_value_that_may_hold_no_longer_waits_for_what_says_when_its_device_is_silent() {
    let rule = json!({
        "name": "Warm", "device": "d1", "metric": "temperature", "above": 1, "for": "20m",
    });
    for throttled in ["STATE#", "ROLLUP#"] {
        let world = World::new(rule.clone(), &[sensor(1, 0)]).await;
        world.store.throttle(move |_, partition| partition.starts_with(throttled));
        let given = Invocation::until(Deadline::after(Duration::from_secs(20)));
        let batch = by_device(&[sensor(1, 0)]);
        let session = world.session(at(25), &given);
        let found = Box::pin(session.judge_batch(&batch)).await;
        assert_eq!((found.rechecks.len(), world.told().len()), (1, 0), "{throttled}");

        world.store.end_troubles();
        let rules = world.rules(at(26)).await;
        let what = Rechecked::Device(given::device("d1"));
        world.recheck(&rules, what, at(26)).await;
        assert_eq!(world.news(), [News::Fired], "{throttled}");
    }
}

// ---- Silence -----------------------------------------------------------------------------------

const LIMIT: i64 = 10;
const SENSORS: usize = 4;

fn sensor(number: usize, minute: i64) -> Reading {
    warm(number, minute, "20")
}

/// A temperature in a room.
fn in_room(device: &str, minute: i64, room: &str, value: &str) -> Reading {
    given::reading(device, at(minute), Some(room), &[("temperature", value)])
}

/// A temperature in the hall.
fn warm(number: usize, minute: i64, value: &str) -> Reading {
    given::reading(&format!("d{number}"), at(minute), Some("hall"), &[("temperature", value)])
}

/// Some sensors that send now and then, each minute judged. Late readings and one of tomorrow come too.
async fn silence(seed: u64, is_calm: bool) {
    let mut rng = Rng::with_seed(seed);
    let first: Vec<_> = (0..SENSORS).map(|number| sensor(number, 0)).collect();
    let rule = json!({"name": "Gone", "room": "hall", "silent_for": format!("{LIMIT}m")});
    let world = World::new(rule, &first).await;
    let mut sent = vec![BTreeSet::from([0]); SENSORS];
    let mut sends = [true; SENSORS];
    for now in 1..180 {
        let mut readings = Vec::new();
        for number in 0..SENSORS {
            if rng.u8(..12) == 0 {
                sends[number] = !sends[number];
            }
            if sends[number] && rng.u8(..3) > 0 {
                let late = if is_calm || rng.u8(..5) > 0 { 0 } else { rng.i64(1..15) };
                readings.push(sensor(number, now - late));
                sent[number].insert(now - late);
            }
            if !is_calm && rng.u8(..60) == 0 {
                readings.push(sensor(number, now + 1_440));
            }
        }
        world.put(&readings).await;
        world.batch(&readings, at(now)).await;
        world.due(at(now)).await;
        world.judge_silence(now).await;

        let mut told: BTreeMap<AlertSubject, bool> = BTreeMap::new();
        for message in world.told() {
            told.insert(message.alert.subject, message.message.news.is_firing());
        }
        for (number, sent) in sent.iter().enumerate() {
            let newest = *sent.last().expect("the first");
            let subject = AlertSubject::Device(given::device(&format!("d{number}")));
            let is_told = told.get(&subject).copied().unwrap_or_default();
            assert_eq!(is_told, now - newest >= LIMIT, "{seed}: d{number} at {now}, sent {sent:?}");
        }
    }
    if !is_calm {
        return;
    }
    // Each gap is told once, at its time, and so is its end.
    let mut expected = Vec::new();
    for (number, sent) in sent.iter().enumerate() {
        let ends = sent.iter().skip(1).map(|end| (*end, true)).chain([(179, false)]);
        for (from, (to, ends)) in sent.iter().zip(ends).filter(|(from, to)| to.0 - *from >= LIMIT) {
            expected.push((number, at(from + LIMIT), News::Fired));
            if ends {
                expected.push((number, at(to), News::Recovered));
            }
        }
    }
    let mut told: Vec<_> = world
        .told()
        .iter()
        .flat_map(|it| {
            let subject = it.alert.subject.to_string();
            let number: usize = subject.trim_start_matches("device:d").parse().expect("a number");
            let message = &it.message;
            let fired = (number, message.fired, News::Fired);
            let ended = message.ended.map(|at| (number, at, News::Recovered));
            match message.news {
                News::Fired => vec![fired],
                News::Recovered => ended.into_iter().collect(),
                // It ended in the minute in which the device counted as silent.
                News::Passed => [fired].into_iter().chain(ended).collect(),
                news => panic!("{seed}: {news:?}"),
            }
        })
        .collect();
    // A reading at the very end of the limit may be judged or passed over: the silence is over with it.
    let is_moment = |all: &[(usize, Timestamp, News)], it: &(usize, Timestamp, News)| {
        all.iter().filter(|other| (other.0, other.1) == (it.0, it.1)).count() > 1
    };
    let (all_told, all_expected) = (told.clone(), expected.clone());
    told.retain(|it| !is_moment(&all_told, it));
    expected.retain(|it| !is_moment(&all_expected, it));
    told.sort_by_key(|it| (it.0, it.1, it.2));
    expected.sort_by_key(|it| (it.0, it.1, it.2));
    assert_eq!(told, expected, "{seed}");
}

#[tokio::test]
async fn silence_is_told_of_the_devices_that_are_silent_and_of_no_others() {
    for seed in 0..3 * SCHEDULES {
        silence(seed, false).await;
    }
}

#[tokio::test]
async fn in_order_each_silence_is_told_once_at_its_time() {
    for seed in 0..3 * SCHEDULES {
        silence(seed, true).await;
    }
}

/// A rule may be saved before its device has sent anything.
#[tokio::test]
async fn a_device_that_is_silent_after_its_first_reading_is_told_in_time() {
    let rule = json!({"name": "Gone", "device": "d1", "silent_for": "2m"});
    let world = World::new(rule, &[]).await;
    for now in 0..20 {
        if now == 7 {
            given::store_home(&world.store, &[sensor(1, now)]).await;
            world.batch(&[sensor(1, now)], at(now)).await;
        }
        world.judge_silence(now).await;
    }
    assert_eq!(world.times_told(), [at(9)]);
}

/// The system stood still from the fifth minute to the twentieth.
#[tokio::test]
async fn a_device_that_stays_silent_after_a_pause_is_told_in_time() {
    let rule = json!({"name": "Gone", "device": "d1", "silent_for": "2m"});
    let world = World::new(rule, &[sensor(1, 4)]).await;
    let pauses = vec![given::range(at(5), at(20))];
    let mark = RunningNote { version: 1, at: at(20), pauses };
    assert!(
        world.store.put_running_note(&mark, Expected::Absent, &invocation()).await.expect("memory")
    );
    for now in 20..30 {
        world.judge_silence(now).await;
    }
    assert_eq!(world.times_told(), [at(22)]);
}

/// Nobody has noted yet that the system runs again.
#[tokio::test]
async fn a_pause_that_is_not_noted_yet_is_no_silence() {
    for pause in 8..20 {
        let rule = json!({"name": "Gone", "device": "d1", "silent_for": "5m"});
        let world = World::new(rule, &[sensor(1, 0)]).await;
        let mark = RunningNote { version: 1, at: at(1), pauses: Vec::new() };
        assert!(
            world
                .store
                .put_running_note(&mark, Expected::Absent, &invocation())
                .await
                .expect("memory")
        );
        world.judge_silence(1 + pause).await;
        assert_eq!(world.news(), [], "{pause} minutes");
    }
}

/// A mean of some of them would be a wrong number.
#[tokio::test]
async fn the_mean_of_a_room_with_too_many_devices_is_refused() {
    let sensors: Vec<Reading> = (0..=MAX_DEVICES).map(|number| sensor(number, 0)).collect();
    let rule = json!({"name": "Mean", "mean_of_room": "hall", "metric": "temperature", "above": 8});
    let world = World::new(rule, &sensors).await;
    let given = invocation();
    let session = world.session(at(1), &given);
    let judged = Box::pin(session.judge_sealed()).await;
    let failures = judged.expect("memory").failures;
    let [(_, SeriesError::OutOfReach(why))] = &failures[..] else { panic!("one: {failures:?}") };
    assert_eq!(why, "The mean of a room is of at most 200 devices; hall has 201 with temperature.");
}

/// Until the rule is edited, the device need not be asked about for an hour.
#[tokio::test]
async fn a_limit_that_is_made_shorter_holds_from_then_on() {
    let rule = json!({"name": "Gone", "device": "d1", "silent_for": "1h"});
    let world = World::new(rule, &[sensor(1, 0)]).await;
    for now in 0..20 {
        if now == 3 {
            let shorter = json!({"name": "Gone", "device": "d1", "silent_for": "6m"});
            world.save(stored(2, shorter, at(now))).await;
        }
        world.judge_silence(now).await;
    }
    assert_eq!(world.times_told(), [at(6)]);
}

/// A device sends twice in six days, then every ten minutes, and after eight more days nothing.
#[tokio::test]
async fn a_device_that_began_to_send_often_is_silent_by_its_new_limit() {
    const DAY: i64 = 24 * 60;
    let (often, end) = (6 * DAY, 14 * DAY);
    let rule = json!({"name": "Gone", "device": "d1", "silent_for": "usual"});
    let world = World::new(rule, &[sensor(1, 0)]).await;
    let readings: Vec<_> = (often..=end).step_by(10).map(|minute| sensor(1, minute)).collect();
    world.put(&readings).await;

    let mut quarter = QuarterHour::of(at(0));
    for now in (often..end).step_by(6 * 60) {
        while quarter.end() <= at(now - 15) {
            world.seal_unjudged(quarter, at(now)).await;
            quarter = quarter.next();
        }
        world.judge_silence(now).await;
    }
    for now in end..end + 2 * 60 {
        world.judge_silence(now).await;
    }
    assert_eq!(world.times_told(), [at(end + 40)], "four intervals");
}

/// Its first version has the number of the deleted rule's.
#[tokio::test]
async fn a_rule_that_was_deleted_and_made_again_within_a_minute_finds_silence_by_its_own_limit() {
    let rule = |limit: &str| json!({"name": "Gone", "device": "d1", "silent_for": limit});
    let world = World::new(rule("7d"), &[sensor(1, 0)]).await;
    world.judge_silence(1).await;

    let id = rule_id("r");
    world.store.delete_alert_rule(&id, &invocation()).await.expect("memory");
    world.store.delete_alert_states(&id, &invocation()).await.expect("memory");
    world.save(stored(1, rule("10m"), at(1))).await;
    for now in 2..20 {
        world.judge_silence(now).await;
    }
    assert_eq!(world.times_told(), [at(10)]);
}

/// The list of so many devices is read again after two minutes.
#[tokio::test]
async fn the_silence_of_a_new_device_among_more_than_a_thousand_is_told_in_time() {
    let reading = |id: &str, minute, room| {
        given::reading(id, at(minute), Some(room), &[("temperature", "20")])
    };
    let others: Vec<_> =
        (0..=MAX_FEW).map(|device| reading(&format!("other{device}"), 0, "hall")).collect();
    let rule = json!({"name": "Gone", "room": "lab", "silent_for": "5m"});
    let world = World::new(rule, &others).await;
    for now in 0..20 {
        if now == 1 {
            given::store_home(&world.store, &[reading("new", now, "lab")]).await;
        }
        world.judge_silence(now).await;
    }
    assert_eq!(world.times_told(), [at(6)]);
}

// ---- More than the time suffices for -----------------------------------------------------------

/// The devices of a story in which no minute has time for all.
const MANY: usize = 150;
/// The minutes of such a story: far more than a right order needs.
const MINUTES: usize = 3_000;

/// Judges as each minute does, with time for a few judgements only, until all devices are told and nothing is left.
/// Where processes are replaced, each minute has a new one. Returns how many judgements it took.
async fn judge_in_pieces(world: &mut World, now: Timestamp, is_replaced: bool) -> usize {
    let (mut judgements, mut was_cut) = (0, false);
    // A judgement begins with a second left, so the rest is for judgements and what comes before them.
    let mut time = Duration::from_millis(1_003);
    for _ in 0..MINUTES {
        if is_replaced {
            world.judging = Judging::default();
        }
        let piece = Invocation::until(Deadline::after(time));
        let session = world.session(now, &piece);
        let silence = Box::pin(session.judge_silence()).await;
        let mut judged = silence.expect("memory");
        let sealed = Box::pin(session.judge_sealed()).await;
        judged.append(sealed.expect("memory"));

        assert!(judged.failures.is_empty(), "{:?}", judged.failures);
        judgements += judged.judged;
        if judged.judged == 0 {
            time += Duration::from_millis(1);
        }
        was_cut |= judged.is_cut;
        if world.told().len() == MANY && (is_replaced || judged.is_done()) {
            assert!(was_cut, "the time sufficed");
            return judgements;
        }
    }
    panic!("{} of {MANY} devices are told", world.told().len());
}

fn meter(number: usize, minute: i64, kwh: &str) -> Reading {
    given::reading(&format!("d{number}"), at(minute), Some("hall"), &[("cumulative_kwh_p", kwh)])
}

/// A world in which the budget of each of many meters is passed in a quarter that is sealed and not judged.
async fn many_beyond_their_budget() -> World {
    let rule = json!({"name": "Day", "room": "hall", "budget_kwh": 2.5, "per": "day"});
    let first: Vec<_> = (0..MANY).map(|number| meter(number, 1, "10")).collect();
    let world = World::new(rule, &first).await;
    world.put(&(0..MANY).map(|number| meter(number, 10, "13")).collect::<Vec<_>>()).await;
    world.seal_unjudged(QuarterHour::of(at(0)), at(40)).await;
    world
}

#[tokio::test]
async fn what_a_minute_has_no_time_for_goes_on_where_it_ended() {
    let mut world = many_beyond_their_budget().await;
    assert_eq!(judge_in_pieces(&mut world, at(40), false).await, MANY, "each is judged once");

    let rule = json!({"name": "Gone", "room": "hall", "silent_for": "10m"});
    let first: Vec<_> = (0..MANY).map(|number| sensor(number, 0)).collect();
    let mut world = World::new(rule, &first).await;
    assert_eq!(judge_in_pieces(&mut world, at(40), false).await, MANY, "each is judged once");
}

/// The table throttles a device, so its group is sealed and its quarter waits in the queue, perhaps until the next
/// quarter is folded. A mean without the device would be above the limit.
#[tokio::test]
async fn a_room_is_judged_by_no_mean_that_lacks_a_quarter_in_the_queue() {
    let reading = |device: &str, minute, value: &str| {
        given::reading(device, at(minute), Some("hall"), &[("temperature", value)])
    };
    let rule = json!({"name": "Air", "mean_of_room": "hall", "metric": "temperature", "above": 25});
    let group = sweep_group(&given::device("b"));
    let (of_b, others): (BTreeSet<_>, BTreeSet<_>) =
        (0..SWEEP_GROUPS).partition(|sealed| *sealed == group);

    for folded_after in [15, 30] {
        let first = [reading("a", -15, "30"), reading("b", -15, "10")];
        let world = World::new(rule.clone(), &first).await;
        world.seal(QuarterHour::of(at(-15)), at(11)).await;

        for start in [0, 15, 30, 45] {
            for minute in (start..start + 15).step_by(5) {
                // Above the limit together, in the last quarter.
                let of_b = if start == 45 { "40" } else { "10" };
                world.put(&[reading("a", minute, "30"), reading("b", minute, of_b)]).await;
            }
            let (quarter, now) = (QuarterHour::of(at(start)), at(start + 26));
            world.seal_groups(&others, quarter, now).await;
            if start == 15 {
                let waiting = Some(QueueDepth { messages: 1, at: now });
                let (end, given) = (quarter.end(), invocation());
                world.store.advance_sealed(&of_b, end, waiting, &given).await.expect("memory");
            } else {
                world.seal_groups(&of_b, quarter, now).await;
            }
            world.judge_sealed(now).await;
            let expected: &[News] = if start == 45 { &[News::Fired] } else { &[] };
            assert_eq!(world.news(), expected, "{start}: nobody knows the mean that waits");

            if start == folded_after {
                world.seal_groups(&of_b, QuarterHour::of(at(15)), now).await;
                world.judge_sealed(now).await;
                assert_eq!(world.news(), expected, "{start}");
            }
        }
    }
}

/// A rule on a group needs the list of the devices, and the table throttles it.
#[tokio::test(start_paused = true)]
async fn while_the_list_of_devices_is_throttled_rechecks_and_the_last_list_tell() {
    let home: Vec<_> = (0..30).map(|number| sensor(number, 0)).collect();
    let one = json!({"name": "Warm", "device": "d0", "metric": "temperature", "above": 1});
    let group = json!({"name": "G", "room": "loft", "metric": "temperature", "above": 100});
    for has_list in [false, true] {
        let world = World::new(one.clone(), &home).await;
        world.save(StoredRule { id: rule_id("g"), ..stored(1, group.clone(), at(-10)) }).await;
        let rules = world.rules(at(0)).await;
        if has_list {
            world.batch(&[given::reading("d1", at(-3), None, &[("humidity", "1")])], at(-3)).await;
        }
        world.store.throttle(|action, partition| {
            action == Action::Query && partition.starts_with("DEVICE")
        });

        let piece = Invocation::until(Deadline::after(Duration::from_secs(20)));
        let found = world.session(at(1), &piece).judge_batch(&by_device(&home)).await;
        assert_eq!(
            (found.judgements.judged, found.rechecks.len()),
            if has_list { (1, 0) } else { (1, 30) }
        );

        let piece = Invocation::until(Deadline::after(Duration::from_secs(20)));
        let target = given::device("d0").into();
        let recheck = Recheck { target, since: at(0), after: None, touch: 1 };
        let session = world.session(at(2), &piece);
        Box::pin(session.recheck(&rules, &recheck)).await.expect("the device is there");
        assert_eq!(world.news(), [News::Fired]);
        assert!(piece.remaining() >= Duration::from_secs(14), "others have their time");
    }
}

/// A process that has never read the list, and one whose list is too old.
#[tokio::test(start_paused = true)]
async fn while_the_list_of_devices_is_throttled_rules_that_name_a_device_are_judged() {
    let home: Vec<_> = (0..30).map(|number| meter(number, 1, "10")).collect();
    let named = json!({"name": "Gone", "device": "d0", "silent_for": "10m"});
    for has_list in [false, true] {
        let world = World::new(named.clone(), &home).await;
        for (id, members) in [
            ("day", json!({"name": "Day", "device": "d1", "budget_kwh": 2.5, "per": "day"})),
            ("hall", json!({"name": "Gone", "room": "hall", "silent_for": "10m"})),
            (
                "air",
                json!({"name": "Air", "mean_of_room": "hall", "metric": "cumulative_kwh_p", "above": 1}),
            ),
        ] {
            world.save(StoredRule { id: rule_id(id), ..stored(1, members, at(-10)) }).await;
        }
        if has_list {
            world.judge_silence(2).await;
        }
        world.put(&[meter(1, 10, "13")]).await;
        world.seal_unjudged(QuarterHour::of(at(0)), at(40)).await;
        let is_list =
            |action, partition: &str| action == Action::Query && partition.starts_with("DEVICE");
        world.store.throttle(is_list);

        let given = Invocation::until(Deadline::after(Duration::from_secs(20)));
        let session = world.session(at(40), &given);
        let mut judged = Box::pin(session.judge_silence()).await.expect("what it names is judged");
        judged.append(Box::pin(session.judge_sealed()).await.expect("what it names is judged"));
        let told: BTreeSet<_> =
            world.told().iter().map(|told| told.alert.rule.to_string()).collect();
        assert_eq!(told, ["day".to_owned(), "r".to_owned()].into(), "{has_list}");
        assert!(matches!(judged.unlisted, Some(StoreError::Throttled(_))), "{judged:?}");
        assert!(judged.unjudged.is_empty() && !judged.is_done(), "{has_list}: {judged:?}");
        assert!(given.remaining() >= Duration::from_secs(14), "the list is read once");

        world.store.end_troubles();
        let session = world.session(at(42), &given);
        let silence = Box::pin(session.judge_silence()).await.expect("memory");
        assert_eq!((silence.judged, silence.is_done()), (30, true));
        let sealed = Box::pin(session.judge_sealed()).await.expect("memory");
        assert_eq!((sealed.judged, sealed.is_done()), (1, true), "the mean: {sealed:?}");
    }
}

/// The last list is used for a quarter of an hour. Afterwards devices are not known, and what rested goes on resting.
#[tokio::test(start_paused = true)]
async fn a_device_that_cannot_be_silent_is_not_read_again_after_the_list_was_throttled() {
    let rule = json!({"name": "Gone", "room": "hall", "silent_for": "1h"});
    let sensors: Vec<_> = (0..30).map(|number| sensor(number, 0)).collect();
    let world = World::new(rule, &sensors).await;
    world.judge_silence(1).await;
    world
        .store
        .throttle(|action, partition| action == Action::Query && partition.starts_with("DEVICE"));
    let given = Invocation::until(Deadline::after(Duration::from_secs(20)));
    let session = world.session(at(20), &given);
    let judged = Box::pin(session.judge_silence()).await.expect("the list alone is not read");
    assert!(judged.unlisted.is_some());

    world.store.end_troubles();
    let reads = world.store.calls().reads;
    world.judge_silence(22).await;
    assert!(world.store.calls().reads - reads < 10, "the rules and the list");
}

/// `DynamoDB` throttles a partition as a whole: the list of the devices, and each device by itself.
#[tokio::test(start_paused = true)]
async fn while_all_devices_are_throttled_states_batches_and_rechecks_are_judged_by_the_last_list() {
    let home: Vec<_> = (0..30).map(|number| sensor(number, 0)).collect();
    let one =
        json!({"name": "Warm", "device": "d0", "metric": "temperature", "above": 30, "for": "5m"});
    let group =
        json!({"name": "G", "room": "hall", "metric": "temperature", "above": 30, "for": "5m"});
    let world = World::new(one, &home).await;
    world.save(StoredRule { id: rule_id("g"), ..stored(1, group, at(-10)) }).await;
    let hot: Vec<_> = (0..30).map(|number| warm(number, 2, "40")).collect();
    world.put(&hot).await;
    world.batch(&hot, at(2)).await;
    world.store.throttle(|_, partition| partition.starts_with("DEVICE"));

    let rules = world.rules(at(7)).await;
    let due = world.store.due_alert_states(at(7), None, 1_000, &invocation()).await;
    let part = Invocation::until(Deadline::after(Duration::from_secs(22)));
    let session = world.session(at(7), &part);
    Box::pin(session.judge_due(&rules, &due.expect("memory").listing.found)).await;
    assert_eq!(world.told().len(), 31);

    let recheck = |device: &str| Recheck {
        target: given::device(device).into(),
        since: at(2),
        after: None,
        touch: 1,
    };
    let report = Box::pin(session.recheck(&rules, &recheck("d0"))).await.expect("the last list");
    let report = report.expect("of a device");
    assert!(report.is_done() && report.judged == 2, "{report:?}");

    let batch =
        [warm(3, 8, "20"), given::reading("new", at(8), Some("hall"), &[("temperature", "41")])];
    world.put(&batch).await;
    let part = Invocation::until(Deadline::after(Duration::from_secs(20)));
    let found = world.session(at(8), &part).judge_batch(&by_device(&batch)).await;
    assert_eq!((found.judgements.judged, world.told().len()), (1, 32), "d3 is clear again");
    assert_eq!(found.rechecks.into_keys().collect::<Vec<_>>(), [given::device("new")]);

    // A process that has never read a list judges the rules that name the device.
    let world = World { judging: Judging::default(), ..world };
    let session = world.session(at(9), &part);
    let report =
        Box::pin(session.recheck(&rules, &recheck("d0"))).await.expect("one rule is judged");
    let report = report.expect("of a device");
    assert!(!report.is_done() && report.judged == 1, "{report:?}");
}

/// The table throttles a device, so the quarters of its group stay open.
#[tokio::test]
async fn a_group_that_is_not_sealed_holds_up_no_budget_and_no_room_of_other_groups() {
    const METERS: usize = 30;
    let budget = json!({"name": "Day", "room": "hall", "budget_kwh": 2.5, "per": "day"});
    let mut first: Vec<_> = (0..METERS).map(|number| meter(number, 1, "10")).collect();
    first.push(given::reading("air", at(1), Some("loft"), &[("temperature", "30")]));
    let world = World::new(budget, &first).await;
    let mean = json!({"name": "Air", "mean_of_room": "loft", "metric": "temperature", "above": 25});
    world.save(StoredRule { id: rule_id("mean"), ..stored(1, mean, at(-10)) }).await;
    world.seal(QuarterHour::of(at(-15)), at(12)).await;
    world.put(&(0..METERS).map(|number| meter(number, 10, "13")).collect::<Vec<_>>()).await;

    let open = sweep_group(&given::device("d0"));
    let is_open = |device: &Device| sweep_group(device.id()) == open;
    let later = world.devices().await.iter().filter(|device| is_open(device)).count();
    assert!(later < METERS / 2 && sweep_group(&given::device("air")) != open);
    let (opened, sealed) = (0..SWEEP_GROUPS).partition(|group| *group == open);
    world.seal_groups(&sealed, QuarterHour::of(at(0)), at(40)).await;
    world.judge_sealed(at(40)).await;
    assert_eq!(world.told().len(), METERS + 1 - later);

    world.seal_groups(&opened, QuarterHour::of(at(0)), at(40)).await;
    world.judge_sealed(at(40)).await;
    assert_eq!(world.told().len(), METERS + 1, "each once");
}

#[tokio::test]
async fn nothing_waits_for_ever_where_each_minute_has_a_new_process() {
    let mut world = many_beyond_their_budget().await;
    judge_in_pieces(&mut world, at(40), true).await;

    let rule = json!({"name": "Gone", "room": "hall", "silent_for": "10m"});
    let first: Vec<_> = (0..MANY).map(|number| sensor(number, 0)).collect();
    let mut world = World::new(rule, &first).await;
    judge_in_pieces(&mut world, at(40), true).await;
}

/// Judgements take their time, and three devices are throttled to the end of everybody's patience.
#[tokio::test(start_paused = true)]
async fn each_of_many_is_judged_before_one_that_fails_is_tried_again() {
    const DEVICES: usize = 600;
    let silence = json!({"name": "Gone", "room": "hall", "silent_for": "10m"});
    let breach =
        json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 1, "for": "5m"});
    for (seed, rule, is_due) in [(1, silence, false), (2, breach, true)] {
        fastrand::seed(seed);
        let sensors: Vec<_> = (1_000..1_000 + DEVICES).map(|number| sensor(number, 0)).collect();
        let world = World::new(rule, &sensors).await;
        if is_due {
            assert_eq!(world.batch(&sensors, at(0)).await, DEVICES);
        }
        let throttled = ["d1000", "d1300", "d1599"];
        world.store.throttle(move |action, partition| {
            action == Action::Query && throttled.contains(&partition)
        });
        world.store.slow_down(on(Action::Query, Target::Readings), Duration::from_millis(200));

        let rules = world.rules(at(20)).await;
        let (mut judged, mut tried) = (0, BTreeMap::new());
        while tried.len() < throttled.len() || tried.values().any(|attempts| *attempts < 2) {
            let given = Invocation::until(Deadline::after(Duration::from_secs(35)));
            let due = world.store.due_alert_states(at(20), None, 1_000, &invocation()).await;
            let due = due.expect("memory").listing.found;
            let session = world.session(at(20), &given);
            let report = if is_due {
                Box::pin(session.judge_due(&rules, &due)).await
            } else {
                Box::pin(session.judge_silence()).await.expect("memory")
            };
            judged += report.judged;
            for (key, _) in report.failures {
                let attempts: &mut usize = tried.entry(key.subject.to_string()).or_default();
                *attempts += 1;
                assert!(*attempts < 2 || world.told().len() == DEVICES - 3, "{}", key.subject);
            }
        }
        assert_eq!(judged, DEVICES - throttled.len(), "none twice");
    }
}

#[tokio::test]
async fn a_rule_on_devices_that_nobody_knows_is_named_and_a_counter_is_judged_by_looks() {
    let first: Vec<_> = (0..=MAX_CACHED_ENTRIES).map(|number| meter(number, 1, "10")).collect();
    let budget = json!({"name": "Day", "room": "hall", "budget_kwh": 2.5, "per": "day"});
    let mut world = World::new(budget, &first).await;

    for (members, is_unjudged) in [
        (json!({"name": "Day", "room": "hall", "budget_kwh": 2.5, "per": "day"}), true),
        (json!({"name": "Gone", "room": "hall", "silent_for": "10m"}), true),
        (json!({"name": "Cold", "mean_of_room": "hall", "metric": "t", "below": 5}), true),
        (
            json!({"name": "Reset", "room": "hall", "metric": "cumulative_kwh_p", "counter": ["reset"]}),
            false,
        ),
        (json!({"name": "Day", "device": "d1", "budget_kwh": 2.5, "per": "day"}), false),
    ] {
        let id = rule_id("r");
        assert!(world.store.delete_alert_rule(&id, &invocation()).await.expect("memory"));
        world.save(stored(1, members.clone(), at(-10))).await;
        world.judging = Judging::default();
        let given = invocation();
        let session = world.session(at(40), &given);
        let silence = Box::pin(session.judge_silence()).await;
        let mut judged = silence.expect("memory");
        let sealed = Box::pin(session.judge_sealed()).await;
        judged.append(sealed.expect("memory"));
        assert_eq!(!judged.unjudged.is_empty(), is_unjudged, "{members}");

        let rules = world.rules(at(40)).await;
        let looked = world.recheck(&rules, Rechecked::Device(given::device("d1")), at(40)).await;
        assert_eq!(looked.judged, usize::from(members["mean_of_room"].is_null()), "{members}");
    }
}

// ---- Budgets -----------------------------------------------------------------------------------

/// A counter of hundredths of a kWh, which stands still around midnight: no step belongs to two days.
#[tokio::test]
async fn a_budget_is_told_once_for_each_local_day_that_is_beyond_it() {
    let zone: Zone = ZONE.parse().expect("a zone");
    let (mut count, mut within) = (0, 0);
    for seed in 0..3 {
        let mut rng = Rng::with_seed(seed);
        let reading = |minute, hundredths: i64| {
            let kwh = format!("{}.{:02}", hundredths / 100, hundredths % 100);
            given::reading("meter", at(minute), None, &[("cumulative_kwh_p", &kwh)])
        };
        let rule = json!({"name": "Day", "device": "meter", "budget_kwh": 2.5, "per": "day"});
        let world = World::new(rule, &[reading(0, 1_000)]).await;
        let (mut counter, mut used) = (1_000, BTreeMap::<Timestamp, i64>::new());
        let mut most = 4;
        let mut beyond = BTreeMap::new();
        for quarter in 0..4 * 24 * 4 {
            let start = quarter * 15;
            for minute in [start, start + 5, start + 10].into_iter().filter(|it| *it > 0) {
                let day = CalendarUnit::Day.bucket_of(at(minute), zone);
                let is_near = at(minute).since(day.from()) < minutes(30)
                    || day.to().since(at(minute)) <= minutes(30);
                let step = if is_near { 0 } else { rng.i64(0..most) };
                most = if is_near { rng.i64(2..5) } else { most };
                counter += step;
                let so_far = used.entry(day.from()).or_default();
                *so_far += step;
                if *so_far > 250 {
                    beyond.entry(day.from()).or_insert(at(start));
                }
                world.put(&[reading(minute, counter)]).await;
            }
            world.seal(QuarterHour::of(at(start)), at(start + 40)).await;
        }
        let told: Vec<_> = world.since().into_iter().zip(world.times_told()).collect();
        let days: Vec<Timestamp> = told.iter().map(|it| it.0).collect();
        assert_eq!(days, beyond.keys().copied().collect::<Vec<_>>(), "{seed}: {used:?}");
        for (day, judged) in told {
            let happened = beyond[&day];
            assert!(judged.since(happened) <= minutes(40), "{seed}: {happened}, told {judged}");
        }
        count += beyond.len();
        within += used.len() - beyond.len();
    }
    assert!(count > 3 && within > 3, "{count} days beyond, {within} within");
}

/// The system stands still over midnight and hours of the next day.
#[tokio::test]
async fn a_day_that_ended_hours_ago_is_told_by_a_rule_that_was_there() {
    let members = json!({"name": "Day", "device": "d1", "budget_kwh": 2.5, "per": "day"});
    let midnight = at(300);
    for (saved, times) in [(at(-10), 1), (at(400), 0)] {
        let world = World::new(members.clone(), &[meter(1, 1, "10")]).await;
        world.save(stored(2, members.clone(), saved)).await;
        world.put(&[meter(1, 10, "13")]).await;

        let now = midnight.saturating_add(minutes(160));
        let mut quarter = QuarterHour::of(at(0));
        while quarter.end() < midnight.saturating_add(minutes(120)) {
            world.seal_unjudged(quarter, now).await;
            quarter = quarter.next();
        }
        world.seal(quarter, now).await;
        assert_eq!(world.since(), vec![at(-19 * 60); times], "saved at {saved}");
    }
}

// ---- Demand ------------------------------------------------------------------------------------

/// A power that is the same all through a period: what the period is heading for is that power.
async fn demand(seed: u64, limit: Value) {
    const POWERS: [i64; 7] = [400, 700, 1_100, 1_600, 2_500, 3_300, 4_400];
    let is_peak = limit == "peak";
    let mut rng = Rng::with_seed(seed);
    let reading = |minute, watts: i64| {
        given::reading("meter", at(minute), None, &[("current_w", &watts.to_string())])
    };
    let rule = json!({"name": "Peak", "device": "meter", "demand_kw": limit, "period": "15m"});
    let world = World::new(rule, &[reading(0, 1_100)]).await;
    let (mut highest, mut expected) = (None, Vec::new());
    for period in 0..20 {
        let mut watts = POWERS[rng.usize(..POWERS.len())];
        if Some(watts) == highest {
            // As high as the peak is a question of rounding.
            watts /= 2;
        }
        let is_beyond = if is_peak { highest.is_some_and(|it| watts > it) } else { watts > 2_000 };
        if is_beyond {
            expected.push(at(period * 15));
        }
        highest = highest.max(Some(watts));
        for minute in period * 15..(period + 1) * 15 {
            let readings = [reading(minute, watts)];
            world.put(&readings).await;
            let now = at(minute).saturating_add(TimeDelta::seconds(5));
            assert_eq!(world.batch(&readings, now).await, 1);
            if minute < period * 15 + 3 {
                let since = world.since();
                assert!(since.iter().all(|since| *since < at(period * 15)), "{seed}: early");
            }
        }
    }
    assert_eq!(world.since(), expected, "{seed}");
}

#[tokio::test]
async fn a_demand_is_told_once_a_period_that_heads_above_the_limit_or_the_peak_before() {
    for seed in 0..SCHEDULES {
        demand(seed, json!(2)).await;
        demand(seed, json!("peak")).await;
    }
}

// ---- Means of rooms ----------------------------------------------------------------------------

/// Two thermometers, and a third one in another room. One of the two may send nothing in a quarter.
#[tokio::test]
async fn a_mean_of_a_room_is_told_by_its_quarters() {
    let mut turns = 0;
    for seed in 0..SCHEDULES {
        let mut rng = Rng::with_seed(seed);
        let reading = |device: &str, minute, room, value: i64| {
            given::reading(device, at(minute), Some(room), &[("temperature", &value.to_string())])
        };
        let rule = json!({
            "name": "Air", "mean_of_room": "hall", "metric": "temperature", "above": 25, "clear": 24,
        });
        let first = [
            reading("a", -15, "hall", 20),
            reading("b", -15, "hall", 20),
            reading("c", -15, "loft", 40),
        ];
        let world = World::new(rule, &first).await;
        let (mut is_firing, mut expected) = (false, Vec::new());
        let mut level = 23;
        for quarter in 0..40 {
            let start = quarter * 15;
            level = (level + rng.i64(-2..3)).clamp(20, 28);
            // The sums of each device that sends.
            let mut sums = Vec::new();
            let missing = rng.u8(..6);
            for (number, device) in ["a", "b"].into_iter().enumerate() {
                if usize::from(missing) == number {
                    continue;
                }
                let values: Vec<i64> = (0..3).map(|_| level + rng.i64(-3..4)).collect();
                for (minute, value) in (start..).step_by(5).zip(&values) {
                    world.put(&[reading(device, minute, "hall", *value)]).await;
                }
                sums.push(values.iter().sum::<i64>());
            }
            world.put(&[reading("c", start, "loft", 40)]).await;
            // The mean, times the number of values.
            let (sum, count) = (sums.iter().sum::<i64>(), 3 * i64::from(sums.len() > 1) + 3);
            let turns = if is_firing {
                (sum <= 24 * count).then_some(News::Recovered)
            } else {
                (sum > 25 * count).then_some(News::Fired)
            };
            is_firing = turns.map_or(is_firing, News::is_firing);
            expected.extend(turns.map(|news| (news, at(start + 15))));
            world.seal(QuarterHour::of(at(start)), at(start + 40)).await;
        }
        let told = world.told();
        let told: Vec<_> = told
            .iter()
            .map(|it| (it.message.news, it.message.ended.unwrap_or(it.message.fired)))
            .collect();
        assert_eq!(told, expected, "{seed}");
        turns += told.len();
    }
    assert!(turns > 8, "{turns}");
}

/// The sweep stands still for two hours, and seals one quarter a minute then. The devices send all along, in breach of
/// the rule from the first reading on or not at all.
#[tokio::test]
async fn a_room_whose_quarters_are_sealed_late_is_not_silent() {
    for (no_data, value, expected) in
        [("fire", "20", &[][..]), ("clear", "30", &[News::Fired]), ("keep", "30", &[News::Fired])]
    {
        let rule = json!({
            "name": "Air", "mean_of_room": "hall", "metric": "temperature", "above": 25,
            "no_data": no_data,
        });
        let world = World::new(rule, &[warm(1, -15, value)]).await;
        for minute in (0..200).step_by(5) {
            world.put(&[warm(1, minute, value)]).await;
        }
        for start in [0, 15, 30] {
            world.seal(QuarterHour::of(at(start)), at(start + 26)).await;
        }
        for minute in 57..200 {
            world.due(at(minute)).await;
        }
        for (start, minute) in (45..180).step_by(15).zip(200..) {
            world.seal(QuarterHour::of(at(start)), at(minute)).await;
        }
        let news: Vec<News> = world.told().iter().map(|told| told.message.news).collect();
        assert_eq!(news, expected, "{no_data}");

        let rule = world.rules(at(208)).await.rules[0].definition.clone();
        let hall = AlertSubject::Room(domain::given::room("hall"));
        let previewed = world.previewed((&rule, &hall), 0, at(300)).await;
        assert_eq!(previewed.len(), expected.len(), "{no_data}: {previewed:?}");
    }
}

/// The last mean is of the end of the first quarter. The quarter that is sealed three hours later tells the silence.
#[tokio::test]
async fn a_silent_room_is_told_with_the_first_quarter_that_is_sealed_three_hours_after_its_last_mean()
 {
    let rule = json!({
        "name": "Air", "mean_of_room": "hall", "metric": "temperature", "above": 25,
        "no_data": "fire",
    });
    let world = World::new(rule, &[warm(1, -15, "20"), warm(1, 5, "20")]).await;
    for start in (0..=180).step_by(15) {
        world.seal(QuarterHour::of(at(start)), at(start + 26)).await;
    }
    assert_eq!((world.times_told(), world.since()), (vec![at(206)], vec![at(195)]));
}

/// A sensor of the hall sends each 65 minutes.
#[tokio::test]
async fn a_mean_holds_until_the_next_reading_of_a_sensor_that_sends_seldom() {
    let rule = json!({
        "name": "Damp", "mean_of_room": "hall", "metric": "temperature", "above": 25, "for": "2h",
    });
    let world = World::new(rule, &[warm(1, -15, "30")]).await;
    for minute in (0..300).step_by(65) {
        world.put(&[warm(1, minute, "30")]).await;
    }
    world.seal_up_to(at(300), at(326)).await;
    assert_eq!((world.news(), world.since()), (vec![News::Fired], vec![at(0)]));
}

/// Quarters of the hall are folded again after four hours: a false value is deleted, or one comes late. All that follows
/// lies between the limits.
#[tokio::test]
async fn a_mean_whose_past_changes_is_judged_anew_within_an_hour() {
    let false_value = warm(1, 20, "30");
    for (first, expected) in
        [(Some(&false_value), vec![News::Fired, News::TakenBack]), (None, vec![News::Fired])]
    {
        let rule = json!({
            "name": "Air", "mean_of_room": "hall", "metric": "temperature", "above": 25, "clear": 20,
        });
        let world = World::new(rule, &[warm(1, -15, "15")]).await;
        world.put(first.map(std::slice::from_ref).unwrap_or_default()).await;
        for minute in (30..330).step_by(10) {
            world.put(&[warm(1, minute, "22")]).await;
        }
        world.seal_up_to(at(240), at(266)).await;
        assert_eq!(world.news().len(), usize::from(first.is_some()));

        match first {
            Some(found) => {
                world.store.delete_readings(&[ReadingKey::of(found)], &invocation()).await;
            }
            None => world.put(std::slice::from_ref(&false_value)).await,
        }
        let groups = (0..SWEEP_GROUPS).collect();
        world.seal_groups(&groups, QuarterHour::of(at(20)), at(268)).await;
        for start in (240..=300).step_by(15) {
            world.seal(QuarterHour::of(at(start)), at(start + 26)).await;
        }
        assert_eq!(world.news(), expected);
    }
}

/// The room has a false quarter at 20 minutes and values between the limits since. It fires for longer than a day.
#[tokio::test]
async fn a_mean_that_fires_for_days_is_taken_back_when_what_it_fires_for_is_deleted() {
    let false_value = warm(1, 20, "30");
    let rule = json!({
        "name": "Air", "mean_of_room": "hall", "metric": "temperature", "above": 25, "clear": 20,
    });
    let world = World::new(rule, &[warm(1, -15, "15"), false_value.clone()]).await;
    let last = 30 * 60;
    for minute in (30..last + 120).step_by(10) {
        world.put(&[warm(1, minute, "22")]).await;
    }
    world.seal_up_to(at(last), at(last + 26)).await;
    assert_eq!(world.news(), [News::Fired]);

    world.store.delete_readings(&[ReadingKey::of(&false_value)], &invocation()).await;
    let groups = (0..SWEEP_GROUPS).collect();
    world.seal_groups(&groups, QuarterHour::of(at(20)), at(last + 27)).await;
    for start in (last..last + 90).step_by(15) {
        world.seal(QuarterHour::of(at(start)), at(start + 26)).await;
    }
    assert_eq!(world.news(), [News::Fired, News::TakenBack]);
}

/// As on a laptop that wakes for minutes: several quarters are sealed, and judged together.
#[tokio::test]
async fn a_mean_looks_at_its_past_though_no_sealed_quarter_ends_at_a_whole_hour() {
    let false_value = warm(1, 20, "30");
    let rule = json!({
        "name": "Air", "mean_of_room": "hall", "metric": "temperature", "above": 25, "clear": 20,
    });
    let world = World::new(rule, &[warm(1, -15, "15"), false_value.clone()]).await;
    for minute in (30..600).step_by(10) {
        world.put(&[warm(1, minute, "22")]).await;
    }
    world.seal_up_to(at(240), at(266)).await;
    world.store.delete_readings(&[ReadingKey::of(&false_value)], &invocation()).await;
    let groups = (0..SWEEP_GROUPS).collect();
    world.seal_groups(&groups, QuarterHour::of(at(20)), at(268)).await;

    for start in (240..=300).step_by(15) {
        world.seal_unjudged(QuarterHour::of(at(start)), at(start + 26)).await;
    }
    world.judge_sealed(at(326)).await;
    assert_eq!(world.news(), [News::Fired, News::TakenBack]);
}

/// The only sensor of the room is moved elsewhere.
#[tokio::test]
async fn a_mean_whose_last_device_leaves_is_taken_back() {
    let rule = json!({
        "name": "Air", "mean_of_room": "hall", "metric": "temperature", "above": 25, "clear": 20,
    });
    let world = World::new(rule, &[warm(1, -15, "15")]).await;
    for minute in (0..300).step_by(15) {
        world.put(&[warm(1, minute, "30")]).await;
    }
    world.seal_up_to(at(240), at(266)).await;
    assert_eq!(world.news(), [News::Fired]);

    world.move_to("d1", "shed", at(267)).await;
    let world = World { judging: Judging::default(), ..world };
    world.due(at(240 + 120)).await;
    world.due(at(240 + 240)).await;
    assert_eq!(world.news(), [News::Fired, News::TakenBack]);
}

/// The look at the past is throttled once, to the end of its patience.
#[tokio::test(start_paused = true)]
async fn what_is_new_of_a_mean_is_told_though_the_look_at_its_past_is_throttled() {
    let rule = json!({
        "name": "Air", "mean_of_room": "hall", "metric": "temperature", "above": 25, "clear": 20,
    });
    let world = World::new(rule, &[warm(1, -15, "15")]).await;
    for minute in (0..240).step_by(15) {
        world.put(&[warm(1, minute, "22")]).await;
    }
    world.seal_up_to(at(225), at(251)).await;
    world.put(&[warm(1, 240, "30")]).await;
    world.seal_unjudged(QuarterHour::of(at(225)), at(266)).await;
    world.seal_unjudged(QuarterHour::of(at(240)), at(266)).await;

    let queries = AtomicUsize::new(0);
    world.store.throttle(move |action, partition| {
        let is_rollup = action == Action::Query && partition.starts_with("ROLLUP#");
        is_rollup && queries.fetch_add(1, Ordering::Relaxed) == 0
    });
    let given = Invocation::until(Deadline::after(Duration::from_secs(20)));
    let judged = Box::pin(world.session(at(266), &given).judge_sealed()).await;
    assert!(judged.expect("memory").is_done());
    assert_eq!(world.news(), [News::Fired]);
}

// ---- Previews ----------------------------------------------------------------------------------

const LIMITS: (i64, i64) = (30, 25);
const LAST: i64 = 12 * 60;

/// A thermometer that sends every so many minutes, about, and is warm, cold or between the limits for a while.
fn thermometer(rng: &mut Rng) -> Vec<(i64, i64)> {
    let interval = *rng.choice(&[1, 1, 4, 15, 20, 60]).expect("some");
    let is_calm = rng.bool();
    let (mut minute, mut left, mut value) = (0, 0, 20);
    let mut sent = Vec::new();
    while minute < LAST {
        if left == 0 {
            (left, value) = (rng.u8(1..9), *rng.choice(&[20, 20, 27, 31, 31]).expect("some"));
        }
        left -= 1;
        sent.push((minute, value));
        let is_pausing = rng.u8(..if is_calm { 60 } else { 5 }) == 0;
        let pauses = if interval < 20 { &[5, 8, 11, 20, 70, 180][..] } else { &[180] };
        let pause = if is_pausing { *rng.choice(pauses).expect("some") } else { 0 };
        minute += 1.max(interval + rng.i64(-interval / 3..=interval / 3)) + pause;
    }
    sent
}

/// The episodes, second by second: since when, when each fired, and when it ended.
fn episodes(
    sent: &[(i64, i64)],
    (hold, clear_time): (i64, i64),
    (silent_after, no_data): (TimeDelta, &str),
) -> Vec<(Timestamp, Timestamp, Option<Timestamp>)> {
    let values: BTreeMap<i64, i64> = sent.iter().map(|(at, value)| (at * 60, *value)).collect();
    let (mut breach, mut fired, mut clear): (Option<i64>, Option<i64>, Option<i64>) =
        Default::default();
    let mut silent_at = None;
    let mut found: Vec<(i64, i64, Option<i64>)> = Vec::new();
    for second in 0..LAST * 60 {
        // The clock is before the reading of an instant, and after it where nothing has to last. A silence may fire at
        // once.
        for pass in 0..4 {
            if pass == 2
                && let Some(value) = values.get(&second)
            {
                silent_at = Some(second * 1_000 + silent_after.num_milliseconds());
                if *value > LIMITS.0 {
                    breach = breach.or(Some(second));
                    clear = None;
                } else if *value <= LIMITS.1 {
                    clear = fired.and(clear.or(Some(second)));
                    breach = fired.and(breach);
                }
            }
            let due_at = breach.filter(|_| fired.is_none()).map(|it| it + hold * 60);
            let ends = clear.map(|it| it + clear_time * 60);
            let turn = due_at.or(ends).filter(|it| *it <= second);
            let silence = silent_at.filter(|it| *it <= second * 1_000);
            if turn.is_some_and(|turn| silence.is_none_or(|silence| turn * 1_000 <= silence)) {
                if due_at.is_some() {
                    fired = Some(second);
                    found.push((breach.expect("it began"), second, None));
                } else {
                    found.last_mut().expect("it fired").2 = Some(second);
                    (breach, fired, clear) = Default::default();
                }
            }
            if silence.is_some() {
                silent_at = None;
                if no_data == "fire" {
                    breach = breach.or(Some(second));
                    clear = None;
                } else {
                    clear =
                        if no_data == "clear" { fired.and(clear.or(Some(second))) } else { None };
                    breach = fired.and(breach);
                }
            }
        }
    }
    let time = |second: i64| at(0).saturating_add(TimeDelta::seconds(second));
    let shown = |it: (i64, i64, Option<i64>)| (time(it.0), time(it.1), it.2.map(time));
    found.into_iter().map(shown).collect()
}

/// A preview has the episodes of all readings, however seldom a device sends and how often it is silent.
#[tokio::test]
async fn a_preview_has_the_episodes_of_all_readings() {
    let (mut all, mut ended, mut cut) = (0, 0, 0);
    for seed in 0..16 * SCHEDULES {
        let mut rng = Rng::with_seed(seed);
        let sent = thermometer(&mut rng);
        let readings: Vec<_> = sent
            .iter()
            .map(|(minute, value)| {
                let metrics = [("temperature", &*value.to_string())];
                given::reading("d", at(*minute), Some("hall"), &metrics)
            })
            .collect();
        let mut hold = || *rng.choice(&[0, 0, 5, 20, 90]).expect("some");
        let (hold, clear_time) = (hold(), hold());
        let no_data = *rng.choice(&["keep", "keep", "fire", "clear"]).expect("some");
        let silent_for = (seed % 4 == 3).then(|| *rng.choice(&[5, 10, 20, 70]).expect("some"));
        let (hold, clear_time, no_data) = match silent_for {
            Some(_) => (0, 0, "fire"),
            None => (hold, clear_time, no_data),
        };
        let rule = match silent_for {
            Some(minutes) => {
                json!({"name": "Gone", "device": "d", "silent_for": format!("{minutes}m")})
            }
            None => json!({
                "name": "Warm", "device": "d", "metric": "temperature", "above": LIMITS.0, "clear": LIMITS.1,
                "for": format!("{hold}m"), "clear_for": format!("{clear_time}m"), "no_data": no_data,
            }),
        };
        let world = World::new(rule.clone(), &readings[..1]).await;
        world.put(&readings).await;
        let now = at(LAST);
        world.seal_up_to(at(LAST - 45), now).await;
        let given = &invocation();
        let device: DeviceId = given::device("d");
        let session = world.session(now, given);
        let limit = session.silent_after(&Watch::Silence { after: None }, &device).await;
        let limit = limit.expect("memory");
        let rule = rule_of(rule, at(-10));
        let asked = (&rule, &AlertSubject::Device(device));
        let preview = world.previewed(asked, 0, now).await;
        let told: Vec<_> = preview.iter().map(|it| (it.since, it.fired, it.ended)).collect();
        let limit = silent_for.map_or(limit, minutes);
        // To a rule about silence each reading is clear.
        let seen = sent.iter().map(|(at, value)| (*at, silent_for.map_or(*value, |_| 20)));
        let seen: Vec<_> = seen.collect();
        let expected = episodes(&seen, (hold, clear_time), (limit, no_data));
        assert_eq!(told, expected, "{seed}: {rule:?}, {limit}, {sent:?}");
        // Whatever the range begins with, an episode that reaches into it began when it did.
        for _ in 0..8 {
            let from = rng.i64(1..LAST);
            let preview = world.previewed(asked, from, now).await;
            let told: Vec<_> = preview.iter().map(|it| (it.since, it.fired, it.ended)).collect();
            let reaching = expected.iter().filter(|it| it.2.is_none_or(|end| end > at(from)));
            let reaching: Vec<_> = reaching.copied().collect();
            assert_eq!(told, reaching, "{seed}: from {from}, {rule:?}, {limit}, {sent:?}");
            cut += reaching.iter().filter(|it| it.0 < at(from)).count();
        }
        all += told.len();
        ended += told.iter().filter(|it| it.2.is_some()).count();
    }
    assert!(ended > 40 && all > ended && cut > 10, "{all}, {ended}, {cut}");
}

/// A breach that is on for days began when it did, in a device and in the mean of its room.
#[tokio::test]
async fn a_preview_looks_back_to_the_begin_of_a_breach() {
    let reading = |quarter: i64| {
        let value = if (0..280).contains(&quarter) { "31" } else { "20" };
        given::reading("d", at(quarter * 15), Some("hall"), &[("temperature", value)])
    };
    let readings: Vec<_> = (-4..320).map(reading).collect();
    for (subject, told, times) in
        [("device", "device:d", (0, 60)), ("mean_of_room", "room:hall", (15, 75))]
    {
        let named = if subject == "device" { "d" } else { "hall" };
        let rule = json!({"name": "Warm", subject: named, "metric": "temperature", "above": 30, "for": "1h"});
        let world = World::new(rule.clone(), &readings[..1]).await;
        world.put(&readings).await;
        let now = at(79 * 60);
        world.seal_up_to(now, now).await;
        let rule = rule_of(rule, at(-10));
        let subject: AlertSubject = told.parse().expect("a subject");
        for from in [-60, 1, 45, 400, 1_500, 69 * 60] {
            let found = world.previewed((&rule, &subject), from, now).await;
            let times_of: Vec<_> = found.iter().map(|it| (it.since, it.fired)).collect();
            assert_eq!(times_of, [(at(times.0), at(times.1))], "{told} from {from}: {found:?}");
        }
    }
}

/// Between `clear` and the limit nothing ends, and nothing tells when it began but what was before.
#[tokio::test]
async fn a_preview_looks_back_over_what_is_neither_clear_nor_a_breach() {
    let reading = |hour: i64, minute: i64| {
        let value = match hour {
            ..0 => "20",
            0 => "31",
            _ => "25",
        };
        given::reading("d", at(hour * 60 + minute), Some("hall"), &[("temperature", value)])
    };
    for minutes in [vec![0, 20, 40], vec![50]] {
        let hours = -1..150;
        let readings: Vec<_> =
            hours.flat_map(|hour| minutes.iter().map(move |it| reading(hour, *it))).collect();
        let rule = json!({"name": "Warm", "device": "d", "metric": "temperature", "above": 30, "clear": 21});
        let world = World::new(rule.clone(), &readings[..1]).await;
        world.put(&readings).await;
        let now = at(150 * 60);
        world.seal_up_to(now, now).await;
        let rule = rule_of(rule, at(-10));
        let subject = AlertSubject::Device(given::device("d"));
        for from in [-60, 61, 600, 26 * 60, 140 * 60] {
            let found = world.previewed((&rule, &subject), from, now).await;
            let since: Vec<_> = found.iter().map(|it| it.since).collect();
            assert_eq!(since, [at(minutes[0])], "{minutes:?} from {from}");
        }
    }
}

/// The highest of a month is that since its start, wherever the range begins.
#[tokio::test]
async fn a_preview_of_a_demand_knows_the_month_s_highest() {
    const DAY: i64 = 1_440;
    // The first is in March, the others are in April.
    let periods = [(DAY, 8), (5 * DAY, 1), (6 * DAY, 5), (8 * DAY, 3), (8 * DAY + 60, 4)];
    let readings = periods.iter().flat_map(|(start, kilowatts)| {
        [0, 5, 10, 15].map(|minute| {
            let watts = if minute < 15 { kilowatts * 1_000 } else { 0 };
            let metrics = [("current_w", &*watts.to_string())];
            given::reading("dem", at(start + minute), Some("hall"), &metrics)
        })
    });
    let readings: Vec<_> = readings.collect();
    let rule = json!({"name": "Peak", "device": "dem", "demand_kw": "peak", "period": "15m"});
    let world = World::new(rule.clone(), &readings).await;
    let rule = rule_of(rule, at(-10));
    let subject = AlertSubject::Device(given::device("dem"));
    let now = at(10 * DAY);
    for (from, expected) in [(0, vec![6 * DAY]), (5 * DAY, vec![6 * DAY]), (7 * DAY, vec![])] {
        let found = world.previewed((&rule, &subject), from, now).await;
        let since: Vec<_> = found.iter().map(|it| it.since).collect();
        assert_eq!(since, expected.into_iter().map(at).collect::<Vec<_>>(), "from {from}");
    }
}

/// What a counter says while its device boots is no value, neither when it comes nor afterwards.
#[tokio::test]
async fn a_counter_s_zero_is_no_breach() {
    let reading = |minute: i64| {
        let value = if (100..110).contains(&minute) { 0 } else { 50 + minute };
        let metrics = [("cumulative_kwh_p", &*value.to_string())];
        given::reading("m", at(minute), Some("hall"), &metrics)
    };
    let readings: Vec<_> = (0..120).map(reading).collect();
    for (edge, is_told) in [("5", false), ("60", true)] {
        let rule =
            json!({"name": "Low", "device": "m", "metric": "cumulative_kwh_p", "below": edge});
        let world = World::new(rule.clone(), &readings[..1]).await;
        let asked = rule_of(rule, at(-10));
        let subject = AlertSubject::Device(given::device("m"));
        for (minute, reading) in readings.iter().enumerate() {
            world.put(std::slice::from_ref(reading)).await;
            let now = at(i64::try_from(minute).expect("small"));
            world.batch(std::slice::from_ref(reading), now).await;
        }
        assert_eq!(!world.told().is_empty(), is_told, "{edge}: {:?}", world.told());
        let now = at(120);
        let fresh = world.previewed((&asked, &subject), 0, now).await;
        world.seal_up_to(now, now).await;
        let rolled_up = world.previewed((&asked, &subject), 0, now).await;
        assert_eq!(fresh, rolled_up, "{edge}");
        let times: Vec<_> = fresh.iter().map(|it| (it.since, it.ended)).collect();
        let expected = if is_told { vec![(at(0), Some(at(10)))] } else { vec![] };
        assert_eq!(times, expected, "{edge}");
    }
}

/// Behind any number of other steps, and not before its time has come.
#[tokio::test]
async fn a_step_of_a_counter_is_found_among_others_and_not_ahead_of_time() {
    let reading = |minute: i64, value: i64| {
        let metrics = [("cumulative_kwh_p", &*format!("{}.{}", value / 10, value % 10))];
        given::reading("m", at(minute), Some("hall"), &metrics)
    };
    // Each second reading falls by the last digit.
    let mut readings: Vec<_> = (0..2_600)
        .map(|n| reading(n, if n < 2_300 { 10_000 + n - n % 2 * 2 } else { n - 2_295 }))
        .collect();
    readings.push(reading(4_000, 1));
    let rule =
        json!({"name": "Reset", "device": "m", "metric": "cumulative_kwh_p", "counter": ["reset"]});
    let world = World::new(rule.clone(), &readings[..1]).await;
    world.put(&readings).await;
    let rule = rule_of(rule, at(-10));
    let id: DeviceId = given::device("m");
    let subject = AlertSubject::Device(id.clone());
    for (to, expected) in [(2_299, vec![]), (2_700, vec![2_300]), (4_001, vec![2_300, 4_000])] {
        let found = world.previewed((&rule, &subject), 0, at(to)).await;
        let since: Vec<_> = found.iter().map(|it| it.since).collect();
        assert_eq!(since, expected.into_iter().map(at).collect::<Vec<_>>(), "up to {to}");
    }
    let rules = world.rules(at(2_700)).await;
    for (now, told) in [(at(2_700), at(2_300)), (at(4_000), at(4_000))] {
        assert!(world.recheck(&rules, id.clone().into(), now).await.is_done());
        let last = world.told().last().map(|it| it.message.since);
        assert_eq!(last, Some(told));
    }
}

/// Without the rollup of its quarter, the first reading after the quarter seems to be the reset.
#[tokio::test]
async fn a_reset_in_a_quarter_that_waits_in_the_queue_is_told_once_and_when_it_was() {
    let rule = json!({"name": "Reset", "device": "d1", "metric": "cumulative_kwh_p", "counter": ["reset"]});
    let world = World::new(rule, &[meter(1, 0, "10")]).await;
    let values = ["10.1", "10.2", "10.3", "0.1", "0.2", "0.3", "0.4", "0.5"];
    for (minute, value) in (5..).step_by(5).zip(values) {
        world.put(&[meter(1, minute, value)]).await;
    }

    let quarter = |start| QuarterHour::of(at(start));
    world.seal(quarter(-15), at(11)).await;
    world.seal(quarter(0), at(26)).await;
    let waiting = Some(QueueDepth { messages: 1, at: at(41) });
    let (groups, end, given) = ((0..SWEEP_GROUPS).collect(), quarter(15).end(), invocation());
    world.store.advance_sealed(&groups, end, waiting, &given).await.expect("memory");
    world.judge_sealed(at(41)).await;
    assert_eq!(world.since(), [at(20)], "told before the quarter was over, and not again");

    world.seal_unjudged(quarter(15), at(50)).await;
    world.seal(quarter(30), at(56)).await;
    assert_eq!(world.since(), [at(20)]);
}

/// A late or deleted reading moves the end of the step.
#[tokio::test]
async fn a_reset_whose_end_moves_is_told_once() {
    let rule = json!({"name": "Reset", "device": "d1", "metric": "cumulative_kwh_p", "counter": ["reset"]});
    let world = World::new(rule, &[meter(1, 0, "10")]).await;
    let put = async |minute, value| world.put(&[meter(1, minute, value)]).await;
    for (minute, value) in [(5, "10.1"), (10, "10.2"), (20, "0.3"), (25, "0.4"), (35, "0.5")] {
        put(minute, value).await;
    }
    let quarter = |start| QuarterHour::of(at(start));
    world.seal(quarter(0), at(26)).await;
    let seal = async |now| {
        for start in [0, 15] {
            world.seal_groups(&(0..SWEEP_GROUPS).collect(), quarter(start), at(now)).await;
        }
        let rules = world.rules(at(now)).await;
        assert!(world.recheck(&rules, given::device("d1").into(), at(now)).await.is_done());
        world.since()
    };
    assert_eq!(seal(41).await, [at(20)]);

    put(18, "0.2").await;
    put(12, "0.1").await;
    assert_eq!(seal(43).await, [at(20)], "it was at 12");

    let earlier = ReadingKey { at: at(12), device: given::device("d1") };
    world.store.delete_readings(&[earlier], &invocation()).await;
    assert_eq!(seal(45).await, [at(20)], "it was at 18");

    put(7, "0.1").await;
    assert_eq!(seal(47).await, [at(20), at(7)], "another one before");
}

/// Until the rollup of its quarter follows, nobody finds the step that the rollup has.
#[tokio::test]
async fn a_reset_that_is_told_and_deleted_is_not_told_again() {
    let rule = json!({"name": "Reset", "device": "d1", "metric": "cumulative_kwh_p", "counter": ["reset"]});
    let world = World::new(rule, &[meter(1, 0, "100")]).await;
    for (minute, value) in [(10, "100.1"), (16, "100.2"), (20, "0.1"), (25, "100.3")] {
        world.put(&[meter(1, minute, value)]).await;
    }
    world.seal_up_to(at(30), at(41)).await;
    assert_eq!(world.since(), [at(20)]);

    let wrong = ReadingKey { at: at(20), device: given::device("d1") };
    world.store.delete_readings(&[wrong], &invocation()).await;
    let rules = world.rules(at(42)).await;
    assert!(world.recheck(&rules, given::device("d1").into(), at(42)).await.is_done());
    assert_eq!(world.since(), [at(20)]);
}

/// A person ends a pause, and an instance judges a breach that does not know it yet.
#[tokio::test]
async fn an_alert_that_an_ended_pause_held_back_is_told_within_minutes() {
    let paused = |version, until| {
        let members = json!({"name": "Leak", "device": "d1", "metric": "temperature", "above": 30});
        let mut rule = stored(version, members, at(-10));
        rule.definition.paused_until = until;
        rule
    };
    let world =
        World::new(json!({"name": "Any", "device": "d2", "silent_for": "7d"}), &[sensor(1, 0)])
            .await;
    world.save(paused(2, Some(at(120)))).await;
    world.rules(at(20)).await;

    world.save(paused(3, None)).await;
    let hot = [warm(1, 20, "40")];
    world.put(&hot).await;
    world.batch(&hot, at(20).saturating_add(TimeDelta::seconds(40))).await;
    assert!(world.told().is_empty());

    for now in 21..24 {
        world.due(at(now)).await;
    }
    assert_eq!(world.times_told(), [at(23)]);
}

/// The sum of a room's powers is that of its series: what a meter measures too counts while the meter is elsewhere.
#[tokio::test]
async fn a_sum_of_a_room_has_nothing_twice() {
    let reading = |device: &str, minute: i64, room: &str, watts: i64| {
        given::reading(device, at(minute), Some(room), &[("current_w", &*watts.to_string())])
    };
    // The plug is behind a submeter in another room, which is behind the meter. That comes after two hours.
    let of_minute = |minute: i64| {
        let room = if minute < 120 { "cellar" } else { "hall" };
        [
            reading("meter", minute, room, 1_000),
            reading("plug", minute, "hall", 400),
            reading("sub", minute, "loft", 500),
        ]
    };
    let readings: Vec<_> = (-15..240).flat_map(of_minute).collect();
    let rule = json!({"name": "Sum", "mean_of_room": "hall", "metric": "current_w", "above": 300});
    let world = World::new(rule.clone(), &readings).await;
    for (device, meter) in [("plug", "sub"), ("sub", "meter")] {
        let behind = Edit::Set(meter.parse().expect("an id"));
        let patch = DevicePatch { behind, ..DevicePatch::default() };
        let id = device.parse().expect("an id");
        let edited = world.store.edit_device(&id, &patch, at(0), &invocation()).await;
        assert!(matches!(edited, Ok(UpdateOutcome::Updated(_))), "{edited:?}");
    }
    let now = at(240);
    world.seal_up_to(now, now).await;
    let subject: AlertSubject = "room:hall".parse().expect("a subject");
    for (above, expected) in [(300, vec![(0, None)]), (500, vec![(135, None)]), (1_200, vec![])] {
        let mut rule = rule.clone();
        rule["above"] = above.into();
        let rule = rule_of(rule, at(-10));
        let found = world.previewed((&rule, &subject), 0, now).await;
        let times: Vec<_> = found.iter().map(|it| (it.since, it.ended)).collect();
        let expected: Vec<_> =
            expected.into_iter().map(|(since, ended)| (at(since), ended)).collect();
        assert_eq!(times, expected, "above {above}");
    }
}

// ---- Bounds ------------------------------------------------------------------------------------

/// Batches are judged by a rule on a thousand devices; by one on more, rechecks of sealed quarters are, and what comes
/// after that. The first quarter is sealed after 26 minutes, or 25 by a clock that is a minute ahead.
#[tokio::test]
async fn a_rule_on_more_than_a_thousand_devices_is_judged_by_looks_and_late_readings() {
    for number in [MAX_FEW, MAX_FEW + 1, MAX_CACHED_ENTRIES + 1] {
        let are_few = number == MAX_FEW;
        let first: Vec<_> = (0..number).map(|device| sensor(device, 0)).collect();
        let rule = json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 30});
        let world = World::new(rule, &first).await;
        let hot = [warm(7, 1, "31")];
        world.put(&hot).await;
        assert_eq!(world.batch(&hot, at(1)).await, usize::from(are_few));
        assert_eq!(world.told().len(), usize::from(are_few));
        let rules = world.rules(at(2)).await;
        assert_eq!(world.recheck(&rules, hot[0].device.clone().into(), at(2)).await.judged, 1);
        assert_eq!(world.told().len(), 1);
        for (device, now, is_late) in
            [(8, 24, false), (9, 25, true), (10, 26, true), (11, 40, true)]
        {
            let late = [warm(device, 1, "31")];
            world.put(&late).await;
            let judged = world.batch(&late, at(now)).await;
            assert_eq!(judged, usize::from(are_few || is_late), "{number} devices, minute {now}");
        }
        assert_eq!(world.told().len(), if are_few { 5 } else { 4 });
    }
}

/// A door sends that it is open once, and each half hour its battery.
#[tokio::test]
async fn a_breach_of_two_days_ago_still_fires_when_the_rule_is_saved_or_edited() {
    const NOW: i64 = 2 * 1_440;
    let door = given::reading("d1", at(0), None, &[("open", "1")]);
    let battery = |minute| given::reading("d1", at(minute), None, &[("battery_pct", "80")]);
    let batteries: Vec<_> = (1..NOW / 30).map(|n| battery(n * 30)).collect();
    let rule = |name: &str| json!({"name": name, "device": "d1", "metric": "open", "above": 0});
    let world = World::new(rule("Door"), std::slice::from_ref(&door)).await;
    world.put(&batteries).await;

    let first = stored(2, rule("Door"), at(NOW));
    let renamed = stored(3, rule("The door"), at(NOW + 1));
    for (rule, now) in [(first, NOW), (renamed, NOW + 1)] {
        world.save(rule.clone()).await;
        let judged = world.session(at(now), &invocation()).judge_saved(&rule).await;
        assert_eq!(judged.expect("memory").judged, 1);
        assert_eq!((world.news(), world.since()), (vec![News::Fired], vec![at(0)]));
    }

    // The door is closed, and the rule is saved anew a day later.
    let closed = [given::reading("d1", at(NOW + 2), None, &[("open", "0")])];
    world.put(&closed).await;
    world.batch(&closed, at(NOW + 2)).await;
    assert_eq!(world.news(), [News::Fired, News::Recovered]);
    let later = stored(4, rule("Door"), at(2 * NOW));
    world.save(later.clone()).await;
    let judged = world.session(at(2 * NOW), &invocation()).judge_saved(&later).await;
    assert_eq!(judged.expect("memory").judged, 1);
    assert_eq!(world.news(), [News::Fired, News::Recovered]);
}

/// The judgement failed when the rule was judged on all its devices, and nothing has judged the device since.
#[tokio::test]
async fn the_recheck_that_a_saved_rule_hands_on_finds_a_breach_of_two_days_ago() {
    const NOW: i64 = 2 * 1_440;
    let rule = json!({"name": "Door", "device": "d1", "metric": "open", "above": 0});
    let world = World::new(rule, &[given::reading("d1", at(0), None, &[("open", "1")])]).await;
    let battery = |minute| given::reading("d1", at(minute), None, &[("battery_pct", "80")]);
    let batteries: Vec<_> = (1..NOW / 30).map(|n| battery(n * 30)).collect();
    world.put(&batteries).await;

    let since = at(NOW).saturating_add(-MAX_BACK);
    let recheck = Recheck { target: given::device("d1").into(), since, after: None, touch: 1 };
    let rules = world.rules(at(NOW + 3)).await;
    let given = invocation();
    let session = world.session(at(NOW + 3), &given);
    Box::pin(session.recheck(&rules, &recheck)).await.expect("memory");
    assert_eq!(world.news(), [News::Fired]);
}

/// At home a person who saves a rule tries it at once.
#[tokio::test]
async fn a_rule_judges_the_next_reading_where_rules_are_read_each_second() {
    let members = |above: i64| json!({"name": "Warm", "device": "d1", "metric": "temperature", "above": above});
    let world = World::new(members(90), &[sensor(1, 0)]).await;
    let judging = Judging::default().with_rules_of(TimeDelta::seconds(1));
    let world = World { judging, ..world };
    world.rules(at(1)).await;

    let second = |seconds| at(1).saturating_add(TimeDelta::seconds(seconds));
    world.save(stored(2, members(30), second(1))).await;
    let hot = [warm(1, 1, "31")];
    world.put(&hot).await;
    world.batch(&hot, second(2)).await;
    assert_eq!(world.news(), [News::Fired]);
}

/// All values that follow the wrong one lie between the limits.
#[tokio::test]
async fn an_alert_whose_only_breach_is_deleted_two_days_later_is_taken_back() {
    const NOW: i64 = 2 * 1_440;
    let rule =
        json!({"name": "Warm", "device": "d1", "metric": "temperature", "above": 8, "clear": 5});
    let wrong = warm(1, 10, "30");
    let world = World::new(rule, &[warm(1, 0, "3")]).await;
    world.put(std::slice::from_ref(&wrong)).await;
    world.batch(std::slice::from_ref(&wrong), at(10)).await;
    let between: Vec<_> = (1..NOW / 30).map(|n| warm(1, n * 30, "6")).collect();
    world.put(&between).await;
    assert_eq!(world.news(), [News::Fired]);

    world.store.delete_readings(&[ReadingKey::of(&wrong)], &invocation()).await;
    let rules = world.rules(at(NOW)).await;
    world.recheck(&rules, wrong.device.clone().into(), at(NOW)).await;
    assert_eq!(world.news(), [News::Fired, News::TakenBack]);
}

/// The wrong reading is replaced by one between the limits, or, in the end of a breach, by one without the metric.
#[tokio::test]
async fn what_is_overwritten_is_judged_anew_however_old_it_is() {
    const NOW: i64 = 30 * 60;
    let rule =
        json!({"name": "Warm", "device": "d1", "metric": "temperature", "above": 8, "clear": 5});
    let wrong = warm(1, 10, "30");
    let world = World::new(rule.clone(), &[warm(1, 0, "3")]).await;
    world.put(std::slice::from_ref(&wrong)).await;
    world.batch(std::slice::from_ref(&wrong), at(10)).await;
    let between: Vec<_> = (1..NOW / 30).map(|n| warm(1, n * 30, "6")).collect();
    world.put(&between).await;
    let corrected = [warm(1, 10, "6")];
    world.put(&corrected).await;
    world.batch(&corrected, at(NOW)).await;
    assert_eq!(world.news(), [News::Fired, News::TakenBack]);

    let world = World::new(rule, &[warm(1, 0, "30")]).await;
    let battery = |minute| given::reading("d1", at(minute), None, &[("battery_pct", "80")]);
    for reading in [warm(1, 0, "30"), warm(1, 20, "3")] {
        world.put(std::slice::from_ref(&reading)).await;
        world.batch(std::slice::from_ref(&reading), reading.at).await;
    }
    world.put(&[battery(60), battery(120)]).await;
    world.due(at(90)).await;
    world.batch(&[battery(120)], at(120)).await;
    let corrected = [battery(20)];
    world.put(&corrected).await;
    world.batch(&corrected, at(121)).await;
    assert_eq!(world.news(), [News::Fired, News::Recovered, News::Fired]);
    assert_eq!(world.since().last(), Some(&at(0)));
}

/// A door that stands open sends its battery only, and a person moves it into the room of the rule.
#[tokio::test]
async fn a_device_that_comes_into_a_group_is_judged_by_what_it_sent_before() {
    let rule = json!({"name": "Door", "room": "hall", "metric": "open", "above": 0});
    let open = given::reading("d1", at(0), Some("shed"), &[("open", "1")]);
    let world = World::new(rule, &[open, in_room("d2", 0, "hall", "1")]).await;
    world.batch(&[in_room("d2", 0, "hall", "1")], at(1)).await;
    world.move_to("d1", "hall", at(60)).await;
    let battery = given::reading("d1", at(120), Some("hall"), &[("battery_pct", "80")]);
    world.put(std::slice::from_ref(&battery)).await;
    let now = at(121);
    assert_eq!(world.batch(std::slice::from_ref(&battery), now).await, 1);
    assert_eq!((world.news(), world.since()), (vec![News::Fired], vec![at(0)]));
}

/// The remembered list has the device without the metric.
#[tokio::test]
async fn the_first_value_of_a_metric_is_judged_by_its_batch() {
    let rule = json!({"name": "Leak", "room": "hall", "metric": "water_leak", "above": 0});
    let world = World::new(rule, &[warm(1, 0, "20")]).await;
    world.batch(&[warm(1, 0, "20")], at(0)).await;
    let leak = given::reading("d1", at(1), Some("hall"), &[("water_leak", "1")]);
    world.put(std::slice::from_ref(&leak)).await;
    world.batch(std::slice::from_ref(&leak), at(1)).await;
    assert_eq!(world.news(), [News::Fired]);
}

/// The door opens while it is in another room, and sends its battery only when it is back.
#[tokio::test]
async fn a_device_that_comes_back_into_a_group_is_judged_by_what_it_sent_meanwhile() {
    let rule = json!({"name": "Door", "room": "hall", "metric": "open", "above": 0});
    let door = |minute, room, open| given::reading("d1", at(minute), Some(room), &[("open", open)]);
    let world = World::new(rule, &[door(0, "hall", "1")]).await;
    world.batch(&[door(0, "hall", "1")], at(0)).await;
    for reading in [door(1, "hall", "0"), door(200, "shed", "1")] {
        world.put(std::slice::from_ref(&reading)).await;
        world.batch(std::slice::from_ref(&reading), reading.at).await;
    }
    world.due(at(70)).await;
    let rules = world.rules(at(299)).await;
    // The process remembers the device in the other room.
    world.move_to("d1", "shed", at(298)).await;
    world.session(at(299), &invocation()).judge_batch(&by_device(&[])).await;
    world.move_to("d1", "hall", at(300)).await;

    let since = at(300).saturating_add(-MAX_BACK);
    let recheck = Recheck { target: given::device("d1").into(), since, after: None, touch: 1 };
    let given = invocation();
    let session = world.session(at(301), &given);
    Box::pin(session.recheck(&rules, &recheck)).await.expect("memory");
    assert_eq!(world.news().last(), Some(&News::Fired));
    assert_eq!(world.since().last(), Some(&at(200)));
}

/// A gateway delivers what lies between the limits, more than a judgement reads, into an alert that lasts.
#[tokio::test]
async fn late_readings_that_end_nothing_take_no_alert_back_however_many_they_are() {
    let reading = |second: i64, value: &str| {
        let at = at(0).saturating_add(TimeDelta::seconds(second));
        given::reading("d1", at, Some("hall"), &[("temperature", value)])
    };
    let rule =
        json!({"name": "Warm", "device": "d1", "metric": "temperature", "above": 8, "clear": 5});
    let world = World::new(rule, &[reading(0, "30")]).await;
    world.batch(&[reading(0, "30")], at(0)).await;
    let between: Vec<_> = (1..102_000).map(|second| reading(second * 2, "6")).collect();
    world.put(&between).await;
    let now = between.last().expect("some").at;
    world.batch(&between[90_000..90_100], now).await;
    world.batch(&between[..100], now).await;
    assert_eq!(world.news(), [News::Fired]);
}

/// The alert fires for longer than a judgement looks back, and thousands of readings do not say whether it is over.
#[tokio::test]
async fn what_is_deleted_from_before_an_episode_does_not_end_it() {
    const NOW: i64 = 40 * 1_440;
    let rule = json!({"name": "Door", "device": "d1", "metric": "open", "above": 0});
    let open = given::reading("d1", at(0), None, &[("open", "1")]);
    let world = World::new(rule, std::slice::from_ref(&open)).await;
    world.batch(std::slice::from_ref(&open), at(0)).await;
    let battery = |minute| given::reading("d1", at(minute), None, &[("battery_pct", "80")]);
    let batteries: Vec<_> = (1..NOW / 15).map(|n| battery(n * 15)).collect();
    world.put(&batteries).await;

    let rules = world.rules(at(NOW)).await;
    let recheck = async |since: i64| {
        let (target, since) = (given::device("d1").into(), at(since));
        let recheck = Recheck { target, since, after: None, touch: 1 };
        let given = invocation();
        let session = world.session(at(NOW), &given);
        Box::pin(session.recheck(&rules, &recheck)).await.expect("memory");
    };
    recheck(-1_000).await;
    assert_eq!(world.news(), [News::Fired]);
    world.store.delete_readings(&[ReadingKey::of(&open)], &invocation()).await;
    recheck(0).await;
    assert_eq!(world.news(), [News::Fired, News::TakenBack]);
}

/// More than a judgement reads lie between the wrong reading and now.
#[tokio::test]
async fn an_alert_is_taken_back_though_its_device_has_sent_more_than_is_read_since() {
    let reading = |second: i64, value: &str| {
        let at = at(0).saturating_add(TimeDelta::seconds(second));
        given::reading("d1", at, Some("hall"), &[("temperature", value)])
    };
    let rule =
        json!({"name": "Warm", "device": "d1", "metric": "temperature", "above": 8, "clear": 5});
    let world = World::new(rule, &[reading(-60, "3")]).await;
    let wrong = reading(0, "30");
    world.put(std::slice::from_ref(&wrong)).await;
    world.batch(std::slice::from_ref(&wrong), at(0)).await;
    let between: Vec<_> = (1..102_000).map(|second| reading(second, "6")).collect();
    world.put(&between).await;

    world.store.delete_readings(&[ReadingKey::of(&wrong)], &invocation()).await;
    let now = between.last().expect("some").at;
    let rules = world.rules(now).await;
    world.recheck(&rules, wrong.device.clone().into(), now).await;
    assert_eq!(world.news(), [News::Fired, News::TakenBack]);
}

/// A minute may run between the two writes of a request that saves a rule.
#[tokio::test]
async fn the_recheck_of_a_rule_that_is_not_saved_yet_stays() {
    let rule = json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 30});
    let world = World::new(rule, &[warm(1, 0, "31")]).await;
    let since = at(5).saturating_add(-MAX_BACK);
    let target = rule_id("unsaved").into();
    let recheck = Recheck { target, since, after: None, touch: 1 };
    for (now, is_done) in [(5, false), (6, false), (7, true)] {
        let rules = world.rules(at(now)).await;
        let given = invocation();
        let session = world.session(at(now), &given);
        let judged = Box::pin(session.recheck(&rules, &recheck)).await.expect("memory");
        assert_eq!(judged.is_some(), is_done, "minute {now}");
    }
}

/// Its clock is right again when the rule is judged.
#[tokio::test]
async fn the_recheck_of_a_rule_that_a_clock_ahead_saved_does_not_wait() {
    let rule = json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 30});
    let world = World::new(rule.clone(), &[warm(1, 0, "31")]).await;
    let saved = stored(2, rule, at(360));
    world.save(saved.clone()).await;

    let rules = world.rules(at(1)).await;
    world.recheck(&rules, saved.id.into(), at(1)).await;
    assert_eq!(world.news(), [News::Fired]);
}

/// A process may not know the rule yet, and judge a batch without it.
#[tokio::test]
async fn the_recheck_of_a_saved_rule_waits_until_every_process_knows_the_rule() {
    let rule = json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 30});
    let world = World::new(rule.clone(), &[sensor(1, 0)]).await;
    let saved = stored(2, rule, at(5));
    world.save(saved.clone()).await;
    given::store_home(&world.store, &[warm(2, 6, "31")]).await;

    let noted = at(4).saturating_add(-MAX_BACK);
    let recheck = Recheck { target: saved.id.into(), since: noted, after: None, touch: 1 };
    for (now, told) in [(4, 0), (6, 0), (7, 1)] {
        let rules = world.rules(at(now)).await;
        let given = invocation();
        let session = world.session(at(now), &given);
        let judged = Box::pin(session.recheck(&rules, &recheck)).await.expect("memory");
        assert_eq!((judged.is_some(), world.told().len()), (told == 1, told), "minute {now}");
    }
}

/// A rule is saved on more devices than are judged at once.
#[tokio::test]
async fn a_saved_rule_is_judged_in_pieces_and_a_device_that_fails_holds_up_no_other() {
    let hot: Vec<_> = (0..MANY).map(|number| sensor(number, 0)).collect();
    let world = World::new(
        json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 1}),
        &hot,
    )
    .await;
    let rule = world.store.alert_rule(&rule_id("r"), &invocation()).await;
    let rule = rule.expect("memory").expect("a rule");
    let given = invocation();
    let session = world.session(at(1), &given);
    let judged = Box::pin(session.judge_saved(&rule)).await.expect("memory");
    assert_eq!((judged.judged, judged.is_cut), (20, true));
    let recheck = [(Rechecked::Rule(rule.id.clone()), at(0))];
    assert!(world.store.note_rechecks(&recheck, &given).await.cause.is_none());

    // The first devices are judged again, and each time some. Once the table throttles one.
    let mut time = Duration::from_millis(1_003);
    let (mut pieces, mut throttled) = (0, false);
    loop {
        let rechecks =
            world.store.rechecks(None, 10, &invocation()).await.expect("memory").listing.found;
        let Some(recheck) = rechecks.first() else { break };
        let rules = world.rules(at(1)).await;
        let mut time_of_piece = time;
        if !throttled && recheck.after.is_some() {
            // The rule is read before the state of the next device, if there is time for a device on a busy machine.
            world.store.fail_after(1, [StoreError::Throttled("for now".into())]);
            time_of_piece += Duration::from_secs(1);
            throttled = true;
        }
        let piece = Invocation::until(Deadline::after(time_of_piece));
        let session = world.session(at(1), &piece);
        let judged = Box::pin(session.recheck(&rules, recheck)).await.expect("memory");
        let judged = judged.expect("every process knows the rule");
        if judged.up_to.is_none() {
            time += Duration::from_millis(1);
        }
        pieces += 1;
        if judged.is_done() {
            assert!(world.store.remove_recheck(recheck, &invocation()).await.expect("memory"));
        } else if let Some(device) = &judged.up_to {
            assert!(Some(device) > recheck.after.as_ref(), "it goes on");
            assert!(
                world.store.move_recheck(recheck, device, &invocation()).await.expect("memory")
            );
        }
    }
    assert!(pieces > 2 && throttled, "{pieces}");
    assert_eq!(world.told().len(), MANY);
}

/// The device gets a recheck of its own, and the rule goes on behind it.
#[tokio::test]
async fn a_device_whose_judgement_panics_does_not_hold_up_the_recheck_of_a_saved_rule() {
    let hot = [sensor(1, 0), sensor(2, 0), sensor(3, 0)];
    let rule = json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 1});
    let world = World::new(rule, &hot).await;
    world.store.throttle(|action, partition| {
        assert!(!(action == Action::Query && partition == "d2"), "no such hour");
        false
    });

    let rules = world.rules(at(1)).await;
    let judged = world.recheck(&rules, rule_id("r").into(), at(1)).await;
    assert_eq!((world.told().len(), judged.panics.len()), (2, 1));
    assert!(judged.is_done(), "{judged:?}");
    let rechecks = world.store.rechecks(None, 10, &invocation()).await.expect("memory");
    let rechecks = rechecks.listing.found.into_iter().map(|recheck| recheck.target);
    assert_eq!(rechecks.collect::<Vec<_>>(), [Rechecked::Device(given::device("d2"))]);
}

/// The list of devices was read a moment before.
#[tokio::test]
async fn a_rule_that_is_saved_is_judged_on_the_devices_that_are_in_its_room_by_then() {
    let rule =
        |room: &str| json!({"name": "Warm", "room": room, "metric": "temperature", "above": 25});
    let first = [in_room("comes", 0, "attic", "30"), in_room("goes", 0, "cellar", "30")];
    let world = World::new(rule("hall"), &first).await;
    let second = |second| at(1).saturating_add(TimeDelta::seconds(second));
    let given = invocation();
    world.session(second(0), &given).devices().await.expect("memory");
    world.move_to("comes", "cellar", second(10)).await;
    world.move_to("goes", "attic", second(11)).await;

    let rule = stored(2, rule("cellar"), second(20));
    world.save(rule.clone()).await;
    let comes = AlertSubject::Device(given::device("comes"));
    let subjects = || world.told().into_iter().map(|told| told.alert.subject).collect::<Vec<_>>();
    let rules = world.rules(second(140)).await;
    assert!(world.recheck(&rules, rule.id.clone().into(), second(140)).await.is_done());
    assert_eq!(subjects(), std::slice::from_ref(&comes), "by a recheck");

    world.move_to("comes", "attic", second(150)).await;
    world.move_to("goes", "cellar", second(151)).await;
    let session = world.session(second(152), &given);
    let saved = Box::pin(session.judge_saved(&rule)).await;
    assert!(saved.expect("memory").is_done());
    assert_eq!(subjects(), [comes, AlertSubject::Device(given::device("goes"))], "at once");
}

/// The process of the minute has a list of a moment before, that of the stream a newer one.
#[tokio::test]
async fn a_breach_of_a_device_that_just_came_is_told_by_a_process_that_does_not_know_it_yet() {
    let rule =
        json!({"name": "Open", "room": "hall", "metric": "temperature", "above": 25, "for": "30s"});
    let first = [in_room("d", 0, "loft", "20"), in_room("x", 0, "hall", "20")];
    let mut world = World::new(rule, &first).await;
    let second = |second| at(100).saturating_add(TimeDelta::seconds(second));
    let (minutely, given) = (Judging::default(), invocation());
    let session = minutely.session(Session::new(&world.store, &given, second(0)));
    session.devices().await.expect("memory");

    world.move_to("d", "hall", second(10)).await;
    let open = [given::reading("d", second(20), Some("hall"), &[("temperature", "30")])];
    world.put(&open).await;
    assert_eq!(world.batch(&open, second(20)).await, 1);
    world.judging = minutely;
    world.due(second(50)).await;
    assert_eq!(world.news(), [News::Fired]);
}

/// It is warm in the loft again before anybody judges that it was not.
#[tokio::test]
async fn of_a_device_that_left_its_rule_the_end_is_told_and_nothing_that_follows() {
    let rule = json!({
        "name": "Warm", "room": "hall", "metric": "temperature", "above": 25, "repeat": "1h",
    });
    let warm = [in_room("d", 0, "hall", "30")];
    let world = World::new(rule, &[warm[0].clone(), in_room("x", 0, "loft", "20")]).await;
    world.batch(&warm, at(0)).await;
    world.move_to("d", "loft", at(1)).await;
    for minute in 2..200 {
        let value = if minute % 30 == 2 { "20" } else { "30" };
        world.put(&[in_room("d", minute, "loft", value)]).await;
        world.due(at(minute)).await;
    }
    assert_eq!(world.news(), [News::Fired, News::Recovered]);
    assert_eq!(world.store.all_alert_states(), []);
}

#[tokio::test]
async fn a_device_that_comes_back_is_told_nothing_twice() {
    let rule = json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 25});
    let first = [in_room("d", 0, "hall", "20"), in_room("x", 0, "loft", "20")];
    let world = World::new(rule, &first).await;
    for (minute, value) in [(130, "30"), (135, "20")] {
        let readings = [in_room("d", minute, "hall", value)];
        world.put(&readings).await;
        world.batch(&readings, at(minute)).await;
    }
    world.move_to("d", "loft", at(136)).await;
    for minute in 137..155 {
        world.due(at(minute)).await;
    }
    world.move_to("d", "hall", at(156)).await;
    let warm = [in_room("d", 160, "hall", "30")];
    world.put(&warm).await;
    world.batch(&warm, at(160)).await;
    assert_eq!(world.news(), [News::Fired, News::Recovered, News::Fired]);
}

/// When the device leaves, the next breach has begun and has not fired.
#[tokio::test]
async fn a_device_that_leaves_in_a_breach_and_comes_back_is_told_nothing_twice() {
    let rule = json!({
        "name": "Warm", "room": "hall", "metric": "temperature", "above": 25, "for": "10m",
    });
    let first = [in_room("d", 0, "hall", "20"), in_room("x", 0, "loft", "20")];
    let world = World::new(rule, &first).await;
    let read = async |minute, value| {
        let readings = [in_room("d", minute, "hall", value)];
        world.put(&readings).await;
        world.batch(&readings, at(minute)).await;
    };
    for (minute, value) in [(110, "30"), (125, "20"), (130, "30")] {
        read(minute, value).await;
    }
    world.move_to("d", "loft", at(131)).await;
    for minute in 132..150 {
        world.due(at(minute)).await;
    }
    world.move_to("d", "hall", at(150)).await;
    read(152, "30").await;
    assert_eq!(world.news(), [News::Passed, News::Fired]);
}

/// Whoever rechecks has read the rules before.
#[tokio::test]
async fn a_look_at_a_rule_judges_by_the_rule_as_it_is() {
    let hot = [sensor(0, 0)];
    let members = |above: i64| json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": above});
    let world = World::new(members(90), &hot).await;
    let rules = world.rules(at(1)).await;
    for (id, version) in [("r", 2), ("new", 1)] {
        let id = rule_id(id);
        world.save(StoredRule { id: id.clone(), ..stored(version, members(1), at(0)) }).await;
        assert!(world.recheck(&rules, id.clone().into(), at(2)).await.is_done());
        assert!(world.told().iter().any(|told| told.alert.rule == id), "{id}");
    }
}

/// A process knows a rule for a minute: what it judges by an older one is left to whoever reads the rules next.
#[tokio::test]
async fn what_is_judged_by_a_rule_before_it_was_saved_again_stays_to_be_looked_at() {
    let hot = [sensor(0, 0)];
    let members = |above: i64| json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": above});
    let world = World::new(members(10), &hot).await;
    let rules = world.rules(at(0)).await;
    world.save(stored(2, members(1), at(0))).await;

    let given = invocation();
    let device = hot[0].device.clone();
    let written = [(device.clone(), [(hot[0].at, hot[0].clone())].into())].into();
    let batch = world.session(at(0), &given).judge_batch(&written).await;
    assert_eq!(batch.rechecks.keys().collect::<Vec<_>>(), [&device]);
    let recheck = Rechecked::from(device);
    assert!(!world.recheck(&rules, recheck.clone(), at(0)).await.is_done());
    assert_eq!(world.told(), []);

    let rules = world.session(at(0), &given).rules_read_now().await.expect("memory");
    assert!(world.recheck(&rules, recheck, at(0)).await.is_done());
    assert_eq!(world.told().len(), 1);
}

/// More than a judgement reads: such a device is judged from a later start.
#[tokio::test]
async fn a_rule_that_is_edited_is_judged_on_a_device_with_more_readings_a_day_than_are_read() {
    let reading = |second: i64, value: &str| {
        let at = at(0).saturating_add(TimeDelta::milliseconds(second * 700));
        given::reading("d0", at, Some("hall"), &[("t", value)])
    };
    let all: Vec<_> = (0..110_000).map(|second| reading(second, "1")).collect();
    let rule = json!({"name": "Warm", "room": "hall", "metric": "t", "above": 5});
    let mut world = World::new(rule, &all[..1]).await;
    world.put(&all).await;
    let hot = [reading(110_001, "9")];
    world.put(&hot).await;
    assert_eq!(world.batch(&hot, hot[0].at).await, 1);

    let members = json!({"name": "Warm", "room": "hall", "metric": "t", "above": 6});
    world.save(stored(2, members, hot[0].at)).await;
    world.judging = Judging::default();
    for (second, value, news) in [(110_002, "9", News::Fired), (110_003, "1", News::Recovered)] {
        let new = [reading(second, value)];
        world.put(&new).await;
        assert_eq!(world.batch(&new, new[0].at).await, 1, "{value}");
        assert_eq!(world.told().last().map(|told| told.message.news), Some(news));
    }
}

/// A minute judges as many states as may fire.
#[tokio::test]
async fn a_thousand_states_that_are_due_are_judged_in_one_minute() {
    let hot: Vec<_> = (0..MAX_FEW).map(|device| warm(device, 0, "31")).collect();
    let rule =
        json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 30, "for": "5m"});
    let world = World::new(rule, &hot).await;
    assert_eq!(world.batch(&hot, at(0)).await, MAX_FEW);
    assert_eq!(world.told().len(), 0);
    world.due(at(5)).await;
    let told = world.told();
    assert!(told.iter().all(|it| it.message.news == News::Fired));
    assert_eq!(told.len(), MAX_FEW);
}

#[test]
fn the_day_has_23_hours() {
    let zone: Zone = ZONE.parse().expect("a zone");
    let day: TimeRange = CalendarUnit::Day.bucket_of(at(600), zone);
    assert_eq!(day.to().since(day.from()), TimeDelta::hours(23));
}

fn hot(id: &str, minute: i64, value: &str) -> Reading {
    given::reading(id, at(minute), Some("hall"), &[("temperature", value)])
}

/// The device sends every three minutes, and the server sleeps for some time.
#[tokio::test]
async fn a_pause_of_the_server_makes_no_silence_usual() {
    let (sleeps, end) = (1_000, 1_440);
    for pause in [0, 60, 120] {
        let rule = json!({"name": "Gone", "device": "d1", "silent_for": "usual"});
        let is_awake = |minute: &i64| !(sleeps..sleeps + pause).contains(minute);
        let sent = (0..end).step_by(3).filter(is_awake);
        let readings: Vec<_> = sent.map(|minute| hot("d1", minute, "1")).collect();
        let world = World::new(rule, &readings[..1]).await;
        for readings in readings.chunks(100) {
            world.put(readings).await;
        }
        // The server was last noted to run three minutes before the pause.
        let pauses = TimeRange::new(at(sleeps - 3), at(sleeps + pause)).into_iter();
        let pauses = pauses.filter(|_| pause > 0).collect();
        let note = RunningNote { version: 1, at: at(end), pauses };
        let put = world.store.put_running_note(&note, Expected::Absent, &invocation()).await;
        assert!(put.expect("memory"));
        let mut quarter = QuarterHour::of(at(-60));
        while quarter.end() <= at(end) {
            world.seal_unjudged(quarter, at(end)).await;
            quarter = quarter.next();
        }

        assert_eq!(world.usual_silence(at(end)).await, minutes(12), "{pause} minutes");
    }
}

/// A new device sends each 65 minutes. After its first reading nobody can know that.
#[tokio::test]
async fn of_a_new_device_the_usual_silence_is_learned_with_each_hour() {
    let rule = json!({"name": "Gone", "device": "d1", "silent_for": "usual"});
    let readings: Vec<_> = [0, 65, 130].map(|minute| hot("d1", minute, "1")).into();
    let world = World::new(rule, &readings[..1]).await;
    world.put(&readings[1..]).await;

    let mut quarter = QuarterHour::of(at(-60));
    for (now, limit) in [(1, 60), (100, 240), (160, 240)] {
        while quarter.end() < at(now) {
            world.seal_unjudged(quarter, at(now)).await;
            quarter = quarter.next();
        }
        assert_eq!(world.usual_silence(at(now)).await, minutes(limit), "minute {now}");
    }
}

/// The limit of silence is read with the state of the rollups.
#[tokio::test]
async fn a_damaged_state_of_the_rollups_loses_no_alert() {
    for no_data in ["keep", "fire", "clear"] {
        let rule = json!({
            "name": "Warm", "device": "d1", "metric": "temperature", "above": 5, "no_data": no_data,
        });
        let world = World::new(rule, &[hot("d1", 0, "1")]).await;
        given::damage_rollup_state(&world.store).await;
        let breach = [hot("d1", 30, "9")];
        world.put(&breach).await;
        world.batch(&breach, at(30)).await;
        assert_eq!(world.news(), [News::Fired], "{no_data}");
    }
}

/// The other rule on the device has to know after how long the device counts as silent.
#[tokio::test(start_paused = true)]
async fn a_value_does_not_wait_for_the_limit_of_silence_of_another_rule() {
    for throttled in ["STATE#", "ROLLUP#"] {
        let warm = json!({
            "name": "Warm", "device": "d1", "metric": "temperature", "above": 5, "no_data": "fire",
        });
        let world = World::new(warm, &[hot("d1", 0, "1")]).await;
        let leak = json!({"name": "Leak", "device": "d1", "metric": "leak", "above": 0});
        world.save(StoredRule { id: rule_id("s"), ..stored(1, leak, at(-10)) }).await;
        let values = [("temperature", "9"), ("leak", "1")];
        let reading = given::reading("d1", at(30), Some("hall"), &values);
        world.put(std::slice::from_ref(&reading)).await;

        world.store.throttle(move |_, partition| partition.starts_with(throttled));
        let given = Invocation::until(Deadline::after(Duration::from_secs(20)));
        let found = world.session(at(30), &given).judge_batch(&by_device(&[reading])).await;
        let told: Vec<_> = world.told().iter().map(|told| told.alert.rule.to_string()).collect();
        assert_eq!(told, ["s"], "{throttled}");
        assert_eq!(found.rechecks.len(), 1, "{throttled}: for the other rule");
    }
}

/// Each of a hundred devices has a limit that its rollups tell.
#[tokio::test(start_paused = true)]
async fn a_silence_with_a_limit_of_its_own_does_not_wait_for_limits_that_are_throttled() {
    let usual = json!({"name": "Usual", "room": "hall", "silent_for": "usual"});
    let sensors: Vec<_> = (100..200).map(|number| hot(&format!("d{number}"), 0, "1")).collect();
    let world = World::new(usual, &sensors).await;
    let own = json!({"name": "Own", "device": "d100", "silent_for": "10m"});
    world.save(StoredRule { id: rule_id("z"), ..stored(1, own, at(-10)) }).await;

    world.store.throttle(|_, partition| partition.starts_with("STATE#"));
    for minute in 1..=10 {
        let given = Invocation::until(Deadline::after(Duration::from_secs(26)));
        let session = world.session(at(minute), &given);
        drop(Box::pin(session.judge_silence()).await);
    }
    assert_eq!(world.news(), [News::Fired]);
}
