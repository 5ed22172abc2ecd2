//! A table in memory that stores and shows what the design says.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::{DeviceId, SWEEP_GROUPS, TimeRange, Timestamp};
use rollups::Change;
use table::memory::MemoryStore;
use table::{
    Expected, Invocation, KeepRollupState as _, PutRollups as _, ReadRollupState as _,
    ReadRollups as _, RollupKey, RollupState, StoreResult, StoredReading, StoredRollup,
};

use super::design::Design;
use crate::gate::{Gated, gated};

/// The table as one instance of the function sees it.
pub(super) type Steps = Gated<Table>;

#[derive(Debug, Clone)]
pub(super) struct Table {
    memory: MemoryStore,
    design: Design,
    /// Whether the instance is at a batch of the stream.
    is_streaming: Arc<AtomicBool>,
}

impl Deref for Table {
    type Target = MemoryStore;

    fn deref(&self) -> &MemoryStore {
        &self.memory
    }
}

gated!(
    Table: FindRegistry, KeepRollupState, ListDevices, NoteSeen, PutRollups, QueryReadings,
    ReadConditionsSchema, ReadLateChanges, ReadRefold, ReadRollupState, ReadRollups, ReadStoredReadings
);

impl Table {
    pub(super) fn new(memory: &MemoryStore, design: Design) -> Self {
        Self { memory: memory.clone(), design, is_streaming: Arc::default() }
    }

    /// Notes what the instance is at.
    pub(super) fn begin(&self, is_streaming: bool) {
        self.is_streaming.store(is_streaming, Ordering::Relaxed);
    }

    /// Puts rollups, all or none, where what they replace is still there.
    pub(super) async fn put_all(
        &self,
        changes: Vec<Change>,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        for Change { rollup, replaced } in &changes {
            let known = self.memory.rollup(&rollup.key, invocation).await?;
            if known.map(|it| it.version) != *replaced {
                return Ok(false);
            }
        }
        for Change { rollup, replaced } in changes {
            let expected = replaced.map_or(Expected::Absent, Expected::Version);
            assert!(self.memory.put_rollup(&rollup, expected, invocation).await?);
        }
        Ok(true)
    }

    async fn stored_readings(
        &self,
        device: &DeviceId,
        range: TimeRange,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredReading>> {
        self.design.readings(&self.memory, device, range, invocation).await
    }

    async fn rollup(
        &self,
        key: &RollupKey,
        invocation: &Invocation,
    ) -> StoreResult<Option<StoredRollup>> {
        Ok(self.memory.rollup(key, invocation).await?.map(|it| self.design.shown(it)))
    }

    async fn quarters(
        &self,
        device: &DeviceId,
        range: TimeRange,
        consistent: bool,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        let found = self.memory.quarters(device, range, consistent, invocation).await?;
        Ok(found.into_iter().map(|it| self.design.shown(it)).collect())
    }

    async fn put_rollup(
        &self,
        stored: &StoredRollup,
        expected: Expected,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        self.design.put(&self.memory, stored, expected, invocation).await
    }

    async fn rollup_state(&self, invocation: &Invocation) -> StoreResult<Option<RollupState>> {
        let found = self.memory.rollup_state(invocation).await?;
        let is_hidden = self.design.hides_marks() && self.is_streaming.load(Ordering::Relaxed);
        let hidden = |state| RollupState { sealed: [Timestamp::MIN; SWEEP_GROUPS], ..state };
        Ok(if is_hidden { found.map(hidden) } else { found })
    }

    async fn set_back_sealed(
        &self,
        groups: &BTreeSet<usize>,
        sealed: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        if self.design == Design::OnlyForward {
            return Ok(());
        }
        self.memory.set_back_sealed(groups, sealed, invocation).await
    }
}
