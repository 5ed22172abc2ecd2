//! The number of partitions that the registry's devices are in. It is stored before the first device, and compared with
//! the settings before any device is read. Moves no device.

use ports::port;
use std::sync::atomic::Ordering;

use crate::db::{Db, ItemQuery, put};
use crate::item::{Item, Kind as _};
use crate::keys::{DEVICES, Key};
use crate::shards::Shards;
use crate::{InsertOutcome, ItemKey, Patterns, StoreError, StoreResult};

/// Reads how many partitions the registry's devices are in. Done once in a process.
#[port(ReadShards, Query(Devices))]
impl<D: Db> Patterns<'_, D> {
    /// The number of partitions; `None` if the table has no devices.
    pub async fn stored_shards(self) -> StoreResult<Option<Shards>> {
        let query = ItemQuery { limit: Some(1), ..ItemQuery::of(DEVICES) };
        let mut first = None;
        let mut each = |attributes: &mut dyn Iterator<Item = _>| {
            first = Some(attributes.collect::<Item>());
        };
        self.db.query(&query, self.invocation, &mut each).await?;
        first.map(shards_of_first).transpose()
    }

    /// Refuses a table whose devices are in more or fewer partitions than the settings say. Otherwise lists would miss
    /// devices, and missed devices would be registered again.
    pub async fn check_shards(self) -> StoreResult<()> {
        if self.db.has_checked_shards().load(Ordering::Relaxed) {
            return Ok(());
        }

        match self.stored_shards().await? {
            Some(stored) => self.compare_shards(stored),
            None => Ok(()),
        }
    }

    /// Stores the number of partitions before the first device is registered, and refuses settings that differ from the
    /// stored number. The number 1 is neither stored nor compared here; reads of devices compare it.
    pub(super) async fn claim_shards(self) -> StoreResult<()> {
        let set = self.db.layout().shards;
        if set == Shards::ONE || self.db.has_checked_shards().load(Ordering::Relaxed) {
            return Ok(());
        }

        if let Some(stored) = self.stored_shards().await? {
            return self.compare_shards(stored);
        }
        match self.insert(put(set.item())).await? {
            InsertOutcome::Inserted => self.compare_shards(set),
            InsertOutcome::Exists(stored) => self.compare_shards(stored),
        }
    }

    /// Refuses a stored number that differs from the one in the settings.
    pub(super) fn compare_shards(self, stored: Shards) -> StoreResult<()> {
        let set = self.db.layout().shards;
        if stored != set {
            let what = format!(
                "DEVICE_SHARDS (the parameter DeviceShards) is {set}, but the table's devices are in \
                 {stored} partitions; set it to {stored}"
            );
            return Err(StoreError::Refused(what.into()));
        }

        self.db.has_checked_shards().store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// The number of partitions, by the first item of the first partition. The item with the number sorts before all
/// devices. If the first item is a device, there is one partition.
pub(super) fn shards_of_first(first: Item) -> StoreResult<Shards> {
    let ItemKey { pk, sk } = ItemKey::of_item(&first);
    if Key::parse(&pk, &sk) == Some(Key::Shards) { super::read(first) } else { Ok(Shards::ONE) }
}
