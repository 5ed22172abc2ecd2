//! What the readings say now of the episodes that were told. Tells nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use ::alerts::Subject;
use api::Problem;
use chrono::TimeDelta;
use domain::{TimeRange, Timestamp};
use judging::{Failure, Judging, MAX_PREVIEW, Previewed};
use runtime::http::Call;
use series::Horizon;
use table::ToldMessage;

use crate::ports::Store;

/// The most states whose readings are read for one answer.
const MAX_STATES: usize = 10;
/// With less time left no further readings are read.
const MIN_REMAINING: Duration = Duration::from_secs(4);
/// How long before the first breach of the messages readings are read.
const BEFORE: TimeDelta = TimeDelta::hours(1);

/// Of each message `same` if there is its episode, `differs` if there is another one at that time, `gone` if there is no
/// episode; nothing where it is too long ago, or of too many states.
pub(super) async fn with_readings(
    (judging, horizon): (&Judging, &Horizon),
    store: &impl Store,
    told: &[ToldMessage],
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Vec<Option<&'static str>>, Problem> {
    // One preview is for all messages of a state by the same rule.
    let mut states: BTreeMap<(&Subject, Timestamp), Vec<usize>> = BTreeMap::new();
    for (place, it) in told.iter().enumerate() {
        states.entry((&it.alert.subject, it.rule.changed)).or_default().push(place);
    }
    let mut says = vec![None; told.len()];
    for ((subject, _), places) in states.into_iter().take(MAX_STATES) {
        if call.invocation.remaining() < MIN_REMAINING {
            break;
        }
        let messages = || places.iter().map(|place| &told[*place]);
        let Some(last) = messages().map(|it| it.at).max() else { continue };
        let first = messages().map(|it| it.message.since).min().unwrap_or(last);
        let to = last.saturating_add(BEFORE).min(now);
        let from = first.saturating_add(-BEFORE).max(to.saturating_add(-MAX_PREVIEW));
        let Ok(range) = TimeRange::new(from, to) else { continue };
        // Each was judged by the rule as it was.
        let rule = &told[places[0]].rule;
        let found = judging.preview(store, (rule, subject), (range, horizon), now, call.invocation);
        let found = match Box::pin(found).await {
            Ok(found) => found,
            Err(Failure::Store(error)) => return Err(call.failed(&error)),
            Err(Failure::OutOfReach(_)) => continue,
        };
        for place in places {
            let message = &told[place];
            if message.message.since >= from {
                says[place] = Some(compared(message, &found.episodes));
            }
        }
    }
    Ok(says)
}

fn compared(told: &ToldMessage, episodes: &[Previewed]) -> &'static str {
    let (since, fired) = (told.message.since, told.message.fired);
    let until = told.message.ended.unwrap_or(told.at);
    let is_then =
        |it: &&Previewed| it.since <= until && it.ended.is_none_or(|ended| ended >= since);
    match episodes.iter().find(|it| (it.since, it.fired) == (since, fired)) {
        Some(_) => "same",
        None if episodes.iter().any(|it| is_then(&it)) => "differs",
        None => "gone",
    }
}
