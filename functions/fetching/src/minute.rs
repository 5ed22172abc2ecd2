//! One minute: runs all due sources at once. A source that hangs delays no other.

use std::time::Duration;

use domain::Timestamp;
use futures_util::future::join_all;
use polling::schedule::is_due;
use runtime::clock::Clock;
use runtime::telemetry::{WideEvent, chain};
use table::panic::catching;
use table::{Session, StoreResult, StoredSource};

use crate::report::SourceRun;
use crate::{Fetching, Store};

/// With less time left, no source is claimed.
const LEAST_TIME: Duration = Duration::from_secs(15);

impl<S: Store, C: Clock> Fetching<S, C> {
    /// Runs the sources that are due.
    pub(crate) async fn minute(
        &self,
        session: Session<'_, S>,
        log: &mut WideEvent,
    ) -> StoreResult<()> {
        let listing = session.sources().await?;
        log.warn_all("fetching.unreadable", listing.unreadable.iter().map(|item| chain(item)));

        let now = session.now;
        let due: Vec<_> = listing
            .found
            .into_iter()
            .filter(|stored| {
                stored.settings.get("on") != Some(&false.into())
                    && is_due(believed_next(stored, now), stored.lease, now)
            })
            .collect();
        log.set("fetching.due", due.len());
        if due.is_empty() || session.invocation.remaining() < LEAST_TIME {
            return Ok(());
        }

        let runs = due.iter().map(|stored| catching(Box::pin(self.run(session, stored))));
        let runs = join_all(runs).await;
        let mut all = SourceRun::default();
        for (stored, run) in due.iter().zip(runs) {
            match run {
                Ok(run) => all.add(run),
                Err(panic) => all.add(SourceRun::failed(&stored.id, &chain(&panic))),
            }
        }

        log.set("fetching.asked", all.asked);
        log.set("fetching.requests", all.requests);
        log.set("fetching.accepted", all.accepted);
        log.set("fetching.failing", all.failing);
        log.warn_all("fetching.failures", all.failures);
        Ok(())
    }
}

/// When a source is due again. A time that is too far away was stored by a clock that was ahead: the source is due now.
fn believed_next(stored: &StoredSource, now: Timestamp) -> Timestamp {
    let Ok(source) = stored.source() else { return stored.next };
    let latest = stored.status.latest_next(source.every_of(&stored.status), now);
    if stored.next > latest { now } else { stored.next }
}
