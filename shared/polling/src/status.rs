//! What is kept of a source between its runs, and what it says of itself. Reads no clock.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use domain::{DeviceId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::directory::DirectoryListing;
use crate::outcome::FailurePause;

/// The most digests of portions that are kept.
const MAX_SEEN: usize = 128;
/// How often the metric `failing` is stored though it is the same.
const TELL_EVERY: TimeDelta = TimeDelta::hours(1);
/// When a source with more of the past to ask for is due again: the next minute.
const SOON: TimeDelta = TimeDelta::seconds(40);

/// What is kept of a source between its runs.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct SourceStatus {
    /// The digest of what was asked.
    question: String,
    /// Up to when the past was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Timestamp>,
    /// The digests of what was delivered, by the keys of portions.
    seen: BTreeMap<String, String>,
    /// The list of its devices, of a kind with a directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed: Option<DirectoryListing>,
    /// The devices that it has told.
    pub devices: Vec<DeviceId>,
    /// When it was last answered and stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success: Option<Timestamp>,
    /// The failures in a row.
    failures: u32,
    /// Since when it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    /// Until when the maker takes no further request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_until: Option<Timestamp>,
    /// The last error, or what of a good answer cannot be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How far the maker's clock is ahead of the one here, in milliseconds.
    clock_ahead: i64,
    /// Whether the metric `failing` was 1, and when it was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    told: Option<Told>,
}

/// What the metric `failing` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
struct Told {
    failing: bool,
    at: Timestamp,
}

/// What a source says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceState {
    /// It was not asked yet.
    Waiting,
    /// It answers.
    Ok,
    /// The maker takes no further request now.
    Limited,
    /// It does not answer, or not as expected.
    Failing,
}

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunReport {
    /// Until when the maker takes no further request, and why.
    pub limited: Option<(Timestamp, String)>,
    /// Until when other programs of the account have the requests that are left.
    pub reserved_until: Option<Timestamp>,
    /// The first error, and how long the source is left alone.
    pub failing: Option<(String, FailurePause)>,
    /// Whether an answer was read and is stored.
    pub is_read: bool,
    /// The first thing that cannot be taken of a good answer.
    pub refused: Option<String>,
    /// The portions that are stored, by key and digest.
    pub stored: Vec<(String, String)>,
    /// The list of devices, if there is one.
    pub listed: Option<DirectoryListing>,
    /// Up to when the past was answered, if all of it is stored.
    pub position: Option<Timestamp>,
    /// Whether there is more of the past to ask for.
    pub is_behind: bool,
    /// The devices that were told.
    pub devices: Vec<DeviceId>,
    /// How far the maker's clock is ahead, in milliseconds, if an answer had its time.
    pub clock_ahead: Option<i64>,
}

impl SourceStatus {
    /// The status for a question: of another one, nothing is known of what was answered.
    #[must_use]
    pub fn of_question(self, question: String) -> Self {
        if self.question == question {
            return self;
        }
        Self { question, position: None, seen: BTreeMap::new(), listed: None, ..self }
    }

    /// Whether a portion was delivered as it is.
    pub fn has_seen(&self, key: &str, digest: &str) -> bool {
        self.seen.get(key).is_some_and(|seen| seen == digest)
    }

    /// The time by the maker's clock.
    pub fn maker_now(&self, now: Timestamp) -> Timestamp {
        now.saturating_add(TimeDelta::milliseconds(self.clock_ahead))
    }

    /// What the source says of itself at `now`.
    pub fn state(&self, now: Timestamp) -> SourceState {
        match () {
            () if self.limited_until.is_some_and(|until| until > now) => SourceState::Limited,
            () if self.failing_since.is_some() => SourceState::Failing,
            () if self.last_success.is_none() => SourceState::Waiting,
            () => SourceState::Ok,
        }
    }

    /// Notes the report of a run that ended at `now`. `slot` is the next one of the source, `every` the time between slots.
    /// Returns when the source is due again.
    pub fn note(
        &mut self,
        report: RunReport,
        slot: Timestamp,
        every: TimeDelta,
        now: Timestamp,
    ) -> Timestamp {
        self.note_answers(&report, now);

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

    fn note_answers(&mut self, report: &RunReport, now: Timestamp) {
        self.clock_ahead = report.clock_ahead.unwrap_or(self.clock_ahead);
        self.position = report.position.or(self.position);
        self.listed = report.listed.clone().or_else(|| self.listed.take());
        for (key, digest) in &report.stored {
            self.seen.insert(key.clone(), digest.clone());
        }

        // Days are at the end of their keys, so that of a request the oldest come first.
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

    /// The value of the metric `failing` that is to be stored at `now`; `None` while it was told.
    pub fn failing_to_tell(&self, now: Timestamp) -> Option<bool> {
        let state = self.state(now);
        let failing = matches!(state, SourceState::Failing | SourceState::Limited);
        let is_told = self.told.is_some_and(|told| {
            let age = now.since(told.at);
            told.failing == failing && age >= TimeDelta::zero() && age < TELL_EVERY
        });
        (!is_told && state != SourceState::Waiting).then_some(failing)
    }

    /// Notes that the metric `failing` is stored.
    pub const fn note_told(&mut self, failing: bool, at: Timestamp) {
        self.told = Some(Told { failing, at });
    }
}

/// A time of UTC to the minute, for people.
fn minute(at: Timestamp) -> String {
    format!("{} UTC", at.to_string()[..16].replace('T', " "))
}
