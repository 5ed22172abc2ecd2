//! Texts that people choose: labels, tags, units. Does not know what they describe.

use std::ops::Deref;

use super::parsed_text::parsed_text;

const MAX_LENGTH: usize = 100;

/// The largest number of tags of one device.
pub const MAX_TAGS: usize = 50;

/// The reasons for which a text is not a [`Label`] or a [`Unit`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// The text is empty or white space.
    #[error("is empty")]
    Empty,
    /// The text has more than 100 characters.
    #[error("is {0} characters long; at most {MAX_LENGTH} are allowed")]
    TooLong(usize),
    /// The text contains a control character, which would break the line of a list.
    #[error("contains a control character")]
    Control,
}

fn check(text: &str) -> Result<(), LabelError> {
    match text.chars().count() {
        _ if text.trim().is_empty() => Err(LabelError::Empty),
        length if length > MAX_LENGTH => Err(LabelError::TooLong(length)),
        _ if text.chars().any(char::is_control) => Err(LabelError::Control),
        _ => Ok(()),
    }
}

parsed_text! {
    /// A name, a kind or a tag: one line of 1 to 100 characters.
    Label, check, LabelError
}

parsed_text! {
    /// The unit of a metric's values, such as `°C`: one line of 1 to 100 characters.
    Unit, check, LabelError
}

/// A device's tags, in the order that a person gave them: at most [`MAX_TAGS`], no tag twice.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(try_from = "Vec<Label>")]
pub struct Tags(Vec<Label>);

/// The reasons for which labels are not [`Tags`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TagsError {
    /// There are more than [`MAX_TAGS`] tags.
    #[error("are {0}; at most {MAX_TAGS} are allowed")]
    TooMany(usize),
    /// One tag occurs twice.
    #[error("contain {0:?} twice")]
    Twice(String),
}

impl TryFrom<Vec<Label>> for Tags {
    type Error = TagsError;

    fn try_from(labels: Vec<Label>) -> Result<Self, TagsError> {
        if labels.len() > MAX_TAGS {
            return Err(TagsError::TooMany(labels.len()));
        }
        match labels.iter().enumerate().find(|(n, tag)| labels[..*n].contains(tag)) {
            Some((_, twice)) => Err(TagsError::Twice(twice.to_string())),
            None => Ok(Self(labels)),
        }
    }
}

impl Deref for Tags {
    type Target = [Label];

    fn deref(&self) -> &[Label] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::label;

    #[test]
    fn tags_are_few_and_different() {
        let tags = |names: &[String]| {
            let labels = names.iter().map(|name| label(name));
            Tags::try_from(labels.collect::<Vec<_>>())
        };
        let names: Vec<String> = (0..=MAX_TAGS).map(|n| n.to_string()).collect();
        assert_eq!(tags(&names[1..]).expect("tags").len(), MAX_TAGS);
        assert_eq!(tags(&names), Err(TagsError::TooMany(MAX_TAGS + 1)));
        let twice = ["a", "b", "a"].map(str::to_owned);
        assert_eq!(tags(&twice), Err(TagsError::Twice("a".to_owned())));
    }
}
