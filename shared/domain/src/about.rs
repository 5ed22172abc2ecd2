//! Facts about a device that a sender adds to a reading's values, and their stored form. Knows no device.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use super::{Decimal, Label, MetricInfo, MetricKind, MetricName, Role, SourceField, Unit};

/// Facts that a sender gives about a device in addition to a reading's values. The reading's item stores the facts as
/// JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The device's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Label>,
    /// The name of the room that the reading names. A room without a name gets this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_name: Option<Label>,
    /// The tags of line protocol.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// The meaning of metrics.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<MetricName, AboutMetric>,
    /// The sender that introduces the device; see [`Source::introduced_by`](super::Source::introduced_by). Set by the
    /// function ingest, never by a sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introduced_by: Option<String>,
    /// Whether the device introduces the room that the reading names. Set by the function ingest, never by a sender.
    #[serde(skip_serializing_if = "is_false")]
    pub introduces_room: bool,
}

/// Facts that a sender gives about one metric.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline, deny_unknown_fields))]
#[serde(default)]
pub struct AboutMetric {
    /// Gauge or counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<MetricKind>,
    /// The unit of the values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    /// The value at which a counter wraps to zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modulus: Option<Decimal>,
    /// The longest time for which the value of a power holds, such as 90s, 15m or 1h.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    #[serde(skip_serializing_if = "Option::is_none", with = "super::duration::hold")]
    pub hold: Option<TimeDelta>,
    /// The role of a meter, if the sender leaves no doubt about the role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Whether the metric is a net meter, whose falls count as negative.
    #[serde(rename = "net", skip_serializing_if = "is_false")]
    pub is_net: bool,
    /// The metric whose value, in the same readings, names the current cycle of the counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycle: Option<MetricName>,
    /// The measurement and the field of line protocol that became the metric.
    #[cfg_attr(feature = "schema", schemars(with = "Option<[String; 2]>"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<SourceField>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl About {
    /// Whether there is no fact.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the facts of another reading. Facts that are already known are not replaced.
    pub fn absorb(&mut self, other: Self) {
        self.name = self.name.take().or(other.name);
        self.room_name = self.room_name.take().or(other.room_name);
        for (name, value) in other.tags {
            self.tags.entry(name).or_insert(value);
        }
        for (name, metric) in other.metrics {
            self.metrics.entry(name).or_default().absorb(metric);
        }
        self.introduced_by = self.introduced_by.take().or(other.introduced_by);
        self.introduces_room |= other.introduces_room;
    }
}

impl AboutMetric {
    /// Whether a fact describes the values: their kind, their unit, the modulus or the hold time.
    const fn is_description(&self) -> bool {
        self.kind.is_some() || self.unit.is_some() || self.modulus.is_some() || self.hold.is_some()
    }

    /// Adds the facts of another reading. The facts that describe the values are all taken from a single reading.
    fn absorb(&mut self, other: Self) {
        let (role, field) = (self.role.or(other.role), self.field.take().or(other.field.clone()));
        if !self.is_description() {
            *self = other;
        }
        (self.role, self.field) = (role, field);
    }

    /// The facts that a metric's settings do not have yet; `None` if there are no such facts.
    pub(super) fn news(&self, info: &MetricInfo) -> Option<Self> {
        let role = self.role.filter(|_| info.role.is_none());
        let is_description = self.is_description() && !info.is_described;
        if role.is_none() && !is_description {
            return None;
        }
        let described = if is_description { self.clone() } else { Self::default() };
        Some(Self { role, field: None, ..described })
    }

    /// Adds these facts to the settings of a metric, which do not have them yet.
    pub(super) fn apply(self, info: &mut MetricInfo) {
        info.role = info.role.or(self.role);
        if !self.is_description() {
            return;
        }
        info.kind = self.kind.unwrap_or(info.kind);
        info.unit = self.unit.or(info.unit.take());
        info.modulus = info.modulus.take().or(self.modulus);
        info.hold = info.hold.or(self.hold);
        info.is_net = self.is_net;
        info.cycle = self.cycle;
        info.is_described = true;
    }
}

impl About {
    /// Drops the name, the fields and the tags that do not fit into `free` bytes.
    pub(super) fn keep_what_fits(&mut self, mut free: usize) {
        let mut fits = |size: usize| {
            let fits = size <= free;
            free -= if fits { size } else { 0 };
            fits
        };

        self.name.take_if(|name| !fits(name.as_str().len()));
        for (name, metric) in &mut self.metrics {
            metric.field.take_if(|field| !fits(field.size(name)));
        }
        self.metrics.retain(|_, metric| *metric != AboutMetric::default());
        self.tags.retain(|name, value| fits(name.len() + value.len()));
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::given::{self, label, metric, number};

    /// Readings in tables have this form: it only grows.
    #[test]
    fn the_stored_form_is_that_of_a_file() {
        let field = SourceField { measurement: "kWh".to_owned(), field: "value".to_owned() };
        let energy = AboutMetric {
            kind: Some(MetricKind::Counter),
            unit: Some(given::unit("kWh")),
            modulus: Some(number("100000.5")),
            hold: Some(TimeDelta::minutes(30)),
            role: Some(Role::Import),
            is_net: true,
            cycle: Some(metric("last_reset")),
            field: Some(field),
        };
        let all = About {
            name: Some(label("Meter")),
            room_name: Some(label("Hall")),
            tags: [("entity_id".to_owned(), "meter".to_owned())].into(),
            metrics: [(metric("energy"), energy), (metric("power"), AboutMetric::default())].into(),
            introduced_by: Some("0011223344556677".to_owned()),
            introduces_room: true,
        };
        let stored = include_str!("about.json").trim_end();
        assert_eq!(serde_json::to_string(&all).expect("JSON"), stored);
        assert_eq!(serde_json::from_str::<About>(stored).expect("an about"), all);
        assert_eq!(serde_json::to_string(&About::default()).expect("JSON"), "{}");
        let of_later = r#"{"name": "Meter", "colour": "red"}"#;
        let read: About = serde_json::from_str(of_later).expect("an about");
        assert_eq!(read.name, Some(label("Meter")));
    }

    #[test]
    fn of_two_readings_the_first_counts_and_the_parts_of_a_metric_stay_together() {
        let energy = metric("energy");
        let of = |metric: AboutMetric| About {
            metrics: [(energy.clone(), metric)].into(),
            ..About::default()
        };
        let role = AboutMetric { role: Some(Role::Import), ..AboutMetric::default() };
        let net = AboutMetric {
            unit: Some(given::unit("kWh")),
            is_net: true,
            cycle: Some(metric("last_reset")),
            role: Some(Role::Export),
            ..AboutMetric::default()
        };
        let other = AboutMetric {
            unit: Some(given::unit("Wh")),
            modulus: Some(number("5")),
            ..AboutMetric::default()
        };

        let mut all = of(role);
        all.absorb(of(net.clone()));
        all.absorb(of(other));
        assert_eq!(all, of(AboutMetric { role: Some(Role::Import), ..net }));
    }
}
