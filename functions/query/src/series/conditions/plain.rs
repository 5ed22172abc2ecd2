//! Finds the quarters of an hour that match among all of a device, months at once. Uses no index.

use std::collections::BTreeMap;

use domain::{
    CalendarUnit, FoldRules, MetricMeans, MetricName, MetricRollup, Quarter, TimeRange, Zone,
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use table::{Invocation, QueryReadings, ReadRollups};

use super::request::ConditionsRequest;
use crate::series::failure::Failure;
use crate::series::gather::{Ask, Piece, gather};
use crate::series::grid::{Grid, intersection};

/// The quarters of an hour that match, with what the metrics of the conditions were.
pub(crate) type Matching = BTreeMap<Quarter, BTreeMap<MetricName, MetricMeans>>;

/// The number of months of a device that are asked for at once.
const MONTH_CONCURRENCY: usize = 12;

/// Reads all quarters of an hour of a device, and keeps those that match.
pub(crate) async fn matching(
    store: &(impl ReadRollups + QueryReadings),
    ask: &Ask<'_>,
    request: &ConditionsRequest,
    invocation: &Invocation,
) -> Result<Matching, Failure> {
    ask.check()?;
    let rules = &FoldRules::of(ask.device);
    let asked = months(ask.grid.range()).into_iter().map(|month| {
        Box::pin(async move {
            let grid = Grid::quarters(month);
            let ask = Ask { grid: &grid, ..*ask };
            let pieces = gather(store, &ask, invocation).await?.pieces;
            Ok::<_, Failure>(matching_pieces(&pieces, request, rules))
        })
    });
    let asked: Vec<_> = asked.collect();
    let found: Vec<Matching> =
        stream::iter(asked).buffered(MONTH_CONCURRENCY).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

/// The quarters that match. One has several pieces where the device was in several rooms; those elsewhere
/// take no part.
fn matching_pieces(pieces: &[Piece], request: &ConditionsRequest, rules: &FoldRules) -> Matching {
    let quarter = |piece: &Piece| Quarter::of(piece.range.from());
    let quarters = pieces.chunk_by(|a, b| quarter(a) == quarter(b));
    let means = |pieces: &[Piece], name: &MetricName| {
        let here = pieces.iter().filter(|piece| !piece.is_elsewhere);
        let mut rollups = here.filter_map(|piece| piece.rollup.metrics.get(name));
        let mut sum: MetricRollup = rollups.next()?.clone();
        rollups.for_each(|next| sum.append(next, &rules.rule(name)));
        MetricMeans::of(&sum)
    };
    let matching = quarters.filter_map(|pieces| {
        let values = request.conditions.iter().map(|condition| {
            let means = means(pieces, &condition.metric)?;
            let is_inside = condition.interval.contains(&means.mean);
            is_inside.then(|| (condition.metric.clone(), means))
        });
        Some((quarter(&pieces[0]), values.collect::<Option<_>>()?))
    });
    matching.collect()
}

/// A range by months of UTC.
pub(crate) fn months(range: TimeRange) -> Vec<TimeRange> {
    let months = CalendarUnit::Month.buckets(range, Zone::UTC);
    months.filter_map(|month| intersection(month, range)).collect()
}
