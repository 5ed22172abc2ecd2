//! What time alone changes, each minute: states that are due, looks, silence, sealed quarters. Sends nothing.
//!
//! It is bounded in time: what is not done is still due, or still there to be looked at, in the next minute.

use std::time::Duration;

use domain::{RuleId, Timestamp};
use judging::{Failure, Judged, Rules};
use runtime::clock::Clock;
use runtime::telemetry::{WideEvent, chain};
use table::{AlertKey, Invocation, MAX_CACHED_ENTRIES, StoreError, StoreResult};

use crate::Alerting;
use crate::ports::Store;

/// The most states, and the most looks, that are read at once.
const PAGE: usize = 100;
/// With less time left no further state is judged.
const ENOUGH: Duration = Duration::from_secs(2);
/// The time that each part of the minute has at least, however much there is to do in those before it.
const LEAST_SHARE: Duration = Duration::from_secs(4);
/// The most failures that a log event names; all are counted.
const MAX_NAMED: usize = 10;

/// Judgements that failed, by the first of them.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NotJudged(String);

/// What a minute has judged.
#[derive(Debug, Default)]
pub(crate) struct Minute {
    /// States that were judged.
    pub(crate) judged: usize,
    /// Messages that were told.
    pub(crate) messages: usize,
    /// Devices that were looked at again.
    pub(crate) looks: usize,
    /// Judgements that failed, and why the first of them did.
    pub(crate) failed: usize,
    pub(crate) failures: Vec<String>,
    /// Whether something is left to the next minute.
    pub(crate) is_cut: bool,
    /// Rules on groups and rooms that are judged on nothing, because there are too many devices.
    unjudged: Vec<RuleId>,
}

impl Minute {
    /// Notes it in the log event.
    pub(crate) fn note(self, log: &mut WideEvent) {
        log.set("alerting.judged", self.judged);
        log.set("alerting.told", self.messages);
        log.set("alerting.looks", self.looks);
        log.set("alerting.is_cut", self.is_cut);
        log.set("alerting.failed_judgements", self.failed);
        if !self.unjudged.is_empty() {
            let rules: Vec<&str> = self.unjudged.iter().map(RuleId::as_str).collect();
            let why =
                format!("{}: there are more than {MAX_CACHED_ENTRIES} devices", rules.join(", "));
            log.warn("alerting.unjudged_rules", &NotJudged(why));
        }
        if !self.failures.is_empty() {
            log.warn("alerting.judgement_failures", &NotJudged(self.failures.join("; ")));
        }
    }

    fn add(&mut self, judged: Judged) {
        self.judged += judged.judged;
        self.messages += judged.messages;
        self.is_cut |= judged.is_cut;
        self.unjudged.extend(judged.unjudged);
        for (key, failure) in judged.failures {
            self.fail(&key, &failure);
        }
    }

    fn fail(&mut self, AlertKey { rule, subject }: &AlertKey, failure: &Failure) {
        if matches!(failure, Failure::Store(StoreError::TimedOut)) {
            self.is_cut = true;
            return;
        }
        self.failed += 1;
        if self.failures.len() < MAX_NAMED {
            self.failures.push(format!("{rule} {subject}: {}", why(failure)));
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
    invocation.part_of(invocation.remaining().saturating_sub(LEAST_SHARE * following))
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
        let due = self.judge_due(rules, now, &mut minute, &part).await;
        minute.add_part("states that are due", due.map(|()| Judged::default()));

        let part = leaving_shares(2, invocation);
        let looks = self.look(rules, now, &mut minute, &part).await;
        minute.add_part("looks", looks.map(|()| Judged::default()));

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

    async fn judge_due(
        &self,
        rules: &Rules,
        now: Timestamp,
        minute: &mut Minute,
        invocation: &Invocation,
    ) -> Result<(), Failure> {
        let mut after = None;
        loop {
            let page = self.store.due_alert_states(now, after.as_ref(), PAGE, invocation).await?;
            for state in &page.listing.found {
                if invocation.remaining() < ENOUGH {
                    return Err(StoreError::TimedOut.into());
                }
                let judged = self.judging.judge_due(&self.store, rules, state, now, invocation);
                match Box::pin(judged).await {
                    Ok(outcome) => {
                        minute.judged += 1;
                        minute.messages += outcome.messages();
                    }
                    Err(failure) => minute.fail(&state.key, &failure),
                }
            }
            after = page.listing.found.last().map(|it| it.key.clone());
            if !page.has_more || after.is_none() {
                return Ok(());
            }
        }
    }

    async fn look(
        &self,
        rules: &Rules,
        now: Timestamp,
        minute: &mut Minute,
        invocation: &Invocation,
    ) -> Result<(), Failure> {
        let mut after = None;
        loop {
            let page = self.store.looks(after.as_ref(), PAGE, invocation).await?;
            for look in &page.listing.found {
                if invocation.remaining() < ENOUGH {
                    return Err(StoreError::TimedOut.into());
                }
                let judged =
                    Box::pin(self.judging.look(&self.store, rules, look, now, invocation)).await?;
                if judged.is_done() {
                    self.store.remove_look(look, invocation).await?;
                    minute.looks += 1;
                }
                minute.add(judged);
            }
            after = page.listing.found.last().map(|it| it.device.clone());
            if !page.has_more || after.is_none() {
                return Ok(());
            }
        }
    }

    /// Notes that the system runs.
    pub(crate) async fn note_running(&self, invocation: &Invocation) -> StoreResult<()> {
        self.running.note(&self.store, self.clock.now(), invocation).await
    }
}
