//! The status of a source, which is kept between its runs. Reads no clock.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use domain::{DeviceId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::directory::DirectoryListing;
use crate::outcome::{FailurePause, MAX_FAILURE_PAUSE, MAX_LIMIT};
use crate::schedule::CLAIM_AHEAD;

/// The maximum number of digests of portions that are kept.
const MAX_SEEN: usize = 128;
/// The longest time for which the metric `failing` is not stored again while it stays the same.
const TELL_EVERY: TimeDelta = TimeDelta::hours(1);
/// The pause before the next run, if more of the past, or more devices, are to be read: it runs in the next minute.
const SOON: TimeDelta = TimeDelta::seconds(40);

/// The greatest difference between the clocks of two processes.
const MAX_SKEW: TimeDelta = TimeDelta::minutes(1);

/// The status of a source, which is kept between its runs.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct SourceStatus {
    /// The digest of the requests to which the status belongs.
    question: String,
    /// The time up to which the past was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Timestamp>,
    /// The digests of delivered portions, by the keys of portions.
    seen: BTreeMap<String, String>,
    /// The list of the source's devices, if its kind has a directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed: Option<DirectoryListing>,
    /// The devices in the source's latest answers.
    pub devices: Vec<DeviceId>,
    /// The time of the last run whose answer was read and stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success: Option<Timestamp>,
    /// The number of failures in a row.
    failures: u32,
    /// The time since when the source fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    /// The time until which the maker takes no more requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_until: Option<Timestamp>,
    /// The time until which the remaining requests are left to other programs of the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    reserved_until: Option<Timestamp>,
    /// The last error, or the first refused part of a good answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The maker's clock minus the clock here, in milliseconds.
    clock_ahead: i64,
    /// The last stored value of the metric `failing`, with its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    told: Option<Told>,
}

/// A stored value of the metric `failing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
struct Told {
    failing: bool,
    at: Timestamp,
}

/// The state of a source, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceState {
    /// The source has not run yet.
    Waiting,
    /// The source answers.
    Ok,
    /// The maker takes no more requests for now.
    Limited,
    /// The source does not answer, or not as expected.
    Failing,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunReport {
    /// The time until which the maker takes no more requests, and why.
    pub limited: Option<(Timestamp, String)>,
    /// The time until which the remaining requests are left to other programs of the account.
    pub reserved_until: Option<Timestamp>,
    /// The first error, and the pause after it.
    pub failing: Option<(String, FailurePause)>,
    /// Whether an answer was read and stored.
    pub is_read: bool,
    /// The first refused part of a good answer.
    pub refused: Option<String>,
    /// The key and the digest of each stored portion.
    pub stored: Vec<(String, String)>,
    /// The list of devices, if it was read or has changed.
    pub listed: Option<DirectoryListing>,
    /// The time up to which the past was read, if all of it is stored.
    pub position: Option<Timestamp>,
    /// Whether there is more of the past, or there are more devices, to read in the next run.
    pub is_behind: bool,
    /// The devices in the answers.
    pub devices: Vec<DeviceId>,
    /// The maker's clock minus the clock here, in milliseconds, if an answer had its time.
    pub clock_ahead: Option<i64>,
}

impl SourceStatus {
    /// The status for requests with this digest. If the requests have changed, earlier answers no longer count.
    #[must_use]
    pub fn of_question(self, question: String) -> Self {
        if self.question == question {
            return self;
        }
        Self { question, position: None, seen: BTreeMap::new(), listed: None, ..self }
    }

    /// Whether an identical portion was already delivered.
    pub fn has_seen(&self, key: &str, digest: &str) -> bool {
        self.seen.get(key).is_some_and(|seen| seen == digest)
    }

    /// The time by the maker's clock.
    pub fn maker_now(&self, now: Timestamp) -> Timestamp {
        now.saturating_add(TimeDelta::milliseconds(self.clock_ahead))
    }

    /// The state of the source at `now`.
    pub fn state(&self, now: Timestamp) -> SourceState {
        match () {
            () if self.limited_until.is_some_and(|until| until > now) => SourceState::Limited,
            () if self.failing_since.is_some() => SourceState::Failing,
            () if self.last_success.is_none() => SourceState::Waiting,
            () => SourceState::Ok,
        }
    }

    /// Notes the report of a run that ended at `now`. `slot` is the source's next time slot, `every` the time between
    /// slots. Returns the time of the next run.
    pub fn note(
        &mut self,
        report: RunReport,
        slot: Timestamp,
        every: TimeDelta,
        now: Timestamp,
    ) -> Timestamp {
        self.note_answers(&report, now);
        self.reserved_until = report.reserved_until;

        if let Some((until, why)) = report.limited {
            self.limited_until = Some(until);
            self.error = Some(format!("{why}; asked again at {}", minute(until)));
            return until;
        }
        self.limited_until = None;

        if let Some((why, pause)) = report.failing.clone().filter(|_| !report.is_read) {
            self.failures = self.failures.saturating_add(1);
            if pause.is_told(self.failures) {
                self.failing_since.get_or_insert(now);
                self.error = Some(why);
            }
            return now.saturating_add(pause.after(self.failures).max(every));
        }

        (self.failures, self.failing_since) = (0, None);
        self.error = report.failing.map(|(why, _)| why).or(report.refused);
        if report.is_read {
            self.last_success = Some(now);
        }
        let next = if report.is_behind { now.saturating_add(SOON) } else { slot };
        report.reserved_until.map_or(next, |until| next.max(until))
    }

    /// The time until which the maker takes no requests of this source. `None` if the time is over. A time that is too
    /// far ahead was stored by a wrong clock and does not count.
    pub fn waits_until(&self, now: Timestamp) -> Option<Timestamp> {
        let longest = now.saturating_add(MAX_LIMIT + MAX_SKEW);
        let pauses = [self.limited_until, self.reserved_until].into_iter().flatten();
        pauses.filter(|until| (now..=longest).contains(until)).max()
    }

    /// The latest time of the next run that a right clock could have stored, if runs follow each other after `every`.
    pub fn latest_next(&self, every: TimeDelta, now: Timestamp) -> Timestamp {
        let own = if self.failures > 0 { every.max(MAX_FAILURE_PAUSE) } else { every };
        let own = now.saturating_add(own + CLAIM_AHEAD + MAX_SKEW);
        self.waits_until(now).map_or(own, |until| until.max(own))
    }

    fn note_answers(&mut self, report: &RunReport, now: Timestamp) {
        self.clock_ahead = report.clock_ahead.unwrap_or(self.clock_ahead);
        self.position = report.position.or(self.position);
        self.listed = report.listed.clone().or_else(|| self.listed.take());
        for (key, digest) in &report.stored {
            self.seen.insert(key.clone(), digest.clone());
        }

        // Keys begin with the request and the day, so the oldest days of the first request are dropped first.
        while self.seen.len() > MAX_SEEN {
            self.seen.pop_first();
        }

        if !report.devices.is_empty() {
            self.devices.clone_from(&report.devices);
        }
        if self.last_success.is_some_and(|last| last > now) {
            self.last_success = Some(now);
        }
    }

    /// The value of the metric `failing` to store at `now`; `None` while the stored value is recent and unchanged.
    pub fn failing_to_tell(&self, now: Timestamp) -> Option<bool> {
        let state = self.state(now);
        let failing = matches!(state, SourceState::Failing | SourceState::Limited);
        let is_told = self.told.is_some_and(|told| {
            let age = now.since(told.at);
            told.failing == failing && age >= TimeDelta::zero() && age < TELL_EVERY
        });
        (!is_told && state != SourceState::Waiting).then_some(failing)
    }

    /// Notes that the metric `failing` was stored.
    pub const fn note_told(&mut self, failing: bool, at: Timestamp) {
        self.told = Some(Told { failing, at });
    }
}

/// A time in UTC to the minute, for people.
fn minute(at: Timestamp) -> String {
    format!("{} UTC", at.to_string()[..16].replace('T', " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::at;

    #[test]
    fn a_next_run_is_believed_up_to_a_period_or_the_pause_of_its_maker() {
        let (now, every) = (at("2026-03-10T12:00:00Z"), TimeDelta::minutes(5));
        let hours = |hours| now.saturating_add(TimeDelta::hours(hours));
        let slot = now.saturating_add(every);
        let reserved = RunReport { reserved_until: Some(hours(3)), ..RunReport::default() };
        let ahead = RunReport { reserved_until: Some(hours(300)), ..RunReport::default() };
        let limited = (hours(24), "wait".to_owned());
        let limited = RunReport { limited: Some(limited), ..RunReport::default() };
        let failing = ("no".to_owned(), FailurePause::Refused);
        let failing = RunReport { failing: Some(failing), ..RunReport::default() };
        for (report, latest) in [
            (RunReport::default(), slot),
            (reserved, hours(3)),
            (ahead, slot),
            (limited, hours(24)),
            (failing, hours(1)),
        ] {
            let mut status = SourceStatus::default();
            let next = status.note(report, slot, every, now);
            let believed = status.latest_next(every, now);
            assert!(believed >= latest && believed <= latest.saturating_add(TimeDelta::minutes(2)));
            assert!(next <= believed || next == hours(300), "{next}");
        }
    }
}
