//! The settings of one metric of a device, as the registry has them, and a person's edits of them. Folds no reading.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{Decimal, Edit, MetricKind, MetricName, Role, Timestamp, Unit, duration};

/// The number of metrics of one device that the registry keeps. The device's readings may have further metrics.
///
/// Without this limit a device that writes a counter into metric names would grow its item beyond `DynamoDB`'s 400 KB.
pub const MAX_KNOWN_METRICS: usize = 256;

/// The largest number of exchanges of one metric, and the largest number of verdicts.
pub const MAX_JUDGEMENTS: usize = 64;

/// The settings of one metric of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricInfo {
    /// Gauge or counter.
    pub kind: MetricKind,
    /// The unit of the values.
    pub unit: Option<Unit>,
    /// The value at which a counter wraps to zero, in the metric's unit.
    pub modulus: Option<Decimal>,
    /// The largest power that the meter can measure, in W.
    pub max_w: Option<Decimal>,
    /// The largest fall of a counter that counts as noise, in the metric's unit.
    pub tolerance: Option<Decimal>,
    /// The longest time for which the value of a power is valid if no newer value comes.
    pub hold: Option<TimeDelta>,
    /// The exchanges of a meter, by the time at which the new meter took over.
    pub exchanges: BTreeMap<Timestamp, Exchange>,
    /// A person's verdicts on falls and suspect steps, by the timestamp of the reading with which the step ends.
    pub verdicts: BTreeMap<Timestamp, Verdict>,
    /// The role of a meter, set by a person or a sender. A sender's role never replaces a person's.
    pub role: Option<Role>,
    /// Whether a counter is a net meter, which also counts backwards: a fall is negative.
    pub is_net: bool,
    /// The metric whose value, in the same readings, names the current cycle of the counter. When this value changes,
    /// the counter has begun again.
    pub cycle: Option<MetricName>,
    /// Whether the means of rooms include the metric, if a person has decided; see
    /// [`Device::not_of_room`](super::Device::not_of_room).
    pub in_room_means: Option<bool>,
    /// The end of the time for which an import found hourly means instead of readings.
    pub hourly_until: Option<Timestamp>,
    /// Whether a sender or a person has described the metric. If so, descriptions by senders change nothing any more.
    pub is_described: bool,
}

/// An exchange of a meter, with figures in the metric's unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The last figure of the old meter.
    pub old: Decimal,
    /// The first figure of the new meter.
    pub new: Decimal,
}

crate::words! {
    /// A person's verdict on a step of a counter, from one value to the next, that is a fall or suspect.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "VerdictWord"))]
    pub enum Verdict {
        /// The step counts. A suspect rise counts in full, and a suspect fall as a reset. Any other fall counts as it
        /// would without a verdict.
        Accept = "accept",
        /// The step counts nothing.
        Discard = "discard",
        /// The counter began again near zero: the new value counts.
        Reset = "reset",
        /// The counter passed its modulus: the amount up to the modulus counts, plus the new value.
        Wrap = "wrap",
        /// The counter fell and will rise again: the fall counts as a negative amount.
        Dip = "dip",
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
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MetricPatch {
    /// Gauge or counter. When the kind is cleared, the metric's name decides.
    pub kind: Edit<MetricKind>,
    /// The unit.
    pub unit: Edit<Unit>,
    /// See [`MetricInfo::modulus`].
    #[serde(deserialize_with = "positive")]
    pub modulus: Edit<Decimal>,
    /// See [`MetricInfo::max_w`].
    #[serde(deserialize_with = "positive")]
    pub max_w: Edit<Decimal>,
    /// See [`MetricInfo::tolerance`].
    #[serde(deserialize_with = "positive")]
    pub tolerance: Edit<Decimal>,
    /// See [`MetricInfo::hold`].
    #[serde(deserialize_with = "hold")]
    pub hold: Edit<TimeDelta>,
    /// The exchanges. The list replaces the stored one.
    #[serde(deserialize_with = "by_timestamp::<_, DatedExchange, _>")]
    pub exchanges: Edit<BTreeMap<Timestamp, Exchange>>,
    /// The verdicts. The list replaces the stored one.
    #[serde(deserialize_with = "by_timestamp::<_, DatedVerdict, _>")]
    pub verdicts: Edit<BTreeMap<Timestamp, Verdict>>,
    /// See [`MetricInfo::role`]. When the role is cleared, a sender may set a role again.
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

/// An exchange, as a person writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DatedExchange {
    timestamp: Timestamp,
    old: Decimal,
    new: Decimal,
}

/// A verdict as a person writes it, with the timestamp of the reading with which the step ends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DatedVerdict {
    timestamp: Timestamp,
    verdict: Verdict,
}

impl From<DatedExchange> for (Timestamp, Exchange) {
    fn from(DatedExchange { timestamp, old, new }: DatedExchange) -> Self {
        (timestamp, Exchange { old, new })
    }
}

impl From<DatedVerdict> for (Timestamp, Verdict) {
    fn from(DatedVerdict { timestamp, verdict }: DatedVerdict) -> Self {
        (timestamp, verdict)
    }
}

/// Reads a list in which no timestamp occurs twice.
fn by_timestamp<'de, D, E, T>(deserializer: D) -> Result<Edit<BTreeMap<Timestamp, T>>, D::Error>
where
    D: Deserializer<'de>,
    E: Deserialize<'de> + Into<(Timestamp, T)>,
{
    Edit::<Vec<E>>::deserialize(deserializer)?.try_map(|entries| {
        if entries.len() > MAX_JUDGEMENTS {
            return Err(D::Error::custom(format_args!("are more than {MAX_JUDGEMENTS}")));
        }

        let mut all = BTreeMap::new();
        for (timestamp, entry) in entries.into_iter().map(E::into) {
            if all.insert(timestamp, entry).is_some() {
                return Err(D::Error::custom(format_args!("name the timestamp {timestamp} twice")));
            }
        }
        Ok(all)
    })
}

fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Edit<Decimal>, D::Error> {
    Edit::<Decimal>::deserialize(deserializer)?.try_map(|number| {
        let why = || D::Error::custom(format_args!("is {number}; it must be above zero"));
        if number.is_positive() { Ok(number) } else { Err(why()) }
    })
}

fn hold<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Edit<TimeDelta>, D::Error> {
    Edit::<String>::deserialize(deserializer)?.try_map(|text| duration::hold::read(&text))
}

impl MetricPatch {
    /// Whether the edit describes the metric; see [`MetricInfo::is_described`].
    pub fn describes(&self) -> bool {
        let Self { kind, unit, modulus, net, cycle, .. } = self;
        let is_edited = *kind != Edit::Keep || *unit != Edit::Keep || *modulus != Edit::Keep;
        is_edited || *net != Edit::Keep || *cycle != Edit::Keep
    }

    /// The edit without the kind and the unit, if both follow from the metric's name.
    #[must_use]
    pub fn without_defaults(self, name: &MetricName) -> Self {
        let (kind, unit) = name.well_known();
        let is_default =
            self.kind == Edit::Set(kind) && self.unit == unit.map_or(Edit::Clear, Edit::Set);
        if is_default { Self { kind: Edit::Keep, unit: Edit::Keep, ..self } } else { self }
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
