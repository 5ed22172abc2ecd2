//! A `SELECT` on the devices that there are: which series it is about, what is read for it, and the series of its
//! answer. Reads nothing.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Device, DeviceId, Order, RoomId, TimeRange, Timestamp};

use crate::answer::{OutSeries, OutValue, Outcome};
use crate::ast::{Cast, Select};
use crate::compile::{Query, Shown, compile};
use crate::condition::{self, nanoseconds};
use crate::duration::MILLISECOND;
use crate::error::QueryError;
use crate::extreme::{Extreme, extremes};
use crate::function::{Aggregate, Call};
use crate::group::{Found, Group, grouped, may_hold};
use crate::series::{ROOM, Schema, Series, series_of_all};
use crate::table::{Frame, rows};
use crate::wanted::{Wanted, Way};
use crate::windows::MAX_WINDOWS;

/// The series of an answer.
const MAX_SERIES: usize = 500;
/// The values of an answer.
const MAX_VALUES: usize = 100_000;

/// A `SELECT` that is checked, with the series that it is about.
#[derive(Debug)]
pub struct Selection<'a> {
    /// The way in which its data are read.
    pub way: Way,
    /// The range in which its data lie.
    pub range: TimeRange,
    /// The timestamps inside the range at which rollups are parted.
    pub cuts: BTreeSet<Timestamp>,
    /// Whether points are told apart by the room of their reading.
    pub is_by_room: bool,
    query: Query,
    series: Vec<Series<'a>>,
    frame: Frame,
}

/// A group of points that becomes a series of the answer.
#[derive(Debug)]
pub struct OutGroup<'a> {
    /// The instant of the one smallest or largest value, where rollups have the value and readings tell the instant.
    pub instant: Option<Timestamp>,
    measurement: &'a str,
    tags: Vec<String>,
    points: Group<'a>,
}

impl<'a> Selection<'a> {
    /// Checks a `SELECT` against all devices. `policy` is the retention policy of the request, for measurements that
    /// name none. Returns `None` if the answer is empty whatever has been measured.
    ///
    /// Refuses an answer that would be too large, as far as the registry tells.
    pub fn of(
        select: &Select,
        devices: impl Iterator<Item = &'a Device>,
        policy: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<Self>, QueryError> {
        let mut series = series_of_all(devices, policy, &select.sources)?;
        let query = compile(select, &Schema::of(&series), now)?;
        series.retain(|it| is_needed(it, &query));
        let Some(frame) = frame(&query, &series, now)? else { return Ok(None) };
        check_size(&query, &frame, &series)?;
        let is_by_room = series.iter().any(|it| it.has_rooms) && query.uses_tag(ROOM);
        let way = way(&query, is_by_room, &frame);
        let own = milliseconds(frame.range);
        let (Some(own), Some(range)) = (own, milliseconds(widened(&query, frame.range))) else {
            return Ok(None);
        };
        let windows = frame.windows.iter().filter(|at| way == Way::Rollups && **at >= 0);
        let starts = windows.filter_map(|at| Some(milliseconds((*at, *at))?.from()));
        // What only a call that looks back takes is in rows of its own.
        let cuts = starts.chain([own.from(), own.to()].into_iter().filter(|_| own != range));
        let cuts = cuts.filter(|at| range.from() < *at && *at < range.to()).collect();
        Ok(Some(Self { way, range, cuts, is_by_room, query, series, frame }))
    }

    /// The devices that are read, by id.
    #[must_use]
    pub fn wanted(&self) -> Vec<Wanted<'a>> {
        let query = &self.query;
        let mut devices: BTreeMap<&DeviceId, Wanted<'a>> = BTreeMap::new();
        for it in &self.series {
            let device = it.device;
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

    /// The rooms for whose points of a device the condition may hold; `None` if it may hold wherever the device was.
    #[must_use]
    pub fn rooms_of<'r>(
        &self,
        device: &Device,
        rooms: impl Iterator<Item = &'r RoomId>,
    ) -> Option<BTreeSet<RoomId>> {
        let own: Vec<_> = self.series.iter().filter(|it| it.device.id() == device.id()).collect();
        let condition = self.query.condition.as_ref();
        let may_be_in =
            |room: Option<&RoomId>| own.iter().any(|it| may_hold(it, room, true, condition));
        if may_be_in(None) {
            return None;
        }
        let (inside, outside): (BTreeSet<RoomId>, BTreeSet<RoomId>) =
            rooms.cloned().partition(|room| may_be_in(Some(room)));
        (!outside.is_empty()).then_some(inside)
    }

    /// The groups of the answer, by measurement and tags, of what was found of each device.
    pub fn groups<'s>(
        &'s self,
        found: &'s BTreeMap<DeviceId, Found>,
    ) -> impl Iterator<Item = OutGroup<'s>> {
        let Query { dimensions, condition, series: page, .. } = &self.query;
        let measurements = self.series.chunk_by(|a, b| a.measurement == b.measurement);
        measurements.flat_map(move |series| {
            let found = series.iter().filter_map(|it| Some((it, found.get(it.device.id())?)));
            let found: Vec<_> = found.collect();
            let groups = grouped(&found, dimensions, condition.as_ref(), self.is_by_room);
            // As InfluxDB has it, SOFFSET without SLIMIT leaves nothing.
            let has_groups = page.limit > 0 || page.offset == 0;
            let groups = page.of(groups.into_iter().filter(|_| has_groups).collect());
            let measurement = series[0].measurement.as_str();
            let group = move |(tags, points)| OutGroup { instant: None, measurement, tags, points };
            groups.into_iter().map(group)
        })
    }

    /// The rollups that have the one smallest or largest value of a group, oldest first; empty if the query does not
    /// ask for one.
    #[must_use]
    pub fn extremes<'g>(&self, group: &OutGroup<'g>) -> Vec<Extreme<'g>> {
        extremes(&self.query, &group.points)
    }

    /// An answer that has no series yet.
    #[must_use]
    pub const fn answer(&self) -> Answer<'_> {
        Answer { selection: self, series: Vec::new(), values: 0 }
    }
}

/// The answer to a `SELECT` while it is made.
#[derive(Debug)]
pub struct Answer<'a> {
    selection: &'a Selection<'a>,
    series: Vec<OutSeries>,
    values: usize,
}

impl Answer<'_> {
    /// Adds the rows of a group. Refuses more values than an answer has.
    pub fn add(&mut self, group: OutGroup<'_>) -> Result<(), QueryError> {
        let Selection { query, frame, .. } = self.selection;
        let rows = rows(query, frame, &group.points, group.instant.map(nanoseconds));
        self.values += rows.len() * query.columns.len();
        if self.values > MAX_VALUES {
            return Err(too_many_values(self.values));
        }
        if rows.is_empty() {
            return Ok(());
        }
        let rows = rows.into_iter().map(|(at, cells)| {
            [OutValue::Time(at)].into_iter().chain(cells.into_iter().map(OutValue::from)).collect()
        });
        let names = query.columns.iter().map(|column| column.name.clone());
        self.series.push(OutSeries {
            name: Some(group.measurement.to_owned()),
            tags: query.dimensions.iter().cloned().zip(group.tags).collect(),
            columns: [query.time.clone()].into_iter().chain(names).collect(),
            rows: rows.collect(),
            zone: query.zone,
        });
        Ok(())
    }

    /// The result of the statement. Refuses more series than an answer has.
    pub fn finish(mut self, warning: Option<String>) -> Result<Outcome, QueryError> {
        if self.selection.query.is_descending {
            self.series.reverse();
        }
        if self.series.len() > MAX_SERIES {
            return Err(too_many_series(self.series.len()));
        }
        Ok(Outcome::Done { series: self.series, warning })
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

/// Rollups tell most aggregates; conditions on fields and points themselves take readings.
fn way(query: &Query, is_by_room: bool, frame: &Frame) -> Way {
    let has_field_condition = query.condition.as_ref().is_some_and(|condition| {
        condition::names(condition).iter().any(|(name, cast)| {
            *cast != Some(Cast::Tag) && *name != ROOM && query.fields.contains(*name)
        })
    });
    let is_free = !has_field_condition && !is_by_room && query.interval.is_none();
    let order = |is_newest: bool| if is_newest { Order::Descending } else { Order::Ascending };
    if query.calls.is_empty() {
        if is_free && query.rows.limit > 0 {
            return Way::Some(order(query.is_descending), query.rows.end());
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
    let is_whole = |at: &i64| at % MILLISECOND == 0;
    let is_told = query.calls.iter().all(is_in_rollups)
        && !has_field_condition
        && !query.has_other_values()
        && frame.windows.iter().all(is_whole);
    if is_told { Way::Rollups } else { Way::Readings }
}

/// The range between two nanoseconds, both inside, as whole milliseconds; `None` where nothing lies in it.
fn milliseconds((from, to): (i64, i64)) -> Option<TimeRange> {
    let bounded = |millis: i64| {
        let millis = millis.clamp(Timestamp::MIN.as_millis(), Timestamp::MAX.as_millis());
        Timestamp::from_millis(millis).expect("held within the years of a timestamp")
    };
    let first = from.div_euclid(MILLISECOND) + i64::from(from.rem_euclid(MILLISECOND) > 0);
    TimeRange::new(bounded(first), bounded(to.div_euclid(MILLISECOND).saturating_add(1))).ok()
}
