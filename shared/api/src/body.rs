//! Parses JSON that clients send into a type. A problem names the wrong member and says what is expected. Knows no
//! member.

use std::borrow::Cow;
use std::fmt;

use domain::{MAX_FIELDS, MemberError, excerpt};
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error, IntoDeserializer, Visitor};
use serde_json::value::RawValue;

use crate::json::{JsonKind, Members, WrongKind, string, without_position};
use crate::{Problem, ProblemKind, Request};

/// The maximum number of members in an object: the number of metrics that a reading may describe.
const MAX_MEMBERS: usize = MAX_FIELDS;

/// Reads a body of at most `max` bytes after decompression. An empty body counts as an object without members.
pub fn read<T: DeserializeOwned>(request: &Request, max: usize) -> Result<T, Problem> {
    read_by(request, max, value)
}

/// Reads a body as [`read`] does, with a function of its own.
pub fn read_by<T>(
    request: &Request,
    max: usize,
    reader: impl FnOnce(&RawValue) -> Result<T, MemberError>,
) -> Result<T, Problem> {
    let body = request.json_body()?;
    if body.len() > max {
        let detail = format!("The body is {} bytes long; at most {max} are taken.", body.len());
        return Err(Problem::new(ProblemKind::TooLarge, detail));
    }
    match std::str::from_utf8(&body) {
        Ok("") => parse("{}", reader),
        Ok(text) => parse(text, reader),
        Err(_) => Err(Problem::new(ProblemKind::BadRequest, "The body is not UTF-8.")),
    }
}

fn parse<T>(
    text: &str,
    reader: impl FnOnce(&RawValue) -> Result<T, MemberError>,
) -> Result<T, Problem> {
    let bad = |why: &str| {
        let detail = format!("The body cannot be read as a JSON object: {why}.");
        Problem::new(ProblemKind::BadRequest, detail)
    };
    let json = serde_json::from_str(text).map_err(|why| bad(&without_position(&why)))?;
    reader(json).map_err(|MemberError { field, why }| match &*field {
        "" => bad(&why),
        member => Problem::field(member, why),
    })
}

/// Reads one JSON value. An error names the wrong member by its path; the path of the value itself is empty.
pub fn value<T: DeserializeOwned>(json: &RawValue) -> Result<T, MemberError> {
    value_without(json, &[])
}

/// Reads one JSON value as [`value`] does, but passes over the named members of `T` and of all types within `T`. Keys
/// of maps are not members.
pub fn value_without<T: DeserializeOwned>(
    json: &RawValue,
    passed_over: &'static [&'static str],
) -> Result<T, MemberError> {
    serde_path_to_error::deserialize(JsonValue { json, passed_over }).map_err(|error| {
        let path = error.path().iter().map(ToString::to_string);
        let BodyFault { member, why } = error.inner();
        let path = path.chain(member.clone()).map(|part| excerpt(&part));
        let field = path.collect::<Vec<_>>().join(".").replace(".[", "[");
        MemberError { field, why: why.clone() }
    })
}

/// Why a JSON value cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
struct BodyFault {
    /// The name of a missing or unknown member.
    member: Option<String>,
    why: String,
}

impl Error for BodyFault {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self { member: None, why: why.to_string() }
    }

    fn missing_field(name: &'static str) -> Self {
        Self { member: Some(name.to_owned()), why: "is missing".to_owned() }
    }

    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format_args!("unknown member; expected {}", listed(expected, "and")))
    }

    fn unknown_variant(given: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format_args!("is {:?}; expected {}", excerpt(given), listed(expected, "or")))
    }
}

impl From<WrongKind> for BodyFault {
    fn from(why: WrongKind) -> Self {
        Self::custom(why)
    }
}

fn listed(names: &[&str], last: &str) -> String {
    match names {
        [first @ .., end] if !first.is_empty() => format!("{} {last} {end}", first.join(", ")),
        names => names.concat(),
    }
}

/// A JSON value as a deserializer. The target type asks for one kind of value, and another kind is an error.
#[derive(Clone, Copy)]
struct JsonValue<'a> {
    json: &'a RawValue,
    /// The names of the members that are passed over.
    passed_over: &'static [&'static str],
}

impl<'a> JsonValue<'a> {
    fn members(self) -> Result<Members<'a>, BodyFault> {
        if JsonKind::of(self.json) != JsonKind::Object {
            return Err(WrongKind::of(self.json, "an object").into());
        }
        Members::parse(self.json.get(), MAX_MEMBERS).map_err(BodyFault::custom)
    }

    fn visit<V: Visitor<'a>>(
        self,
        members: Members<'a>,
        visitor: V,
    ) -> Result<V::Value, BodyFault> {
        let member = |(name, json): (Cow<'a, str>, _)| (name, Self { json, ..self });
        visitor.visit_map(MapDeserializer::new(members.into_iter().map(member)))
    }
}

impl<'de> Deserializer<'de> for JsonValue<'de> {
    type Error = BodyFault;

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyFault> {
        match self.json.get() {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(WrongKind::of(self.json, "true or false").into()),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyFault> {
        let number = self.json.get().parse();
        let number = number.map_err(|_| BodyFault::custom("must be a whole number from 0 on"))?;
        visitor.visit_u64(number)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyFault> {
        visitor.visit_str(&string(self.json)?)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BodyFault> {
        visitor.visit_enum(string(self.json)?.into_deserializer())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyFault> {
        if self.json.get() == "null" { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyFault> {
        let entries = serde_json::from_str::<Vec<&RawValue>>(self.json.get());
        let entries = entries.map_err(|_| WrongKind::of(self.json, "an array"))?;
        let entry = |json| Self { json, ..self };
        visitor.visit_seq(SeqDeserializer::new(entries.into_iter().map(entry)))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyFault> {
        let members = self.members()?;
        self.visit(members, visitor)
    }

    /// Hands on the members of a type. An unknown member is an error, also if the type would ignore it.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BodyFault> {
        let mut members = self.members()?;
        members.retain(|name| !self.passed_over.contains(&name));
        if let Some(name) = members.names().find(|name| !known.contains(name)) {
            let member = Some(name.to_owned());
            return Err(BodyFault { member, ..BodyFault::unknown_field(name, known) });
        }
        self.visit(members, visitor)
    }

    /// Hands the text to a type that reads it itself, such as an exact number.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, BodyFault> {
        self.json.deserialize_newtype_struct(name, visitor).map_err(BodyFault::custom)
    }

    /// Reads a value of any kind.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyFault> {
        self.json.deserialize_any(visitor).map_err(BodyFault::custom)
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char str bytes byte_buf unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, BodyFault> for JsonValue<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use serde::Deserialize;

    use domain::{Decimal, Edit, Label, Role, Timestamp};

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        name: Label,
        #[serde(default)]
        on: Edit<bool>,
        size: Option<Decimal>,
        role: Option<Role>,
        since: Option<Timestamp>,
        #[serde(default)]
        parts: Vec<Sample>,
        #[serde(default)]
        sizes: BTreeMap<Label, Decimal>,
    }

    fn parsed(text: &str) -> Result<Sample, String> {
        parse(text, value).map_err(|problem: Problem| problem.detail)
    }

    #[test]
    fn a_body_is_read_with_every_digit_and_null_is_told_from_what_is_absent() {
        let sample = parsed(
            r#"{"name": "\u0061", "on": null, "size": 0.1234567890123456789012345678901234567, "role": "import",
                "since": 0, "parts": [{"name": "b"}], "sizes": {"c": 1.50}}"#,
        )
        .expect("a sample");
        let text = |number: Option<&Decimal>| number.map(|number| number.as_str().to_owned());
        assert_eq!(sample.name.as_str(), "a");
        assert_eq!((sample.on, &sample.parts[0].on), (Edit::Clear, &Edit::Keep));
        let size = text(sample.size.as_ref()).expect("a size");
        assert_eq!(size, "0.1234567890123456789012345678901234567");
        assert_eq!(text(sample.sizes.values().next()).as_deref(), Some("1.5"));
        assert_eq!((sample.role, sample.since), (Some(Role::Import), Some(Timestamp::MIN)));
    }

    #[test]
    fn a_fault_names_the_member_by_its_path_and_what_is_expected() {
        let long = format!(r#"{{"{}": 1}}"#, "x".repeat(10_000));
        for (text, expected) in [
            ("", "The body cannot be read as a JSON object: EOF while parsing a value."),
            ("{} 5", "The body cannot be read as a JSON object: trailing characters."),
            ("[]", "The body cannot be read as a JSON object: must be an object, not an array."),
            (
                r#"{"name": "a", "name": "b"}"#,
                "The body cannot be read as a JSON object: duplicate member \"name\".",
            ),
            ("{}", "name: is missing"),
            (r#"{"name": null}"#, "name: must be a string, not null"),
            (r#"{"name": ""}"#, "name: is empty"),
            (r#"{"name": "\ud800"}"#, "name: must be a string, not one with half"),
            (r#"{"name": "a", "on": 1}"#, "on: must be true or false, not a number"),
            (r#"{"name": "a", "size": "1"}"#, "size: must be a number"),
            (r#"{"name": "a", "role": 5}"#, "role: must be a string, not a number"),
            (r#"{"name": "a", "role": "sun"}"#, "role: is \"sun\"; expected import, export, "),
            (r#"{"name": "a", "since": "now"}"#, "since: \"now\" is a relative time"),
            (r#"{"name": "a", "parts": {}}"#, "parts: must be an array, not an object"),
            (
                r#"{"name": "a", "parts": [{"name": "b"}, {"x": 1}]}"#,
                "parts[1].x: unknown member; ",
            ),
            (r#"{"name": "a", "parts": [{}]}"#, "parts[0].name: is missing"),
            (r#"{"name": "a", "sizes": {"b": true}}"#, "sizes.b: must be a number"),
            (r#"{"name": "a", "sizes": {"": 1}}"#, "sizes.: is empty"),
            (r#"{"name": "a", "sizes": {"b": 1, "b": 2}}"#, "sizes: duplicate member \"b\""),
            (
                &long,
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…: unknown member; \
                 expected name, on, size, role, since, parts and sizes",
            ),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
