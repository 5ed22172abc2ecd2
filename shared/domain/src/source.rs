//! Facts that senders teach about a device beside its readings: tags, the names that fields had, units. A person's
//! edits come first.

use std::collections::BTreeMap;

use super::fold_settings::extent_of_change;
use super::{
    Decimal, Device, Label, MAX_KNOWN_METRICS, MetricInfo, MetricKind, MetricName, Role, RoomId,
    Unit,
};

/// The bytes that the texts of one source may have together; what does not fit is not kept.
///
/// With its metrics a device's item then stays below 16 KB.
const MAX_SOURCE: usize = 6 * 1_024;

/// The origin of a device's readings, as the sender describes it. What was taught first stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// The name, which people see until one of them sets [`Device::name`].
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
    /// See [`Source::introduced_by`]; of a device that is registered it changes nothing.
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

    fn size(&self) -> usize {
        let name = self.name.iter().map(|name| name.as_str().len());
        let tags = self.tags.iter().map(|(name, value)| name.len() + value.len());
        let fields = self.fields.iter().map(|(name, it)| field_size(name, it));
        name.chain(tags).chain(fields).sum()
    }

    fn learn(&mut self, hints: &Hints) {
        let mut free = MAX_SOURCE.saturating_sub(self.size());
        let mut fits = |size: usize| {
            let fits = size <= free;
            free -= if fits { size } else { 0 };
            fits
        };
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
    /// Whether they teach nothing of the device or its metrics.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { name, tags, metrics, .. } = self;
        name.is_none() && tags.is_empty() && metrics.is_empty()
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
    fn apply(&self, info: &mut MetricInfo) {
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

impl Device {
    /// The device after the hints, if they teach anything: what is known already stays.
    #[must_use]
    pub fn taught(&self, hints: &Hints) -> Option<Self> {
        let mut device = self.clone();
        device.source.learn(hints);
        for (name, hints) in &hints.metrics {
            if let Some(info) = device.metrics.get_mut(name) {
                hints.apply(info);
            } else if device.metrics.len() < MAX_KNOWN_METRICS {
                let mut info = name.into();
                hints.apply(&mut info);
                device.metrics.insert(name.clone(), info);
            }
        }
        if device == *self {
            return None;
        }
        // Its readings may be folded already.
        if let Some(extent) = extent_of_change(&self.metrics, &device.metrics) {
            device.fold_settings.note(extent);
        }
        device.version += 1;
        Some(device)
    }

    /// A device that is being registered, with what the hints teach.
    #[must_use]
    pub fn described(self, hints: &Hints) -> Self {
        let Self { fold_settings, version, .. } = self.clone();
        // Nothing of it is folded yet.
        let mut device =
            self.taught(hints).map_or(self, |taught| Self { fold_settings, version, ..taught });
        device.source.introduced_by.clone_from(&hints.introduced_by);
        device
    }

    /// The name that people see: the one that a person set, else the sender's.
    #[must_use]
    pub fn shown_name(&self) -> Option<&Label> {
        self.name.as_ref().or(self.source.name.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceObservation, Edit, FoldSettings, MetricPatch, Reading, Timestamp};

    fn metric(text: &str) -> MetricName {
        text.parse().expect("a name")
    }

    fn device() -> Device {
        let metrics = [(metric("energy"), Decimal::parse("1").expect("a number"))].into();
        let id = "d".parse().expect("an id");
        let reading = Reading::new(id, Timestamp::MIN, None, metrics).expect("a reading");
        DeviceObservation::of(&reading).new_device("d".parse().expect("an id"), |_| false)
    }

    fn hints() -> Hints {
        let field = SourceField { measurement: "kWh".to_owned(), field: "value".to_owned() };
        let energy = MetricHints {
            kind: Some(MetricKind::Counter),
            unit: Some("kWh".parse().expect("a unit")),
            field: Some(field),
            ..MetricHints::default()
        };
        Hints {
            name: Some("Meter".parse().expect("a label")),
            tags: [("host".to_owned(), "pi".to_owned())].into(),
            metrics: [(metric("energy"), energy)].into(),
            ..Hints::default()
        }
    }

    #[test]
    fn hints_are_learned_once_and_note_a_change_of_the_fold() {
        let taught = device().taught(&hints()).expect("news");
        assert_eq!((taught.version, taught.fold_settings.number), (1, 1));
        assert_eq!(taught.metrics[&metric("energy")].kind, MetricKind::Counter);
        assert_eq!(taught.shown_name().map(Label::as_str), Some("Meter"));
        assert_eq!(taught.taught(&hints()), None);
        let new = device().described(&hints());
        assert_eq!(
            Device { version: 1, fold_settings: taught.fold_settings.clone(), ..new.clone() },
            taught
        );
        assert_eq!((new.version, new.fold_settings), (0, FoldSettings::default()));
    }

    #[test]
    fn a_person_comes_first() {
        let mut device = device();
        let gauge = MetricPatch { kind: Edit::Set(MetricKind::Gauge), ..MetricPatch::default() };
        let name = metric("energy");
        gauge.apply(&name, device.metrics.get_mut(&name).expect("it has sent it"));
        device.name = Some("Cellar".parse().expect("a label"));
        let taught = device.taught(&hints()).expect("tags and the field");
        assert_eq!(taught.metrics, device.metrics);
        assert_eq!(taught.shown_name().map(Label::as_str), Some("Cellar"));
    }

    #[test]
    fn a_source_is_bounded_and_what_was_first_stays() {
        let mut hints = hints();
        let taught = device().taught(&hints).expect("news");
        hints.tags = [("host".to_owned(), "other".to_owned())].into();
        assert_eq!(taught.taught(&hints), None);
        hints.tags = (0..1_000).map(|n| (format!("t{n:03}"), "x".repeat(100))).collect();
        let full = taught.taught(&hints).expect("news");
        assert!(full.source.size() <= MAX_SOURCE && full.source.tags.len() > 50);
        assert_eq!(full.taught(&hints), None, "and nothing is written again and again");
    }
}
