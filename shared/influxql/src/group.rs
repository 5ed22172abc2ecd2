//! Groups the points of a measurement by the tags of `GROUP BY`. Points come from readings, from rollups, or from rows
//! of a subquery. Computes no value.

use std::collections::BTreeMap;

use domain::{Decimal, Device, MetricKind, MetricName, Reading, Rollup, RoomId, TimeRange};

use crate::ast::{Cast, Expression};
use crate::condition::{Holds, Operand, holds, nanoseconds};
use crate::room_tag::ROOM;
use crate::rows::Rows;
use crate::series::{SeriesField, TaggedSeries};
use crate::value::Value;

/// The key of an instance: the index of its series, and the room of its points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InstanceKey<'a> {
    index: usize,
    room: Option<&'a RoomId>,
}

/// A series with its index among the grouped series.
#[derive(Debug, Clone, Copy)]
struct IndexedSeries<'a> {
    index: usize,
    series: &'a TaggedSeries<'a>,
}

/// An instance of a series: its points with the same tags.
#[derive(Debug)]
struct Instance<'a> {
    key: InstanceKey<'a>,
    tags: BTreeMap<&'a str, &'a str>,
    /// The metric of each field; rows of a subquery have no metrics.
    metrics: Vec<Option<SeriesField<'a>>>,
    /// For each field, whether functions ignore zero and negative values.
    is_counter: Vec<bool>,
}

/// A point.
#[derive(Debug, Clone)]
pub(crate) struct PointRow {
    /// Nanoseconds since 1970.
    pub(crate) at: i64,
    /// The values of the group's fields.
    values: Vec<Option<Value>>,
    /// The index of the point's instance in the group.
    instance: usize,
}

/// A group of a `GROUP BY`: the points of several instances, or their rollups.
#[derive(Debug)]
pub(crate) struct PointGroup<'a> {
    /// The names of the fields.
    fields: &'a [String],
    instances: Vec<Instance<'a>>,
    /// The points, sorted by time, then by instance.
    pub(crate) rows: Vec<PointRow>,
    pub(crate) pieces: Vec<RolledUp<'a>>,
}

/// A rollup of readings of an instance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RolledUp<'a> {
    pub(crate) range: TimeRange,
    pub(crate) rollup: &'a Rollup,
    device: &'a Device,
    instance: usize,
}

/// The readings of a device, or their rollups.
#[derive(Debug)]
pub enum DeviceData {
    /// Readings, oldest first.
    Readings(Vec<Reading>),
    /// Rollups, each with the time of its readings.
    Pieces(Vec<(TimeRange, Rollup)>),
}

/// A decimal as the float of an answer.
pub(crate) fn float(decimal: &Decimal) -> f64 {
    decimal.as_str().parse().expect("a decimal's text is a number")
}

/// Whether functions take a value of a metric into account. Values of zero or less of a counter do not count, unless it
/// is a net meter.
pub(crate) fn counts(device: &Device, metric: &MetricName, value: &Decimal) -> bool {
    !is_counter(device, metric) || value.is_positive()
}

/// Whether a metric is a counter that rises from zero, so that zero and negative values mean nothing.
fn is_counter(device: &Device, metric: &MetricName) -> bool {
    let info = device.metrics().get(metric);
    info.is_some_and(|info| info.kind == MetricKind::Counter && !info.is_net)
}

impl<'a> PointGroup<'a> {
    fn index(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field == name)
    }

    /// The value of a field of a point.
    pub(crate) fn field<'s>(&'s self, row: &'s PointRow, name: &str) -> Option<&'s Value> {
        row.values[self.index(name)?].as_ref()
    }

    /// The values of a field that count for functions, each with the index and the time of its point. Values of a
    /// counter that are zero or less do not count, as in rollups.
    pub(crate) fn counted<'s>(
        &'s self,
        name: &str,
    ) -> impl Iterator<Item = (usize, i64, &'s Value)> {
        let index = self.index(name);
        self.rows.iter().enumerate().filter_map(move |(n, row)| {
            let value = row.values[index?].as_ref()?;
            let is_counter = self.instances[row.instance].is_counter[index?];
            let is_nothing = is_counter && value.number().is_some_and(|number| number <= 0.0);
            (!is_nothing).then_some((n, row.at, value))
        })
    }

    /// The value of a tag of a point; empty if the point has no such tag.
    pub(crate) fn tag(&self, row: &PointRow, name: &str) -> &str {
        self.instances[row.instance].tag(name)
    }

    /// The rollup of a field, if `piece` has one.
    pub(crate) fn rolled_up(
        &self,
        piece: &RolledUp<'a>,
        field: &str,
    ) -> Option<&'a domain::MetricRollup> {
        piece.rollup.metrics.get(self.origin(piece, field)?.metric)
    }

    /// The device and the metric of a field, if `piece` is of this device.
    pub(crate) fn origin(&self, piece: &RolledUp<'a>, field: &str) -> Option<SeriesField<'a>> {
        let metric = self.instances[piece.instance].metrics[self.index(field)?]?;
        (metric.device.id() == piece.device.id()).then_some(metric)
    }

    fn sort(&mut self) {
        let mut order: Vec<usize> = (0..self.instances.len()).collect();
        order.sort_by(|a, b| self.instances[*a].tags.cmp(&self.instances[*b].tags));
        let mut ranks = vec![0; order.len()];
        for (rank, instance) in order.into_iter().enumerate() {
            ranks[instance] = rank;
        }
        self.rows.sort_by_key(|row| (row.at, ranks[row.instance]));
    }
}

impl<'a> Instance<'a> {
    fn of_series(of: IndexedSeries<'a>, room: Option<&'a RoomId>, fields: &[String]) -> Self {
        let series = of.series;
        let metrics: Vec<_> = fields.iter().map(|name| series.field(name)).collect();
        let is_of_counter = |field: &SeriesField<'_>| is_counter(field.device, field.metric);
        let tags = series.keys().map(|key| (key, series.tag(key, room)));

        Self {
            key: InstanceKey { index: of.index, room },
            tags: tags.filter(|(_, value)| !value.is_empty()).collect(),
            is_counter: metrics
                .iter()
                .map(|field| field.as_ref().is_some_and(is_of_counter))
                .collect(),
            metrics,
        }
    }

    fn of_rows(index: usize, rows: &'a Rows, fields: &[String]) -> Self {
        let tags = rows.tags.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        Self {
            key: InstanceKey { index, room: None },
            tags: tags.filter(|(_, value)| !value.is_empty()).collect(),
            metrics: vec![None; fields.len()],
            is_counter: vec![false; fields.len()],
        }
    }

    fn tag(&self, name: &str) -> &str {
        self.tags.get(name).copied().unwrap_or_default()
    }
}

/// The groups of a measurement, by the values of the dimensions.
pub(crate) type Groups<'a> = BTreeMap<Vec<String>, PointGroup<'a>>;

/// The fields, the dimensions and the condition by which points are selected and grouped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PointGrouping<'a> {
    /// The names of the fields that the statement uses.
    pub(crate) fields: &'a [String],
    pub(crate) dimensions: &'a [String],
    pub(crate) condition: Option<&'a Expression>,
    /// Whether points in different rooms are told apart.
    pub(crate) is_by_room: bool,
}

impl<'a> PointGrouping<'a> {
    /// Groups the points of series for which the condition holds. Each series comes with the data of its devices, in
    /// the order of the devices.
    pub(crate) fn of_series(
        self,
        series: &[(&'a TaggedSeries<'a>, Vec<&'a DeviceData>)],
    ) -> Groups<'a> {
        let mut groups = Groups::new();
        for (index, (series, found)) in series.iter().enumerate() {
            let indexed = IndexedSeries { index, series };
            let readings = found.iter().map(|found| match found {
                DeviceData::Readings(readings) => &readings[..],
                DeviceData::Pieces(_) => &[],
            });
            self.add_readings(&mut groups, indexed, &readings.collect::<Vec<_>>());
            for (device, found) in series.devices.iter().zip(found) {
                if let DeviceData::Pieces(pieces) = found {
                    self.add_pieces(&mut groups, indexed, device, pieces);
                }
            }
        }

        groups.values_mut().for_each(PointGroup::sort);
        groups
    }

    /// Groups the rows of subqueries for which the condition holds. With `is_in_time` the rows are sorted by time;
    /// otherwise they are in the order of the tables.
    pub(crate) fn of_rows(self, tables: &'a [&'a Rows], is_in_time: bool) -> Groups<'a> {
        let mut groups = Groups::new();
        for (index, table) in tables.iter().enumerate() {
            let key = InstanceKey { index, room: None };
            let columns: Vec<_> = self.fields.iter().map(|name| table.column(name)).collect();
            for row in &table.list {
                let value = |column: &Option<usize>| row.cells[(*column)?].clone();
                let values: Vec<_> = columns.iter().map(value).collect();
                let make = || Instance::of_rows(index, table, self.fields);
                let has_field = |name: &str| table.column(name).is_some();
                let tag = |name: &str| table.tag(name);
                if self.holds(&values, has_field, tag) {
                    let (group, instance) = self.instance(&mut groups, key, tag, make);
                    group.rows.push(PointRow { at: row.at, values, instance });
                }
            }
        }

        if is_in_time {
            groups.values_mut().for_each(PointGroup::sort);
        }
        groups
    }

    /// Adds the readings of a series' devices. Readings of the same timestamp become one point.
    fn add_readings(
        self,
        groups: &mut Groups<'a>,
        of: IndexedSeries<'a>,
        readings: &[&'a [Reading]],
    ) {
        let field = |name: &String| {
            let field = of.series.field(name)?;
            let is_of = |device: &&Device| device.id() == field.device.id();
            Some((of.series.devices.iter().position(is_of)?, field.metric))
        };
        let fields: Vec<_> = self.fields.iter().map(field).collect();

        let mut rest = readings.to_vec();
        while let Some(at) = rest.iter().filter_map(|readings| Some(readings.first()?.at)).min() {
            let take = |rest: &mut &'a [Reading]| {
                let (first, others) = rest.split_first().filter(|(first, _)| first.at == at)?;
                *rest = others;
                Some(first)
            };

            let point: Vec<Option<&'a Reading>> = rest.iter_mut().map(take).collect();
            let value = |field: &Option<(usize, &MetricName)>| {
                let (device, metric) = (*field)?;
                point[device]?.metrics().get(metric).map(|number| Value::Float(float(number)))
            };
            let values: Vec<_> = fields.iter().map(value).collect();
            if values.iter().all(Option::is_none) {
                continue;
            }

            let room = point.iter().flatten().find_map(|reading| reading.room.as_ref());
            if let Some((group, instance)) = self.instance_of_series(groups, of, room, &values) {
                group.rows.push(PointRow { at: nanoseconds(at), values, instance });
            }
        }
    }

    fn add_pieces(
        self,
        groups: &mut Groups<'a>,
        of: IndexedSeries<'a>,
        device: &'a Device,
        pieces: &'a [(TimeRange, Rollup)],
    ) {
        for (range, rollup) in pieces {
            let room = rollup.rooms.iter().next().and_then(Option::as_ref);
            if let Some((group, instance)) = self.instance_of_series(groups, of, room, &[]) {
                group.pieces.push(RolledUp { range: *range, rollup, device, instance });
            }
        }
    }

    /// The group and the instance of a point of a series; `None` if the condition does not hold for the point.
    fn instance_of_series<'g>(
        self,
        groups: &'g mut Groups<'a>,
        of: IndexedSeries<'a>,
        room: Option<&'a RoomId>,
        values: &[Option<Value>],
    ) -> Option<(&'g mut PointGroup<'a>, usize)> {
        let room = room.filter(|_| self.is_by_room);
        let make = || Instance::of_series(of, room, self.fields);
        let has_field = |name: &str| of.series.field(name).is_some();
        let tag = |name: &str| of.series.tag(name, room);
        let holds = self.holds(values, has_field, tag);
        holds.then(|| self.instance(groups, InstanceKey { index: of.index, room }, tag, make))
    }

    /// The group of an instance, and the index of the instance in the group.
    fn instance<'g>(
        self,
        groups: &'g mut Groups<'a>,
        key: InstanceKey<'_>,
        tag: impl Fn(&str) -> &'a str,
        make: impl Fn() -> Instance<'a>,
    ) -> (&'g mut PointGroup<'a>, usize) {
        let dimensions = self.dimensions.iter().map(|name| tag(name).to_owned());
        let group = groups.entry(dimensions.collect()).or_insert_with(|| PointGroup {
            fields: self.fields,
            instances: Vec::new(),
            rows: Vec::new(),
            pieces: Vec::new(),
        });

        // Points of one instance mostly come one after the other.
        let known = group.instances.iter().rposition(|instance| instance.key == key);
        let index = known.unwrap_or_else(|| {
            group.instances.push(make());
            group.instances.len() - 1
        });
        (group, index)
    }

    /// Tells whether the condition holds for a point.
    fn holds(
        self,
        values: &[Option<Value>],
        has_field: impl Fn(&str) -> bool,
        tag: impl Fn(&str) -> &'a str,
    ) -> bool {
        let Some(condition) = self.condition else { return true };

        let look_up = |name: &str, cast: Option<Cast>| -> Operand<'_> {
            if cast == Some(Cast::Tag) || !has_field(name) {
                return Operand::Text(tag(name).to_owned().into());
            }
            let index = self.fields.iter().position(|field| field == name);
            let value = index.and_then(|index| values.get(index)?.as_ref());
            match value {
                Some(Value::Text(text)) => Operand::Text(text.clone().into()),
                Some(value) => value.number().map_or(Operand::Missing, Operand::Number),
                None => Operand::Missing,
            }
        };
        holds(condition, &look_up) == Holds::Yes
    }
}

/// Whether a condition may hold for points of a series in `room`, judged by the tags of the series alone. Unless
/// `is_room_known`, the points may be in any room.
pub(crate) fn may_hold(
    series: &TaggedSeries<'_>,
    room: Option<&RoomId>,
    is_room_known: bool,
    condition: Option<&Expression>,
) -> bool {
    let Some(condition) = condition else { return true };
    let look_up = |name: &str, cast: Option<Cast>| -> Operand<'_> {
        let is_field = cast != Some(Cast::Tag) && series.field(name).is_some();
        let is_open = series.has_rooms() && name == ROOM && !is_room_known;
        if is_field || is_open {
            return Operand::Unknown;
        }
        Operand::Text(series.tag(name, room).to_owned().into())
    };
    holds(condition, &look_up) != Holds::No
}

/// Whether a condition may hold for a point whose tag `room` is this text, with any other tags and fields.
pub(crate) fn may_hold_in(room: &str, condition: Option<&Expression>) -> bool {
    let Some(condition) = condition else { return true };
    let look_up = |name: &str, _: Option<Cast>| match name {
        ROOM => Operand::Text(room.into()),
        _ => Operand::Unknown,
    };
    holds(condition, &look_up) != Holds::No
}
