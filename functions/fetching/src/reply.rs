//! The replies of ingest to deliveries, and the reply to the test of a source. Makes no request.

use std::collections::{BTreeMap, BTreeSet};

use domain::DeviceId;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The reply of ingest to a delivery.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Delivered {
    pub(crate) accepted: usize,
    pub(crate) accepted_before: usize,
    /// What cannot be taken, in words.
    #[serde(deserialize_with = "in_words")]
    pub(crate) rejected: Vec<String>,
    pub(crate) ignored: BTreeSet<String>,
    pub(crate) devices: BTreeSet<DeviceId>,
    pub(crate) readings: Vec<Value>,
}

/// The reply to the test of a source.
#[derive(Debug, Default, Serialize)]
pub struct TestReply {
    pub(crate) requests: Vec<TriedRequest>,
    /// The reply of ingest to all answers, with all devices that the maker lists.
    #[serde(flatten)]
    pub(crate) delivered: Delivered,
    /// The names of devices, if the maker lists them.
    pub(crate) names: BTreeMap<DeviceId, String>,
    /// The numbers in the answer by their pointers, for the kind `json`.
    pub(crate) numbers: BTreeMap<String, Value>,
    /// Why the source cannot be read, in words for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Delivered {
    /// Whether ingest took no reading.
    pub(crate) const fn is_empty(&self) -> bool {
        self.accepted + self.accepted_before == 0
    }

    /// Adds the reply to another delivery.
    pub(crate) fn add(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.accepted_before += other.accepted_before;
        self.rejected.extend(other.rejected);
        self.ignored.extend(other.ignored);
        self.devices.extend(other.devices);
        self.readings.extend(other.readings);
    }
}

/// Reads refusals of ingest.
fn in_words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    struct Refusal {
        field: Option<String>,
        message: String,
    }
    let in_words = |Refusal { field, message }| match field {
        Some(field) => format!("{field} {message}"),
        None => message,
    };
    Ok(Vec::deserialize(deserializer)?.into_iter().map(in_words).collect())
}

impl TestReply {
    pub(crate) fn error(why: String) -> Self {
        Self { error: Some(why), ..Self::default() }
    }
}

/// A request that was sent, for a person who tries a source.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TriedRequest {
    pub(crate) host: String,
    pub(crate) status: u16,
    pub(crate) ms: u64,
    pub(crate) bytes: usize,
}
