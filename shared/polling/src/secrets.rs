//! The secrets of a source, by name: tokens and keys. Shows no secret.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::MemberError;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::placeholder::{Values, in_url, is_name};

/// The maximum number of characters of a secret.
const MAX_LENGTH: usize = 1_024;
/// The fewest characters of a secret that is hidden. A shorter secret is part of words and numbers by chance, so the
/// gap would tell the secret.
const LEAST_HIDDEN: usize = 6;
/// The text that takes the place of a secret.
const HIDDEN: &str = "***";
/// The number of times that a text is unescaped: JSON within JSON, or a URL within a URL, is escaped twice.
const UNESCAPED_TIMES: usize = 3;

/// The secrets of a source, by name. `Debug` shows only the names.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SecretTexts(BTreeMap<String, String>);

impl SecretTexts {
    /// Reads the member `secrets` of a source: names and texts. A list of names, as in answers, counts as absent, and
    /// so does an object without members.
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
            // The secret may stand in a header.
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

    /// An answer without the secrets. Some makers repeat the request in an answer, so the secrets are hidden before
    /// anything is read, cut, stored or logged.
    pub(crate) fn hide_in(&self, answer: Value) -> Value {
        let mut texts: Vec<_> =
            self.texts().filter(|secret| secret.len() >= LEAST_HIDDEN).collect();
        if texts.is_empty() {
            return answer;
        }

        // A secret may be a part of another one.
        texts.sort_by_key(|secret| Reverse(secret.len()));
        let mut forms: Vec<_> = texts.iter().flat_map(|secret| forms_of(secret)).collect();
        forms.retain(|form| form.len() >= LEAST_HIDDEN);
        HiddenSecrets { texts, forms }.hide_in(answer)
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

/// The secrets to hide in an answer.
struct HiddenSecrets<'a> {
    /// The secrets, the longest first.
    texts: Vec<&'a str>,
    /// The secrets as a [`plain`] text has them.
    forms: Vec<String>,
}

impl HiddenSecrets<'_> {
    fn hide_in(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.hide_in_text(text).into(),
            Value::Number(number) if self.are_number(number.as_f64()) => HIDDEN.into(),
            Value::Array(elements) => {
                elements.into_iter().map(|element| self.hide_in(element)).collect()
            }
            Value::Object(members) => {
                let members = members.into_iter();
                members
                    .map(|(name, value)| (self.hide_in_text(name), self.hide_in(value)))
                    .collect()
            }
            other => other,
        }
    }

    /// The text with a gap for each secret. A text that repeats a secret in another form is hidden as a whole.
    fn hide_in_text(&self, text: String) -> String {
        let text = self.texts.iter().fold(text, |text, secret| text.replace(secret, HIDDEN));
        if self.are_in_a_form_of(&text) { HIDDEN.to_owned() } else { text }
    }

    fn are_in_a_form_of(&self, text: &str) -> bool {
        let text = plain(text);
        self.forms.iter().any(|form| text.contains(form))
    }

    fn are_number(&self, number: Option<f64>) -> bool {
        number.is_some() && self.texts.iter().any(|secret| secret.parse().ok() == number)
    }
}

/// The forms of a secret that a [`plain`] text may have.
fn forms_of(secret: &str) -> Vec<String> {
    let in_json = Value::from(secret).to_string();
    // An HTML form writes a space as a plus sign.
    let written = [
        secret.to_owned(),
        secret.replace(' ', "+"),
        in_url(secret),
        in_json[1..in_json.len() - 1].to_owned(),
    ];
    let forms = written.into_iter().flat_map(|text| {
        let in_hexadecimal = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        let in_base64 = (0..3).map(|before| in_base64(&text, before));
        let mut forms: Vec<String> = in_base64.collect();
        forms.extend([in_hexadecimal, text]);
        forms
    });
    forms.map(|form| plain(&form)).collect()
}

/// The Base64 of a text after `before` other bytes, without the characters on the border to other bytes.
fn in_base64(text: &str, before: usize) -> String {
    let encoded = STANDARD.encode(["x".repeat(before).as_str(), text].concat());
    let (start, end) = (before * 8, (before + text.len()) * 8);
    encoded[start.div_ceil(6)..end / 6].to_owned()
}

/// A text without the escapes of JSON and of URLs, in small letters, and in one of the two alphabets of Base64.
fn plain(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..UNESCAPED_TIMES {
        let as_in_url = text.replace("\\u00", "%").replace('\\', "");
        text = percent_decode_str(&as_in_url).decode_utf8_lossy().into_owned();
    }
    text.to_ascii_lowercase().replace('-', "+").replace('_', "/")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_repeats_no_secret_of_six_characters() {
        let texts =
            [("id", "client1"), ("key", "client1-a/b+c"), ("pin", "1234"), ("u", "a b c d")];
        let texts = texts.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let secrets = SecretTexts::of(texts.into());
        let text = "row 7: k=client1-a/b+c of client1, pin 1234";
        let answer = json!([text, "/e?K=CLIENT1-A%2FB%2BC", "u=a+b+c+d", 1234]);
        let hidden = json!(["row 7: k=*** of ***, pin 1234", "***", "***", 1234]);
        assert_eq!(secrets.hide_in(answer), hidden);
        let odd = r"\u00zz %%2 \\u0 % \\\".repeat(1_000);
        assert_eq!(secrets.hide_in(json!(odd)), json!(odd));
    }

    #[test]
    fn a_secret_is_hidden_wherever_it_begins_in_hexadecimal_or_base64() {
        let secrets = SecretTexts::of([("key".to_owned(), "sk 7Q/x+Zz&9<".to_owned())].into());
        for text in [
            "0x736B2037512f782b5a7a26393c",
            "/v1/x/c2sgN1EveCtaeiY5PA",
            "/p?auth=c2sgN1EveCtaeiY5PA==&x=1",
            "auth=Basic+bWU6c2sgN1EveCtaeiY5PA%3D%3D",
            "ac2sgN1EveCtaeiY5PA",
            "eDpzayA3US94K1p6Jjk8LS0=",
            "a3k9c2slMjA3USUyRnglMkJaeiUyNjklM0Mm",
        ] {
            assert_eq!(secrets.hide_in(json!(text)), json!("***"), "{text}");
        }
        let other = json!(["c2sgN1E", "736b2037512f", "/v1/c2tpcHBlcnM="]);
        assert_eq!(secrets.hide_in(other.clone()), other);
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
