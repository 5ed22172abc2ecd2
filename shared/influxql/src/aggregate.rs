//! Values of windows: of points, or of rollups where these tell them. Fills no window.

use std::collections::BTreeMap;

use domain::{Decimal, Exact};

use crate::condition::nanoseconds;
use crate::function::{Aggregate, AggregateCall};
use crate::group::{Group, float};
use crate::value::{Value, float as whole_as_float};
use crate::windows::Interval;

/// A value of a series of values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    /// Nanoseconds since 1970.
    pub(crate) at: i64,
    /// `None` where there are points but no value, as of the deviation of one point.
    pub(crate) value: Option<Value>,
    /// The point that was selected, by its place in the group.
    pub(crate) row: Option<usize>,
}

/// A point of one field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) at: i64,
    pub(crate) value: f64,
    row: usize,
}

/// The points of a field in a range, oldest first.
pub(crate) fn points(group: &Group<'_>, field: &str, (from, to): (i64, i64)) -> Vec<Point> {
    let rows = group.rows.iter().enumerate().filter(|(_, row)| (from..=to).contains(&row.at));
    rows.filter_map(|(n, row)| {
        Some(Point { at: row.at, value: group.counted(row, field)?, row: n })
    })
    .collect()
}

/// The value of each window that has points, at the window's start; without windows one value, at the time of
/// the point that is selected, or at 0.
pub(crate) fn of_points(
    group: &Group<'_>,
    call: &AggregateCall,
    interval: Option<Interval>,
    range: (i64, i64),
) -> Vec<Sample> {
    let points = points(group, &call.field, range);
    if let Aggregate::Integral(unit) = call.aggregate {
        return integral(&points, unit, interval);
    }
    let Some(interval) = interval else {
        return (!points.is_empty())
            .then(|| aggregated(call.aggregate, &points))
            .flatten()
            .into_iter()
            .collect();
    };
    let mut samples = Vec::new();
    let mut rest = &points[..];
    while let Some(first) = rest.first() {
        let start = interval.start(first.at);
        let end = interval.next(start);
        let length = rest.partition_point(|point| point.at < end).max(1);
        let sample = aggregated(call.aggregate, &rest[..length]);
        samples.extend(sample.map(|sample| Sample { at: start, ..sample }));
        rest = &rest[length..];
    }
    samples
}

/// The value of some points, at least one.
fn aggregated(aggregate: Aggregate, points: &[Point]) -> Option<Sample> {
    let count = whole_as_float(i64::try_from(points.len()).ok()?);
    let sum = || points.iter().map(|point| point.value).sum::<f64>();
    let selected = |point: &Point| Sample {
        at: point.at,
        value: Some(Value::Float(point.value)),
        row: Some(point.row),
    };
    let number = |number: f64| Sample { at: 0, value: Some(Value::Float(number)), row: None };
    // Of equal values the earliest point counts; of points of one time the one with the larger value.
    let least = || points.iter().min_by(|a, b| a.value.total_cmp(&b.value).then(a.at.cmp(&b.at)));
    let most = || points.iter().max_by(|a, b| a.value.total_cmp(&b.value).then(b.at.cmp(&a.at)));
    let earliest =
        || points.iter().min_by(|a, b| a.at.cmp(&b.at).then(b.value.total_cmp(&a.value)));
    let newest = || points.iter().max_by(|a, b| a.at.cmp(&b.at).then(a.value.total_cmp(&b.value)));
    match aggregate {
        Aggregate::Count => {
            let count = i64::try_from(points.len()).ok()?;
            Some(Sample { at: 0, value: Some(Value::Integer(count)), row: None })
        }
        Aggregate::Sum => Some(number(sum())),
        Aggregate::Mean => Some(number(sum() / count)),
        Aggregate::Min => least().map(selected),
        Aggregate::Max => most().map(selected),
        Aggregate::First => earliest().map(selected),
        Aggregate::Last => newest().map(selected),
        Aggregate::Spread => Some(number(most()?.value - least()?.value)),
        Aggregate::Median => {
            let values = sorted(points);
            let middle = values.len() / 2;
            let is_even = values.len().is_multiple_of(2);
            let low = values[if is_even { middle - 1 } else { middle }].value;
            Some(number(f64::midpoint(low, values[middle].value)))
        }
        Aggregate::Stddev if points.len() < 2 => Some(Sample { at: 0, value: None, row: None }),
        Aggregate::Stddev => {
            let mean = sum() / count;
            let squares: f64 = points.iter().map(|point| (point.value - mean).powi(2)).sum();
            Some(number((squares / (count - 1.0)).sqrt()))
        }
        Aggregate::Percentile(percent) => {
            let place = (count * percent / 100.0 + 0.5).floor() - 1.0;
            let is_inside = place >= 0.0 && place < count;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a place in a list"
            )]
            let place = is_inside.then_some(place as usize)?;
            Some(selected(&sorted(points)[place]))
        }
        Aggregate::Integral(_) => None,
    }
}

fn sorted(points: &[Point]) -> Vec<Point> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.value.total_cmp(&b.value).then(a.at.cmp(&b.at)));
    sorted
}

/// The area under the line through the points. A window whose only point is at its start has none.
fn integral(points: &[Point], unit: i64, interval: Option<Interval>) -> Vec<Sample> {
    let mut points = points.iter();
    let Some(first) = points.next() else { return Vec::new() };
    let window = |at: i64| {
        interval.map_or((0, i64::MAX), |it| {
            let start = it.start(at);
            (start, it.next(start))
        })
    };
    let (mut start, mut end) = window(first.at);
    let (mut at, mut value, mut sum) = (first.at, first.value, 0.0);
    let area = |from: (i64, f64), to: (i64, f64)| {
        0.5 * (from.1 + to.1) * whole_as_float(to.0 - from.0) / whole_as_float(unit)
    };
    let sample = |at, sum| Sample { at, value: Some(Value::Float(sum)), row: None };
    let mut samples = Vec::new();
    for point in points {
        if point.at == at {
            value = point.value;
            continue;
        }
        if point.at >= end {
            if at != end {
                let part = whole_as_float(end - at) / whole_as_float(point.at - at);
                let edge = value + (point.value - value) * part;
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

/// The rollups of a window, joined.
struct Joined<'a> {
    count: u64,
    sum: Exact,
    min: &'a Decimal,
    max: &'a Decimal,
    first: &'a domain::Sample,
    last: &'a domain::Sample,
}

impl<'a> Joined<'a> {
    fn of(rollup: &'a domain::MetricRollup) -> Self {
        let domain::MetricRollup { count, sum, min, max, first, last, .. } = rollup;
        Self { count: *count, sum: sum.clone(), min, max, first, last }
    }

    fn join(&mut self, other: &'a domain::MetricRollup) {
        self.count += other.count;
        self.sum += &other.sum;
        self.min = self.min.min(&other.min);
        self.max = self.max.max(&other.max);
        let (mine, others) = (self.first, &other.first);
        if others.at < mine.at || others.at == mine.at && others.value > mine.value {
            self.first = others;
        }
        let (mine, others) = (self.last, &other.last);
        if others.at > mine.at || others.at == mine.at && others.value > mine.value {
            self.last = others;
        }
    }

    fn sample(&self, aggregate: Aggregate) -> Option<Sample> {
        let value = match aggregate {
            Aggregate::Count => Value::Integer(i64::try_from(self.count).ok()?),
            Aggregate::Sum => Value::Float(exact(&self.sum)),
            Aggregate::Mean => {
                Value::Float(exact(&self.sum.rounded_quotient(&Exact::from(self.count))?))
            }
            Aggregate::Min => Value::Float(float(self.min)),
            Aggregate::Max => Value::Float(float(self.max)),
            Aggregate::Spread => Value::Float(float(self.max) - float(self.min)),
            Aggregate::First => Value::Float(float(&self.first.value)),
            Aggregate::Last => Value::Float(float(&self.last.value)),
            _ => return None,
        };
        let at = match aggregate {
            Aggregate::First => nanoseconds(self.first.at),
            Aggregate::Last => nanoseconds(self.last.at),
            _ => 0,
        };
        Some(Sample { at, value: Some(value), row: None })
    }
}

fn exact(number: &Exact) -> f64 {
    number.to_string().parse().expect("a number's text is a number")
}

/// The same as [`of_points`], of rollups that each lie in one window.
pub(crate) fn of_rollups(
    group: &Group<'_>,
    call: &AggregateCall,
    interval: Option<Interval>,
    (from, to): (i64, i64),
) -> Vec<Sample> {
    let mut joined: BTreeMap<i64, Joined<'_>> = BTreeMap::new();
    for piece in &group.pieces {
        let begin = nanoseconds(piece.range.from());
        let Some(rollup) = group.rolled_up(piece, &call.field) else { continue };
        if begin < from || begin > to {
            continue;
        }
        let start = interval.map_or(0, |interval| interval.start(begin));
        match joined.get_mut(&start) {
            Some(known) => known.join(rollup),
            None => drop(joined.insert(start, Joined::of(rollup))),
        }
    }
    let samples = joined.into_iter().filter_map(|(start, joined)| {
        let sample = joined.sample(call.aggregate)?;
        Some(if interval.is_some() { Sample { at: start, ..sample } } else { sample })
    });
    samples.collect()
}
