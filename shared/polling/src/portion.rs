//! A part of an answer in the form that ingest takes, with a digest that changes with its content. Sends nothing.

use std::collections::BTreeMap;

use domain::{AboutMetric, DeviceId, MetricName};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The format of readings in `POST /readings`.
pub(crate) const READINGS: &str = "readings";

/// A part of an answer, in the form that ingest takes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Portion {
    /// The key of the portion within its source: the request, and the day of the rows.
    pub key: String,
    /// The format of the rows, by the name that ingest has for it.
    pub format: String,
    /// The device of payloads without a device id.
    pub device: Option<DeviceId>,
    /// The names of devices, if payloads do not have them.
    pub names: BTreeMap<DeviceId, String>,
    /// The units and other properties of metrics.
    pub about: BTreeMap<MetricName, AboutMetric>,
    /// The rows in JSON. A payload is one row.
    pub rows: Vec<String>,
    /// Whether the portion says how the source is, and is not a part of an answer.
    pub is_own: bool,
    /// Whether each value has its own time. If so, an unchanged portion need not be stored again.
    pub is_timed: bool,
}

impl Portion {
    /// A portion with one reading that says how the source is.
    pub fn of_reading(key: &str, reading: &Value) -> Self {
        Self {
            key: key.to_owned(),
            format: READINGS.to_owned(),
            rows: vec![reading.to_string()],
            is_own: true,
            is_timed: true,
            ..Self::default()
        }
    }

    /// The digest of format and rows. Equal portions have equal digests.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(&self.format);
        for row in &self.rows {
            hash.update([0]);
            hash.update(row);
        }
        hash.finalize()[..12].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The rows in parts of at most `size` rows, each as the body of one delivery.
    ///
    /// If a metric has a `hold`, the time for which a power value is valid, the first row is delivered alone. It tells
    /// the registry the `hold` before rollups need it for the later rows.
    pub fn bodies(&self, size: usize) -> Vec<String> {
        if self.format != READINGS {
            return self.rows.clone();
        }

        let has_hold = self.about.values().any(|about| about.hold.is_some());
        let (first, rest) = self.rows.split_at(usize::from(has_hold).min(self.rows.len()));
        let first = first.chunks(1);
        first.chain(rest.chunks(size)).map(|rows| format!("[{}]", rows.join(","))).collect()
    }
}
