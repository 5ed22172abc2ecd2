//! Refines episodes by readings: those inside, and those of one quarter of an hour around. Finds no episode
//! that the means do not show.

use chrono::TimeDelta;
use domain::{Episode, Quarter, Reading, TimeRange, exact_episodes};
use table::{Invocation, QueryReadings};

use super::request::ConditionsRequest;
use crate::series::failure::Failure;
use crate::series::gather::{Ask, MAX_READ, readings};
use crate::series::grid::{intersection, joined};

/// The episodes of a device by its readings; those whose readings are gone stay as they are.
pub(crate) async fn refined(
    store: &impl QueryReadings,
    ask: &Ask<'_>,
    request: &ConditionsRequest,
    episodes: Vec<Episode>,
    invocation: &Invocation,
) -> Result<Vec<Episode>, Failure> {
    let windows = episodes.iter().filter_map(|it| {
        let from = it.range.from().saturating_add(-Quarter::LENGTH);
        let around = TimeRange::new(from, it.range.to().saturating_add(Quarter::LENGTH));
        intersection(around.expect("it is longer than the episode"), ask.grid.range())
    });
    let windows = joined(windows.collect());
    let length: TimeDelta = windows.iter().map(|it| it.to().since(it.from())).sum();
    if length > MAX_READ {
        return Err(Failure::OutOfReach(format!(
            "The episodes of {} take {} hours with what is around them, and exact=1 reads the readings \
             of at most {} hours. Narrow from and to or the conditions, or ask without exact.",
            ask.device.id,
            length.num_hours(),
            MAX_READ.num_hours()
        )));
    }
    let mut refined = Vec::new();
    for window in windows {
        let mut found = readings(store, ask, window, invocation).await?;
        found.retain(|it| ask.is_about(it.room.as_ref()));
        refined.extend(exact_episodes(&found, &request.conditions, window));
        let is_gone = |it: &&Episode| {
            let is_of = window.contains(it.range.from());
            is_of && !found.iter().any(|reading: &Reading| it.range.contains(reading.at))
        };
        refined.extend(episodes.iter().filter(is_gone).cloned());
    }
    Ok(refined)
}
