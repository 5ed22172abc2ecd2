//! The event source mappings that `template.yaml` describes. Delivers nothing itself.

mod filter;

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::template::Template;
use filter::Pattern;

/// How the table's stream is delivered to one function.
///
/// A minute of the batching window is a second here, and a shorter window is left out, because nobody at a keyboard
/// wants to wait. The record's maximum age is ignored: a laptop that slept for a night must not lose its records. The
/// on-failure destination is ignored too, because there is one dead-letter queue.
#[derive(Debug)]
pub(crate) struct EventSourceMapping {
    /// The mapping's logical id in CloudFormation, as SAM derives it: the function's and the event's.
    pub(crate) name: String,
    /// The function's logical id.
    pub(crate) function: String,
    /// The time-out of the function.
    pub(crate) timeout: Duration,
    /// The maximum number of records in an invocation.
    pub(crate) batch_size: usize,
    /// How long records are gathered before an incomplete batch is delivered.
    pub(crate) window: Duration,
    /// The number of times that a failed batch is retried.
    pub(crate) retries: u32,
    /// Whether a batch that fails as a whole is tried again in halves.
    pub(crate) bisect: bool,
    /// Whether the function reports which records of a batch failed.
    pub(crate) partial_responses: bool,
    filters: Vec<Pattern>,
}

impl EventSourceMapping {
    /// All mappings of a template that read the table's stream.
    pub(crate) fn from_template(template: &Template) -> anyhow::Result<Vec<Self>> {
        let events = template.function_events(&["DynamoDB"])?;
        let mappings = events.into_iter().filter(|event| event.properties["Enabled"] != false);
        mappings
            .map(|event| {
                let name = format!("{}{}", event.function, event.name);
                Self::new(name.clone(), event.function, event.timeout, &event.properties)
                    .with_context(|| format!("the event source mapping {name}"))
            })
            .collect()
    }

    /// Reads the properties of an event of type `DynamoDB`, with the defaults of Lambda.
    fn new(
        name: String,
        function: String,
        timeout: Duration,
        properties: &Value,
    ) -> anyhow::Result<Self> {
        ensure!(
            properties["StartingPosition"] == "TRIM_HORIZON",
            "StartingPosition is not TRIM_HORIZON"
        );
        let number = |name: &str, default: u64| match &properties[name] {
            Value::Null => Ok(default),
            // The value of a parameter is text.
            Value::String(text) => text.parse().with_context(|| format!("{name} is {text:?}")),
            value => value.as_u64().with_context(|| format!("{name} is not a number")),
        };
        let filters =
            properties["FilterCriteria"]["Filters"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(Self {
            name,
            function,
            timeout,
            batch_size: usize::try_from(number("BatchSize", 100)?)?.max(1),
            window: Duration::from_secs(number("MaximumBatchingWindowInSeconds", 0)? / 60),
            // Without a limit AWS tries for as long as the stream keeps the records.
            retries: u32::try_from(number("MaximumRetryAttempts", u32::MAX.into())?)?,
            bisect: properties["BisectBatchOnFunctionError"] == true,
            partial_responses: properties["FunctionResponseTypes"][0] == "ReportBatchItemFailures",
            filters: filters
                .iter()
                .map(|filter| {
                    let text = filter["Pattern"].as_str().context("a filter has no Pattern")?;
                    Pattern::parse(&serde_json::from_str(text)?)
                })
                .collect::<Result<_, _>>()?,
        })
    }

    /// Returns whether the function receives a record: a filter matches it, or there is no filter.
    pub(crate) fn accepts(&self, record: &Value) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| filter.matches(Some(record)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(name: &str, sk: &str) -> Value {
        json!({"eventName": name, "dynamodb": {"Keys": {"pk": {"S": "remo-e"}, "sk": {"S": sk}}}})
    }

    /// The mapping to a function of the template.
    fn own(function: &str) -> EventSourceMapping {
        let mappings = EventSourceMapping::from_template(Template::own().unwrap()).unwrap();
        mappings.into_iter().find(|mapping| mapping.function == function).unwrap()
    }

    #[test]
    fn the_template_s_filter_accepts_readings_and_nothing_else() {
        let mapping = own("RegistryFunction");
        assert!(mapping.accepts(&record("INSERT", "TS#2026-01-11T16:00:00.000Z")));
        assert!(mapping.accepts(&record("MODIFY", "TS#2026-01-11T16:00:00.000Z")));
        assert!(!mapping.accepts(&record("REMOVE", "TS#2026-01-11T16:00:00.000Z")));
        assert!(!mapping.accepts(&record("INSERT", "M15#2026-01-11T16:00:00.000Z")));
        assert!(!mapping.accepts(&record("INSERT", "remo-e")));
        assert!(!mapping.accepts(&json!({"eventName": "INSERT"})));

        let mapping = own("RollupFunction");
        assert!(mapping.accepts(&record("INSERT", "TS#2026-01-11T16:00:00.000Z")));
        assert!(mapping.accepts(&record("REMOVE", "TS#2026-01-11T16:00:00.000Z")));
        assert!(!mapping.accepts(&record("INSERT", "M15#2026-01-11T16:00:00.000Z")));
    }

    #[test]
    fn the_template_s_mapping_is_understood() {
        let mapping = own("RegistryFunction");
        assert_eq!(mapping.name, "RegistryFunctionChanges");
        assert_eq!((mapping.batch_size, mapping.bisect), (100, true));
        assert!(mapping.retries > 0 && mapping.partial_responses);
        assert_eq!((mapping.timeout, mapping.window), (Duration::from_mins(1), Duration::ZERO));

        let mapping = own("RollupFunction");
        assert_eq!((mapping.batch_size, mapping.retries), (500, 1_000));
        assert!(mapping.bisect && mapping.partial_responses);
        assert_eq!(mapping.window, Duration::from_secs(1));
    }

    #[test]
    fn every_mapping_has_its_own_settings_and_the_defaults_of_lambda() {
        let template = Template::parse(
            "
Resources:
  A:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 7
      Events:
        Stream: {Type: DynamoDB, Properties: {StartingPosition: TRIM_HORIZON, BatchSize: 5}}
        Off: {Type: DynamoDB, Properties: {StartingPosition: TRIM_HORIZON, Enabled: false}}
        Api: {Type: HttpApi}
  B:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 9
      Events:
        Stream: {Type: DynamoDB, Properties: {StartingPosition: TRIM_HORIZON, MaximumRetryAttempts: 0}}
",
        );
        let mappings = EventSourceMapping::from_template(&template.unwrap()).unwrap();
        let [a, b] = &mappings[..] else { panic!("{mappings:?}") };
        assert_eq!((&*a.name, &*b.name), ("AStream", "BStream"));
        assert_eq!((a.batch_size, b.batch_size), (5, 100));
        assert_eq!((a.retries, b.retries), (u32::MAX, 0));
        assert_eq!((a.timeout, b.timeout), (Duration::from_secs(7), Duration::from_secs(9)));
        assert!(!a.bisect && !a.partial_responses);
        assert!(a.accepts(&record("REMOVE", "x")), "without a filter");
    }
}
