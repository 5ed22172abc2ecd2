//! A person's edits of the registry: PATCH. Registers a room that a device is put into, nothing else.

use std::collections::{BTreeMap, BTreeSet};

use api::json::{Members, describe, reason, string};
use api::{Problem, ProblemKind, Request, Response};
use domain::{
    Decimal, Device, DevicePatch, Edit, Label, LabelError, MetricName, MetricPatch, Room, RoomId,
    RoomPatch, Tags, excerpt,
};
use runtime::clock::Clock;
use serde_json::value::RawValue;
use table::{EditRegistry, Edited, FindToken, InsertOutcome, QueryReadings, ReadRegistry};

use crate::registry::{device_id, room_id, unknown};
use crate::rows::{DeviceRow, RoomRow};
use crate::{Call, Query};

/// The largest body, inflated: more than all that can be set takes.
const MAX_PATCH: usize = 128 << 10;
/// How many members an object of settings may have; more than there are, so that the wrong one is named.
const MAX_SETTINGS: usize = 16;
/// With four settings each they fit into one update, whose expression may be 4 KB long.
pub(crate) const MAX_PATCHED_METRICS: usize = 32;

impl<S, C> Query<S, C>
where
    S: ReadRegistry + QueryReadings + EditRegistry + FindToken,
    C: Clock,
{
    /// `PATCH /devices/{id}`
    pub(crate) async fn edit_device(
        &self,
        call: &mut Call<'_>,
        id: &str,
    ) -> Result<Response, Problem> {
        let id = device_id(id)?;
        let patch = read_body(call.request, device_patch)?;
        let edited = match &patch.room {
            Edit::Set(room) if !self.snapshot(call).await?.rooms.contains_key(room) => {
                // A room that a person names exists from then on, even before its first reading.
                let room = Room { id: room.clone(), name: None, first_seen: self.clock.now() };
                let moved = self.store.move_device(&id, &patch, &room, call.invocation).await;
                moved.map(|moved| self.keep_moved(moved, room))
            }
            _ => self.store.edit_device(&id, &patch, call.invocation).await,
        };
        match edited.map_err(|error| call.failed(&error))? {
            Edited::Written(device) => {
                self.registry.keep_device(device.clone());
                Ok(Response::json(200, &DeviceRow::from(&device)))
            }
            Edited::Unknown => Err(unknown("device", id.as_str())),
            Edited::UnknownMetric(name) => {
                let message = "is no metric that the device has sent";
                Err(Problem::field(&format!("metrics.{name}"), message))
            }
        }
    }

    /// Takes over the room that a device was moved to.
    fn keep_moved(
        &self,
        moved: Edited<(Device, InsertOutcome<Room>)>,
        new: Room,
    ) -> Edited<Device> {
        match moved {
            Edited::Written((device, registration)) => {
                self.registry.keep_room(match registration {
                    InsertOutcome::Inserted => new,
                    InsertOutcome::Exists(known) => known,
                });
                Edited::Written(device)
            }
            Edited::Unknown => Edited::Unknown,
            Edited::UnknownMetric(name) => Edited::UnknownMetric(name),
        }
    }

    /// `PATCH /rooms/{id}`
    pub(crate) async fn edit_room(
        &self,
        call: &mut Call<'_>,
        id: &str,
    ) -> Result<Response, Problem> {
        let id = room_id(id)?;
        let patch = read_body(call.request, room_patch)?;
        let edited = self.store.edit_room(&id, &patch, call.invocation).await;
        match edited.map_err(|error| call.failed(&error))? {
            Edited::Written(room) => {
                self.registry.keep_room(room.clone());
                Ok(Response::json(200, &RoomRow::from(&room)))
            }
            Edited::Unknown | Edited::UnknownMetric(_) => Err(unknown("room", id.as_str())),
        }
    }
}

/// A patch: the members that are there are set, `null` takes away, all others stay.
fn read_body<T: Default + PartialEq>(
    request: &Request,
    read: impl Fn(Members<'_>) -> Result<T, (String, String)>,
) -> Result<T, Problem> {
    let bad = |detail: String| Problem::new(ProblemKind::BadRequest, detail);
    let body = request.json_body()?;
    if body.len() > MAX_PATCH {
        let detail =
            format!("The body is {} bytes long; at most {MAX_PATCH} are taken.", body.len());
        return Err(Problem::new(ProblemKind::TooLarge, detail));
    }
    let text = std::str::from_utf8(&body).map_err(|_| bad("The body is not UTF-8.".to_owned()))?;
    let members = Members::parse(text, MAX_SETTINGS).map_err(|error| {
        bad(format!("The body is no JSON object of what to change: {}.", reason(&error)))
    })?;
    let patch = read(members).map_err(|(field, message)| Problem::field(&field, message))?;
    if patch == T::default() {
        return Err(bad("The body changes nothing; name at least one member to set.".to_owned()));
    }
    Ok(patch)
}

fn device_patch(members: Members<'_>) -> Result<DevicePatch, (String, String)> {
    let mut patch = DevicePatch::default();
    for (name, value) in members {
        let read = match name.as_str() {
            "name" => text(value).map(|edit| patch.name = edit),
            "kind" => text(value).map(|edit| patch.kind = edit),
            "room" => room(value).map(|edit| patch.room = edit),
            "tags" => tags(value).map(|edit| patch.tags = edit),
            "metrics" => {
                (patch.metrics, patch.dropped_metrics) = metrics(value)?;
                Ok(())
            }
            _ => {
                Err("is nothing that can be set; name, room, kind, tags and metrics are".to_owned())
            }
        };
        read.map_err(|why| (excerpt(&name), why))?;
    }
    Ok(patch)
}

fn room_patch(members: Members<'_>) -> Result<RoomPatch, (String, String)> {
    let mut patch = RoomPatch::default();
    for (name, value) in members {
        let read = match name.as_str() {
            "name" => text(value).map(|edit| patch.name = edit),
            _ => Err("is nothing that can be set; name is".to_owned()),
        };
        read.map_err(|why| (excerpt(&name), why))?;
    }
    Ok(patch)
}

/// The settings of metrics, and those that are to be dropped, `null`.
type Metrics = (BTreeMap<MetricName, MetricPatch>, BTreeSet<MetricName>);

fn metrics(value: &RawValue) -> Result<Metrics, (String, String)> {
    let at =
        |path: &str| if path.is_empty() { "metrics".to_owned() } else { format!("metrics.{path}") };
    let object = |value: &RawValue, error: &serde_json::Error| match describe(value) {
        "an object" => reason(error),
        other => format!("must be an object, not {other}"),
    };
    let members = Members::parse(value.get(), MAX_PATCHED_METRICS)
        .map_err(|why| (at(""), object(value, &why)))?;
    let (mut patches, mut dropped) = Metrics::default();
    for (name, settings) in members {
        let metric: MetricName =
            name.parse().map_err(|why| (at(&excerpt(&name)), format!("{why}")))?;
        if settings.get() == "null" {
            dropped.insert(metric);
            continue;
        }
        let settings = Members::parse(settings.get(), MAX_SETTINGS)
            .map_err(|why| (at(&excerpt(&name)), object(settings, &why)))?;
        let mut patch = MetricPatch::default();
        for (setting, value) in settings {
            let read = match setting.as_str() {
                "unit" => text(value).map(|edit| patch.unit = edit),
                "modulus" => positive(value).map(|edit| patch.modulus = edit),
                "max_w" => positive(value).map(|edit| patch.max_w = edit),
                "dip" => positive(value).map(|edit| patch.dip = edit),
                _ => Err("is nothing that can be set; unit, modulus, max_w and dip are".to_owned()),
            };
            read.map_err(|why| (at(&format!("{name}.{}", excerpt(&setting))), why))?;
        }
        patches.insert(metric, patch);
    }
    Ok((patches, dropped))
}

fn edit<T>(
    value: &RawValue,
    read: impl Fn(&RawValue) -> Result<T, String>,
) -> Result<Edit<T>, String> {
    if value.get() == "null" { Ok(Edit::Clear) } else { read(value).map(Edit::Set) }
}

/// A label or a unit.
fn text<T: TryFrom<String, Error = LabelError>>(value: &RawValue) -> Result<Edit<T>, String> {
    edit(value, |value| parsed(string(value)?))
}

fn parsed<T: TryFrom<String, Error = LabelError>>(text: String) -> Result<T, String> {
    T::try_from(text).map_err(|why| match why {
        LabelError::Empty => format!("{why}; null removes it"),
        why => why.to_string(),
    })
}

fn room(value: &RawValue) -> Result<Edit<RoomId>, String> {
    edit(value, |value| string(value)?.parse().map_err(|why| format!("{why}")))
}

fn tags(value: &RawValue) -> Result<Edit<Tags>, String> {
    edit(value, |value| {
        let tags: Vec<String> = serde_json::from_str(value.get())
            .map_err(|_| "must be an array of strings".to_owned())?;
        let tags = tags.into_iter().map(parsed).collect::<Result<Vec<Label>, _>>()?;
        Tags::try_from(tags).map_err(|why| why.to_string())
    })
}

fn positive(value: &RawValue) -> Result<Edit<Decimal>, String> {
    edit(value, |value| match describe(value) {
        "a number" => {
            let number = Decimal::parse(value.get()).map_err(|why| why.to_string())?;
            if number.is_positive() {
                Ok(number)
            } else {
                Err(format!("is {number}; it must be above zero"))
            }
        }
        other => Err(format!("must be a number, not {other}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(body: &str) -> Result<DevicePatch, String> {
        let request = Request { body: body.into(), ..Request::default() };
        read_body(&request, device_patch).map_err(|problem| problem.detail)
    }

    #[test]
    fn what_is_there_is_set_null_takes_away_and_the_rest_stays() {
        let patch = patched(
            r#"{"name": "Smart meter", "room": null, "tags": ["a", "b"],
                "metrics": {"cumulative_kwh_p": {"modulus": 100000, "max_w": null}}}"#,
        )
        .expect("a patch");
        assert_eq!(patch.name, Edit::Set("Smart meter".parse().expect("a label")));
        assert_eq!(patch.room, Edit::Clear);
        assert_eq!(patch.kind, Edit::Keep);
        assert!(patch.dropped_metrics.is_empty());
        let (_, metric) = patch.metrics.into_iter().next().expect("one");
        assert_eq!(metric.modulus, Edit::Set(Decimal::parse("100000").expect("a number")));
        assert_eq!(metric.max_w, Edit::Clear);
        assert_eq!(metric.dip, Edit::Keep);
    }

    #[test]
    fn a_metric_that_is_null_is_dropped() {
        let patch = patched(r#"{"metrics": {"old": null, "t": {"dip": 1}}}"#).expect("a patch");
        let names = |names: &mut dyn Iterator<Item = &MetricName>| -> Vec<String> {
            names.map(ToString::to_string).collect()
        };
        assert_eq!(names(&mut patch.dropped_metrics.iter()), ["old"]);
        assert_eq!(names(&mut patch.metrics.keys()), ["t"]);
    }

    #[test]
    fn a_body_that_is_larger_than_all_settings_is_not_taken() {
        let body = format!(r#"{{"tags": [{}]}}"#, vec![r#""a""#; MAX_PATCH].join(","));
        let request = Request { body: body.into(), ..Request::default() };
        let problem = read_body(&request, device_patch).expect_err("too large");
        assert_eq!(problem.kind.status(), 413);
    }

    #[test]
    fn every_bad_member_is_named() {
        let long = format!(r#"{{"name": "{}"}}"#, "x".repeat(101));
        let many =
            format!(r#"{{"tags": {:?}}}"#, (0..51).map(|n| n.to_string()).collect::<Vec<_>>());
        let names = (0..33).map(|n| format!(r#""m{n}": {{"dip": 1}}"#)).collect::<Vec<_>>();
        let metrics = format!(r#"{{"metrics": {{{}}}}}"#, names.join(", "));
        for (body, expected) in [
            ("", "no JSON object"),
            ("[]", "no JSON object"),
            ("{}", "changes nothing"),
            (r#"{"name": 5}"#, "name: must be a string"),
            (r#"{"name": " "}"#, "name: is empty"),
            (r#"{"name": "a\nb"}"#, "name: contains a control character"),
            (&long, "name: is 101 characters long"),
            (r#"{"name": "a", "name": "b"}"#, "stands twice"),
            (r#"{"room": "DEVICE"}"#, "room: \"DEVICE\" is a reserved name"),
            (r#"{"tags": "a"}"#, "tags: must be an array"),
            (r#"{"tags": ["a", "a"]}"#, "tags: contain \"a\" twice"),
            (&many, "tags: are 51"),
            (r#"{"first_seen": "now"}"#, "first_seen: is nothing that can be set"),
            (r#"{"metrics": 5}"#, "metrics: must be an object"),
            (r#"{"metrics": {"X": {}}}"#, "metrics.X:"),
            (&metrics, "metrics: there are more than 32 members"),
            (r#"{"metrics": {"t": 5}}"#, "metrics.t: must be an object"),
            (r#"{"metrics": {"t": {"dip": -1}}}"#, "metrics.t.dip: is -1"),
            (r#"{"metrics": {"t": {"kind": "x"}}}"#, "metrics.t.kind: is nothing"),
        ] {
            let error = patched(body).expect_err(body);
            assert!(error.contains(expected), "{body}: {error}");
        }
    }
}
