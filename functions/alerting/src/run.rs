//! One invocation: what is done, in which order, and what its log event says of it. Sends and judges nothing itself.

use std::error::Error;
use std::time::Duration;

use alerts::Request;
use judging::Rules;
use runtime::clock::{Clock, Deadline};
use runtime::panic::{Panic, catching};
use runtime::telemetry::WideEvent;
use table::{Invocation, StoreError, StoreResult};
use tokio::sync::OnceCell;

use crate::carrier::NotCarried;
use crate::ports::{NAME, Store};
use crate::send::Round;
use crate::sent::AllSent;
use crate::{Alerting, Event};

/// The longest time for noting that the system runs.
const MAX_NOTING: Duration = Duration::from_secs(5);
/// The time that is kept for sending what the minute tells.
const RESERVE: Duration = Duration::from_secs(20);

/// The work of a minute is not done; it is due again in a minute.
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    /// The table failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The code panicked.
    #[error(transparent)]
    Panic(#[from] Panic),
}

impl NotDone {
    fn cause(&self) -> &(dyn Error + 'static) {
        match self {
            Self::Store(error) => error,
            Self::Panic(error) => error,
        }
    }
}

impl<S: Store, C: Clock> Alerting<S, C> {
    /// Handles an event. An error means that something is not done; the next minute does it.
    pub async fn handle(&self, event: Event, deadline: Deadline) -> Result<(), NotDone> {
        let invocation = Invocation::until(deadline);
        let mut log = WideEvent::begin(NAME);
        log.set("alerting.hint", event == Event::Hint);
        let result = catching(Box::pin(self.run(event, &invocation, &mut log))).await;
        let result = result.map_err(NotDone::from).and_then(|it| it.map_err(NotDone::from));
        if let Err(error) = &result {
            log.error("alerting.error", error.cause());
        }
        log.emit(&invocation, &self.telemetry, &self.clock);
        result
    }

    async fn run(
        &self,
        event: Event,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> StoreResult<()> {
        let is_minute = event == Event::Schedule;
        // Before all judgements. What waits is sent though it fails, so it has a small part of the time.
        let noting = invocation.part_of(MAX_NOTING);
        let noted = if is_minute { self.note_running(&noting).await } else { Ok(()) };
        let now = self.clock.now();
        // A look of a rule that was just saved is taken away by whoever judges it, so that one knows the rule.
        let rules = if is_minute {
            self.judging.refresh(&self.store, now, invocation).await?
        } else {
            self.judging.rules(&self.store, now, invocation).await?
        };
        for unreadable in &rules.unreadable {
            log.warn("alerting.unreadable", unreadable);
        }
        let mut sent = self.send(&rules, invocation).await?;
        noted?;
        if is_minute && !rules.rules.is_empty() {
            let judging = invocation.part_of(invocation.remaining().saturating_sub(RESERVE));
            let minute = Box::pin(self.judge_minute(&rules, &judging)).await;
            if minute.messages > 0 {
                sent.append(self.send(&rules, invocation).await?);
            }
            minute.note(log);
        }
        let (is_done, failure) = sent.note(self.clock.now(), log);
        if is_minute && is_done {
            self.beat(log).await;
        }
        failure.map_or(Ok(()), Err)
    }

    /// Sends what waits. A channel that fails holds up no other.
    async fn send(&self, rules: &Rules, invocation: &Invocation) -> StoreResult<AllSent> {
        // As they are this moment: whether they fail, and until when they are left alone.
        let channels = self.store.channels(invocation).await?.found;
        let round = Round { rules, invocation, told: OnceCell::new() };
        Ok(AllSent::of(self.send_all(&channels, &round).await))
    }

    /// Tells a service elsewhere that the minute is done. It is for those who are told when this stops.
    async fn beat(&self, log: &mut WideEvent) {
        let Some(address) = &self.settings.heartbeat else { return };
        let now = self.clock.now();
        if !self.heartbeat.is_due(now) {
            return;
        }
        match self.carrier.send(Request::heartbeat(address), &self.clock).await {
            Ok(()) => self.heartbeat.beat(now),
            Err(error @ NotCarried { .. }) => log.warn("alerting.heartbeat", &error),
        }
    }
}
