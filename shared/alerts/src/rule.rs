//! A rule: what it watches, its limits, and when it makes messages. Judges single values only.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use domain::{CalendarUnit, Decimal, DeviceId, Label, MetricName, RoomId, Timestamp};
use serde::{Deserialize, Serialize};

/// The longest `for` and `clear_for`. A fold begins an hour and the longer of both before a reading, so less than a
/// day.
pub const MAX_FOR: TimeDelta = TimeDelta::hours(12);

/// A rule of alerts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The name of the rule.
    pub name: Label,
    /// The devices or the room that the rule is about.
    pub scope: Scope,
    /// What the rule watches.
    pub watch: Watch,
    /// How long a breach lasts before it fires.
    pub breach_time: TimeDelta,
    /// How long values stay within the clearing limit before the alert ends.
    pub clear_time: TimeDelta,
    /// What silence of the device means.
    pub no_data: NoData,
    /// The pause between repetitions, which go on until somebody acknowledges the alert.
    pub repeat: Option<TimeDelta>,
    /// Whether the end of an alert makes a message.
    pub sends_recovery: bool,
    /// Whether messages are sent in quiet hours too.
    pub ignores_quiet_hours: bool,
    /// Whether the rule is judged at all.
    pub is_on: bool,
    /// The end of the rule's pause. Before this time, the rule makes no message.
    pub paused_until: Option<Timestamp>,
    /// When the rule was saved, or last edited so that episodes may differ.
    pub changed: Timestamp,
}

/// The subjects of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// One device.
    Device(DeviceId),
    /// Each device of a group, with a state of its own.
    Each(Group),
    /// The mean of a room for each quarter of an hour. An observation is the mean, at the end of its quarter.
    RoomMean(RoomId),
}

/// Several devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Group {
    /// The devices in a room.
    Room(RoomId),
    /// The devices of a kind.
    Kind(Label),
    /// The devices with a tag.
    Tag(Label),
}

/// What a rule watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watch {
    /// The values of a metric.
    Metric {
        /// The metric.
        metric: MetricName,
        /// The limits.
        limits: Limits,
    },
    /// Silence: no reading arrives.
    Silence {
        /// The longest time without a reading. If absent, the usual interval of the device decides.
        after: Option<TimeDelta>,
    },
    /// The energy of a day or a month.
    Budget {
        /// The limit in kWh.
        kwh: Decimal,
        /// A day or a month.
        per: CalendarUnit,
    },
    /// The mean power of the running demand period.
    Demand {
        /// The length of the period: 15, 30 or 60 minutes.
        period: CalendarUnit,
        /// The limit.
        limit: DemandLimit,
    },
    /// The steps of a counter.
    Counter {
        /// The metric.
        metric: MetricName,
        /// The kinds of steps that make a message.
        events: BTreeSet<CounterEvent>,
    },
}

impl Watch {
    /// The metric whose values are watched.
    pub const fn metric(&self) -> Option<&MetricName> {
        match self {
            Self::Metric { metric, .. } => Some(metric),
            _ => None,
        }
    }

    /// The periods of a budget or a demand.
    pub(crate) const fn period(&self) -> Option<CalendarUnit> {
        match self {
            Self::Budget { per: period, .. } | Self::Demand { period, .. } => Some(*period),
            Self::Metric { .. } | Self::Silence { .. } | Self::Counter { .. } => None,
        }
    }
}

/// The limit of a running demand period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DemandLimit {
    /// A number of kW.
    Kilowatts(Decimal),
    /// The highest demand of the month so far.
    Peak,
}

/// A step of a counter that a person should check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CounterEvent {
    /// The counter began again near zero.
    Reset,
    /// The step cannot be explained.
    Suspect,
    /// The counter began again or passed its modulus.
    Ambiguous,
}

/// What silence of the device means for a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoData {
    /// Nothing fires or ends. A `for` or `clear_for` that has not passed yet begins anew with the next value.
    Keep,
    /// Silence counts as a breach.
    Fire,
    /// Silence counts as clear.
    Clear,
}

/// A limit with its clearing limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Threshold {
    /// A value beyond this limit is a breach.
    pub limit: Decimal,
    /// A value that has returned to this limit is clear.
    pub clear: Decimal,
}

/// The limits of a metric: an upper limit, a lower limit or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    above: Option<Threshold>,
    below: Option<Threshold>,
}

/// Where a value lies between the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Beyond a limit.
    Breach,
    /// Between a limit and its clearing limit: the phase stays as it is.
    Between,
    /// Within the clearing limits.
    Clear,
}

impl Limits {
    /// The limits. `None` if there is no limit, if a clearing limit lies beyond its limit, or if no value could be
    /// clear.
    pub fn new(above: Option<Threshold>, below: Option<Threshold>) -> Option<Self> {
        let clears = above.as_ref().is_none_or(|threshold| threshold.clear <= threshold.limit)
            && below.as_ref().is_none_or(|threshold| threshold.clear >= threshold.limit);
        let has_inside = match (&below, &above) {
            (Some(below), Some(above)) => below.clear <= above.clear,
            (None, None) => false,
            _ => true,
        };
        (clears && has_inside).then_some(Self { above, below })
    }

    /// The upper limit.
    pub const fn above(&self) -> Option<&Threshold> {
        self.above.as_ref()
    }

    /// The lower limit.
    pub const fn below(&self) -> Option<&Threshold> {
        self.below.as_ref()
    }

    /// Whether the smallest or the largest of some values is beyond a limit.
    pub fn are_passed(&self, least: &Decimal, most: &Decimal) -> bool {
        self.above().is_some_and(|threshold| *most > threshold.limit)
            || self.below().is_some_and(|threshold| *least < threshold.limit)
    }

    /// Whether a value between the smallest and the largest may be clear.
    pub fn may_be_clear(&self, least: &Decimal, most: &Decimal) -> bool {
        self.above().is_none_or(|threshold| *least <= threshold.clear)
            && self.below().is_none_or(|threshold| *most >= threshold.clear)
    }

    pub(crate) fn side(&self, value: &Decimal) -> Side {
        if self.are_passed(value, value) {
            Side::Breach
        } else if self.may_be_clear(value, value) {
            Side::Clear
        } else {
            Side::Between
        }
    }
}

impl Rule {
    /// On which side of the limits an observation lies; `None` without a value of the watched metric.
    pub(crate) fn side(&self, value: Option<&Decimal>) -> Option<Side> {
        match &self.watch {
            Watch::Metric { limits, .. } => value.map(|value| limits.side(value)),
            Watch::Silence { .. } => Some(Side::Clear),
            Watch::Budget { .. } | Watch::Demand { .. } | Watch::Counter { .. } => None,
        }
    }

    /// The metric that the rule watches; empty for silence. An episode of another metric is another one.
    pub fn watched(&self) -> String {
        self.watch.metric().map(ToString::to_string).unwrap_or_default()
    }

    /// Whether an observation is within the clearing limits, or has no value of the metric that the rule watches.
    pub(crate) fn is_clear(&self, value: Option<&Decimal>) -> bool {
        matches!(self.side(value), None | Some(Side::Clear))
    }

    /// Whether the value of an observation is beyond a limit, or clear. Then a fold needs no earlier observation.
    pub fn is_decisive(&self, value: Option<&Decimal>) -> bool {
        matches!(self.side(value), Some(Side::Breach | Side::Clear))
    }

    /// What silence means for the rule. A rule about silence counts silence as the breach.
    pub const fn no_data(&self) -> NoData {
        match self.watch {
            Watch::Silence { .. } => NoData::Fire,
            _ => self.no_data,
        }
    }

    /// Whether another rule makes the same phases of the same readings. The rules may differ in their names, their
    /// pauses, their settings of messages, and the times when they were saved.
    pub fn judges_as(&self, other: &Self) -> bool {
        let of_other = other.clone();
        let same = Self {
            name: of_other.name,
            repeat: of_other.repeat,
            sends_recovery: of_other.sends_recovery,
            ignores_quiet_hours: of_other.ignores_quiet_hours,
            paused_until: of_other.paused_until,
            changed: of_other.changed,
            ..self.clone()
        };
        same == *other
    }

    /// Whether the rule may make messages at `now`: it is on, and not paused.
    pub fn may_send(&self, now: Timestamp) -> bool {
        self.is_on && self.paused_until.is_none_or(|until| until <= now)
    }

    /// How long before an instant a fold has to begin if no earlier state is known.
    pub(crate) fn reach(&self) -> TimeDelta {
        self.breach_time.max(self.clear_time) + crate::SETTLING
    }
}
