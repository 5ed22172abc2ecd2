//! Makes the rows of a series of an answer: joins columns by time, in order, and applies `LIMIT` and `OFFSET`. Reads
//! nothing.

use std::iter::Peekable;
use std::vec;

use crate::aggregate::{TimedValue, of_points, of_rollups, samples_of};
use crate::ast::Fill;
use crate::compile::{CheckedSelect, ColumnContent};
use crate::error::{QueryError, most_windows, too_many_windows};
use crate::fill::{are_whole, filled, of_kind};
use crate::function::{AggregateCall, FunctionCall, PointAggregate};
use crate::group::{PointGroup, PointRow};
use crate::rows::OutRow;
use crate::transform::transformed;
use crate::value::Value;
use crate::windows::InstantRange;

/// The windows and the range of a query, with its bounds resolved.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) range: InstantRange,
    /// Whether the query has a lower bound of its own.
    pub(crate) has_start: bool,
    /// The starts of the windows in the order of the answer, including windows before the range if a call looks back.
    pub(crate) windows: Vec<i64>,
    /// Whether points are rows of subqueries. Their times are starts of windows, and the first may be before the range.
    pub(crate) is_of_rows: bool,
}

/// The rows of one group.
///
/// The smallest or largest value may come from a rollup, which does not have its time. `instant` is this time.
pub(crate) fn rows(
    query: &CheckedSelect,
    frame: &Frame,
    group: &PointGroup<'_>,
    instant: Option<i64>,
) -> Vec<OutRow> {
    let mut rows =
        if query.calls.is_empty() { raw(query, group) } else { aggregated(query, frame, group) };
    if let (Some(instant), [row]) = (instant, &mut rows[..]) {
        row.at = instant;
    }
    rows
}

/// The points themselves as rows. A point that has no field of the columns is left out.
fn raw(query: &CheckedSelect, group: &PointGroup<'_>) -> Vec<OutRow> {
    let row = |row: &PointRow| {
        let cells = query.columns.iter().map(|column| cell(&column.cell, &[], Some((group, row))));
        let is_there = |cell: &ColumnContent| matches!(cell, ColumnContent::Field(name) if group.field(row, name).is_some());
        let has_field = query.columns.iter().any(|column| column.cell.has(&is_there));
        has_field.then(|| OutRow { at: row.at, cells: cells.collect() })
    };

    let most = query.rows.end();
    let rows: Vec<_> = if query.is_descending {
        group.rows.iter().rev().filter_map(row).take(most).collect()
    } else {
        group.rows.iter().filter_map(row).take(most).collect()
    };
    query.rows.of(rows)
}

/// The samples of a call that are in no row yet.
struct CallStream {
    samples: Peekable<vec::IntoIter<TimedValue>>,
    /// The value in rows that have samples of other calls only: the number of `fill`, else `None`. With
    /// `fill(previous)`, the last sample replaces it.
    absent: Option<Value>,
}

impl CallStream {
    fn of(query: &CheckedSelect, call: &FunctionCall, samples: Vec<TimedValue>) -> Self {
        let is_count =
            matches!(call, FunctionCall::PointAggregate(call) if call.aggregate.is_count());
        let absent = match query.fill {
            Fill::Number(number) => Some(of_kind(number, is_count || are_whole(&samples))),
            _ => None,
        };
        Self { samples: samples.into_iter().peekable(), absent }
    }
}

fn aggregated(query: &CheckedSelect, frame: &Frame, group: &PointGroup<'_>) -> Vec<OutRow> {
    let stream = |call: &FunctionCall| {
        CallStream::of(query, call, query.rows.of(samples(query, frame, group, call)))
    };
    let mut streams: Vec<CallStream> = query.calls.iter().map(stream).collect();
    let mut rows = Vec::new();

    loop {
        let times = streams.iter_mut().filter_map(|stream| Some(stream.samples.peek()?.at));
        let at = if query.is_descending { times.max() } else { times.min() };
        let Some(at) = at else { return rows };

        let mut values: Vec<Option<Value>> = Vec::with_capacity(streams.len());
        let mut selected = None;
        for stream in &mut streams {
            let Some(sample) = stream.samples.next_if(|sample| sample.at == at) else {
                values.push(stream.absent.clone());
                continue;
            };
            selected = sample.row.or(selected);
            if query.fill == Fill::Previous {
                stream.absent.clone_from(&sample.value);
            }
            values.push(sample.value);
        }

        let row = selected.map(|row| (group, &group.rows[row]));
        let cells = query.columns.iter().map(|column| cell(&column.cell, &values, row));
        rows.push(OutRow { at, cells: cells.collect() });
    }
}

/// The values of a call, in the order of the answer.
fn samples(
    query: &CheckedSelect,
    frame: &Frame,
    group: &PointGroup<'_>,
    call: &FunctionCall,
) -> Vec<TimedValue> {
    match call {
        FunctionCall::PointAggregate(aggregate) => {
            let mut samples = windowed(query, frame, group, aggregate, frame.range);
            if query.interval.is_none() && !query.is_selector() {
                // As in InfluxDB, the integral of a whole range has the time 0, the start of 1970.
                let is_area = matches!(aggregate.aggregate, PointAggregate::Integral(_));
                let at = if frame.has_start && !is_area { frame.range.from } else { 0 };
                samples.iter_mut().for_each(|sample| sample.at = at);
            }
            samples
        }

        FunctionCall::OfWindows(transforms, aggregate) => {
            let range = match query.interval {
                Some(interval) => {
                    interval.widened(frame.range, call.looks_back(), query.is_descending)
                }
                None => frame.range,
            };
            let samples = windowed(query, frame, group, aggregate, range);
            transforms.iter().fold(samples, |samples, transform| {
                transformed(*transform, &samples, query.is_descending)
            })
        }

        FunctionCall::OfPoints(transform, field) => {
            let mut samples = samples_of(group, field, frame.held(frame.range));
            if query.is_descending {
                samples.reverse();
            }
            transformed(*transform, &samples, query.is_descending)
        }
    }
}

/// The values of windows in the order of the answer. Windows without values are filled.
fn windowed(
    query: &CheckedSelect,
    frame: &Frame,
    group: &PointGroup<'_>,
    call: &AggregateCall,
    range: InstantRange,
) -> Vec<TimedValue> {
    let values = if group.pieces.is_empty() { of_points } else { of_rollups };
    let samples = values(group, call, query.interval, frame.held(range), query.is_descending);
    let Some(interval) = query.interval else { return samples };
    if query.fill == Fill::None || call.aggregate.is_never_filled() {
        return samples;
    }

    let earliest = if query.is_descending { samples.last() } else { samples.first() };
    let earliest = earliest.map_or(0, |sample| sample.at);
    let first = if frame.has_start { interval.start(range.from) } else { earliest };
    let is_inside = |start: &i64| (first..=range.last).contains(start);
    let windows = frame.windows.iter().copied().filter(is_inside);
    let is_count = call.aggregate.is_count();
    filled(query, interval, windows, samples, is_count)
}

/// The lower bound of a statement that names no bound, and whether the statement is a subquery.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// The earliest time that a point may have.
    pub(crate) earliest: i64,
    pub(crate) is_subquery: bool,
}

impl Frame {
    /// The bounds and windows of a query; `None` if its range is empty.
    pub(crate) fn of(
        query: &CheckedSelect,
        span: Span,
        is_of_rows: bool,
    ) -> Result<Option<Self>, QueryError> {
        let from = query.range.from.unwrap_or(span.earliest);
        let last = query.range.to.unwrap_or(i64::MAX - 1);
        if from > last {
            return Ok(None);
        }

        let range = InstantRange { from, last };
        let has_start = query.range.from.is_some();
        let most = most_windows(span.is_subquery);
        let windows = query.interval.map_or(Ok(Vec::new()), |interval| {
            interval.starts(query.widened(range), query.is_descending, most)
        });
        let windows = windows.map_err(|number| too_many_windows(number, span.is_subquery))?;
        Ok(Some(Self { range, has_start, windows, is_of_rows }))
    }

    /// The times of points that belong to a range of windows; all times, if points are rows of subqueries.
    const fn held(&self, range: InstantRange) -> InstantRange {
        if self.is_of_rows { InstantRange { from: i64::MIN, last: i64::MAX } } else { range }
    }
}

fn cell(
    of: &ColumnContent,
    calls: &[Option<Value>],
    row: Option<(&PointGroup<'_>, &PointRow)>,
) -> Option<Value> {
    match of {
        ColumnContent::Call(index) => calls[*index].clone(),
        ColumnContent::Constant(value) => Some(value.clone()),
        ColumnContent::Nothing => None,

        ColumnContent::Field(name) => {
            let (group, row) = row?;
            group.field(row, name).cloned()
        }
        ColumnContent::Tag(name) => {
            let (group, row) = row?;
            let tag = group.tag(row, name);
            (!tag.is_empty()).then(|| Value::Text(tag.to_owned()))
        }

        ColumnContent::Math(math, arguments) => {
            let arguments = arguments.iter().map(|argument| cell(argument, calls, row));
            math.value(&arguments.collect::<Vec<_>>())
        }
        ColumnContent::Computed(operator, sides) => {
            let [left, right] = &**sides;
            Value::computed(*operator, [&cell(left, calls, row)?, &cell(right, calls, row)?])
        }
    }
}
