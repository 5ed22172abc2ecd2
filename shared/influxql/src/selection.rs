//! A `SELECT` on devices: its series, the data to read, and its rows. Reads nothing.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Device, DeviceId, MetricName, Order, Reading, RoomId, TimeRange, Timestamp};

use crate::compile::{CheckedSelect, ColumnContent};
use crate::condition::{add_compared, nanoseconds};
use crate::duration::{MILLISECOND, SECOND};
use crate::error::{MAX_SERIES, MAX_VALUES, QueryError, too_many_series, too_many_values};
use crate::extreme::{Extreme, extremes};
use crate::function::{FunctionCall, PointAggregate};
use crate::group::{DeviceData, PointGroup, PointGrouping, counts, may_hold, may_hold_in};
use crate::room_tag::{ROOM, RoomTexts, room_of};
use crate::rows::Rows;
use crate::series::{SeriesField, TaggedSeries};
use crate::table::{Frame, Span, rows};
use crate::windows::InstantRange;

/// The shortest windows that rollups can serve: a quarter of an hour.
const MIN_ROLLED_UP: i64 = 900 * SECOND;

/// The way in which the data of a `SELECT` are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadWay {
    /// All readings of the range.
    Readings,
    /// Rollups of windows, and readings where there are no rollups.
    Rollups,
    /// The newest or the oldest readings, until each metric has this number of values.
    NewestOrOldest(Order, usize),
}

/// A device, and the metrics that are read of this device.
#[derive(Debug)]
pub struct WantedDevice<'a> {
    /// The device.
    pub device: &'a Device,
    pub(crate) metrics: BTreeSet<&'a MetricName>,
}

impl<'a> WantedDevice<'a> {
    /// The metrics that have fewer than `number` values in the readings found so far.
    pub fn lacking(&self, found: &[Reading], number: usize) -> Vec<&'a MetricName> {
        let has = |reading: &&Reading, metric: &MetricName| {
            let value = reading.metrics().get(metric);
            value.is_some_and(|value| counts(self.device, metric, value))
        };
        let metrics = self.metrics.iter().copied();
        metrics
            .filter(|metric| found.iter().filter(|reading| has(reading, metric)).count() < number)
            .collect()
    }
}

/// A checked `SELECT` on devices, with its series.
#[derive(Debug)]
pub struct DeviceSelection<'a> {
    /// The way in which the data are read.
    pub way: ReadWay,
    /// The range in which the data are read.
    pub range: TimeRange,
    /// The times inside the range that no rollup may span, such as the starts of windows.
    pub cuts: BTreeSet<Timestamp>,
    /// Whether points in different rooms are told apart.
    pub is_by_room: bool,
    pub(crate) query: CheckedSelect,
    series: Vec<TaggedSeries<'a>>,
    frame: Frame,
}

/// A group of points that becomes a series of rows.
#[derive(Debug)]
pub struct OutGroup<'a> {
    /// The time of a `min` or `max` of rollups, which have only the value; the time is read from the readings. `None`
    /// for all other groups.
    pub instant: Option<Timestamp>,
    pub(crate) measurement: &'a str,
    pub(crate) tags: Vec<String>,
    pub(crate) points: PointGroup<'a>,
}

impl<'a> DeviceSelection<'a> {
    /// Plans what is read for a query on series. Returns `None` if the answer is empty, whatever readings there are.
    ///
    /// Refuses an answer that would be too large, judging by the registry.
    pub(crate) fn of(
        mut query: CheckedSelect,
        mut series: Vec<TaggedSeries<'a>>,
        is_subquery: bool,
        now: Timestamp,
    ) -> Result<Option<Self>, QueryError> {
        series.retain(|series| is_needed(series, &query));
        let devices = series.iter().flat_map(|series| &series.devices);
        let Some(first) = devices.map(|device| device.first_seen()).min() else { return Ok(None) };
        if query.is_of_last() && has_price(&series, &query) {
            query.range.to.get_or_insert(nanoseconds(now));
        }

        let span = Span { earliest: nanoseconds(first.min(now)), is_subquery };
        let Some(frame) = Frame::of(&query, span, false)? else { return Ok(None) };
        if !is_subquery {
            check_size(&query, &frame, &series)?;
        }

        let is_by_room = series.iter().any(TaggedSeries::has_rooms) && query.uses_tag(ROOM);
        let way = way(&query, &series, is_by_room, &frame);

        let own = milliseconds(frame.range);
        let (Some(own), Some(range)) = (own, milliseconds(query.widened(frame.range))) else {
            return Ok(None);
        };

        let edges = query.interval.iter().flat_map(|interval| interval.edges(&frame.windows));
        let edges = edges.filter(|at| way == ReadWay::Rollups && *at >= 0);
        let starts =
            edges.filter_map(|at| Some(milliseconds(InstantRange { from: at, last: at })?.from()));
        // Some calls need windows before the range. No rollup may span the edge between these and the range.
        let cuts = starts.chain([own.from(), own.to()].into_iter().filter(|_| own != range));
        let cuts = cuts.filter(|at| range.from() < *at && *at < range.to()).collect();
        Ok(Some(Self { way, range, cuts, is_by_room, query, series, frame }))
    }

    /// The devices that are read, by id.
    pub fn wanted(&self) -> Vec<WantedDevice<'a>> {
        let mut devices: BTreeMap<&DeviceId, WantedDevice<'a>> = BTreeMap::new();
        for it in &self.series {
            for SeriesField { device, metric } in
                self.query.fields.iter().filter_map(|name| it.field(name))
            {
                let metrics = BTreeSet::new();
                let wanted = devices.entry(device.id()).or_insert(WantedDevice { device, metrics });
                wanted.metrics.insert(metric);
            }
        }
        devices.into_values().collect()
    }

    /// For each device, the rooms in which the condition may hold. A device is left out if the condition may hold in
    /// any room, even an unregistered one. Returns `None` if there are more than `most` rooms, or if the condition has
    /// a pattern that may match unknown rooms.
    pub fn rooms_by_device(
        &self,
        registered: &RoomTexts<'_>,
        most: usize,
    ) -> Option<BTreeMap<&'a DeviceId, BTreeSet<RoomId>>> {
        let condition = self.query.condition.as_ref();
        let mut named = BTreeSet::new();
        if !condition.is_none_or(|condition| add_compared(condition, ROOM, &mut named)) {
            return None;
        }

        // A condition names a room by its id or by its text in line protocol.
        let ids = named.iter().flat_map(|text| [text.parse().ok(), room_of(text)]);
        let named: BTreeSet<RoomId> = ids.flatten().collect();
        // Any room that the condition does not name stands for all such rooms.
        let mut others = (0..).filter_map(|n| format!("room-{n}").parse::<RoomId>().ok());
        let other = others.find(|room| !named.contains(room))?;

        // Most conditions name few rooms. Only rooms in which the condition may hold are tried for each device.
        let mut possible: BTreeSet<&RoomId> = named.iter().collect();
        for (room, text) in registered.iter() {
            if [text, room.as_str()].into_iter().any(|text| may_hold_in(text, condition)) {
                possible.insert(room);
            }
        }

        let mut own: BTreeMap<&DeviceId, Vec<&TaggedSeries<'a>>> = BTreeMap::new();
        for it in &self.series {
            for device in &it.devices {
                own.entry(device.id()).or_default().push(it);
            }
        }

        let (mut found, mut all) = (BTreeMap::new(), BTreeSet::new());
        for (device, series) in own {
            let may_be_in = |room: Option<&RoomId>| {
                series.iter().any(|series| may_hold(series, room, true, condition))
            };
            if may_be_in(None) || may_be_in(Some(&other)) {
                continue;
            }

            let taught = series.iter().flat_map(|series| series.room_tag.taught());
            let inside = possible.iter().copied().chain(taught.map(|room| &room.id));
            let inside: BTreeSet<RoomId> =
                inside.filter(|room| may_be_in(Some(room))).cloned().collect();

            all.extend(inside.iter().cloned());
            if all.len() > most {
                return None;
            }
            found.insert(device, inside);
        }

        Some(found)
    }

    /// The groups of the answer, by measurement and tags, made from the data of each device.
    pub fn groups<'s>(
        &'s self,
        found: &'s BTreeMap<DeviceId, DeviceData>,
    ) -> impl Iterator<Item = OutGroup<'s>> {
        const NOTHING: &DeviceData = &DeviceData::Readings(Vec::new());
        let CheckedSelect { dimensions, condition, series: series_page, fields, .. } = &self.query;
        let grouping = PointGrouping {
            fields,
            dimensions,
            condition: condition.as_ref(),
            is_by_room: self.is_by_room,
        };

        let data_of = |device: &&Device| found.get(device.id()).unwrap_or(NOTHING);
        let measurements = self.series.chunk_by(|a, b| a.measurement == b.measurement);
        measurements.flat_map(move |of_measurement| {
            let with_data: Vec<_> = of_measurement
                .iter()
                .map(|series| (series, series.devices.iter().map(data_of).collect()))
                .collect();
            let groups = series_page.of_groups(grouping.of_series(&with_data));
            let measurement = of_measurement[0].measurement.as_str();

            let group = move |(tags, points)| OutGroup { instant: None, measurement, tags, points };
            groups.into_iter().map(group)
        })
    }

    /// The rollups with the smallest or largest value of a group, oldest first; empty if the query selects no such
    /// value.
    pub fn extremes<'g>(&self, group: &OutGroup<'g>) -> Vec<Extreme<'g>> {
        extremes(&self.query, &group.points)
    }

    /// An answer that has no series yet.
    pub const fn answer(&self) -> Answer<'_> {
        Answer::new(&self.query, &self.frame)
    }
}

/// The rows of a `SELECT`, collected group by group.
#[derive(Debug)]
pub struct Answer<'a> {
    query: &'a CheckedSelect,
    frame: &'a Frame,
    series: Vec<Rows>,
    values: usize,
}

impl<'a> Answer<'a> {
    /// An answer that has no series yet.
    pub(crate) const fn new(query: &'a CheckedSelect, frame: &'a Frame) -> Self {
        Self { query, frame, series: Vec::new(), values: 0 }
    }

    /// Adds the rows of a group. Refuses more values than an answer may have.
    pub fn add(&mut self, group: OutGroup<'_>) -> Result<(), QueryError> {
        let Self { query, frame, .. } = *self;
        let rows = rows(query, frame, &group.points, group.instant.map(nanoseconds));
        self.values += rows.len() * query.columns.len();
        if self.values > MAX_VALUES {
            return Err(too_many_values(self.values));
        }

        if !rows.is_empty() {
            self.series.push(Rows {
                measurement: group.measurement.to_owned(),
                tags: query.dimensions.iter().cloned().zip(group.tags).collect(),
                columns: query.columns.iter().map(|column| column.name.clone()).collect(),
                list: rows,
            });
        }

        Ok(())
    }

    /// The collected rows. Refuses more series than an answer may have.
    pub fn finish(self) -> Result<Vec<Rows>, QueryError> {
        let number = self.series.len();
        if number > MAX_SERIES { Err(too_many_series(number)) } else { Ok(self.series) }
    }
}

/// Whether points of a series can be in the answer.
fn is_needed(series: &TaggedSeries<'_>, query: &CheckedSelect) -> bool {
    let has = |field: &str| series.field(field).is_some();
    let shows = |cell: &ColumnContent| matches!(cell, ColumnContent::Field(name) if has(name));
    let has_field = query.calls.iter().any(|call| has(call.field()))
        || query.calls.is_empty() && query.columns.iter().any(|column| column.cell.has(&shows));
    has_field && may_hold(series, None, false, query.condition.as_ref())
}

/// Whether one of the fields is a price. Prices are stored in advance, and `last` selects the price that holds now.
fn has_price(series: &[TaggedSeries<'_>], query: &CheckedSelect) -> bool {
    let mut fields =
        series.iter().flat_map(|series| query.fields.iter().filter_map(|name| series.field(name)));
    fields.any(|field| field.metric.is_price())
}

/// Refuses an answer that would be too large, judging by the registry.
fn check_size(
    query: &CheckedSelect,
    frame: &Frame,
    series: &[TaggedSeries<'_>],
) -> Result<(), QueryError> {
    let groups: BTreeSet<(&str, Vec<&str>)> = series
        .iter()
        .map(|series| {
            let tags = query.dimensions.iter().map(|name| series.tag(name, series.room_now()));
            (series.measurement.as_str(), tags.collect())
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

/// Chooses how data are read. Rollups serve most aggregates; conditions on fields, and points themselves, need
/// readings.
fn way(
    query: &CheckedSelect,
    series: &[TaggedSeries<'_>],
    is_by_room: bool,
    frame: &Frame,
) -> ReadWay {
    let has_field_condition = query.has_field_condition;
    let is_free = !has_field_condition && !is_by_room && query.interval.is_none();
    let order = |is_newest: bool| if is_newest { Order::Descending } else { Order::Ascending };
    if query.calls.is_empty() {
        if is_free && query.rows.limit > 0 {
            return ReadWay::NewestOrOldest(order(query.is_descending), query.rows.end());
        }
        return ReadWay::Readings;
    }

    // The newest readings of two devices may have different timestamps, so they would not be joined to one point.
    let is_joined =
        || series.iter().any(|series| series.devices.len() > 1) && query.has_other_values();
    if is_free
        && let [FunctionCall::PointAggregate(call)] = &query.calls[..]
        && !is_joined()
    {
        match call.aggregate {
            PointAggregate::Last => return ReadWay::NewestOrOldest(Order::Descending, 1),
            PointAggregate::First => return ReadWay::NewestOrOldest(Order::Ascending, 1),
            _ => {}
        }
    }

    let is_in_rollups =
        |call: &FunctionCall| call.aggregate().is_some_and(|of| of.in_rollups().is_some());
    let is_whole = |at: &i64| at % MILLISECOND == 0;
    let has_rollups = query.calls.iter().all(is_in_rollups)
        && !has_field_condition
        && !query.has_other_values()
        && query
            .interval
            .is_none_or(|interval| interval.is_regular() && interval.length >= MIN_ROLLED_UP)
        && frame.windows.iter().all(is_whole);
    if has_rollups { ReadWay::Rollups } else { ReadWay::Readings }
}

/// The whole milliseconds in a range; `None` if there are no whole milliseconds.
fn milliseconds(range: InstantRange) -> Option<TimeRange> {
    let InstantRange { from, last } = range;
    let bounded = |millis: i64| {
        let millis = millis.clamp(Timestamp::MIN.as_millis(), Timestamp::MAX.as_millis());
        Timestamp::from_millis(millis).expect("held within the years of a timestamp")
    };
    let first = from.div_euclid(MILLISECOND) + i64::from(from.rem_euclid(MILLISECOND) > 0);
    TimeRange::new(bounded(first), bounded(last.div_euclid(MILLISECOND).saturating_add(1))).ok()
}
