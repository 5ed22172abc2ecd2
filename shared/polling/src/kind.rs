//! The description of a maker's API, as one value. Knows no maker by name.

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

/// A maker whose API is polled.
pub struct SourceKind {
    /// The name of the kind, as people write it in a source.
    pub name: &'static str,
    /// The name of the maker in messages.
    pub title: &'static str,
    /// Where a person finds the secret, and what else the secret permits.
    pub hint: &'static str,
    /// The attribution that must be shown with the values.
    pub credit: Option<&'static str>,
    /// The members of a source of this kind, besides those of every source.
    pub members: &'static [SourceMember],
    /// The time between two runs, unless a person chooses another.
    pub every: TimeDelta,
    /// The shortest time between two runs that a person may choose.
    pub least_every: TimeDelta,
    /// The time range that each run requests; `None` if the API tells only the present.
    pub history: Option<HistoryWindow>,
    /// The room of the devices, unless a person chooses another. Without a room here, the source's id is the room.
    pub(crate) room: Option<&'static str>,
    /// Whether the maker reports imported energy, unless the source's member `meter` is false.
    pub(crate) has_meter: bool,
    /// The limit for requests.
    pub(crate) budget: Option<Budget>,
    /// The number of requests that are kept for other programs of the account. A run waits if the maker reports fewer.
    pub(crate) reserve: Option<u32>,
    /// The requests, in the JSON that people write for the kind `json`.
    pub(crate) recipe: &'static str,
    /// Makes the headers that sign a request.
    pub(crate) sign: Option<Sign>,
    /// How the devices are listed, if each device needs a request of its own.
    pub directory: Option<DeviceDirectory>,
    /// Recognizes answers that only this maker gives.
    pub(crate) judge: fn(u16, &Value) -> Option<Own>,
}

/// A member of a source of one kind.
pub struct SourceMember {
    /// The name of the member.
    pub name: &'static str,
    /// The description for people.
    pub about: &'static str,
    /// The form of its value.
    pub form: SourceMemberForm,
    /// Whether the member is required.
    pub is_needed: bool,
}

/// The form of a member's value.
pub enum SourceMemberForm {
    /// A secret.
    Secret,
    /// A text, with a check and the message if the check fails.
    Text(fn(&str) -> bool, &'static str),
    /// A number between two limits.
    Number(i32, i32),
    /// True or false; true if absent.
    Flag,
    /// One of several words, which stand in a text with a space in between.
    Choice(&'static str),
}

/// Makes the headers that sign a request.
pub(crate) type Sign = fn(&SecretTexts, &Signing) -> Vec<(&'static str, String)>;

/// The values of a signature besides the secrets.
pub(crate) struct Signing {
    /// The time here, which the maker compares with its own clock.
    pub(crate) now: Timestamp,
    /// A text that is unique to the request.
    pub(crate) nonce: String,
}

/// The meaning of an answer that only this maker gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Own {
    /// The maker takes no more requests. The text continues a sentence that begins with the maker's name.
    Limited(String),
    /// The answer is an error. The text continues a sentence that begins with the maker's name.
    Failing(String),
    /// There is no data yet, which is no error.
    Nothing,
}

/// The defaults of a kind. Each kind states only its differences.
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
    /// A required secret.
    pub(crate) const fn secret(name: &'static str, about: &'static str) -> Self {
        Self::needed(name, about, SourceMemberForm::Secret)
    }

    /// A required member.
    pub(crate) const fn needed(
        name: &'static str,
        about: &'static str,
        form: SourceMemberForm,
    ) -> Self {
        Self { name, about, form, is_needed: true }
    }

    /// An optional member.
    pub(crate) const fn optional(
        name: &'static str,
        about: &'static str,
        form: SourceMemberForm,
    ) -> Self {
        Self { name, about, form, is_needed: false }
    }

    /// Whether the member is a secret.
    pub const fn is_secret(&self) -> bool {
        matches!(self.form, SourceMemberForm::Secret)
    }

    /// Reads a value. The error says what is expected.
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
                let is_one = choices.split(' ').any(|choice| choice == text);
                (is_one, format!("must be one of {}", choices.replace(' ', ", ")))
            }
        };
        is_valid.then_some(text).ok_or(expected)
    }
}

impl SourceKind {
    /// The requests of the kind, without those that a source's member turns off.
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
