//! Sources and their kinds, as the API shows them. Shows no secret, and reads nothing.

use std::borrow::Cow;
use std::collections::BTreeSet;

use domain::{DeviceId, MemberError, PolledSourceId, Timestamp, duration};
use polling::{
    PolledSource, SOURCE_KINDS, SourceKind, SourceMember, SourceMemberForm, SourceState,
};
use serde::Serialize;
use serde_json::{Map, Value};
use table::StoredSource;

use super::needed_secrets;

/// A source.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Source"))]
pub(crate) struct SourceRow<'a> {
    /// The id
    id: &'a PolledSourceId,
    /// The kind, which says who is polled
    kind: &'static str,
    /// The host that is polled
    host: String,
    /// The devices in its latest answers
    devices: &'a [DeviceId],
    /// Whether it is polled
    on: bool,
    /// The attribution that must be shown with the values
    #[serde(skip_serializing_if = "Option::is_none")]
    credit: Option<&'static str>,
    /// The state after the last runs
    state: StateRow<'a>,
    /// The names of the secrets, for an admin
    #[serde(skip_serializing_if = "Option::is_none")]
    secrets: Option<BTreeSet<String>>,
    /// Whether its secrets are missing: it is off until they are given
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    lacks_secrets: bool,
    /// Warnings about the source
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The other settings as they were sent, for an admin only
    #[serde(flatten)]
    settings: Map<String, Value>,
}

/// The state of a source after its last runs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SourceState"))]
struct StateRow<'a> {
    /// waiting, ok, limited or failing
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    state: SourceState,
    /// When an answer was last read and stored
    #[serde(skip_serializing_if = "Option::is_none")]
    last_success: Option<Timestamp>,
    /// Since when the source fails
    #[serde(skip_serializing_if = "Option::is_none")]
    failing_since: Option<Timestamp>,
    /// The last error, or the first refused part of a good answer
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
    /// How often the source is polled: as a person chose, or else by its kind and its devices
    every: String,
    /// When the source is polled next, if it is on
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Timestamp>,
    /// The number of requests on this day of UTC
    requests_today: u32,
}

/// All sources, and all kinds that a source may have.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Sources"))]
pub(crate) struct SourceRows<'a> {
    data: Vec<SourceRow<'a>>,
    /// The kinds of sources
    kinds: Vec<KindRow>,
    /// The sources whose settings cannot be read, each with the reason. They are not polled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<String>,
}

/// A kind of sources.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SourceKind"))]
struct KindRow {
    /// The name, as in the member kind of a source
    kind: &'static str,
    /// Who is polled
    title: &'static str,
    /// The members that only a source of this kind has
    members: Vec<KindMember>,
    /// How often a source is polled, unless a person chooses otherwise
    every: String,
    /// The attribution that must be shown with the values
    #[serde(skip_serializing_if = "Option::is_none")]
    credit: Option<&'static str>,
    /// Where a person finds the secret, and what it permits
    r#where: &'static str,
}

/// A member of a source of one kind.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SourceMember"))]
struct KindMember {
    name: &'static str,
    /// secret, text, number, flag or choice; a secret is sent in the member secrets
    form: &'static str,
    /// The smallest and the largest value of a number
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[i32; 2]>,
    /// The possible values of a choice
    #[serde(skip_serializing_if = "Option::is_none")]
    choices: Option<Vec<&'static str>>,
    /// Whether the member is required
    is_needed: bool,
    /// The description for people
    hint: &'static str,
}

impl<'a> SourceRow<'a> {
    /// A source at `now`. Its settings are shown only to those who may edit it.
    pub(super) fn of(
        stored: &'a StoredSource,
        with_settings: bool,
        now: Timestamp,
    ) -> Result<Self, MemberError> {
        let source = stored.source()?;
        let mut settings = if with_settings { source.settings().clone() } else { Map::new() };
        settings.retain(|name, _| !["kind", "on"].contains(&name.as_str()));

        Ok(Self {
            id: &stored.id,
            kind: source.kind.name,
            host: source.host(),
            devices: &stored.status.devices,
            on: source.is_on,
            credit: source.kind.credit,
            state: StateRow::of(stored, &source, now),
            secrets: with_settings.then(|| source.needed_secrets()),
            lacks_secrets: stored.lacks_secrets,
            warnings: Vec::new(),
            settings,
        })
    }

    /// The same row with warnings.
    pub(super) fn with_warnings(self, warnings: Vec<String>) -> Self {
        Self { warnings, ..self }
    }
}

impl<'a> StateRow<'a> {
    fn of(stored: &'a StoredSource, source: &PolledSource, now: Timestamp) -> Self {
        let status = &stored.status;
        let error = status.error.as_deref().map(Cow::Borrowed);
        let devices = status.listed.as_ref().map_or(0, |listed| listed.devices.len());
        Self {
            state: status.state(now),
            last_success: status.last_success,
            failing_since: status.failing_since,
            error: stored.lacks_secrets.then(|| missing_secrets(source).into()).or(error),
            every: duration::text(source.every(devices), "dhms"),
            next: source.is_on.then_some(stored.next),
            requests_today: stored.spent.today(now),
        }
    }
}

/// The message that secrets are missing, as in a source that was restored from an export.
fn missing_secrets(source: &PolledSource) -> String {
    let (host, names) = (source.host(), needed_secrets(source));
    format!(
        "its secret for {host} is missing ({names}); it is off, and is not asked until it is given and on"
    )
}

impl<'a> SourceRows<'a> {
    /// The readable sources, and the messages about the others.
    pub(super) fn new(data: Vec<SourceRow<'a>>, damaged: Vec<String>) -> Self {
        Self { data, kinds: SOURCE_KINDS.into_iter().map(KindRow::from).collect(), damaged }
    }
}

impl From<&'static SourceKind> for KindRow {
    fn from(kind: &'static SourceKind) -> Self {
        Self {
            kind: kind.name,
            title: kind.title,
            members: kind.members.iter().map(KindMember::from).collect(),
            every: duration::text(kind.every, "dhms"),
            credit: kind.credit,
            r#where: kind.hint,
        }
    }
}

impl From<&'static SourceMember> for KindMember {
    fn from(member: &'static SourceMember) -> Self {
        let (form, range, choices) = match member.form {
            SourceMemberForm::Secret => ("secret", None, None),
            SourceMemberForm::Text(..) => ("text", None, None),
            SourceMemberForm::Number(from, to) => ("number", Some([from, to]), None),
            SourceMemberForm::Flag => ("flag", None, None),
            SourceMemberForm::Choice(choices) => {
                ("choice", None, Some(choices.split(' ').collect()))
            }
        };
        let SourceMember { name, about, is_needed, .. } = *member;
        Self { name, form, range, choices, is_needed, hint: about }
    }
}
