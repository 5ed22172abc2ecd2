//! Parses and checks the end of a rule's pause. Pauses no rule.

use api::Problem;
use chrono::TimeDelta;
use domain::{Edit, TextOrNumber, Timestamp, TimestampError, duration, excerpt};

/// The longest pause.
const MAX_PAUSE: TimeDelta = TimeDelta::days(366);
/// The forms of an end.
const FORMS: &str =
    "must be a time like 2026-01-11T16:00:00Z, a duration like 2h or 7d, or null to end the pause";

/// Parses the end of a pause; `None` ends the pause now.
pub(crate) fn read(
    field: &str,
    until: &Edit<TextOrNumber>,
    now: Timestamp,
) -> Result<Option<Timestamp>, Problem> {
    let text = match until {
        Edit::Clear => return Ok(None),
        Edit::Set(text) => text,
        Edit::Keep => return Err(Problem::field(field, FORMS)),
    };

    let until = match duration::parse(text, "smhdw") {
        Some(time) => now.saturating_add(time),
        None => Timestamp::parse(text, now).map_err(|why| match why {
            TimestampError::UnreadableQuery(text) => {
                Problem::field(field, format!("is {:?}, and {FORMS}", excerpt(&text)))
            }
            _ => Problem::field(field, why),
        })?,
    };
    if until <= now {
        return Err(Problem::field(field, format!("is {:?}, which is over", excerpt(text))));
    }

    check(field, Some(until), now)?;
    Ok(Some(until))
}

/// Refuses an end that is further ahead than `MAX_PAUSE`.
pub(crate) fn check(field: &str, until: Option<Timestamp>, now: Timestamp) -> Result<(), Problem> {
    let latest = now.saturating_add(MAX_PAUSE);
    if until.is_none_or(|until| until <= latest) {
        return Ok(());
    }
    let why = "must be at most a year ahead; to switch the rule off, set on to false";
    Err(Problem::field(field, why))
}
