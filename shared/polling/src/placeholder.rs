//! Texts with placeholders, such as `Bearer {token}`. Holds no values.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::json;

/// All characters except the unreserved ones of RFC 3986, 2.3, which stand in a URL unchanged.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The values of placeholders, by name.
pub type Values = BTreeMap<String, String>;

/// A text with placeholders: a name of small letters, digits and `_` between `{` and `}`. Other braces are text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct TextTemplate(String);

impl TextTemplate {
    pub(crate) const fn of(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The names of the placeholders.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        pieces(&self.0).filter_map(|piece| piece.name)
    }

    /// The text with its placeholders filled in.
    pub(crate) fn fill(&self, values: &Values) -> Result<String, String> {
        self.fill_as(values, str::to_owned)
    }

    /// The text with its placeholders filled in by values in the form that `encode` gives them.
    pub(crate) fn fill_as(
        &self,
        values: &Values,
        encode: fn(&str) -> String,
    ) -> Result<String, String> {
        let mut filled = String::with_capacity(self.0.len());
        for Piece { text, name } in pieces(&self.0) {
            filled.push_str(text);
            if let Some(name) = name {
                let value = values.get(name).ok_or_else(|| format!("{{{name}}} has no value"))?;
                filled.push_str(&encode(value));
            }
        }
        Ok(filled)
    }
}

/// A part of a text, and the name of the placeholder after it.
struct Piece<'a> {
    text: &'a str,
    name: Option<&'a str>,
}

fn pieces(mut rest: &str) -> impl Iterator<Item = Piece<'_>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }

        let found = rest.match_indices('{').find_map(|(start, _)| {
            let name = &rest[start + 1..];
            let name = &name[..name.find('}')?];
            is_name(name).then_some((start, name))
        });
        let piece = match found {
            Some((start, name)) => Piece { text: &rest[..start], name: Some(name) },
            None => Piece { text: rest, name: None },
        };
        let length = piece.text.len() + piece.name.map_or(0, |name| name.len() + 2);
        rest = &rest[length..];
        Some(piece)
    })
}

/// Whether a text may be the name of a placeholder.
pub(crate) fn is_name(text: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !text.is_empty() && text.bytes().all(is_of_name)
}

/// A value, percent-encoded for a URL.
pub(crate) fn in_url(value: &str) -> String {
    utf8_percent_encode(value, UNRESERVED).to_string()
}

/// A value as it stands between the quotation marks of a text in JSON.
pub(crate) fn in_json(value: &str) -> String {
    let quoted = json!(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        [("token", "a b/ü\"{from}"), ("x_1", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        for (text, filled) in [
            ("", Ok("")),
            ("Bearer {token}", Ok("Bearer a b/ü\"{from}")),
            ("{x_1}{x_1}!", Ok("11!")),
            ("{\"a\": {x_1}}", Ok("{\"a\": 1}")),
            ("{} {X} {a b} }{ {", Ok("{} {X} {a b} }{ {")),
            ("{{x_1}", Ok("{1")),
            ("{nobody}", Err("{nobody} has no value")),
        ] {
            let found = TextTemplate(text.to_owned()).fill(&values());
            assert_eq!(found, filled.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn a_value_in_a_url_is_percent_encoded_and_in_json_it_is_a_text() {
        let url = TextTemplate("https://e.org/{token}?a={x_1}".to_owned());
        let filled = "https://e.org/a%20b%2F%C3%BC%22%7Bfrom%7D?a=1";
        assert_eq!(url.fill_as(&values(), in_url), Ok(filled.to_owned()));
        let body = TextTemplate(json!({"query": ["{token}"], "n": 5}).to_string());
        let filled = body.fill_as(&values(), in_json).expect("values");
        assert_eq!(filled, json!({"query": ["a b/ü\"{from}"], "n": 5}).to_string());
    }
}
