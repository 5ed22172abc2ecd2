//! Finds when a value was smallest or largest. A rollup has only the value; its readings have the timestamp.

use domain::Timestamp;
use influxql::Extreme;
use table::Session;

use super::failure::Failure;
use super::read::Reads;
use crate::ports::Store;
use series::{Level, readings};

/// The earliest timestamp of an extreme value; `None` without values.
pub(super) async fn instant(
    session: Session<'_, impl Store>,
    reads: &Reads<'_>,
    extremes: &[Extreme<'_>],
) -> Result<Option<Timestamp>, Failure> {
    let mut earliest: Option<Timestamp> = None;
    for Extreme { range, device, metric, value } in extremes {
        if earliest.is_some_and(|earliest| earliest < range.from()) {
            break;
        }
        let question = reads.question(device, Level::Readings);
        let readings = readings(session, &question, *range).await?;
        let found = readings.iter().find(|reading| reading.metrics().get(*metric) == Some(*value));
        // The readings of a rollup may have expired. Then the rollup's start is the best known timestamp.
        let at = found.map_or(range.from(), |reading| reading.at);
        earliest = Some(earliest.map_or(at, |earliest| earliest.min(at)));
    }
    Ok(earliest)
}
