//! Refines episodes by the readings in them and in one quarter of an hour before and after. If an episode extends
//! further, further readings are read. Does not find an episode that the means do not show.

use chrono::TimeDelta;
use domain::{
    Condition, Episode, FoldRules, MAX_HOLD, QuarterHour, Reading, TimeRange, exact_episodes,
};
use table::Session;

use super::search::EpisodeSearch;
use crate::error::SeriesError;
use crate::gather::{DeviceQuestion, MAX_READ, readings};
use crate::grid::{joined, uncovered};
use crate::ports::Store;

/// The episodes of a device by its readings. Episodes whose readings have expired are returned as they are.
pub(crate) async fn refined(
    session: Session<'_, impl Store>,
    question: &DeviceQuestion<'_>,
    search: &EpisodeSearch,
    episodes: Vec<Episode>,
) -> Result<Vec<Episode>, SeriesError> {
    let around = |episode: &Episode| {
        widened(question, episode.range, QuarterHour::LENGTH, QuarterHour::LENGTH)
    };
    let regions = joined(episodes.iter().map(around).collect());

    let read =
        |region: &TimeRange| widened(question, *region, MAX_HOLD, TimeDelta::zero()).length();
    let mut length_read: TimeDelta = regions.iter().map(read).sum();
    check(question, length_read)?;

    let mut refined = Vec::new();
    for region in regions {
        let conditions = &search.conditions;
        let (found, readings) =
            followed(session, question, conditions, region, &mut length_read).await?;
        refined.extend(found);
        let is_gone = |episode: &&Episode| {
            let is_of = region.contains(episode.range.from());
            is_of && !readings.iter().any(|reading| episode.range.contains(reading.at))
        };
        refined.extend(episodes.iter().filter(is_gone).cloned());
    }

    // If the rollups lag, an episode may span several regions and is then found in each.
    refined.sort_by_key(|episode| (episode.range.from(), episode.range.to()));
    refined.dedup();
    Ok(refined)
}

/// Finds the episodes that touch a region, each from its first reading to its last, and returns the readings as well.
/// Adds the time whose readings are read to `length_read`.
async fn followed(
    session: Session<'_, impl Store>,
    question: &DeviceQuestion<'_>,
    conditions: &[Condition],
    region: TimeRange,
    length_read: &mut TimeDelta,
) -> Result<(Vec<Episode>, Vec<Reading>), SeriesError> {
    let readable = readable(question);
    let mut range = widened(question, region, MAX_HOLD, TimeDelta::zero());
    let mut read = readings(session, question, range).await?;

    let mut step = QuarterHour::LENGTH;
    loop {
        let mut found = of_readings(question, conditions, range, &read);
        found.retain(|episode| episode.range.intersection(region).is_some());

        // A value from before the range may be valid until this time.
        let settled = range.from().saturating_add(MAX_HOLD);
        let may_begin_before = range.from() > readable.from()
            && found.first().is_some_and(|episode| episode.range.from() <= settled);
        let may_end_after = range.to() < readable.to()
            && found.last().is_some_and(|episode| episode.range.to() == range.to());
        if !may_begin_before && !may_end_after {
            return Ok((found, read));
        }

        let further = |may: bool| if may { step } else { TimeDelta::zero() };
        let wider = widened(question, range, further(may_begin_before), further(may_end_after));
        *length_read += wider.length() - range.length();
        check(question, *length_read)?;
        for part in uncovered(wider, [range]) {
            read.extend(readings(session, question, part).await?);
        }
        read.sort_by_key(|reading| reading.at);
        (range, step) = (wider, step * 2);
    }
}

/// Finds the episodes in readings, for each stay in the rooms by itself. A value is valid at most until the device is
/// in another room, and never beyond now.
fn of_readings(
    question: &DeviceQuestion<'_>,
    conditions: &[Condition],
    range: TimeRange,
    readings: &[Reading],
) -> Vec<Episode> {
    let rules = FoldRules::of(question.device);
    let is_here = |reading: &Reading| question.is_about(reading.room.as_ref());
    let stays: Vec<&[Reading]> = readings.chunk_by(|a, b| is_here(a) == is_here(b)).collect();
    let ends = stays.iter().skip(1).map(|next| next[0].at).chain([range.to()]);
    let here = stays.iter().zip(ends).filter(|(stay, _)| is_here(&stay[0]));

    let first = question.grid.range().from();
    let found = here.filter_map(|(stay, end)| {
        let stayed = TimeRange::new(stay[0].at.max(first), end.min(question.now)).ok()?;
        Some(exact_episodes(stay, &rules, conditions, stayed))
    });
    found.flatten().collect()
}

/// The range to read: the requested range, and before it the longest time for which a value stays valid.
fn readable(question: &DeviceQuestion<'_>) -> TimeRange {
    let range = question.grid.range();
    let from = range.from().saturating_add(-MAX_HOLD);
    TimeRange::new(from, range.to()).expect("it is no shorter")
}

/// Widens a range by some time before and after, within the readable range.
fn widened(
    question: &DeviceQuestion<'_>,
    range: TimeRange,
    before: TimeDelta,
    after: TimeDelta,
) -> TimeRange {
    let (from, to) = (range.from().saturating_add(-before), range.to().saturating_add(after));
    let wider = TimeRange::new(from, to).expect("it is no shorter");
    wider.intersection(readable(question)).expect("it touches the requested range")
}

/// Refuses to read the readings of too long a time.
fn check(question: &DeviceQuestion<'_>, length: TimeDelta) -> Result<(), SeriesError> {
    if length <= MAX_READ + MAX_HOLD {
        return Ok(());
    }
    Err(SeriesError::OutOfReach(format!(
        "The episodes of {} take {} hours with what is around them, and exact=1 reads the readings of at \
         most {} hours. Narrow from and to or the conditions, or ask without exact.",
        question.device.id(),
        length.num_hours(),
        MAX_READ.num_hours()
    )))
}
