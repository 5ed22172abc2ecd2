//! What the test of a source found. Asks nothing.

use std::collections::{BTreeMap, BTreeSet};

use domain::DeviceId;
use serde::Serialize;
use serde_json::Value;

/// What a test found.
#[derive(Debug, Default, Serialize)]
pub struct TestReply {
    pub(crate) requests: Vec<TriedRequest>,
    pub(crate) devices: BTreeSet<DeviceId>,
    /// The names of devices, of a kind whose maker lists them.
    pub(crate) names: BTreeMap<DeviceId, String>,
    pub(crate) readings: Vec<Value>,
    pub(crate) rejected: Vec<Value>,
    pub(crate) ignored: BTreeSet<String>,
    /// The numbers of the answer by their pointers, of the kind `json`.
    pub(crate) numbers: BTreeMap<String, Value>,
    /// Why the source cannot be read, in words that people may see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl TestReply {
    pub(crate) fn error(why: String) -> Self {
        Self { error: Some(why), ..Self::default() }
    }
}

/// A request that was sent, for whoever tries a source.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TriedRequest {
    pub(crate) host: String,
    pub(crate) status: u16,
    pub(crate) ms: u64,
    pub(crate) bytes: usize,
}
