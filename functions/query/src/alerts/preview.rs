//! `POST /alerts/preview`: the episodes that a rule would have had. Stores and sends nothing.

use ::alerts::{AlertSubject, RuleBody, Scope};
use api::{Problem, Response, body};
use chrono::TimeDelta;
use domain::{DeviceId, Label, TextOrNumber, TimeRange, Timestamp};
use judging::{MAX_PREVIEW, Preview, PreviewQuestion, Previewed, subjects_of};
use serde::Deserialize;
use serde_json::{Value, json};
use series::UnfoldedChanges;
use std::time::Duration;
use table::MAX_CACHED_ENTRIES;

use super::MAX_BODY;
use super::{rules, warnings};
use crate::failure::problem;
use crate::ports::Store;
use crate::shared_state::{Call, SharedState};

/// The length of the range if `from` is absent.
const DEFAULT_RANGE: TimeDelta = TimeDelta::days(7);
/// The maximum number of subjects in an answer, and the maximum number of episodes of each.
const MAX_SUBJECTS: usize = 20;
const MAX_EPISODES: usize = 1_000;
/// With less time left, no further subject is previewed.
const MIN_REMAINING: Duration = Duration::from_secs(4);

/// The body: a rule, and the range and subject for which episodes are shown.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PreviewBody {
    rule: RuleBody,
    from: Option<TextOrNumber>,
    to: Option<TextOrNumber>,
    subject: Option<AlertSubject>,
}

/// `POST /alerts/preview`: tries a rule on the past, by the same code as real judgements.
pub(crate) async fn preview(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let SharedState { judging, .. } = call.shared;
    let now = call.session.now;

    let body: PreviewBody = body::read(call.request, MAX_BODY)?;
    let range = body.range(now)?;

    let PreviewBody { mut rule, subject: requested, .. } = body;
    // A rule needs a name, but a preview does not show it.
    let name = || Label::try_from("preview".to_owned()).expect("a label");
    rule.name.get_or_insert_with(name);
    let rule = rule.rule(now)?;

    let devices = judging.session(call.session).devices().await?;
    if !devices.is_whole() && !matches!(rule.scope, Scope::Device(_)) {
        let why = format!(
            "there are more than {MAX_CACHED_ENTRIES} devices, so a preview is of a rule with device only"
        );
        return Err(Problem::field("rule", why));
    }

    let subjects = chosen(subjects_of(&rule, devices.iter()), requested)?;

    let horizon = call.shared.rollup_state.horizon(call.session).await?;
    let lacking = UnfoldedChanges::read(call.session, &horizon).await?;
    let mut shown = Vec::new();
    for subject in subjects.iter().take(MAX_SUBJECTS) {
        if !shown.is_empty() && call.session.invocation.remaining() < MIN_REMAINING {
            break;
        }
        let session = judging.session(call.session);
        let question = PreviewQuestion { rule: &rule, subject, range, horizon: &horizon };
        let found = Box::pin(session.preview(question)).await.map_err(problem)?;
        shown.push(of_subject(subject, &found));
    }

    let episodes: usize =
        shown.iter().filter_map(|rule| rule["episodes"].as_array().map(Vec::len)).sum();
    let mut answer = json!({
        "from": range.from(),
        "to": range.to(),
        "episodes": episodes,
        "has_more_subjects": subjects.len() > shown.len(),
        "subjects": shown,
    });

    if let Some(lag) = lacking.lag_of(with_lead(range), device_of(&subjects)) {
        answer["rollups_lack"] = json!(lag);
    }

    rules::add_silent_after(&mut answer, &rule, call).await?;
    let warnings = warnings::of_subjects(&rule, call).await?;
    if !warnings.is_empty() {
        answer["warnings"] = json!(warnings);
    }

    Ok(Response::json(200, &answer))
}

/// The subjects of a rule, or only the requested subject.
fn chosen(
    subjects: Vec<AlertSubject>,
    requested: Option<AlertSubject>,
) -> Result<Vec<AlertSubject>, Problem> {
    match requested {
        None => Ok(subjects),
        Some(subject) if subjects.contains(&subject) => Ok(vec![subject]),
        Some(subject) => Err(Problem::field("subject", format!("the rule is not about {subject}"))),
    }
}

impl PreviewBody {
    fn range(&self, now: Timestamp) -> Result<TimeRange, Problem> {
        let end = |name: &str, text: &Option<TextOrNumber>, default: Timestamp| {
            let end = text.as_ref().map_or(Ok(default), |text| Timestamp::parse(text, now));
            end.map_err(|why| Problem::field(name, why))
        };

        let to = end("to", &self.to, now)?;
        let from = end("from", &self.from, to.saturating_add(-DEFAULT_RANGE))?;
        let range = TimeRange::new(from, to).map_err(|why| Problem::field("from", why))?;
        if to.since(from) > MAX_PREVIEW {
            let days = MAX_PREVIEW.num_days();
            return Err(Problem::field("from", format!("is more than {days} days before to")));
        }
        Ok(range)
    }
}

/// Extends a range to the past: an episode that reaches into the range may have begun there.
fn with_lead(range: TimeRange) -> TimeRange {
    let from = range.from().saturating_add(-MAX_PREVIEW);
    TimeRange::new(from, range.to()).unwrap_or(range)
}

/// The device, if a preview is about a single device.
fn device_of(subjects: &[AlertSubject]) -> Option<&DeviceId> {
    match subjects {
        [AlertSubject::Device(device)] => Some(device),
        _ => None,
    }
}

fn of_subject(subject: &AlertSubject, found: &Preview) -> Value {
    let episode = |previewed: &Previewed| {
        let mut shown =
            json!({"since": previewed.since, "fired": previewed.fired, "ended": previewed.ended});
        if let Some(value) = &previewed.value {
            shown["value"] = value.to_string().into();
        }
        shown
    };

    let episodes: Vec<Value> = found.episodes.iter().take(MAX_EPISODES).map(episode).collect();
    let expired =
        found.by_extremes.iter().map(|range| json!({"from": range.from(), "to": range.to()}));

    json!({
        "subject": subject.to_string(),
        "by": if found.by_extremes.is_empty() { "readings" } else { "extremes" },
        "by_extremes": expired.collect::<Vec<_>>(),
        "has_more": found.has_more || found.episodes.len() > episodes.len(),
        "episodes": episodes,
    })
}
