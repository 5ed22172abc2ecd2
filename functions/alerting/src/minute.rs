//! What time alone changes, each minute: states that are due, looks, silence, sealed quarters. Sends nothing.
//!
//! It is bounded in time: what is not done is still due, or still there to be looked at, in the next minute.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::Duration;

use domain::{RuleId, Timestamp};
use judging::{Failure, Judged, LeftOut, Rules};
use runtime::clock::Clock;
use runtime::telemetry::{WideEvent, chain};
use table::{Invocation, Look, MAX_CACHED_ENTRIES, StoreError, StoreResult};

use crate::Alerting;
use crate::ports::Store;
use crate::task::{KeptPlace, ReadTasks, Task};

/// With less time left no further state is judged.
const ENOUGH: Duration = Duration::from_secs(1);
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
        if let Some(left_out) = LeftOut::of(self.left_out) {
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

    fn add(&mut self, judged: Judged) {
        self.judged += judged.judged;
        self.messages += judged.messages;
        self.left_out += judged.left_out;
        self.is_cut |= judged.is_cut;
        self.unjudged.extend(judged.unjudged);
        for (key, failure) in judged.failures {
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
    fn add_part(&mut self, part: &str, judged: Result<Judged, Failure>) {
        match judged {
            Ok(judged) => self.add(judged),
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
        let now = self.clock.now();

        let part = leaving_shares(3, invocation);
        self.judge_due(rules, now, &mut minute, &part).await;

        let part = leaving_shares(2, invocation);
        self.look(rules, now, &mut minute, &part).await;

        if is_noted {
            let part = leaving_shares(1, invocation);
            let silence = Box::pin(self.judging.judge_silence(&self.store, now, &part)).await;
            minute.add_part("silence", silence);
        } else {
            minute.is_cut = true;
        }

        let sealed = Box::pin(self.judging.judge_sealed(&self.store, now, invocation)).await;
        minute.add_part("sealed quarters", sealed);
        minute
    }

    /// Judges the states that are due.
    async fn judge_due(
        &self,
        rules: &Rules,
        now: Timestamp,
        minute: &mut Minute,
        invocation: &Invocation,
    ) {
        for state in self.read(&self.due, now, minute, invocation).await {
            if invocation.remaining() < ENOUGH {
                minute.is_cut = true;
                return;
            }
            let judged = self.judging.judge_due(&self.store, rules, &state, now, invocation);
            match Box::pin(judged).await {
                Ok(outcome) => {
                    minute.judged += 1;
                    minute.messages += outcome.messages;
                    minute.left_out += outcome.left_out;
                }
                Err(failure) => {
                    minute
                        .fail(&format_args!("{} {}", state.key.rule, state.key.subject), &failure);
                }
            }
        }
    }

    /// Looks at devices and rules again.
    async fn look(
        &self,
        rules: &Rules,
        now: Timestamp,
        minute: &mut Minute,
        invocation: &Invocation,
    ) {
        for look in self.read(&self.looks, now, minute, invocation).await {
            if invocation.remaining() < ENOUGH {
                minute.is_cut = true;
                return;
            }
            if let Err(failure) = self.look_at(&look, rules, now, minute, invocation).await {
                minute.fail(&format_args!("the look at {}", look.what), &failure);
            }
        }
    }

    /// The tasks of a kind. Those that are read are judged, also where further ones cannot be read.
    async fn read<T: Task<Owner = ()>>(
        &self,
        place: &KeptPlace<T>,
        now: Timestamp,
        minute: &mut Minute,
        invocation: &Invocation,
    ) -> Vec<T> {
        // The other half is for judging them.
        let reading = invocation.part_of(invocation.remaining() / 2);
        let read = place.read_on(&self.store, &(), now, &reading).await;
        let ReadTasks { mut tasks, unreadable, is_cut, failure, .. } = read;
        // With a fixed order some would wait for ever behind others that the table throttles.
        fastrand::shuffle(&mut tasks);
        minute.is_cut |= is_cut;
        for error in unreadable.into_iter().map(StoreError::Unreadable).chain(failure) {
            minute.fail(&T::NAME, &error.into());
        }
        tasks
    }

    /// Looks at a device or a rule again, and removes the look if nothing of it is left. One at a rule keeps its place.
    async fn look_at(
        &self,
        look: &Look,
        rules: &Rules,
        now: Timestamp,
        minute: &mut Minute,
        invocation: &Invocation,
    ) -> Result<(), Failure> {
        let judged = self.judging.look(&self.store, rules, look, now, invocation);
        let judged = Box::pin(judged).await?;
        let is_done = judged.is_done();
        let up_to = judged.up_to.clone();
        minute.add(judged);

        if is_done {
            self.store.remove_look(look, invocation).await?;
            minute.looks += 1;
        } else if let Some(device) = &up_to {
            self.store.move_look(look, device, invocation).await?;
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
