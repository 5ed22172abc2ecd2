//! A table in memory that begins stays as the design says.

use std::ops::Deref;

use domain::{Device, Stay};
use table::memory::MemoryStore;
use table::{FindRegistry as _, Invocation, StoreResult, UpdateOutcome, UpdateRegistry as _};

use crate::gate::{Gated, gated};

/// A design of the stays that are learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Design {
    /// A stay is written for the version and the place that were read.
    Ours,
    /// A stay is written whatever is there now.
    Blind,
}

/// The table as one instance of the function sees it.
pub(super) type Steps = Gated<Table>;

#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) memory: MemoryStore,
    pub(super) design: Design,
}

impl Deref for Table {
    type Target = MemoryStore;

    fn deref(&self) -> &MemoryStore {
        &self.memory
    }
}

gated!(
    Table: FindRegistry, ListDevices, QueryReadings, ReadRollups, ReadRollupState, RegisterDevices,
    UpdateRegistry
);

impl Table {
    async fn begin_stay(
        &self,
        known: &Device,
        stay: &Stay,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let now = self.memory.find_devices(std::slice::from_ref(known.id()), invocation).await?;
        let Some(now) = now.found.into_iter().next() else {
            return self.memory.begin_stay(known, stay, invocation).await;
        };
        let expected = match self.design {
            Design::Ours => known.clone(),
            Design::Blind => now,
        };
        self.memory.begin_stay(&expected, stay, invocation).await
    }
}
