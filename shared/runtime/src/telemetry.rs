//! One wide JSON event per invocation, and metrics in `CloudWatch`'s embedded format. Logs no bodies and no tokens.

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use table::Invocation;

use crate::clock::{Clock, Stopwatch};

/// Where the events go.
#[derive(Clone)]
pub struct Telemetry(Arc<dyn Fn(&str) + Send + Sync>);

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Telemetry")
    }
}

impl Telemetry {
    /// Lines on standard output: on Lambda they are `CloudWatch` log events.
    #[must_use]
    pub fn stdout() -> Self {
        // An invocation cannot reopen a closed standard output.
        Self::to(Arc::new(|line| drop(writeln!(std::io::stdout().lock(), "{line}"))))
    }

    /// Nowhere.
    #[must_use]
    pub fn silent() -> Self {
        Self::to(Arc::new(|_| {}))
    }

    /// Wherever `sink` takes them.
    #[must_use]
    pub fn to(sink: Arc<dyn Fn(&str) + Send + Sync>) -> Self {
        Self(sink)
    }
}

/// The event of one invocation: filled while it runs, written once at its end by [`emit`](Self::emit).
#[derive(Debug)]
pub struct WideEvent {
    fields: Map<String, Value>,
    metrics: Vec<Value>,
    level: Level,
    started: Stopwatch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Info,
    Warn,
    Error,
}

impl WideEvent {
    /// Begins the event of an invocation of `function`.
    #[must_use]
    pub fn begin(function: &'static str) -> Self {
        let mut event = Self {
            fields: Map::new(),
            metrics: Vec::new(),
            level: Level::Info,
            started: Stopwatch::start(),
        };
        event.set("function", function);
        event
    }

    /// Notes a field; dots in its name nest nothing, they only group.
    pub fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.fields.insert(field.to_owned(), value.into());
    }

    /// Notes a field that is also counted as a metric.
    pub fn count(&mut self, field: &str, value: impl Into<Value>) {
        self.metrics.push(json!({"Name": field, "Unit": "Count"}));
        self.set(field, value);
    }

    /// Notes something that went wrong and was mended.
    pub fn warn(&mut self, what: &str, error: &dyn std::error::Error) {
        self.level = self.level.max(Level::Warn);
        self.set(what, chain(error));
    }

    /// Notes something that somebody must look at.
    pub fn error(&mut self, what: &str, error: &dyn std::error::Error) {
        self.level = Level::Error;
        self.set(what, chain(error));
    }

    /// Writes the event, with the capacity that the invocation consumed, as one line.
    pub fn emit(mut self, invocation: &Invocation, telemetry: &Telemetry, clock: &impl Clock) {
        self.set("table.read_units", invocation.read_units());
        self.set("table.write_units", invocation.write_units());
        let now = clock.now();
        let level = match self.level {
            Level::Info => "INFO",
            Level::Warn => "WARN",
            Level::Error => "ERROR",
        };
        self.set("timestamp", now.to_string());
        self.set("level", level);
        self.set(
            "duration.us",
            u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX),
        );
        if !self.metrics.is_empty() {
            let metrics = json!({
                "Timestamp": now.as_millis(),
                "CloudWatchMetrics": [{
                    "Namespace": "Roomtide", "Dimensions": [["function"]], "Metrics": self.metrics,
                }],
            });
            self.fields.insert("_aws".to_owned(), metrics);
        }
        (telemetry.0)(&Value::Object(self.fields).to_string());
    }
}

/// An error with everything that caused it.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
