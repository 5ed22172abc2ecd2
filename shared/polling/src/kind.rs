//! A maker whose API is asked, as one value. Knows none by name.

use std::fmt;

use chrono::TimeDelta;
use domain::Timestamp;
use serde_json::Value;

use crate::asking::Asking;
use crate::budget::Budget;
use crate::directory::DeviceDirectory;
use crate::placeholder::Values;
use crate::secrets::SecretTexts;
use crate::time_window::HistoryWindow;

/// A maker whose API is asked.
pub struct SourceKind {
    /// The name of the kind, as it is written.
    pub name: &'static str,
    /// Who answers, as a text names it.
    pub title: &'static str,
    /// Where a person finds the secret, and what it permits.
    pub hint: &'static str,
    /// What must be said where its values are shown.
    pub credit: Option<&'static str>,
    /// The members of a source of this kind, beside those that every source has.
    pub members: &'static [SourceMember],
    /// How often it is asked, unless a person says otherwise.
    pub every: TimeDelta,
    /// How often it may be asked.
    pub least_every: TimeDelta,
    /// How it is asked for the past; `None` if it tells only the present.
    pub history: Option<HistoryWindow>,
    /// The room of its devices, unless a person says otherwise; else the source's id.
    pub(crate) room: Option<&'static str>,
    /// Whether it tells imported energy, unless its member `meter` is false.
    pub(crate) has_meter: bool,
    /// How many requests it may have.
    pub(crate) budget: Option<Budget>,
    /// With fewer requests left in the maker's own count, other programs of the account have them.
    pub(crate) reserve: Option<u32>,
    /// Its requests, as people write that of the kind `json`.
    pub(crate) recipe: &'static str,
    /// The headers by which a request is signed.
    pub(crate) sign: Option<Sign>,
    /// The list of devices. Each of them is asked for by itself.
    pub directory: Option<DeviceDirectory>,
    /// What the maker means by an answer in a way of its own.
    pub(crate) judge: fn(u16, &Value) -> Option<Own>,
}

/// A member of a source of one kind.
pub struct SourceMember {
    /// Its name.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// How it is written.
    pub form: SourceMemberForm,
    /// Whether it may not be left out.
    pub is_needed: bool,
}

/// How a member is written.
pub enum SourceMemberForm {
    /// A secret.
    Secret,
    /// A text that fits, and what is expected.
    Text(fn(&str) -> bool, &'static str),
    /// A number between two numbers.
    Number(i32, i32),
    /// Yes or no; without it yes.
    Flag,
    /// One of some texts.
    Choice(&'static [&'static str]),
}

/// Makes the headers by which a request is signed.
pub(crate) type Sign = fn(&SecretTexts, &Signing) -> Vec<(&'static str, String)>;

/// What a signature is made of beside the secrets.
pub(crate) struct Signing {
    /// The time, by the maker's clock.
    pub(crate) now: Timestamp,
    /// A text that no other request has.
    pub(crate) nonce: String,
}

/// What a maker means by an answer in a way of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Own {
    /// A limit, in words behind the maker's name.
    Limited(String),
    /// An error, in the same way.
    Failing(String),
    /// There is nothing yet, and that is right.
    Nothing,
}

/// What kinds have in common; each says what is different.
pub(crate) const PLAIN: SourceKind = SourceKind {
    name: "",
    title: "",
    hint: "",
    credit: None,
    members: &[],
    every: TimeDelta::minutes(5),
    least_every: TimeDelta::minutes(1),
    history: None,
    room: None,
    has_meter: false,
    budget: None,
    reserve: None,
    recipe: "[]",
    sign: None,
    directory: None,
    judge: |_, _| None,
};

impl SourceMember {
    /// A secret.
    pub(crate) const fn secret(name: &'static str, about: &'static str) -> Self {
        Self::needed(name, about, SourceMemberForm::Secret)
    }

    /// A member that may not be left out.
    pub(crate) const fn needed(
        name: &'static str,
        about: &'static str,
        form: SourceMemberForm,
    ) -> Self {
        Self { name, about, form, is_needed: true }
    }

    /// A member that may be left out.
    pub(crate) const fn optional(
        name: &'static str,
        about: &'static str,
        form: SourceMemberForm,
    ) -> Self {
        Self { name, about, form, is_needed: false }
    }

    /// Whether it is a secret.
    pub const fn is_secret(&self) -> bool {
        matches!(self.form, SourceMemberForm::Secret)
    }

    /// Reads a value; the error says what is expected.
    pub(crate) fn read(&self, value: &Value) -> Result<String, String> {
        let text = match value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            _ => return Err("must be a text, a number or true or false".to_owned()),
        };

        let (is_valid, expected) = match self.form {
            SourceMemberForm::Secret => return Err("is a secret; write it into secrets".to_owned()),
            SourceMemberForm::Text(is_valid, expected) => (is_valid(&text), expected.to_owned()),
            SourceMemberForm::Number(from, to) => {
                let is_within = |number: f64| (from.into()..=to.into()).contains(&number);
                (text.parse().is_ok_and(is_within), format!("must be a number from {from} to {to}"))
            }
            SourceMemberForm::Flag => {
                (matches!(text.as_str(), "true" | "false"), "must be true or false".to_owned())
            }
            SourceMemberForm::Choice(choices) => {
                (choices.contains(&text.as_str()), format!("must be one of {}", choices.join(", ")))
            }
        };
        is_valid.then_some(text).ok_or(expected)
    }

    /// A value in its form: a number and a flag are no texts.
    pub(crate) fn in_form(&self, text: &str) -> Value {
        match self.form {
            SourceMemberForm::Number(..) | SourceMemberForm::Flag => {
                serde_json::from_str(text).unwrap_or_else(|_| text.into())
            }
            _ => text.into(),
        }
    }
}

impl SourceKind {
    /// The requests of its recipe that are made with these members.
    pub(crate) fn askings(&self, members: &Values) -> Vec<Asking> {
        let mut askings: Vec<Asking> =
            serde_json::from_str(self.recipe).expect("a recipe is a list of requests");
        askings.retain(|asking| {
            let flag = asking.only_with.as_ref().and_then(|name| members.get(name));
            flag.is_none_or(|flag| flag != "false")
        });
        askings
    }
}

impl PartialEq for SourceKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for SourceKind {}

impl fmt::Debug for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
