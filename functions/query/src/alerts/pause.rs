//! `POST /alerts/{id}/pause`: a rule makes no messages until a given time. It is judged all the same.

use ::alerts::Rule;
use api::{Problem, Response, body};
use domain::{Edit, TextOrNumber};
use serde::Deserialize;
use table::StoredRule;

use super::MAX_BODY;
use super::{rules, until};
use crate::ports::Store;
use crate::shared_state::Call;

/// The body: the end of the pause; `null` ends the pause now.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PauseBody {
    #[serde(default)]
    until: Edit<TextOrNumber>,
}

/// `POST /alerts/{id}/pause`
pub(crate) async fn pause(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let now = call.session.now;

    let PauseBody { until } = body::read(call.request, MAX_BODY)?;
    let until = until::read("until", &until, now)?;
    let before = rules::known(call).await?;
    let rule = StoredRule {
        id: before.id.clone(),
        version: before.version + 1,
        definition: Rule { paused_until: until, ..before.definition.clone() },
    };

    rules::save(Some(&before), &rule, call).await?;
    if until.is_none() {
        // At the end of a pause a message may be due. If this judgement fails, the next scheduled judgement makes the
        // message.
        rules::judge(&rule, call).await;
    }

    let shown = rules::shown_now(&rule, call).await.map_err(rules::after_saving)?;
    Ok(Response::json(200, &shown))
}
