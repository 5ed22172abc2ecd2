//! The origin of a device's readings, as the registry keeps it: the sender's name for the device, the tags, and the
//! fields that became metrics. Facts are added by an [`About`](super::About).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Label, MetricName};

/// The largest number of bytes of all texts of one source together. A text that does not fit is dropped.
///
/// With this limit the item of a device, with its metrics, stays below 16 KB.
pub(super) const MAX_SOURCE: usize = 6 * 1_024;

/// The origin of a device's readings, as the sender describes it. The first value of each fact is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// The name that people see until a person sets [`Device::name`](super::Device::name).
    pub name: Option<Label>,
    /// The tags of line protocol.
    pub tags: BTreeMap<String, String>,
    /// The measurement and the field of line protocol that became each metric.
    pub fields: BTreeMap<MetricName, SourceField>,
    /// The beginning of the hash of the token that introduced the device
    /// ([`TokenHash::short`](super::TokenHash::short)), or the name of another sender, such as `source:remo`.
    pub introduced_by: Option<String>,
}

/// The field of line protocol that became a metric.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "[String; 2]", into = "[String; 2]")]
pub struct SourceField {
    /// The measurement.
    pub measurement: String,
    /// The field.
    pub field: String,
}

impl Source {
    /// Whether there is no fact about the origin.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn size(&self) -> usize {
        let name = self.name.iter().map(|name| name.as_str().len());
        let tags = self.tags.iter().map(|(name, value)| name.len() + value.len());
        let fields = self.fields.iter().map(|(metric, field)| field.size(metric));
        name.chain(tags).chain(fields).sum()
    }
}

impl SourceField {
    /// The number of bytes that this field and its metric take in a source.
    pub(super) fn size(&self, metric: &MetricName) -> usize {
        metric.as_str().len() + self.measurement.len() + self.field.len()
    }
}

impl From<[String; 2]> for SourceField {
    fn from([measurement, field]: [String; 2]) -> Self {
        Self { measurement, field }
    }
}

impl From<SourceField> for [String; 2] {
    fn from(SourceField { measurement, field }: SourceField) -> Self {
        [measurement, field]
    }
}
