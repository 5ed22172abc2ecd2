//! Finds matching quarters of an hour by reading all quarters of a device, several months at a time. Uses no index.

use std::collections::BTreeMap;

use domain::{Condition, MetricMeans, MetricName, QuarterHour, TimeRange};
use table::{Session, at_once};

use super::matching::{Matching, is_of, months};
use super::search::EpisodeSearch;
use crate::error::SeriesError;
use crate::gather::{DeviceQuestion, RollupPiece, gather};
use crate::grid::Grid;
use crate::ports::Store;

/// The number of months of a device that are read at once.
const MONTH_CONCURRENCY: usize = 12;

/// Reads all quarters of an hour of a device in `part`, and keeps those that match.
pub(crate) async fn matching(
    session: Session<'_, impl Store>,
    question: &DeviceQuestion<'_>,
    part: TimeRange,
    search: &EpisodeSearch,
) -> Result<Matching, SeriesError> {
    let reads = months(part).into_iter().map(|month| {
        async move {
            let grid = Grid::quarters(month);
            // A quarter in which the device was in several rooms counts for each, as a whole.
            let whole = DeviceQuestion { grid: &grid, rooms: None, ..*question };
            let pieces = gather(session, &whole).await?.pieces;
            let matching =
                pieces.iter().filter_map(|piece| matching_piece(piece, question, search));
            Ok::<Matching, SeriesError>(matching.collect())
        }
    });

    let found: Vec<Matching> = at_once(MONTH_CONCURRENCY, reads).await?;
    Ok(found.into_iter().flatten().collect())
}

/// The quarter of an hour of a piece, if all conditions match. Each piece is one quarter, because the rows are
/// quarters.
fn matching_piece(
    piece: &RollupPiece,
    question: &DeviceQuestion<'_>,
    search: &EpisodeSearch,
) -> Option<(QuarterHour, BTreeMap<MetricName, MetricMeans>)> {
    if !is_of(question, &piece.rollup.rooms) {
        return None;
    }
    let values = search.conditions.iter().map(|Condition { metric, interval }| {
        let means = MetricMeans::of(piece.rollup.metrics.get(metric)?)?;
        interval.contains(&means.mean).then(|| (metric.clone(), means))
    });
    Some((QuarterHour::of(piece.range.from()), values.collect::<Option<_>>()?))
}
