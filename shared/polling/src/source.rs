//! A source as people write it: the members of `PUT /sources/{id}`. Sends nothing. Its secrets have a type of their
//! own.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use domain::{DeviceId, Label, MemberError, PolledSourceId, RoomId, Timestamp, duration};
use outgoing::{Fetched, Reach, Request};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::asking::Asking;
use crate::budget::Budget;
use crate::directory::{DirectoryDevice, DirectoryListing, Question};
use crate::kind::{Signing, SourceKind};
use crate::members::{self, COMMON};
use crate::outcome::AnswerOutcome;
use crate::placeholder::Values;
use crate::reader::{ReadAnswer, ReadContext};
use crate::secrets::SecretTexts;
use crate::status::SourceStatus;
use crate::time_window::{HistoryWindow, TimeWindow, is_time};

/// The members of an answer about a source that are not settings. They are ignored, so that an answer may be sent back
/// unchanged.
const OF_ANSWERS: [&str; 8] =
    ["id", "state", "host", "devices", "credit", "lacks_secrets", "secrets", "warnings"];
/// The maximum number of devices of a source.
const MAX_DEVICES: usize = 64;
/// The longest time between two runs.
const MAX_EVERY: TimeDelta = TimeDelta::days(7);
/// The maximum number of requests a day if each device needs one, unless a person chooses another limit.
const CALLS: u32 = 9_000;
/// How far back and ahead each run reads a source of kind `json` with a history.
const HISTORY: HistoryWindow = HistoryWindow { back: TimeDelta::days(1), ahead: TimeDelta::zero() };

/// A source that is polled.
#[derive(Debug, Clone, PartialEq)]
pub struct PolledSource {
    /// The settings as a person wrote them, without secrets.
    settings: Map<String, Value>,
    /// The maker.
    pub kind: &'static SourceKind,
    /// The members of the source's kind, without secrets.
    members: Values,
    /// The requests. If the kind has a directory, the second request is made for each device.
    askings: Vec<Asking>,
    every: Option<TimeDelta>,
    /// Whether the source is polled.
    pub is_on: bool,
    /// The beginning of the past that is requested, if the source has a history.
    pub since: Option<Timestamp>,
    room: Option<RoomId>,
    /// The rooms of devices; `None` for a device that is left out.
    pub rooms: BTreeMap<DeviceId, Option<SourceRoom>>,
}

/// The members that every source may have, and separately the members of its kind.
#[derive(Deserialize)]
struct CommonMembers {
    kind: Option<String>,
    room: Option<RoomId>,
    #[serde(default)]
    rooms: BTreeMap<DeviceId, Option<SourceRoom>>,
    every: Option<String>,
    on: Option<bool>,
    since: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// The room that a source gives to a device.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SourceRoom {
    /// The id of the room.
    pub room: RoomId,
    /// The name for a room that has no name yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Label>,
}

/// The values of a request besides the source's members.
#[derive(Debug)]
pub struct AskContext<'a> {
    /// The secrets of the source.
    pub secrets: &'a SecretTexts,
    /// The time range of the request.
    pub window: TimeWindow,
    /// The time by the maker's clock.
    pub maker_now: Timestamp,
    /// A text that is unique to the request.
    pub nonce: String,
    /// The networks that the request may go to.
    pub reach: Reach,
}

impl PolledSource {
    /// Reads a source as people write it, without its secrets.
    pub fn read(mut members: Map<String, Value>, reach: Reach) -> Result<Self, MemberError> {
        members.retain(|name, value| !value.is_null() && !OF_ANSWERS.contains(&name.as_str()));
        let mut settings = members.clone();
        let CommonMembers { kind, room, rooms, every: period, on, since: start, others } =
            members::read(members)?;
        let is_on = on.unwrap_or(true);
        settings.insert("on".to_owned(), is_on.into());
        let kind = kind.ok_or_else(|| MemberError::of("kind", "is missing"))?;
        let kind = SourceKind::named(&kind)?;
        if rooms.len() > MAX_DEVICES {
            let why = format!("has {} devices; at most {MAX_DEVICES} are taken", rooms.len());
            return Err(MemberError::of("rooms", why));
        }

        let (members, askings) = if kind.is_json() {
            (Values::new(), vec![Asking::read(others, reach)?])
        } else {
            let members = members_of(kind, others)?;
            let askings = kind.askings(&members);
            (members, askings)
        };
        let source = Self {
            settings,
            kind,
            members,
            askings,
            every: period.map(|period| every(&period, kind)).transpose()?,
            is_on,
            since: start.map(|start| since(&start)).transpose()?,
            room,
            rooms,
        };

        if source.since.is_some() && source.history().is_none() {
            let why = "is for a source that can be asked for the past: {from} stands in its url";
            return Err(MemberError::of("since", why));
        }
        Ok(source)
    }

    /// Reads a stored source. Its address is checked when a request is made.
    pub fn from_stored(settings: &Map<String, Value>) -> Result<Self, MemberError> {
        Self::read(settings.clone(), Reach::Local)
    }

    /// The settings as a person wrote them, in the form that [`read`](Self::read) reads.
    pub const fn settings(&self) -> &Map<String, Value> {
        &self.settings
    }

    /// The names of the secrets that the source needs.
    pub fn needed_secrets(&self) -> BTreeSet<String> {
        let of_kind = self.kind.members.iter().filter(|member| member.is_secret());
        let of_kind = of_kind.map(|member| member.name.to_owned());
        let placeholders = self.own_asking().into_iter().flat_map(Asking::placeholders);
        let of_request = placeholders.filter(|name| !is_time(name));
        of_kind.chain(of_request).collect()
    }

    /// Refuses secrets if one is missing or unused.
    pub fn check_secrets(&self, secrets: &SecretTexts) -> Result<(), MemberError> {
        let needed = self.needed_secrets();
        let wrong = |name: &str, why: &str| MemberError::of(&format!("secrets.{name}"), why);
        if let Some(missing) = needed.iter().find(|name| secrets.get(name).is_none()) {
            let why = "is missing: give it with the source, and again if the request or what is read of its answer changes";
            return Err(wrong(missing, why));
        }
        match secrets.names().find(|name| !needed.contains(*name)) {
            Some(unknown) => Err(wrong(unknown, "is in no placeholder of the request")),
            None => Ok(()),
        }
    }

    /// The format of the payloads in the answers, if a person chose one.
    pub fn format(&self) -> Option<&str> {
        self.own_asking()?.format.as_deref()
    }

    /// Refuses a source that does not say how its answers are read.
    pub fn check_reader(&self) -> Result<(), MemberError> {
        let has_reader = self.own_asking().is_none_or(Asking::has_reader);
        let why = "is missing; write metrics or format";
        has_reader.then_some(()).ok_or_else(|| MemberError::of("metrics", why))
    }

    /// A digest of the purpose of the source's secrets: the request, and the reader of its answer; for a kind other
    /// than `json`, the kind. After a change of the purpose, the secrets have to be given again. Otherwise a person who
    /// edits the source could send the secrets to another address, or read them in an answer that repeats them.
    pub fn destination(&self) -> String {
        if !self.kind.is_json() {
            return digest(self.kind.name, 16);
        }
        let mut request = self.settings.clone();
        request.retain(|name, _| !COMMON.contains(&name.as_str()));
        digest(&json!(request).to_string(), 16)
    }

    /// A digest of the requests and of how their answers are read. If it changes, earlier answers no longer count.
    pub fn question(&self) -> String {
        let mut asked = self.settings.clone();
        for apart in ["room", "rooms", "every", "on"] {
            asked.remove(apart);
        }
        digest(&json!([self.kind.recipe, asked]).to_string(), 8)
    }

    /// The request that a source of kind `json` defines itself.
    fn own_asking(&self) -> Option<&Asking> {
        self.askings.first().filter(|_| self.kind.is_json())
    }

    /// The requests of a run at `now`. For a kind with a directory, these are the list of devices, or the states of the
    /// next devices. For other kinds, these are all requests.
    pub fn questions(&self, status: &SourceStatus, now: Timestamp) -> Vec<Question> {
        let question = |position| Question { position, device: None };
        let Some(directory) = &self.kind.directory else {
            return (0..self.askings.len()).map(question).collect();
        };
        match &status.listed {
            Some(listed) if !listed.is_due(directory.every, now) => listed.questions(),
            _ => vec![question(0)],
        }
    }

    /// How far back and ahead each run reads, if the source has a history.
    pub fn history(&self) -> Option<HistoryWindow> {
        let of_request = self
            .own_asking()
            .filter(|asking| asking.placeholders().iter().any(|name| name.starts_with("from")));
        self.kind.history.or_else(|| of_request.map(|_| HISTORY))
    }

    /// The time between two runs of a source with this status.
    pub fn every_of(&self, status: &SourceStatus) -> TimeDelta {
        self.every(status.listed.as_ref().map_or(0, |listed| listed.devices.len()))
    }

    /// The time between two runs, if the maker lists this many devices.
    pub fn every(&self, devices: usize) -> TimeDelta {
        if let Some(every) = self.every {
            return every;
        }
        if self.kind.directory.is_none() {
            return self.kind.every;
        }

        // Each day has this many requests for the list of devices. The other requests are spread evenly.
        let (lists, devices) = (24, i64::try_from(devices).unwrap_or(i64::MAX));
        let fits = |minutes: &i64| {
            let runs = (1_440 + minutes - 1) / minutes;
            runs.saturating_mul(devices).saturating_add(lists) <= i64::from(self.calls())
        };
        let minutes = (1..1_440).find(fits).unwrap_or(1_440);
        TimeDelta::minutes(minutes).max(self.kind.every)
    }

    fn calls(&self) -> u32 {
        self.members.get("calls").and_then(|calls| calls.parse().ok()).unwrap_or(CALLS)
    }

    /// The limit for requests.
    pub fn budget(&self) -> Option<Budget> {
        let of_calls = Budget { requests: self.calls(), per: TimeDelta::days(1) };
        self.kind.budget.or_else(|| self.kind.directory.is_some().then_some(of_calls))
    }

    /// The host of the first request.
    pub fn host(&self) -> String {
        self.askings.first().and_then(Asking::host).unwrap_or_default()
    }

    /// Whether the source reports imported energy.
    pub fn has_meter(&self) -> bool {
        self.kind.has_meter && self.members.get("meter").is_none_or(|meter| meter != "false")
    }

    /// Whether a person gave the source a room.
    pub const fn has_room(&self) -> bool {
        self.room.is_some()
    }

    /// The room of devices to which the source gives no room of their own.
    pub fn room(&self, id: &PolledSourceId) -> Option<RoomId> {
        let by_default = || self.kind.room.unwrap_or(id.as_str()).parse().ok();
        self.room.clone().or_else(by_default)
    }

    /// Builds the request of a question.
    pub fn request(
        &self,
        Question { position, device }: &Question,
        context: &AskContext<'_>,
    ) -> Result<Request, String> {
        let mut values = context.secrets.values();
        values.extend(self.members.clone());
        values.extend(context.window.values());
        values.extend(device.iter().map(|device| ("device".to_owned(), device.id.clone())));

        let asking = &self.askings[*position];
        let request = asking.request(self.kind.title, &values, context.secrets, context.reach)?;
        let signing = Signing { now: context.maker_now, nonce: context.nonce.clone() };
        let signed = self.kind.sign.map(|sign| sign(context.secrets, &signing));
        Ok(request.with_headers(signed.unwrap_or_default()))
    }

    /// The list of devices in an answer, if the question was for the list.
    pub fn listed(
        &self,
        question: &Question,
        answer: &Value,
        now: Timestamp,
    ) -> Option<DirectoryListing> {
        let directory = self.kind.directory.as_ref().filter(|_| question.device.is_none())?;
        Some(DirectoryListing { at: now, devices: (directory.read)(answer), last: None })
    }

    /// The meaning of an answer that came at `now`, with the secrets hidden in what is read.
    pub fn outcome(
        &self,
        answer: &Fetched,
        secrets: &SecretTexts,
        now: Timestamp,
    ) -> AnswerOutcome {
        match AnswerOutcome::of(self.kind, answer, now) {
            AnswerOutcome::Read(answer) => AnswerOutcome::Read(secrets.hide_in(answer)),
            other => other,
        }
    }

    /// The time until which the remaining requests are left to other programs of the account, if the maker permits only
    /// few more.
    pub fn reserved_until(&self, answer: &Fetched, now: Timestamp) -> Option<Timestamp> {
        AnswerOutcome::reserve(answer, self.kind.reserve?, now)
    }

    /// Reads the answer to a question.
    pub fn read_answer(
        &self,
        id: &PolledSourceId,
        Question { position, device }: &Question,
        answer: &Value,
        now: Timestamp,
    ) -> Result<ReadAnswer, String> {
        let own = id.as_str().parse::<DeviceId>().expect("an id of a source is one of a device");
        let context = ReadContext { request: *position, device: &own, members: &self.members, now };

        let mut read = self.askings[*position].read_answer(answer, context)?;
        if let Some(DirectoryDevice { id, name, .. }) = device {
            for portion in &mut read.portions {
                portion.key = format!("{}/{id}", portion.key);
                portion.names.extend(id.parse().ok().map(|id| (id, name.clone())));
            }
        }
        Ok(read)
    }
}

/// The first bytes of a text's hash, in hexadecimal.
fn digest(text: &str, bytes: usize) -> String {
    Sha256::digest(text)[..bytes].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads the members of a kind, without secrets.
fn members_of(kind: &SourceKind, mut members: Map<String, Value>) -> Result<Values, MemberError> {
    let mut values = Values::new();
    for member in kind.members {
        match members.remove(member.name) {
            Some(value) => {
                let value = member.read(&value).map_err(|why| MemberError::of(member.name, why))?;
                values.insert(member.name.to_owned(), value);
            }
            None if member.is_needed && !member.is_secret() => {
                let why = format!("is missing: {}", member.about);
                return Err(MemberError::of(member.name, why));
            }
            None => {}
        }
    }

    let own = kind.members.iter().filter(|member| !member.is_secret());
    members::ensure_known(&members, kind.name, own.map(|member| member.name))?;
    Ok(values)
}

fn every(text: &str, kind: &SourceKind) -> Result<TimeDelta, MemberError> {
    let every = duration::parse(text, "smhd");
    let every = every.filter(|every| (kind.least_every..=MAX_EVERY).contains(every));
    let least = duration::text(kind.least_every, "hms");
    let why =
        || format!("must be a time such as 5m, from {least} to 7d for the kind {}", kind.name);
    every.ok_or_else(|| MemberError::of("every", why()))
}

/// Reads a timestamp, or a day, which begins at midnight UTC.
fn since(text: &str) -> Result<Timestamp, MemberError> {
    let midnight = || Timestamp::parse_absolute(&format!("{text}T00:00:00Z"));
    let since = Timestamp::parse_absolute(text).or_else(|why| midnight().map_err(|_| why));
    since.map_err(|why| MemberError::of("since", why))
}

#[cfg(test)]
mod tests {
    use domain::given::cases;

    use super::*;

    fn shown(text: &str) -> String {
        let members = serde_json::from_str(text).expect("an object");
        match PolledSource::read(members, Reach::Public) {
            Ok(source) => {
                let stored = PolledSource::from_stored(source.settings());
                assert_eq!(stored.as_ref(), Ok(&source), "it comes back");
                let needed: Vec<_> = source.needed_secrets().into_iter().collect();
                let needed =
                    if needed.is_empty() { "nothing".to_owned() } else { needed.join(" ") };
                format!("{} needs {needed}", json!(source.settings()))
            }
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn a_source_is_kept_or_refused_as_its_case_says() {
        for case in cases(include_str!("source.txt")) {
            let shown = shown(case.given);
            let is_refusal = !case.answer().starts_with('{');
            let is_expected =
                shown == case.answer() || is_refusal && shown.starts_with(case.answer());
            assert!(is_expected, "{case}: {shown}");
            assert!(!is_refusal || !shown.contains("geheim"), "{shown}");
        }
    }

    #[test]
    fn switchbot_is_asked_as_often_as_its_calls_permit() {
        for (calls, devices, minutes) in
            [(9_000, 6, 1), (9_000, 12, 2), (9_000, 30, 5), (10_000, 6, 1), (100, 64, 1_440)]
        {
            let members = json!({"kind": "switchbot", "calls": calls});
            let members = members.as_object().cloned().expect("an object");
            let source = PolledSource::read(members, Reach::Public).expect("a source");
            assert_eq!(source.every(devices), TimeDelta::minutes(minutes), "{calls} {devices}");
        }
    }

    #[test]
    fn rooms_and_questions_are_those_of_the_source() {
        let of = |text: &str| {
            PolledSource::read(serde_json::from_str(text).expect("an object"), Reach::Public)
                .expect("a source")
        };
        let id = "my-weather".parse().expect("an id");
        let weather = of(r#"{"kind": "weather", "latitude": 1, "longitude": 1}"#);
        assert_eq!(weather.room(&id).expect("a room").as_str(), "outdoors");
        assert_eq!(of(r#"{"kind": "remo"}"#).room(&id).expect("a room").as_str(), "my-weather");
        let moved = of(r#"{"kind": "weather", "latitude": 2, "longitude": 1}"#);
        assert_ne!(weather.question(), moved.question());
        assert_eq!(weather.destination(), moved.destination(), "the same maker");
        let paused =
            of(r#"{"kind": "weather", "latitude": 1, "longitude": 1, "on": false, "room": "x"}"#);
        assert_eq!(weather.question(), paused.question());
    }

    #[test]
    fn values_in_the_body_of_a_form_are_encoded_and_in_another_text_as_they_are() {
        for (content_type, expected) in
            [("application/x-www-form-urlencoded", "key=a%26b%3Dc"), ("text/plain", "key=a&b=c")]
        {
            let source = json!({
                "kind": "json", "method": "POST", "url": "https://example.org/",
                "headers": {"Content-Type": content_type}, "body": "key={key}", "metrics": {"t": "/t"},
            });
            let source = serde_json::from_value(source).expect("members");
            let source = PolledSource::read(source, Reach::Public).expect("a source");
            let secrets = SecretTexts::of([("key".to_owned(), "a&b=c".to_owned())].into());
            let now = Timestamp::MIN;
            let context = AskContext {
                secrets: &secrets,
                window: TimeWindow::moment(now),
                maker_now: now,
                nonce: String::new(),
                reach: Reach::Public,
            };
            let question = Question { position: 0, device: None };
            let request = source.request(&question, &context).expect("a request");
            assert_eq!(request.body(), expected);
        }
    }
}
