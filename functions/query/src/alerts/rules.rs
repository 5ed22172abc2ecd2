//! `GET /alerts`, and `GET`, `PUT` and `DELETE /alerts/{id}`: the rules, with their states. Sends nothing.

use ::alerts::{MAX_BACK, Rule, RuleBody, Scope, Watch};
use api::{Problem, ProblemKind, Response, body};
use chrono::TimeDelta;
use domain::RuleId;
use judging::{LostMessages, SeriesError};
use runtime::telemetry::chain;
use serde_json::{Value, json};
use table::{ListPage, Rechecked, StoredAlertState, StoredRule};

use super::{MAX_BODY, UNREADABLE, shown, states, until, warnings};
use crate::ports::Store;
use crate::recheck::recheck;
use crate::registry::lookup::{not_found, path_id};
use crate::saved::contended;
use crate::shared_state::Call;

/// The largest number of alert rules.
const MAX_RULES: usize = 100;
/// The maximum number of a rule's states in the list of all rules, and in the answer about this rule alone.
const LISTED_STATES: usize = 20;
const SHOWN_STATES: usize = 1_000;

/// `GET /alerts`
pub(crate) async fn list(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let rules = call.session.alert_rules().await?;
    let channels = call.session.channels().await?;
    let ListPage { listing: states, has_more } = states::page(None, None, call).await?;

    let damaged = rules.unreadable.iter().chain(&channels.unreadable).chain(&states.unreadable);
    let damaged: Vec<String> = damaged.map(|item| chain(item)).collect();
    let (rules, channels, states) = (rules.found, channels.found, states.found);

    let alerts = rules.iter().map(|rule| {
        let own: Vec<_> = states.iter().filter(|state| state.key.rule == rule.id).collect();
        // States are sorted by rule, so states after this page belong to the rule of its last state or to later rules.
        let is_cut = has_more && states.last().is_none_or(|state| state.key.rule <= rule.id);
        shown::alert(rule, &own, LISTED_STATES, is_cut)
    });

    let (firing, pending) = shown::counts(&states);

    let mut answer = json!({
        "data": alerts.collect::<Vec<_>>(),
        "channels": channels.iter().map(|channel| shown::channel(channel, None)).collect::<Vec<_>>(),
        "firing": firing,
        "pending": pending,
    });
    if !damaged.is_empty() {
        answer["damaged"] = json!(damaged);
        call.log.set(UNREADABLE, damaged);
    }

    Ok(Response::json(200, &answer))
}

/// `GET /alerts/{id}`
pub(crate) async fn show(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let rule = known(call).await?;
    let mut shown = shown_now(&rule, call).await?;
    add_silent_after(&mut shown, &rule.definition, call).await?;
    Ok(Response::json(200, &shown))
}

/// For a rule about the silence of one device, shows the seconds without a reading after which the device is silent.
pub(crate) async fn add_silent_after(
    shown: &mut Value,
    rule: &Rule,
    call: &mut Call<'_, impl Store>,
) -> Result<(), Problem> {
    let (watch @ Watch::Silence { .. }, Scope::Device(device)) = (&rule.watch, &rule.scope) else {
        return Ok(());
    };
    let limit = call.shared.judging.session(call.session).silent_after(watch, device).await?;
    shown["silent_after"] = limit.num_seconds().into();
    Ok(())
}

/// A rule with its current states, as JSON.
pub(crate) async fn shown_now(
    rule: &StoredRule,
    call: &mut Call<'_, impl Store>,
) -> Result<Value, Problem> {
    let (states, has_more) = states::of(Some(&rule.id), call).await?;
    let states: Vec<&StoredAlertState> = states.iter().collect();
    Ok(shown::alert(rule, &states, SHOWN_STATES, has_more))
}

/// `PUT /alerts/{id}`: saves a rule, and judges it. A rule that equals the stored one is judged again, but not written.
pub(crate) async fn put(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let now = call.session.now;
    let id = path_id(call)?;
    let body: RuleBody = body::read(call.request, MAX_BODY)?;
    let wanted = body.rule(now)?;
    until::check("paused_until", wanted.paused_until, now)?;
    let before = call.session.alert_rule(&id).await?;
    if before.is_none() {
        ensure_room(call).await?;
    }

    let rule = replace(before.as_ref(), id, wanted);
    judge_later(&rule, call).await?;
    save(before.as_ref(), &rule, call).await?;
    if before.is_none() {
        make_room(&rule, call).await?;
    }

    let unjudged = judge(&rule, call).await;
    let shown = Box::pin(shown_saved(&rule, unjudged, call)).await;
    Ok(Response::json(200, &shown.map_err(after_saving)?))
}

/// A saved rule, with its states and warnings.
async fn shown_saved(
    rule: &StoredRule,
    unjudged: Option<String>,
    call: &mut Call<'_, impl Store>,
) -> Result<Value, Problem> {
    let mut shown = shown_now(rule, call).await?;
    let mut warnings = warnings::of(&rule.definition, call).await?;
    warnings.extend(unjudged);
    add_silent_after(&mut shown, &rule.definition, call).await?;
    if !warnings.is_empty() {
        shown["warnings"] = json!(warnings);
    }
    Ok(shown)
}

/// Adds to the text of a failure that the rule was saved before the failure.
pub(crate) fn after_saving(failure: Problem) -> Problem {
    let detail = format!("The rule is saved, but not shown. {}", failure.detail);
    Problem { detail, ..failure }
}

/// The rule to store. An edit moves the time `changed` forward, so that a judgement by the old rule is refused and
/// everything is judged anew. An edit on which no judgement depends, such as a pause, keeps `changed`. Saving an equal
/// rule without a pause keeps the pause.
fn replace(before: Option<&StoredRule>, id: RuleId, wanted: Rule) -> StoredRule {
    let Some(before) = before else { return StoredRule { id, version: 1, definition: wanted } };
    let Rule { changed, paused_until, .. } = before.definition;

    let mut definition = wanted;
    definition.changed = if definition.judges_as(&before.definition) {
        changed
    } else {
        definition.changed.max(changed.saturating_add(TimeDelta::milliseconds(1)))
    };

    let unpaused = Rule { paused_until, ..definition.clone() };
    if unpaused == before.definition {
        definition.paused_until = definition.paused_until.or(paused_until);
    }
    StoredRule { id, version: before.version + 1, definition }
}

/// Stores a recheck: the next minute judges a rule on each device or on its room, even if this request ends too early.
/// That judgement also covers readings that an instance processes while it does not know the rule yet.
async fn judge_later(rule: &StoredRule, call: &mut Call<'_, impl Store>) -> Result<(), Problem> {
    if !rule.definition.is_on {
        return Ok(());
    }
    let since = call.session.now.saturating_add(-MAX_BACK);
    recheck(Rechecked::Rule(rule.id.clone()), since, call).await
}

/// Replaces the stored rule `before`. Writes nothing if the rules are equal; fails if the stored rule has changed.
pub(crate) async fn save(
    before: Option<&StoredRule>,
    rule: &StoredRule,
    call: &mut Call<'_, impl Store>,
) -> Result<(), Problem> {
    if before.is_some_and(|before| before.definition == rule.definition) {
        return Ok(());
    }
    if call.session.put_alert_rule(rule).await? {
        return Ok(());
    }
    Err(contended("rule"))
}

/// Judges a saved rule on its readings. An unchanged rule is judged too, because its last judgement may have failed.
/// Returns a warning if something was not judged; the rule stays saved.
pub(crate) async fn judge(rule: &StoredRule, call: &mut Call<'_, impl Store>) -> Option<String> {
    if !rule.definition.is_on {
        return None;
    }

    let session = call.shared.judging.session(call.session);
    let report = match Box::pin(session.judge_saved(rule)).await {
        Ok(report) => report,
        Err(failure) => return Some(not_judged("the rule", failure, call)),
    };
    if let Some(left_out) = LostMessages::of(report.lost_messages) {
        call.log.warn("alerts.left_out", &left_out);
    }

    if let Some((key, failure)) = report.failures.into_iter().next() {
        return Some(not_judged(&key.subject.to_string(), failure, call));
    }

    let number = report.judged;
    report.is_cut.then(|| {
        format!(
            "the rule is judged on {number} devices so far; the others follow, some each minute"
        )
    })
}

/// The warning that something is not judged, and why.
fn not_judged(what: &str, failure: SeriesError, call: &mut Call<'_, impl Store>) -> String {
    let why = match failure {
        SeriesError::Store(error) => {
            call.log.warn("alerts.unjudged", &error);
            "the table did not answer; it is tried again".to_owned()
        }
        SeriesError::OutOfReach(why) => why,
    };
    format!("{what} is not judged yet: {why}")
}

async fn ensure_room(call: &mut Call<'_, impl Store>) -> Result<(), Problem> {
    let rules = call.session.alert_rules().await?;
    if rules.found.len() + rules.unreadable.len() < MAX_RULES {
        return Ok(());
    }
    Err(too_many())
}

/// Deletes the rule that was just saved, if simultaneous requests have saved too many. Each request counts the rules
/// after its own save, so the last count includes every rule that stays.
async fn make_room(rule: &StoredRule, call: &mut Call<'_, impl Store>) -> Result<(), Problem> {
    let rules = call.session.alert_rules().await.map_err(|error| after_saving(error.into()))?;
    if rules.found.len() + rules.unreadable.len() <= MAX_RULES {
        return Ok(());
    }
    call.session.delete_alert_rule(&rule.id).await.map_err(|error| after_saving(error.into()))?;
    Err(too_many())
}

fn too_many() -> Problem {
    let detail = format!(
        "There are {MAX_RULES} rules, and there can be no more. A rule on each device of a room, a kind or a tag \
         takes the place of many."
    );
    Problem::new(ProblemKind::Conflict, detail)
}

/// `DELETE /alerts/{id}`: deletes a rule and its states. The `alerting` function drops its waiting messages.
pub(crate) async fn delete(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let id = path_id(call)?;
    let was_there = call.session.delete_alert_rule(&id).await?;
    // An earlier request may have deleted the rule, and failed before it deleted the states.
    let states = call.session.delete_alert_states(&id).await?;
    if !was_there && states == 0 {
        return Err(not_found("rule", id.as_str()));
    }
    Ok(Response::json(200, &json!({"deleted": 1, "has_more": false})))
}

/// The rule that the request's path names.
pub(crate) async fn known(call: &mut Call<'_, impl Store>) -> Result<StoredRule, Problem> {
    let id = path_id(call)?;
    let found = call.session.alert_rule(&id).await?;
    found.ok_or_else(|| not_found("rule", id.as_str()))
}
