//! Finds the episodes in which metrics had the requested values. Folds nothing.
//!
//! `plan` chooses how the matching quarters of an hour are found: `plain` reads all quarters, `indexed` reads the
//! index. `exact` refines episodes by readings.

mod exact;
mod indexed;
mod matching;
mod plain;
mod plan;
mod search;
#[cfg(test)]
mod tests;

use chrono::TimeDelta;
use domain::{DeviceId, Episode, Order, QuarterHour, TimeRange, episodes};
use table::{Session, at_once};

use crate::error::SeriesError;
use crate::gather::DeviceQuestion;
use crate::grid::uncovered;
use crate::left_out::DEVICE_CONCURRENCY;
use crate::ports::{ConditionsStore, Store};
use indexed::IndexedPart;
use matching::Matching;

pub use plan::{Explanation, IndexPlan};
pub use search::EpisodeSearch;

/// Finds the episodes of all devices, sorted by start, and says what the index contributed.
///
/// # Errors
///
/// If the table fails, or if too long a time would be read from readings.
pub async fn find<'a>(
    session: Session<'_, impl ConditionsStore>,
    questions: &[DeviceQuestion<'a>],
    search: &EpisodeSearch,
) -> Result<(Vec<(&'a DeviceId, Episode)>, IndexPlan), SeriesError> {
    questions.iter().try_for_each(DeviceQuestion::check)?;

    let mut plan = IndexPlan::default();
    let matching = match by_index(session, questions, search, &mut plan).await {
        Ok(matching) => matching,
        Err(IndexError::NotUsed(reason)) => {
            plan.reason = Some(reason);
            let whole = |question: &DeviceQuestion<'_>| vec![question.grid.range()];
            by_rollups(session, questions, whole, search).await?
        }
        Err(IndexError::Failed(error)) => return Err(error),
    };

    let mut found = Vec::new();
    for (question, matching) in questions.iter().zip(matching) {
        let matching: Vec<_> = matching.into_iter().collect();
        let mut of_device = episodes(&matching);
        if search.is_exact {
            of_device = exact::refined(session, question, search, of_device).await?;
        }
        found.extend(of_device.into_iter().map(|episode| (question.device.id(), episode)));
    }

    found.sort_by_key(|(device, episode)| (episode.range.from(), *device));
    Ok((found, plan))
}

/// Finds matching quarters in rollups, in the given parts of each question's range.
async fn by_rollups(
    session: Session<'_, impl Store>,
    questions: &[DeviceQuestion<'_>],
    parts: impl Fn(&DeviceQuestion<'_>) -> Vec<TimeRange>,
    search: &EpisodeSearch,
) -> Result<Vec<Matching>, SeriesError> {
    let reads = questions.iter().map(|question| {
        let parts = parts(question);
        async move {
            let mut matching = Matching::new();
            for part in parts {
                matching.extend(plain::matching(session, question, part, search).await?);
            }
            Ok::<_, SeriesError>(matching)
        }
    });

    at_once(DEVICE_CONCURRENCY, reads).await
}

/// The reason why the index gives no answer.
enum IndexError {
    /// The index would give a wrong or a dear answer, so rollups are read.
    NotUsed(String),
    Failed(SeriesError),
}

impl From<String> for IndexError {
    fn from(reason: String) -> Self {
        Self::NotUsed(reason)
    }
}

impl<E: Into<SeriesError>> From<E> for IndexError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Finds matching quarters in the index, and in rollups for time that the index may not have yet.
async fn by_index(
    session: Session<'_, impl ConditionsStore>,
    questions: &[DeviceQuestion<'_>],
    search: &EpisodeSearch,
    plan: &mut IndexPlan,
) -> Result<Vec<Matching>, IndexError> {
    plan::ensure_suitable(search, session.has_conditions_index())?;

    let before = session.invocation.read_units();
    // Read now and not cached: with an older schema, the index finds no quarter that was folded with a newer schema.
    let stored = session.conditions_schema().await?;
    let (boxed, allowance) = plan::choose(stored.as_ref(), search, questions, plan)?;

    let mut indexed = Vec::new();
    for question in questions {
        let range = complete_range(session, question).await?;
        indexed.push(IndexedPart { question, range });
    }

    // The reads up to here are a part of the index's cost.
    let allowance = allowance - (session.invocation.read_units() - before);
    let matching = indexed::matching(session, &indexed, &boxed, allowance).await?;
    plan.consumed = session.invocation.read_units() - before;
    let mut matching =
        matching.ok_or_else(|| "the index has cost a fifth of all rollups".to_owned())?;

    let rest =
        |question: &DeviceQuestion<'_>| uncovered(question.grid.range(), indexed_range(question));
    let others = by_rollups(session, questions, rest, search).await?;
    for (matching, others) in matching.iter_mut().zip(others) {
        matching.extend(others);
    }
    plan.consumed = session.invocation.read_units() - before;
    Ok(matching)
}

/// The part of a question's range for which the index has all rollups of the device.
async fn complete_range(
    session: Session<'_, impl ConditionsStore>,
    question: &DeviceQuestion<'_>,
) -> Result<TimeRange, IndexError> {
    let id = question.device.id();
    let range =
        indexed_range(question).ok_or_else(|| format!("the rollups of {id} are too new"))?;
    if !follows_settings(session, question).await? {
        let reason = format!(
            "settings of the metrics of {id} have changed, and its rollups do not follow yet"
        );
        return Err(reason.into());
    }
    if !has_oldest(session, question, range).await? {
        return Err(format!("rollups of {id} have expired").into());
    }
    Ok(range)
}

/// Whether the index follows the device's present settings. After a change of settings, the index follows when the
/// rollups are folded again.
async fn follows_settings(
    session: Session<'_, impl ConditionsStore>,
    question: &DeviceQuestion<'_>,
) -> Result<bool, SeriesError> {
    let (settings, range) = (question.device.fold_settings(), question.grid.range());
    if !settings.concerns(0, range) {
        return Ok(true);
    }
    let folded = session.refold(question.device.id()).await?;
    Ok(!settings.concerns(folded.settings, range))
}

/// The index may lag behind the newest rollup by at most this time.
const MAX_DELAY: TimeDelta = TimeDelta::hours(1);

/// The part of the question's range that the index covers.
fn indexed_range(question: &DeviceQuestion<'_>) -> Option<TimeRange> {
    let rolled_up = question.rolled_up_range()?;
    let sealed = question.horizon.rolled_up(question.device.id())?.to();
    TimeRange::new(rolled_up.from(), rolled_up.to().min(sealed.saturating_add(-MAX_DELAY))).ok()
}

/// Whether the device's rollups of 15 minutes reach back as far as its daily rollups. If quarters have expired, the
/// index is silently incomplete, while a read of the rollups says since when there are rollups.
async fn has_oldest(
    session: Session<'_, impl Store>,
    question: &DeviceQuestion<'_>,
    range: TimeRange,
) -> Result<bool, SeriesError> {
    let zone = question.horizon.zone();
    let dates = zone.dates(range);
    let order = Order::Ascending;
    let days = session.days(question.device.id(), dates, order, 1).await?;
    let span = days.first().and_then(|day| day.rollup.span());
    let Some((first, _)) = span.filter(|(first, _)| range.contains(*first)) else {
        return Ok(true);
    };

    let quarter = QuarterHour::of(first).range();
    let found = session.quarters(question.device.id(), quarter, false).await?;
    Ok(found.iter().any(|quarter| !quarter.is_expired(question.now)))
}
