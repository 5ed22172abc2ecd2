//! `POST /sources/test`: the `fetching` function tries a source. Stores nothing, and logs nothing of the source.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::{Problem, ProblemKind, Response, body};
use domain::text_id::id_of;
use domain::{DeviceId, PolledSourceId, RoomId};
use polling::{PolledSource, SecretTexts};
use runtime::clock::Deadline;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{MAX_BODY, source_id, warnings};
use crate::ports::Store;
use crate::shared_state::Call;

/// The longest time of a test.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The id of a source that is tested before it has an id.
const UNNAMED: &str = "test";
/// The metric of imported energy, and the units of energy and power.
const IMPORT: &str = "cumulative_kwh_p";
const UNITS: [&str; 2] = ["W", "kWh"];

/// The reply of the `fetching` function to a test.
#[derive(Deserialize)]
struct Reply {
    devices: BTreeSet<DeviceId>,
    /// The names of devices, if the maker lists them.
    names: BTreeMap<DeviceId, String>,
    #[serde(flatten)]
    found: TestFindings,
    error: Option<String>,
}

/// The result of a test, which is not stored.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SourceTest"))]
pub(crate) struct TestAnswer {
    /// The devices, each with its chosen or proposed room
    devices: Vec<TestDevice>,
    #[serde(flatten)]
    found: TestFindings,
    /// Warnings: another device may measure the same energy
    warnings: Vec<String>,
}

/// The findings of a test, apart from devices.
#[derive(Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TestFindings {
    /// The requests that were made
    requests: Vec<TestRequest>,
    /// The first readings, as they would be stored
    readings: Vec<Value>,
    /// The parts of the answer that would be refused, each with the reason
    rejected: Vec<String>,
    /// The names in the answer that would not be stored
    ignored: BTreeSet<String>,
    /// The numbers of the answer by their JSON pointers, only for the kind json; none if the stored secrets were sent
    numbers: BTreeMap<String, Value>,
}

/// A request that was made.
#[derive(Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TestRequest {
    host: String,
    /// The status of the answer
    status: u16,
    /// The time until the answer, in milliseconds
    ms: u64,
    /// The size of the answer, in bytes
    bytes: u64,
}

/// A device that a test found.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TestDevice {
    id: DeviceId,
    /// The name that the maker gives for the device
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The room that a person chose, or a proposed one
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<RoomId>,
}

/// `POST /sources/test`
pub(crate) async fn test(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let mut members: Map<String, Value> = body::read(call.request, MAX_BODY)?;
    let id = match members.remove("id") {
        None | Some(Value::Null) => source_id(UNNAMED)?,
        Some(Value::String(id)) => source_id(&id)?,
        Some(_) => return Err(Problem::field("id", "must be a text")),
    };
    let secrets = members.remove("secrets");
    SecretTexts::read(secrets.clone())?;
    let source = PolledSource::read(members.clone(), call.shared.reach)?;

    let mut event = json!({"source": "roomtide.test", "id": id, "settings": members});
    if let Some(secrets) = secrets {
        event["secrets"] = secrets;
    }

    let deadline = Deadline::after(TIMEOUT.min(call.session.invocation.remaining()));
    let reply = call.shared.fetching.0.invoke(event.to_string(), deadline).await;
    let reply = reply.map_err(|why| unanswerable(&format!("The source is not tried: {why}.")))?;
    let reply: Reply = serde_json::from_str(&reply)
        .map_err(|_| unanswerable("The function that asks sources has another version."))?;
    if let Some(why) = &reply.error {
        return Err(unanswerable(why));
    }

    let mut warnings = Vec::new();
    if reply.found.readings.iter().any(measures_energy) {
        let own: Vec<_> = reply.devices.iter().cloned().collect();
        warnings = warnings::of_second_meters(&own, call).await?;
    }
    Ok(Response::json(200, &reply.answer(&id, &source, warnings)))
}

fn unanswerable(detail: &str) -> Problem {
    Problem::new(ProblemKind::Unanswerable, detail)
}

/// Whether a reading has imported energy or power.
fn measures_energy(reading: &Value) -> bool {
    let metrics = reading["metrics"].as_object();
    metrics.into_iter().flatten().any(|(name, metric)| {
        name == IMPORT || metric["unit"].as_str().is_some_and(|unit| UNITS.contains(&unit))
    })
}

impl Reply {
    fn answer(
        self,
        id: &PolledSourceId,
        source: &PolledSource,
        warnings: Vec<String>,
    ) -> TestAnswer {
        let names = self.found.readings.iter().filter_map(|reading| {
            let id = reading["device"].as_str()?.parse().ok()?;
            Some((id, reading["name"].as_str()?.to_owned()))
        });
        let mut names: BTreeMap<DeviceId, String> = names.collect();
        names.extend(self.names);

        let wanted = self.devices.into_iter().filter(|device| {
            let is_left_out = source.rooms.get(device).is_some_and(Option::is_none);
            !is_left_out
        });
        let devices = wanted.map(|device| {
            let name = names.remove(&device);
            let room = room_of(id, source, &device, name.as_deref());
            TestDevice { id: device, name, room }
        });
        TestAnswer { devices: devices.collect(), found: self.found, warnings }
    }
}

/// The room that a person chose for the device or the source, or a proposal from the name, or the source's usual room.
fn room_of(
    id: &PolledSourceId,
    source: &PolledSource,
    device: &DeviceId,
    name: Option<&str>,
) -> Option<RoomId> {
    if let Some(Some(room)) = source.rooms.get(device) {
        return Some(room.room.clone());
    }
    match name {
        Some(name) if !source.has_room() => Some(proposed(device, name)?),
        _ => source.room(id),
    }
}

/// Proposes a room for a device. A name that is not ASCII would make an unreadable id, so the device's id is used.
fn proposed(device: &DeviceId, name: &str) -> Option<RoomId> {
    if name.is_ascii() {
        return id_of(name).ok().map(|(room, _)| room);
    }
    let start: String = device.as_str().chars().take(4).collect();
    format!("room-{start}").parse().ok()
}
