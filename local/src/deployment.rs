//! The settings of `template.yaml` for the parts that this machine plays in place of AWS. Runs nothing.
//!
//! The program reads no template. `tests/template/deployment.rs` compares these values with it, so that neither can
//! drift from the other.

use std::time::Duration;

use chrono::TimeDelta;
use runtime::config::MaxUnits;
use serde_json::Value;
use table::keys::READING_PREFIX;

/// A function that the stream, a queue or a schedule invokes.
#[derive(Debug, Clone, Copy)]
pub struct DeployedFunction {
    /// The function's logical id.
    pub name: &'static str,
    /// The time limit of an invocation.
    pub timeout: Duration,
}

/// Keeps the registry, and judges alerts by the stream.
pub const REGISTRY: DeployedFunction =
    DeployedFunction { name: "RegistryFunction", timeout: Duration::from_secs(60) };
/// Keeps the rollups.
pub const ROLLUP: DeployedFunction =
    DeployedFunction { name: "RollupFunction", timeout: Duration::from_secs(300) };
/// Sends the messages of alerts.
pub const ALERTING: DeployedFunction =
    DeployedFunction { name: "AlertingFunction", timeout: Duration::from_secs(55) };
/// Asks sources.
pub const FETCHING: DeployedFunction =
    DeployedFunction { name: "FetchingFunction", timeout: Duration::from_secs(55) };

/// The period of the schedules of the rollup function, of the alerting function and of the fetching function.
pub const SCHEDULE_PERIOD: TimeDelta = TimeDelta::minutes(1);

/// How the table's stream is delivered to one function.
///
/// A minute of the batching window is a second here, and a shorter window is left out, because nobody at a keyboard
/// wants to wait. The record's maximum age is ignored: a laptop that slept for a night must not lose its records. The
/// on-failure destination is ignored too, because there is one dead-letter queue.
#[derive(Debug, Clone)]
pub struct StreamSource {
    /// The mapping's logical id in CloudFormation, as SAM derives it. The position in the stream is kept by this name.
    pub name: &'static str,
    /// The function that receives the records.
    pub function: DeployedFunction,
    /// The kinds of changes that the function receives.
    pub changes: &'static [&'static str],
    /// The maximum number of records in an invocation.
    pub batch_size: usize,
    /// How long records are gathered before an incomplete batch is delivered.
    pub window: Duration,
    /// The number of times that failed records are tried again before they are given up.
    pub retries: u32,
}

/// The stream to the registry function.
pub const REGISTRY_STREAM: StreamSource = StreamSource {
    name: "RegistryFunctionChanges",
    function: REGISTRY,
    changes: &["INSERT", "MODIFY"],
    batch_size: 100,
    window: Duration::ZERO,
    retries: 1_000,
};
/// The stream to the rollup function, which follows deletions, too.
pub const ROLLUP_STREAM: StreamSource = StreamSource {
    name: "RollupFunctionChanges",
    function: ROLLUP,
    changes: &["INSERT", "MODIFY", "REMOVE"],
    batch_size: 500,
    window: Duration::from_secs(1),
    retries: 1_000,
};

impl StreamSource {
    /// Whether the function receives a record: the record is of a reading, and its kind of change is in `changes`.
    pub fn accepts(&self, record: &Value) -> bool {
        let change = record["eventName"].as_str().unwrap_or_default();
        let sort_key = record["dynamodb"]["Keys"]["sk"]["S"].as_str().unwrap_or_default();
        self.changes.contains(&change) && sort_key.starts_with(READING_PREFIX)
    }
}

/// How a queue's messages are delivered to one function.
#[derive(Debug, Clone)]
pub struct QueueSource {
    /// The queue's logical id.
    pub queue: &'static str,
    /// The function that receives the messages.
    pub function: DeployedFunction,
    /// The maximum number of messages in an invocation.
    pub batch_size: usize,
    /// The maximum pause before a failed message is delivered again.
    pub visibility_timeout: Duration,
    /// The number of times that a message is delivered before it is given up.
    pub max_receives: u32,
}

/// The work that the rollup function leaves for later.
pub const ROLLUP_QUEUE: QueueSource = QueueSource {
    queue: "RollupQueue",
    function: ROLLUP,
    batch_size: 10,
    visibility_timeout: Duration::from_secs(1_800),
    max_receives: 8,
};

/// The provisioned units per second of the table.
pub const TABLE_UNITS: MaxUnits = MaxUnits { read: 12, write: 12 };
/// The provisioned units per second of the index by room.
pub const ROOM_INDEX_UNITS: MaxUnits = MaxUnits { read: 11, write: 11 };
