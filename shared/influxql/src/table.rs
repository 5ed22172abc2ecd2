//! The rows of a series of an answer: columns joined by time, in order, with their page. Reads nothing.

use crate::aggregate::{Point, Sample, of_points, of_rollups, points};
use crate::ast::Fill;
use crate::compile::{Query, Shown};
use crate::fill::filled;
use crate::function::{Aggregate, AggregateCall, Call};
use crate::group::{Group, Row};
use crate::transform::transformed;
use crate::value::Value;

/// A row: its time in nanoseconds, and a value for each column.
pub(crate) type OutRow = (i64, Vec<Option<Value>>);

/// The windows and the range of a query, with its bounds resolved.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// Both ends inside.
    pub(crate) range: (i64, i64),
    /// Whether the query has a lower bound of its own.
    pub(crate) has_start: bool,
    /// The starts of the windows, with the one before the range where a call looks back.
    pub(crate) windows: Vec<i64>,
}

/// The rows of one group.
///
/// `instant` is the time of the point that the one call selects, where rollups do not tell it.
pub(crate) fn rows(
    query: &Query,
    frame: &Frame,
    group: &Group<'_>,
    instant: Option<i64>,
) -> Vec<OutRow> {
    let mut rows =
        if query.calls.is_empty() { raw(query, group) } else { aggregated(query, frame, group) };
    if let (Some(instant), [row]) = (instant, &mut rows[..]) {
        row.0 = instant;
    }
    query.rows.of(rows)
}

/// The points themselves. One that has none of the fields that columns are made of is left out.
fn raw(query: &Query, group: &Group<'_>) -> Vec<OutRow> {
    let row = |row: &Row<'_>| {
        let cells = query.columns.iter().map(|column| cell(&column.cell, &[], Some((group, row))));
        let is_there =
            |cell: &Shown| matches!(cell, Shown::Field(name) if group.field(row, name).is_some());
        let has_field = query.columns.iter().any(|column| column.cell.has(&is_there));
        has_field.then(|| (row.at, cells.collect()))
    };
    let most = query.rows.end();
    if query.is_descending {
        group.rows.iter().rev().filter_map(row).take(most).collect()
    } else {
        group.rows.iter().filter_map(row).take(most).collect()
    }
}

fn aggregated(query: &Query, frame: &Frame, group: &Group<'_>) -> Vec<OutRow> {
    let streams: Vec<Vec<Sample>> =
        query.calls.iter().map(|call| samples(query, frame, group, call)).collect();
    let mut heads = vec![0; streams.len()];
    let mut rows = Vec::new();
    loop {
        let next = streams.iter().zip(&heads).filter_map(|(stream, head)| stream.get(*head));
        let times = next.map(|sample| sample.at);
        let at = if query.is_descending { times.max() } else { times.min() };
        let Some(at) = at else { return rows };
        let mut values: Vec<Option<Value>> = Vec::with_capacity(streams.len());
        let mut selected = None;
        for (stream, head) in streams.iter().zip(&mut heads) {
            match stream.get(*head).filter(|sample| sample.at == at) {
                Some(sample) => {
                    *head += 1;
                    selected = sample.row.or(selected);
                    values.push(sample.value.clone());
                }
                None => values.push(None),
            }
        }
        let row = selected.map(|row| (group, &group.rows[row]));
        let cells = query.columns.iter().map(|column| cell(&column.cell, &values, row));
        rows.push((at, cells.collect()));
    }
}

/// The values of a call, in the order of the answer.
fn samples(query: &Query, frame: &Frame, group: &Group<'_>, call: &Call) -> Vec<Sample> {
    match call {
        Call::Aggregate(aggregate) => {
            let mut samples = windowed(query, frame, group, aggregate, frame.range);
            if query.interval.is_none() && !query.is_selector() {
                let at = if frame.has_start { frame.range.0 } else { 0 };
                samples.iter_mut().for_each(|sample| sample.at = at);
            }
            samples
        }
        Call::OfWindows(transform, aggregate) => {
            let range = match query.interval {
                Some(interval) if transform.looks_back() => {
                    interval.widened(frame.range, query.is_descending)
                }
                _ => frame.range,
            };
            let samples = windowed(query, frame, group, aggregate, range);
            transformed(*transform, &samples, query.is_descending)
        }
        Call::OfPoints(transform, field) => {
            let points = points(group, field, frame.range).into_iter();
            let sample = |point: Point| Sample {
                at: point.at,
                value: Some(Value::Float(point.value)),
                row: None,
            };
            let mut samples: Vec<Sample> = points.map(sample).collect();
            if query.is_descending {
                samples.reverse();
            }
            transformed(*transform, &samples, query.is_descending)
        }
    }
}

/// The values of windows in the order of the answer, with those between them filled.
fn windowed(
    query: &Query,
    frame: &Frame,
    group: &Group<'_>,
    call: &AggregateCall,
    (from, to): (i64, i64),
) -> Vec<Sample> {
    let values = if group.pieces.is_empty() { of_points } else { of_rollups };
    let mut samples = values(group, call, query.interval, (from, to));
    let Some(interval) = query.interval else { return samples };
    let first = if frame.has_start {
        interval.start(from)
    } else {
        samples.first().map_or(0, |sample| sample.at)
    };
    if query.is_descending {
        samples.reverse();
    }
    if query.fill == Fill::None || matches!(call.aggregate, Aggregate::Integral(_)) {
        return samples;
    }
    let windows = frame.windows.iter().copied().filter(|start| (first..=to).contains(start));
    let is_count = call.aggregate == Aggregate::Count;
    if query.is_descending {
        filled(samples, windows.rev(), query.fill, interval.length, is_count)
    } else {
        filled(samples, windows, query.fill, interval.length, is_count)
    }
}

fn cell(of: &Shown, calls: &[Option<Value>], row: Option<(&Group<'_>, &Row<'_>)>) -> Option<Value> {
    match of {
        Shown::Call(place) => calls[*place].clone(),
        Shown::Constant(value) => Some(value.clone()),
        Shown::Nothing => None,
        Shown::Field(name) => {
            let (group, row) = row?;
            group.field(row, name).map(Value::Float)
        }
        Shown::Tag(name) => {
            let (group, row) = row?;
            let tag = group.tag(row, name);
            (!tag.is_empty()).then(|| Value::Text(tag.to_owned()))
        }
        Shown::Computed(operator, sides) => {
            let [left, right] = &**sides;
            Value::computed(*operator, [&cell(left, calls, row)?, &cell(right, calls, row)?])
        }
    }
}
