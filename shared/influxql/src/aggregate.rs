//! Computes the values of windows, from points, or from rollups where rollups suffice. Does not apply `fill()` to
//! windows without values.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use domain::{Aggregate, Exact, MetricRollup};

use crate::condition::nanoseconds;
use crate::function::{AggregateCall, PointAggregate};
use crate::group::PointGroup;
use crate::value::{Value, float as float_of};
use crate::windows::{InstantRange, TimeWindows};

/// A value at a time; the result of a call is a list of samples.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimedValue {
    /// Nanoseconds since 1970.
    pub(crate) at: i64,
    /// `None` if there are points but no value, such as for the standard deviation of one point.
    pub(crate) value: Option<Value>,
    /// The index of the selected point in the group.
    pub(crate) row: Option<usize>,
}

/// A point of one field.
#[derive(Debug, Clone, Copy)]
struct FieldPoint {
    at: i64,
    /// The number; for a text, its index among the sorted texts.
    value: f64,
    row: usize,
}

/// The values of one field.
#[derive(Debug)]
struct FieldPoints {
    kind: FieldKind,
    /// The points, oldest first.
    list: Vec<FieldPoint>,
}

/// The kind of the values of a field.
#[derive(Debug)]
enum FieldKind {
    Float,
    /// Whole numbers, such as the counts of a subquery.
    Whole,
    /// Texts, such as the tags of a subquery. A value is the index of its text in this sorted list.
    Text(Vec<String>),
}

impl FieldKind {
    fn value(&self, number: f64) -> Value {
        #[expect(clippy::cast_possible_truncation, reason = "it is made of whole numbers")]
        let whole = number as i64;
        match self {
            Self::Float => Value::Float(number),
            Self::Whole => Value::Integer(whole),
            Self::Text(texts) => {
                let text = usize::try_from(whole).ok().and_then(|index| texts.get(index));
                Value::Text(text.cloned().unwrap_or_default())
            }
        }
    }
}

fn points(group: &PointGroup<'_>, field: &str, range: InstantRange) -> FieldPoints {
    let is_inside = |at: &i64| (range.from..=range.last).contains(at);
    let found: Vec<_> = group.counted(field).filter(|(_, at, _)| is_inside(at)).collect();
    let mut texts: Vec<String> = found
        .iter()
        .filter_map(
            |(.., value)| if let Value::Text(text) = value { Some(text.clone()) } else { None },
        )
        .collect();
    texts.sort_unstable();
    texts.dedup();

    let number = |value: &Value| match value {
        Value::Text(text) => texts.binary_search(text).ok().map(whole_as_float),
        other => other.number(),
    };
    let point = |(row, at, value): &(usize, i64, &Value)| {
        Some(FieldPoint { at: *at, value: number(value)?, row: *row })
    };
    let list = found.iter().filter_map(point).collect();

    let is_whole = || found.iter().all(|(.., value)| matches!(value, Value::Integer(_)));
    let kind = match texts.is_empty() {
        false => FieldKind::Text(texts),
        true if is_whole() => FieldKind::Whole,
        true => FieldKind::Float,
    };
    FieldPoints { kind, list }
}

/// The points of a field in a range as samples, oldest first.
pub(crate) fn samples_of(
    group: &PointGroup<'_>,
    field: &str,
    range: InstantRange,
) -> Vec<TimedValue> {
    let FieldPoints { kind, list } = points(group, field, range);
    let sample = |&FieldPoint { at, value, row }: &FieldPoint| TimedValue {
        at,
        value: Some(kind.value(value)),
        row: Some(row),
    };
    list.iter().map(sample).collect()
}

/// Computes the values of each window that has points, in the order of the answer. A value has the time of the window's
/// start, except for `top` and `bottom`. Without windows it has the time of the selected point, or 0.
pub(crate) fn of_points(
    group: &PointGroup<'_>,
    call: &AggregateCall,
    interval: Option<TimeWindows>,
    range: InstantRange,
    is_descending: bool,
) -> Vec<TimedValue> {
    let FieldPoints { kind, list } = points(group, &call.field, range);
    if let FieldKind::Text(_) = kind
        && !call.aggregate.takes_texts()
    {
        return Vec::new();
    }

    if let PointAggregate::Integral(unit) = call.aggregate {
        let mut points = list.clone();
        if is_descending {
            points.reverse();
        }
        return integral(&points, unit, interval, is_descending);
    }

    let mut rest = &list[..];
    let window = AggregateWindow { group, call, kind: &kind, is_descending };
    let Some(interval) = interval else {
        return if rest.is_empty() { Vec::new() } else { window.values(rest) };
    };

    let mut samples = Vec::new();
    while let Some(next) = if is_descending { rest.last() } else { rest.first() } {
        let (start, end) = interval.window(next.at);
        let own;
        if is_descending {
            let length = rest.partition_point(|point| point.at < start);
            (rest, own) = rest.split_at(length.min(rest.len() - 1));
        } else {
            let length = rest.partition_point(|point| point.at < end);
            (own, rest) = rest.split_at(length.max(1));
        }

        let mut values = window.values(own);
        if !call.aggregate.is_of_many() {
            values.iter_mut().for_each(|sample| sample.at = start);
        }
        samples.extend(values);
    }
    samples
}

/// An aggregate, applied to the points of a window.
#[derive(Clone, Copy)]
struct AggregateWindow<'w> {
    group: &'w PointGroup<'w>,
    call: &'w AggregateCall,
    kind: &'w FieldKind,
    is_descending: bool,
}

impl AggregateWindow<'_> {
    /// The values of one window; `points` is not empty.
    fn values(self, points: &[FieldPoint]) -> Vec<TimedValue> {
        match self.call.aggregate {
            PointAggregate::Distinct => distinct(points, self.is_descending)
                .into_iter()
                .map(|point| self.selected(point))
                .collect(),
            PointAggregate::Top(number) => self.best(points, number, |a, b| b.total_cmp(&a)),
            PointAggregate::Bottom(number) => self.best(points, number, |a, b| a.total_cmp(&b)),
            _ => self.value(points).into_iter().collect(),
        }
    }

    fn selected(self, point: &FieldPoint) -> TimedValue {
        let value = Some(self.kind.value(point.value));
        TimedValue { at: point.at, value, row: Some(point.row) }
    }

    fn value(self, points: &[FieldPoint]) -> Option<TimedValue> {
        let count = whole_as_float(points.len());
        let sum = || points.iter().map(|point| point.value).sum::<f64>();
        let of = |value: Value| TimedValue { at: 0, value: Some(value), row: None };
        let float = |number: f64| of(Value::Float(number));
        let number = |number: f64| of(self.kind.value(number));
        let counted = |number: usize| Some(of(Value::Integer(i64::try_from(number).ok()?)));

        // Among equal values, the earliest point is selected. Among points of the same time, the largest value is
        // selected.
        let least =
            || points.iter().min_by(|a, b| a.value.total_cmp(&b.value).then(a.at.cmp(&b.at)));
        let most =
            || points.iter().max_by(|a, b| a.value.total_cmp(&b.value).then(b.at.cmp(&a.at)));
        let earliest =
            || points.iter().min_by(|a, b| a.at.cmp(&b.at).then(b.value.total_cmp(&a.value)));
        let newest =
            || points.iter().max_by(|a, b| a.at.cmp(&b.at).then(a.value.total_cmp(&b.value)));

        match self.call.aggregate {
            PointAggregate::Count => counted(points.len()),
            PointAggregate::CountDistinct => counted(distinct(points, self.is_descending).len()),
            PointAggregate::Sum => Some(number(sum())),
            PointAggregate::Mean => Some(float(sum() / count)),
            PointAggregate::Min => least().map(|point| self.selected(point)),
            PointAggregate::Max => most().map(|point| self.selected(point)),
            PointAggregate::First => earliest().map(|point| self.selected(point)),
            PointAggregate::Last => newest().map(|point| self.selected(point)),
            PointAggregate::Spread => Some(number(most()?.value - least()?.value)),
            PointAggregate::Mode => Some(number(mode(points)?)),
            PointAggregate::Median => Some(float(median(points))),
            PointAggregate::Stddev if points.len() < 2 => {
                Some(TimedValue { at: 0, value: None, row: None })
            }
            PointAggregate::Stddev => {
                let mean = sum() / count;
                let squares: f64 = points.iter().map(|point| (point.value - mean).powi(2)).sum();
                Some(float((squares / (count - 1.0)).sqrt()))
            }
            PointAggregate::Percentile(percent) => {
                let index = (count * percent / 100.0 + 0.5).floor() - 1.0;
                let is_inside = index >= 0.0 && index < count;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "an index of a list"
                )]
                let index = is_inside.then_some(index as usize)?;
                Some(self.selected(&sorted(points)[index]))
            }
            PointAggregate::Integral(_)
            | PointAggregate::Distinct
            | PointAggregate::Top(_)
            | PointAggregate::Bottom(_) => None,
        }
    }

    /// Selects up to `number` points by their values, in the order of time. If the call names tags or fields, there is
    /// one point for each set of their values.
    fn best(
        self,
        points: &[FieldPoint],
        number: usize,
        order: fn(f64, f64) -> Ordering,
    ) -> Vec<TimedValue> {
        let mut points = points.to_vec();
        points.sort_by(|a, b| order(a.value, b.value).then(a.at.cmp(&b.at)));
        if !self.call.by.is_empty() {
            let mut known = BTreeSet::new();
            points.retain(|point| {
                let row = &self.group.rows[point.row];
                let text = |name: &String| {
                    let value = self.group.field(row, name).map(Value::text);
                    value.unwrap_or_else(|| self.group.tag(row, name).to_owned())
                };
                known.insert(self.call.by.iter().map(text).collect::<Vec<_>>())
            });
        }

        points.truncate(number);
        points.sort_by_key(|point| point.at);
        points.iter().map(|point| self.selected(point)).collect()
    }
}

/// For each distinct value, the point that comes first in the answer; sorted by time, then by value.
fn distinct(points: &[FieldPoint], is_descending: bool) -> Vec<&FieldPoint> {
    let mut sorted: Vec<&FieldPoint> = points.iter().collect();
    sorted.sort_by(|a, b| {
        let order = a.at.cmp(&b.at);
        let order = if is_descending { order.reverse() } else { order };
        a.value.total_cmp(&b.value).then(order)
    });
    sorted.dedup_by(|a, b| a.value.total_cmp(&b.value).is_eq());
    sorted.sort_by(|a, b| a.at.cmp(&b.at).then(a.value.total_cmp(&b.value)));
    sorted
}

/// The middle value, or the mean of the two middle values.
fn median(points: &[FieldPoint]) -> f64 {
    let values = sorted(points);
    let middle = values.len() / 2;
    let low = if values.len().is_multiple_of(2) { middle - 1 } else { middle };
    f64::midpoint(values[low].value, values[middle].value)
}

/// The most frequent value. Of two equally frequent values, InfluxDB takes the larger, provided that its first point is
/// not after the last point of the smaller. If each value occurs once, the smallest is taken.
fn mode(points: &[FieldPoint]) -> Option<f64> {
    let sorted = sorted(points);
    let mut best: Option<(usize, i64, f64)> = None;
    for same in sorted.chunk_by(|a, b| a.value.total_cmp(&b.value).is_eq()) {
        let (number, first, last) = (same.len(), &same[0], &same[same.len() - 1]);
        let is_better = best.is_none_or(|(most, until, _)| {
            number > most || number == most && number > 1 && first.at <= until
        });
        if is_better {
            best = Some((number, last.at, first.value));
        }
    }
    best.map(|(.., value)| value)
}

fn sorted(points: &[FieldPoint]) -> Vec<FieldPoint> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.value.total_cmp(&b.value).then(a.at.cmp(&b.at)));
    sorted
}

/// The area under the line through the points. Points come in the order of the answer, so in descending order the area
/// is negative. A window whose only point is at its edge has no area.
fn integral(
    points: &[FieldPoint],
    unit: i64,
    interval: Option<TimeWindows>,
    is_descending: bool,
) -> Vec<TimedValue> {
    let mut points = points.iter();
    let Some(first) = points.next() else { return Vec::new() };
    let window = |at: i64| match interval.map(|interval| interval.window(at)) {
        Some((start, end)) if is_descending => (end, start),
        Some(window) => window,
        None if is_descending => (0, i64::MIN),
        None => (0, i64::MAX),
    };
    let is_behind = |at: i64, end: i64| if is_descending { at <= end } else { at >= end };

    let (mut start, mut end) = window(first.at);
    let (mut at, mut value, mut sum) = (first.at, first.value, 0.0);
    let length = |from: i64, to: i64| float_of(to.saturating_sub(from));
    let area = |from: (i64, f64), to: (i64, f64)| {
        0.5 * (from.1 + to.1) * length(from.0, to.0) / float_of(unit)
    };
    let sample = |at, sum| TimedValue { at, value: Some(Value::Float(sum)), row: None };

    let mut samples = Vec::new();
    for point in points {
        if point.at == at {
            value = point.value;
            continue;
        }
        if is_behind(point.at, end) {
            if at != end {
                let edge = value + (point.value - value) * (length(at, end) / length(at, point.at));
                sum += area((at, value), (end, edge));
                (at, value) = (end, edge);
            }
            samples.push(sample(start, sum));
            (start, end) = window(point.at);
            sum = 0.0;
        }
        sum += area((at, value), (point.at, point.value));
        (at, value) = (point.at, point.value);
    }

    if at != start || interval.is_none() {
        samples.push(sample(start, sum));
    }
    samples
}

/// A count as a float.
fn whole_as_float(number: usize) -> f64 {
    float_of(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Adds a rollup to another rollup of the same window.
fn join(sum: &mut MetricRollup, other: &MetricRollup) {
    sum.count += other.count;
    sum.sum += &other.sum;
    if other.min < sum.min {
        sum.min = other.min.clone();
    }
    if other.max > sum.max {
        sum.max = other.max.clone();
    }

    let (mine, others) = (&sum.first, &other.first);
    if others.at < mine.at || others.at == mine.at && others.value > mine.value {
        sum.first = others.clone();
    }

    let (mine, others) = (&sum.last, &other.last);
    if others.at > mine.at || others.at == mine.at && others.value > mine.value {
        sum.last = others.clone();
    }
}

/// The value of an aggregate from the rollup of a window. `first` and `last` also have the time of the selected value.
fn sample_of(rollup: &MetricRollup, aggregate: PointAggregate) -> Option<TimedValue> {
    let value = |of: Aggregate| Some(exact(&of.of_rollup(rollup)?.shown()));
    let value = match aggregate.in_rollups()? {
        [Aggregate::Count] => Value::Integer(i64::try_from(rollup.count).ok()?),
        [of] => Value::Float(value(*of)?),
        [most, least] => Value::Float(value(*most)? - value(*least)?),
        _ => return None,
    };

    let at = match aggregate {
        PointAggregate::First => nanoseconds(rollup.first.at),
        PointAggregate::Last => nanoseconds(rollup.last.at),
        _ => 0,
    };
    Some(TimedValue { at, value: Some(value), row: None })
}

fn exact(number: &Exact) -> f64 {
    number.to_string().parse().expect("a number's text is a number")
}

/// Like [`of_points`], but from rollups. Each rollup lies within a single window.
pub(crate) fn of_rollups(
    group: &PointGroup<'_>,
    call: &AggregateCall,
    interval: Option<TimeWindows>,
    range: InstantRange,
    is_descending: bool,
) -> Vec<TimedValue> {
    let held = group.pieces.iter().filter_map(|piece| {
        let begin = nanoseconds(piece.range.from());
        let is_inside = range.from <= begin && begin <= range.last;
        Some((begin, group.rolled_up(piece, &call.field).filter(|_| is_inside)?))
    });
    let held: Vec<_> = held.collect();

    let begins = held.iter().map(|(begin, _)| *begin).collect();
    let starts = interval.map(|interval| interval.starts_of(&begins, is_descending));

    let mut joined: BTreeMap<i64, MetricRollup> = BTreeMap::new();
    for (begin, rollup) in held {
        let start = starts.as_ref().map_or(0, |starts| starts[&begin]);
        match joined.get_mut(&start) {
            Some(known) => join(known, rollup),
            None => drop(joined.insert(start, rollup.clone())),
        }
    }

    let samples = joined.into_iter().filter_map(|(start, joined)| {
        let sample = sample_of(&joined, call.aggregate)?;
        Some(if interval.is_some() { TimedValue { at: start, ..sample } } else { sample })
    });
    let mut samples: Vec<_> = samples.collect();
    if is_descending {
        samples.reverse();
    }
    samples
}
