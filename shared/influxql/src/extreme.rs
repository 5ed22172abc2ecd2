//! Finds the rollups with the smallest or largest value of a group. Only readings can tell the exact time of this
//! value.

use domain::{Decimal, Device, MetricName, TimeRange};

use crate::compile::CheckedSelect;
use crate::function::{AggregateCall, FunctionCall, PointAggregate};
use crate::group::{PointGroup, RolledUp};
use crate::series::SeriesField;

/// The smallest or largest value in a rollup.
#[derive(Debug, Clone, Copy)]
pub struct Extreme<'a> {
    /// The time of the readings of the rollup.
    pub range: TimeRange,
    /// The device of the rollup.
    pub device: &'a Device,
    /// The metric that has the value.
    pub metric: &'a MetricName,
    /// The value.
    pub value: &'a Decimal,
}

/// The rollups with the value that `min` or `max` selects without windows, oldest first; empty for other queries.
pub(crate) fn extremes<'a>(query: &CheckedSelect, group: &PointGroup<'a>) -> Vec<Extreme<'a>> {
    let ([FunctionCall::PointAggregate(call)], None) = (&query.calls[..], query.interval) else {
        return Vec::new();
    };

    let found = || group.pieces.iter().filter_map(|piece| extreme(group, piece, call));
    let values = found().map(|extreme| extreme.value);
    let wanted = match call.aggregate {
        PointAggregate::Min => values.min(),
        PointAggregate::Max => values.max(),
        _ => None,
    };

    let mut found: Vec<_> = found().filter(|extreme| Some(extreme.value) == wanted).collect();
    found.sort_by_key(|extreme| extreme.range.from());
    found
}

fn extreme<'a>(
    group: &PointGroup<'a>,
    piece: &RolledUp<'a>,
    call: &AggregateCall,
) -> Option<Extreme<'a>> {
    let SeriesField { device, metric } = group.origin(piece, &call.field)?;
    let rollup = piece.rollup.metrics.get(metric)?;
    let value = if call.aggregate == PointAggregate::Min { &rollup.min } else { &rollup.max };
    Some(Extreme { range: piece.range, device, metric, value })
}
