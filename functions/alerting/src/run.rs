//! One invocation: what is done, in which order, and what its log event says of it. Sends and judges nothing itself.

use std::time::Duration;

use chrono::TimeDelta;
use judging::Rules;
use outgoing::Request;
use runtime::clock::{Clock, Deadline};
use runtime::queue::Failure;
use runtime::telemetry::{WideEvent, chain};
use table::panic::catching;
use table::{Invocation, LEAST_PAUSE, Session, StoreResult};
use tokio::sync::OnceCell;

use crate::carrier::NotCarried;
use crate::ports::{NAME, Store};
use crate::round::Round;
use crate::sent::AllSent;
use crate::{Alerting, Event};

/// The longest time for noting that the system runs.
const MAX_NOTING_RUN: Duration = Duration::from_secs(5);
/// The time that is kept for noting that the last request of a round arrived.
const NOTING: Duration = Duration::from_secs(3);
/// The time that is kept for sending what the minute has judged.
const RESERVE: Duration = Duration::from_secs(20);

/// How often the address is asked that notices when it is no longer asked.
const HEARTBEAT: TimeDelta = TimeDelta::minutes(5);
/// The schedule is due each minute to the second or so: the fifth one counts, though it comes a little early.
const EARLY: TimeDelta = TimeDelta::seconds(20);

/// For how long messages are sent by older rules: one that was deleted or paused since sends too.
const MAX_RULES_AGE: TimeDelta = TimeDelta::minutes(15);

impl<S: Store, C: Clock> Alerting<S, C> {
    /// Handles an event. An error means that something is not done; the next minute does it.
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
        // Before all judgements. What waits is sent though it fails, so it has a small part of the time.
        let noting = session.invocation.part_of(MAX_NOTING_RUN);
        let noted =
            if is_minute { self.note_running(session.within(&noting), log).await } else { Ok(()) };

        let read = self.read_rules(session, is_minute).await;
        let last = self.judging.session(session).last_rules(MAX_RULES_AGE);
        let mut served = Ok(());
        if let Some(rules) = last {
            log.warn_all("alerting.unreadable", rules.unreadable.iter().map(|item| chain(item)));
            log.warn_all("alerting.lacking", rules.lacking.iter().map(|error| chain(error)));
            // Without the rules as they are nothing is judged: a judgement by an older rule is refused.
            let sent = if is_minute && read.is_ok() {
                self.minute(session, &rules, noted.is_ok(), log).await
            } else {
                self.send(session, &rules, session.invocation.remaining()).await
            };
            served = sent.note(self.clock.now(), log);
        }

        let mut failures = [noted, read, served].into_iter().filter_map(Result::err);
        if let Some(first) = failures.next() {
            log.warn_all("alerting.other_errors", failures.map(|error| chain(&error)));
            return Err(first);
        }

        if is_minute {
            self.beat(session, log).await;
        }
        Ok(())
    }

    /// Reads the rules with a third of the time, so that messages can be sent by the last ones: by the schedule as they are
    /// now, by a hint at most 60 seconds old.
    async fn read_rules(&self, session: Session<'_, S>, is_minute: bool) -> StoreResult<()> {
        let reading = session.invocation.part_of(session.invocation.remaining() / 3);
        let judging = self.judging.session(session.within(&reading));
        let read = if is_minute { judging.refresh().await } else { judging.rules().await };
        read.map(drop)
    }

    /// Sends what waits, judges, and sends what that makes or is still left. Judging has its time however slow the table and
    /// the receivers are, and whatever fails.
    async fn minute(
        &self,
        session: Session<'_, S>,
        rules: &Rules,
        is_noted: bool,
        log: &mut WideEvent,
    ) -> AllSent {
        let mut sent = self.send(session, rules, session.invocation.remaining() / 2).await;

        let mut messages = 0;
        // A laptop that slept while messages were sent notes the pause in the next minute, before it judges.
        let has_slept = self.clock.now().since(session.now) > LEAST_PAUSE;
        if !rules.rules.is_empty() && !has_slept {
            let judging =
                session.invocation.part_of(session.invocation.remaining().saturating_sub(RESERVE));
            let minute =
                Box::pin(self.judge_minute(session.within(&judging), rules, is_noted)).await;
            messages = minute.report.messages;
            minute.note(log);
        }

        if messages > 0 || sent.is_unfinished() {
            sent.append(self.send(session, rules, session.invocation.remaining()).await);
        }
        sent
    }

    /// Sends what waits, and notes within `time` what became of it. A channel that fails holds up no other.
    async fn send(&self, session: Session<'_, S>, rules: &Rules, time: Duration) -> AllSent {
        let noting = session.invocation.part_of(time);
        let beginning = session.invocation.part_of(time.saturating_sub(sending::TIMEOUT + NOTING));
        let (noting, beginning) = (session.within(&noting), session.within(&beginning));
        // As they are this moment: whether they fail, and until when they are left alone.
        let channels = match beginning.channels().await {
            Ok(channels) => channels.found,
            Err(error) => return AllSent::without_channels(error),
        };

        let round = Round { rules, beginning, noting, recent: OnceCell::new() };
        AllSent::of(self.send_all(&channels, &round).await)
    }

    /// Tells a service elsewhere that the minute is done. It is for those who are told when this stops.
    async fn beat(&self, session: Session<'_, S>, log: &mut WideEvent) {
        let Some(address) = &self.settings.heartbeat else { return };
        let now = self.clock.now();
        if self.heartbeat.get(now, |()| HEARTBEAT - EARLY).is_some() {
            return;
        }
        // With the invocation the line that says all of this would be lost.
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
