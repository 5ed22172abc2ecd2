//! What time alone changes, each minute: states that are due, looks, silence, sealed quarters. Sends nothing.
//!
//! It is bounded in time: what is not done is still due, or still there to be looked at, in the next minute.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::Duration;

use domain::RuleId;
use judging::{Failure, JudgingReport, JudgingSession, LostMessages, Rules};
use runtime::clock::Clock;
use runtime::telemetry::{WideEvent, chain};
use table::{Invocation, Look, MAX_CACHED_ENTRIES, StoreError, StoreResult};

use crate::Alerting;
use crate::ports::Store;
use crate::task::{KeptPlace, ReadTasks, Task};

/// The least time of each part of the minute, however much there is to do in earlier parts. Where there is less, all parts
/// have the same.
const LEAST_SHARE: Duration = Duration::from_secs(4);
/// The most failures of a kind that a log event names.
pub(crate) const MAX_NAMED: usize = 10;

/// Failures of one kind, by the first of them: a field of a log event has one text.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failures(pub(crate) String);

/// What a minute has judged.
#[derive(Debug, Default)]
pub(crate) struct Minute {
    /// States that were judged.
    pub(crate) judged: usize,
    /// Messages that were told.
    pub(crate) messages: usize,
    /// Messages that a judgement had too many of.
    left_out: usize,
    /// Looks after which nothing is left.
    pub(crate) looks: usize,
    /// Judgements that failed, and why the first of them did.
    pub(crate) failed: usize,
    pub(crate) failures: Vec<String>,
    /// Whether something is left to the next minute.
    pub(crate) is_cut: bool,
    /// Rules on groups and rooms that are judged on nothing, because there are too many devices.
    unjudged: BTreeSet<RuleId>,
}

impl Minute {
    /// Notes it in the log event.
    pub(crate) fn note(self, log: &mut WideEvent) {
        log.set("alerting.judged", self.judged);
        log.set("alerting.told", self.messages);
        log.set("alerting.looks", self.looks);
        log.set("alerting.is_cut", self.is_cut);
        log.set("alerting.failed_judgements", self.failed);
        if let Some(left_out) = LostMessages::of(self.left_out) {
            log.warn("alerting.left_out", &left_out);
        }
        if !self.unjudged.is_empty() {
            let rules: Vec<&str> = self.unjudged.iter().map(RuleId::as_str).collect();
            let why =
                format!("{}: there are more than {MAX_CACHED_ENTRIES} devices", rules.join(", "));
            log.warn("alerting.unjudged_rules", &Failures(why));
        }
        if !self.failures.is_empty() {
            log.warn("alerting.judgement_failures", &Failures(self.failures.join("; ")));
        }
    }

    fn add(&mut self, report: JudgingReport) {
        self.judged += report.judged;
        self.messages += report.messages;
        self.left_out += report.left_out;
        self.is_cut |= report.is_cut;
        self.unjudged.extend(report.unjudged);
        for (key, failure) in report.failures {
            self.fail(&format_args!("{} {}", key.rule, key.subject), &failure);
        }
    }

    fn fail(&mut self, what: &impl Display, failure: &Failure) {
        if matches!(failure, Failure::Store(StoreError::TimedOut)) {
            self.is_cut = true;
            return;
        }
        self.failed += 1;
        if self.failures.len() < MAX_NAMED {
            self.failures.push(format!("{what}: {}", why(failure)));
        }
    }

    /// Takes the judgements of a part of the minute in; a part that fails leaves the others their turn.
    fn add_part(&mut self, part: &str, report: Result<JudgingReport, Failure>) {
        match report {
            Ok(report) => self.add(report),
            Err(Failure::Store(StoreError::TimedOut)) => self.is_cut = true,
            Err(failure) => {
                self.failed += 1;
                self.failures.push(format!("{part}: {}", why(&failure)));
            }
        }
    }
}

/// The time that is left, less the least shares of the parts that follow.
fn leaving_shares(following: u32, invocation: &Invocation) -> Invocation {
    let time = invocation.remaining();
    let share = LEAST_SHARE.min(time / (following + 1));
    invocation.part_of(time.saturating_sub(share * following))
}

fn why(failure: &Failure) -> String {
    match failure {
        Failure::Store(error) => chain(error),
        Failure::OutOfReach(text) => text.clone(),
    }
}

impl<S: Store, C: Clock> Alerting<S, C> {
    /// Judges what the minute asks for. Silence only if it is noted that the system runs: else nobody knows whether it
    /// stood still a moment ago, and silence counts from the end of a pause on.
    pub(crate) async fn judge_minute(
        &self,
        rules: &Rules,
        is_noted: bool,
        invocation: &Invocation,
    ) -> Minute {
        let mut minute = Minute::default();
        let session = self.judging.session(&self.store, invocation, self.clock.now());

        let part = leaving_shares(3, invocation);
        self.judge_due(rules, &mut minute, &session.within(&part)).await;

        let part = leaving_shares(2, invocation);
        self.recheck(rules, &mut minute, &session.within(&part)).await;

        if is_noted {
            let part = leaving_shares(1, invocation);
            let session = session.within(&part);
            minute.add_part("silence", Box::pin(session.judge_silence()).await);
        } else {
            minute.is_cut = true;
        }

        minute.add_part("sealed quarters", Box::pin(session.judge_sealed()).await);
        minute
    }

    /// Judges the states that are due.
    async fn judge_due(&self, rules: &Rules, minute: &mut Minute, session: &JudgingSession<'_, S>) {
        let due = self.read(&self.due, minute, session).await;
        minute.add(Box::pin(session.judge_due(rules, &due)).await);
    }

    /// Rechecks devices and rules.
    async fn recheck(&self, rules: &Rules, minute: &mut Minute, session: &JudgingSession<'_, S>) {
        let mut looks = self.read(&self.looks, minute, session).await;
        // With a fixed order some would wait for ever behind others that the table throttles.
        fastrand::shuffle(&mut looks);
        for look in looks {
            if !session.has_time() {
                minute.is_cut = true;
                return;
            }
            if let Err(failure) = self.recheck_one(&look, rules, minute, session).await {
                minute.fail(&format_args!("the look at {}", look.what), &failure);
            }
        }
    }

    /// The tasks of a kind. Those that are read are judged, also where further ones cannot be read.
    async fn read<T: Task<Owner = ()>>(
        &self,
        place: &KeptPlace<T>,
        minute: &mut Minute,
        session: &JudgingSession<'_, S>,
    ) -> Vec<T> {
        // The other half is for judging them.
        let reading = session.invocation.part_of(session.invocation.remaining() / 2);
        let read = place.read_on(&self.store, &(), session.now, &reading).await;
        let ReadTasks { tasks, unreadable, is_cut, failure, .. } = read;
        minute.is_cut |= is_cut;
        for error in unreadable.into_iter().map(StoreError::Unreadable).chain(failure) {
            minute.fail(&T::NAME, &error.into());
        }
        tasks
    }

    /// Rechecks a device or a rule, and removes the recheck if nothing of it is left. That of a rule keeps its place.
    async fn recheck_one(
        &self,
        look: &Look,
        rules: &Rules,
        minute: &mut Minute,
        session: &JudgingSession<'_, S>,
    ) -> Result<(), Failure> {
        let report = Box::pin(session.recheck(rules, look)).await?;
        let is_done = report.is_done();
        let up_to = report.up_to.clone();
        minute.add(report);

        if is_done {
            self.store.remove_look(look, session.invocation).await?;
            minute.looks += 1;
        } else if let Some(device) = &up_to {
            self.store.move_look(look, device, session.invocation).await?;
        }
        Ok(())
    }

    /// Notes that the system runs.
    pub(crate) async fn note_running(
        &self,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> StoreResult<()> {
        let damaged = self.running.note(&self.store, self.clock.now(), invocation).await?;
        if let Some(damaged) = &damaged {
            log.warn("alerting.damaged_mark", damaged);
        }
        Ok(())
    }
}
