//! Polls each minute the sources that are due, and delivers their answers to the function ingest. Stores no reading.
//!
//! `minute` handles one minute, and `run` one source: it claims the source, makes the requests, delivers the answers
//! and notes the result. A test of a source makes the same requests and stores nothing.

mod ask;
mod deliver;
mod event;
mod minute;
mod reply;
mod report;
mod run;
mod test_source;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use outgoing::Reach;
use polling::Spent;
use runtime::clock::{Clock, Deadline};
use runtime::invoke::InvokeFunction;
use runtime::queue::Failure;
use runtime::telemetry::{Telemetry, WideEvent};
use sending::FetchAnswer;
use table::panic::catching;
use table::{Invocation, ReadSourceSecrets, ReadSources, RunSources, Session};
use tokio::sync::Semaphore;

pub use event::{Event, SourceTest};

pub use reply::TestReply;

/// The largest number of requests that are under way at once.
const MAX_AT_ONCE: usize = 16;

table::store! {
    /// The ports of the table that the function uses.
    pub trait Store: ReadSources + ReadSourceSecrets + RunSources
}

/// The places to which the function sends: makers get requests, and ingest gets their answers.
#[derive(Clone)]
pub struct Outside {
    /// Asks makers.
    pub http: Arc<dyn FetchAnswer>,
    /// The function ingest.
    pub ingest: Arc<dyn InvokeFunction>,
    /// How far requests may go.
    pub reach: Reach,
}

impl Outside {
    /// What a deployed function reaches: public addresses.
    pub fn deployed(
        http: impl FetchAnswer + 'static,
        ingest: impl InvokeFunction + 'static,
    ) -> Self {
        Self { http: Arc::new(http), ingest: Arc::new(ingest), reach: Reach::Public }
    }
}

/// The function.
#[derive(Debug)]
pub struct Fetching<S, C> {
    store: S,
    outside: Outside,
    clock: C,
    telemetry: Telemetry,
    /// A permit for each request under way, at most [`MAX_AT_ONCE`].
    permits: Semaphore,
    /// The requests of tests of sources that are not saved, by kind.
    tried: Mutex<BTreeMap<&'static str, Spent>>,
}

impl<S: Store, C: Clock> Fetching<S, C> {
    /// The function on a table.
    pub fn new(store: S, outside: Outside, clock: C, telemetry: Telemetry) -> Self {
        let (permits, tried) = (Semaphore::new(MAX_AT_ONCE), Mutex::default());
        Self { store, outside, clock, telemetry, permits, tried }
    }

    /// Handles an event. An error means that sources are not asked; the next minute asks them.
    pub async fn handle(
        &self,
        event: Event,
        deadline: Deadline,
    ) -> Result<Option<TestReply>, Failure> {
        let invocation = Invocation::until(deadline);
        let session = Session::new(&self.store, &invocation, self.clock.now());
        let mut log = WideEvent::begin("fetching");

        let result = catching(Box::pin(self.answer(session, event, &mut log))).await;
        let result = result.map_err(Failure::from).and_then(|done| done.map_err(Failure::from));
        if let Err(error) = &result {
            log.error("fetching.error", error.as_ref());
        }
        log.emit(&invocation, &self.telemetry, &self.clock);
        result
    }

    async fn answer(
        &self,
        session: Session<'_, S>,
        event: Event,
        log: &mut WideEvent,
    ) -> table::StoreResult<Option<TestReply>> {
        match event {
            Event::Schedule => self.minute(session, log).await.map(|()| None),
            Event::Test(test) => self.test(session, *test, log).await.map(Some),
        }
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outside")
    }
}
