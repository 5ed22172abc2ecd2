//! Alerts by the batches of the stream: what is judged, what becomes a recheck, and random schedules. Sends nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::alerts::{self, News, Observation, Past, SilenceLimit};
use domain::given::rule_id;
use table::keys::{ALERT_RULES, ALERT_STATES};
use table::{
    AlertState, DeleteReadings as _, EditAlertRules as _, FinishRechecks as _, NoteRechecks as _,
    PutReadings as _, ReadAlertStates as _, ReadRechecks as _, ReadingKey, Rechecked, Session,
    StoredRule,
};

use super::*;

/// A hint that counts how often it was asked.
#[derive(Debug, Clone, Default)]
struct CountedHint(Arc<AtomicUsize>);

impl Hint for CountedHint {
    async fn give(&self, _deadline: Deadline) -> Result<(), String> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// A freezer with a rule, the function that judges it, and what `alerts` does each minute.
struct Freezer {
    store: MemoryDb,
    registry: Registry<MemoryDb, MemoryQueue<DeadLetter>, TestClock, CountedHint>,
    hint: CountedHint,
    clock: TestClock,
    minutely: Judging,
    rule: StoredRule,
}

impl Freezer {
    async fn new(breach_time: i64, clear_time: i64) -> Self {
        let store = MemoryDb::default();
        let (clock, hint) = (TestClock::at(at_minute(0)), CountedHint::default());
        let permitted = store.for_role(<MemoryDb as Store>::PERMISSIONS);
        let registry =
            Registry::new(permitted, MemoryQueue::default(), clock.clone(), Telemetry::silent());
        let members = json!({
            "name": "Freezer", "device": "d", "metric": "temperature", "above": 30, "clear": 28,
            "for": format!("{breach_time}m"), "clear_for": format!("{clear_time}m"),
        });
        let rule = save(&store, members, -1, 1).await;
        let registry = registry.with_hint(hint.clone());
        Self { store, registry, hint, clock, minutely: Judging::default(), rule }
    }

    async fn write(&self, minute: i64, value: i64) -> Reading {
        let at = at_minute(minute);
        let reading = given::reading("d", at, None, &[("temperature", &value.to_string())]);
        let readings = std::slice::from_ref(&reading);
        self.store.put_readings(readings, None, &given::invocation()).await;
        reading
    }

    /// Delivers readings as one batch; whether it is done for good.
    async fn deliver(&self, readings: &[Reading]) -> bool {
        let records: Vec<Value> = readings.iter().enumerate().map(value_record).collect();
        let event = serde_json::from_value(json!({"Records": records})).expect("an event");
        let deadline = Deadline::after(Duration::from_secs(60));
        Box::pin(self.registry.handle(event, deadline)).await.batch_item_failures.is_empty()
    }

    /// What the function `alerts` does each minute: states that are due, then rechecks.
    async fn minute(&self, now: Timestamp, has_due: bool) {
        let invocation = given::invocation();
        let session = self.minutely.session(Session::new(&self.store, &invocation, now));
        let rules = session.rules().await.expect("memory");
        let due = self.store.due_alert_states(now, None, 100, &invocation).await.expect("memory");
        if has_due {
            let judged = session.judge_due(&rules, &due.listing.found).await;
            assert!(judged.failures.is_empty(), "{judged:?}");
        }
        let rechecks =
            self.store.rechecks(None, 100, &invocation).await.expect("memory").listing.found;
        for recheck in rechecks {
            let judged = session.recheck(&rules, &recheck).await;
            if judged.expect("memory").is_some_and(|report| report.is_done()) {
                self.store.remove_recheck(&recheck, &invocation).await.expect("memory");
            }
        }
    }

    fn news(&self) -> Vec<News> {
        let mut told = self.store.all_told();
        told.sort_by_key(|it| it.message.number);
        told.iter().map(|it| it.message.news).collect()
    }

    fn is_firing(&self) -> Option<bool> {
        match &self.store.all_alert_states().first()?.state {
            AlertState::Episodes(state) => Some(state.is_firing()),
            AlertState::Figures(_) => None,
        }
    }

    async fn rechecks(&self) -> usize {
        let rechecks = self.store.rechecks(None, 100, &given::invocation()).await.expect("memory");
        rechecks.listing.found.len()
    }
}

/// Saves the rule, at a minute.
async fn save(store: &MemoryDb, members: Value, minute: i64, version: u64) -> StoredRule {
    let rule = alerts::Rule::from_json(members, at_minute(minute)).expect("a rule");
    let rule = StoredRule { id: rule_id("r"), version, definition: rule };
    assert!(store.put_alert_rule(&rule, &given::invocation()).await.expect("memory"));
    rule
}

fn value_record((n, reading): (usize, &Reading)) -> Value {
    let mut record = record((n, reading));
    let value = reading.metrics().values().next().expect("a value").to_string();
    record["dynamodb"]["NewImage"]["temperature"] = json!({"N": value});
    record
}

#[tokio::test]
async fn a_breach_is_told_once_and_its_end_once_and_a_hint_is_asked_for_each() {
    let freezer = Freezer::new(0, 0).await;
    for (minute, value, told) in [
        (1, 20, &[][..]),
        (2, 31, &[News::Fired]),
        (3, 35, &[News::Fired]),
        (4, 29, &[News::Fired]),
        (5, 28, &[News::Fired, News::Recovered]),
    ] {
        freezer.clock.set(at_minute(minute));
        let reading = freezer.write(minute, value).await;
        for _ in 0..2 {
            assert!(freezer.deliver(std::slice::from_ref(&reading)).await);
            assert_eq!(freezer.news(), told, "minute {minute}");
        }
    }
    assert_eq!(freezer.hint.0.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_lies_beyond_the_clearing_limit_or_is_history_makes_no_state() {
    let freezer = Freezer::new(0, 0).await;
    freezer.clock.set(at_minute(100));
    let clear = freezer.write(99, 28).await;
    let history = freezer.write(99 - 24 * 60, 99).await;
    for reading in [clear, history] {
        assert!(freezer.deliver(&[reading]).await);
        assert_eq!(freezer.is_firing(), None);
    }
    let between = freezer.write(98, 29).await;
    assert!(freezer.deliver(&[between]).await);
    assert_eq!(freezer.is_firing(), Some(false), "it could keep what an earlier reading makes");
}

/// A gateway was offline, and has the newest reading of its device.
#[tokio::test]
async fn a_breach_that_lasts_is_told_though_its_reading_arrives_hours_late() {
    let freezer = Freezer::new(0, 0).await;
    freezer.clock.set(at_minute(300));
    let reading = freezer.write(10, 31).await;
    assert!(freezer.deliver(&[reading]).await);
    assert_eq!(freezer.news(), [News::Fired]);

    // One that is over for hours is told to nobody.
    let freezer = Freezer::new(0, 0).await;
    freezer.clock.set(at_minute(300));
    freezer.write(20, 20).await;
    let reading = freezer.write(10, 31).await;
    assert!(freezer.deliver(&[reading]).await);
    assert_eq!((freezer.news().len(), freezer.is_firing()), (0, Some(false)));
}

#[tokio::test]
async fn without_a_rule_the_rules_are_read_once_a_minute_and_nothing_else() {
    let bench = Bench::new();
    bench.write(&[reading("d", 0, None)]).await;
    let before = bench.store.calls().reads;
    for _ in 0..5 {
        bench.write(&[reading("d", 0, None)]).await;
    }
    assert_eq!(bench.store.calls().reads - before, 5, "the device of each batch");
}

/// Whichever request of judging fails, the registry is up to date, and the recheck finds what was not judged.
#[tokio::test]
async fn what_cannot_be_judged_becomes_a_look_and_holds_up_no_registry() {
    // The registry reads the device, registers it, and reads nothing more.
    let mut left = 0;
    for failing in 0..16 {
        let freezer = Freezer::new(0, 0).await;
        freezer.clock.set(at_minute(1));
        let reading = freezer.write(1, 31).await;
        freezer.store.fail_after(failing, [StoreError::TimedOut]);
        let is_done = freezer.deliver(std::slice::from_ref(&reading)).await;
        freezer.store.end_troubles();
        if !is_done {
            assert!(failing < 3, "only the registry asks for it again: {failing}");
            continue;
        }
        left += freezer.rechecks().await;
        assert_eq!(freezer.rechecks().await == 0, freezer.news() == [News::Fired], "{failing}");
        freezer.minute(at_minute(2), true).await;
        assert_eq!(freezer.news(), [News::Fired], "{failing}");
        assert_eq!(freezer.rechecks().await, 0);
    }
    assert!(left > 3, "some of them failed: {left}");
}

#[tokio::test]
async fn where_no_look_can_be_left_the_record_comes_again() {
    let freezer = Freezer::new(0, 0).await;
    freezer.clock.set(at_minute(1));
    let known = freezer.write(0, 20).await;
    assert!(freezer.deliver(&[known]).await);
    let reading = freezer.write(1, 31).await;
    // The device is read; then nothing works any more.
    freezer.store.fail_after(1, (0..20).map(|_| StoreError::TimedOut));
    assert!(!freezer.deliver(std::slice::from_ref(&reading)).await);
    freezer.store.end_troubles();
    assert!(freezer.deliver(&[reading]).await);
    assert_eq!(freezer.news(), [News::Fired]);
}

#[tokio::test]
async fn a_panic_of_judging_is_a_look_too() {
    let freezer = Freezer::new(0, 0).await;
    freezer.clock.set(at_minute(1));
    let known = freezer.write(0, 20).await;
    assert!(freezer.deliver(&[known]).await);
    let reading = freezer.write(1, 31).await;
    freezer.store.panic_after(2, "a mistake of ours");
    assert!(freezer.deliver(&[reading]).await);
    assert_eq!((freezer.rechecks().await, freezer.news().len()), (1, 0));
    freezer.minute(at_minute(2), true).await;
    assert_eq!(freezer.news(), [News::Fired]);
}

/// Its rules are forty seconds old when the reading comes, which is the only one for hours.
#[tokio::test]
async fn who_does_not_know_an_edited_rule_yet_leaves_the_judgement_to_others() {
    let freezer = Freezer::new(0, 0).await;
    let second = |seconds| at_minute(200).saturating_add(TimeDelta::seconds(seconds));
    freezer.clock.set(second(0));
    let first = freezer.write(200, 5).await;
    assert!(freezer.deliver(&[first]).await);
    let members = json!({
        "name": "Freezer", "device": "d", "metric": "temperature", "above": 10, "clear": 8,
    });
    let rule = alerts::Rule::from_json(members, second(20)).expect("a rule");
    let rule = StoredRule { id: rule_id("r"), version: 2, definition: rule };
    let (store, given) = (&freezer.store, &given::invocation());
    assert!(store.put_alert_rule(&rule, given).await.expect("memory"));
    let judging = Judging::default();
    let saved = judging.session(Session::new(store, given, second(20))).judge_saved(&rule).await;
    assert!(saved.is_ok());

    freezer.clock.set(second(40));
    let reading = given::reading("d", second(40), None, &[("temperature", "20")]);
    store.put_readings(std::slice::from_ref(&reading), None, given).await;
    assert!(freezer.deliver(&[reading]).await);
    for minute in 202..205 {
        freezer.minute(at_minute(minute), true).await;
    }
    assert_eq!(freezer.news(), [News::Fired]);
}

/// Of a rule on values nothing is left but the number, from which the messages count on.
#[tokio::test]
async fn a_rule_that_is_edited_to_count_steps_ends_its_alert() {
    let freezer = Freezer::new(0, 0).await;
    freezer.clock.set(at_minute(1));
    let reading = freezer.write(1, 31).await;
    assert!(freezer.deliver(&[reading]).await);
    assert_eq!(freezer.news(), [News::Fired]);

    let steps = json!({"name": "Steps", "device": "d", "metric": "kwh", "counter": ["reset"]});
    save(&freezer.store, steps, 2, 2).await;
    freezer.minute(at_minute(20), true).await;
    assert_eq!((freezer.news(), freezer.is_firing()), (vec![News::Fired, News::Edited], None));
    freezer.minute(at_minute(40), true).await;
    assert_eq!(freezer.news().len(), 2);
}

#[tokio::test]
async fn a_device_that_left_its_rule_ends_what_fires_and_begins_nothing() {
    let freezer = Freezer::new(0, 0).await;
    freezer.clock.set(at_minute(1));
    let reading = freezer.write(1, 31).await;
    assert!(freezer.deliver(&[reading]).await);

    let of_another = json!({
        "name": "Freezer", "device": "e", "metric": "temperature", "above": 30, "clear": 28,
        "repeat": "1h",
    });
    save(&freezer.store, of_another, 2, 2).await;
    freezer.minute(at_minute(90), true).await;
    assert_eq!(freezer.news(), [News::Fired], "it fires on, and is not repeated");
    freezer.write(91, 20).await;
    freezer.minute(at_minute(110), true).await;
    assert_eq!(freezer.news(), [News::Fired, News::Recovered]);
    freezer.write(111, 31).await;
    for minute in 112..200 {
        freezer.minute(at_minute(minute), true).await;
    }
    assert_eq!((freezer.news().len(), freezer.is_firing()), (2, None));
}

#[tokio::test]
async fn a_rule_that_is_gone_tells_nothing_and_its_state_ends() {
    let freezer = Freezer::new(5, 0).await;
    freezer.clock.set(at_minute(1));
    let reading = freezer.write(1, 31).await;
    assert!(freezer.deliver(&[reading]).await);
    assert_eq!(freezer.is_firing(), Some(false), "it is pending");
    let id = &freezer.rule.id;
    freezer.store.delete_alert_rule(id, &given::invocation()).await.expect("memory");
    freezer.minute(at_minute(7), true).await;
    assert_eq!((freezer.news().len(), freezer.is_firing()), (0, None));
}

// ---- Random schedules --------------------------------------------------------------------------

/// What a schedule leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Design {
    Ours,
    /// Time alone judges nothing.
    NoDue,
    /// A batch without a breach is passed over, whatever the state.
    PassesBand,
}

struct Schedule {
    rng: fastrand::Rng,
    design: Design,
    freezer: Freezer,
    times: (i64, i64),
    readings: BTreeMap<i64, i64>,
    stream: VecDeque<Vec<i64>>,
    delivered: Vec<i64>,
    now: i64,
    value: i64,
    has_bad_clocks: bool,
    with_net: bool,
}

/// How often each wrong design is tried before it counts as unseen.
const SCHEDULES: u64 = 100;

impl Schedule {
    async fn new(seed: u64, design: Design) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let times = (rng.i64(0..3) * 3, rng.i64(0..3) * 2);
        let has_bad_clocks = rng.u8(..4) == 0;
        Self {
            design,
            freezer: Freezer::new(times.0, times.1).await,
            times,
            readings: BTreeMap::new(),
            stream: VecDeque::new(),
            delivered: Vec::new(),
            now: 0,
            value: 27,
            has_bad_clocks,
            with_net: has_bad_clocks,
            rng,
        }
    }

    async fn put(&mut self, minute: i64, value: i64) {
        self.freezer.write(minute, value).await;
        self.readings.insert(minute, value);
        match self.stream.back_mut() {
            Some(batch) if self.rng.bool() => batch.push(minute),
            _ => self.stream.push_back(vec![minute]),
        }
    }

    /// A reading of any minute of the last hour or the next three.
    fn some_minute(&mut self) -> Option<i64> {
        let recent: Vec<i64> = self.readings.range(self.now - 50..).map(|(at, _)| *at).collect();
        (!recent.is_empty()).then(|| recent[self.rng.usize(..recent.len())])
    }

    async fn live(&mut self) {
        let end = self.rng.i64(30..100);
        while self.now < end {
            match self.rng.u8(..14) {
                0..4 => {
                    self.value = (self.value + self.rng.i64(-3..4)).clamp(26, 34);
                    let late = if self.rng.u8(..5) == 0 { self.rng.i64(-3..15) } else { 0 };
                    self.put(self.now - late, self.value).await;
                }
                4 => {
                    if let Some(minute) = self.some_minute() {
                        let value = self.rng.i64(24..35);
                        self.put(minute, value).await;
                    }
                }
                5 => self.delete().await,
                6..10 => self.deliver(true).await,
                _ => self.pass_minute(true).await,
            }
        }
        self.has_bad_clocks = false;
        while !self.stream.is_empty() {
            let may_fail = self.rng.bool();
            self.deliver(may_fail).await;
        }
        // Without a wrong clock nothing waits until a state is due for no other reason than time.
        let rest = if self.with_net { 35 } else { 4 };
        for _ in 0..rest {
            self.pass_minute(false).await;
        }
    }

    /// Deletes a reading, as a person does: what is deleted is looked at again.
    async fn delete(&mut self) {
        let Some(minute) = self.some_minute() else { return };
        let at = at_minute(minute);
        let device = given::device("d");
        let key = ReadingKey { at, device };
        let invocation = given::invocation();
        self.freezer.store.delete_readings(std::slice::from_ref(&key), &invocation).await;
        self.freezer.store.note_rechecks(&[(key.device.into(), at)], &invocation).await;
        self.readings.remove(&minute);
    }

    /// The clock of a process: now and then a day off.
    fn clock(&mut self) -> Timestamp {
        let is_wrong = self.has_bad_clocks && self.rng.u8(..6) == 0;
        let days = if is_wrong { self.rng.i64(0..2) * 2 - 1 } else { 0 };
        at_minute(self.now + days * 1_440)
    }

    /// Delivers the first batch, perhaps again, with some that were delivered before, or to a process that dies.
    async fn deliver(&mut self, may_fail: bool) {
        let Some(mut batch) = self.stream.front().cloned() else { return };
        if may_fail && self.rng.u8(..4) == 0 {
            batch.extend(self.delivered.iter().rev().take(3));
        }
        let now = self.clock();
        self.freezer.clock.set(now);
        let mut readings = Vec::new();
        for minute in &batch {
            if let Some(value) = self.readings.get(minute) {
                readings.push(reading_of(*minute, *value));
            }
        }
        if self.design == Design::PassesBand {
            let is_hot =
                |it: &Reading| it.metrics().values().any(|value| *value > given::number("30"));
            readings.retain(is_hot);
        }
        let (dies, fails) = (may_fail && self.rng.u8(..6) == 0, may_fail && self.rng.u8(..6) == 0);
        if dies || fails {
            let calls = self.rng.usize(..12);
            let failing = if dies { 50 } else { 1 };
            self.freezer.store.fail_after(calls, (0..failing).map(|_| StoreError::TimedOut));
        }
        let is_done = self.freezer.deliver(&readings).await;
        self.freezer.store.end_troubles();
        let is_twice = may_fail && self.rng.u8(..6) == 0;
        if is_done && !dies && !is_twice {
            let batch = self.stream.pop_front().expect("it was delivered");
            self.delivered.extend(batch);
        }
    }

    async fn pass_minute(&mut self, may_fail: bool) {
        self.now += 1;
        if self.now % 15 == 0 {
            self.sweep().await;
        }
        if !may_fail || self.rng.u8(..4) > 0 {
            let now = self.clock();
            self.freezer.minute(now, self.design != Design::NoDue).await;
        }
    }

    /// The recheck that the sweep leaves of a sealed quarter whose maximum is in breach.
    async fn sweep(&mut self) {
        // A batch that a wrong clock took for history, and nothing else, needs the net.
        if !self.with_net {
            return;
        }
        let from = self.now - 30;
        if self.readings.range(from..from + 15).any(|(_, value)| *value > 30) {
            let touched = [(Rechecked::Device(given::device("d")), at_minute(from))];
            self.freezer.store.note_rechecks(&touched, &given::invocation()).await;
        }
    }

    /// What is wrong at rest.
    fn wrong(&self) -> Option<String> {
        let observation = |(minute, value): (&i64, &i64)| Observation {
            at: at_minute(*minute),
            value: Some(given::number(&value.to_string())),
        };
        let readings: Vec<Observation> =
            self.readings.range(..=self.now + 2).map(observation).collect();
        let silent_after = TimeDelta::minutes(60);
        let from = readings.first().map_or(at_minute(self.now), |it| it.at);
        let rule = &self.freezer.rule.definition;
        let mut past = Past::begin(rule, SilenceLimit::new(silent_after, &[]), from, true);
        past.take(&readings, at_minute(self.now));
        let episodes = past.episodes();
        let is_firing = episodes.last().is_some_and(|it| it.ended.is_none());
        let news = self.freezer.news();
        let mut is_told = false;
        for (n, news) in news.iter().enumerate() {
            let follows = match news {
                News::Fired | News::Passed => !is_told,
                News::Recovered | News::TakenBack | News::Repeated | News::Edited => is_told,
                News::Test => false,
            };
            if !follows {
                return Some(format!("message {n} does not follow"));
            }
            is_told = news.is_firing();
        }
        let state = self.freezer.is_firing().unwrap_or(false);
        ((state, is_told) != (is_firing, is_firing)).then(|| {
            format!(
                "for {:?}: the fold fires: {is_firing}, the state: {state}, told: {is_told} {news:?}; {:?}",
                self.times, self.readings
            )
        })
    }
}

fn reading_of(minute: i64, value: i64) -> Reading {
    given::reading("d", at_minute(minute), None, &[("temperature", &value.to_string())])
}

async fn run(seed: u64, design: Design) -> Option<String> {
    let mut schedule = Schedule::new(seed, design).await;
    schedule.live().await;
    schedule.wrong()
}

#[tokio::test]
async fn at_rest_the_state_is_the_fold_and_the_last_message_is_the_state() {
    for seed in 0..SCHEDULES {
        let wrong = run(seed, Design::Ours).await;
        assert_eq!(wrong, None, "seed {seed}");
    }
}

/// The schedules see what is wrong with a design, or they would see nothing in ours.
#[tokio::test]
async fn every_part_that_is_left_out_is_missed() {
    let mut survived = Vec::new();
    for design in [Design::NoDue, Design::PassesBand] {
        let mut found = None;
        for seed in 0..SCHEDULES {
            found = run(seed, design).await;
            if found.is_some() {
                break;
            }
        }
        if found.is_none() {
            survived.push(design);
        }
    }
    assert!(survived.is_empty(), "{survived:?} survive {SCHEDULES} schedules");
}

/// The readings of a device that names another room are throttled; another device of the batch is in breach.
#[tokio::test(start_paused = true)]
async fn a_throttled_device_that_moves_keeps_no_other_of_its_batch_waiting() {
    let freezer = Freezer::new(0, 0).await;
    let reading = |id: &str, minute, room: &str, value: &str| {
        given::reading(id, at_minute(minute), Some(room), &[("temperature", value)])
    };
    freezer.clock.set(at_minute(1));
    let first = [reading("hot", 0, "kitchen", "20"), reading("x", 0, "hall", "20")];
    freezer.store.put_readings(&first, None, &given::invocation()).await;
    assert!(freezer.deliver(&first).await);

    freezer.store.throttle(|action, partition| action == Action::Query && partition == "hot");
    let batch = [reading("hot", 2, "hall", "20"), reading("d", 2, "kitchen", "31")];
    freezer.store.put_readings(&batch, None, &given::invocation()).await;
    freezer.clock.set(at_minute(2));
    let begun = runtime::clock::Stopwatch::start();
    assert!(freezer.deliver(&batch).await);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(freezer.news(), [News::Fired]);
    let room = async || {
        let hot = freezer.store.device(&given::device("hot"), &given::invocation()).await;
        hot.expect("memory").expect("registered").place().room().map(ToString::to_string)
    };
    assert_eq!(room().await.as_deref(), Some("kitchen"), "nobody knows whether it moved");

    // By it alone nobody can tell a device from a table that is throttled.
    assert!(!freezer.deliver(&batch[..1]).await);
    freezer.store.end_troubles();
    let next = reading("hot", 3, "hall", "20");
    freezer.store.put_readings(std::slice::from_ref(&next), None, &given::invocation()).await;
    assert!(freezer.deliver(&[next]).await);
    assert_eq!(room().await.as_deref(), Some("hall"));
}

/// The registry waits for each batch.
#[tokio::test(start_paused = true)]
async fn of_the_batches_of_a_minute_one_waits_for_rules_or_states_that_are_throttled() {
    for throttled in [ALERT_RULES, ALERT_STATES] {
        let freezer = Freezer::new(0, 0).await;
        freezer.clock.set(at_minute(1));
        freezer.store.throttle(move |_, partition| partition == throttled);

        let begun = runtime::clock::Stopwatch::start();
        for minute in -5..=0 {
            let reading = freezer.write(minute, 31).await;
            assert!(freezer.deliver(&[reading]).await, "{throttled}");
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{throttled}: {:?}", begun.elapsed());
        assert_eq!((freezer.news(), freezer.rechecks().await), (Vec::new(), 1), "{throttled}");

        freezer.store.end_troubles();
        freezer.clock.set(at_minute(2));
        let reading = freezer.write(2, 31).await;
        assert!(freezer.deliver(&[reading]).await);
        assert_eq!(freezer.news(), [News::Fired], "{throttled}");
    }
}
