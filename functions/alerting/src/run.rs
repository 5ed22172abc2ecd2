//! One invocation: the order of its steps, and its log event. Sends and judges nothing itself.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use judging::AlertRules;
use outgoing::Request;
use runtime::clock::{Clock, Deadline};
use runtime::queue::Failure;
use runtime::telemetry::{WideEvent, chain};
use table::panic::catching;
use table::{Invocation, Session, StoreError, StoreResult};
use tokio::sync::OnceCell;

use crate::carrier::NotCarried;
use crate::ports::{NAME, Store};
use crate::round::SendingRound;
use crate::sent::AllSent;
use crate::{Alerting, Event};

/// The longest time for noting that the system runs.
const MAX_NOTING_RUN: Duration = Duration::from_secs(5);
/// The time that is kept for noting that the last request of a round arrived.
const NOTING: Duration = Duration::from_secs(3);
/// The time that is kept for sending the messages that judgements make.
const RESERVE: Duration = Duration::from_secs(20);

/// The pause between two requests to the heartbeat address.
const HEARTBEAT: TimeDelta = TimeDelta::minutes(5);
/// How early a heartbeat may be: the schedule is exact only to about a second.
const EARLY: TimeDelta = TimeDelta::seconds(20);

/// The greatest age of the rules by which messages are sent. A rule that was deleted or paused since then still sends.
const MAX_RULES_AGE: TimeDelta = TimeDelta::minutes(15);

/// What a minute has done.
struct MinuteDone {
    sent: AllSent,
    /// Whether a part of its judgements failed as a whole, so that no heartbeat is sent.
    has_judging_failed: bool,
}

impl<S: Store, C: Clock> Alerting<S, C> {
    /// Handles an event. An error means that something is left for the next minute.
    pub async fn handle(&self, event: Event, deadline: Deadline) -> Result<(), Failure> {
        let invocation = Invocation::until(deadline);
        let mut log = WideEvent::begin(NAME);
        log.set("alerting.hint", event == Event::Hint);
        let session = Session::new(&self.store, &invocation, self.clock.now());
        let result = catching(Box::pin(self.run(session, event, &mut log))).await;
        let result = result.map_err(Failure::from).and_then(|done| done.map_err(Failure::from));
        if let Err(error) = &result {
            log.error("alerting.error", error.as_ref());
        }
        log.emit(&invocation, &self.telemetry, &self.clock);
        result
    }

    async fn run(
        &self,
        session: Session<'_, S>,
        event: Event,
        log: &mut WideEvent,
    ) -> StoreResult<()> {
        let is_minute = event == Event::Schedule;
        // The note that the system runs comes before all judgements. It has a small part of the time, because waiting
        // messages are sent even if the note fails.
        let noting = session.invocation.shortened_to(MAX_NOTING_RUN);
        let noted =
            if is_minute { self.note_running(session.within(&noting), log).await } else { Ok(()) };

        let (rules, read_error) = self.read_rules(session, is_minute).await;
        let (mut send_error, mut has_judging_failed) = (None, false);
        if let Some(rules) = rules {
            log.warn_all("alerting.lacking", rules.lacking.iter().map(|error| chain(error)));
            // Only rules that were just read are judged: the table refuses a judgement by an older version.
            let sent = if is_minute && read_error.is_none() {
                let done = self.run_minute(session, &rules, noted.is_ok(), log).await;
                has_judging_failed = done.has_judging_failed;
                done.sent
            } else {
                self.send(session, &rules, session.invocation.remaining()).await
            };

            let damaged = rules.unreadable.iter().map(|item| chain(item));
            log.warn_all("alerting.unreadable", damaged.chain(sent.damaged.clone()));
            send_error = sent.note(self.clock.now(), log);
        }

        let mut failures = [noted.err(), read_error, send_error].into_iter().flatten();
        if let Some(first) = failures.next() {
            log.warn_all("alerting.other_errors", failures.map(|error| chain(&error)));
            return Err(first);
        }

        // Without judgements no heartbeat is sent: nobody should believe that alerts are judged.
        if is_minute && !has_judging_failed {
            self.beat(session, log).await;
        }
        Ok(())
    }

    /// Reads the rules in a third of the time, so that messages can still be sent by older rules if this fails. Each
    /// minute reads the rules anew. A hint that messages wait uses rules that are at most 60 seconds old. If the rules
    /// cannot be read, returns the error, with the last rules unless these are too old.
    async fn read_rules(
        &self,
        session: Session<'_, S>,
        is_minute: bool,
    ) -> (Option<Arc<AlertRules>>, Option<StoreError>) {
        let read_time = session.invocation.shortened_to(session.invocation.remaining() / 3);
        let judging = self.judging.session(session.within(&read_time));
        let read = if is_minute { judging.rules_read_now().await } else { judging.rules().await };
        match read {
            Ok(rules) => (Some(rules), None),
            Err(error) => (judging.last_rules(MAX_RULES_AGE), Some(error)),
        }
    }

    /// Sends waiting messages, judges, then sends new messages and the messages that are left. Judging has a time of
    /// its own, however slow the table and the receivers are, and whatever fails.
    async fn run_minute(
        &self,
        session: Session<'_, S>,
        rules: &AlertRules,
        is_noted: bool,
        log: &mut WideEvent,
    ) -> MinuteDone {
        let mut sent = self.send(session, rules, session.invocation.remaining() / 2).await;

        let (mut messages, mut has_judging_failed) = (0, false);
        // If a laptop slept during sending, the next minute notes the pause before it judges.
        if !rules.rules.is_empty() && !self.has_slept_since(session.now) {
            let judging = session
                .invocation
                .shortened_to(session.invocation.remaining().saturating_sub(RESERVE));
            let minute =
                Box::pin(self.judge_minute(session.within(&judging), rules, is_noted)).await;
            messages = minute.report.messages;
            has_judging_failed = minute.has_failed();
            minute.note(log);
        }

        if messages > 0 || sent.is_unfinished() {
            sent.append(self.send(session, rules, session.invocation.remaining()).await);
        }
        MinuteDone { sent, has_judging_failed }
    }

    /// Sends waiting messages, and notes the results within `time`. A channel that fails delays no other channel.
    async fn send(&self, session: Session<'_, S>, rules: &AlertRules, time: Duration) -> AllSent {
        // A request begins only if its answer can still be awaited and noted.
        let whole = session.invocation.shortened_to(time);
        let begin = session.invocation.shortened_to(time.saturating_sub(sending::TIMEOUT + NOTING));
        let (for_noting, for_sending) = (session.within(&whole), session.within(&begin));

        // The channels are read anew: they say whether a channel fails, and how long it is left alone.
        let channels = match for_sending.channels().await {
            Ok(channels) => channels.found,
            Err(error) => return AllSent::without_channels(error),
        };

        let round = SendingRound { rules, for_sending, for_noting, recent: OnceCell::new() };
        AllSent::of(self.send_all(&channels, &round).await)
    }

    /// Tells a service elsewhere that the minute is done. The service alerts people when these requests stop.
    async fn beat(&self, session: Session<'_, S>, log: &mut WideEvent) {
        let Some(address) = &self.settings.heartbeat else { return };
        let now = self.clock.now();
        if self.heartbeat.get(now, |()| HEARTBEAT - EARLY).is_some() {
            return;
        }

        // Without a time limit the invocation could end first, and its log event would be lost.
        let sending = self
            .carrier
            .send(Request::get("the heartbeat", "address", address.clone()), &self.clock);
        match tokio::time::timeout(session.invocation.remaining(), sending).await {
            Ok(Ok(())) => drop(self.heartbeat.keep((), now)),
            Ok(Err(error @ NotCarried { .. })) => log.warn("alerting.heartbeat", &error),
            Err(elapsed) => log.warn("alerting.heartbeat", &elapsed),
        }
    }
}
