//! The arguments of tools: their schema, and how they become a request to the API. Asks nothing.
//!
//! Their names are those of the API's parameters, so that its messages name them.

use api::Problem;
use api::endpoints::{METRIC_PREFIX, UNITS};
use domain::{DeviceId, excerpt};
use serde_json::{Map, Value, json};

/// An argument of a tool.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    pub(super) form: Form,
    /// For the model that fills it in.
    pub(super) description: &'static str,
    /// The value where none is given.
    pub(super) default: Option<&'static str>,
}

/// The values of an argument.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// The id of a device, a room or a home, whose path is asked.
    Subject,
    /// A text, or a number as text.
    Text,
    /// Texts that become one parameter, separated by commas; one text is a list of one.
    List {
        /// The only words there are; any text if there are none.
        of: &'static [&'static str],
    },
    /// Texts that become a parameter each; one text is a list of one.
    Repeated,
    /// The unit of the rows, or [`TOTAL`].
    Unit,
    Flag,
    /// The most entries of an answer.
    Limit {
        default: usize,
        max: usize,
    },
    /// The number of rows before those that are wanted.
    Offset,
    /// Metrics, each with the values that are wanted.
    Conditions,
}

/// Rows and how to get at them.
#[derive(Debug)]
pub(super) struct Asked {
    /// The path of the device, the room or the home, or of all.
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) limit: usize,
    pub(super) offset: usize,
}

/// The word that asks for no unit: one row for the whole range.
const TOTAL: &str = "total";

impl Argument {
    /// The schema of its values.
    pub(super) fn schema(&self) -> Value {
        let Self { description, default, .. } = self;
        let words = |of: &[&str]| match of {
            [] => json!({"type": "string"}),
            _ => json!({"type": "string", "enum": of}),
        };
        let mut schema = match self.form {
            Form::Subject => {
                json!({"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"})
            }
            Form::Text => json!({"type": "string"}),
            Form::List { of } => json!({"type": "array", "items": words(of), "minItems": 1}),
            Form::Repeated => {
                json!({"type": "array", "items": {"type": "string"}, "minItems": 1})
            }
            Form::Unit => words(&[UNITS, &[TOTAL]].concat()),
            Form::Flag => json!({"type": "boolean", "default": false}),
            Form::Limit { default, max } => {
                json!({"type": "integer", "minimum": 1, "maximum": max, "default": default})
            }
            Form::Offset => json!({"type": "integer", "minimum": 0, "default": 0}),
            Form::Conditions => {
                json!({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1})
            }
        };
        schema["description"] = json!(description);
        if let Some(default) = default {
            schema["default"] = json!(default);
        }
        schema
    }
}

/// The schema of a tool's arguments.
pub(super) fn schema(arguments: &[&Argument], required: &[&str]) -> Value {
    let properties: Map<String, Value> =
        arguments.iter().map(|it| (it.name.to_owned(), it.schema())).collect();
    let mut schema =
        json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// The request that arguments make. `paths` are those of the subjects, by the name of their argument; the one without
/// a name is asked where no subject is given.
pub(super) fn read(
    (arguments, required): (&[&Argument], &[&str]),
    paths: &[(&str, &str)],
    given: &Map<String, Value>,
) -> Result<Asked, Problem> {
    let names = || arguments.iter().map(|it| it.name).collect::<Vec<_>>().join(", ");
    for name in given.keys() {
        if !arguments.iter().any(|it| it.name == name) {
            let expected = match arguments {
                [] => "this tool takes none".to_owned(),
                _ => format!("expected one of {}", names()),
            };
            return Err(Problem::field(&excerpt(name), format!("unknown argument; {expected}")));
        }
    }
    let present = |name: &str| given.get(name).filter(|value| !value.is_null());
    if let Some(name) = required.iter().find(|name| present(name).is_none()) {
        return Err(Problem::field(name, "is needed"));
    }
    let path = path(paths, present)?;
    let mut asked = Asked { path, query: Vec::new(), limit: usize::MAX, offset: 0 };
    for argument in arguments {
        let default = argument.default.map(|text| json!(text));
        let value = present(argument.name).or(default.as_ref());
        asked.take(argument, value)?;
    }
    Ok(asked)
}

/// The path of the one subject that is given.
fn path<'a>(
    paths: &[(&str, &str)],
    present: impl Fn(&str) -> Option<&'a Value>,
) -> Result<String, Problem> {
    let names: Vec<&str> =
        paths.iter().map(|(name, _)| *name).filter(|it| !it.is_empty()).collect();
    let mut given = paths.iter().filter_map(|it| Some((it, present(it.0)?)));
    match (given.next(), given.next()) {
        (_, Some(((second, _), _))) => {
            let message = format!("is given beside another; give one of {}", names.join(", "));
            Err(Problem::field(second, message))
        }
        (Some(((name, path), id)), None) => {
            let id = text(name, id)?;
            // Devices, rooms and homes have ids of the same form, which a path takes as they are.
            let id: DeviceId = id.parse().map_err(|why| Problem::field(name, format!("{why}")))?;
            Ok(path.replace("{id}", id.as_str()))
        }
        (None, None) => match paths.iter().find(|(name, _)| name.is_empty()) {
            Some((_, path)) => Ok((*path).to_owned()),
            None => {
                Err(Problem::field(names[0], format!("is needed: one of {}", names.join(", "))))
            }
        },
    }
}

impl Asked {
    fn take(&mut self, argument: &Argument, value: Option<&Value>) -> Result<(), Problem> {
        let name = argument.name;
        let mut push = |value: String| self.query.push((name.to_owned(), value));
        match (argument.form, value) {
            (Form::Limit { default, max }, value) => {
                self.limit = value.map_or(Ok(default), |it| count(name, it, 1..=max))?;
            }
            (Form::Subject, _) | (_, None) => {}
            (Form::Offset, Some(value)) => {
                self.offset = count(name, value, 0..=usize::from(u16::MAX))?;
            }
            (Form::Text, Some(value)) => push(text(name, value)?),
            (Form::Unit, Some(value)) => match text(name, value)?.as_str() {
                TOTAL => {}
                unit => push(unit.to_owned()),
            },
            (Form::List { .. }, Some(value)) => push(texts(name, value)?.join(",")),
            (Form::Repeated, Some(value)) => texts(name, value)?.into_iter().for_each(push),
            (Form::Flag, Some(Value::Bool(flag))) => push(flag.to_string()),
            (Form::Flag, Some(value)) => return Err(wrong(name, value, "true or false")),
            (Form::Conditions, Some(Value::Object(conditions))) => {
                for (metric, values) in conditions {
                    self.query.push((format!("{METRIC_PREFIX}{metric}"), text(metric, values)?));
                }
            }
            (Form::Conditions, Some(value)) => {
                let expected = "an object such as {\"temperature\": \"28..\"}";
                return Err(wrong(name, value, expected));
            }
        }
        Ok(())
    }

    /// Takes a parameter out of the query.
    pub(super) fn remove(&mut self, name: &str) -> Option<String> {
        let at = self.query.iter().position(|(known, _)| known == name)?;
        Some(self.query.remove(at).1)
    }
}

fn text(name: &str, value: &Value) -> Result<String, Problem> {
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

fn count(
    name: &str,
    value: &Value,
    allowed: std::ops::RangeInclusive<usize>,
) -> Result<usize, Problem> {
    let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
    count.filter(|count| allowed.contains(count)).ok_or_else(|| {
        let expected = format!("a whole number from {} to {}", allowed.start(), allowed.end());
        wrong(name, value, &expected)
    })
}

fn wrong(name: &str, value: &Value, expected: &str) -> Problem {
    let message = format!("is {}; expected {expected}", excerpt(&value.to_string()));
    Problem::field(name, message)
}
