//! Runs a `SELECT`: which series it is about, what is read of them, and the series of its answer.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Device, DeviceId, Order, RoomId, TimeRange, Timestamp};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use runtime::registry::Snapshot;
use table::Invocation;

use super::answer::{OutSeries, OutValue, Outcome};
use super::ast::{Measurement, Select};
use super::compile::{Query, Shown, compile};
use super::condition::{self, nanoseconds};
use super::density::Densities;
use super::error::QueryError;
use super::extreme;
use super::failure::Failure;
use super::function::{Aggregate, Call};
use super::group::{Found, grouped, may_hold};
use super::read::{Plan, Wanted, Way, milliseconds, read};
use super::series::{ROOM, Schema, Series, series_of};
use super::table::{Frame, rows};
use super::windows::MAX_WINDOWS;
use crate::ports::Store;
use crate::registry::presence::{self, Knowledge};
use crate::series::Lacking;
use crate::series::grid::Grid;
use crate::series::horizon::{Horizon, KnownState};
use crate::series::members::{DEVICE_CONCURRENCY, may_have_been_in};

/// The series of an answer.
const MAX_SERIES: usize = 500;
/// The values of an answer.
const MAX_VALUES: usize = 100_000;

/// What every statement of a query works on.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) snapshot: &'a Snapshot,
    /// The retention policy of the request, for measurements that name none.
    pub(super) policy: Option<&'a str>,
    pub(super) horizon: &'a Horizon,
    pub(super) known_state: &'a KnownState,
    pub(super) densities: &'a Densities,
    pub(super) now: Timestamp,
}

impl Context<'_> {
    /// The series of all devices in some measurements, by measurement; all where none is named.
    pub(super) fn series(&self, sources: &[Measurement]) -> Result<Vec<Series<'_>>, QueryError> {
        let policies = sources.iter().map(|source| source.policy.as_deref().or(self.policy));
        for policy in policies.chain([self.policy]).flatten() {
            if policy != "autogen" {
                let policy = domain::excerpt(policy);
                return Err(QueryError::new(format!("retention policy not found: {policy}")));
            }
        }
        let is_meant = |series: &Series<'_>| {
            sources.is_empty() || sources.iter().any(|it| it.name.is_of(&series.measurement))
        };
        let all = self.snapshot.devices.values().flat_map(series_of);
        let mut series: Vec<Series<'_>> = all.filter(is_meant).collect();
        series.sort_by(|a, b| a.measurement.cmp(&b.measurement));
        Ok(series)
    }
}

/// Runs a `SELECT`.
pub(super) async fn select(
    store: &impl Store,
    context: &Context<'_>,
    select: &Select,
    invocation: &Invocation,
) -> Result<Outcome, Failure> {
    let series = context.series(&select.sources)?;
    let query = compile(select, &Schema::of(&series), context.now)?;
    let series: Vec<Series<'_>> = series.into_iter().filter(|it| is_needed(it, &query)).collect();
    let Some(frame) = frame(&query, &series, context.now)? else { return Ok(Vec::new().into()) };
    check_size(&query, &frame, &series)?;
    let is_by_room = series.iter().any(|it| it.has_rooms) && query.uses_tag(ROOM);
    let Some(plan) = plan(&query, &frame, context, is_by_room) else {
        return Ok(Vec::new().into());
    };
    let mut wanted = wanted(&series, &query);
    let mut lag = None;
    // Which devices were in a room rollups tell, also where the values are those of readings.
    if plan.has_rollups() || is_by_room {
        let lacking = Lacking::read(store, context.horizon, context.now, invocation).await?;
        lag = lacking.of(plan.range, None);
    }
    if is_by_room {
        leave_out_absent(&mut wanted, &series, &query, store, context, plan.range, invocation)
            .await?;
    }
    let found = Box::pin(read(store, &plan, &wanted, invocation)).await?;
    let ids = wanted.iter().map(|it| it.device.id().clone());
    let found: BTreeMap<DeviceId, Found> = ids.zip(found).collect();
    let mut answer = Vec::new();
    let mut values = 0;
    for measurement in series.chunk_by(|a, b| a.measurement == b.measurement) {
        let of_measurement: Vec<_> = measurement
            .iter()
            .filter_map(|series| Some((series, found.get(series.device.id())?)))
            .collect();
        let condition = query.condition.as_ref();
        let groups = grouped(&of_measurement, &query.dimensions, condition, is_by_room);
        // As InfluxDB has it, SOFFSET without SLIMIT leaves nothing.
        let has_groups = query.series.limit > 0 || query.series.offset == 0;
        let groups = query.series.of(groups.into_iter().filter(|_| has_groups).collect());
        for (tags, group) in groups {
            let instant = extreme::instant(store, &plan, &query, &group, invocation).await?;
            let rows = rows(&query, &frame, &group, instant);
            values += rows.len() * query.columns.len();
            if values > MAX_VALUES {
                return Err(too_many_values(values).into());
            }
            if !rows.is_empty() {
                let tags = query.dimensions.iter().cloned().zip(tags).collect();
                answer.push(out_series(&query, measurement[0].measurement.clone(), tags, rows));
            }
        }
    }
    if query.is_descending {
        answer.reverse();
    }
    if answer.len() > MAX_SERIES {
        return Err(too_many_series(answer.len()).into());
    }
    Ok(Outcome::Done { series: answer, warning: lag.map(|it| it.text()) })
}

fn out_series(
    query: &Query,
    name: String,
    tags: Vec<(String, String)>,
    rows: Vec<super::table::OutRow>,
) -> OutSeries {
    let names = query.columns.iter().map(|column| column.name.clone());
    let rows = rows.into_iter().map(|(at, cells)| {
        [OutValue::Time(at)].into_iter().chain(cells.into_iter().map(OutValue::from)).collect()
    });
    OutSeries {
        name: Some(name),
        tags,
        columns: [query.time.clone()].into_iter().chain(names).collect(),
        rows: rows.collect(),
        zone: query.zone,
    }
}

fn too_many_series(number: usize) -> QueryError {
    QueryError::new(format!(
        "max-select-series limit exceeded: ({number}/{MAX_SERIES}); ask for fewer measurements or tags"
    ))
}

fn too_many_values(number: usize) -> QueryError {
    QueryError::new(format!(
        "max-select-point limit exceeded: ({number}/{MAX_VALUES}); narrow the time range or set a LIMIT"
    ))
}

/// Whether points of a series can be in the answer.
fn is_needed(series: &Series<'_>, query: &Query) -> bool {
    let has = |field: &str| series.fields.contains_key(field);
    let shows = |cell: &Shown| matches!(cell, Shown::Field(name) if has(name));
    let has_field = query.calls.iter().any(|call| has(call.field()))
        || query.calls.is_empty() && query.columns.iter().any(|it| it.cell.has(&shows));
    has_field && may_hold(series, None, false, query.condition.as_ref())
}

/// The bounds and windows of a query; `None` where it is about nothing.
fn frame(
    query: &Query,
    series: &[Series<'_>],
    now: Timestamp,
) -> Result<Option<Frame>, QueryError> {
    let Some(first) = series.iter().map(|it| it.device.first_seen()).min() else { return Ok(None) };
    let from = query.range.from.unwrap_or(nanoseconds(first.min(now)));
    let to = query.range.to.unwrap_or(i64::MAX - 1);
    if from > to {
        return Ok(None);
    }
    let has_start = query.range.from.is_some();
    let Some(interval) = query.interval else {
        return Ok(Some(Frame { range: (from, to), has_start, windows: Vec::new() }));
    };
    let (first, last) = widened(query, (from, to));
    let windows = interval.starts(first, last).map_err(|number| {
        QueryError::new(format!(
            "max-select-buckets limit exceeded: ({number}/{MAX_WINDOWS}); narrow the time range or choose a longer \
             interval"
        ))
    })?;
    Ok(Some(Frame { range: (from, to), has_start, windows }))
}

/// A range, with the window before it where a call needs that: in the order of the answer.
fn widened(query: &Query, (from, to): (i64, i64)) -> (i64, i64) {
    match query.interval {
        Some(interval) if query.calls.iter().any(Call::looks_back) => {
            interval.widened((from, to), query.is_descending)
        }
        _ => (from, to),
    }
}

/// Refuses an answer that would be too large, as far as the registry tells.
fn check_size(query: &Query, frame: &Frame, series: &[Series<'_>]) -> Result<(), QueryError> {
    let groups: BTreeSet<(&str, Vec<&str>)> = series
        .iter()
        .map(|it| {
            let tags = query.dimensions.iter().map(|name| it.tag(name, it.room_now()));
            (it.measurement.as_str(), tags.collect())
        })
        .collect();
    let limit = query.series.limit;
    let groups = if limit == 0 { groups.len() } else { groups.len().min(limit) };
    if groups > MAX_SERIES {
        return Err(too_many_series(groups));
    }
    let values = groups * frame.windows.len() * query.columns.len();
    if values > MAX_VALUES { Err(too_many_values(values)) } else { Ok(()) }
}

/// Chooses what is read; `None` where no millisecond lies in the range.
fn plan<'a>(
    query: &Query,
    frame: &Frame,
    context: &Context<'a>,
    is_by_room: bool,
) -> Option<Plan<'a>> {
    let own = milliseconds(frame.range)?;
    let range = milliseconds(widened(query, frame.range))?;
    let way = way(query, is_by_room, frame);
    let mut edges: Vec<i64> = match way {
        Way::Rollups => frame.windows.clone(),
        Way::Readings | Way::Some(..) => Vec::new(),
    };
    edges.retain(|at| *at >= 0);
    let edges = edges.into_iter().filter_map(|at| Some(milliseconds((at, at))?.from()));
    // What only a call that looks back takes is in rows of its own.
    let edges = edges.chain([own.from(), own.to()].into_iter().filter(|_| own != range));
    let edges: BTreeSet<Timestamp> =
        edges.filter(|at| range.from() < *at && *at < range.to()).collect();
    let grid = Grid::between(range, edges);
    let Context { horizon, densities, now, .. } = *context;
    Some(Plan { way, range, grid, horizon, densities, is_by_room, now })
}

/// Rollups tell most aggregates; conditions on fields and points themselves take readings.
fn way(query: &Query, is_by_room: bool, frame: &Frame) -> Way {
    let has_field_condition = query.condition.as_ref().is_some_and(|condition| {
        condition::names(condition).iter().any(|(name, cast)| {
            *cast != Some(super::ast::Cast::Tag) && *name != ROOM && query.fields.contains(*name)
        })
    });
    let is_free = !has_field_condition && !is_by_room && query.interval.is_none();
    let order = |is_newest: bool| if is_newest { Order::Descending } else { Order::Ascending };
    if query.calls.is_empty() {
        let number = query.rows.limit.saturating_add(query.rows.offset);
        if is_free && query.rows.limit > 0 {
            return Way::Some(order(query.is_descending), number);
        }
        return Way::Readings;
    }
    if is_free && let [Call::Aggregate(call)] = &query.calls[..] {
        match call.aggregate {
            Aggregate::Last => return Way::Some(Order::Descending, 1),
            Aggregate::First => return Way::Some(Order::Ascending, 1),
            _ => {}
        }
    }
    let is_in_rollups = |call: &Call| call.aggregate().is_some_and(Aggregate::is_in_rollups);
    let is_whole = |at: &i64| at % super::duration::MILLISECOND == 0;
    let is_told = query.calls.iter().all(is_in_rollups)
        && !has_field_condition
        && !query.has_other_values()
        && frame.windows.iter().all(is_whole);
    if is_told { Way::Rollups } else { Way::Readings }
}

/// The devices that are read, and the metrics that are wanted of each.
fn wanted<'a>(series: &'a [Series<'a>], query: &Query) -> Vec<Wanted<'a>> {
    let mut devices: BTreeMap<&DeviceId, Wanted<'a>> = BTreeMap::new();
    for it in series {
        let device: &'a Device = it.device;
        let wanted = devices
            .entry(device.id())
            .or_insert_with(|| Wanted { device, metrics: BTreeSet::new() });
        let is_wanted = |field: &str| {
            let shows = |cell: &Shown| matches!(cell, Shown::Field(name) if name == field);
            query.calls.iter().any(|call| call.field() == field)
                || query.columns.iter().any(|column| column.cell.has(&shows))
        };
        let fields = it.fields.iter().filter(|(field, _)| is_wanted(field));
        wanted.metrics.extend(fields.map(|(_, metric)| *metric));
    }
    devices.into_values().collect()
}

/// The most rooms for which the devices that were there are looked up. Beyond it all devices are read.
const MAX_ROOMS: usize = 50;

/// Leaves out devices that were in none of the rooms for which the condition may hold.
async fn leave_out_absent<'a>(
    wanted: &mut Vec<Wanted<'a>>,
    series: &[Series<'a>],
    query: &Query,
    store: &impl Store,
    context: &Context<'_>,
    range: TimeRange,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let condition = query.condition.as_ref();
    let Context { snapshot, horizon, known_state, now, .. } = *context;
    // Of each device the rooms in which it would be wanted; `None` where it is wanted wherever it was.
    let rooms_of = |it: &Wanted<'a>| {
        let own: Vec<&Series<'a>> =
            series.iter().filter(|series| series.device.id() == it.device.id()).collect();
        let may_be_in =
            |room: Option<&RoomId>| own.iter().any(|it| may_hold(it, room, true, condition));
        let rooms: BTreeSet<RoomId> =
            snapshot.rooms.keys().filter(|room| may_be_in(Some(room))).cloned().collect();
        let is_anywhere = may_be_in(None) || rooms.len() == snapshot.rooms.len();
        (!is_anywhere).then_some(rooms)
    };
    let asked: Vec<(Wanted<'a>, Option<BTreeSet<RoomId>>)> = std::mem::take(wanted)
        .into_iter()
        .map(|it| (rooms_of(&it), it))
        .map(|(r, w)| (w, r))
        .collect();
    let all: BTreeSet<&RoomId> = asked.iter().filter_map(|(_, it)| it.as_ref()).flatten().collect();
    if all.len() > MAX_ROOMS {
        wanted.extend(asked.into_iter().map(|(it, _)| it));
        return Ok(());
    }
    let known = (known_state, horizon);
    let knowledge = presence::knowledge(store, known, snapshot, range, now, invocation).await?;
    let seen = match knowledge {
        Knowledge::Noted => presence::seen(store, all, range, invocation).await?,
        Knowledge::AllAsked | Knowledge::NotedInPart | Knowledge::NotedAlone => BTreeMap::new(),
    };
    let asked = asked.into_iter().map(|(it, rooms)| {
        let seen = &seen;
        Box::pin(async move {
            let Some(rooms) = rooms else { return Ok(Some(it)) };
            let is_now = it.device.place().room().is_some_and(|room| rooms.contains(room));
            let is_seen =
                |room: &RoomId| seen.get(room).is_some_and(|it_| it_.contains(it.device.id()));
            let is_there = match knowledge {
                Knowledge::Noted => is_now || rooms.iter().any(is_seen),
                // Of a device that is asked in vain nothing is lost but units.
                Knowledge::NotedInPart | Knowledge::NotedAlone => true,
                Knowledge::AllAsked => {
                    may_have_been_in(store, it.device, &rooms, range, horizon, invocation).await?
                }
            };
            Ok::<_, Failure>(is_there.then_some(it))
        })
    });
    let asked: Vec<_> = asked.collect();
    let kept: Vec<_> = stream::iter(asked).buffered(DEVICE_CONCURRENCY).try_collect().await?;
    wanted.extend(kept.into_iter().flatten());
    Ok(())
}
