//! The time up to which the rollups of a table are complete. Reads no rollup.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use chrono::TimeDelta;
use domain::{DeviceId, QuarterHour, TimeRange, Timestamp, Zone};
use rollups::{RollupDelay, newest_sealable_end};
use table::{Remembered, RollupState, Session, StoreResult};

use crate::ports::Store;

/// The time for which rollups are complete, and the zone of their days.
#[derive(Debug)]
pub struct Horizon {
    state: Option<Arc<RollupState>>,
    /// The latest watermark that is possible by now. A later stored watermark came from a clock that was ahead.
    newest_sealable: Timestamp,
    rollup_delay: RollupDelay,
    outdated: Arc<AtomicUsize>,
}

impl Horizon {
    /// The time zone of the daily rollups; UTC before there are any.
    pub fn zone(&self) -> Zone {
        let name = self.state.as_ref().map(|state| state.zone.as_str());
        // If this binary does not know the zone, stored days do not fit days of UTC, and quarters are read instead.
        name.and_then(|name| name.parse().ok()).unwrap_or(Zone::UTC)
    }

    /// The state of the rollups; `None` if the rollup function has never run.
    pub fn state(&self) -> Option<&RollupState> {
        self.state.as_deref()
    }

    /// The number of quarters that could not be folded and wait in the queue; `None` instead of 0. Waiting quarters
    /// count as rolled up.
    pub fn waiting_quarters(&self) -> Option<u64> {
        let queue = self.state().and_then(|state| state.queue);
        queue.map(|depth| depth.messages).filter(|messages| *messages > 0)
    }

    /// The counter of the rollups that were read so far, were folded with older settings, and will be folded again.
    pub(crate) const fn outdated(&self) -> &Arc<AtomicUsize> {
        &self.outdated
    }

    /// The delay with which rollups follow readings.
    pub const fn rollup_delay(&self) -> RollupDelay {
        self.rollup_delay
    }

    /// Limits a stored end of complete rollups (a watermark) to the newest time that is possible by now.
    pub fn believed(&self, sealed: Timestamp) -> Timestamp {
        sealed.min(self.newest_sealable)
    }

    /// The time, in whole quarters of an hour, for which the rollups of the device's readings are complete.
    pub fn rolled_up(&self, device: &DeviceId) -> Option<TimeRange> {
        let state = self.state.as_ref()?;
        let sealed = QuarterHour::of(self.believed(state.sealed_of(device))).start();
        TimeRange::new(ceiling(state.since), sealed).ok()
    }
}

/// The state of the rollups as this process last read it.
///
/// An older state gives right answers too: time that has been rolled up since then is folded from readings.
#[derive(Debug)]
pub struct RollupStateCache {
    state: Remembered<RollupState>,
    rollup_delay: RollupDelay,
}

/// The age at which the state is read again.
const MAX_AGE: TimeDelta = TimeDelta::minutes(1);

impl RollupStateCache {
    /// An empty cache.
    pub fn new(rollup_delay: RollupDelay) -> Self {
        Self { state: Remembered::default(), rollup_delay }
    }

    /// The horizon according to a state that was read at most a minute ago.
    pub async fn horizon(&self, session: Session<'_, impl Store>) -> StoreResult<Horizon> {
        match self.state.get(session.now, |_| MAX_AGE) {
            Some(state) => Ok(self.of(Some(state), session.now)),
            None => self.read(session).await,
        }
    }

    /// The horizon according to the state that is read now.
    pub async fn read(&self, session: Session<'_, impl Store>) -> StoreResult<Horizon> {
        let state = session.rollup_state().await?;
        Ok(self.of(state.map(|state| self.state.keep(state, session.now)), session.now))
    }

    fn of(&self, state: Option<Arc<RollupState>>, now: Timestamp) -> Horizon {
        let newest_sealable = newest_sealable_end(now);
        Horizon {
            state,
            newest_sealable,
            rollup_delay: self.rollup_delay,
            outdated: Arc::default(),
        }
    }
}

/// A timestamp, rounded up to the end of a quarter of an hour.
pub fn ceiling(at: Timestamp) -> Timestamp {
    let quarter = QuarterHour::of(at);
    if quarter.start() == at { at } else { quarter.end() }
}
