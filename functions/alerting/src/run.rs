//! One invocation: what is done, in which order, and what its log event says of it. Sends and judges nothing itself.

use std::collections::BTreeSet;
use std::error::Error;

use alerts::Request;
use domain::{RuleId, Zone};
use runtime::clock::{Clock, Deadline};
use runtime::panic::{Panic, catching};
use runtime::telemetry::{WideEvent, chain};
use table::{Invocation, StoreError, StoreResult};

use crate::carrier::NotCarried;
use crate::ports::{NAME, Store};
use crate::send::{Round, is_out_of_time};
use crate::{Alerting, Event};

/// For how long the channel fails that has failed longest.
const UNDELIVERED: &str = "alerting.undelivered_seconds";

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
        let rules = self.store.alert_rules(invocation).await?;
        let mut ids: BTreeSet<RuleId> = rules.found.iter().map(|it| it.id.clone()).collect();
        // What cannot be read was not deleted.
        ids.extend(rules.unreadable.iter().filter_map(|it| it.sk.parse().ok()));
        for unreadable in &rules.unreadable {
            log.warn("alerting.unreadable_rule", unreadable);
        }
        self.send(&ids, invocation, log).await?;
        if event == Event::Schedule {
            self.beat(log).await;
        }
        Ok(())
    }

    /// Sends what waits. A channel that fails is in the log; the others are served.
    async fn send(
        &self,
        rules: &BTreeSet<RuleId>,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> StoreResult<()> {
        let channels = self.store.channels(invocation).await?.found;
        log.set("alerting.channels", channels.len());
        if channels.is_empty() {
            log.seconds(UNDELIVERED, 0);
            return Ok(());
        }
        let zone = self.zone(invocation).await?;
        let round = Round { rules, zone, invocation };
        let served = self.send_all(&channels, &round).await;
        let (mut messages, mut dropped, mut cut) = (0, 0, 0);
        let (mut failing_since, mut failures, mut broken) = (None, Vec::new(), None);
        for (channel, sent) in served {
            match sent {
                Ok(sent) => {
                    messages += sent.messages;
                    dropped += sent.dropped;
                    failing_since = [failing_since, sent.failing_since].into_iter().flatten().min();
                    cut += usize::from(sent.is_cut);
                    failures.extend(sent.failure.map(|why| format!("{channel}: {why}")));
                }
                Err(error) => {
                    failures.push(format!("{channel}: {}", chain(&error)));
                    broken = broken.filter(|it| !is_out_of_time(it)).or(Some(error));
                }
            }
        }
        let undelivered = failing_since.map_or(0, |it| self.clock.now().since(it).num_seconds());
        // Also at zero: an alarm tells if nothing is sent, and if nobody is there to send.
        log.seconds(UNDELIVERED, undelivered);
        log.set("alerting.messages", messages);
        log.set("alerting.dropped", dropped);
        log.set("alerting.channels_left", cut);
        if !failures.is_empty() {
            log.set("alerting.failures", failures);
        }
        broken.map_or(Ok(()), Err)
    }

    /// The zone of the table's days; that of the settings before there are any.
    async fn zone(&self, invocation: &Invocation) -> StoreResult<Zone> {
        let state = self.store.rollup_state(invocation).await?;
        Ok(state.and_then(|it| it.zone.parse().ok()).unwrap_or(self.settings.zone))
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
