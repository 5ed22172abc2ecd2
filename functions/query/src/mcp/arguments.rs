//! The arguments of tools: parameters of the API, and the request that they make. Asks nothing.
//!
//! An argument has the name of its parameter, so that error messages of the API fit.

use api::Problem;
use api::endpoints::{Kind, METRIC_PREFIX, Parameter};
use domain::excerpt;
use serde_json::{Map, Value, json};

/// An argument of a tool.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) parameter: Parameter,
    /// The value if the model does not give the argument.
    pub(super) default: Option<&'static str>,
}

/// The request that a tool makes, and the part of its rows to show.
#[derive(Debug)]
pub(super) struct ToolRequest {
    /// The path of the request, for a device, a room, a home or all devices.
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) limit: usize,
    pub(super) offset: usize,
}

/// The value that stands for no unit of time: one row covers the whole range.
const TOTAL: &str = "total";

impl Argument {
    /// The JSON schema of the argument. A list also accepts a single text, which the schema does not say.
    pub(super) fn schema(&self) -> Value {
        let list = |entry: Value| json!({"type": "array", "items": entry, "minItems": 1});
        let mut schema = match self.parameter.kind {
            Kind::Id => json!({"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"}),
            Kind::Metrics | Kind::Like | Kind::Where => list(json!({"type": "string"})),
            Kind::Words { of } => list(json!({"type": "string", "enum": of})),
            Kind::Choice { of, .. } => {
                let words = [of, &[TOTAL]].concat();
                json!({"type": "string", "enum": words})
            }
            Kind::Flag => json!({"type": "boolean", "default": false}),
            Kind::Count { default, max } => {
                json!({"type": "integer", "minimum": default.min(1), "maximum": max, "default": default})
            }
            Kind::Conditions => {
                json!({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1})
            }
            _ => json!({"type": "string"}),
        };

        schema["description"] = json!(self.parameter.description);
        if let Some(default) = self.default {
            schema["default"] = json!(default);
        }
        schema
    }
}

/// The schema of a tool's arguments.
pub(super) fn schema(arguments: &[Argument], required: &[&str]) -> Value {
    let members =
        arguments.iter().map(|argument| (argument.parameter.name.to_owned(), argument.schema()));
    let properties: Map<String, Value> = members.collect();
    let mut schema =
        json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

impl ToolRequest {
    /// Adds an argument to the request, with its default if no value is given.
    pub(super) fn take(
        &mut self,
        argument: &Argument,
        given: Option<&Value>,
    ) -> Result<(), Problem> {
        let Parameter { name, kind, .. } = argument.parameter;
        let default = argument.default.map(|text| json!(text));
        let value = given.or(default.as_ref());
        let mut push = |value: String| self.query.push((name.to_owned(), value));

        match (kind, value) {
            (Kind::Count { default, max }, value) => {
                let number = value.map_or(Ok(default), |value| count(name, value, default, max))?;
                *(if name == "limit" { &mut self.limit } else { &mut self.offset }) = number;
            }
            (_, None) => {}
            (Kind::Choice { .. }, Some(value)) if value == TOTAL => {}
            (Kind::Metrics | Kind::Words { .. }, Some(value)) => {
                push(texts(name, value)?.join(","));
            }
            (Kind::Like | Kind::Where, Some(value)) => {
                texts(name, value)?.into_iter().for_each(push);
            }
            (Kind::Flag, Some(Value::Bool(flag))) => push(flag.to_string()),
            (Kind::Flag, Some(value)) => return Err(wrong(name, value, "true or false")),
            (Kind::Conditions, Some(Value::Object(conditions))) => {
                for (metric, values) in conditions {
                    self.query.push((format!("{METRIC_PREFIX}{metric}"), text(metric, values)?));
                }
            }
            (Kind::Conditions, Some(value)) => {
                return Err(wrong(name, value, "an object such as {\"temperature\": \"28..\"}"));
            }
            (_, Some(value)) => push(text(name, value)?),
        }

        Ok(())
    }

    /// Removes a parameter from the query and returns its value.
    pub(super) fn remove(&mut self, name: &str) -> Option<String> {
        let at = self.query.iter().position(|(known, _)| known == name)?;
        Some(self.query.remove(at).1)
    }
}

pub(super) fn text(name: &str, value: &Value) -> Result<String, Problem> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(wrong(name, value, "a text")),
    }
}

fn texts(name: &str, value: &Value) -> Result<Vec<String>, Problem> {
    match value {
        Value::Array(values) if values.is_empty() => Err(wrong(name, value, "at least one text")),
        Value::Array(values) => values.iter().map(|value| text(name, value)).collect(),
        _ => Ok(vec![text(name, value)?]),
    }
}

/// Parses a number of entries, which may be 0 only if 0 is the default.
fn count(name: &str, value: &Value, default: usize, max: usize) -> Result<usize, Problem> {
    let least = default.min(1);
    let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
    count
        .filter(|count| (least..=max).contains(count))
        .ok_or_else(|| wrong(name, value, &format!("a whole number from {least} to {max}")))
}

fn wrong(name: &str, value: &Value, expected: &str) -> Problem {
    let message = format!("is {}; expected {expected}", excerpt(&value.to_string()));
    Problem::field(name, message)
}
