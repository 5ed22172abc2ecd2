//! The instant of the one smallest or largest value: a rollup tells the value, the readings of its time the instant.

use domain::{Decimal, Timestamp};
use table::Invocation;

use super::compile::Query;
use super::condition::nanoseconds;
use super::failure::Failure;
use super::function::{Aggregate, AggregateCall, Call};
use super::group::{Group, RolledUp};
use super::read::Plan;
use crate::ports::Store;
use crate::series::gather::{Level, readings};

/// The time of the point that `min` or `max` selects without windows, in nanoseconds; `None` where nothing is
/// selected, or rollups are not what the value comes from.
pub(super) async fn instant(
    store: &impl Store,
    plan: &Plan<'_>,
    query: &Query,
    group: &Group<'_>,
    invocation: &Invocation,
) -> Result<Option<i64>, Failure> {
    let ([Call::Aggregate(call)], None) = (&query.calls[..], query.interval) else {
        return Ok(None);
    };
    let mut pieces = extremes(group, call);
    pieces.sort_by_key(|piece| piece.range.from());
    let mut earliest: Option<Timestamp> = None;
    for piece in &pieces {
        if earliest.is_some_and(|earliest| earliest < piece.range.from()) {
            break;
        }
        let (Some(value), Some((device, metric))) =
            (extreme(group, piece, call), group.origin(piece, &call.field))
        else {
            continue;
        };
        let ask = plan.ask(device, Level::Readings);
        let readings = readings(store, &ask, piece.range, invocation).await?;
        let found = readings.iter().find(|reading| reading.metrics().get(metric) == Some(value));
        // The readings of a rollup may have expired; then its start is the nearest that is known.
        let at = found.map_or(piece.range.from(), |reading| reading.at);
        earliest = Some(earliest.map_or(at, |earliest| earliest.min(at)));
    }
    Ok(earliest.map(nanoseconds))
}

/// The pieces that have the smallest value, or the largest.
fn extremes<'a>(group: &Group<'a>, call: &AggregateCall) -> Vec<RolledUp<'a>> {
    let values = || group.pieces.iter().filter_map(|piece| extreme(group, piece, call));
    let wanted = match call.aggregate {
        Aggregate::Min => values().min(),
        Aggregate::Max => values().max(),
        _ => None,
    };
    let Some(wanted) = wanted else { return Vec::new() };
    let pieces = group.pieces.iter().copied();
    pieces.filter(|piece| extreme(group, piece, call) == Some(wanted)).collect()
}

fn extreme<'a>(
    group: &Group<'a>,
    piece: &RolledUp<'a>,
    call: &AggregateCall,
) -> Option<&'a Decimal> {
    let rollup = group.rolled_up(piece, &call.field)?;
    Some(if call.aggregate == Aggregate::Min { &rollup.min } else { &rollup.max })
}
