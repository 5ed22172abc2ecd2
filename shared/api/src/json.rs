//! A JSON object's members as they were written, for those who must not lose a digit or a duplicate.

use std::collections::{BTreeMap, btree_map};
use std::fmt;

use serde::Deserializer as _;
use serde::de::{Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use domain::excerpt;

/// The members of one object by name, their values unread. A name that stands twice is an error.
#[derive(Debug)]
pub struct Members<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Members<'a> {
    /// Reads an object of at most `most` members, and stops at the first one too many.
    pub fn parse(text: &'a str, most: usize) -> Result<Self, serde_json::Error> {
        let mut parser = serde_json::Deserializer::from_str(text);
        let members = parser.deserialize_map(Collect { most })?;
        parser.end()?;
        Ok(Self(members))
    }

    /// Takes a member out; `null` counts as absent.
    pub fn take_non_null(&mut self, name: &str) -> Option<&'a RawValue> {
        self.0.remove(name).filter(|value| value.get() != "null")
    }

    /// Whether there is a member of that name that is not `null`.
    #[must_use]
    pub fn has_non_null(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| value.get() != "null")
    }

    /// Whether there is a member of that name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

impl<'a> IntoIterator for Members<'a> {
    type Item = (String, &'a RawValue);
    type IntoIter = btree_map::IntoIter<String, &'a RawValue>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

struct Collect {
    most: usize,
}

impl<'de> Visitor<'de> for Collect {
    type Value = BTreeMap<String, &'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if members.len() == self.most {
                let most = self.most;
                return Err(A::Error::custom(format_args!("there are more than {most} members")));
            }
            if members.contains_key(&name) {
                let name = excerpt(&name);
                return Err(A::Error::custom(format_args!("the member {name:?} stands twice")));
            }
            members.insert(name, map.next_value()?);
        }
        Ok(members)
    }
}

/// What sort of value JSON text is, for an error message.
#[must_use]
pub fn describe(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// The text of a JSON string, or what else it is.
pub fn string(value: &RawValue) -> Result<String, String> {
    serde_json::from_str(value.get())
        .map_err(|_| format!("must be a string, not {}", describe(value)))
}

/// An error of the JSON parser without the position within a part, which would mislead.
#[must_use]
pub fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_taken_and_left() {
        let mut members =
            Members::parse(r#"{"b": 1.50, "a": null, "c": "x"}"#, 3).expect("an object");
        assert!(members.has("a") && !members.has_non_null("a") && members.has_non_null("b"));
        assert!(members.take_non_null("a").is_none() && !members.has("a"));
        assert_eq!(members.take_non_null("b").map(RawValue::get), Some("1.50"));
        assert!(members.take_non_null("b").is_none());
        let left: Vec<_> = members.into_iter().map(|(name, value)| (name, value.get())).collect();
        assert_eq!(left, [("c".to_owned(), "\"x\"")]);
    }

    #[test]
    fn what_is_no_object_of_different_members_is_refused_with_its_reason() {
        let refused = |text: &str| reason(&Members::parse(text, 2).expect_err(text));
        assert_eq!(refused(r#"{"a": 1, "a": 2}"#), r#"the member "a" stands twice"#);
        assert_eq!(
            refused(r#"{"x at line 9": 1, "x at line 9": 2}"#),
            r#"the member "x at line 9" stands twice"#
        );
        assert!(refused("[1]").contains("expected an object"));
        assert!(refused(r#"{"a": 1} 5"#).contains("trailing"));
        assert!(refused("{").contains("EOF"));
    }

    /// What follows the member too many is broken: a reader that went on would say so instead.
    #[test]
    fn it_stops_at_the_first_member_too_many() {
        assert!(Members::parse(r#"{"a": 1, "b": 2}"#, 2).is_ok());
        let error = Members::parse(r#"{"a": 1, "b": 2, "c" broken"#, 2).expect_err("one too many");
        assert_eq!(reason(&error), "there are more than 2 members");
    }
}
