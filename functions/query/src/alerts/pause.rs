//! `POST /alerts/{id}/pause`: a rule tells nothing until a time. Its states go on.

use ::alerts::Rule;
use api::{Problem, Response};
use chrono::TimeDelta;
use domain::{Timestamp, duration, excerpt};
use judging::Judging;
use runtime::http::Call;
use serde_json::Value;
use table::StoredRule;

use super::{body, rules};
use crate::ports::Store;

/// How far ahead a pause ends at most.
const MAX_PAUSE: TimeDelta = TimeDelta::days(366);
const UNTIL: &str = "until";

/// `POST /alerts/{id}/pause`
pub(crate) async fn pause(
    judging: &Judging,
    store: &impl Store,
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let members = body::object(call.request)?;
    body::only(&members, &[UNTIL])?;
    let until = until(members.get(UNTIL), now)?;
    let before = rules::known(store, call).await?;
    let rule = StoredRule {
        id: before.id.clone(),
        version: before.version + 1,
        rule: Rule { paused_until: until, ..before.rule.clone() },
    };
    rules::save(Some(&before), &rule, store, call).await?;
    if until.is_none() {
        // What is true is told now; what fails here is told by the minute.
        rules::judge(judging, &rule, store, now, call).await;
    }
    Ok(Response::json(200, &rules::shown_now(&rule, store, call).await?))
}

fn until(value: Option<&Value>, now: Timestamp) -> Result<Option<Timestamp>, Problem> {
    let text = match value {
        Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => {
            let why = "must be a time like 2026-01-11T16:00:00Z, a duration like 2h or 7d, or null to end the pause";
            return Err(Problem::field(UNTIL, why));
        }
    };
    let until = match duration::parse(&text, "smhdw") {
        Some(time) => now.saturating_add(time),
        None => {
            Timestamp::parse(&text, now).map_err(|why| Problem::field(UNTIL, why.to_string()))?
        }
    };
    if until <= now {
        return Err(Problem::field(UNTIL, format!("is {:?}, which is over", excerpt(&text))));
    }
    check(UNTIL, Some(until), now)?;
    Ok(Some(until))
}

/// Refuses a pause that nobody would live to see end.
pub(crate) fn check(field: &str, until: Option<Timestamp>, now: Timestamp) -> Result<(), Problem> {
    let latest = now.saturating_add(MAX_PAUSE);
    if until.is_none_or(|until| until <= latest) {
        return Ok(());
    }
    let why = "must be at most a year ahead; to switch the rule off, set on to false";
    Err(Problem::field(field, why))
}
