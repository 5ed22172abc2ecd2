//! Episodes in which metrics had the values asked for. Folds nothing.
//!
//! `plan` chooses how the matching quarters of an hour are found: `plain` among all of them, `indexed` by the index.
//! `exact` refines episodes by readings.

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
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use table::Invocation;

use crate::error::SeriesError;
use crate::gather::DeviceQuestion;
use crate::grid::uncovered;
use crate::left_out::DEVICE_CONCURRENCY;
use crate::ports::{ConditionsStore, Store};
use indexed::Indexed;
use matching::Matching;

pub use plan::{Explanation, IndexPlan};
pub use search::EpisodeSearch;

/// The episodes of all devices, by their begin, and what the index has to do with them.
///
/// # Errors
///
/// If the table fails, or if the readings of too long a time would be read.
pub async fn find<'a>(
    store: &impl ConditionsStore,
    questions: &[DeviceQuestion<'a>],
    search: &EpisodeSearch,
    invocation: &Invocation,
) -> Result<(Vec<(&'a DeviceId, Episode)>, IndexPlan), SeriesError> {
    questions.iter().try_for_each(DeviceQuestion::check)?;

    let mut plan = IndexPlan::default();
    let matching = match by_index(store, questions, search, &mut plan, invocation).await? {
        Ok(matching) => matching,
        Err(reason) => {
            plan.reason = Some(reason);
            let whole = |question: &DeviceQuestion<'_>| vec![question.grid.range()];
            by_rollups(store, questions, whole, search, invocation).await?
        }
    };

    let mut found = Vec::new();
    for (question, matching) in questions.iter().zip(matching) {
        let matching: Vec<_> = matching.into_iter().collect();
        let mut of_device = episodes(&matching);
        if search.is_exact {
            of_device = exact::refined(store, question, search, of_device, invocation).await?;
        }
        found.extend(of_device.into_iter().map(|episode| (question.device.id(), episode)));
    }
    found.sort_by_key(|(device, episode)| (episode.range.from(), *device));
    Ok((found, plan))
}

/// What matches, by the rollups of parts of what is asked of each device.
async fn by_rollups(
    store: &impl Store,
    questions: &[DeviceQuestion<'_>],
    parts: impl Fn(&DeviceQuestion<'_>) -> Vec<TimeRange>,
    search: &EpisodeSearch,
    invocation: &Invocation,
) -> Result<Vec<Matching>, SeriesError> {
    let asked = questions.iter().map(|question| {
        let parts = parts(question);
        Box::pin(async move {
            let mut matching = Matching::new();
            for part in parts {
                matching.extend(plain::matching(store, question, part, search, invocation).await?);
            }
            Ok::<_, SeriesError>(matching)
        })
    });
    let asked: Vec<_> = asked.collect();
    stream::iter(asked).buffered(DEVICE_CONCURRENCY).try_collect().await
}

/// What matches, by the index, and by rollups where it may not be complete; else why it is not used.
async fn by_index(
    store: &impl ConditionsStore,
    questions: &[DeviceQuestion<'_>],
    search: &EpisodeSearch,
    plan: &mut IndexPlan,
    invocation: &Invocation,
) -> Result<Result<Vec<Matching>, String>, SeriesError> {
    if let Some(reason) = plan::unsuitable(search, store.has_conditions_index()) {
        return Ok(Err(reason.to_owned()));
    }

    let before = invocation.read_units();
    // As it is this moment: by an older schema the index finds nothing of what is folded by a newer one.
    let stored = store.conditions_schema(invocation).await?;
    let (boxed, budget) = match plan::choose(stored.as_ref(), search, questions, plan) {
        Ok(chosen) => chosen,
        Err(reason) => return Ok(Err(reason)),
    };

    let mut indexed = Vec::new();
    for question in questions {
        let Some(range) = indexed_range(question) else {
            return Ok(Err(format!("the rollups of {} are too new", question.device.id())));
        };
        if !follows_settings(store, question, invocation).await? {
            return Ok(Err(format!(
                "settings of the metrics of {} have changed, and its rollups do not follow yet",
                question.device.id()
            )));
        }
        if !has_oldest(store, question, range, invocation).await? {
            return Ok(Err(format!("rollups of {} have expired", question.device.id())));
        }
        indexed.push(Indexed { question, range });
    }

    // What has been read to get here is a part of the index's cost.
    let budget = budget - (invocation.read_units() - before);
    let matching = indexed::matching(store, &indexed, &boxed, budget, invocation).await?;
    plan.consumed = invocation.read_units() - before;
    let Some(mut matching) = matching else {
        return Ok(Err("the index has cost a fifth of all rollups".to_owned()));
    };

    let rest =
        |question: &DeviceQuestion<'_>| uncovered(question.grid.range(), indexed_range(question));
    let others = by_rollups(store, questions, rest, search, invocation).await?;
    for (matching, others) in matching.iter_mut().zip(others) {
        matching.extend(others);
    }
    plan.consumed = invocation.read_units() - before;
    Ok(Ok(matching))
}

/// Whether the index has what a device's present settings make of the readings: after a change the rollups are folded
/// again.
async fn follows_settings(
    store: &impl ConditionsStore,
    question: &DeviceQuestion<'_>,
    invocation: &Invocation,
) -> Result<bool, SeriesError> {
    let (settings, range) = (question.device.fold_settings(), question.grid.range());
    if !settings.concerns(0, range) {
        return Ok(true);
    }
    let folded = store.refold(question.device.id(), invocation).await?;
    Ok(!settings.concerns(folded.settings, range))
}

/// The time before the newest rollup in which the index may not have all of them yet.
const MAX_DELAY: TimeDelta = TimeDelta::hours(1);

/// The part of what is asked of a device that the index has.
fn indexed_range(question: &DeviceQuestion<'_>) -> Option<TimeRange> {
    let rolled_up = question.rolled_up()?;
    let sealed = question.horizon.rolled_up(question.device.id())?.to();
    TimeRange::new(rolled_up.from(), rolled_up.to().min(sealed.saturating_add(-MAX_DELAY))).ok()
}

/// Whether the device's rollups of 15 minutes reach back as far as those of days say. Where they have
/// expired the index says nothing, and the rollups say from when on there are some.
async fn has_oldest(
    store: &impl Store,
    question: &DeviceQuestion<'_>,
    range: TimeRange,
    invocation: &Invocation,
) -> Result<bool, SeriesError> {
    let zone = question.horizon.zone();
    let dates = zone.dates(range);
    let order = Order::Ascending;
    let days = store.days(question.device.id(), dates, order, 1, invocation).await?;
    let first =
        days.iter().flat_map(|day| day.rollup.metrics.values()).map(|metric| metric.first.at).min();
    let Some(first) = first.filter(|first| range.contains(*first)) else { return Ok(true) };
    let quarter = QuarterHour::of(first).range();
    let found = store.quarters(question.device.id(), quarter, false, invocation).await?;
    Ok(found.iter().any(|quarter| !quarter.is_expired(question.now)))
}
