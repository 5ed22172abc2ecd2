//! The event source mapping as `template.yaml` describes it, and its filter. Delivers nothing itself.

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::template::Template;

/// How the stream is handed to the registry.
///
/// The batching window is not read, because nobody at a keyboard wants to wait for it; nor is the
/// largest age of a record, because a laptop that slept for a night must not lose what it holds.
#[derive(Debug)]
pub(crate) struct EventSourceMapping {
    /// The most records of one invocation.
    pub(crate) batch_size: usize,
    /// How often a batch that fails is tried again.
    pub(crate) retries: u32,
    /// Whether a batch that fails as a whole is tried again in halves.
    pub(crate) bisect: bool,
    filters: Vec<Pattern>,
}

impl EventSourceMapping {
    /// The one mapping from a table's stream in the template.
    pub(crate) fn from_template(template: &Template) -> anyhow::Result<Self> {
        let resources = template.resources(&[])?;
        let functions = resources.values().filter(|r| r["Type"] == "AWS::Serverless::Function");
        let mut mappings = functions
            .filter_map(|function| function["Properties"]["Events"].as_object())
            .flat_map(serde_json::Map::values)
            .filter(|event| event["Type"] == "DynamoDB");
        let (Some(mapping), None) = (mappings.next(), mappings.next()) else {
            bail!("the template does not have exactly one event of type DynamoDB")
        };
        Self::from_properties(&mapping["Properties"])
            .context("the template's event of type DynamoDB")
    }

    fn from_properties(properties: &Value) -> anyhow::Result<Self> {
        let number =
            |name: &str| properties[name].as_u64().with_context(|| format!("{name} is no number"));
        if properties["FunctionResponseTypes"][0] != "ReportBatchItemFailures" {
            bail!("the registry reports batch item failures; the mapping has to listen");
        }
        let filters =
            properties["FilterCriteria"]["Filters"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(Self {
            batch_size: usize::try_from(number("BatchSize")?)?.max(1),
            retries: u32::try_from(number("MaximumRetryAttempts")?)?,
            bisect: properties["BisectBatchOnFunctionError"] == true,
            filters: filters
                .iter()
                .map(|filter| {
                    let text = filter["Pattern"].as_str().context("a filter without a Pattern")?;
                    Pattern::parse(&serde_json::from_str(text)?)
                })
                .collect::<Result<_, _>>()?,
        })
    }

    /// Whether the function is to see a record: any filter lets it through, or there is none.
    pub(crate) fn lets_through(&self, record: &Value) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| filter.matches(Some(record)))
    }
}

/// The part of the event filter language that the template uses.
#[derive(Debug, PartialEq)]
enum Pattern {
    Members(Vec<(String, Self)>),
    AnyOf(Vec<Rule>),
}

#[derive(Debug, PartialEq)]
enum Rule {
    Equals(Value),
    Prefix(String),
    Exists(bool),
}

impl Pattern {
    fn parse(pattern: &Value) -> anyhow::Result<Self> {
        match pattern {
            Value::Object(members) => {
                let members =
                    members.iter().map(|(name, inner)| Ok((name.clone(), Self::parse(inner)?)));
                Ok(Self::Members(members.collect::<anyhow::Result<_>>()?))
            }
            Value::Array(rules) => {
                Ok(Self::AnyOf(rules.iter().map(Rule::parse).collect::<Result<_, _>>()?))
            }
            other => bail!("a filter's leaves are lists, found {other}"),
        }
    }

    fn matches(&self, value: Option<&Value>) -> bool {
        match self {
            Self::Members(members) => members
                .iter()
                .all(|(name, pattern)| pattern.matches(value.and_then(|value| value.get(name)))),
            Self::AnyOf(rules) => rules.iter().any(|rule| rule.matches(value)),
        }
    }
}

impl Rule {
    fn parse(rule: &Value) -> anyhow::Result<Self> {
        let Some(object) = rule.as_object() else { return Ok(Self::Equals(rule.clone())) };
        let mut members = object.iter().map(|(name, argument)| (name.as_str(), argument));
        match (members.next(), members.next()) {
            (Some(("prefix", Value::String(prefix))), None) => Ok(Self::Prefix(prefix.clone())),
            (Some(("exists", Value::Bool(exists))), None) => Ok(Self::Exists(*exists)),
            _ => bail!("a filter rule that the local system does not know: {rule}"),
        }
    }

    fn matches(&self, value: Option<&Value>) -> bool {
        match self {
            Self::Equals(expected) => value == Some(expected),
            Self::Prefix(prefix) => {
                value.and_then(Value::as_str).is_some_and(|text| text.starts_with(prefix.as_str()))
            }
            Self::Exists(expected) => value.is_some() == *expected,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(name: &str, sk: &str) -> Value {
        json!({"eventName": name, "dynamodb": {"Keys": {"pk": {"S": "remo-e"}, "sk": {"S": sk}}}})
    }

    #[test]
    fn the_template_s_filter_lets_readings_through_and_nothing_else() {
        let mapping = EventSourceMapping::from_template(&Template::own().unwrap()).unwrap();
        assert!(mapping.lets_through(&record("INSERT", "TS#2026-01-11T16:00:00.000Z")));
        assert!(mapping.lets_through(&record("MODIFY", "TS#2026-01-11T16:00:00.000Z")));
        assert!(!mapping.lets_through(&record("REMOVE", "TS#2026-01-11T16:00:00.000Z")));
        assert!(!mapping.lets_through(&record("INSERT", "M15#2026-01-11T16:00:00.000Z")));
        assert!(!mapping.lets_through(&record("INSERT", "remo-e")));
        assert!(!mapping.lets_through(&json!({"eventName": "INSERT"})));
    }

    #[test]
    fn the_template_s_mapping_is_understood() {
        let mapping = EventSourceMapping::from_template(&Template::own().unwrap()).unwrap();
        assert_eq!((mapping.batch_size, mapping.bisect), (100, true));
        assert!(mapping.retries > 0);
    }

    #[test]
    fn rules_match_what_they_say() {
        let pattern =
            json!({"a": ["x", 1], "b": [{"exists": false}], "c": {"d": [{"prefix": "p"}]}});
        let pattern = Pattern::parse(&pattern).unwrap();
        assert!(pattern.matches(Some(&json!({"a": 1, "c": {"d": "pq"}}))));
        assert!(!pattern.matches(Some(&json!({"a": 2, "c": {"d": "pq"}}))));
        assert!(!pattern.matches(Some(&json!({"a": "x", "b": 0, "c": {"d": "pq"}}))));
        assert!(!pattern.matches(Some(&json!({"a": "x", "c": {"d": "q"}}))));
        assert!(!pattern.matches(Some(&json!({"a": "x"}))));
    }

    #[test]
    fn a_rule_that_is_not_known_is_refused() {
        let error = Pattern::parse(&json!({"a": [{"anything-but": "x"}]})).unwrap_err();
        assert!(error.to_string().contains("anything-but"), "{error}");
    }
}
