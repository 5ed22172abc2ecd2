//! Problems in the counters of a source, and how these counters will be counted. Sends nothing.
//!
//! Each step is counted by the rules of the rollups, for the device as the registry will have it. A source's own sums,
//! such as those of Home Assistant, are shown beside the counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use chrono::TimeDelta;
use domain::{
    About, CounterRule, Device, DeviceId, DeviceObservation, EnergyUnit, Exact, Flag, MetricName,
    MetricRule, Month, Reading, Sample, Timestamp, Unit,
};

use super::imported::value_metric;
use super::several_meters::Meters;
use crate::output::counted;
use history::notes::OwnSum;

/// The shortest time without values that is reported as a gap.
pub(super) const GAP: TimeDelta = TimeDelta::hours(2);
/// The maximum number of events of one kind, and of months, shown for a counter.
const MAX_EVENTS: usize = 3;
const MAX_MONTHS: usize = 12;
/// The maximum number of counters that are shown.
const MAX_COUNTERS: usize = 40;
/// The name of a source's own sum.
const OWN: &str = "by Home Assistant's sum";

/// The counters of a source.
#[derive(Debug, Default)]
pub(super) struct Energy {
    devices: BTreeMap<DeviceId, Learned>,
    counters: BTreeMap<(DeviceId, MetricName), Counter>,
    own: BTreeMap<String, OwnSum>,
    /// The devices that the source puts behind a meter.
    behind: BTreeSet<DeviceId>,
}

/// A device as the registry will have it after the import.
#[derive(Debug)]
struct Learned {
    device: Device,
    /// The `about` of the device's previous reading.
    about: Option<Box<About>>,
}

/// The count of one counter so far.
#[derive(Debug)]
struct Counter {
    rule: CounterRule,
    unit: Option<Unit>,
    /// Whether the counter is the field `value` of a Home Assistant entity.
    is_value: bool,
    last: Option<Sample>,
    newest: Timestamp,
    /// The amount of each month, in the unit of the counter.
    months: BTreeMap<Month, Exact>,
    zeros: Events,
    /// Events by the flag of the counter's step.
    events: BTreeMap<&'static str, Events>,
    gaps: Gaps,
}

#[derive(Debug, Default)]
struct Events {
    count: u64,
    first: Vec<String>,
}

#[derive(Debug)]
struct Gaps {
    count: u64,
    longest: TimeDelta,
    amount: Exact,
}

impl Energy {
    /// Makes an empty value with the source's own sums.
    pub(super) fn new(own: BTreeMap<String, OwnSum>) -> Self {
        Self { own, ..Self::default() }
    }

    /// Notes that the source puts a device behind a meter.
    pub(super) fn put_behind(&mut self, device: DeviceId) {
        self.behind.insert(device);
    }

    /// Adds a reading. Readings of a device must come in order of time.
    pub(super) fn add(&mut self, reading: &Reading) {
        let Reading { device, about, .. } = reading;
        match self.devices.get_mut(device) {
            Some(known) if known.about == *about => {}
            Some(known) => {
                known.about.clone_from(about);
                if let Some(about) = about
                    && let Some(described) = known.device.with_about(about)
                {
                    known.device = described;
                }
            }
            None => {
                let new = DeviceObservation::of(reading).new_device(device.clone(), |_| false);
                self.devices.insert(device.clone(), Learned { device: new, about: about.clone() });
            }
        }

        let known = &self.devices[device].device;
        for name in reading.metrics().keys() {
            let Some(info) = known.metrics().get(name) else { continue };
            let key = (device.clone(), name.clone());
            if let Some(counter) = self.counters.get_mut(&key) {
                counter.add(reading, name);
                continue;
            }

            let rule = MetricRule::of(info);
            let sample = rule.sample(reading, name);
            let MetricRule::Counter(rule) = rule else { continue };
            let mut zeros = Events::default();
            if sample.is_none() {
                zeros.add(|| reading.at.to_string());
            }

            let counter = Counter {
                rule,
                unit: info.unit.clone(),
                is_value: value_metric(reading) == Some(name),
                zeros,
                last: sample,
                newest: reading.at,
                months: BTreeMap::new(),
                events: BTreeMap::new(),
                gaps: Gaps { count: 0, longest: TimeDelta::zero(), amount: Exact::zero() },
            };
            self.counters.insert(key, counter);
        }
    }
}

/// Divides a step's amount among the months that it spans, evenly by time, as the rollups do.
fn by_month(amount: &Exact, from: Timestamp, to: Timestamp) -> Vec<(Month, Exact)> {
    let until = |at: Timestamp| {
        amount.part(at.since(from).num_milliseconds(), to.since(from).num_milliseconds())
    };

    let (mut parts, mut begin) = (Vec::new(), from);
    while begin < to {
        let month = Month::of(begin);
        let end = month.end().min(to);
        parts.push((month, &until(end) - &until(begin)));
        begin = end;
    }
    parts
}

impl Counter {
    fn add(&mut self, reading: &Reading, name: &MetricName) {
        let at = reading.at;
        if at <= self.newest {
            return;
        }

        self.newest = at;

        let rule = MetricRule::Counter(self.rule.clone());
        let sample = rule.sample(reading, name);
        match (&self.last, &sample) {
            (_, None) => self.zeros.add(|| at.to_string()),
            (None, Some(_)) => {}
            (Some(from), Some(to)) => {
                let step = self.rule.step(from, to);
                if let Some(flag) = step.flag {
                    let events = self.events.entry(named(flag)).or_default();
                    events.add(|| {
                        let (old, new) = (from.value.as_str(), to.value.as_str());
                        format!("{at} from {old} to {new} counts {}", shown(&step.amount))
                    });
                }

                let time = at.since(from.at);
                if time > GAP {
                    self.gaps.count += 1;
                    self.gaps.longest = self.gaps.longest.max(time);
                    self.gaps.amount += &step.amount;
                }
                for (month, part) in by_month(&step.amount, from.at, at) {
                    *self.months.entry(month).or_insert_with(Exact::zero) += &part;
                }
            }
        }

        self.last = sample.or(self.last.take());
    }

    /// An amount in kWh if the unit is one of energy, else in the counter's own unit.
    fn amount(&self, amount: &Exact) -> Exact {
        EnergyUnit::of(self.unit.as_ref())
            .map_or_else(|| amount.clone(), |unit| unit.to_kwh(amount))
    }

    fn unit(&self) -> String {
        match EnergyUnit::of(self.unit.as_ref()) {
            Some(_) => " kWh".to_owned(),
            None => self.unit.as_ref().map(|unit| format!(" {unit}")).unwrap_or_default(),
        }
    }

    /// The source's own sums by month, in the unit that is shown; `None` if the units do not fit.
    fn own_months(&self, own: &OwnSum) -> Option<BTreeMap<Month, Exact>> {
        let unit: Option<Unit> = own.unit.as_deref().and_then(|unit| unit.parse().ok());
        let convert = |amount: &Exact| match (EnergyUnit::of(unit.as_ref()), &self.unit) {
            (Some(unit), mine) => EnergyUnit::of(mine.as_ref()).map(|_| unit.to_kwh(amount)),
            (None, mine) => (unit == *mine).then(|| amount.clone()),
        };

        let mut before = &own.first.1;
        let mut months = BTreeMap::new();
        for (month, (_, sum)) in &own.months {
            months.insert(*month, convert(&(sum - before))?);
            before = sum;
        }
        Some(months)
    }

    fn describe(&self, of: &str, own: Option<&OwnSum>) -> String {
        let unit = self.unit();
        let own = own.filter(|_| self.is_value).and_then(|own| self.own_months(own));
        let ours: BTreeMap<Month, Exact> =
            self.months.iter().map(|(month, amount)| (*month, self.amount(amount))).collect();
        let theirs = own.as_ref().unwrap_or(&ours);
        let [our_total, their_total] = [&ours, theirs]
            .map(|months| months.values().fold(Exact::zero(), |sum, amount| &sum + amount));

        let mut text = format!("\n  {of}: {}{unit}", shown(&our_total));
        if differs(&our_total, &their_total) {
            text += &format!(", {OWN} {}{unit}", shown(&their_total));
        }

        if self.zeros.count > 0 {
            let zeros = counted(self.zeros.count, "zero or negative value");
            text += &format!("\n    {zeros} left out: {}", self.zeros.shown());
        }

        for (name, events) in &self.events {
            text += &format!("\n    {} {name}: {}", events.count, events.shown());
        }

        if self.gaps.count > 0 {
            let Gaps { count, longest, amount } = &self.gaps;
            text += &format!(
                "\n    {} of more than 2 hours, the longest of {}; {}{unit} in them, spread evenly",
                counted(*count, "gap"),
                long(*longest),
                shown(&self.amount(amount))
            );
        }

        text + &describe_differing(&ours, theirs)
    }
}

/// The months in which this sum differs from the source's own, a line each.
fn describe_differing(ours: &BTreeMap<Month, Exact>, theirs: &BTreeMap<Month, Exact>) -> String {
    let zero = Exact::zero();
    let both = ours.iter().map(|(month, ours)| (month, ours, theirs.get(month).unwrap_or(&zero)));
    let differing: Vec<_> = both.filter(|(_, ours, theirs)| differs(ours, theirs)).collect();

    let mut text = String::new();
    for (month, ours, theirs) in differing.iter().take(MAX_MONTHS) {
        text += &format!("\n    {month}: {}, {OWN} {}", shown(ours), shown(theirs));
    }
    if differing.len() > MAX_MONTHS {
        text += &format!("\n    and {} more months", differing.len() - MAX_MONTHS);
    }
    text
}

impl Events {
    fn add(&mut self, text: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < MAX_EVENTS {
            self.first.push(text());
        }
    }

    fn shown(&self) -> String {
        let more = if self.count > MAX_EVENTS as u64 { ", ..." } else { "" };
        format!("{}{more}", self.first.join(", "))
    }
}

/// The name of a step's flag, for people.
const fn named(flag: Flag) -> &'static str {
    match flag {
        Flag::Dip => "small fall (dip)",
        Flag::Wrapped => "passing of the modulus (wrapped)",
        Flag::Reset => "fall, after which the new value counts (reset)",
        Flag::Ambiguous => "fall that is a reset or a passing of the modulus (ambiguous)",
        Flag::Suspect => "jump that no meter makes and that counts nothing (suspect)",
        flag => flag.as_str(),
    }
}

/// A number with at most three decimals, for people.
fn shown(amount: &Exact) -> String {
    let number: f64 = amount.to_string().parse().unwrap_or(f64::NAN);
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn long(time: TimeDelta) -> String {
    match time.num_hours() {
        hours @ ..48 => format!("{hours} hours"),
        hours => format!("{} days", hours / 24),
    }
}

/// Whether two amounts differ by more than 0.01, and by more than 1 %.
fn differs(ours: &Exact, theirs: &Exact) -> bool {
    let number = |exact: &Exact| exact.to_string().parse().unwrap_or(f64::NAN);
    let (ours, theirs): (f64, f64) = (number(ours), number(theirs));
    let distance = (ours - theirs).abs();
    distance > 0.01 && distance > 0.01 * ours.abs()
}

impl fmt::Display for Energy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.counters.is_empty() {
            return Ok(());
        }

        write!(f, "counters     {}, as they will be counted", self.counters.len())?;
        for ((device, metric), counter) in self.counters.iter().take(MAX_COUNTERS) {
            let of = format!("{device} {metric}");
            f.write_str(&counter.describe(&of, self.own.get(device.as_str())))?;
        }

        if self.counters.len() > MAX_COUNTERS {
            write!(f, "\n  and {} more", self.counters.len() - MAX_COUNTERS)?;
        }

        let mut meters = Meters::default();
        for (id, learned) in &self.devices {
            meters.add(id.as_str(), learned.device.metrics(), self.behind.contains(id));
        }
        writeln!(f, "{meters}")
    }
}

#[cfg(test)]
mod tests;
