//! Reads the states of rules, and stores edited states. Judges nothing.

use ::alerts::EpisodeState;
use api::{Problem, ProblemKind};
use domain::RuleId;
use table::{AlertKey, AlertState, ListPage, StoredAlertState};

use super::UNREADABLE;
use crate::ports::Store;
use crate::registry::lookup::readable;
use crate::shared_state::Call;

/// The number of states on a page. An answer shows states of one page at most.
const MAX_STATES: usize = 1_000;
/// The number of attempts to edit a state while judgements change it.
const ATTEMPTS: usize = 5;

/// The states of one rule or of all rules, and whether there are more.
pub(crate) async fn of(
    rule: Option<&RuleId>,
    call: &mut Call<'_, impl Store>,
) -> Result<(Vec<StoredAlertState>, bool), Problem> {
    let ListPage { listing, has_more } = page(rule, None, call).await?;
    Ok((readable(listing, UNREADABLE, call), has_more))
}

/// A page of the states of one rule or of all rules, with the unreadable items.
pub(crate) async fn page(
    rule: Option<&RuleId>,
    after: Option<&AlertKey>,
    call: &mut Call<'_, impl Store>,
) -> Result<ListPage<StoredAlertState>, Problem> {
    Ok(call.session.alert_state_page(rule, after, MAX_STATES).await?)
}

/// The current state of a rule for one subject.
pub(crate) async fn one(
    key: &AlertKey,
    call: &mut Call<'_, impl Store>,
) -> Result<Option<StoredAlertState>, Problem> {
    Ok(call.session.alert_states(std::slice::from_ref(key)).await?.found.pop())
}

/// Edits a state and stores the result. `edit` returns false if the state does not permit the edit. If a judgement
/// changed the state meanwhile, the new state is read and edited. Returns the stored state; `None` if the edit is not
/// permitted or the state is gone.
pub(crate) async fn edit(
    mut known: StoredAlertState,
    edit: impl Fn(&mut EpisodeState) -> bool,
    call: &mut Call<'_, impl Store>,
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

        let (key, next) = (known.key.clone(), AlertState::Episodes(state.clone()));
        let next = StoredAlertState::next(Some(&known), key, next, call.session.now);
        if call.session.put_alert_state(&next).await? {
            return Ok(Some(*state));
        }
        match one(&next.key, call).await? {
            Some(moved) => known = moved,
            None => return Ok(None),
        }
    }

    let detail = "The state is judged again and again at this moment; send it once more.";
    Err(Problem::new(ProblemKind::Contended, detail))
}
