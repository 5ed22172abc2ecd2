//! The members of a JSON object as text, so that no digit and no duplicate is lost. Knows no member by name.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use serde_json::value::RawValue;

use domain::excerpt;

/// The members of one object, sorted by name, their values unread.
#[derive(Debug)]
pub struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// The error for a text that is not an object with readable members.
#[derive(Debug, thiserror::Error)]
pub enum MembersError {
    /// The text is not JSON, or not an object. The error has no position, which would mislead in a part of a body.
    #[error("{}", without_position(.0))]
    Syntax(#[source] serde_json::Error),
    /// A name occurs twice.
    #[error("duplicate member {0:?}")]
    Duplicate(String),
    /// There are more members than the maximum.
    #[error("there are more than {0} members")]
    TooMany(usize),
}

/// The text of a parser's error, without the position.
pub(crate) fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}

impl<'a> Members<'a> {
    /// Reads an object of at most `max` members. Stops with an error at the first member beyond the maximum.
    pub fn parse(text: &'a str, max: usize) -> Result<Self, MembersError> {
        let mut members = Vec::new();
        let mut refused = None;
        let collect = Collect { max, members: &mut members, refused: &mut refused };
        let mut parser = serde_json::Deserializer::from_str(text);
        let read = parser.deserialize_map(collect).and_then(|()| parser.end());
        match read {
            Ok(()) => Ok(Self(members)),
            Err(error) => Err(refused.unwrap_or(MembersError::Syntax(error))),
        }
    }

    fn index_of(&self, name: &str) -> Option<usize> {
        self.0.binary_search_by(|(known, _)| known.as_ref().cmp(name)).ok()
    }

    /// Takes a member out of the list; `null` counts as absent.
    pub fn take_non_null(&mut self, name: &str) -> Option<&'a RawValue> {
        let (_, value) = self.0.remove(self.index_of(name)?);
        Some(value).filter(|value| value.get() != "null")
    }

    /// Drops the members whose names `is_kept` does not accept.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.0.retain(|(name, _)| is_kept(name));
    }

    /// The names of all members, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_ref())
    }

    /// Tells whether there is a member of that name.
    pub fn has(&self, name: &str) -> bool {
        self.index_of(name).is_some()
    }
}

impl<'a> IntoIterator for Members<'a> {
    type Item = (Cow<'a, str>, &'a RawValue);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// A name, borrowed from the text unless it has escapes.
#[derive(Deserialize)]
struct JsonName<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads members into a list that stays sorted. The parser's error cannot carry a `MembersError`, so `refused` has it.
struct Collect<'m, 'a> {
    max: usize,
    members: &'m mut Vec<(Cow<'a, str>, &'a RawValue)>,
    refused: &'m mut Option<MembersError>,
}

impl<'a> Visitor<'a> for Collect<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { max, members, refused } = self;
        let mut refuse = |why| {
            *refused = Some(why);
            Err(A::Error::custom("refused"))
        };

        while let Some(JsonName(name)) = map.next_key()? {
            if members.len() == max {
                return refuse(MembersError::TooMany(max));
            }
            match members.binary_search_by(|(known, _)| known.cmp(&name)) {
                Ok(_) => return refuse(MembersError::Duplicate(excerpt(&name))),
                Err(index) => members.insert(index, (name, map.next_value()?)),
            }
        }

        Ok(())
    }
}

/// A kind of JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are JSON's")]
pub enum JsonKind {
    String,
    /// A string with half of a surrogate pair, such as "\ud800": valid JSON, but no valid text.
    BrokenString,
    Number,
    Object,
    Array,
    Boolean,
    Null,
}

impl JsonKind {
    /// The kind of a value.
    pub fn of(value: &RawValue) -> Self {
        match value.get().as_bytes().first() {
            Some(b'"') if is_broken(value.get()) => Self::BrokenString,
            Some(b'"') => Self::String,
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b't' | b'f') => Self::Boolean,
            Some(b'n') => Self::Null,
            _ => Self::Number,
        }
    }
}

/// Whether a string has half of a surrogate pair. Only an escape can be such a half, because the text itself is UTF-8.
fn is_broken(string: &str) -> bool {
    string.contains("\\u") && serde_json::from_str::<JsonName<'_>>(string).is_err()
}

impl fmt::Display for JsonKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::String => "a string",
            Self::BrokenString => "one with half of a surrogate pair",
            Self::Number => "a number",
            Self::Object => "an object",
            Self::Array => "an array",
            Self::Boolean => "a boolean",
            Self::Null => "null",
        })
    }
}

/// The error of a value that has another kind than expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be {expected}, not {found}")]
pub struct WrongKind {
    /// The expected kinds, in words.
    pub expected: &'static str,
    /// The kind of the value.
    pub found: JsonKind,
}

impl WrongKind {
    /// The error for a value of the wrong kind.
    pub fn of(value: &RawValue, expected: &'static str) -> Self {
        Self { expected, found: JsonKind::of(value) }
    }
}

/// The text of a JSON string.
pub fn string(value: &RawValue) -> Result<Cow<'_, str>, WrongKind> {
    let text = serde_json::from_str(value.get()).map(|JsonName(text)| text);
    text.map_err(|_| WrongKind::of(value, "a string"))
}

/// The digits of a JSON number, as they were written.
pub fn number(value: &RawValue) -> Result<&str, WrongKind> {
    match JsonKind::of(value) {
        JsonKind::Number => Ok(value.get()),
        _ => Err(WrongKind::of(value, "a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_taken_and_left() {
        let mut members =
            Members::parse(r#"{"b": 1.50, "a": null, "c": "x"}"#, 3).expect("an object");
        assert!(members.has("a") && members.has("b") && !members.has("d"));
        assert!(members.take_non_null("a").is_none() && !members.has("a"));
        assert_eq!(members.take_non_null("b").map(RawValue::get), Some("1.50"));
        assert!(members.take_non_null("b").is_none());
        let left: Vec<_> = members.into_iter().map(|(name, value)| (name, value.get())).collect();
        assert_eq!(left, [("c".into(), "\"x\"")]);
    }

    #[test]
    fn what_is_no_object_of_different_members_is_refused_with_its_reason() {
        let refused = |text: &str| Members::parse(text, 2).expect_err(text).to_string();
        assert_eq!(refused(r#"{"a": 1, "a": 2}"#), r#"duplicate member "a""#);
        assert_eq!(refused(r#"{"a": 1, "\u0061": 2}"#), r#"duplicate member "a""#);
        assert_eq!(
            refused(r#"{"x at line 9": 1, "x at line 9": 2}"#),
            r#"duplicate member "x at line 9""#
        );
        assert!(refused("[1]").contains("expected an object"));
        assert!(refused(r#"{"a": 1} 5"#).contains("trailing"));
        assert!(refused("{").contains("EOF") && !refused("{").contains("line"));
    }

    /// What follows the member too many is broken: a reader that went on would say so instead.
    #[test]
    fn it_stops_at_the_first_member_too_many() {
        assert!(Members::parse(r#"{"a": 1, "b": 2}"#, 2).is_ok());
        let error = Members::parse(r#"{"a": 1, "b": 2, "c" broken"#, 2).expect_err("one too many");
        assert_eq!(error.to_string(), "there are more than 2 members");
    }

    #[test]
    fn a_value_of_another_kind_is_named() {
        let value = |text: &'static str| serde_json::from_str::<&RawValue>(text).expect("JSON");
        assert_eq!(string(value(r#""\u0041""#)).as_deref(), Ok("A"));
        assert_eq!(number(value("1.50")), Ok("1.50"));
        for (text, kind) in [
            ("1", "a number"),
            ("{}", "an object"),
            ("[]", "an array"),
            ("true", "a boolean"),
            ("false", "a boolean"),
            ("null", "null"),
        ] {
            let error = string(value(text)).expect_err(text).to_string();
            assert_eq!(error, format!("must be a string, not {kind}"));
        }
        assert!(number(value(r#""1""#)).is_err());
        for half in [r#""\ud800""#, r#""a\udc00b""#] {
            let error = string(value(half)).expect_err(half).to_string();
            assert_eq!(error, "must be a string, not one with half of a surrogate pair");
        }
        assert_eq!(string(value(r#""\ud83c\udfe0""#)).as_deref(), Ok("\u{1f3e0}"));
    }
}
