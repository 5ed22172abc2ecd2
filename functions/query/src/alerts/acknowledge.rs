//! `POST /alerts/{id}/acknowledge` by a token, and `POST /acknowledge` by the link of a message. Ends no episode.

use ::alerts::{AlertSubject, EpisodeState, LinkKey};
use api::{Problem, ProblemKind, Response, body};
use domain::RuleId;
use runtime::clock::Clock;
use runtime::http::Call;
use serde::Deserialize;
use serde_json::json;
use table::AlertKey;

use super::body::MAX_BODY;
use super::{rules, states};
use crate::handlers::Handlers;
use crate::ports::Store;

/// The subject whose episode is acknowledged; without it all of the rule are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubjectBody {
    subject: Option<AlertSubject>,
}

/// What a link has in its fragment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkBody {
    rule: RuleId,
    subject: AlertSubject,
    key: String,
}

/// `POST /alerts/{id}/acknowledge`: the episodes of a rule that last, or the one of a subject.
pub(crate) async fn by_token(
    _: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let SubjectBody { subject } = body::read(call.request, MAX_BODY)?;
    let rule = rules::known(call).await?;
    let (found, _) = states::of(Some(&rule.id), call).await?;
    let mut is_any = false;
    for state in found {
        if subject.as_ref().is_none_or(|subject| state.key.subject == *subject) {
            is_any |= states::edit(state, EpisodeState::acknowledge, call).await?.is_some();
        }
    }
    if !is_any {
        let detail = match subject {
            Some(subject) => format!("The rule {} does not fire for {subject}.", rule.id),
            None => format!("The rule {} does not fire.", rule.id),
        };
        return Err(Problem::new(ProblemKind::Conflict, detail));
    }
    Ok(Response::json(200, &rules::shown_now(&rule, call).await?))
}

/// `POST /acknowledge`: the link permits this and nothing else. What it does not fit is answered alike, whether the
/// rule, the subject or the key is wrong or the episode is over.
pub(crate) async fn by_link(
    _: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
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
