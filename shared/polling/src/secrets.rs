//! The secrets of a source, by name: tokens and keys. Shows no secret.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use domain::MemberError;
use serde_json::Value;

use crate::placeholder::{Values, in_url, is_name};

/// The maximum number of characters of a secret.
const MAX_LENGTH: usize = 1_024;
/// The fewest characters of a secret that is hidden. A shorter one is part of words and numbers by chance, so the gap would
/// tell it.
const LEAST_HIDDEN: usize = 4;

/// The secrets of a source, by name. `Debug` shows only the names.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SecretTexts(BTreeMap<String, String>);

impl SecretTexts {
    /// Reads the member `secrets` of a source: names and texts. A list of names, as answers have it, counts as absent.
    pub fn read(value: Option<Value>) -> Result<Option<Self>, MemberError> {
        let members = match value {
            None | Some(Value::Null | Value::Array(_)) => return Ok(None),
            Some(Value::Object(members)) => members,
            Some(_) => {
                let why = "must be an object such as {\"token\": \"...\"}";
                return Err(MemberError::of("secrets", why));
            }
        };

        let mut texts = BTreeMap::new();
        for (name, value) in members {
            if !is_name(&name) {
                // The name is not shown: a person may have swapped the name and the secret.
                let why = "has a name with other characters than small letters, digits and _";
                return Err(MemberError::of("secrets", why));
            }
            let wrong = |why: &str| MemberError::of(&format!("secrets.{name}"), why);
            let Value::String(text) = value else { return Err(wrong("must be a text")) };
            if text.is_empty() || text.len() > MAX_LENGTH {
                return Err(wrong("must have 1 to 1024 characters"));
            }
            // HTTP drops blanks around a header: the maker would get another text than the one that is stored.
            if text.trim() != text {
                return Err(wrong("begins or ends with a blank"));
            }
            // It may stand in a header.
            if !text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
                return Err(wrong("has a character that is not printable ASCII"));
            }
            texts.insert(name, text);
        }

        Ok((!texts.is_empty()).then_some(Self(texts)))
    }

    /// Makes secrets of stored texts.
    pub const fn of(texts: BTreeMap<String, String>) -> Self {
        Self(texts)
    }

    /// The texts by name, to be stored where only the function that makes requests reads them.
    pub const fn to_stored(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// The names of the secrets.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Looks up a secret by its name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The texts of the secrets.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }

    /// A text about an answer without the secrets: some makers repeat the address that they were asked at, with its key.
    pub fn hide_in(&self, text: String) -> String {
        let long = self.texts().filter(|secret| secret.len() >= LEAST_HIDDEN);
        let mut forms: Vec<_> =
            long.flat_map(|secret| [secret.to_owned(), in_url(secret)]).collect();
        // A secret may be a part of another one.
        forms.sort_by_key(|form| Reverse(form.len()));
        forms.iter().fold(text, |text, form| text.replace(form, "***"))
    }

    /// The secrets as values of placeholders.
    pub(crate) fn values(&self) -> Values {
        self.0.clone()
    }
}

impl fmt::Debug for SecretTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_about_an_answer_repeats_no_secret() {
        let texts = [("id", "client1"), ("key", "client1-a/b+c"), ("pin", "1234"), ("n", "7")];
        let texts = texts.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let secrets = SecretTexts::of(texts.into());
        let text = "row 7: k=client1-a/b+c /e?k=client1-a%2Fb%2Bc of client1, pin 1234";
        assert_eq!(secrets.hide_in(text.to_owned()), "row 7: k=*** /e?k=*** of ***, pin ***");
    }

    #[test]
    fn secrets_are_read_or_refused_without_their_texts() {
        let read = |value: Value| {
            let read = SecretTexts::read(Some(value));
            read.map(|texts| format!("{texts:?}")).map_err(|why| why.to_string())
        };
        let long = "x".repeat(1_025);
        for (value, expected) in [
            (json!({"token": "geheim", "key": "k"}), r#"Some({"key", "token"})"#),
            (json!(["token"]), "None"),
            (json!({}), "None"),
            (json!(null), "None"),
            (json!("geheim"), r#"secrets: must be an object such as {"token": "..."}"#),
            (
                json!({"Token": "geheim"}),
                "secrets: has a name with other characters than small letters, digits and _",
            ),
            (json!({"token": 5}), "secrets.token: must be a text"),
            (json!({"token": ""}), "secrets.token: must have 1 to 1024 characters"),
            (json!({"token": long}), "secrets.token: must have 1 to 1024 characters"),
            (json!({"token": "geheim\n"}), "secrets.token: begins or ends with a blank"),
            (json!({"token": " geheim"}), "secrets.token: begins or ends with a blank"),
            (
                json!({"token": "ge\nheim"}),
                "secrets.token: has a character that is not printable ASCII",
            ),
        ] {
            let found = read(value).unwrap_or_else(|why| why);
            assert_eq!(found, expected);
        }
    }
}
