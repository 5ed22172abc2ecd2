//! A JSON object's members as they were written, for those who must not lose a digit or a duplicate.

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The members of one object, in order, their values unread. A name that stands twice is an error.
#[derive(Debug)]
pub struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Reads an object.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Takes a member out; `null` counts as absent.
    pub fn take_non_null(&mut self, name: &str) -> Option<&'a RawValue> {
        let position = self.0.iter().position(|(known, _)| known == name)?;
        let (_, value) = self.0.remove(position);
        (value.get() != "null").then_some(value)
    }

    /// Whether there is a member of that name that is not `null`.
    #[must_use]
    pub fn has_non_null(&self, name: &str) -> bool {
        self.0.iter().any(|(known, value)| known == name && value.get() != "null")
    }

    /// Whether there is a member of that name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }
}

impl<'a> IntoIterator for Members<'a> {
    type Item = (String, &'a RawValue);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members: Vec<(String, &RawValue)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    if members.iter().any(|(known, _)| *known == name) {
                        let name = crate::domain::excerpt(&name);
                        return Err(A::Error::custom(format_args!(
                            "the member {name:?} stands twice"
                        )));
                    }
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
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
    text.split(" at line ").next().unwrap_or_default().to_owned()
}
