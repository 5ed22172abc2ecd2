//! The schedules that `template.yaml` describes: when each is due, and the event that it sends. Invokes nothing.

use std::fmt;
use std::time::Duration;

use anyhow::Context as _;
use chrono::{DateTime, SecondsFormat, TimeDelta};
use domain::Timestamp;
use serde_json::{Value, json};

use crate::template::{FunctionEvent, Template};

/// A schedule of one function.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// The schedule's logical id in CloudFormation, as SAM derives it: the function's and the event's.
    pub(crate) name: String,
    /// The function's logical id.
    pub(crate) function: String,
    /// The time-out of the function.
    pub(crate) timeout: Duration,
    service: Service,
    period: TimeDelta,
    input: Option<Value>,
}

/// The service that invokes the function.
#[derive(Debug, Clone, Copy)]
enum Service {
    /// A rule of `EventBridge`, SAM's `Schedule`.
    Rule,
    /// `EventBridge` Scheduler, SAM's `ScheduleV2`.
    Scheduler,
}

impl Schedule {
    /// All schedules of a template that are enabled.
    pub(crate) fn from_template(template: &Template) -> anyhow::Result<Vec<Self>> {
        let events = template.function_events(&["Schedule", "ScheduleV2"])?;
        let enabled = events.into_iter().filter(|event| {
            event.properties["Enabled"] != false && event.properties["State"] != "DISABLED"
        });
        enabled.map(Self::new).collect()
    }

    fn new(event: FunctionEvent) -> anyhow::Result<Self> {
        let FunctionEvent { function, timeout, name, kind, properties } = event;
        let name = format!("{function}{name}");
        let context = || format!("the schedule {name}");
        let (service, expression) = match kind.as_str() {
            "Schedule" => (Service::Rule, "Schedule"),
            _ => (Service::Scheduler, "ScheduleExpression"),
        };
        let expression = properties[expression].as_str().unwrap_or_default();
        let period = period(expression).with_context(context)?;
        let input = properties["Input"].as_str().map(serde_json::from_str);
        let input = input.transpose().with_context(context)?;
        Ok(Self { name, function, timeout, service, period, input })
    }

    /// A schedule with a period that a `rate(...)` expression cannot have.
    #[cfg(test)]
    pub(crate) fn every(period: Duration) -> Self {
        Self {
            name: "Test".to_owned(),
            function: "Test".to_owned(),
            timeout: Duration::from_secs(10),
            service: Service::Rule,
            period: TimeDelta::from_std(period).expect("a short period"),
            input: None,
        }
    }

    /// Returns when the schedule is due, if it was due last at `last`.
    pub(crate) fn next(&self, last: Timestamp) -> Timestamp {
        last.saturating_add(self.period)
    }

    /// Makes the event that AWS sends when the schedule is due at `at`.
    pub(crate) fn event(&self, at: Timestamp) -> Value {
        if let Some(input) = &self.input {
            return input.clone();
        }
        let name = &self.name;
        let (source, resource, detail) = match self.service {
            Service::Rule => {
                ("aws.events", format!("arn:aws:events:local:000000000000:rule/{name}"), json!({}))
            }
            Service::Scheduler => (
                "aws.scheduler",
                format!("arn:aws:scheduler:local:000000000000:schedule/default/{name}"),
                json!("{}"),
            ),
        };
        let time = DateTime::from_timestamp_millis(at.as_millis()).unwrap_or_default();
        json!({
            "version": "0",
            "id": format!("{name}-{}", at.as_millis()),
            "detail-type": "Scheduled Event",
            "source": source,
            "account": "000000000000",
            "time": time.to_rfc3339_opts(SecondsFormat::Secs, true),
            "region": "local",
            "resources": [resource],
            "detail": detail,
        })
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the schedule {}", self.name)
    }
}

/// Reads the period of a `rate(...)`. No function uses `cron(...)`, so the local system does not read that form.
fn period(expression: &str) -> anyhow::Result<TimeDelta> {
    let rate = expression.strip_prefix("rate(").and_then(|rest| rest.strip_suffix(')'));
    let period = rate.and_then(|rate| {
        let (count, unit) = rate.trim().split_once(' ')?;
        let count = count.parse().ok().filter(|count| *count > 0)?;
        match unit.trim() {
            "minute" | "minutes" => TimeDelta::try_minutes(count),
            "hour" | "hours" => TimeDelta::try_hours(count),
            "day" | "days" => TimeDelta::try_days(count),
            _ => None,
        }
    });
    period.with_context(|| {
        format!("the local system reads rates only, such as rate(15 minutes), not {expression:?}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::at;

    const TEMPLATE: &str = r#"
Resources:
  Nightly:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 30
      Events:
        Repair: {Type: Schedule, Properties: {Schedule: rate(1 day)}}
        Off: {Type: Schedule, Properties: {Schedule: rate(1 day), Enabled: false}}
        Tick: {Type: ScheduleV2, Properties: {ScheduleExpression: rate(15 minutes)}}
        Told: {Type: Schedule, Properties: {Schedule: rate(1 hour), Input: '{"day": 1}'}}
"#;

    #[test]
    fn schedules_are_due_when_the_template_says_with_the_event_that_aws_sends() {
        let schedules = Schedule::from_template(&Template::parse(TEMPLATE).unwrap()).unwrap();
        let named = |name: &str| schedules.iter().find(|schedule| schedule.name == name).unwrap();
        assert_eq!(schedules.len(), 3);

        let repair = named("NightlyRepair");
        let due = repair.next(at("2026-01-11T16:00:00Z"));
        assert_eq!(due, at("2026-01-12T16:00:00Z"));
        let event = repair.event(due);
        assert_eq!(
            (&event["source"], &event["detail-type"], &event["time"], &event["detail"]),
            (
                &json!("aws.events"),
                &json!("Scheduled Event"),
                &json!("2026-01-12T16:00:00Z"),
                &json!({})
            )
        );
        assert_eq!((&*repair.function, repair.timeout), ("Nightly", Duration::from_secs(30)));

        let tick = named("NightlyTick");
        assert_eq!(tick.next(at("2026-01-11T16:00:00Z")), at("2026-01-11T16:15:00Z"));
        assert_eq!(tick.event(due)["source"], "aws.scheduler");
        assert_eq!(named("NightlyTold").event(due), json!({"day": 1}));
    }

    #[test]
    fn another_expression_than_a_rate_is_refused_by_name() {
        assert_eq!(period("rate(1 minute)").unwrap(), TimeDelta::minutes(1));
        for text in
            ["rate(0 minutes)", "rate(5 weeks)", "cron(0 3 ? * SUN *)", "at(2026-01-11)", ""]
        {
            let error = period(text).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
