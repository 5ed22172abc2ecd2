//! The rollup of a device's readings: the fold of a bucket, and the combination of consecutive rollups. Stores nothing
//! and knows no calendar.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use super::counter::Flags;
use super::exact::Exact;
use super::metric_settings::MAX_KNOWN_METRICS;
use super::{Decimal, Device, MetricName, Reading, RoomId};
use super::{MetricRule, Sample, Timestamp};

/// The rollup of some consecutive readings of one device.
///
/// [`append`](Self::append) is associative, and the empty rollup is its identity. So the rollup of a day is the fold of
/// its quarters, to the last digit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rollup {
    /// The rooms of the readings, at most the first [`MAX_ROLLUP_ROOMS`] in their order. `None` stands for readings
    /// without a room.
    pub rooms: BTreeSet<Option<RoomId>>,
    /// The rollup of each metric.
    pub metrics: BTreeMap<MetricName, MetricRollup>,
}

/// The number of rooms that a rollup names. Without this limit a device that names a new room in every reading
/// would grow its item beyond `DynamoDB`'s 400 KB.
pub const MAX_ROLLUP_ROOMS: usize = 32;

/// The rollup of some consecutive values of one metric; there is at least one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricRollup {
    /// The number of values.
    pub count: u64,
    /// The sum of the values.
    pub sum: Exact,
    /// The smallest value.
    pub min: Decimal,
    /// The largest value.
    pub max: Decimal,
    /// The earliest value.
    pub first: Sample,
    /// The latest value.
    pub last: Sample,
    /// The part that only counters and powers have.
    pub of_kind: OfKind,
}

/// The part of a metric's rollup that depends on the kind of metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfKind {
    /// A gauge, which needs nothing further.
    Gauge,
    /// A counter, with the steps between values inside. The steps across an edge are not included.
    Counter {
        /// The sum of the steps, in the metric's unit.
        increase: Exact,
        /// The flags of all these steps.
        flags: Flags,
    },
    /// A power. Each value holds until the next value inside, for at most the time that the rule allows.
    Power {
        /// The sum of value times time, in the metric's unit times milliseconds.
        area: Exact,
        /// The time during which values held.
        held: TimeDelta,
    },
}

/// The rules by which the readings of a device are folded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoldRules {
    known: BTreeMap<MetricName, MetricRule>,
}

impl FoldRules {
    /// The rules for a device.
    pub fn of(device: &Device) -> Self {
        let rules =
            device.metrics().iter().map(|(name, info)| (name.clone(), MetricRule::of(info)));
        Self { known: rules.collect() }
    }

    /// The rule for a metric. A metric that the registry does not know yet is folded by its name, because readings may
    /// be folded before the registry learns of their metrics.
    pub fn rule(&self, name: &MetricName) -> MetricRule {
        self.known.get(name).cloned().unwrap_or_else(|| MetricRule::of_unknown(name))
    }

    /// Removes metrics that would make the rollup too large. Of the metrics that the registry does not know, the first
    /// are kept, as many as fit. Known metrics have reserved space even if they are absent. Otherwise a part of the
    /// rollup could keep a metric that the whole drops.
    fn limit(&self, metrics: &mut BTreeMap<MetricName, MetricRollup>) {
        let mut free = MAX_KNOWN_METRICS.saturating_sub(self.known.len());
        if metrics.len() <= free {
            return;
        }
        metrics.retain(|name, _| {
            let is_known = self.known.contains_key(name);
            let is_kept = is_known || free > 0;
            free -= usize::from(is_kept && !is_known);
            is_kept
        });
    }
}

impl Rollup {
    /// Folds readings of one device, which are in the order of their timestamps.
    pub fn fold<'a>(readings: impl IntoIterator<Item = &'a Reading>, rules: &FoldRules) -> Self {
        Self::fold_some(readings, rules, |_| true)
    }

    /// Folds only the wanted metrics of the readings.
    pub fn fold_some<'a>(
        readings: impl IntoIterator<Item = &'a Reading>,
        rules: &FoldRules,
        is_wanted: impl Fn(&MetricName) -> bool,
    ) -> Self {
        let mut rollup = Self::default();
        let mut used: BTreeMap<&'a MetricName, MetricRule> = BTreeMap::new();
        for reading in readings {
            rollup.rooms.insert(reading.room.clone());
            for name in reading.metrics().keys().filter(|name| is_wanted(name)) {
                let rule = used.entry(name).or_insert_with(|| rules.rule(name));
                let Some(sample) = rule.sample(reading, name) else { continue };
                let single = MetricRollup::of(sample, rule);
                match rollup.metrics.get_mut(name) {
                    Some(metric) => metric.append(&single, rule),
                    None => drop(rollup.metrics.insert(name.clone(), single)),
                }
            }
        }

        rules.limit(&mut rollup.metrics);
        rollup.limit_rooms();
        rollup
    }

    /// Keeps the first rooms in their order. The first rooms of a whole are always among the first rooms of its parts.
    fn limit_rooms(&mut self) {
        while self.rooms.len() > MAX_ROLLUP_ROOMS {
            self.rooms.pop_last();
        }
    }

    /// Whether all readings are of these rooms; `false` if rooms may be missing in the rollup.
    pub fn is_only_of(&self, rooms: &BTreeSet<RoomId>) -> bool {
        self.rooms.len() < MAX_ROLLUP_ROOMS
            && self.rooms.iter().all(|room| room.as_ref().is_some_and(|room| rooms.contains(room)))
    }

    /// Whether a reading may be of one of these rooms; `true` if rooms may be missing in the rollup.
    pub fn may_be_of(&self, rooms: &BTreeSet<RoomId>) -> bool {
        self.rooms.len() >= MAX_ROLLUP_ROOMS
            || self.rooms.iter().any(|room| room.as_ref().is_some_and(|room| rooms.contains(room)))
    }

    /// Whether this is the rollup of no reading. Readings without a value that takes part still have a room.
    pub fn is_empty(&self) -> bool {
        self.rooms.is_empty() && self.metrics.is_empty()
    }

    /// The times of the first and of the last value; `None` if no value takes part.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        let metrics = || self.metrics.values();
        let first = metrics().map(|metric| metric.first.at).min()?;
        Some((first, metrics().map(|metric| metric.last.at).max()?))
    }

    /// The largest number of values of any metric, which is about the number of readings.
    pub fn most_values(&self) -> u64 {
        self.metrics.values().map(|metric| metric.count).max().unwrap_or(0)
    }

    /// Appends the rollup of later readings.
    pub fn append(&mut self, later: &Self, rules: &FoldRules) {
        self.rooms.extend(later.rooms.iter().cloned());
        self.limit_rooms();
        for (name, metric) in &later.metrics {
            match self.metrics.get_mut(name) {
                Some(earlier) => earlier.append(metric, &rules.rule(name)),
                None => drop(self.metrics.insert(name.clone(), metric.clone())),
            }
        }
        rules.limit(&mut self.metrics);
    }
}

impl MetricRollup {
    /// The rollup of one value that takes part.
    pub fn of(sample: Sample, rule: &MetricRule) -> Self {
        let of_kind = match rule {
            MetricRule::Gauge => OfKind::Gauge,
            MetricRule::Counter(_) => {
                OfKind::Counter { increase: Exact::zero(), flags: Flags::default() }
            }
            MetricRule::Power(_) => OfKind::Power { area: Exact::zero(), held: TimeDelta::zero() },
        };
        Self {
            count: 1,
            sum: Exact::from(&sample.value),
            min: sample.value.clone(),
            max: sample.value.clone(),
            first: sample.clone(),
            last: sample,
            of_kind,
        }
    }

    /// Appends the rollup of later values of the same metric.
    ///
    /// The two rollups are of different kinds if the metric's settings changed between the folds. The part of the kind
    /// is then taken from the later rollup, until the earlier rollup is folded again.
    pub fn append(&mut self, later: &Self, rule: &MetricRule) {
        match (&mut self.of_kind, &later.of_kind, rule) {
            (
                OfKind::Counter { increase, flags },
                OfKind::Counter { increase: further, flags: further_flags },
                MetricRule::Counter(rule),
            ) => {
                let step = rule.step(&self.last, &later.first);
                *increase += &step.amount;
                *increase += further;
                let flag = step.flag.map(Flags::from).unwrap_or_default();
                *flags = flags.union(flag).union(*further_flags);
            }
            (
                OfKind::Power { area, held },
                OfKind::Power { area: further, held: further_held },
                MetricRule::Power(hold),
            ) => {
                let time = (*hold).min(later.first.at.since(self.last.at));
                *area += &(&Exact::from(&self.last.value) * time.num_milliseconds());
                *area += further;
                *held += time + *further_held;
            }
            (mine, others, _) => mine.clone_from(others),
        }

        self.count += later.count;
        self.sum += &later.sum;
        if later.min < self.min {
            self.min = later.min.clone();
        }
        if later.max > self.max {
            self.max = later.max.clone();
        }

        self.last = later.last.clone();
    }
}
