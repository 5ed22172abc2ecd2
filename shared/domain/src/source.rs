//! Facts that senders teach about a device beside its readings: tags, the names that fields had, units. A person's
//! edits come first.

use std::collections::BTreeMap;

use super::{Decimal, Label, MetricInfo, MetricKind, MetricName, Role, RoomId, Unit};

/// The bytes that the texts of one source may have together; what does not fit is not kept.
///
/// With its metrics a device's item then stays below 16 KB.
pub(super) const MAX_SOURCE: usize = 6 * 1_024;

/// The origin of a device's readings, as the sender describes it. What was taught first stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// The name, which people see until one of them sets [`Device::name`](super::Device::name).
    pub name: Option<Label>,
    /// The tags of line protocol.
    pub tags: BTreeMap<String, String>,
    /// The measurement and the field that each metric was.
    pub fields: BTreeMap<MetricName, SourceField>,
    /// The beginning of the hash of the token that introduced it ([`TokenHash::short`](super::TokenHash::short)).
    pub introduced_by: Option<String>,
}

/// The field of line protocol that became a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceField {
    /// The measurement.
    pub measurement: String,
    /// The field.
    pub field: String,
}

/// What a request teaches of one device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hints {
    /// The device's name.
    pub name: Option<Label>,
    /// The names of rooms that the readings name; a new room gets its name.
    pub room_names: BTreeMap<RoomId, Label>,
    /// See [`Source::tags`].
    pub tags: BTreeMap<String, String>,
    /// The metrics.
    pub metrics: BTreeMap<MetricName, MetricHints>,
    /// See [`Source::introduced_by`]; known only where the request introduces the device.
    pub introduced_by: Option<String>,
}

/// What a request teaches of one metric.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetricHints {
    /// Gauge or counter.
    pub kind: Option<MetricKind>,
    /// The unit of its values.
    pub unit: Option<Unit>,
    /// The value at which a counter wraps to zero.
    pub modulus: Option<Decimal>,
    /// The role of a meter, where the sender leaves no doubt about it.
    pub role: Option<Role>,
    /// Whether it is a net meter; see [`MetricInfo::is_net`].
    pub is_net: bool,
    /// See [`MetricInfo::cycle`].
    pub cycle: Option<MetricName>,
    /// See [`Source::fields`].
    pub field: Option<SourceField>,
}

impl Source {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn size(&self) -> usize {
        let name = self.name.iter().map(|name| name.as_str().len());
        let tags = self.tags.iter().map(|(name, value)| name.len() + value.len());
        let fields = self.fields.iter().map(|(name, it)| field_size(name, it));
        name.chain(tags).chain(fields).sum()
    }

    pub(super) fn learn(&mut self, hints: &Hints) {
        let mut free = MAX_SOURCE.saturating_sub(self.size());
        let mut fits = |size: usize| {
            let fits = size <= free;
            free -= if fits { size } else { 0 };
            fits
        };
        // The registry function, which knows no sender, may have registered it first.
        if self.introduced_by.is_none() {
            self.introduced_by.clone_from(&hints.introduced_by);
        }
        if let Some(name) = &hints.name
            && self.name.is_none()
            && fits(name.as_str().len())
        {
            self.name = Some(name.clone());
        }
        for (metric, hints) in &hints.metrics {
            if let Some(field) = &hints.field
                && !self.fields.contains_key(metric)
                && fits(field_size(metric, field))
            {
                self.fields.insert(metric.clone(), field.clone());
            }
        }
        for (name, value) in &hints.tags {
            if !self.tags.contains_key(name) && fits(name.len() + value.len()) {
                self.tags.insert(name.clone(), value.clone());
            }
        }
    }
}

fn field_size(metric: &MetricName, it: &SourceField) -> usize {
    metric.as_str().len() + it.measurement.len() + it.field.len()
}

impl Hints {
    /// Whether they teach nothing of the device, its metrics or rooms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { name, room_names, tags, metrics, introduced_by: _ } = self;
        name.is_none() && room_names.is_empty() && tags.is_empty() && metrics.is_empty()
    }

    /// Adds what other readings of the same request teach. What is there stays.
    pub fn absorb(&mut self, other: Self) {
        self.name = self.name.take().or(other.name);
        for (room, name) in other.room_names {
            self.room_names.entry(room).or_insert(name);
        }
        for (name, value) in other.tags {
            self.tags.entry(name).or_insert(value);
        }
        for (metric, hints) in other.metrics {
            self.metrics.entry(metric).or_insert(hints);
        }
    }
}

impl MetricHints {
    /// Describes a metric that neither a sender nor a person has described, and gives a role to one that has
    /// none.
    pub(super) fn apply(&self, info: &mut MetricInfo) {
        let Self { kind, unit, modulus, role, is_net, cycle, field: _ } = self;
        info.role = info.role.or(*role);
        if info.is_described || (kind.is_none() && unit.is_none() && modulus.is_none()) {
            return;
        }
        info.kind = kind.unwrap_or(info.kind);
        info.unit = unit.clone().or(info.unit.take());
        info.modulus = info.modulus.take().or_else(|| modulus.clone());
        info.is_net = *is_net;
        info.cycle.clone_from(cycle);
        info.is_described = true;
    }
}
