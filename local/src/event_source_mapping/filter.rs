//! Patterns that filter stream records. Reads no template.

use anyhow::bail;
use serde_json::Value;

/// A pattern of the event filter language. Supports only the forms that the template uses.
#[derive(Debug, PartialEq)]
pub(super) enum Pattern {
    Members(Vec<(String, Self)>),
    AnyOf(Vec<Rule>),
}

#[derive(Debug, PartialEq)]
pub(super) enum Rule {
    Equals(Value),
    Prefix(String),
    Exists(bool),
}

impl Pattern {
    /// Parses a filter's pattern.
    pub(super) fn parse(pattern: &Value) -> anyhow::Result<Self> {
        match pattern {
            Value::Object(members) => {
                let members =
                    members.iter().map(|(name, inner)| Ok((name.clone(), Self::parse(inner)?)));
                Ok(Self::Members(members.collect::<anyhow::Result<_>>()?))
            }
            Value::Array(rules) => {
                Ok(Self::AnyOf(rules.iter().map(Rule::parse).collect::<Result<_, _>>()?))
            }
            other => bail!("a filter's leaf is not a list: {other}"),
        }
    }

    /// Returns whether a value matches; `None` stands for a missing member.
    pub(super) fn matches(&self, value: Option<&Value>) -> bool {
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
            _ => bail!("the local system does not know the filter rule {rule}"),
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
