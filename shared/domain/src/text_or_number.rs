//! A value that people write as a text or as a number. Does not know what the value means.

use std::ops::Deref;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The text of a JSON string, or a JSON number with the digits as they were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextOrNumber(String);

/// Whether a text of JSON is a number.
pub(crate) fn is_number(json: &str) -> bool {
    json.starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

impl Deref for TextOrNumber {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for TextOrNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        if is_number(value.get()) {
            return Ok(Self(value.get().to_owned()));
        }
        let text = serde_json::from_str(value.get());
        text.map(Self).map_err(|_| D::Error::custom("must be a string or a number"))
    }
}
