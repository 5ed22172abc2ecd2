//! Restores the registry entries of a backup with PATCH, and its annotations with PUT. Registers no device and no room.
//!
//! A device is registered by its first reading. A room is registered by the first reading that names it, or by a person
//! who puts a device there. Any other entry cannot be restored, and is refused.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use domain::{AnnotationId, AttributeName, DeviceId, HomeId, MetricKind, MetricName, RoomId, Unit};
use runtime::clock::Stopwatch;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::line::Record;
use super::patterns::Patterns;
use super::refusals::Refusal;
use crate::client::{Ask, Client};

/// The maximum wait for a device or metric that is not registered yet.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// The path of annotations.
const ANNOTATIONS: &str = "/annotations/";
/// The beginning of a body with settings of one metric.
const METRICS: &str = r#"{"metrics":{""#;

/// A registry entry of a backup: the requests that restore a device, a room or an annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RegistryLine {
    line: u64,
    path: String,
    /// The device that an annotation is about.
    annotated: Option<DeviceId>,
    /// For each setting or metric that is restored separately, the bodies of its requests.
    bodies: Vec<Vec<String>>,
}

/// The kinds of registry lines: a description of a device or a room, or an annotation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    device: Option<DeviceForm>,
    room: Option<RoomForm>,
    annotation: Option<AnnotationForm>,
}

/// An annotation as `GET /annotations` returns it. Without its id and start, this is the body of `PUT`.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct AnnotationForm {
    #[serde(skip_serializing)]
    annotation_id: AnnotationId,
    #[serde(rename = "from", skip_serializing)]
    _from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<DeviceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<RoomId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    home: Option<HomeId>,
    text: String,
}

/// A device in the form of `GET /devices`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceForm {
    device_id: DeviceId,
    name: Option<String>,
    room: Option<RoomId>,
    room_pinned: Option<bool>,
    kind: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    attributes: BTreeMap<AttributeName, Box<RawValue>>,
    behind: Option<DeviceId>,
    in_room_means: Option<bool>,
    #[serde(default)]
    metrics: BTreeMap<MetricName, Settings>,
    #[serde(rename = "first_seen")]
    _first_seen: Option<String>,
}

/// The settings of a metric.
#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<MetricKind>,
    /// The unit; null removes the default unit of a well-known metric.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    unit: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modulus: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_w: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerance: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exchanges: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdicts: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    net: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cycle: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_room_means: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hourly_until: Option<String>,
    /// Derived from `in_room_means`, the device and its kind; it cannot be set.
    #[serde(rename = "not_of_room", skip_serializing)]
    _not_of_room: Option<String>,
}

/// The body that sets metrics of a device.
#[derive(Deserialize)]
struct MetricsForm {
    #[serde(default)]
    metrics: BTreeMap<MetricName, Settings>,
}

/// A room in the form of `GET /rooms`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoomForm {
    room_id: RoomId,
    name: Option<String>,
    home: Option<HomeId>,
    outside: Option<bool>,
    #[serde(rename = "first_seen")]
    _first_seen: Option<String>,
}

/// The body of a PATCH.
#[derive(Default, Serialize)]
struct Patch<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<&'a RoomId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    home: Option<&'a HomeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outside: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<&'a AttributeName, &'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<&'a DeviceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_room_means: Option<bool>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metrics: BTreeMap<&'a MetricName, &'a Settings>,
}

impl RegistryLine {
    /// Parses a line of a backup.
    pub(super) fn read(record: &Record) -> Result<Self, String> {
        let form: Form = serde_json::from_str(&record.json).map_err(|why| why.to_string())?;
        let line = record.line;
        match form {
            Form { device: Some(device), room: None, annotation: None } => {
                let path = format!("/devices/{}", device.device_id);
                Ok(Self { line, path, annotated: None, bodies: device.bodies() })
            }
            Form { device: None, room: None, annotation: Some(annotation) } => {
                let path = format!("{ANNOTATIONS}{}", annotation.annotation_id);
                let body = serde_json::to_string(&annotation).map_err(|why| why.to_string())?;
                Ok(Self { line, path, annotated: annotation.device, bodies: vec![vec![body]] })
            }
            Form { device: None, room: Some(room), annotation: None } => {
                let set = Patch {
                    name: room.name.as_deref(),
                    home: room.home.as_ref(),
                    outside: room.outside,
                    ..Patch::default()
                };
                let path = format!("/rooms/{}", room.room_id);
                let bodies = set.body().map(|it| vec![it]).into_iter().collect();
                Ok(Self { line, path, annotated: None, bodies })
            }
            _ => Err("describes a device or a room or is an annotation, not several".to_owned()),
        }
    }

    /// Returns the line without the metrics that match the patterns; `None` if its device matches.
    pub(super) fn without(mut self, except: &Patterns) -> Option<Self> {
        let annotated = self.annotated.as_ref().map(DeviceId::as_str);
        if self.device().or(annotated).is_some_and(|it| except.name(it)) {
            return None;
        }
        let metric =
            |body: &String| Some(body.strip_prefix(METRICS)?.split_once('"')?.0.to_owned());
        let is_named = |body: &String| metric(body).is_some_and(|name| except.name(&name));
        self.bodies.retain(|steps| !steps.iter().any(is_named));
        Some(self)
    }

    /// Returns the device that the line is about.
    fn device(&self) -> Option<&str> {
        self.path.strip_prefix("/devices/")
    }

    /// Returns the device, if the line puts it behind a meter.
    pub(super) fn behind(&self) -> Option<DeviceId> {
        let is_behind = self.bodies.iter().flatten().any(|it| it.starts_with(r#"{"behind":"#));
        self.device().filter(|_| is_behind)?.parse().ok()
    }

    /// Returns the units that the line gives to metrics of its device.
    pub(super) fn units(&self) -> Vec<(DeviceId, MetricName, Option<Unit>)> {
        let Some(device) = self.device().and_then(|it| it.parse::<DeviceId>().ok()) else {
            return Vec::new();
        };
        let bodies = self.bodies.iter().filter_map(|steps| steps.last());
        let metrics = bodies.filter_map(|body| serde_json::from_str::<MetricsForm>(body).ok());
        let unit = |(name, settings): (MetricName, Settings)| {
            let unit = settings.unit?;
            Some((device.clone(), name, unit.as_str().and_then(|it| it.parse().ok())))
        };
        metrics.flat_map(|it| it.metrics).filter_map(unit).collect()
    }

    /// Whether it has no setting, as of a room that has no name.
    pub(super) const fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    fn is_annotation(&self) -> bool {
        self.path.starts_with(ANNOTATIONS)
    }

    /// The sort key of a line: first devices, which register their rooms, then rooms, which make homes, then
    /// annotations.
    fn order(&self) -> (bool, bool) {
        (self.is_annotation(), self.path.starts_with("/rooms/"))
    }
}

impl DeviceForm {
    /// Returns the bodies of the requests that restore the device.
    fn bodies(&self) -> Vec<Vec<String>> {
        let changed =
            self.metrics.iter().filter(|(name, settings)| !settings.are_those_of_the_name(name));
        let of_metrics = changed.map(|(name, settings)| {
            let patch = |it| Patch { metrics: [(name, it)].into(), ..Patch::default() }.body();
            settings.steps().iter().filter_map(patch).collect()
        });
        let first = Patch {
            name: self.name.as_deref(),
            // A room that no person chose comes from the readings.
            room: self.room.as_ref().filter(|_| self.room_pinned != Some(false)),
            kind: self.kind.as_deref(),
            tags: &self.tags,
            attributes: self.attributes.iter().map(|(name, it)| (name, &**it)).collect(),
            in_room_means: self.in_room_means,
            ..Patch::default()
        };
        // In a request of its own, because the meter may not be registered yet.
        let meter = Patch { behind: self.behind.as_ref(), ..Patch::default() };
        let alone = |patch: Patch<'_>| patch.body().map(|body| vec![body]);
        alone(first).into_iter().chain(of_metrics).chain(alone(meter)).collect()
    }
}

impl Settings {
    /// Returns the settings as successive edits.
    ///
    /// The server accepts some settings only for a counter of energy, others only for a gauge of power, but a metric
    /// keeps them when its kind or unit changes. So they are set while the metric temporarily has that kind and unit.
    fn steps(&self) -> Vec<Self> {
        let Self { kind: Some(_), unit: Some(_), .. } = self else { return vec![self.clone()] };
        let energy = Self {
            kind: Some(MetricKind::Counter),
            unit: Some("kWh".into()),
            hold: None,
            in_room_means: None,
            hourly_until: None,
            ..self.clone()
        };
        let power = Self {
            kind: Some(MetricKind::Gauge),
            unit: Some("W".into()),
            hold: self.hold.clone(),
            ..Self::default()
        };
        let own = Self {
            kind: self.kind,
            unit: self.unit.clone(),
            in_room_means: self.in_room_means,
            hourly_until: self.hourly_until.clone(),
            ..Self::default()
        };
        let further = |it: &Self| it.further().iter().any(|setting| setting.is_some());
        let mut steps: Vec<Self> = [energy, power].into_iter().filter(further).collect();
        let is_own = |it: &Self| (it.kind, &it.unit) == (own.kind, &own.unit);
        let is_said = own.in_room_means.is_some() || own.hourly_until.is_some();
        if is_said || !steps.last().is_some_and(is_own) {
            steps.push(own);
        }
        steps
    }

    /// Returns all settings except the kind and the unit.
    const fn further(&self) -> [&Option<Box<RawValue>>; 9] {
        let Self { modulus, max_w, tolerance, hold, exchanges, verdicts, role, net, cycle, .. } =
            self;
        [modulus, max_w, tolerance, hold, exchanges, verdicts, role, net, cycle]
    }

    /// Returns whether the settings are the defaults for the metric's name.
    fn are_those_of_the_name(&self, name: &MetricName) -> bool {
        let (known_kind, known) = name.well_known();
        self.kind.is_none_or(|kind| kind == known_kind)
            && self
                .unit
                .as_ref()
                .is_none_or(|unit| unit.as_str() == known.as_ref().map(Unit::as_str))
            && self.further().iter().all(|setting| setting.is_none())
            && self.in_room_means.is_none()
            && self.hourly_until.is_none()
    }
}

/// Deserializes a member that is present; null becomes `Some(Null)`.
fn given<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

impl Patch<'_> {
    /// Returns the JSON of the body; `None` if there is nothing to set.
    fn body(&self) -> Option<String> {
        let body = serde_json::to_string(self).expect("ids and texts have a JSON form");
        (body != "{}").then_some(body)
    }
}

/// Applies the entries: devices first, because they register the rooms into which they are put, and annotations last.
///
/// Waits for missing devices and metrics, because the stream may not have registered them yet, and reports
/// that once with `tell`. Returns the refusals.
pub(super) fn apply(
    mut lines: Vec<RegistryLine>,
    client: &Client,
    tell: impl FnOnce(String),
) -> anyhow::Result<Vec<Refusal>> {
    lines.sort_by_key(RegistryLine::order);
    // One request for each setting, so that a metric without readings does not spoil the other settings.
    let single = |line: RegistryLine| {
        let RegistryLine { line, path, annotated, bodies } = line;
        bodies.into_iter().map(move |body| RegistryLine {
            line,
            path: path.clone(),
            annotated: annotated.clone(),
            bodies: vec![body],
        })
    };
    apply_within(lines.into_iter().flat_map(single).collect(), client, MAX_WAIT, tell)
}

fn apply_within(
    mut lines: Vec<RegistryLine>,
    client: &Client,
    max_wait: Duration,
    tell: impl FnOnce(String),
) -> anyhow::Result<Vec<Refusal>> {
    let mut refusals = Vec::new();
    let mut tell = Some(tell);
    let mut pause = Duration::from_millis(100);
    let watch = Stopwatch::start();
    loop {
        let mut missing = Vec::new();
        let mut first = None;
        for line in lines {
            match edit(&line, client)? {
                Edited::Done => {}
                Edited::Missing { what, reason } => {
                    first.get_or_insert(what);
                    missing.push((line, reason));
                }
                Edited::Refused(reason) => refusals.push(Refusal { line: line.line, reason }),
            }
        }
        if missing.is_empty() || watch.elapsed() >= max_wait {
            let named = missing
                .into_iter()
                .map(|(RegistryLine { line, .. }, reason)| Refusal { line, reason });
            refusals.extend(named);
            return Ok(refusals);
        }
        if let (Some(what), Some(tell)) = (first, tell.take()) {
            let more = match missing.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let seconds = max_wait.as_secs();
            tell(format!("waiting until the registry knows {what}{more} (up to {seconds} s)"));
        }
        thread::sleep(pause.min(max_wait));
        pause = (pause * 2).min(Duration::from_secs(5));
        lines = missing.into_iter().map(|(line, _)| line).collect();
    }
}

enum Edited {
    Done,
    /// The device, the room or a metric is not registered yet.
    Missing {
        what: String,
        reason: String,
    },
    Refused(String),
}

fn edit(line: &RegistryLine, client: &Client) -> anyhow::Result<Edited> {
    for body in line.bodies.iter().flatten() {
        // With `restore`, verdicts are accepted even if their readings are gone. Within a JSON string a quote is
        // escaped, so only a member can match.
        let judges = body.contains(r#","verdicts":["#) || body.contains(r#"{"verdicts":["#);
        let path = format!("{}{}", line.path, if judges { "?restore=1" } else { "" });
        let ask = Ask {
            method: if line.is_annotation() { "PUT" } else { "PATCH" },
            path: &path,
            body: Some(("application/json", body)),
            headers: &[],
        };
        let answer = client.send(ask, &AtomicBool::new(false))?;
        let problem = answer.problem();
        let id = line.path.rsplit('/').next().unwrap_or_default();
        let metric = problem.errors.iter().find_map(|error| match error.field.as_deref()? {
            "behind" => Some(format!("the meter in front of {id}")),
            field => {
                let metric = field.strip_prefix("metrics.")?;
                (!metric.contains('.')).then(|| format!("{metric} of {id}"))
            }
        });
        match (answer.status, metric) {
            (200, _) => {}
            // An address that only stores readings does not have this path, whatever the table has.
            (404, _) if problem.is_elsewhere() => {
                return Err(client.error(&line.path, &answer)).context(
                    "the readings are stored, and devices, rooms and annotations are not restored",
                );
            }
            (404, _) => {
                let why = "It has no readings here, so it is not restored.";
                let reason = format!("{} {why}", problem.detail);
                return Ok(Edited::Missing { what: id.to_owned(), reason });
            }
            (400, Some(what)) => return Ok(Edited::Missing { what, reason: problem.detail }),
            (400, None) => return Ok(Edited::Refused(problem.detail)),
            _ => return Err(client.error(&line.path, &answer)),
        }
    }
    Ok(Edited::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::fake_server::{self, Reply};

    fn line(json: &str) -> Result<RegistryLine, String> {
        RegistryLine::read(&Record { line: 7, json: json.to_owned() })
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
            device.bodies.concat(),
            [
                r#"{"name":"Meter","room":"r","tags":["a"],"attributes":{"model":["x",4],"size":1.50}}"#,
                concat!(
                    r#"{"metrics":{"cumulative_kwh_p":{"kind":"counter","unit":"kWh","modulus":12345678901234567890123456789012345678,"#,
                    r#""exchanges":[{"timestamp":"2026-01-11T16:00:00.000Z","old":812.3,"new":0.1}]}}}"#
                ),
                r#"{"metrics":{"current_w":{"kind":"gauge","unit":"W","hold":"90s"}}}"#,
                r#"{"metrics":{"current_w":{"kind":"gauge","unit":null}}}"#,
                r#"{"metrics":{"pulses":{"kind":"counter","unit":null}}}"#,
                r#"{"behind":"main"}"#,
            ]
        );
        assert_eq!(device.behind().map(|it| it.to_string()).as_deref(), Some("d"));
        let except = |pattern: &str| device.clone().without(&Patterns::of(&[pattern.to_owned()]));
        assert_eq!(except("current_*").unwrap().bodies.len(), device.bodies.len() - 1);
        assert_eq!((except("main"), except("d")), (Some(device.clone()), None));
        let learned = line(r#"{"device":{"device_id":"d","room":"r","room_pinned":false}}"#);
        assert!(learned.unwrap().bodies.is_empty(), "the readings tell the room");
        let by_hand = line(r#"{"device":{"device_id":"d","room":"r"}}"#).unwrap();
        assert_eq!(by_hand.bodies.concat(), [r#"{"room":"r"}"#]);
        let room =
            line(r#"{"room":{"room_id":"r","name":"Hall","home":"h","first_seen":"x"}}"#).unwrap();
        assert_eq!(
            (&*room.path, &room.bodies.concat()[..]),
            ("/rooms/r", &[r#"{"name":"Hall","home":"h"}"#.into()][..])
        );
        let note = line(
            r#"{"annotation":{"annotation_id":"2026-01-11T16:00:00.000Z-a","from":"x","to":null,"device":"d","text":"Oven"}}"#,
        );
        let note = note.unwrap();
        assert_eq!(
            (&*note.path, &note.bodies.concat()[..]),
            (
                "/annotations/2026-01-11T16:00:00.000Z-a",
                &[r#"{"device":"d","text":"Oven"}"#.into()][..]
            )
        );
        assert_eq!(note.clone().without(&Patterns::of(&["d".to_owned()])), None);
        assert_eq!(note.clone().without(&Patterns::of(&["e".to_owned()])), Some(note.clone()));
        assert!(device.order() < room.order() && room.order() < note.order());
        let names = (0..33).map(|n| format!(r#""m{n}":{{"unit":"x"}}"#)).collect::<Vec<_>>();
        let many = format!(r#"{{"device":{{"device_id":"d","metrics":{{{}}}}}}}"#, names.join(","));
        assert_eq!(line(&many).unwrap().bodies.len(), 33);
    }

    #[test]
    fn a_line_of_another_form_is_refused() {
        for json in [
            r#"{"device":{"device_id":"a#b"}}"#,
            r#"{"device":{"device_id":"d","nmae":"x"}}"#,
            r#"{"device":{"device_id":"d"},"room":{"room_id":"r"}}"#,
            r#"{"device":{}}"#,
            r#"{"annotation":{"annotation_id":"x","text":"x"}}"#,
            r#"{"annotation":{"annotation_id":"2026-01-11T16:00:00.000Z-a"}}"#,
            r#"{"annotation":{"annotation_id":"2026-01-11T16:00:00.000Z-a","text":"x"},"room":{"room_id":"r"}}"#,
            r#"{"device":{"device_id":"d","metrics":{"t":{"kind":"x"}}}}"#,
        ] {
            assert!(line(json).is_err(), "{json}");
        }
    }

    #[test]
    fn what_is_not_yet_there_is_waited_for_and_what_never_comes_is_named() {
        let server = fake_server::serve(|n, request| match (n, request.path.as_str()) {
            (0, "/devices/late") | (_, "/devices/never") => {
                Reply::of(404, r#"{"detail": "There is no such device."}"#)
            }
            (1, "/devices/new-metric") => {
                Reply::of(400, r#"{"errors": [{"field": "metrics.t", "message": "is no metric"}]}"#)
            }
            (_, "/devices/bad") => Reply::of(400, r#"{"detail": "name: is empty"}"#),
            (_, "/devices/wrong") => Reply::of(
                400,
                r#"{"detail": "t.hold: is", "errors": [{"field": "metrics.t.hold", "message": "is"}]}"#,
            ),
            _ => Reply::of(200, "{}"),
        });
        let lines = ["late", "new-metric", "never", "bad", "wrong"]
            .map(|id| line(&format!(r#"{{"device":{{"device_id":"{id}","name":"x"}}}}"#)).unwrap());
        let client = server.client();
        let mut told = Vec::new();
        let tell = |text| told.push(text);
        let wait = Duration::from_millis(300);
        let refusals = apply_within(lines.into(), &client, wait, tell).unwrap();
        assert_eq!(told, ["waiting until the registry knows late and 2 more (up to 0 s)"]);
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
        let error = apply(vec![device], &server.client(), tell).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.starts_with("the readings are stored, and devices, rooms"), "{error}");
        assert!(error.contains("PATCH /devices/d1 is not answered at this address"), "{error}");
        assert!(!error.contains("has no readings"), "{error}");
    }

    #[test]
    fn a_metric_that_is_waited_for_is_named_and_without_a_wait_nothing_is_told() {
        let client = fake_server::in_turn(&[
            (400, r#"{"errors": [{"field": "metrics.noise", "message": "is no"}]}"#),
            (200, "{}"),
        ])
        .client();
        let device =
            || line(r#"{"device":{"device_id":"d1","metrics":{"noise":{"unit":"dB"}}}}"#).unwrap();
        let waiting = "waiting until the registry knows noise of d1 (up to 30 s)".to_owned();
        for expected in [vec![waiting], vec![]] {
            let mut told = Vec::new();
            let refusals = apply(vec![device()], &client, |text| told.push(text)).unwrap();
            assert_eq!((refusals.len(), told), (0, expected));
        }
    }
}
