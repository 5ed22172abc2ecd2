//! Restores the registry entries of a backup with PATCH, and its annotations and tariffs with PUT. Registers no device
//! and no room.
//!
//! A device is registered by its first reading. A room is registered by the first reading that names it, or by a person
//! who puts a device there. Any other entry cannot be restored, and is refused.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use api::json::{Members, string};
use api::{body, restored_device};
use domain::{
    AnnotationId, DeviceId, DevicePatch, Edit, MAX_PATCHED_METRICS, MetricName, RoomId, RoomPatch,
    TariffId, Unit,
};
use runtime::clock::Stopwatch;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::patterns::NamePatterns;
use crate::client::{Ask, Client};
use history::line::JsonRecord;
use history::refusals::Refusal;

/// The maximum wait for a device that is not registered yet.
const MAX_WAIT: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 30_000 });
/// The maximum number of members of an entry, and of its metrics.
const MAX_MEMBERS: usize = 1_000;

/// A registry entry of a backup: a device or a room in the form of `GET`, or an annotation or a tariff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RegistryLine {
    line: u64,
    path: String,
    /// The device that is described, or that an annotation is about.
    device: Option<DeviceId>,
    /// The edit that restores a device.
    patch: Option<DevicePatch>,
    /// The members that are sent; of a device, all but its metrics and its meter.
    members: Vec<Member>,
    metrics: Vec<Member>,
    behind: Vec<Member>,
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    name: String,
    json: String,
}

/// One request that restores an entry or a part of it.
#[derive(Debug)]
struct RegistryRequest {
    line: u64,
    path: String,
    stage: Stage,
    body: String,
}

/// The order of requests: devices register their rooms, a meter must be registered before the devices behind it, and
/// rooms make the homes that annotations may be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Device,
    Meter,
    Room,
    /// An annotation or a tariff.
    Saved,
}

/// The kinds of registry lines: a description of a device or a room, an annotation, or a tariff.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form<'a> {
    #[serde(borrow)]
    device: Option<&'a RawValue>,
    #[serde(borrow)]
    room: Option<&'a RawValue>,
    #[serde(borrow)]
    annotation: Option<&'a RawValue>,
    #[serde(borrow)]
    tariff: Option<&'a RawValue>,
}

/// The device that an annotation is about.
#[derive(Deserialize)]
struct AnnotationDevice {
    device: Option<DeviceId>,
}

impl RegistryLine {
    /// Parses a line of a backup.
    pub(super) fn read(record: &JsonRecord) -> Result<Self, String> {
        let form: Form<'_> = serde_json::from_str(&record.json).map_err(|why| why.to_string())?;
        let Form { device, room, annotation, tariff } = form;
        match (device, room, annotation, tariff) {
            (Some(json), None, None, None) => Self::read_device(record.line, json),
            (None, Some(json), None, None) => Self::read_room(record.line, json),
            (None, None, Some(json), None) => Self::read_annotation(record.line, json),
            (None, None, None, Some(json)) => Self::read_tariff(record.line, json),
            _ => Err("describes a device or a room or is an annotation or a tariff, not several"
                .to_owned()),
        }
    }

    fn read_device(line: u64, json: &RawValue) -> Result<Self, String> {
        let patch = restored_device(json).map_err(|why| why.to_string())?;
        let mut members = members_of(json)?;
        let device: DeviceId = take_id(&mut members, "device_id")?;
        let metrics = members.take_non_null("metrics").map(members_of).transpose()?;
        let behind = members.take_non_null("behind").map(|json| ("behind".into(), json));

        Ok(Self {
            line,
            path: format!("/devices/{device}"),
            device: Some(device),
            patch: Some(patch),
            members: sent(members),
            metrics: metrics.map(sent).unwrap_or_default(),
            behind: sent(behind),
        })
    }

    fn read_room(line: u64, json: &RawValue) -> Result<Self, String> {
        let read = body::value_without::<RoomPatch>(json, &["room_id", "first_seen"]);
        read.map_err(|why| why.to_string())?;
        let mut members = members_of(json)?;
        let room: RoomId = take_id(&mut members, "room_id")?;
        members.take_non_null("first_seen");
        Ok(Self::of(line, format!("/rooms/{room}"), members))
    }

    fn read_annotation(line: u64, json: &RawValue) -> Result<Self, String> {
        let mut members = members_of(json)?;
        let annotation: AnnotationId = take_id(&mut members, "annotation_id")?;
        members.take_non_null("from");
        let annotated = serde_json::from_str(json.get()).map_err(|why| why.to_string())?;
        let AnnotationDevice { device } = annotated;
        let path = format!("/annotations/{annotation}");
        Ok(Self { device, ..Self::of(line, path, members) })
    }

    /// Reads a tariff. Its version is left out: the restored tariff replaces the stored one, whatever its version.
    fn read_tariff(line: u64, json: &RawValue) -> Result<Self, String> {
        let mut members = members_of(json)?;
        let tariff: TariffId = take_id(&mut members, "id")?;
        for shown in ["version", "edited"] {
            members.take_non_null(shown);
        }
        Ok(Self::of(line, format!("/tariffs/{tariff}"), members))
    }

    /// An entry that is restored by one request.
    fn of(line: u64, path: String, members: Members<'_>) -> Self {
        let members = sent(members);
        let (metrics, behind) = (Vec::new(), Vec::new());
        Self { line, path, device: None, patch: None, members, metrics, behind }
    }

    /// Returns the line without the metrics that match the patterns; `None` if its device matches.
    pub(super) fn without(mut self, except: &NamePatterns) -> Option<Self> {
        if self.device.as_ref().is_some_and(|device| except.matches(device.as_str())) {
            return None;
        }
        self.metrics.retain(|metric| !except.matches(&metric.name));
        if let Some(patch) = &mut self.patch {
            patch.metrics.retain(|name, _| !except.matches(name.as_str()));
        }
        Some(self)
    }

    /// Returns the device, if the line puts it behind a meter.
    pub(super) fn behind(&self) -> Option<DeviceId> {
        self.device.clone().filter(|_| !self.behind.is_empty())
    }

    /// Returns the units that the line gives to metrics of its device.
    pub(super) fn units(&self) -> Vec<(DeviceId, MetricName, Option<Unit>)> {
        let (Some(device), Some(patch)) = (&self.device, &self.patch) else { return Vec::new() };
        let unit = |unit: &Edit<Unit>| match unit {
            Edit::Keep => None,
            Edit::Clear => Some(None),
            Edit::Set(unit) => Some(Some(unit.clone())),
        };
        let metrics = patch.settings();
        metrics
            .filter_map(|(name, settings)| {
                Some((device.clone(), name.clone(), unit(&settings.unit)?))
            })
            .collect()
    }

    /// Whether the entry has no setting to restore, for example a room without a name.
    pub(super) fn is_empty(&self) -> bool {
        self.patch.as_ref().map_or(self.members.is_empty(), DevicePatch::is_empty)
    }

    /// Returns the requests that restore the entry.
    fn requests(&self) -> Vec<RegistryRequest> {
        let request = |stage: Stage, members: &[Member]| RegistryRequest {
            line: self.line,
            path: self.path.clone(),
            stage,
            body: object(members),
        };
        if self.is_empty() {
            return Vec::new();
        }

        if self.patch.is_none() {
            let is_room = self.path.starts_with("/rooms/");
            let stage = if is_room { Stage::Room } else { Stage::Saved };
            return vec![request(stage, &self.members)];
        }

        let metrics = self
            .metrics
            .chunks(MAX_PATCHED_METRICS)
            .map(|metrics| vec![Member { name: "metrics".to_owned(), json: object(metrics) }]);
        let mut parts: Vec<Vec<Member>> = metrics.collect();
        match parts.first_mut() {
            Some(first) => first.extend(self.members.iter().cloned()),
            None => parts.push(self.members.clone()),
        }

        let meter = (!self.behind.is_empty()).then(|| request(Stage::Meter, &self.behind));
        parts.iter().map(|part| request(Stage::Device, part)).chain(meter).collect()
    }
}

fn members_of(json: &RawValue) -> Result<Members<'_>, String> {
    Members::parse(json.get(), MAX_MEMBERS).map_err(|why| why.to_string())
}

fn take_id<T: FromStr<Err: fmt::Display>>(
    members: &mut Members<'_>,
    name: &str,
) -> Result<T, String> {
    let json = members.take_non_null(name).ok_or_else(|| format!("{name}: is missing"))?;
    let text = string(json).map_err(|why| format!("{name}: {why}"))?;
    text.parse().map_err(|why| format!("{name}: {why}"))
}

/// The members that have a value.
fn sent<'a>(members: impl IntoIterator<Item = (Cow<'a, str>, &'a RawValue)>) -> Vec<Member> {
    let with_value = members.into_iter().filter(|(_, json)| json.get() != "null");
    with_value
        .map(|(name, json)| Member { name: name.into_owned(), json: json.get().to_owned() })
        .collect()
}

/// The JSON of an object.
fn object(members: &[Member]) -> String {
    let members = members.iter().map(|Member { name, json }| format!("{}:{json}", json!(name)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Applies the entries: devices first, because they register the rooms into which they are put, and annotations and
/// tariffs last.
///
/// Waits for missing devices, because the stream may not have registered them yet, and reports that once with `tell`.
/// Returns the refusals.
pub(super) fn apply(
    lines: &[RegistryLine],
    client: &Client,
    tell: impl FnOnce(String),
) -> anyhow::Result<Vec<Refusal>> {
    let mut requests: Vec<RegistryRequest> =
        lines.iter().flat_map(RegistryLine::requests).collect();
    requests.sort_by_key(|request| request.stage);

    let mut refusals = Vec::new();
    let mut tell = Some(tell);
    let mut pause = Duration::from_millis(100);
    let watch = Stopwatch::start();
    loop {
        let mut missing = Vec::new();
        for request in requests {
            let Some(unrestored) = send(request, client)? else { continue };
            if unrestored.awaited.is_some() {
                missing.push(unrestored);
            } else {
                refusals.push(unrestored.refusal());
            }
        }

        let Some(awaited) = missing.first().and_then(|first| first.awaited.as_ref()) else {
            return Ok(refusals);
        };
        if watch.elapsed() >= MAX_WAIT {
            refusals.extend(missing.iter().map(Unrestored::refusal));
            return Ok(refusals);
        }

        if let Some(tell) = tell.take() {
            let more = match missing.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let seconds = MAX_WAIT.as_secs();
            tell(format!("waiting until the registry knows {awaited}{more} (up to {seconds} s)"));
        }

        thread::sleep(pause.min(MAX_WAIT));
        pause = (pause * 2).min(Duration::from_secs(5));
        requests = missing.into_iter().map(|unrestored| unrestored.request).collect();
    }
}

/// A request that restored nothing.
struct Unrestored {
    request: RegistryRequest,
    reason: String,
    /// The device that is not registered yet; `None` if waiting does not help.
    awaited: Option<String>,
}

impl Unrestored {
    fn refusal(&self) -> Refusal {
        Refusal { line: self.request.line, reason: self.reason.clone() }
    }
}

/// Sends a request; `None` if it restored its part.
fn send(request: RegistryRequest, client: &Client) -> anyhow::Result<Option<Unrestored>> {
    let RegistryRequest { path, stage, body, .. } = &request;
    let restore = if matches!(stage, Stage::Device | Stage::Meter) { "?restore=1" } else { "" };
    let method = if *stage == Stage::Saved { "PUT" } else { "PATCH" };
    let answer = client.send(Ask::json(method, &format!("{path}{restore}"), body))?;
    let problem = answer.problem();

    let id = path.rsplit('/').next().unwrap_or_default();
    let (reason, awaited) = match answer.status {
        200 => return Ok(None),
        // An address that only stores readings does not have this path, whatever the table has.
        404 if problem.is_elsewhere() => {
            return Err(client.error(path, &answer)).context(
                "the readings are stored, and devices, rooms, annotations and tariffs are not restored",
            );
        }
        404 => {
            let why = "It has no readings here, so it is not restored.";
            (format!("{} {why}", problem.detail), Some(id.to_owned()))
        }
        400 if *stage == Stage::Meter => {
            (problem.detail, Some(format!("the meter in front of {id}")))
        }
        400 => (problem.detail, None),
        _ => return Err(client.error(path, &answer)),
    };
    Ok(Some(Unrestored { request, reason, awaited }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fake_server::{self, Reply};

    fn line(json: &str) -> Result<RegistryLine, String> {
        RegistryLine::read(&JsonRecord { line: 7, json: json.to_owned() })
    }

    fn bodies(line: &RegistryLine) -> Vec<String> {
        line.requests().into_iter().map(|request| request.body).collect()
    }

    #[test]
    fn a_device_is_what_people_said_of_it() {
        let device = line(
            r#"{"device":{"device_id":"d","name":"Meter","room":"r","room_pinned":true,"kind":null,
                "tags":["a"],"attributes":{"model":["x",4],"size":1.50},"first_seen":"2026-01-11T16:00:00.000Z","metrics":{
                "temperature":{"kind":"gauge","unit":"°C"},
                "cumulative_kwh_p":{"kind":"counter","unit":"kWh","modulus":12345678901234567890123456789012345678,
                "exchanges":[{"timestamp":"2026-01-11T16:00:00.000Z","old":812.3,"new":0.1}]},
                "pulses":{"kind":"counter","unit":null},
                "current_w":{"kind":"gauge","unit":null,"hold":"90s"}},"behind":"main"}}"#,
        )
        .unwrap();
        assert_eq!(device.path, "/devices/d");
        assert_eq!(
            bodies(&device),
            [
                concat!(
                    r#"{"metrics":{"cumulative_kwh_p":{"kind":"counter","unit":"kWh","modulus":12345678901234567890123456789012345678,"#,
                    "\n                ",
                    r#""exchanges":[{"timestamp":"2026-01-11T16:00:00.000Z","old":812.3,"new":0.1}]},"#,
                    r#""current_w":{"kind":"gauge","unit":null,"hold":"90s"},"pulses":{"kind":"counter","unit":null},"#,
                    r#""temperature":{"kind":"gauge","unit":"°C"}},"attributes":{"model":["x",4],"size":1.50},"#,
                    r#""first_seen":"2026-01-11T16:00:00.000Z","name":"Meter","room":"r","room_pinned":true,"tags":["a"]}"#,
                ),
                r#"{"behind":"main"}"#,
            ]
        );
        assert_eq!(device.behind().map(|it| it.to_string()).as_deref(), Some("d"));
        let except =
            |pattern: &str| device.clone().without(&NamePatterns::of(&[pattern.to_owned()]));
        assert!(!bodies(&except("current_*").unwrap())[0].contains("current_w"));
        assert_eq!((except("main"), except("d")), (Some(device.clone()), None));
        let learned = line(r#"{"device":{"device_id":"d","room":"r","room_pinned":false}}"#);
        assert!(bodies(&learned.unwrap()).is_empty(), "the readings tell the room");
        let by_hand = line(r#"{"device":{"device_id":"d","room":"r"}}"#).unwrap();
        assert_eq!(bodies(&by_hand), [r#"{"room":"r"}"#]);
        let room =
            line(r#"{"room":{"room_id":"r","name":"Hall","home":"h","first_seen":"x"}}"#).unwrap();
        assert_eq!(
            (&*room.path, &bodies(&room)[..]),
            ("/rooms/r", &[r#"{"home":"h","name":"Hall"}"#.into()][..])
        );
        let note = line(
            r#"{"annotation":{"annotation_id":"2026-01-11T16:00:00.000Z-a","from":"x","to":null,"device":"d","text":"Oven"}}"#,
        );
        let note = note.unwrap();
        assert_eq!(
            (&*note.path, &bodies(&note)[..]),
            (
                "/annotations/2026-01-11T16:00:00.000Z-a",
                &[r#"{"device":"d","text":"Oven"}"#.into()][..]
            )
        );
        assert_eq!(note.clone().without(&NamePatterns::of(&["d".to_owned()])), None);
        assert_eq!(note.clone().without(&NamePatterns::of(&["e".to_owned()])), Some(note.clone()));
        let names = (0..33).map(|n| format!(r#""m{n}":{{"unit":"x"}}"#)).collect::<Vec<_>>();
        let many = format!(r#"{{"device":{{"device_id":"d","metrics":{{{}}}}}}}"#, names.join(","));
        assert_eq!(bodies(&line(&many).unwrap()).len(), 3, "16 metrics a request");
    }

    #[test]
    fn a_line_of_another_form_is_refused() {
        for json in [
            r#"{"device":{"device_id":"a#b"}}"#,
            r#"{"device":{"device_id":"d","nmae":"x"}}"#,
            r#"{"device":{"device_id":"d"},"room":{"room_id":"r"}}"#,
            r#"{"device":{}}"#,
            r#"{"annotation":{"annotation_id":"x","text":"x"}}"#,
            r#"{"annotation":{"annotation_id":"2026-01-11T16:00:00.000Z-a","text":"x"},"room":{"room_id":"r"}}"#,
            r#"{"device":{"device_id":"d","metrics":{"t":{"kind":"x"}}}}"#,
        ] {
            assert!(line(json).is_err(), "{json}");
        }
    }

    #[test]
    fn what_is_not_yet_there_is_waited_for_and_what_never_comes_is_named() {
        let server = fake_server::serve(|n, request| match (n, request.path.as_str()) {
            (0, "/devices/late?restore=1") | (_, "/devices/never?restore=1") => {
                Reply::of(404, r#"{"detail": "There is no such device."}"#)
            }
            (_, "/devices/bad?restore=1") => Reply::of(400, r#"{"detail": "name: is empty"}"#),
            (_, "/devices/wrong?restore=1") => Reply::of(
                400,
                r#"{"detail": "t.hold: is", "errors": [{"field": "metrics.t.hold", "message": "is"}]}"#,
            ),
            _ => Reply::of(200, "{}"),
        });
        let lines = ["late", "never", "bad", "wrong"]
            .map(|id| line(&format!(r#"{{"device":{{"device_id":"{id}","name":"x"}}}}"#)).unwrap());
        let client = server.client();
        let mut told = Vec::new();
        let tell = |text| told.push(text);
        let refusals = apply(&lines, &client, tell).unwrap();
        assert_eq!(told, ["waiting until the registry knows late and 1 more (up to 0 s)"]);
        let refusals: Vec<String> = refusals.iter().map(Refusal::to_string).collect();
        assert_eq!(
            refusals,
            [
                "line 7: name: is empty",
                "line 7: t.hold: is",
                "line 7: There is no such device. It has no readings here, so it is not restored.",
            ]
        );
    }

    #[test]
    fn an_address_that_only_stores_readings_is_named_at_once() {
        const ELSEWHERE: &str = r#"{"type": "urn:roomtide:problem:elsewhere",
            "detail": "PATCH /devices/d1 is not answered at this address, which stores readings."}"#;
        let server = fake_server::serve(|_, _| Reply::of(404, ELSEWHERE));
        let device = line(r#"{"device":{"device_id":"d1","name":"x"}}"#).unwrap();
        let tell = |text| panic!("{text}");
        let error = apply(&[device], &server.client(), tell).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.starts_with("the readings are stored, and devices, rooms"), "{error}");
        assert!(error.contains("PATCH /devices/d1 is not answered at this address"), "{error}");
        assert!(!error.contains("has no readings"), "{error}");
    }

    #[test]
    fn a_meter_that_is_waited_for_is_named_and_without_a_wait_nothing_is_told() {
        let client = fake_server::in_turn(&[
            (200, "{}"),
            (400, r#"{"errors": [{"field": "behind", "message": "is no device"}]}"#),
            (200, "{}"),
        ])
        .client();
        let device =
            || line(r#"{"device":{"device_id":"d1","name":"x","behind":"main"}}"#).unwrap();
        let waiting =
            "waiting until the registry knows the meter in front of d1 (up to 0 s)".to_owned();
        for expected in [vec![waiting], vec![]] {
            let mut told = Vec::new();
            let refusals = apply(&[device()], &client, |text| told.push(text)).unwrap();
            assert_eq!((refusals.len(), told), (0, expected));
        }
    }
}
