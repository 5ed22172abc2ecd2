//! Reads the states of rules, and stores them edited. Judges nothing.

use ::alerts::EpisodeState;
use api::{Problem, ProblemKind};
use domain::{RuleId, Timestamp};
use runtime::http::Call;
use runtime::telemetry::chain;
use table::{AlertKey, AlertState, ListPage, Listing, StoredAlertState};

use crate::ports::Store;

/// The most states that are read for one answer.
const MAX_STATES: usize = 1_000;
/// How often an edit is tried on a state that is judged at the same moment.
const ATTEMPTS: usize = 5;

/// The states of a rule or of all, and whether there are more.
pub(crate) async fn of(
    rule: Option<&RuleId>,
    store: &impl Store,
    call: &mut Call<'_>,
) -> Result<(Vec<StoredAlertState>, bool), Problem> {
    let ListPage { listing, has_more } = page(rule, store, call).await?;
    Ok((readable(listing, call), has_more))
}

/// The states of a rule or of all, with what cannot be read.
pub(crate) async fn page(
    rule: Option<&RuleId>,
    store: &impl Store,
    call: &mut Call<'_>,
) -> Result<ListPage<StoredAlertState>, Problem> {
    let page = store.alert_state_page(rule, None, MAX_STATES, call.invocation).await;
    page.map_err(|error| call.failed(&error))
}

/// What of a list can be read; the log names the rest.
pub(crate) fn readable<T>(listing: Listing<T>, call: &mut Call<'_>) -> Vec<T> {
    let unreadable: Vec<String> = listing.unreadable.iter().map(|item| chain(item)).collect();
    if !unreadable.is_empty() {
        call.log.set("alerts.unreadable", unreadable);
    }
    listing.found
}

/// A state as it is this moment.
pub(crate) async fn one(
    key: &AlertKey,
    store: &impl Store,
    call: &mut Call<'_>,
) -> Result<Option<StoredAlertState>, Problem> {
    let found = store.alert_states(std::slice::from_ref(key), call.invocation).await;
    Ok(found.map_err(|error| call.failed(&error))?.found.pop())
}

/// Applies `edit` to a state and stores the result. `edit` returns false if the state does not permit it. A state that
/// was judged meanwhile is read and edited again. Returns the stored state; `None` if the edit is not permitted or the
/// state is gone.
pub(crate) async fn edit(
    mut known: StoredAlertState,
    edit: impl Fn(&mut EpisodeState) -> bool,
    now: Timestamp,
    store: &impl Store,
    call: &mut Call<'_>,
) -> Result<Option<EpisodeState>, Problem> {
    for _ in 0..ATTEMPTS {
        let AlertState::Episodes(before) = &known.state else { return Ok(None) };
        let mut state = before.clone();
        if !edit(&mut state) {
            return Ok(None);
        }
        if state == *before {
            return Ok(Some(*state));
        }
        let key = known.key.clone();
        let next =
            StoredAlertState::next(Some(&known), key, AlertState::Episodes(state.clone()), now);
        let put = store.put_alert_state(&next, call.invocation).await;
        if put.map_err(|error| call.failed(&error))? {
            return Ok(Some(*state));
        }
        match one(&next.key, store, call).await? {
            Some(moved) => known = moved,
            None => return Ok(None),
        }
    }
    let detail = "The state is judged again and again at this moment; send it once more.";
    Err(Problem::new(ProblemKind::Contended, detail))
}
