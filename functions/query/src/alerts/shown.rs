//! A rule with its states, and a channel, as JSON of the API. Reads nothing.

use ::alerts::{EpisodeState, FigureState, Phase};
use domain::Timestamp;
use serde_json::{Map, Value, json};
use table::{AlertState, StoredAlertState, StoredChannel, StoredRule};

/// A rule with at most `max` of its states: firing states come first.
pub(crate) fn alert(
    rule: &StoredRule,
    states: &[&StoredAlertState],
    max: usize,
    has_more: bool,
) -> Value {
    let mut sorted = states.to_vec();
    sorted.sort_by_key(|state| (rank(state), state.key.clone()));
    let count = |rank_of: u8| states.iter().filter(|state| rank(state) == rank_of).count();

    let mut shown = rule.definition.to_json();
    shown["id"] = json!(rule.id);
    shown["changed"] = json!(rule.definition.changed);
    shown["firing"] = count(FIRING).into();
    shown["pending"] = count(PENDING).into();
    shown["has_more_states"] = (has_more || states.len() > max).into();
    shown["states"] = sorted.into_iter().take(max).map(state).collect();
    shown
}

const FIRING: u8 = 0;
const PENDING: u8 = 1;

fn rank(stored: &StoredAlertState) -> u8 {
    match &stored.state {
        AlertState::Episodes(state) => match state.fold.phase {
            Phase::Firing { .. } | Phase::Recovering { .. } => FIRING,
            Phase::Pending { .. } => PENDING,
            Phase::Normal { .. } => 2,
        },
        AlertState::Figures(_) => 2,
    }
}

/// The number of firing states, and of pending states.
pub(crate) fn counts(states: &[StoredAlertState]) -> (usize, usize) {
    let count = |rank_of: u8| states.iter().filter(|state| rank(state) == rank_of).count();
    (count(FIRING), count(PENDING))
}

fn state(stored: &StoredAlertState) -> Value {
    let mut shown = match &stored.state {
        AlertState::Episodes(state) => episodes(state),
        AlertState::Figures(once) => told_once(once),
    };
    shown["subject"] = json!(stored.key.subject.to_string());
    shown
}

fn episodes(state: &EpisodeState) -> Value {
    let (phase, since, fired, clear) = match state.fold.phase {
        // A normal phase has no begin to show: its time is where the fold began.
        Phase::Normal { .. } => ("normal", None, None, None),
        Phase::Pending { since } => ("pending", Some(since), None, None),
        Phase::Firing { since, fired } => ("firing", Some(since), Some(fired), None),
        Phase::Recovering { since, fired, clear } => {
            ("recovering", Some(since), Some(fired), Some(clear))
        }
    };

    let mut shown = json!({
        "phase": phase,
        "acknowledged": state.acknowledged.is_some(),
    });
    let mut set = |name: &str, at: Option<Timestamp>| {
        at.into_iter().for_each(|at| shown[name] = json!(at));
    };
    set("since", since);
    set("fired", fired);
    set("clear", clear);
    set("seen", state.fold.seen);
    set("told", state.told.told_at);
    set("judged", state.judged_until);

    if let Some(value) = &state.fold.value {
        shown["value"] = value.as_str().into();
    }
    if state.fold.is_silent {
        shown["silent"] = true.into();
    }
    shown
}

fn told_once(once: &FigureState) -> Value {
    let last = once.told.keys().next_back();
    let mut shown = json!({
        "phase": if last.is_some() { "told" } else { "normal" },
        "count": once.told.len(),
    });
    last.into_iter().for_each(|at| shown["last"] = json!(at));
    shown
}

/// A channel. `waiting` is the number of its waiting messages and the time of the oldest.
pub(crate) fn channel(
    stored: &StoredChannel,
    waiting: Option<(usize, Option<Timestamp>)>,
) -> Value {
    let mut shown = Map::new();
    shown.insert("id".to_owned(), json!(stored.id));
    shown.extend(stored.settings.clone());
    if let Some(quiet_hours) = stored.quiet_hours {
        shown.insert("quiet_hours".to_owned(), quiet_hours.to_string().into());
    }

    if let Some(failing) = stored.failing {
        shown.insert("failing_since".to_owned(), json!(failing.since));
        shown.insert("next".to_owned(), json!(failing.next));
    }

    if let Some((waiting, since)) = waiting {
        shown.insert("waiting".to_owned(), waiting.into());
        since.into_iter().for_each(|at| {
            shown.insert("waiting_since".to_owned(), json!(at));
        });
    }

    Value::Object(shown)
}
