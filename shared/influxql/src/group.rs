//! The points of a measurement by the tags of `GROUP BY`. Computes no value.

use std::collections::BTreeMap;

use domain::{Decimal, Device, MetricKind, MetricName, Reading, Rollup, RoomId, TimeRange};

use crate::ast::{Cast, Expression};
use crate::condition::{Operand, Verdict, holds, nanoseconds};
use crate::series::{ROOM, Series};

/// The points of a series that have the same tags.
#[derive(Debug)]
pub(crate) struct Instance<'a> {
    pub(crate) series: &'a Series<'a>,
    room: Option<&'a RoomId>,
}

/// A reading as a point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// Nanoseconds since 1970.
    pub(crate) at: i64,
    pub(crate) reading: &'a Reading,
    /// The place of its instance in the group.
    instance: usize,
}

/// The points of some instances, as readings or as rollups.
#[derive(Debug, Default)]
pub(crate) struct Group<'a> {
    instances: Vec<Instance<'a>>,
    /// In the order of time, then of the instances.
    pub(crate) rows: Vec<Row<'a>>,
    pub(crate) pieces: Vec<RolledUp<'a>>,
}

/// The rollup of some readings of an instance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RolledUp<'a> {
    pub(crate) range: TimeRange,
    pub(crate) rollup: &'a Rollup,
    instance: usize,
}

/// The readings of a device, or their rollups.
#[derive(Debug)]
pub enum Found {
    /// Readings, oldest first.
    Readings(Vec<Reading>),
    /// Rollups, each with the time of its readings.
    Pieces(Vec<(TimeRange, Rollup)>),
}

/// A decimal as the float of an answer.
pub(crate) fn float(decimal: &Decimal) -> f64 {
    decimal.as_str().parse().expect("a decimal's text is a number")
}

/// Whether functions take a value of a metric.
pub(crate) fn counts(device: &Device, metric: &MetricName, value: &Decimal) -> bool {
    let is_counter = device
        .metrics()
        .get(metric)
        .is_some_and(|info| info.kind == MetricKind::Counter && !info.is_net);
    !is_counter || value.is_positive()
}

impl<'a> Instance<'a> {
    /// A tag; empty where it is lacking.
    pub(crate) fn tag(&self, name: &str) -> &str {
        self.series.tag(name, self.room)
    }

    /// The metric of a field.
    pub(crate) fn metric(&self, field: &str) -> Option<&'a MetricName> {
        self.series.fields.get(field).copied()
    }

    fn field(&self, reading: &Reading, field: &str) -> Option<f64> {
        reading.metrics().get(self.metric(field)?).map(float)
    }

    /// All tags, for the order of points of one time.
    fn tags(&self) -> Vec<(&str, &str)> {
        let mut tags: Vec<_> = self.series.keys().map(|key| (key, self.tag(key))).collect();
        tags.sort_unstable();
        tags
    }
}

impl<'a> Group<'a> {
    /// A field of a point.
    pub(crate) fn field(&self, row: &Row<'a>, name: &str) -> Option<f64> {
        self.instances[row.instance].field(row.reading, name)
    }

    /// A field of a point, as functions take it: of a counter zero and negative values take no part, as in rollups.
    pub(crate) fn counted(&self, row: &Row<'a>, name: &str) -> Option<f64> {
        let instance = &self.instances[row.instance];
        let metric = instance.metric(name)?;
        let value = row.reading.metrics().get(metric)?;
        counts(instance.series.device, metric, value).then(|| float(value))
    }

    /// A tag of a point; empty where it is lacking.
    pub(crate) fn tag(&self, row: &Row<'a>, name: &str) -> &str {
        self.instances[row.instance].tag(name)
    }

    /// The rollup of a field in a piece.
    pub(crate) fn rolled_up(
        &self,
        piece: &RolledUp<'a>,
        field: &str,
    ) -> Option<&'a domain::MetricRollup> {
        piece.rollup.metrics.get(self.instances[piece.instance].metric(field)?)
    }

    /// The device and the metric of a field in a piece.
    pub(crate) fn origin(
        &self,
        piece: &RolledUp<'a>,
        field: &str,
    ) -> Option<(&'a Device, &'a MetricName)> {
        let instance = &self.instances[piece.instance];
        Some((instance.series.device, instance.metric(field)?))
    }

    fn place(&mut self, of: Instance<'a>) -> usize {
        let is_same = |it: &Instance<'a>| std::ptr::eq(it.series, of.series) && it.room == of.room;
        // Points of one instance mostly come one after the other.
        self.instances.iter().rposition(is_same).unwrap_or_else(|| {
            self.instances.push(of);
            self.instances.len() - 1
        })
    }

    fn sort(&mut self) {
        let mut order: Vec<usize> = (0..self.instances.len()).collect();
        order.sort_by(|a, b| self.instances[*a].tags().cmp(&self.instances[*b].tags()));
        let mut ranks = vec![0; order.len()];
        for (rank, instance) in order.into_iter().enumerate() {
            ranks[instance] = rank;
        }
        self.rows.sort_by_key(|row| (row.at, ranks[row.instance]));
    }
}

/// The groups of a measurement, by the values of the dimensions.
pub(crate) type Groups<'a> = BTreeMap<Vec<String>, Group<'a>>;

/// Groups the points of the series for which the condition holds.
pub(crate) fn grouped<'a>(
    series: &[(&'a Series<'a>, &'a Found)],
    dimensions: &[String],
    condition: Option<&Expression>,
    is_by_room: bool,
) -> Groups<'a> {
    let mut groups = Groups::new();
    for (series, found) in series {
        match found {
            Found::Readings(readings) => {
                for reading in readings {
                    let has_field =
                        series.fields.values().any(|it| reading.metrics().contains_key(*it));
                    let room = reading.room.as_ref().filter(|_| is_by_room);
                    let instance = Instance { series, room };
                    if has_field && is_wanted(&instance, Some(reading), condition) {
                        let (group, instance) = group_of(&mut groups, instance, dimensions);
                        let at = nanoseconds(reading.at);
                        group.rows.push(Row { at, reading, instance });
                    }
                }
            }
            Found::Pieces(pieces) => {
                for (range, rollup) in pieces {
                    let room = rollup.rooms.iter().next().and_then(Option::as_ref);
                    let room = room.filter(|_| is_by_room);
                    let instance = Instance { series, room };
                    if is_wanted(&instance, None, condition) {
                        let (group, instance) = group_of(&mut groups, instance, dimensions);
                        group.pieces.push(RolledUp { range: *range, rollup, instance });
                    }
                }
            }
        }
    }
    groups.values_mut().for_each(Group::sort);
    groups
}

/// The group of an instance, and its place there.
fn group_of<'g, 'a>(
    groups: &'g mut Groups<'a>,
    instance: Instance<'a>,
    dimensions: &[String],
) -> (&'g mut Group<'a>, usize) {
    let key: Vec<String> = dimensions.iter().map(|name| instance.tag(name).to_owned()).collect();
    let group = groups.entry(key).or_default();
    let place = group.place(instance);
    (group, place)
}

fn is_wanted(
    instance: &Instance<'_>,
    reading: Option<&Reading>,
    condition: Option<&Expression>,
) -> bool {
    let Some(condition) = condition else { return true };
    let look_up = |name: &str, cast: Option<Cast>| -> Operand<'_> {
        if cast != Some(Cast::Tag) && instance.metric(name).is_some() {
            let number = reading.and_then(|reading| instance.field(reading, name));
            return number.map_or(Operand::Missing, Operand::Number);
        }
        Operand::Text(instance.tag(name).to_owned().into())
    };
    holds(condition, &look_up) == Verdict::Yes
}

/// Tells whether a condition may hold for points of a series, as far as its own tags tell.
pub(crate) fn may_hold(
    series: &Series<'_>,
    room: Option<&RoomId>,
    is_room_known: bool,
    condition: Option<&Expression>,
) -> bool {
    let Some(condition) = condition else { return true };
    let look_up = |name: &str, cast: Option<Cast>| -> Operand<'_> {
        let is_field = cast != Some(Cast::Tag) && series.fields.contains_key(name);
        let is_open = series.has_rooms && name == ROOM && !is_room_known;
        if is_field || is_open {
            return Operand::Unknown;
        }
        Operand::Text(series.tag(name, room).to_owned().into())
    };
    holds(condition, &look_up) != Verdict::No
}
