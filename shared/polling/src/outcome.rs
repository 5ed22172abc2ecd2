//! What an answer means: it can be read, or there is a reason why not and a time of the next request. Reads no clock.

use chrono::TimeDelta;
use domain::Timestamp;
use outgoing::Fetched;
use serde_json::Value;

use crate::kind::{Own, SourceKind};

/// The shortest pause after a limit.
const LEAST_LIMIT: TimeDelta = TimeDelta::minutes(1);
/// The longest pause after a limit.
pub(crate) const MAX_LIMIT: TimeDelta = TimeDelta::hours(24);
/// The longest pause after failures.
pub(crate) const MAX_FAILURE_PAUSE: TimeDelta = TimeDelta::hours(1);
/// The pause after a limit, if the answer names no time.
const UNNAMED: TimeDelta = TimeDelta::hours(1);
/// If the clock here differs from the server's by more than this, it is wrong.
const WRONG_CLOCK: TimeDelta = TimeDelta::minutes(1);
/// From this number on, `RateLimit-Reset` means seconds since 1970; smaller numbers mean seconds from now.
const UNIX_SECONDS: i64 = 1_000_000_000;

/// The meaning of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerOutcome {
    /// The answer can be read.
    Read(Value),
    /// There is no data yet, which is no error.
    Nothing,
    /// The maker takes no more requests for now.
    Limited {
        /// The time of the next request.
        until: Timestamp,
        /// The reason, in words for people.
        why: String,
    },
    /// The answer is an error.
    Failing {
        /// The reason, in words for people.
        why: String,
        /// The pause until the next request.
        pause: FailurePause,
    },
}

/// How long a source is not polled after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePause {
    /// A pause of an hour, because the maker refuses the secret: it may lock the account after several attempts.
    Refused,
    /// A pause of a quarter of an hour, then of an hour, because a person has to mend something.
    Mend,
    /// A pause that doubles from 1 minute to an hour, because the next attempt may succeed. The first failure is not
    /// reported.
    Transient,
}

impl FailurePause {
    /// The pause after this many failures in a row, the last one included.
    pub fn after(self, failures: u32) -> TimeDelta {
        match (self, failures) {
            (Self::Refused, _) | (Self::Mend, 2..) | (Self::Transient, 7..) => MAX_FAILURE_PAUSE,
            (Self::Mend, _) => TimeDelta::minutes(15),
            (Self::Transient, failures) => {
                TimeDelta::minutes(1 << failures.saturating_sub(1)).min(MAX_FAILURE_PAUSE)
            }
        }
    }

    /// Whether a failure is reported, if it is the last of this many in a row.
    pub const fn is_told(self, failures: u32) -> bool {
        !matches!(self, Self::Transient) || failures >= 2
    }
}

impl AnswerOutcome {
    /// The meaning of an answer that came at `now`.
    pub(crate) fn of(kind: &'static SourceKind, answer: &Fetched, now: Timestamp) -> Self {
        let title = kind.title;
        let body = serde_json::from_slice::<Value>(&answer.body);
        let own = body.as_ref().ok().and_then(|body| (kind.judge)(answer.status, body));

        match (own, answer.status) {
            (Some(Own::Limited(why)), _) => Self::limited(answer, format!("{title} {why}"), now),
            (Some(Own::Failing(why)), _) => {
                Self::Failing { why: format!("{title} {why}"), pause: FailurePause::Mend }
            }
            (Some(Own::Nothing), _) => Self::Nothing,
            (None, 200..=299) => body.map_or_else(
                |_| {
                    let why = format!("{title} answers something that is not JSON");
                    Self::Failing { why, pause: FailurePause::Mend }
                },
                Self::Read,
            ),
            (None, 429) => {
                Self::limited(answer, format!("{title} takes no more requests now"), now)
            }
            (None, status) => Self::failing(title, status, answer, now),
        }
    }

    fn failing(title: &str, status: u16, answer: &Fetched, now: Timestamp) -> Self {
        let (why, pause) = match status {
            401 | 403 => {
                let clock = answer.date().map(|date| date.since(now).abs());
                let why = match clock.filter(|differs| *differs > WRONG_CLOCK) {
                    Some(differs) => format!(
                        "{title} answers {status}, and its clock differs from the one here by {} s: set the clock",
                        differs.num_seconds()
                    ),
                    None => format!("{title} answers {status}: it wants a secret, or another one"),
                };
                (why, FailurePause::Refused)
            }
            300..=399 => {
                let why = format!(
                    "{title} answers {status}; redirects are not followed, so write the address where it leads to"
                );
                (why, FailurePause::Mend)
            }
            408 | 425 | 500..=599 => (format!("{title} answers {status}"), FailurePause::Transient),
            _ => (format!("{title} answers {status}"), FailurePause::Mend),
        };

        Self::Failing { why, pause }
    }

    /// A limit, until the time that the answer names. The time is counted from the maker's clock, so that a wrong clock
    /// here does no harm.
    fn limited(answer: &Fetched, why: String, now: Timestamp) -> Self {
        let pause = pause(answer, now).unwrap_or(UNNAMED).clamp(LEAST_LIMIT, MAX_LIMIT);
        Self::Limited { until: now.saturating_add(pause), why }
    }

    /// The time of the next request, if the maker permits fewer than `least` more requests. The rest is left to other
    /// programs of the account.
    pub(crate) fn reserve(answer: &Fetched, least: u32, now: Timestamp) -> Option<Timestamp> {
        let left = answer
            .header("x-rate-limit-remaining")
            .or_else(|| answer.header("ratelimit-remaining"))?
            .trim()
            .parse::<u32>()
            .ok()?;
        let until = || now.saturating_add(pause(answer, now).unwrap_or(LEAST_LIMIT).min(MAX_LIMIT));
        (left < least).then(until)
    }
}

/// The pause that an answer requests.
fn pause(answer: &Fetched, now: Timestamp) -> Option<TimeDelta> {
    let server = answer.date().unwrap_or(now);
    let seconds = |name| answer.header(name)?.trim().parse::<i64>().ok();
    let until = |reset: i64| {
        let seconds = if reset >= UNIX_SECONDS {
            // The server's time is cut to seconds, so the pause may be up to a second too long, and is never too short.
            reset.checked_sub(server.as_millis().div_euclid(1_000))?
        } else {
            reset
        };
        TimeDelta::try_seconds(seconds.max(0))
    };
    answer
        .retry_after(server)
        .or_else(|| until(seconds("x-rate-limit-reset")?))
        .or_else(|| until(seconds("ratelimit-reset")?))
}
