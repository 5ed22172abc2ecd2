//! Judges each minute due states, requests to judge again, silence, and complete quarters of an hour. Sends nothing.
//!
//! The time is limited. Tasks that are not done are left to the next minute.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::Duration;

use alerts::MAX_AHEAD;
use domain::{RuleId, Timestamp};
use judging::{AlertRules, JudgingReport, JudgingSession, LostMessages, SeriesError};
use runtime::clock::Clock;
use runtime::telemetry::{WideEvent, chain};
use table::panic::{Panic, catching};
use table::{AlertKey, Invocation, MAX_CACHED_ENTRIES, Recheck, Session, StoreError};

use crate::Alerting;
use crate::paged::{Paged, ReadItems, ReadPositions};
use crate::ports::Store;

/// The least time for each kind of judging tasks, however much the kinds before it have to do. If there is less time in
/// total, all kinds have equal shares.
const LEAST_SHARE: Duration = Duration::from_secs(4);

/// The result of a minute's judgements.
#[derive(Debug, Default)]
pub(crate) struct MinuteJudgements {
    pub(crate) report: JudgingReport,
    /// The number of rechecks that were finished and removed.
    rechecks: usize,
    /// Errors outside of judgements, each with the name of the part that failed.
    failures: Vec<(String, SeriesError)>,
    /// Panics outside of judgements, each with the name of the part or the recheck.
    panics: Vec<(String, Panic)>,
    /// Whether a part failed as a whole, so that none of its tasks, or no task of a group, was judged.
    is_part_failed: bool,
}

impl MinuteJudgements {
    /// Whether a part failed as a whole, or all judgements did.
    pub(crate) fn has_failed(&self) -> bool {
        self.is_part_failed || self.report.has_failed()
    }

    /// Notes the result in the log event.
    pub(crate) fn note(self, log: &mut WideEvent) {
        let report = self.report;
        let unlisted =
            report.unlisted.map(|error| ("the list of devices".to_owned(), error.into()));
        let failures = report.failures.into_iter();
        let failures = failures.map(|(key, failure)| (label_of(&key), failure));
        let failures = failures.chain(self.failures).chain(unlisted);
        let (cut, failures): (Vec<_>, Vec<_>) = failures
            .partition(|(_, failure)| matches!(failure, SeriesError::Store(StoreError::TimedOut)));
        let failures = failures.iter().map(|(name, failure)| format!("{name}: {}", why(failure)));
        let panics = report.panics.into_iter().map(|(key, panic)| (label_of(&key), panic));
        let panics = panics.chain(self.panics).map(|(name, panic)| format!("{name}: {panic}"));
        let failures: Vec<String> = panics.chain(failures).collect();

        log.set("alerting.judged", report.judged);
        log.set("alerting.told", report.messages);
        // The log calls rechecks `looks`.
        log.set("alerting.looks", self.rechecks);
        log.set("alerting.is_cut", report.is_cut || !cut.is_empty());
        log.set("alerting.failed_judgements", failures.len());
        if let Some(lost) = LostMessages::of(report.lost_messages) {
            log.warn("alerting.left_out", &lost);
        }

        if !report.unjudged.is_empty() {
            let rules: BTreeSet<&str> = report.unjudged.iter().map(RuleId::as_str).collect();
            let rules = rules.into_iter().collect::<Vec<_>>().join(", ");
            let why = format!("{rules}: there are more than {MAX_CACHED_ENTRIES} devices");
            log.warn_all("alerting.unjudged_rules", [why]);
        }

        log.warn_all("alerting.judgement_failures", failures);
    }

    fn fail(&mut self, name: impl Display, failure: SeriesError) {
        self.failures.push((name.to_string(), failure));
    }

    fn fail_part(&mut self, part: &str, failure: SeriesError) {
        self.is_part_failed = true;
        self.fail(part, failure);
    }

    /// Adds the judgements of a part of the minute. If the part failed or panicked, that is noted and the minute goes
    /// on.
    fn add_part(&mut self, part: &str, report: Result<Result<JudgingReport, SeriesError>, Panic>) {
        match report {
            Ok(Ok(report)) => {
                self.is_part_failed |= report.unlisted.is_some();
                self.report.append(report);
            }
            Ok(Err(failure)) => self.fail_part(part, failure),
            Err(panic) => {
                self.is_part_failed = true;
                self.panics.push((part.to_owned(), panic));
            }
        }
    }
}

/// The time of a part that leaves each of the `following` parts its least share.
fn before_parts(following: u32, invocation: &Invocation) -> Invocation {
    let time = invocation.remaining();
    let share = LEAST_SHARE.min(time / (following + 1));
    invocation.shortened_to(time.saturating_sub(share * following))
}

fn label_of(key: &AlertKey) -> String {
    format!("{} {}", key.rule, key.subject)
}

fn why(failure: &SeriesError) -> String {
    match failure {
        SeriesError::Store(error) => chain(error),
        SeriesError::OutOfReach(text) => text.clone(),
    }
}

impl<S: Store, C: Clock> Alerting<S, C> {
    /// Judges what time has changed. Silence is judged only after it was noted that the system runs. Without this note,
    /// the system may have stood still a moment ago, and devices would count as silent for that time.
    pub(crate) async fn judge_minute(
        &self,
        session: Session<'_, S>,
        rules: &AlertRules,
        is_noted: bool,
    ) -> MinuteJudgements {
        let mut minute = MinuteJudgements::default();
        let session = self.judging.session(session.at(self.clock.now()));

        let part = before_parts(3, session.table.invocation);
        self.judge_due(rules, &mut minute, &session.within(&part)).await;

        let part = before_parts(2, session.table.invocation);
        self.recheck(rules, &mut minute, &session.within(&part)).await;

        if self.has_slept_since(session.table.now) {
            minute.report.is_cut = true;
            return minute;
        }

        if is_noted {
            let part = before_parts(1, session.table.invocation);
            let session = session.within(&part);
            minute.add_part("silence", catching(Box::pin(session.judge_silence())).await);
        } else {
            // Silence was not judged, as if the time had run out.
            minute.report.is_cut = true;
        }

        minute.add_part("sealed quarters", catching(Box::pin(session.judge_sealed())).await);
        minute
    }

    /// Whether the system slept since a judgement began. Readings that came meanwhile would count as readings of the
    /// future, and an alert that they ended would be sent again.
    pub(crate) fn has_slept_since(&self, begin: Timestamp) -> bool {
        self.clock.now().since(begin) > MAX_AHEAD
    }

    /// Judges the states that are due.
    async fn judge_due(
        &self,
        rules: &AlertRules,
        minute: &mut MinuteJudgements,
        session: &JudgingSession<'_, S>,
    ) {
        let due = self.read(&self.due, minute, session).await;
        minute.report.append(Box::pin(session.judge_due(rules, &due)).await);
    }

    /// Judges devices and rules again by their rechecks. A recheck that fails or panics stays, and the others are still
    /// done.
    async fn recheck(
        &self,
        rules: &AlertRules,
        minute: &mut MinuteJudgements,
        session: &JudgingSession<'_, S>,
    ) {
        let mut rechecks = self.read(&self.rechecks, minute, session).await;
        // In a fixed order, rechecks that the table throttles would always delay the same rechecks.
        fastrand::shuffle(&mut rechecks);
        for recheck in rechecks {
            if !session.has_time() || self.has_slept_since(session.table.now) {
                minute.report.is_cut = true;
                return;
            }
            let name = format!("the recheck of {}", recheck.target);
            match catching(self.recheck_one(&recheck, rules, minute, session)).await {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => minute.fail(name, failure),
                Err(panic) => minute.panics.push((name, panic)),
            }
        }
    }

    /// Reads the items of a kind. If reading fails midway, the items that were read are judged.
    async fn read<T: Paged<Owner = ()>>(
        &self,
        positions: &ReadPositions<T>,
        minute: &mut MinuteJudgements,
        session: &JudgingSession<'_, S>,
    ) -> Vec<T> {
        // Half of the time is for reading, the other half for judging.
        let session = session.table;
        let read_time = session.invocation.shortened_to(session.invocation.remaining() / 2);
        let read = positions.read_on(session.within(&read_time), &()).await;
        let ReadItems { items, unreadable, is_cut, failure, .. } = read;
        minute.report.is_cut |= is_cut;
        for item in unreadable {
            minute.fail(T::NAME, StoreError::Unreadable(item).into());
        }

        match failure {
            Some(error) if items.is_empty() => minute.fail_part(T::NAME, error.into()),
            Some(error) => minute.fail(T::NAME, error.into()),
            None => {}
        }
        items
    }

    /// Judges a device or a rule again by its recheck. If nothing is left, removes the recheck. Otherwise the recheck
    /// of a rule notes its last judged device. If the table throttles this write, the writes for later rechecks are not
    /// tried.
    async fn recheck_one(
        &self,
        recheck: &Recheck,
        rules: &AlertRules,
        minute: &mut MinuteJudgements,
        session: &JudgingSession<'_, S>,
    ) -> Result<(), SeriesError> {
        let Some(report) = Box::pin(session.recheck(rules, recheck)).await? else { return Ok(()) };
        let is_done = report.is_done();
        let up_to = report.up_to.clone();
        minute.report.append(report);

        if is_done {
            let remove = async |table: Session<'_, S>| table.remove_recheck(recheck).await;
            self.recheck_note_throttle.unless_throttled(session.table, remove).await?;
            minute.rechecks += 1;
        } else if let Some(device) = &up_to {
            let note = async |table: Session<'_, S>| table.move_recheck(recheck, device).await;
            self.recheck_note_throttle.unless_throttled(session.table, note).await?;
        }

        Ok(())
    }
}
