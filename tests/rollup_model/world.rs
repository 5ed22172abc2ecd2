//! The world of one schedule: people and devices, the stream, the queue, the clock, and instances of the
//! function that crash, lag and work at the same time. Judges what they leave.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;
use domain::{
    Bucket, DeviceId, DeviceParts, DevicePatch, Edit, FoldRules, LocalDate, MetricInfo,
    MetricPatch, QuarterHour, Reading, Rollup as Folded, Zone, sweep_group,
};
use rollup::Retention;
use rollups::{newest_sealable_end, part_of_day};
use table::{
    DeleteReadings as _, EditRegistry as _, FindRegistry as _, PutReadings as _, ReadingKey,
    RegisterDevices as _, RollupKey, StoredRollup,
};

use super::design::{Design, InstanceDesign};
use super::rebuild::Rebuild;
use crate::gate::instances::{self, Crew, Instance, Outcome};
use crate::given::{at, device, device_of, metric, number, reading};
use crate::home::{Consumer, Options};

const DEVICES: [&str; 2] = ["a", "b"];
/// The minutes of readings: two in each of three quarters before an edge of a local day's parts, and three after.
const MINUTES: [i64; 12] = [-105, -104, -90, -89, -75, -74, -60, -59, -45, -44, -30, -29];
/// Totals of a counter: with one setting 9 behind 1 is a step, with the other it cannot be.
const VALUES: [&str; 3] = ["1", "2", "9"];
const METRIC: &str = "cumulative_kwh_p";
/// The largest difference of an instance's clock from the right one: two differ by at most a minute.
const MAX_SKEW: i64 = 30_000;
const INSTANCES: usize = 4;
const MINUTE: i64 = 60_000;
/// The edge is midnight in the first zone, in the others the end of the part of an open day that is folded.
const ZONES: [&str; 4] = ["Asia/Tokyo", "America/Phoenix", "Asia/Tokyo", "Africa/Lagos"];

/// Somebody rebuilds a device, in a transaction or not.
#[derive(Debug, Clone)]
struct RebuildOf {
    device: DeviceId,
    is_transaction: bool,
}

type Event = instances::Event<RebuildOf>;

pub(super) struct World {
    /// Its time is in milliseconds from the start that tests count from.
    crew: Crew<InstanceDesign, RebuildOf>,
    design: Design,
    /// The zone of the days.
    zone: Zone,
    retention: Retention,
    /// It is a month later: readings expire.
    is_old: bool,
    /// Some clocks are ahead.
    pub(super) has_wrong_clocks: bool,
    /// Somebody rebuilds rollups.
    pub(super) has_rebuilds: bool,
}

impl World {
    pub(super) async fn new(seed: u64, design: Design) -> Self {
        let mut world = Self {
            crew: Crew::new(seed, MINUTES[0] * MINUTE),
            design,
            zone: ZONES[usize::try_from(seed).unwrap_or(0) % ZONES.len()].parse().expect("a zone"),
            retention: kept([30, 60, 90]),
            is_old: false,
            has_wrong_clocks: false,
            has_rebuilds: false,
        };
        for _ in 0..INSTANCES {
            let instance = world.instance();
            world.crew.instances.push(instance);
        }
        for id in DEVICES {
            if world.crew.rng.u8(..3) > 0 {
                world.register(id).await;
            }
        }
        world
    }

    fn instance(&mut self) -> Instance<InstanceDesign, RebuildOf> {
        let skew = self.crew.rng.i64(-MAX_SKEW..=MAX_SKEW);
        let options = Options {
            zone: self.zone,
            retention: self.retention,
            work: self.crew.queue.clone(),
            ..Options::at(at(self.crew.now + skew))
        };
        let rules = InstanceDesign::new(self.design);
        Instance { skew, ..Instance::new(&self.crew.memory, rules, options) }
    }

    // ---- Life ----------------------------------------------------------------------------------

    /// A random schedule.
    pub(super) async fn live(&mut self) {
        let length = self.crew.rng.usize(40..160);
        for _ in 0..length {
            if self.has_wrong_clocks && self.crew.rng.u8(..10) == 0 {
                self.start_ahead().await;
            }
            if self.has_rebuilds && self.crew.rng.u8(..10) == 0 {
                self.rebuild();
            }
            match self.crew.rng.u8(..100) {
                0..12 => self.write().await,
                12..18 => self.delete().await,
                18..20 if self.is_old => {
                    self.crew.memory.delete_expired_readings(at(self.crew.now));
                }
                18..20 => self.change_settings().await,
                20..22 => self.register_any().await,
                22..30 => {
                    let minutes = [1, 1, 5, if self.is_old { 9 * 60 } else { 14 }];
                    let minutes = minutes[self.crew.rng.usize(..4)];
                    self.advance(minutes);
                }
                30..40 => self.deliver(),
                40..46 => self.sweep(),
                46..50 => self.take_message().await,
                50..52 => self.crash().await,
                52..54 => self.crew.give_up_any().await,
                _ => drop(self.crew.step_any(true).await),
            }
        }
    }

    /// A reading of about now, or a late one.
    async fn write(&mut self) {
        let id = DEVICES[self.crew.rng.usize(..DEVICES.len())];
        let written: Vec<i64> =
            MINUTES.into_iter().filter(|minute| minute * MINUTE <= self.crew.now).collect();
        let last = written.len() - 1;
        let position = if self.crew.rng.bool() { last } else { self.crew.rng.usize(..=last) };
        let value = VALUES[self.crew.rng.usize(..VALUES.len())];
        let reading = reading(id, written[position] * MINUTE, &[(METRIC, value)]);
        if self.stored().contains(&reading) {
            return; // A write that changes nothing emits no record.
        }
        let kept = self.retention.readings;
        self.crew
            .memory
            .put_readings(std::slice::from_ref(&reading), kept, &self.crew.invocation)
            .await;
        self.crew.stream.store(&reading);
    }

    async fn delete(&mut self) {
        let stored = self.stored();
        if stored.is_empty() {
            return;
        }
        let reading = &stored[self.crew.rng.usize(..stored.len())];
        self.crew.memory.delete_readings(&[ReadingKey::of(reading)], &self.crew.invocation).await;
        self.crew.stream.remove(reading);
    }

    async fn change_settings(&mut self) {
        let id = DEVICES[self.crew.rng.usize(..DEVICES.len())];
        let max_w = Edit::Set(number(["1", "50000"][self.crew.rng.usize(..2)]));
        let patch = MetricPatch { max_w, ..MetricPatch::default() };
        let metrics = [(metric(METRIC), Some(patch))].into();
        let patch = DevicePatch { metrics, ..DevicePatch::default() };
        // A device that is not registered is not edited.
        let _ =
            self.crew.memory.edit_device(&device(id), &patch, at(0), &self.crew.invocation).await;
    }

    async fn register_any(&mut self) {
        let id = DEVICES[self.crew.rng.usize(..DEVICES.len())];
        self.register(id).await;
    }

    async fn register(&mut self, id: &str) {
        let observed = reading(id, MINUTES[0] * MINUTE, &[(METRIC, "1")]);
        let mut new = device_of([&observed]);
        // What a sender says is in a device from its registration on.
        if self.crew.rng.bool() {
            let hinted = |info: &mut MetricInfo| info.max_w = Some(number("1"));
            let hinted = |it: &mut DeviceParts| it.metrics.values_mut().for_each(hinted);
            new = new.changed(hinted).expect("a device");
        }
        self.crew.memory.register_device(&new, &self.crew.invocation).await.expect("memory");
    }

    fn advance(&mut self, minutes: i64) {
        self.crew.now += minutes * MINUTE;
        let no_grace = i64::from(self.design == Design::NoGrace) * 11 * MINUTE;
        for instance in &self.crew.instances {
            let is_sweeping =
                instance.task.as_ref().is_some_and(|it| matches!(it.event, Event::Schedule));
            let ahead = if is_sweeping { no_grace } else { 0 };
            instance.home.clock.set(at(self.crew.now + instance.skew + ahead));
        }
    }

    // ---- Invocations ---------------------------------------------------------------------------

    fn start(&mut self, n: usize, event: Event) {
        let no_grace = self.design == Design::NoGrace && matches!(event, Event::Schedule);
        let ahead = if no_grace { 11 * MINUTE } else { 0 };
        let instance = &self.crew.instances[n];
        let now = self.crew.now + instance.skew;
        instance.home.clock.set(at(now + ahead));
        instance.home.store.db.rules.begin(matches!(event, Event::Records(..)));
        let Event::Own(RebuildOf { device, is_transaction }) = &event else {
            return self.crew.start(n, event);
        };

        let (home, device) = (Arc::clone(&instance.home), device.clone());
        let rebuild = Rebuild {
            zone: self.zone,
            dates: days(self.zone),
            retention: self.retention,
            now: at(now),
            is_transaction: *is_transaction,
        };
        let future = Box::pin(async move {
            // What fails is rebuilt by the next one, if there is one.
            let _ = rebuild.run(&home.store, &device).await;
            Outcome::Handled(None)
        });
        self.crew.begin(n, event, future);
    }

    /// A batch from the position on, sometimes from before it, and sometimes beside another.
    fn deliver(&mut self) {
        if self.crew.is_delivering() && self.crew.rng.u8(..4) > 0 {
            return;
        }
        if let Some((n, batch)) = self.crew.any_batch(Consumer::Rollup, 3, 8) {
            self.start(n, batch);
        }
    }

    /// An invocation by the schedule, in a minute in which a device is swept.
    fn sweep(&mut self) {
        let id = device(DEVICES[self.crew.rng.usize(..DEVICES.len())]);
        let group = i64::try_from(sweep_group(&id)).expect("small");
        let Some(n) = self.crew.any(false) else { return };
        let minute =
            (at(self.crew.now).as_millis() + self.crew.instances[n].skew).div_euclid(MINUTE);
        self.advance((group - minute).rem_euclid(15));
        self.start(n, Event::Schedule);
    }

    fn rebuild(&mut self) {
        let id = device(DEVICES[self.crew.rng.usize(..DEVICES.len())]);
        let is_transaction = self.crew.rng.bool();
        if let Some(n) = self.crew.any(false) {
            self.start(n, Event::Own(RebuildOf { device: id, is_transaction }));
        }
    }

    /// An instance starts with a clock that is ahead, and sweeps: its clock is right again when it is done, or
    /// goes on as it is beside the others.
    async fn start_ahead(&mut self) {
        let Some(n) = self.crew.any(false) else { return };
        let is_far = self.crew.rng.bool();
        let skew = self.crew.instances[n].skew.min(MAX_SKEW);
        self.crew.instances[n].skew = skew + if is_far { 9 * 60 * MINUTE } else { 20 * MINUTE };
        self.start(n, Event::Schedule);
        if !is_far || self.crew.rng.bool() {
            self.crew.finish(n).await;
            self.crew.instances[n].skew = skew;
        }
    }

    async fn take_message(&mut self) {
        if let Some((n, message)) = self.crew.any_message(true).await {
            self.start(n, message);
        }
    }

    async fn crash(&mut self) {
        let Some(n) = self.crew.any(true) else { return };
        let other = self.instance();
        self.crew.crash(n, other).await;
    }

    // ---- Rest ----------------------------------------------------------------------------------

    /// Lets a month pass, until the readings expire within a day by every clock, and chooses other retentions.
    /// Returns the quarters that hold readings which will be gone.
    pub(super) fn grow_old(&mut self) -> Vec<StoredRollup> {
        self.is_old = true;
        self.crew.now = (MINUTES[11] + 32 * 24 * 60 + 1) * MINUTE;
        let retentions =
            [kept([30, 60, 90]), kept([1, 1, 1]), kept([365; 3]), Retention::default()];
        self.retention = retentions[self.crew.rng.usize(..4)];
        self.crew.instances = (0..INSTANCES).map(|_| self.instance()).collect();
        let is_quarter = |it: &StoredRollup| matches!(it.key.bucket, Bucket::QuarterHour(_));
        let rollups = self.crew.memory.rollups().into_iter();
        rollups.filter(|it| is_quarter(it) && !it.rollup.is_empty()).collect()
    }

    /// Everything is delivered and swept. Some invocations of before end last of all.
    pub(super) async fn come_to_rest(&mut self) {
        for id in DEVICES {
            self.register(id).await;
        }
        for n in 0..INSTANCES {
            self.crew.give_up(n).await;
        }
        let fresh = self.instance();
        let late = std::mem::replace(&mut self.crew.instances, vec![fresh]);
        self.settle_everything(0).await;
        self.advance(24 * 60);
        self.settle_everything(0).await;
        self.crew.instances.extend(late);
        for n in 1..self.crew.instances.len() {
            let instance = &self.crew.instances[n];
            instance.home.clock.set(at(self.crew.now + instance.skew));
            self.crew.finish(n).await;
        }
        self.settle_everything(0).await;
    }

    /// Delivers all records and messages, and sweeps all groups, which have all missed their turns, with one
    /// instance.
    async fn settle_everything(&mut self, n: usize) {
        for minutes in [61, 1] {
            self.advance(minutes);
            self.start(n, Event::Schedule);
            self.crew.finish(n).await;
        }
        while self.crew.position(Consumer::Rollup) < self.crew.stream.len() {
            let rest = self.crew.position(Consumer::Rollup)..self.crew.stream.len();
            self.start(n, Event::Records(Consumer::Rollup, rest));
            self.crew.finish(n).await;
        }
        for request in self.crew.queue.take() {
            self.start(n, Event::Message(request));
            self.crew.finish(n).await;
        }
    }

    // ---- Judgement -----------------------------------------------------------------------------

    fn stored(&self) -> Vec<Reading> {
        self.crew.memory.readings()
    }

    /// The rollups that are not what they have to be.
    pub(super) fn wrong(&self) -> Vec<String> {
        let mut wrong = self.wrong_days();
        let rollups = self.rollups();
        let readings = self.design.folded(&self.crew.memory);
        for id in DEVICES.map(device) {
            let rules = self.rules(&id);
            for minute in MINUTES.into_iter().step_by(2) {
                let quarter = QuarterHour::of(at(minute * MINUTE));
                let is_folded = |reading: &&Reading| {
                    reading.device == id && quarter.range().contains(reading.at)
                };
                let expected = Folded::fold(readings.iter().filter(is_folded), &rules);
                let stored = rollups.get(&RollupKey::quarter(id.clone(), quarter));
                let stored = stored.map(|it| it.rollup.clone());
                if stored.unwrap_or_default() != expected {
                    wrong.push(format!("{id} {}", quarter.start()));
                }
            }
        }
        wrong
    }

    /// The quarters that are not as they were, and the days that are not their quarters.
    pub(super) fn changed_since(&self, good: &[StoredRollup]) -> Vec<String> {
        let rollups = self.rollups();
        let is_changed =
            |it: &&StoredRollup| rollups.get(&it.key).is_none_or(|now| now.rollup != it.rollup);
        let mut wrong = self.wrong_days();
        wrong.extend(good.iter().filter(is_changed).map(|it| format!("{:?} has changed", it.key)));
        wrong
    }

    fn wrong_days(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let rollups = self.rollups();
        for id in DEVICES.map(device) {
            let rules = self.rules(&id);
            for date in days(self.zone) {
                let whole = self.zone.day(date).expect("a day");
                let until = newest_sealable_end(at(self.crew.now));
                let Some(part) = part_of_day(whole, until) else { continue };
                let stored = rollups.get(&RollupKey::day(id.clone(), date));
                // A longer one, of a clock that was ahead, is not believed yet.
                if stored.is_some_and(|day| day.range.to() > until) {
                    continue;
                }
                let range = stored.map_or(part, |day| day.range);
                if range != part {
                    wrong.push(format!("{id} {date} is {range:?}"));
                }
                let mut expected = Folded::default();
                for (key, rollup) in &rollups {
                    let is_inside =
                        matches!(key.bucket, Bucket::QuarterHour(it) if range.contains(it.start()));
                    if key.device == id && is_inside {
                        expected.append(&rollup.rollup, &rules);
                    }
                }
                match stored {
                    Some(day) if day.rollup != expected => wrong.push(format!("{id} {date}")),
                    None if !expected.is_empty() => {
                        wrong.push(format!("{id} {date} is missing"));
                    }
                    _ => {}
                }
            }
        }
        wrong
    }

    fn rollups(&self) -> BTreeMap<RollupKey, StoredRollup> {
        self.crew.memory.rollups().into_iter().map(|it| (it.key.clone(), it)).collect()
    }

    fn rules(&self, id: &DeviceId) -> FoldRules {
        let ids = [id.clone()];
        let found = self.crew.memory.find_devices(&ids, &self.crew.invocation);
        let found = futures_util::FutureExt::now_or_never(found).expect("memory does not wait");
        found.expect("memory").found.first().map_or_else(FoldRules::default, FoldRules::of)
    }
}

/// The days of the readings.
fn days(zone: Zone) -> Vec<LocalDate> {
    let dates = [MINUTES[0], MINUTES[11]].map(|minute| zone.date(at(minute * MINUTE)));
    Vec::from_iter(BTreeSet::from(dates))
}

/// The retention of readings, quarters and days, in days.
fn kept(days: [i64; 3]) -> Retention {
    let [readings, quarters, days] = days.map(|days| Some(TimeDelta::days(days)));
    Retention { readings, quarters, days }
}
