//! `series`, `energy`, `events` and `conditions`: what devices, rooms and homes measured, and when.
//!
//! `request` reads what is asked, `subject` chooses the devices, the package `series` has their values, and `answer`,
//! `energy` and `events` show them; `sums` leaves out what a meter measures too. Computes nothing.

mod about;
mod answer;
mod conditions;
mod energy;
mod events;
mod request;
mod rest;
mod subject;
mod sums;
mod verdicts;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use api::caching::{with_cache_headers, with_short_life};
use api::{Problem, Response};
use domain::{
    Device, DeviceId, Flags, MAX_KNOWN_METRICS, Meter, MetricName, MetricRule, RoomId, TimeRange,
    Timestamp, meters_above,
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::registry::CachedRegistry;
use series::{
    Ask, DEVICE_CONCURRENCY, Densities, DeviceRows, DeviceValues, Events, Failure, Grid, Horizon,
    KnownState, Lacking, Lag, LeftOut, Level, Place, Places, RowReader, Store as SeriesStore,
    device_values, events, gather, leave_out, places, values_within,
};
use table::Invocation;

use crate::answer::sheet::metrics_of;
use crate::failure::problem;
use crate::ports::Store;
use crate::registry::lookup;
use about::{Span, sources};
use answer::{Columns, Group, Series};
pub(crate) use conditions::conditions;
use energy::Energy;
use events::EVENT_COLUMNS;
use request::SeriesRequest;
pub(crate) use subject::About;
use subject::Subject;
use sums::{Metered, Meters, leave_out_of, meters};
pub(crate) use verdicts::check_verdicts;

/// `GET .../series`
pub(crate) async fn series(
    about: About,
    (registry, known_state, densities): (&CachedRegistry<impl Clock>, &KnownState, &Densities),
    store: &impl Store,
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let request = SeriesRequest::of(call.request, &call.params, now)?;
    let mut subject = Subject::of(about, registry, store, call).await?;
    let Rows { horizon, grid, span, lacking } =
        rows(known_state, store, (about, &request), now, call).await?;
    let have_all = |subject: &Subject, devices: &[&Device]| match &request.metrics {
        Some(names) => known(names, devices).is_ok(),
        None => !subject.snapshot.is_empty(),
    };
    let asked = (grid.range(), now);
    subject.find_devices(registry, store, &horizon, asked, have_all, call).await?;
    let devices = subject.devices(call)?;
    let told_lag = |problem| with_lag(problem, lacking.as_ref(), &subject, &grid);
    let names = match &request.metrics {
        Some(names) => known(names, &devices).map_err(told_lag)?,
        None => metrics_of(devices.iter().copied()),
    };
    let is_combined = subject.is_shared() && !request.is_apart && !request.is_by_room;
    let columns = Columns::of(&request, &names, &devices, is_combined)?;
    let names = columns.names();
    let spans = |rule: &MetricRule| columns.spans(rule);
    let ask = |device| Ask::of(device, (&grid, &horizon), Level::of(request.unit), now);
    let rooms = subject.rooms.as_ref().filter(|_| !request.is_by_room);
    let asks: Vec<_> = devices.iter().map(|it| Ask { rooms, ..ask(*it) }).collect();
    let invocation = call.invocation;
    let mut reader = RowReader::of(store, densities, invocation);
    let rows: Vec<_> = asks.iter().map(|ask| DeviceRows::of(*ask, &names)).collect();
    let spent = Box::pin(reader.spend(&rows)).await;
    spent.map_err(|failure| problem(failure, call))?;
    let asked: Vec<_> = asks
        .iter()
        .map(|ask| Box::pin(device_values(store, ask, &names, spans, invocation)))
        .collect();
    let found = stream::iter(asked).buffered(DEVICE_CONCURRENCY).try_collect().await;
    let mut found: Vec<DeviceValues<'_>> = found.map_err(|failure| problem(failure, call))?;
    let lag = lack_of(lacking.as_ref(), &subject, &grid, found.iter());
    let span = span.lacking(lag).of_rooms(&subject);
    let is_lacking = span.is_lacking();
    let asked = (&request, &grid, now);
    let behind_of = |id: &DeviceId| subject.behind(id);
    if request.is_by_room {
        let source = sources(found.iter()).join("+");
        let rooms = subject.each_room();
        let found = places(&mut reader, &asks, found, &rooms, &names, spans);
        let found = Box::pin(found).await.map_err(|failure| problem(failure, call))?;
        let Places { mut places, without_room } = found;
        let is_of_all = about == About::All;
        let span = span.without_room(without_room.into_iter().filter(|_| is_of_all).collect());
        places.retain(|place| place.room.is_some() || is_of_all);
        let mut of_places = Vec::new();
        let mut before = BTreeMap::new();
        for place in &mut places {
            let rooms = rooms.iter().find(|it| it.first() == place.room.as_ref());
            let columns = columns_of(place, &request, &names)?;
            let asked = (&columns, &names[..], rooms);
            let behind = leave_out_of(&subject, store, place, &mut before, asked, ask, invocation);
            let behind = Box::pin(behind).await.map_err(|failure| problem(failure, call))?;
            of_places.push((columns, behind));
        }
        let groups =
            places.iter().zip(&of_places).map(|(place, it)| Group::of_place(place, it)).collect();
        let series = Series::of_places(asked, &columns, source, groups);
        return Ok(cached(call, &grid, is_lacking, now, series.respond(span)?));
    }
    let mut behind = Vec::new();
    let present = found.iter().filter(|it| subject.is_present(it));
    let present: Vec<&Device> = present.map(|it| it.device).collect();
    if is_combined {
        // A meter that is silent in the range, between two readings in the rooms, is there too.
        let asked = (|device| Ask { rooms, ..ask(device) }, spans);
        let sums = columns.sums();
        let left_out = leave_out(store, &mut found, sums, behind_of, asked, invocation);
        behind = Box::pin(left_out).await.map_err(|failure| problem(failure, call))?;
    }
    let is_present = |id: &DeviceId| present.iter().any(|it| it.id() == id);
    found.retain(|it| is_present(it.device.id()));
    behind.retain(|it| is_present(it.device()));
    let columns = Columns::of(&request, &names, &present, is_combined)?;
    let series = Series::of(asked, &columns, &found, &behind, subject.is_shared());
    Ok(cached(call, &grid, is_lacking, now, series.respond(span)?))
}

/// The columns of a room's rows.
fn columns_of(
    place: &Place<'_>,
    request: &SeriesRequest,
    names: &[MetricName],
) -> Result<Columns, Problem> {
    let devices: Vec<&Device> = place.devices.iter().map(|it| it.device).collect();
    let columns = Columns::of(request, names, &devices, place.room.is_some());
    columns.map_err(|mut problem| {
        let room = place.room.as_ref().map_or("no room", RoomId::as_str);
        problem.detail = format!("{} (in {room})", problem.detail);
        problem
    })
}

/// `GET .../energy`
pub(crate) async fn energy(
    about: About,
    (registry, known_state, densities): (&CachedRegistry<impl Clock>, &KnownState, &Densities),
    store: &impl Store,
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let request = SeriesRequest::of(call.request, &call.params, now)?;
    let asked = one_metric(&request)?;
    let mut subject = Subject::of(about, registry, store, call).await?;
    let Rows { horizon, grid, span, lacking } =
        rows(known_state, store, (about, &request), now, call).await?;
    let have_one = |it: &Subject, devices: &[&Device]| !it.metered(devices, asked).is_empty();
    let span_asked = (grid.range(), now);
    subject.find_devices(registry, store, &horizon, span_asked, have_one, call).await?;
    let devices = subject.devices(call)?;
    let metered = subject.metered(&devices, asked);
    if metered.is_empty() {
        let problem = without_energy(about, asked, &devices);
        return Err(with_lag(problem, lacking.as_ref(), &subject, &grid));
    }
    let explained = metered.clone();
    // Apart, a device that no sum holds is a row as well.
    let shown = metered.into_iter().filter_map(|(device, meter)| match meter.is_of_sums() {
        true => Some((device, meter)),
        false if request.is_apart => Some((device, meter.alone(device.metrics())?)),
        false => None,
    });
    let rooms = subject.rooms.as_ref();
    let ask = |device| {
        let ask = Ask::of(device, (&grid, &horizon), Level::of(request.unit), now);
        Ask { rooms, ..ask }
    };
    let invocation = call.invocation;
    let how = (request.is_apart, grid.range());
    let reader = RowReader::of(store, densities, invocation);
    let found = meters(&subject, reader, shown.collect(), how, ask);
    let found = Box::pin(found).await.map_err(|failure| problem(failure, call))?;
    let Meters { shown, at_times, mut left_out } = found;
    let read: Vec<_> = shown.iter().chain(&at_times).map(|(it, _)| it).collect();
    let lag = lack_of(lacking.as_ref(), &subject, &grid, read.iter().copied());
    let is_among =
        |found: &[Metered<'_>], id: &DeviceId| found.iter().any(|(it, _)| it.device.id() == id);
    let (shown, absent): (Vec<_>, Vec<_>) =
        shown.into_iter().partition(|(it, _)| subject.is_present(it));
    let absent = absent.iter().map(|(it, meter)| (ask(it.device), meter));
    let never_there = never_there(store, &subject, absent, &left_out, invocation).await;
    let never_there = never_there.map_err(|failure| problem(failure, call))?;
    left_out.retain(|it| !never_there.contains(it.device()));
    let is_behind = |device: &Device| left_out.iter().any(|it| it.is_of_whole(device.id()));
    let unread = explained.iter().filter(|(device, meter)| {
        !meter.is_of_sums() && !subject.has_now(device) && !is_among(&shown, device.id())
    });
    let unread = unread.map(|(device, _)| ask(*device));
    let was_there = were_there(store, unread, invocation).await;
    let was_there = was_there.map_err(|failure| problem(failure, call))?;
    let is_named = |device: &Device, meter: &Meter<'_>| {
        let is_there = || subject.has_now(device) || was_there.contains(device.id());
        !is_behind(device) && (is_among(&shown, device.id()) || !meter.is_of_sums() && is_there())
    };
    let roles = explained.iter().filter(|(device, meter)| is_named(device, meter));
    let roles: Vec<_> = roles.flat_map(|(device, it)| LeftOut::of_roles(device, it)).collect();
    left_out.extend(roles);
    let is_in_sum = |device: &Device| !left_out.iter().any(|it| it.is_of_whole(device.id()));
    let shown = shown.into_iter().filter(|(it, _)| request.is_apart || is_in_sum(it.device));
    let found: Vec<Metered<'_>> = shown.collect();
    let counts_whole =
        |it: &&Metered<'_>| is_in_sum(it.0.device) && !is_among(&at_times, it.0.device.id());
    let counting = found.iter().filter(counts_whole).chain(&at_times).collect();
    let is_shown_behind = |it: &&LeftOut<'_>| it.behind().is_some();
    let behind = left_out.iter().filter(is_shown_behind).map(LeftOut::device);
    let above = behind.flat_map(|id| meters_above(id, |id| subject.behind(id))).collect();
    let mut found_events = Events::default();
    if request.has_events {
        for (it, meter) in &found {
            let names = names_of(meter);
            let more = events(store, &ask(it.device), (&names, Flags::ALL), invocation).await;
            let mut more = more.map_err(|failure| problem(failure, call))?;
            if !request.is_apart {
                let (id, last) = (it.device.id(), grid.range().last());
                let is_left_out = |at| left_out.iter().any(|left| left.is_at(id, at));
                more.events.retain(|it| !is_left_out(it.timestamp.min(last)));
            }
            found_events.append(more);
        }
    }
    let energy = Energy {
        request: &request,
        grid: &grid,
        devices: &found,
        counting,
        above,
        left_out: &left_out,
        is_shared: subject.is_shared(),
        now,
    };
    let events = request.has_events.then_some(&found_events);
    let span = span.lacking(lag).of_rooms(&subject);
    let is_lacking = span.is_lacking();
    Ok(cached(call, &grid, is_lacking, now, energy.respond(span, events)?))
}

/// What was not in the rooms in the time that is asked about. What is behind a meter is not read where the meter is there
/// all the time, and else only when it counts: it may have been there at the other times.
async fn never_there<'a, 'm>(
    store: &impl SeriesStore,
    subject: &Subject,
    absent: impl Iterator<Item = (Ask<'a>, &'m Meter<'a>)>,
    left_out: &[LeftOut<'_>],
    invocation: &Invocation,
) -> Result<BTreeSet<&'a DeviceId>, Failure>
where
    'a: 'm,
{
    let mut never = BTreeSet::new();
    for (ask, meter) in absent {
        let id = ask.device.id();
        let during = left_out.iter().find(|left| left.device() == id).map(LeftOut::during);
        let (names, during) = (names_of(meter), during.unwrap_or_default());
        let spans = |rule: &MetricRule| *rule != MetricRule::Gauge;
        let found = values_within(store, &ask, &during, &names, spans, invocation).await;
        if during.is_empty() || !subject.is_present(&found?) {
            never.insert(id);
        }
    }
    Ok(never)
}

/// What was in the rooms in the time that is asked about, of what is not read for a sum.
async fn were_there<'a>(
    store: &impl SeriesStore,
    unread: impl Iterator<Item = Ask<'a>>,
    invocation: &Invocation,
) -> Result<BTreeSet<&'a DeviceId>, Failure> {
    let mut there = BTreeSet::new();
    for ask in unread {
        let gathered = gather(store, &ask, invocation).await?;
        if gathered.pieces.iter().any(|piece| !piece.is_elsewhere) {
            there.insert(ask.device.id());
        }
    }
    Ok(there)
}

fn names_of(meter: &Meter<'_>) -> Vec<MetricName> {
    meter.names().cloned().collect()
}

/// `GET /devices/{id}/events`
pub(crate) async fn device_events(
    (registry, known_state): (&CachedRegistry<impl Clock>, &KnownState),
    store: &impl Store,
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    #[derive(serde::Serialize)]
    struct More {
        has_more: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        rollups_lack: Option<Lag>,
    }
    let request = SeriesRequest::of(call.request, &call.params, now)?;
    let mut device = lookup::device(registry, store, call).await?;
    let is_missing = |names: &Vec<MetricName>| known(names, &[&device]).is_err();
    // A device that was read alone is as it is now.
    if request.metrics.as_ref().is_some_and(is_missing) && !registry.would_read_many() {
        let snapshot = lookup::snapshot(registry, store, call).await?;
        if lookup::has_news(&snapshot, registry, store, call).await? {
            device = lookup::device(registry, store, call).await?;
        }
    }
    let Rows { horizon, grid, lacking, .. } =
        rows(known_state, store, (About::Device, &request), now, call).await?;
    let names = match &request.metrics {
        Some(names) => known(names, &[&device])?,
        None => metrics_of(std::iter::once(&device)),
    };
    let ask = Ask::of(&device, (&grid, &horizon), Level::Days, now);
    let found = events(store, &ask, (&names, Flags::ALL), call.invocation).await;
    let Events { events, has_more } = found.map_err(|failure| problem(failure, call))?;
    let rollups_lack = lacking.and_then(|it| it.of(grid.range(), Some(device.id())));
    let is_lacking = rollups_lack.is_some();
    let columns = || EVENT_COLUMNS.map(ToOwned::to_owned).to_vec();
    let more = More { has_more, rollups_lack };
    let response = write::respond(request.format, columns, events.into_iter(), &more)?;
    Ok(cached(call, &grid, is_lacking, now, response))
}

/// The rows that are asked for, how far the rollups reach and what these may lack.
struct Rows {
    horizon: Horizon,
    grid: Grid,
    span: Span,
    /// `None` for rows that are made from the readings of devices that are asked about by themselves, or all.
    lacking: Option<Lacking>,
}

async fn rows(
    known_state: &KnownState,
    store: &impl Store,
    (about, request): (About, &SeriesRequest),
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Rows, Problem> {
    let horizon = known_state.horizon(store, now, call.invocation).await;
    let horizon = horizon.map_err(|error| call.failed(&error))?;
    let zone = request.zone(horizon.zone());
    let grid = request.grid(zone)?;
    let span = Span::of(&grid, request.unit, zone);
    let mut lacking = None;
    // Which devices were in a room rollups tell, also where its rows are made from readings.
    if Level::of(request.unit) > Level::Readings || matches!(about, About::Room | About::Home) {
        let known = Lacking::read(store, &horizon, now, call.invocation).await;
        lacking = Some(known.map_err(|error| call.failed(&error))?);
    }
    Ok(Rows { horizon, grid, span, lacking })
}

/// What the rollups of an answer may lack. Of a room it may be any device: which are in it, rollups tell.
fn lack_of<'a>(
    lacking: Option<&Lacking>,
    subject: &Subject,
    grid: &Grid,
    devices: impl Iterator<Item = &'a DeviceValues<'a>>,
) -> Option<Lag> {
    let reach = devices.map(|it| it.reach).fold(grid.range(), |a, b| {
        let reach = TimeRange::new(a.from().min(b.from()), a.to().max(b.to()));
        reach.expect("it holds both")
    });
    lacking?.of(reach, subject.device.as_ref().map(Device::id))
}

/// Of a room, with what the rollups lack: they tell which devices were there, and so what was measured.
fn with_lag(
    mut problem: Problem,
    lacking: Option<&Lacking>,
    subject: &Subject,
    grid: &Grid,
) -> Problem {
    let lag = lacking.filter(|_| subject.rooms.is_some()).and_then(|it| it.of(grid.range(), None));
    if let Some(lag) = lag {
        problem.detail = format!("{}; {}", problem.detail, lag.text());
    }
    problem
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
    let is_missing =
        |name: &&MetricName| !devices.iter().any(|it| it.metrics().contains_key(*name));
    match names.iter().find(is_missing) {
        None => Ok(names.to_vec()),
        Some(name) => {
            let is_full = |it: &&Device| it.metrics().len() >= MAX_KNOWN_METRICS;
            let message = match devices.iter().find(|it| is_full(it)) {
                Some(device) => format!(
                    "{name} is not among the {MAX_KNOWN_METRICS} metrics of {}; no more are kept of a device",
                    device.id()
                ),
                None => format!("{name} has not been sent; {}", sent(devices)),
            };
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

/// A range that is over seldom changes, but late readings do change it: an answer that lacks some is asked for
/// again.
fn cached(
    call: &Call<'_>,
    grid: &Grid,
    is_lacking: bool,
    now: Timestamp,
    response: Response,
) -> Response {
    if grid.range().to() > now {
        response
    } else if is_lacking {
        with_cache_headers(call.request, response)
    } else {
        with_short_life(call.request, response)
    }
}
