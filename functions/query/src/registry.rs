//! Lists and items of the registry, from the cold-start cache. Edits nothing.

use std::sync::Arc;

use api::response::MAX_CARRIED;
use api::{Params, Problem, ProblemKind, Request, Response};
use domain::{Device, DeviceId, MetricName, Room, RoomId, excerpt};
use runtime::clock::Clock;
use runtime::registry_cache::Snapshot;
use sha2::{Digest as _, Sha256};
use table::{EditRegistry, FindToken, MAX_CACHED_ENTRIES, QueryReadings, ReadRegistry};

use crate::format::Format;
use crate::rows::{DEVICE_COLUMNS, DeviceRow, Latest, ROOM_COLUMNS, RoomRow};
use crate::sheet::Columns;
use crate::{Call, Query, cursor};

pub(crate) const DEFAULT_LIMIT: usize = 100;
pub(crate) const MAX_LIMIT: usize = 1_000;

impl<S, C> Query<S, C>
where
    S: ReadRegistry + QueryReadings + EditRegistry + FindToken,
    C: Clock,
{
    /// `GET /devices` and, of one room, `GET /rooms/{id}/devices`.
    pub(crate) async fn list_devices(
        &self,
        call: &mut Call<'_>,
        params: &Params,
        room: Option<&str>,
    ) -> Result<Response, Problem> {
        let asked = ListRequest::of(call.request, params)?;
        let with_latest = params.flag("latest")?;
        let (room, snapshot) = match room {
            Some(id) => {
                let (room, snapshot) = self.room(id, call).await?;
                (Some(room.id), snapshot)
            }
            None => (params.parse::<RoomId>("room")?, self.listed(call).await?),
        };
        whole(snapshot.has_all_devices, "devices")?;
        let in_room = |device: &&Device| room.is_none() || device.place.room() == room.as_ref();
        let devices: Vec<&Device> = snapshot.devices.values().filter(in_room).collect();
        let (devices, rest) = asked.devices(devices, with_latest);

        let mut rows: Vec<DeviceRow<'_>> =
            devices.iter().map(|device| DeviceRow::from(*device)).collect();
        if with_latest {
            for (row, latest) in rows.iter_mut().zip(self.latest_of(&devices, call).await?) {
                row.latest = Latest::Asked(latest);
            }
        }
        let columns = || {
            let known = metrics_of(devices.iter().copied().filter(|_| with_latest));
            Columns { own: &DEVICE_COLUMNS, known }
        };
        let behind = |row: usize| asked.cursor_behind(devices[row].id.as_str());
        let response = asked.format.page((call.request, params), &rows, columns, rest, behind);
        Ok(if with_latest { response } else { cached(call.request, response) })
    }

    /// `GET /rooms`
    pub(crate) async fn list_rooms(
        &self,
        call: &mut Call<'_>,
        params: &Params,
    ) -> Result<Response, Problem> {
        let asked = ListRequest::of(call.request, params)?;
        let snapshot = self.listed(call).await?;
        whole(snapshot.has_all_rooms, "rooms")?;
        let rooms = snapshot.rooms.values().collect();
        let (rooms, rest) = asked.part(rooms, |room: &Room| room.id.as_str(), |_| 0);
        let rows: Vec<RoomRow<'_>> = rooms.iter().map(|room| RoomRow::from(*room)).collect();
        let columns = || Columns { own: &ROOM_COLUMNS, known: Vec::new() };
        let behind = |row: usize| asked.cursor_behind(rooms[row].id.as_str());
        let response = asked.format.page((call.request, params), &rows, columns, rest, behind);
        Ok(cached(call.request, response))
    }

    /// `GET /devices/{id}`
    pub(crate) async fn show_device(
        &self,
        call: &mut Call<'_>,
        id: &str,
    ) -> Result<Response, Problem> {
        let device = self.device(id, call).await?;
        Ok(cached(call.request, Response::json(200, &DeviceRow::from(&device))))
    }

    /// `GET /rooms/{id}`
    pub(crate) async fn show_room(
        &self,
        call: &mut Call<'_>,
        id: &str,
    ) -> Result<Response, Problem> {
        let (room, _) = self.room(id, call).await?;
        Ok(cached(call.request, Response::json(200, &RoomRow::from(&room))))
    }

    /// The device of a path.
    ///
    /// What the cache lacks is asked of the table: it may be new. Then the cache is read anew, for
    /// what else is new with it, such as its room.
    pub(crate) async fn device(&self, id: &str, call: &mut Call<'_>) -> Result<Device, Problem> {
        let id = device_id(id)?;
        let snapshot = self.snapshot(call).await?;
        if let Some(device) = snapshot.devices.get(&id) {
            return Ok(device.clone());
        }
        let found =
            self.store.device(&id, call.invocation).await.map_err(|error| call.failed(&error))?;
        let device = found.ok_or_else(|| unknown("device", id.as_str()))?;
        self.refreshed(call).await?;
        Ok(device)
    }

    /// The room of a path, likewise, and a registry that knows it.
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
        let found =
            self.store.room(&id, call.invocation).await.map_err(|error| call.failed(&error))?;
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
        let read = self.registry.refresh(&self.store, call.invocation).await;
        read.map_err(|error| call.failed(&error))?;
        self.snapshot(call).await
    }
}

/// An answer of the registry: whoever keeps it asks whether it has changed, and gets 304 if not.
fn cached(request: &Request, response: Response) -> Response {
    let digest = Sha256::digest(&response.body);
    let tag = digest[..8].iter().fold(String::new(), |tag, byte| format!("{tag}{byte:02x}"));
    let known = request.header("if-none-match").unwrap_or_default();
    let response = if is_known(known, &tag) {
        let headers = response.headers.into_iter().filter(|(name, _)| *name == "link").collect();
        Response { status: 304, headers, body: Vec::new() }
    } else {
        response
    };
    response.with("etag", format!("W/\"{tag}\"")).with("cache-control", "private, no-cache")
}

/// Whether `If-None-Match` names this tag, weakly compared: `W/"x"` and `"x"` are the same.
///
/// Source: RFC 9110, 13.1.2
fn is_known(if_none_match: &str, tag: &str) -> bool {
    if_none_match.split(',').map(str::trim).any(|known| {
        let known = known.strip_prefix("W/").unwrap_or(known);
        known == "*"
            || known.strip_prefix('"').and_then(|known| known.strip_suffix('"')) == Some(tag)
    })
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
    let detail =
        format!("The registry holds more than {MAX_CACHED_ENTRIES} {what}, too many to list.");
    Err(Problem::new(ProblemKind::Internal, detail))
}

/// The names of all metrics of some devices, sorted: the columns that stay the same on every page.
pub(crate) fn metrics_of<'a>(devices: impl Iterator<Item = &'a Device>) -> Vec<MetricName> {
    let names: std::collections::BTreeSet<&MetricName> =
        devices.flat_map(|device| device.metrics.keys()).collect();
    names.into_iter().cloned().collect()
}

/// What a request asks of a list.
pub(crate) struct ListRequest {
    pub(crate) format: Format,
    limit: usize,
    query_fingerprint: String,
    /// The last entry of the page before.
    after: Option<String>,
}

impl ListRequest {
    /// Reads the parameters, before anything is read of the table.
    pub(crate) fn of(request: &Request, params: &Params) -> Result<Self, Problem> {
        let format = Format::of(request, params)?;
        let limit = params.limit(DEFAULT_LIMIT, MAX_LIMIT)?;
        let query_fingerprint = params.query_fingerprint(request);
        let after = params
            .get("cursor")
            .map(|cursor| cursor::decode(&query_fingerprint, cursor))
            .transpose()?;
        Ok(Self { format, limit, query_fingerprint, after })
    }

    pub(crate) fn cursor_behind(&self, id: &str) -> String {
        cursor::encode(&self.query_fingerprint, id)
    }

    /// The devices of the page, and the cursor behind them where there are more.
    ///
    /// Newest values are paid for, so none are asked for that would not fit into the answer.
    pub(crate) fn devices<'a>(
        &self,
        all: Vec<&'a Device>,
        with_latest: bool,
    ) -> (Vec<&'a Device>, Option<String>) {
        // Of a metric its name, 46 characters of number, a timestamp, punctuation.
        let value = |name: &MetricName| name.as_str().len() + 110;
        let bytes = |device: &Device| {
            if with_latest { device.metrics.keys().map(value).sum() } else { 0 }
        };
        self.part(all, |device| device.id.as_str(), bytes)
    }

    /// The entries of the page, and the cursor behind them where there are more.
    fn part<'a, T>(
        &self,
        mut all: Vec<&'a T>,
        id: impl Fn(&T) -> &str,
        bytes: impl Fn(&T) -> usize,
    ) -> (Vec<&'a T>, Option<String>) {
        if let Some(after) = &self.after {
            all.retain(|entry| id(entry) > after.as_str());
        }
        let mut sum = 0;
        let fits = |entry: &&&T| {
            sum += bytes(entry);
            sum <= MAX_CARRIED
        };
        let fitting = all.iter().take(self.limit).take_while(fits).count();
        let has_more = all.len() > fitting;
        all.truncate(fitting);
        let last = all.last().filter(|_| has_more);
        let cursor = last.map(|last| self.cursor_behind(id(last)));
        (all, cursor)
    }
}
