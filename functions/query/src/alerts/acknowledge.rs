//! `POST /alerts/{id}/acknowledge` by a token, and `POST /acknowledge` by the link of a message. Ends no alert.

use ::alerts::{AlertSubject, EpisodeState, LinkKey};
use api::{Problem, ProblemKind, Response, body};
use domain::RuleId;
use serde::Deserialize;
use serde_json::json;
use table::{AlertKey, ListPage, StoredAlertState};

use super::{MAX_BODY, UNREADABLE, rules, states};
use crate::ports::Store;
use crate::registry::lookup::readable;
use crate::shared_state::Call;

/// The body: the subject whose episode is acknowledged. Without a subject, all episodes of the rule are acknowledged.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubjectBody {
    subject: Option<AlertSubject>,
}

/// The body: the parts of a message's link, which stand after its `#`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkBody {
    rule: RuleId,
    subject: AlertSubject,
    key: String,
}

/// `POST /alerts/{id}/acknowledge`: acknowledges the current episode of one subject, or of all subjects of the rule.
pub(crate) async fn by_token(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let SubjectBody { subject } = body::read(call.request, MAX_BODY)?;
    let rule = rules::known(call).await?;

    let is_any = match &subject {
        Some(subject) => {
            let key = rule.on(subject.clone());
            let state = states::one(&key, call).await?;
            acknowledge(state, call).await?
        }
        None => acknowledge_all(&rule.id, call).await?,
    };

    if !is_any {
        let detail = match subject {
            Some(subject) => format!("The rule {} does not fire for {subject}.", rule.id),
            None => format!("The rule {} does not fire.", rule.id),
        };
        return Err(Problem::new(ProblemKind::Conflict, detail));
    }

    Ok(Response::json(200, &rules::shown_now(&rule, call).await?))
}

/// Acknowledges the current episodes of a rule; returns whether there was any. If time runs out, the client gets an
/// error and can repeat the request: acknowledged episodes are not written again.
async fn acknowledge_all(rule: &RuleId, call: &mut Call<'_, impl Store>) -> Result<bool, Problem> {
    let (mut is_any, mut after) = (false, None);
    loop {
        let ListPage { listing, has_more } = states::page(Some(rule), after.as_ref(), call).await?;
        let found = readable(listing, UNREADABLE, call);
        after = found.last().filter(|_| has_more).map(|state| state.key.clone());

        is_any |= acknowledge(found, call).await?;
        if after.is_none() {
            return Ok(is_any);
        }
    }
}

/// Acknowledges the states of a list that fire; returns whether any of them fires.
async fn acknowledge(
    states: impl IntoIterator<Item = StoredAlertState>,
    call: &mut Call<'_, impl Store>,
) -> Result<bool, Problem> {
    let mut is_any = false;
    for state in states {
        is_any |= states::edit(state, EpisodeState::acknowledge, call).await?.is_some();
    }
    Ok(is_any)
}

/// `POST /acknowledge`: acknowledges an episode by the key in a message's link, which permits nothing else. The answer
/// is the same for a wrong rule, a wrong subject, a wrong key and an ended episode.
pub(crate) async fn by_link(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let LinkBody { rule, subject, key } = body::read(call.request, MAX_BODY)?;
    let key = LinkKey::of(key);
    let found = states::one(&AlertKey { rule, subject }, call).await?;
    let state = match found {
        Some(state) => states::edit(state, |state| state.acknowledge_by(&key), call).await?,
        None => None,
    };

    let Some(state) = state else {
        let detail = "This link is of no episode that lasts. It may be over, or a newer message has a newer link.";
        return Err(Problem::new(ProblemKind::NotFound, detail));
    };

    Ok(Response::json(200, &json!({"acknowledged": true, "since": state.acknowledged})))
}
