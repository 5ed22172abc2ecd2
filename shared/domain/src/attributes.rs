//! Attributes: facts that people add to a device, such as model or firmware. Knows no metric.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::metric::has_form_of_name;
use super::parsed_text::parsed_text;
use super::text_or_number::is_number;
use super::{Decimal, Label, LabelError, excerpt};

/// The largest number of values by which a search finds one device: its name, kind, tags and attributes. A number
/// counts twice: as a text and as a number.
///
/// A transaction may change 100 items, so a single transaction can replace all values of a device.
pub const MAX_SEARCH_ENTRIES: usize = 32;

/// Names that mean something else as a member of a device or in a search for devices.
const RESERVED: [&str; 16] = [
    "attributes",
    "behind",
    "device_id",
    "first_seen",
    "home",
    "kind",
    "last_seen",
    "latest",
    "metrics",
    "name",
    "room",
    "room_pinned",
    "silent",
    "tag",
    "tags",
    "timestamp",
];

/// The reasons for which a text is not an [`AttributeName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttributeNameError {
    /// The text does not have the form of a name.
    #[error(
        "{0:?} is not an attribute's name; write 1 to 64 of a-z, 0-9 and _, beginning with a letter"
    )]
    Form(String),
    /// The name is reserved.
    #[error("{0:?} is a reserved name")]
    Reserved(String),
}

parsed_text! {
    /// The name of an attribute: `[a-z][a-z0-9_]{0,63}`, and not a reserved name.
    AttributeName, check, AttributeNameError
}

fn check(text: &str) -> Result<(), AttributeNameError> {
    if !has_form_of_name(text) {
        return Err(AttributeNameError::Form(excerpt(text)));
    }
    if RESERVED.contains(&text) {
        return Err(AttributeNameError::Reserved(text.to_owned()));
    }
    Ok(())
}

/// One value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum AttributeValue {
    /// A text of one line.
    Text(Label),
    /// A number.
    Number(Decimal),
}

impl AttributeValue {
    /// The value as text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text) => text.as_str(),
            Self::Number(number) => number.as_str(),
        }
    }

    /// The value as a number; also for a text that can be read as a number.
    pub fn number(&self) -> Option<Decimal> {
        match self {
            Self::Text(text) => Decimal::parse(text.as_str()).ok(),
            Self::Number(number) => Some(number.clone()),
        }
    }
}

/// The values of an attribute in the order that a person gave them: at least one, no value twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeValues(Vec<AttributeValue>);

/// The reasons for which values are not [`AttributeValues`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttributeValuesError {
    /// The list of values is empty.
    #[error("has no value; null removes it")]
    Empty,
    /// There are more than [`MAX_SEARCH_ENTRIES`] values.
    #[error("has {0} values; at most {MAX_SEARCH_ENTRIES} are allowed")]
    TooMany(usize),
    /// One value occurs twice.
    #[error("has the value {0:?} twice")]
    Twice(String),
}

impl TryFrom<Vec<AttributeValue>> for AttributeValues {
    type Error = AttributeValuesError;

    fn try_from(values: Vec<AttributeValue>) -> Result<Self, AttributeValuesError> {
        if values.is_empty() {
            return Err(AttributeValuesError::Empty);
        }
        if values.len() > MAX_SEARCH_ENTRIES {
            return Err(AttributeValuesError::TooMany(values.len()));
        }
        match values.iter().enumerate().find(|(n, value)| values[..*n].contains(value)) {
            Some((_, twice)) => Err(AttributeValuesError::Twice(excerpt(twice.as_str()))),
            None => Ok(Self(values)),
        }
    }
}

impl std::ops::Deref for AttributeValues {
    type Target = [AttributeValue];

    fn deref(&self) -> &[AttributeValue] {
        &self.0
    }
}

impl AttributeValue {
    /// The value of a JSON string or a JSON number.
    fn of_json(text: &str) -> Result<Self, String> {
        if is_number(text) {
            return Decimal::parse(text).map(Self::Number).map_err(|why| why.to_string());
        }
        let text: String = serde_json::from_str(text)
            .map_err(|_| "must be a string, a number, an array of these, or null".to_owned())?;
        Label::try_from(text).map(Self::Text).map_err(|why| match why {
            LabelError::Empty => format!("{why}; null removes it"),
            why => why.to_string(),
        })
    }
}

/// Reads a single value or a list of values.
impl<'de> Deserialize<'de> for AttributeValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        let texts = match serde_json::from_str::<Vec<Box<RawValue>>>(value.get()) {
            Ok(values) => values,
            Err(_) => vec![value],
        };
        let values = texts.iter().map(|text| AttributeValue::of_json(text.get()));
        let values = values.collect::<Result<Vec<_>, _>>().map_err(D::Error::custom)?;
        values.try_into().map_err(D::Error::custom)
    }
}

/// Writes a single value by itself, and several values as a list.
impl Serialize for AttributeValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [value] => value.serialize(serializer),
            values => values.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::{self, label};

    #[test]
    fn no_attribute_has_the_name_of_something_else() {
        for name in RESERVED {
            assert_eq!(
                name.parse::<AttributeName>(),
                Err(AttributeNameError::Reserved(name.to_owned()))
            );
        }
    }

    #[test]
    fn an_attribute_has_some_values_of_which_none_is_there_twice() {
        let text = |text: &str| AttributeValue::Text(label(text));
        let number = AttributeValue::Number(given::number("4"));
        assert_eq!(AttributeValues::try_from(Vec::new()), Err(AttributeValuesError::Empty));
        let twice = AttributeValues::try_from(vec![text("a"), text("b"), text("a")]);
        assert_eq!(twice, Err(AttributeValuesError::Twice("a".to_owned())));
        let many = vec![number.clone(); MAX_SEARCH_ENTRIES + 1];
        assert_eq!(AttributeValues::try_from(many), Err(AttributeValuesError::TooMany(33)));
        let both = AttributeValues::try_from(vec![text("a"), number.clone()]).expect("two");
        assert_eq!(serde_json::to_string(&both).expect("JSON"), r#"["a",4]"#);
        let one = AttributeValues::try_from(vec![number]).expect("one");
        assert_eq!(serde_json::to_string(&one).expect("JSON"), "4");
    }
}
