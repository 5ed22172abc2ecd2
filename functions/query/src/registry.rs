//! Lists and items of the registry, from the cold-start cache. Edits nothing.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use shared::clock::Clock;
use shared::domain::{Device, DeviceId, MetricName, Room, RoomId, excerpt};
use shared::http::{Params, Problem, ProblemKind, Request, Response};
use shared::registry_cache::Snapshot;
use shared::store::{
    EditRegistry, FindToken, QueryReadings, REGISTRY_MOST, ReadRegistry, Register,
};

use crate::format::{self, MOST_BYTES};
use crate::rows::{DEVICE_COLUMNS, DeviceRow, Latest, ROOM_COLUMNS, RoomRow};
use crate::{Call, Query, cursor};

const DEFAULT_LIMIT: usize = 100;
const MOST: usize = 1_000;

impl<S, C> Query<S, C>
where
    S: ReadRegistry + QueryReadings + EditRegistry + Register + FindToken,
    C: Clock,
{
    /// `GET /devices` and, of one room, `GET /rooms/{id}/devices`.
    pub(crate) async fn list_devices(
        &self,
        call: &mut Call<'_>,
        room: Option<&str>,
    ) -> Result<Response, Problem> {
        let allowed = ["limit", "cursor", "format", "latest", "room"];
        let allowed = if room.is_some() { &allowed[..4] } else { &allowed };
        let params = Params::of(call.request, allowed)?;
        let with_latest = params.flag("latest")?;
        let (room, snapshot) = match room {
            Some(id) => {
                let (room, snapshot) = self.room(id, call).await?;
                (Some(room.id), snapshot)
            }
            None => (params.parse::<RoomId>("room")?, self.listed(call).await?),
        };
        whole(snapshot.has_all_devices, "devices")?;
        let in_room = |device: &&Device| room.is_none() || device.room == room;
        let devices: Vec<&Device> = snapshot.devices.values().filter(in_room).collect();
        let (devices, cursor) = devices_part(call.request, &params, devices, with_latest)?;

        let mut columns: Vec<String> = DEVICE_COLUMNS.map(str::to_owned).into();
        let mut rows: Vec<DeviceRow<'_>> =
            devices.iter().map(|device| DeviceRow::from(*device)).collect();
        if with_latest {
            for (row, latest) in rows.iter_mut().zip(self.latest_of(&devices, call).await?) {
                row.latest = Latest::Asked(latest);
            }
            columns.extend(metrics_of(devices.iter().copied()));
        }
        let response = format::page(call.request, &params, &rows, &columns, cursor.as_deref())?;
        Ok(if with_latest { response } else { self.cached(call.request, &snapshot, response) })
    }

    /// `GET /rooms`
    pub(crate) async fn list_rooms(&self, call: &mut Call<'_>) -> Result<Response, Problem> {
        let params = Params::of(call.request, &["limit", "cursor", "format"])?;
        let snapshot = self.listed(call).await?;
        whole(snapshot.has_all_rooms, "rooms")?;
        let rooms: Vec<&Room> = snapshot.rooms.values().collect();
        let (rooms, cursor) =
            part(call.request, &params, rooms, |room| room.id.as_str(), |_| 1_000)?;
        let rows: Vec<RoomRow<'_>> = rooms.into_iter().map(RoomRow::from).collect();
        let columns = ROOM_COLUMNS.map(str::to_owned);
        let response = format::page(call.request, &params, &rows, &columns, cursor.as_deref())?;
        Ok(self.cached(call.request, &snapshot, response))
    }

    /// `GET /devices/{id}`
    pub(crate) async fn show_device(
        &self,
        call: &mut Call<'_>,
        id: &str,
    ) -> Result<Response, Problem> {
        Params::of(call.request, &[])?;
        let (device, snapshot) = self.device(id, call).await?;
        let response = Response::json(200, &DeviceRow::from(&device));
        Ok(self.cached(call.request, &snapshot, response))
    }

    /// `GET /rooms/{id}`
    pub(crate) async fn show_room(
        &self,
        call: &mut Call<'_>,
        id: &str,
    ) -> Result<Response, Problem> {
        Params::of(call.request, &[])?;
        let (room, snapshot) = self.room(id, call).await?;
        Ok(self.cached(call.request, &snapshot, Response::json(200, &RoomRow::from(&room))))
    }

    /// The device of a path, and a registry that knows it.
    ///
    /// What the cache lacks is asked of the table: it may be new. Then the cache is read anew, for
    /// what else is new with it, such as its room.
    pub(crate) async fn device(
        &self,
        id: &str,
        call: &mut Call<'_>,
    ) -> Result<(Device, Arc<Snapshot>), Problem> {
        let id = device_id(id)?;
        let snapshot = self.snapshot(call).await?;
        if let Some(device) = snapshot.devices.get(&id) {
            return Ok((device.clone(), snapshot));
        }
        let found =
            self.store.device(&id, call.budget).await.map_err(|error| call.failed(&error))?;
        let device = found.ok_or_else(|| unknown("device", id.as_str()))?;
        Ok((device, self.refreshed(call).await?))
    }

    /// The room of a path, and a registry that knows it; likewise.
    pub(crate) async fn room(
        &self,
        id: &str,
        call: &mut Call<'_>,
    ) -> Result<(Room, Arc<Snapshot>), Problem> {
        let id = room_id(id)?;
        let snapshot = self.snapshot(call).await?;
        if let Some(room) = snapshot.rooms.get(&id) {
            return Ok((room.clone(), snapshot));
        }
        let found = self.store.room(&id, call.budget).await.map_err(|error| call.failed(&error))?;
        let room = found.ok_or_else(|| unknown("room", id.as_str()))?;
        Ok((room, self.refreshed(call).await?))
    }

    /// The registry for a list. An empty one is read again each time, which costs next to nothing:
    /// whoever has just sent a first reading looks for its device.
    async fn listed(&self, call: &mut Call<'_>) -> Result<Arc<Snapshot>, Problem> {
        let snapshot = self.snapshot(call).await?;
        if snapshot.is_empty() { self.refreshed(call).await } else { Ok(snapshot) }
    }

    async fn refreshed(&self, call: &mut Call<'_>) -> Result<Arc<Snapshot>, Problem> {
        let read = self.registry.refresh(&self.store, call.budget).await;
        read.map_err(|error| call.failed(&error))?;
        self.snapshot(call).await
    }

    /// An answer out of the cache: how old it is, how long it may be kept, and 304 for who has it.
    fn cached(&self, request: &Request, snapshot: &Snapshot, response: Response) -> Response {
        let age = self.registry.age(snapshot);
        let max_age = if snapshot.is_empty() { Duration::ZERO } else { self.registry.max_age() };
        let fresh = max_age.saturating_sub(age).as_secs();
        let digest = Sha256::digest(&response.body);
        let etag =
            digest[..8].iter().fold(String::from("W/\""), |etag, byte| format!("{etag}{byte:02x}"))
                + "\"";
        let known = request.header("if-none-match").unwrap_or_default();
        let unchanged =
            known.split(',').any(|tag| matches!(tag.trim(), tag if tag == etag || tag == "*"));
        let response = if unchanged {
            let headers =
                response.headers.into_iter().filter(|(name, _)| *name == "link").collect();
            Response { status: 304, headers, body: Vec::new() }
        } else {
            response
        };
        response
            .with("etag", etag)
            .with("age", age.as_secs())
            .with("cache-control", format!("private, max-age={fresh}"))
    }
}

/// The id of a path.
pub(crate) fn device_id(id: &str) -> Result<DeviceId, Problem> {
    id.parse().map_err(|why| Problem::field("device_id", format!("{why}")))
}

/// The id of a path.
pub(crate) fn room_id(id: &str) -> Result<RoomId, Problem> {
    id.parse().map_err(|why| Problem::field("room_id", format!("{why}")))
}

pub(crate) fn unknown(kind: &str, id: &str) -> Problem {
    Problem::new(ProblemKind::NotFound, format!("There is no {kind} {:?}.", excerpt(id)))
}

/// A list is whole or none: what it left out without a word would be taken for absent.
/// Refuses a list that would leave some out in silence.
pub(crate) fn whole(is_whole: bool, what: &str) -> Result<(), Problem> {
    if is_whole {
        return Ok(());
    }
    let detail = format!("The registry holds more than {REGISTRY_MOST} {what}, too many to list.");
    Err(Problem::new(ProblemKind::Internal, detail))
}

/// The names of all metrics of some devices, sorted: the columns that stay the same on every page.
pub(crate) fn metrics_of<'a>(devices: impl Iterator<Item = &'a Device>) -> Vec<String> {
    let names: std::collections::BTreeSet<&MetricName> =
        devices.flat_map(|device| device.metrics.keys()).collect();
    names.into_iter().map(MetricName::to_string).collect()
}

/// The devices of a page: as many as asked for, as long as the answer stays small enough for Lambda.
pub(crate) fn devices_part<'a>(
    request: &Request,
    params: &Params,
    all: Vec<&'a Device>,
    with_latest: bool,
) -> Result<(Vec<&'a Device>, Option<String>), Problem> {
    let bytes = |device: &Device| {
        let row = serde_json::to_vec(&DeviceRow::from(device)).map_or(0, |row| row.len());
        // The newest value of a metric: its name, 46 characters of number, an instant, punctuation.
        let value = |name: &MetricName| name.as_str().len() + 110;
        row + if with_latest { device.metrics.keys().map(value).sum() } else { 0 }
    };
    part(request, params, all, |device| device.id.as_str(), bytes)
}

/// The page of a list that a request asks for, and the cursor behind it.
fn part<'a, T>(
    request: &Request,
    params: &Params,
    mut all: Vec<&'a T>,
    id: impl Fn(&T) -> &str,
    bytes: impl Fn(&T) -> usize,
) -> Result<(Vec<&'a T>, Option<String>), Problem> {
    let limit = params.limit(DEFAULT_LIMIT, MOST)?;
    let binding = params.binding(request);
    if let Some(cursor) = params.get("cursor") {
        let after = cursor::open(&binding, cursor)?;
        all.retain(|entry| id(entry) > after.as_str());
    }
    let mut sum = 0;
    let fits = |entry: &&&T| {
        sum += bytes(entry);
        sum <= MOST_BYTES
    };
    let fitting = all.iter().take(limit).take_while(fits).count();
    let has_more = all.len() > fitting;
    all.truncate(fitting);
    let last = all.last().filter(|_| has_more);
    let cursor = last.map(|last| cursor::seal(&binding, id(last)));
    Ok((all, cursor))
}
