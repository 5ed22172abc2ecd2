//! Finds the quarters of an hour that match among all of a device, months at once. Uses no index.

use std::collections::BTreeMap;

use domain::{CalendarUnit, Condition, MetricMeans, MetricName, Quarter, TimeRange, Zone};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use table::Invocation;

use super::indexed::is_of;
use super::request::ConditionsRequest;
use crate::ports::Store;
use crate::series::failure::Failure;
use crate::series::gather::{Ask, Piece, gather};
use crate::series::grid::{Grid, intersection};

/// The quarters of an hour that match, with what the metrics of the conditions were.
pub(crate) type Matching = BTreeMap<Quarter, BTreeMap<MetricName, MetricMeans>>;

/// The number of months of a device that are asked for at once.
const MONTH_CONCURRENCY: usize = 12;

/// Reads all quarters of an hour of a device in a part of what is asked, and keeps those that match.
pub(crate) async fn matching(
    store: &impl Store,
    ask: &Ask<'_>,
    part: TimeRange,
    request: &ConditionsRequest,
    invocation: &Invocation,
) -> Result<Matching, Failure> {
    let asked = months(part).into_iter().map(|month| {
        Box::pin(async move {
            let grid = Grid::quarters(month);
            // A quarter in which the device was in several rooms counts for each, as a whole.
            let whole = Ask { grid: &grid, rooms: None, ..*ask };
            let pieces = gather(store, &whole, invocation).await?.pieces;
            let matching = pieces.iter().filter_map(|it| matching_piece(it, ask, request));
            Ok::<Matching, Failure>(matching.collect())
        })
    });
    let asked: Vec<_> = asked.collect();
    let found: Vec<Matching> =
        stream::iter(asked).buffered(MONTH_CONCURRENCY).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

/// A piece is a quarter of an hour: no row is longer, and no range begins within one.
fn matching_piece(
    piece: &Piece,
    ask: &Ask<'_>,
    request: &ConditionsRequest,
) -> Option<(Quarter, BTreeMap<MetricName, MetricMeans>)> {
    if !is_of(ask, &piece.rollup.rooms) {
        return None;
    }
    let values = request.conditions.iter().map(|Condition { metric, interval }| {
        let means = MetricMeans::of(piece.rollup.metrics.get(metric)?)?;
        interval.contains(&means.mean).then(|| (metric.clone(), means))
    });
    Some((Quarter::of(piece.range.from()), values.collect::<Option<_>>()?))
}

/// A range by months of UTC.
pub(crate) fn months(range: TimeRange) -> Vec<TimeRange> {
    let months = CalendarUnit::Month.buckets(range, Zone::UTC);
    months.filter_map(|month| intersection(month, range)).collect()
}
