//! The registry's knowledge of one metric of a device, and a person's edits of it. Folds no reading.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use super::{Decimal, Edit, MetricKind, MetricName, Role, Timestamp, Unit};

/// The number of metrics of one device that the registry keeps; its readings may have more.
///
/// Without this limit a device that writes a counter into metric names would grow its item beyond
/// `DynamoDB`'s 400 KB.
pub const MAX_KNOWN_METRICS: usize = 256;

/// The largest number of exchanges, of one metric, and the largest number of its verdicts.
pub const MAX_JUDGEMENTS: usize = 64;

/// One metric of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricInfo {
    /// Gauge or counter.
    pub kind: MetricKind,
    /// The unit of its values.
    pub unit: Option<Unit>,
    /// The value at which a counter wraps to zero, in the metric's unit.
    pub modulus: Option<Decimal>,
    /// The largest power that the meter can measure, in W.
    pub max_w: Option<Decimal>,
    /// The largest fall of a counter that is noise, in the metric's unit.
    pub tolerance: Option<Decimal>,
    /// The longest time for which a power holds when no further value comes.
    pub hold: Option<TimeDelta>,
    /// The exchanges of a meter, by the time at which the new one took over.
    pub exchanges: BTreeMap<Timestamp, Exchange>,
    /// A person's verdicts on falls and suspect steps, by the timestamp of the reading that ends the step.
    pub verdicts: BTreeMap<Timestamp, Verdict>,
    /// The role of a meter; a person or a sender sets it, and a person's stays.
    pub role: Option<Role>,
    /// Whether a counter is a net meter: one that counts backwards, so that a fall is negative.
    pub is_net: bool,
    /// The metric of the same readings that tells in which cycle a counter is: where it differs, the counter
    /// has begun again.
    pub cycle: Option<MetricName>,
    /// Whether the means of rooms have the metric, where a person said so; see [`Device::not_of_room`](super::Device::not_of_room).
    pub in_room_means: Option<bool>,
    /// The time until which an import found hourly means only.
    pub hourly_until: Option<Timestamp>,
    /// Whether a sender or a person has described it: hints of senders leave it as it is from then on.
    pub is_described: bool,
}

/// An exchange of a meter, in the metric's unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The last figure of the old meter.
    pub old: Decimal,
    /// The first figure of the new meter.
    pub new: Decimal,
}

/// A person's verdict on a step of a counter that fell or is suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The step counts: a suspect rise as it is, a suspect fall as a reset, any other fall as it does without a
    /// verdict.
    Accept,
    /// The step counts nothing.
    Discard,
    /// The counter began again near zero: what it shows now counts.
    Reset,
    /// The counter passed its modulus: the rest up to the modulus and the new value count.
    Wrap,
    /// The counter fell and comes back: the fall counts negative.
    Dip,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Self; 5] = [Self::Accept, Self::Discard, Self::Reset, Self::Wrap, Self::Dip];

    /// The verdict as the table and the API write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Discard => "discard",
            Self::Reset => "reset",
            Self::Wrap => "wrap",
            Self::Dip => "dip",
        }
    }

    /// Reads what [`as_str`](Self::as_str) writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.as_str() == text)
    }
}

impl From<&MetricName> for MetricInfo {
    fn from(name: &MetricName) -> Self {
        let (kind, unit) = name.well_known();
        Self {
            kind,
            unit,
            modulus: None,
            max_w: None,
            tolerance: None,
            hold: None,
            exchanges: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            role: None,
            is_net: false,
            cycle: None,
            in_room_means: None,
            hourly_until: None,
            is_described: false,
        }
    }
}

/// A person's edit of one metric of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetricPatch {
    /// Gauge or counter. When it is cleared, the metric's name decides.
    pub kind: Edit<MetricKind>,
    /// The unit.
    pub unit: Edit<Unit>,
    /// See [`MetricInfo::modulus`].
    pub modulus: Edit<Decimal>,
    /// See [`MetricInfo::max_w`].
    pub max_w: Edit<Decimal>,
    /// See [`MetricInfo::tolerance`].
    pub tolerance: Edit<Decimal>,
    /// See [`MetricInfo::hold`].
    pub hold: Edit<TimeDelta>,
    /// All exchanges.
    pub exchanges: Edit<BTreeMap<Timestamp, Exchange>>,
    /// All verdicts.
    pub verdicts: Edit<BTreeMap<Timestamp, Verdict>>,
    /// See [`MetricInfo::role`]. When it is cleared, the sender may teach one again.
    pub role: Edit<Role>,
    /// See [`MetricInfo::is_net`].
    pub net: Edit<bool>,
    /// See [`MetricInfo::cycle`].
    pub cycle: Edit<MetricName>,
    /// See [`MetricInfo::in_room_means`].
    pub in_room_means: Edit<bool>,
    /// See [`MetricInfo::hourly_until`].
    pub hourly_until: Edit<Timestamp>,
}

impl MetricPatch {
    /// Whether a person describes the metric; see [`MetricInfo::is_described`].
    #[must_use]
    pub fn describes(&self) -> bool {
        let Self { kind, unit, modulus, net, cycle, .. } = self;
        let is_edited = *kind != Edit::Keep || *unit != Edit::Keep || *modulus != Edit::Keep;
        is_edited || *net != Edit::Keep || *cycle != Edit::Keep
    }

    /// Applies the edit to the metric called `name`.
    pub fn apply(&self, name: &MetricName, info: &mut MetricInfo) {
        match self.kind {
            Edit::Keep => {}
            Edit::Clear => info.kind = name.well_known().0,
            Edit::Set(kind) => info.kind = kind,
        }
        info.is_described |= self.describes();
        self.unit.apply(&mut info.unit);
        self.modulus.apply(&mut info.modulus);
        self.max_w.apply(&mut info.max_w);
        self.tolerance.apply(&mut info.tolerance);
        self.hold.apply(&mut info.hold);
        self.exchanges.apply_or_empty(&mut info.exchanges);
        self.verdicts.apply_or_empty(&mut info.verdicts);
        self.role.apply(&mut info.role);
        self.net.apply_or_empty(&mut info.is_net);
        self.cycle.apply(&mut info.cycle);
        self.in_room_means.apply(&mut info.in_room_means);
        self.hourly_until.apply(&mut info.hourly_until);
    }
}
