//! A part of an answer as ingest takes it, and the digest by which an unchanged one is known. Sends nothing.

use std::collections::BTreeMap;

use domain::{AboutMetric, DeviceId, MetricName};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The format of readings as `POST /readings` takes them.
pub(crate) const READINGS: &str = "readings";

/// A part of an answer, as ingest takes it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Portion {
    /// Its name among the portions of a source: the request, and the day of the rows.
    pub key: String,
    /// The format of its rows, by the name that ingest has for it.
    pub format: String,
    /// The device of payloads that name none.
    pub device: Option<DeviceId>,
    /// The names of devices that payloads do not tell.
    pub names: BTreeMap<DeviceId, String>,
    /// What is said of metrics beside their values.
    pub about: BTreeMap<MetricName, AboutMetric>,
    /// The rows in JSON; a payload is one.
    pub rows: Vec<String>,
    /// Whether each value has its own time, so that what is equal need not be stored again.
    pub is_timed: bool,
}

impl Portion {
    /// A portion of one reading, as `POST /readings` takes it.
    pub fn of_reading(key: &str, reading: &Value) -> Self {
        Self {
            key: key.to_owned(),
            format: READINGS.to_owned(),
            rows: vec![reading.to_string()],
            is_timed: true,
            ..Self::default()
        }
    }

    /// The digest of its content. Equal portions have the same one.
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
    /// The first row of an interval's power is delivered alone: a rollup counts a row by the `hold` that the registry
    /// has, and from this row it learns the `hold`.
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
