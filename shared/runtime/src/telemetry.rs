//! One wide JSON event per invocation, and metrics in `CloudWatch`'s embedded format. Logs no bodies and no tokens.
//!
//! Source: <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use api::Problem;
use serde_json::{Map, Value, json};
use table::{Invocation, StoreError};

use crate::clock::{Clock, Stopwatch};
use crate::config::{Config, LOCAL};

/// The metric that counts invocations which fail because the table throttles; for the stack, not by function.
const THROTTLED: &str = "requests.throttled";

/// The largest number of failures that one field of an event names.
const MAX_NAMED: usize = 10;

/// Writes log events, and chooses the successful invocations that are logged.
#[derive(Clone)]
pub struct Telemetry {
    sink: Arc<dyn Fn(&str) + Send + Sync>,
    stack: Arc<str>,
    /// Only each n-th successful invocation is logged; this is n.
    every: u32,
    successes: Arc<AtomicU32>,
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").field("stack", &self.stack).finish_non_exhaustive()
    }
}

impl Telemetry {
    /// Writes lines to standard output, configured as for a deployed function. On Lambda they are `CloudWatch` log
    /// events.
    pub fn deployed(config: &Config) -> Self {
        Self { stack: config.stack.as_str().into(), every: config.log_every, ..Self::stdout() }
    }

    /// Writes lines to standard output.
    pub fn stdout() -> Self {
        // Errors are ignored: an invocation cannot reopen a closed standard output.
        Self::to(Arc::new(|line| drop(writeln!(std::io::stdout().lock(), "{line}"))))
    }

    /// Writes no event.
    pub fn silent() -> Self {
        Self::to(Arc::new(|_| {}))
    }

    /// Writes all events to `sink`.
    pub fn to(sink: Arc<dyn Fn(&str) + Send + Sync>) -> Self {
        Self { sink, stack: LOCAL.into(), every: 1, successes: Arc::default() }
    }

    /// Whether this successful invocation is logged. The first one of an instance always is.
    fn is_turn(&self) -> bool {
        self.successes.fetch_add(1, Ordering::Relaxed).is_multiple_of(self.every.max(1))
    }
}

/// The event of one invocation: filled while it runs, written once at its end by [`emit`](Self::emit).
#[derive(Debug)]
pub struct WideEvent {
    fields: Map<String, Value>,
    metrics: Vec<MetricField>,
    level: LogLevel,
    /// Whether the client was refused or the work failed. Such an event is always logged.
    has_failed: bool,
    is_throttled: bool,
    started: Stopwatch,
}

/// A field that is a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MetricField {
    name: &'static str,
    unit: &'static str,
    /// Whether the metric belongs to the stack, not to one function.
    is_of_stack: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LogLevel {
    Info,
    Warn,
    Error,
}

impl WideEvent {
    /// Begins the event of an invocation of `function`.
    pub fn begin(function: &'static str) -> Self {
        let mut event = Self {
            fields: Map::new(),
            metrics: Vec::new(),
            level: LogLevel::Info,
            has_failed: false,
            is_throttled: false,
            started: Stopwatch::start(),
        };
        event.set("function", function);
        event
    }

    /// Sets a field. Dots in its name only group fields for the reader: they make no nested objects.
    pub fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.fields.insert(field.to_owned(), value.into());
    }

    /// Sets a field that is also a metric, for an alarm or the dashboard. AWS bills metrics.
    pub fn count(&mut self, field: &'static str, value: impl Into<Value>) {
        self.measure(field, value, "Count", false);
    }

    /// Sets a field that is also a metric of the stack: the values of all functions are added up.
    pub fn count_of_stack(&mut self, field: &'static str, value: impl Into<Value>) {
        self.measure(field, value, "Count", true);
    }

    /// Sets a field in seconds that is also a metric. Unlike a count, it is a metric even if it is zero.
    pub fn seconds(&mut self, field: &'static str, value: i64) {
        self.measure(field, value, "Seconds", false);
    }

    fn measure(
        &mut self,
        name: &'static str,
        value: impl Into<Value>,
        unit: &'static str,
        is_of_stack: bool,
    ) {
        let metric = MetricField { name, unit, is_of_stack };
        if !self.metrics.contains(&metric) {
            self.metrics.push(metric);
        }
        self.set(name, value);
    }

    /// Logs an error that did not make the invocation fail.
    pub fn warn(&mut self, what: &str, error: &dyn std::error::Error) {
        self.level = self.level.max(LogLevel::Warn);
        self.set(what, chain(error));
    }

    /// Logs the first of several errors that did not make the invocation fail, as one text. Without errors, logs
    /// nothing.
    pub fn warn_all(&mut self, what: &str, failures: impl IntoIterator<Item = String>) {
        let named: Vec<String> = failures.into_iter().take(MAX_NAMED).collect();
        if !named.is_empty() {
            self.level = self.level.max(LogLevel::Warn);
            self.set(what, named.join("; "));
        }
    }

    /// Logs an error that a person must look at.
    pub fn error(&mut self, what: &str, error: &(dyn std::error::Error + 'static)) {
        self.level = LogLevel::Error;
        self.is_throttled |= matches!(error.downcast_ref(), Some(StoreError::Throttled(_)));
        self.set(what, chain(error));
    }

    /// Logs the table's error that caused a problem, if there is such an error.
    pub fn cause(&mut self, problem: &Problem) {
        if let Some(cause) = &problem.cause {
            self.error("table.error", &**cause);
        }
    }

    /// Logs the status of the answer to a request.
    pub fn answered(&mut self, status: u16) {
        self.set("http.status", status);
        self.has_failed |= status >= 400;
        if (400..500).contains(&status) {
            self.count_of_stack("requests.refused", 1);
        }
    }

    /// Writes the event, with the capacity that the invocation consumed, as one line.
    ///
    /// Failures and warnings are always written, successes only as often as configured. Any other success writes only
    /// its metrics. They are written at once, because metrics in memory would be lost with the instance.
    pub fn emit(mut self, invocation: &Invocation, telemetry: &Telemetry, clock: &impl Clock) {
        if self.is_throttled {
            self.count_of_stack(THROTTLED, 1);
        }

        // A count of zero stays a field, but is not a metric: AWS bills each metric that has values in a month.
        let Self { fields, metrics, .. } = &mut self;
        metrics
            .retain(|metric| metric.unit != "Count" || fields.get(metric.name) != Some(&json!(0)));

        let is_success = self.level == LogLevel::Info && !self.has_failed;
        let now = clock.now();
        if is_success && !telemetry.is_turn() {
            self.keep_counts();
            if self.metrics.is_empty() {
                return;
            }
        } else {
            self.set("table.read_units", invocation.read_units());
            self.set("table.write_units", invocation.write_units());
            let level = match self.level {
                LogLevel::Info => "INFO",
                LogLevel::Warn => "WARN",
                LogLevel::Error => "ERROR",
            };
            self.set("timestamp", now.to_string());
            self.set("level", level);
            let elapsed = self.started.elapsed().as_micros();
            self.set("duration.us", u64::try_from(elapsed).unwrap_or(u64::MAX));
        }

        self.set("stack", &*telemetry.stack);
        let directives: Vec<Value> = [true, false]
            .into_iter()
            .filter_map(|is_of_stack| self.directive(is_of_stack))
            .collect();
        if !directives.is_empty() {
            let metrics = json!({"Timestamp": now.as_millis(), "CloudWatchMetrics": directives});
            self.fields.insert("_aws".to_owned(), metrics);
        }

        (telemetry.sink)(&Value::Object(self.fields).to_string());
    }

    /// Tells CloudWatch which fields are metrics, either of the stack or of this function. `None` without such metrics.
    fn directive(&self, is_of_stack: bool) -> Option<Value> {
        let dimensions = if is_of_stack { json!(["stack"]) } else { json!(["stack", "function"]) };
        let metrics = self.metrics.iter().filter(|metric| metric.is_of_stack == is_of_stack);
        let metrics: Vec<Value> =
            metrics.map(|metric| json!({"Name": metric.name, "Unit": metric.unit})).collect();
        (!metrics.is_empty()).then(
            || json!({"Namespace": "Roomtide", "Dimensions": [dimensions], "Metrics": metrics}),
        )
    }

    /// Removes all fields but the metrics and the function's name.
    fn keep_counts(&mut self) {
        let Self { fields, metrics, .. } = self;
        fields.retain(|name, _| {
            name == "function" || metrics.iter().any(|metric| metric.name == *name)
        });
    }
}

/// An error with everything that caused it.
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use domain::Timestamp;

    use super::*;
    use crate::clock::{Deadline, TestClock};

    /// The lines that invocations leave, where one in `every` successes is logged.
    fn lines(every: u32, fill: &[&dyn Fn(&mut WideEvent)]) -> Vec<Value> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let telemetry = Telemetry::to(Arc::new(move |line| {
            sink.lock().expect("no panic").push(serde_json::from_str(line).expect("JSON"));
        }));
        let telemetry = Telemetry { every, ..telemetry };
        for fill in fill {
            let mut event = WideEvent::begin("ingest");
            event.set("http.route", "POST /readings");
            fill(&mut event);
            let invocation = Invocation::until(Deadline::after(Duration::from_secs(1)));
            event.emit(&invocation, &telemetry, &TestClock::at(Timestamp::MIN));
        }
        lines.lock().expect("no panic").clone()
    }

    #[test]
    fn most_metrics_have_the_dimensions_stack_and_function_and_some_have_stack_alone() {
        let lines = lines(
            1,
            &[&|event| {
                event.count("readings.accepted", 3);
                event.answered(403);
            }],
        );
        let directives = &lines[0]["_aws"]["CloudWatchMetrics"];
        assert_eq!(
            *directives,
            json!([
                {
                    "Namespace": "Roomtide", "Dimensions": [["stack"]],
                    "Metrics": [{"Name": "requests.refused", "Unit": "Count"}],
                },
                {
                    "Namespace": "Roomtide", "Dimensions": [["stack", "function"]],
                    "Metrics": [{"Name": "readings.accepted", "Unit": "Count"}],
                },
            ])
        );
        assert_eq!((&lines[0]["stack"], &lines[0]["function"]), (&json!(LOCAL), &json!("ingest")));
        assert_eq!(
            (&lines[0]["requests.refused"], &lines[0]["http.status"]),
            (&json!(1), &json!(403))
        );
    }

    #[test]
    fn only_successes_are_left_out_and_no_count_with_them() {
        let stored = |event: &mut WideEvent| {
            event.count("readings.accepted", 2);
            event.count("readings.rejected", 0);
            event.answered(201);
        };
        let idle = |event: &mut WideEvent| event.answered(204);
        let refused = |event: &mut WideEvent| event.answered(401);
        let throttled = |event: &mut WideEvent| {
            event.error("table.error", &StoreError::Throttled("x".into()));
            event.answered(503);
        };
        let swept = |event: &mut WideEvent| event.seconds("rollup.oldest_unfinished_seconds", 0);
        let all =
            lines(3, &[&stored, &stored, &refused, &idle, &throttled, &stored, &stored, &swept]);
        let has_route = |line: &Value| line["http.route"].is_string();
        let whole: Vec<bool> = all.iter().map(has_route).collect();
        // The first, the fourth success; the idle one in between leaves nothing.
        assert_eq!(whole, [true, false, true, true, true, false, false]);
        let sum = |name: &str| all.iter().filter_map(|it| it[name].as_u64()).sum::<u64>();
        assert_eq!(sum("readings.accepted"), 8);
        assert_eq!(all[0]["readings.rejected"], 0);
        let metrics = &all[0]["_aws"]["CloudWatchMetrics"][0]["Metrics"];
        assert_eq!(*metrics, json!([{"Name": "readings.accepted", "Unit": "Count"}]));
        assert_eq!((sum("requests.refused"), sum("requests.throttled")), (1, 1));
        let short = all[1].as_object().expect("an object");
        let names: Vec<&str> = short.keys().map(String::as_str).collect();
        assert_eq!(names, ["_aws", "function", "readings.accepted", "stack"]);
        assert_eq!(all[6]["rollup.oldest_unfinished_seconds"], 0, "an age is told at zero too");
    }
}
