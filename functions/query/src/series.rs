//! `series`, `energy`, `events` and `conditions`: what devices, rooms and homes measured, and when.
//!
//! `request` reads what is asked, `members` chooses the devices, `gather` reads each one's rollups, `values`
//! gives each row its share, `combine` makes one value of several devices, and `answer`, `energy` and
//! `events` show them. All arithmetic is the domain's.

mod about;
mod answer;
mod by_room;
mod combine;
mod conditions;
mod device;
mod energy;
mod events;
pub(crate) mod failure;
mod function;
pub(crate) mod gather;
pub(crate) mod grid;
pub(crate) mod horizon;
pub(crate) mod members;
mod neighbours;
mod not_combined;
mod request;
#[cfg(test)]
mod tests;
mod values;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::caching::with_short_life;
use api::{Problem, Response};
use domain::{Device, DeviceId, Meter, MetricName, MetricRule, RoomId, Timestamp};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::registry::{CachedRegistry, Snapshot};
use table::{
    LookUpRegistry, PageRegistry, QueryReadings, ReadRegistry, ReadRollupState, ReadRollups,
};

use crate::lists::metrics_of;
use crate::lookup;
use about::{Explanation, Span, sources};
use answer::{Columns, Series};
use by_room::Place;
pub(crate) use conditions::conditions;
use device::{DeviceValues, device_values};
use energy::Energy;
use events::{EVENT_COLUMNS, Events, events};
use gather::{Ask, Level, MAX_READ};
use grid::Grid;
pub(crate) use horizon::{Horizon, KnownState};
use members::{DEVICE_CONCURRENCY, LeftOut, MAX_DEVICES, meter_of};
use request::SeriesRequest;

/// What is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// The device of the path.
    Device,
    /// The room of the path.
    Room,
    /// The rooms of the home of the path.
    Home,
    /// All devices.
    All,
}

/// The devices that are asked about, and the rooms that their readings must name.
struct Subject {
    snapshot: Arc<Snapshot>,
    /// The rooms' devices and those behind which they are, where memory does not hold all devices.
    read: BTreeMap<DeviceId, Device>,
    device: Option<Device>,
    rooms: Option<BTreeSet<RoomId>>,
}

impl Subject {
    async fn of(
        about: About,
        registry: &CachedRegistry<impl Clock>,
        store: &(impl ReadRegistry + PageRegistry + LookUpRegistry),
        call: &mut Call<'_>,
    ) -> Result<Self, Problem> {
        let (mut device, mut rooms) = (None, None);
        match about {
            About::Device => device = Some(lookup::device(registry, store, call).await?),
            About::Room => rooms = Some([lookup::room(registry, store, call).await?.0.id].into()),
            About::Home => {
                let (home, snapshot) = lookup::home(registry, store, call).await?;
                rooms = Some(snapshot.rooms_of(&home).map(|room| room.id.clone()).collect());
            }
            About::All => {}
        }
        let snapshot = lookup::snapshot(registry, store, call).await?;
        let mut read = BTreeMap::new();
        if let Some(rooms) = rooms.as_ref().filter(|_| !snapshot.has_all_devices) {
            let page = lookup::devices_of_rooms(store, rooms, None, MAX_DEVICES + 1, call).await?;
            read.extend(page.listing.found.into_iter().map(|it| (it.id.clone(), it)));
            lookup::add_meters(&mut read, store, &snapshot, call).await?;
        }
        Ok(Self { snapshot, read, device, rooms })
    }

    /// The rooms that are asked about, each by itself.
    fn each_room(&self) -> Vec<BTreeSet<RoomId>> {
        let one = |room: &RoomId| [room.clone()].into();
        match &self.rooms {
            Some(rooms) => rooms.iter().map(one).collect(),
            None => self.snapshot.rooms.keys().map(one).collect(),
        }
    }

    const fn is_shared(&self) -> bool {
        self.device.is_none()
    }

    async fn devices(
        &self,
        store: &(impl ReadRollups + QueryReadings),
        grid: &Grid,
        horizon: &Horizon,
        call: &mut Call<'_>,
    ) -> Result<Vec<&Device>, Problem> {
        let found = match (&self.device, &self.rooms) {
            (Some(device), _) => return Ok(vec![device]),
            (None, Some(_)) if !self.snapshot.has_all_devices => {
                members::now(self.read.values().filter(|device| self.has_now(device)).collect())
            }
            (None, Some(rooms)) => {
                let range = grid.range();
                let invocation = call.invocation;
                members::of_rooms(store, &self.snapshot, rooms, range, horizon, invocation).await
            }
            (None, None) => members::all(&self.snapshot),
        };
        found.map_err(|failure| failure.problem(call))
    }

    /// Those of the devices that may have been in the rooms that are or were there.
    fn present<'a, T>(
        &self,
        found: Vec<T>,
        values: impl for<'t> Fn(&'t T) -> &'t DeviceValues<'a>,
    ) -> Vec<T> {
        let is_present = |it: &T| {
            let it = values(it);
            let mut pieces = it.gathered.pieces.iter();
            self.has_now(it.device) || pieces.any(|piece| !piece.is_elsewhere)
        };
        found.into_iter().filter(is_present).collect()
    }

    /// Whether a device is in the rooms now.
    fn has_now(&self, device: &Device) -> bool {
        let Some(rooms) = &self.rooms else { return true };
        device.place.room().is_some_and(|room| rooms.contains(room))
    }

    /// The meter of a device. A device that is asked about by itself tells what it measures, whatever the role.
    fn meter<'a>(&self, device: &'a Device, asked: Option<&MetricName>) -> Option<Meter<'a>> {
        let metrics = &device.metrics;
        match (asked, self.is_shared()) {
            (None, true) => Meter::of(metrics),
            (None, false) => Meter::of(metrics)?.alone(metrics),
            (Some(asked), true) => Meter::of_one(metrics, asked),
            (Some(asked), false) => Meter::only(metrics, asked),
        }
    }

    /// The devices that a sum leaves out: what they measure is a part of what one of the `counted` measures.
    fn left_out<'a>(&'a self, devices: &[&'a Device], counted: &[&Device]) -> Vec<LeftOut<'a>> {
        let is_counted = |id: &DeviceId| counted.iter().any(|it| it.id == *id);
        let behind = devices.iter().filter_map(|device| {
            let known = (&self.snapshot.devices, &self.read);
            Some(LeftOut::behind_meter(device, meter_of(device, known, is_counted)?))
        });
        if self.is_shared() { behind.collect() } else { Vec::new() }
    }
}

/// `GET .../series`
pub(crate) async fn series(
    about: About,
    (registry, known_state): (&CachedRegistry<impl Clock>, &KnownState),
    store: &(
         impl ReadRegistry
         + PageRegistry
         + LookUpRegistry
         + QueryReadings
         + ReadRollups
         + ReadRollupState
     ),
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let request = SeriesRequest::of(call.request, &call.params, now)?;
    let subject = Subject::of(about, registry, store, call).await?;
    let (horizon, grid, span) = rows(known_state, store, &request, now, call).await?;
    let devices = subject.devices(store, &grid, &horizon, call).await?;
    let names = match &request.metrics {
        Some(names) => known(names, &devices)?,
        None => metrics_of(devices.iter().copied()),
    };
    let is_combined = subject.is_shared() && !request.is_apart && !request.is_by_room;
    let columns = Columns::of(&request, &names, &devices, is_combined)?;
    let names = columns.names();
    let spans = |rule: &MetricRule| columns.spans(rule);
    let ask = |device| Ask {
        device,
        rooms: subject.rooms.as_ref().filter(|_| !request.is_by_room),
        is_by_room: false,
        max_read: MAX_READ,
        grid: &grid,
        horizon: &horizon,
        coarsest: Level::of(request.unit),
        now,
    };
    let asks: Vec<Ask<'_>> = devices.iter().map(|device| ask(*device)).collect();
    let invocation = call.invocation;
    let asked: Vec<_> = asks
        .iter()
        .map(|ask| Box::pin(device_values(store, ask, &names, spans, invocation)))
        .collect();
    let found = stream::iter(asked).buffered(DEVICE_CONCURRENCY).try_collect().await;
    let found: Vec<DeviceValues<'_>> = found.map_err(|failure| failure.problem(call))?;
    let explain = request
        .is_explained
        .then(|| Explanation::of(&found, Level::of(request.unit), &grid, call.invocation));
    let asked = (&request, &grid, now);
    if request.is_by_room {
        let source = sources(&found).join("+");
        let rooms = subject.each_room();
        let places = by_room::places(store, &asks, found, &rooms, &names, spans, invocation);
        let mut places = Box::pin(places).await.map_err(|failure| failure.problem(call))?;
        places.retain(|place| place.room.is_some() || about == About::All);
        let of_places = of_places(&subject, &request, &names, &places)?;
        let groups = places.iter().zip(&of_places).map(|(place, it)| place.group(it)).collect();
        let series = Series::of_places(asked, &columns, source, groups);
        return Ok(cached(call, &grid, now, series.respond(span, explain)?));
    }
    let found = subject.present(found, |it| it);
    let devices: Vec<&Device> = found.iter().map(|it| it.device).collect();
    let columns = Columns::of(&request, &names, &devices, is_combined)?;
    let behind = subject.left_out(&devices, &devices);
    let series = Series::of(asked, &columns, &found, &behind, subject.is_shared());
    Ok(cached(call, &grid, now, series.respond(span, explain)?))
}

/// The columns of each room's rows, and the devices that are behind others in it.
fn of_places<'a>(
    subject: &'a Subject,
    request: &SeriesRequest,
    names: &[MetricName],
    places: &[Place<'a>],
) -> Result<Vec<(Columns, Vec<LeftOut<'a>>)>, Problem> {
    let of_place = |place: &Place<'a>| {
        let devices: Vec<&Device> = place.devices.iter().map(|it| it.device).collect();
        let columns = Columns::of(request, names, &devices, place.room.is_some());
        let columns = columns.map_err(|mut problem| {
            let room = place.room.as_ref().map_or("no room", RoomId::as_str);
            problem.detail = format!("{} (in {room})", problem.detail);
            problem
        });
        Ok((columns?, subject.left_out(&devices, &devices)))
    };
    places.iter().map(of_place).collect()
}

/// `GET .../energy`
pub(crate) async fn energy(
    about: About,
    (registry, known_state): (&CachedRegistry<impl Clock>, &KnownState),
    store: &(
         impl ReadRegistry
         + PageRegistry
         + LookUpRegistry
         + QueryReadings
         + ReadRollups
         + ReadRollupState
     ),
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let request = SeriesRequest::of(call.request, &call.params, now)?;
    let asked = one_metric(&request)?;
    let subject = Subject::of(about, registry, store, call).await?;
    let (horizon, grid, span) = rows(known_state, store, &request, now, call).await?;
    let devices = subject.devices(store, &grid, &horizon, call).await?;
    let metered: Vec<(&Device, Meter<'_>)> = devices
        .iter()
        .filter_map(|device| Some((*device, subject.meter(device, asked)?)))
        .collect();
    if metered.is_empty() {
        return Err(without_energy(about, asked, &devices));
    }
    let explained = metered.clone();
    let summed = metered.iter().filter(|(_, meter)| meter.is_of_sums());
    let meters = summed.clone().filter(|(_, meter)| !meter.used.is_empty());
    let summed: Vec<&Device> = summed.map(|(device, _)| *device).collect();
    let meters: Vec<&Device> = meters.map(|(device, _)| *device).collect();
    // Behind a meter that is there for certain, a device need not be read. Of the others it is known only
    // when they are read whether they were there at all.
    let certain: Vec<&Device> = meters.iter().copied().filter(|it| subject.has_now(it)).collect();
    let unread = subject.left_out(&summed, &certain);
    // Apart, a device that no sum holds is a row as well.
    let is_in_sum = |left_out: &[LeftOut<'_>], device: &Device| {
        request.is_apart || !left_out.iter().any(|it| it.is_of_whole(&device.id))
    };
    let shown = metered.into_iter().filter_map(|(device, meter)| match meter.is_of_sums() {
        true => Some((device, meter)),
        false if request.is_apart => Some((device, meter.alone(&device.metrics)?)),
        false => None,
    });
    let metered: Vec<_> = shown.filter(|(it, _)| is_in_sum(&unread, it)).collect();
    let ask = |device| Ask {
        device,
        rooms: subject.rooms.as_ref(),
        is_by_room: false,
        max_read: MAX_READ,
        grid: &grid,
        horizon: &horizon,
        coarsest: Level::of(request.unit),
        now,
    };
    let asks: Vec<(Ask<'_>, Vec<MetricName>)> = metered
        .iter()
        .map(|(device, meter)| (ask(*device), meter.names().cloned().collect()))
        .collect();
    let invocation = call.invocation;
    let spans = |rule: &MetricRule| *rule != MetricRule::Gauge;
    let found: Vec<_> = asks
        .iter()
        .map(|(ask, names)| Box::pin(device_values(store, ask, names, spans, invocation)))
        .collect();
    let found = stream::iter(found).buffered(DEVICE_CONCURRENCY).try_collect().await;
    let found: Vec<DeviceValues<'_>> = found.map_err(|failure| failure.problem(call))?;
    let explain = request
        .is_explained
        .then(|| Explanation::of(&found, Level::of(request.unit), &grid, call.invocation))
        .map(|explanation| explanation.with_meters(&explained));
    let found: Vec<_> =
        found.into_iter().zip(metered.into_iter().map(|(_, meter)| meter)).collect();
    let found = subject.present(found, |(it, _)| it);
    let is_there = |device: &Device| {
        let mut read = found.iter().map(|(it, _)| it.device);
        unread.iter().any(|it| it.is_of_whole(&device.id)) || read.any(|it| it.id == device.id)
    };
    let summed: Vec<&Device> = summed.into_iter().filter(|it| is_there(it)).collect();
    let meters: Vec<&Device> = meters.into_iter().filter(|it| is_there(it)).collect();
    let mut left_out = subject.left_out(&summed, &meters);
    // Of a device that is not read for a sum, only the registry tells whether it is there.
    let is_named = |device: &Device, meter: &Meter<'_>| {
        let is_behind = left_out.iter().any(|it| it.is_of_whole(&device.id));
        !is_behind && (is_there(device) || !meter.is_of_sums() && subject.has_now(device))
    };
    let roles = explained.iter().filter(|(device, meter)| is_named(device, meter));
    let roles: Vec<_> = roles.flat_map(|(device, it)| LeftOut::of_roles(device, it)).collect();
    left_out.extend(roles);
    let found: Vec<_> =
        found.into_iter().filter(|(it, _)| is_in_sum(&left_out, it.device)).collect();
    let mut found_events = Events::default();
    if request.has_events {
        let is_shown = |ask: &Ask<'_>| found.iter().any(|(it, _)| it.device.id == ask.device.id);
        for (ask, names) in asks.iter().filter(|(ask, _)| is_shown(ask)) {
            let more = events(store, ask, names, invocation).await;
            let more = more.map_err(|failure| failure.problem(call))?;
            found_events.append(more);
        }
    }
    let energy = Energy {
        request: &request,
        grid: &grid,
        devices: &found,
        left_out: &left_out,
        is_shared: subject.is_shared(),
        now,
    };
    let events = request.has_events.then_some(&found_events);
    Ok(cached(call, &grid, now, energy.respond(span, events, explain)?))
}

/// `GET /devices/{id}/events`
pub(crate) async fn device_events(
    (registry, known_state): (&CachedRegistry<impl Clock>, &KnownState),
    store: &(impl ReadRegistry + LookUpRegistry + QueryReadings + ReadRollups + ReadRollupState),
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    #[derive(serde::Serialize)]
    struct More {
        has_more: bool,
    }
    let request = SeriesRequest::of(call.request, &call.params, now)?;
    let device = lookup::device(registry, store, call).await?;
    let (horizon, grid, _) = rows(known_state, store, &request, now, call).await?;
    let names = match &request.metrics {
        Some(names) => known(names, &[&device])?,
        None => metrics_of(std::iter::once(&device)),
    };
    let ask = Ask {
        device: &device,
        rooms: None,
        is_by_room: false,
        max_read: MAX_READ,
        grid: &grid,
        horizon: &horizon,
        coarsest: Level::Days,
        now,
    };
    let found = events(store, &ask, &names, call.invocation).await;
    let Events { events, has_more } = found.map_err(|failure| failure.problem(call))?;
    let columns = || EVENT_COLUMNS.map(ToOwned::to_owned).to_vec();
    let response = write::respond(request.format, columns, &events, &More { has_more })?;
    Ok(cached(call, &grid, now, response))
}

/// How far the rollups reach, and the rows.
async fn rows(
    known_state: &KnownState,
    store: &impl ReadRollupState,
    request: &SeriesRequest,
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<(Horizon, Grid, Span), Problem> {
    let horizon = known_state.horizon(store, now, call.invocation).await;
    let horizon = horizon.map_err(|error| call.failed(&error))?;
    let zone = request.zone(horizon.zone());
    let grid = request.grid(zone)?;
    let span = Span::of(&grid, request.unit, zone, &horizon, now);
    Ok((horizon, grid, span))
}

/// The metric that energy is asked for, if one is.
fn one_metric(request: &SeriesRequest) -> Result<Option<&MetricName>, Problem> {
    match request.metrics.as_deref() {
        None => Ok(None),
        Some([name]) => Ok(Some(name)),
        Some(names) => {
            let message = format!("names {} metrics; energy comes from one", names.len());
            Err(Problem::field("metric", message))
        }
    }
}

/// The metrics asked for, if the devices have them.
fn known(names: &[MetricName], devices: &[&Device]) -> Result<Vec<MetricName>, Problem> {
    let is_missing = |name: &&MetricName| !devices.iter().any(|it| it.metrics.contains_key(*name));
    match names.iter().find(is_missing) {
        None => Ok(names.to_vec()),
        Some(name) => {
            let message = format!("{name} has not been sent; {}", sent(devices));
            Err(Problem::field("metric", message))
        }
    }
}

fn sent(devices: &[&Device]) -> String {
    let names = metrics_of(devices.iter().copied());
    let names: Vec<&str> = names.iter().map(MetricName::as_str).take(20).collect();
    match names[..] {
        [] => "no metric has been sent".to_owned(),
        _ => format!("the metrics sent are {}", names.join(", ")),
    }
}

fn without_energy(about: About, asked: Option<&MetricName>, devices: &[&Device]) -> Problem {
    let whose = match about {
        About::Device => "the device",
        About::Room => "a device of the room",
        About::Home => "a device of the home",
        About::All => "a device",
    };
    let message = match asked {
        Some(name) => format!("{name} is no counter in Wh, kWh or MWh and no power of {whose}"),
        None => format!(
            "is needed: no metric of {whose} is a counter in Wh, kWh or MWh or a power in W, kW or MW that counts; \
             PATCH /devices/{{id}} sets a metric's kind, unit and role; {}",
            sent(devices)
        ),
    };
    Problem::field("metric", message)
}

/// A range that is over seldom changes, but late readings do change it.
fn cached(call: &Call<'_>, grid: &Grid, now: Timestamp, response: Response) -> Response {
    if grid.range().to() <= now { with_short_life(call.request, response) } else { response }
}
