//! The time up to which the rollups of a table are complete. Reads no rollup.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use chrono::TimeDelta;
use domain::{DeviceId, QuarterHour, TimeRange, Timestamp, Zone};
use rollups::{Following, newest_sealable_edge};
use table::{Remembered, RollupState, Session, StoreResult};

use crate::ports::Store;

/// The time for which rollups are complete, and the zone of their days.
#[derive(Debug)]
pub struct Horizon {
    state: Option<Arc<RollupState>>,
    /// The newest time that may be sealed. A watermark of a clock that was ahead is not believed beyond it.
    edge: Timestamp,
    following: Following,
    outdated: Arc<AtomicUsize>,
}

impl Horizon {
    /// The zone of the days; UTC before there are any.
    pub fn zone(&self) -> Zone {
        let name = self.state.as_ref().map(|state| state.zone.as_str());
        // A zone that this binary's database lacks agrees with no stored day: quarters serve.
        name.and_then(|name| name.parse().ok()).unwrap_or(Zone::UTC)
    }

    /// The state, if the rollup function has run.
    pub fn state(&self) -> Option<&RollupState> {
        self.state.as_deref()
    }

    /// The number of quarters that could not be folded and wait in the queue, if there are some. They count as rolled up.
    pub fn waiting_quarters(&self) -> Option<u64> {
        let queue = self.state().and_then(|state| state.queue);
        queue.map(|depth| depth.messages).filter(|messages| *messages > 0)
    }

    /// The number of rollups read so far that are of older settings and will be folded again.
    pub(crate) const fn outdated(&self) -> &Arc<AtomicUsize> {
        &self.outdated
    }

    /// How soon rollups follow.
    pub const fn following(&self) -> Following {
        self.following
    }

    /// A watermark of the state (up to where quarters are sealed), as far as it can be true.
    pub fn believed(&self, sealed: Timestamp) -> Timestamp {
        sealed.min(self.edge)
    }

    /// The time for which every bucket of a device with readings has its rollup: whole quarters.
    pub fn rolled_up(&self, device: &DeviceId) -> Option<TimeRange> {
        let state = self.state.as_ref()?;
        let sealed = QuarterHour::of(self.believed(state.sealed_of(device))).start();
        TimeRange::new(ceiling(state.since), sealed).ok()
    }
}

/// The state of the rollups as this process has last read it.
///
/// An older state is right as well: what was sealed since then is folded from readings.
#[derive(Debug)]
pub struct RollupStateCache {
    state: Remembered<RollupState>,
    following: Following,
}

/// The age at which the state is read again.
const MAX_AGE: TimeDelta = TimeDelta::minutes(1);

impl RollupStateCache {
    /// Knows nothing yet.
    pub fn new(following: Following) -> Self {
        Self { state: Remembered::default(), following }
    }

    /// The state, at most a minute old.
    pub async fn horizon(&self, session: Session<'_, impl Store>) -> StoreResult<Horizon> {
        match self.state.get(session.now, |_| MAX_AGE) {
            Some(state) => Ok(self.of(Some(state), session.now)),
            None => self.read(session).await,
        }
    }

    /// The state as it is this moment.
    pub async fn read(&self, session: Session<'_, impl Store>) -> StoreResult<Horizon> {
        let state = session.rollup_state().await?;
        Ok(self.of(state.map(|state| self.state.keep(state, session.now)), session.now))
    }

    fn of(&self, state: Option<Arc<RollupState>>, now: Timestamp) -> Horizon {
        let (edge, outdated) = (newest_sealable_edge(now), Arc::default());
        Horizon { state, edge, following: self.following, outdated }
    }
}

/// The first edge of a quarter that is not before a timestamp.
pub fn ceiling(at: Timestamp) -> Timestamp {
    let quarter = QuarterHour::of(at);
    if quarter.start() == at { at } else { quarter.end() }
}
