//! The rollup of a device's readings: folds the readings of a bucket, and joins consecutive rollups. Stores nothing and
//! knows no calendar.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use super::counter::Flags;
use super::exact::Exact;
use super::metric_settings::MAX_KNOWN_METRICS;
use super::{Decimal, Device, MetricName, Reading, RoomId};
use super::{MetricRule, Sample, Timestamp};

/// The rollup of some consecutive readings of one device.
///
/// [`append`](Self::append) is associative, and the empty rollup is its identity. So the rollups of a day's quarters,
/// appended to each other, are the rollup of the day, to the last digit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rollup {
    /// The rooms of the readings: at most the first [`MAX_ROLLUP_ROOMS`], ordered by id. `None`, for readings without a
    /// room, comes before all ids.
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
    /// The members that only counters or only powers have.
    pub of_kind: OfKind,
}

/// The members that a rollup has in addition, by the kind of the metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfKind {
    /// A gauge, which has nothing in addition.
    Gauge,
    /// A counter, with the steps between the values of this rollup. The steps to values before and after are left out.
    Counter {
        /// The sum of the steps, in the metric's unit.
        increase: Exact,
        /// The flags of all these steps.
        flags: Flags,
    },
    /// A power. Each value is valid until the next value of this rollup, for at most the time that the rule allows.
    Power {
        /// The sum of value times time, in the metric's unit times milliseconds.
        area: Exact,
        /// The time during which a value was valid.
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

    /// The rule for a metric. If the registry does not know the metric, the name decides: readings may be folded before
    /// the registry learns of their metrics.
    pub fn rule(&self, name: &MetricName) -> MetricRule {
        self.known.get(name).cloned().unwrap_or_else(|| MetricRule::of_unknown(name))
    }

    /// Removes metrics that would make the rollup too large. Each metric that the registry knows has reserved space,
    /// even if this rollup does not contain it. The first of the other metrics get the rest. Without the reservation a
    /// quarter could keep a metric that its day drops.
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

    /// Folds the metrics of the readings that `is_wanted` accepts.
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

    /// Keeps the first rooms, ordered by id. The first rooms of a day are always among the first rooms of its quarters.
    fn limit_rooms(&mut self) {
        while self.rooms.len() > MAX_ROLLUP_ROOMS {
            self.rooms.pop_last();
        }
    }

    /// Whether all readings are from these rooms; `false` if the rollup may not name all rooms of its readings.
    pub fn is_only_of(&self, rooms: &BTreeSet<RoomId>) -> bool {
        self.rooms.len() < MAX_ROLLUP_ROOMS
            && self.rooms.iter().all(|room| room.as_ref().is_some_and(|room| rooms.contains(room)))
    }

    /// Whether a reading may be from one of these rooms; `true` if the rollup may not name all rooms of its readings.
    pub fn may_be_of(&self, rooms: &BTreeSet<RoomId>) -> bool {
        self.rooms.len() >= MAX_ROLLUP_ROOMS
            || self.rooms.iter().any(|room| room.as_ref().is_some_and(|room| rooms.contains(room)))
    }

    /// Whether this is the rollup of no reading. A reading without a value that rollups count still adds to `rooms`.
    pub fn is_empty(&self) -> bool {
        self.rooms.is_empty() && self.metrics.is_empty()
    }

    /// The times of the first and of the last value; `None` without a value.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        let metrics = || self.metrics.values();
        let first = metrics().map(|metric| metric.first.at).min()?;
        Some((first, metrics().map(|metric| metric.last.at).max()?))
    }

    /// The number of values of the metric that has the most, which is about the number of readings.
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
    /// The rollup of a single value.
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
    /// The two rollups are of different kinds if the metric's settings changed between the folds. Until the earlier
    /// rollup is folded again, `of_kind` then covers the later values only.
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
