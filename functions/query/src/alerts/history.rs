//! `GET /alerts/{id}/history`: the messages of a rule, newest first. Stores nothing.

use ::alerts::{AlertSubject, Names, Rule, Watch};
use api::{Problem, Response};
use domain::{Decimal, Device, Label, RuleId, Timestamp, Unit, Zone};
use runtime::registry::RegistrySnapshot;
use serde::Serialize;
use table::{ListPage, LoggedMessage, MessageQuery};

use super::{UNREADABLE, rules};
use crate::answer::range_page::{self, RangeListPage};
use crate::answer::row::Row;
use crate::ports::Store;
use crate::readings::ranges::open_range;
use crate::registry::lookup::{path_id, readable};
use crate::shared_state::Call;

/// `GET /alerts/{id}/history`: lists the messages of a rule, even of a deleted one.
pub(crate) async fn history(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let now = call.session.now;

    let query = query(call)?;
    let ListPage { listing, has_more } = call.session.told_messages(&query).await?;
    let told = readable(listing, UNREADABLE, call);
    if told.is_empty() {
        // Without messages, a rule that does not exist is answered with 404.
        rules::known(call).await?;
    }

    let horizon = call.shared.rollup_state.horizon(call.session).await?;
    let snapshot = call.shared.registry.snapshot(call.session, call.log).await?;
    let row = |told| ToldRow::of(told, &snapshot, horizon.zone(), now);
    let rows: Vec<ToldRow<'_>> = told.iter().map(row).collect();

    let page = RangeListPage { range: query.range, own: &TOLD_COLUMNS, has_more };
    Ok(page.write(call, &rows, |row| told[row].key()))
}

/// Reads the parameters. Without `from` or `to` the range is open at that end.
fn query(call: &Call<'_, impl Store>) -> Result<MessageQuery, Problem> {
    let rule = Some(path_id(call)?);
    let Call { request, params, .. } = call;
    let (range, after) =
        range_page::begin(request, params, || open_range(params, call.session.now))?;
    Ok(MessageQuery { range, rule, after, limit: params.limit() })
}

/// A message of an alert, as its history shows it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "LoggedMessage", deny_unknown_fields))]
pub(crate) struct ToldRow<'a> {
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<Timestamp>,
    fired: Timestamp,
    name: &'a Label,
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["fired", "recovered", "passed", "repeated", "taken_back", "edited"])))]
    news: &'static str,
    number: u64,
    rule: &'a RuleId,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<Timestamp>,
    since: Timestamp,
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^(device|room):")))]
    subject: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
}

/// The columns of a message in CSV.
const TOLD_COLUMNS: [&str; 12] = [
    "at", "rule", "name", "subject", "number", "news", "since", "fired", "ended", "value", "text",
    "seen",
];

impl<'a> ToldRow<'a> {
    fn of(
        told: &'a LoggedMessage,
        snapshot: &RegistrySnapshot,
        zone: Zone,
        now: Timestamp,
    ) -> Self {
        let LoggedMessage { alert, at, rule, message } = told;
        let (name, unit) = names(rule, &alert.subject, snapshot);
        let names = Names { subject: &name, unit: unit.as_ref(), zone, now };
        Self {
            at: *at,
            ended: message.ended,
            fired: message.fired,
            name: &rule.name,
            news: message.news.as_str(),
            number: message.number,
            rule: &alert.rule,
            seen: message.seen,
            since: message.since,
            subject: alert.subject.to_string(),
            text: message.text(rule, names),
            value: message.value.as_ref().map(Decimal::as_str),
        }
    }
}

/// The name of a subject, or its id if the subject is gone, and the unit of the watched metric.
fn names(
    rule: &Rule,
    subject: &AlertSubject,
    snapshot: &RegistrySnapshot,
) -> (String, Option<Unit>) {
    let called = |name: Option<&Label>, id: &str| name.map_or(id, Label::as_str).to_owned();
    match subject {
        AlertSubject::Room(id) => {
            let room = snapshot.rooms.get(id);
            (called(room.and_then(|room| room.name.as_ref()), id.as_str()), None)
        }
        AlertSubject::Device(id) => {
            let device = snapshot.devices.get(id);
            let unit = device.and_then(|device| match &rule.watch {
                Watch::Metric { metric, .. } => device.metrics().get(metric)?.unit.clone(),
                _ => None,
            });
            (called(device.and_then(Device::name), id.as_str()), unit)
        }
    }
}

impl Row for ToldRow<'_> {}
