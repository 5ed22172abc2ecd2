//! How far the rollups of a table reach. Reads no rollup.

use domain::{DeviceId, Quarter, TimeRange, Timestamp, Zone};
use table::{Invocation, ReadRollupState, RollupState, StoreResult};

/// The time for which rollups are complete, and the zone of their days.
#[derive(Debug)]
pub(crate) struct Horizon {
    state: Option<RollupState>,
}

impl Horizon {
    /// Reads the state of the rollups.
    pub(crate) async fn read(
        store: &impl ReadRollupState,
        invocation: &Invocation,
    ) -> StoreResult<Self> {
        Ok(Self { state: store.rollup_state(invocation).await? })
    }

    /// The zone of the days; UTC before there are any.
    pub(crate) fn zone(&self) -> Zone {
        let name = self.state.as_ref().map(|state| state.zone.as_str());
        // A zone that this binary's database lacks agrees with no stored day: quarters serve.
        name.and_then(|name| name.parse().ok()).unwrap_or(Zone::UTC)
    }

    /// The state, if the rollup function has run.
    pub(crate) const fn state(&self) -> Option<&RollupState> {
        self.state.as_ref()
    }

    /// The time for which every bucket of a device with readings has its rollup: whole quarters.
    pub(crate) fn rolled_up(&self, device: &DeviceId) -> Option<TimeRange> {
        let state = self.state.as_ref()?;
        let sealed = Quarter::of(state.sealed_of(device)).start();
        TimeRange::new(ceiling(state.since), sealed).ok()
    }
}

/// The first edge of a quarter that is not before a timestamp.
pub(crate) fn ceiling(at: Timestamp) -> Timestamp {
    let quarter = Quarter::of(at);
    if quarter.start() == at { at } else { quarter.end() }
}
