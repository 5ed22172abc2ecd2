//! `GetItem`, `PutItem` and `UpdateItem` on the state of the rollups and on late changes. Seals nothing.

use std::collections::BTreeSet;

use domain::{DeviceId, Timestamp};

use crate::DynamoStore;
use crate::attribute::{SdkItem, read};
use crate::update::Update;
use table::item::attribute::{BACKLOG, DONE, MARKS, QUEUE, READY, SEALED, SINCE, VERSION, ZONE};
use table::item::{self, Attribute, group_name};
use table::keys::Key;
use table::{
    Backlog, InsertOutcome, Invocation, KeepRollupState, LateChanges, LateMark, MarkLateChanges,
    QueueDepth, ReadLateChanges, ReadRefold, ReadRollupState, Refold, RollupState, RoomWalk,
    StoreResult, UpdateOutcome,
};

impl ReadRollupState for DynamoStore {
    async fn rollup_state(&self, invocation: &Invocation) -> StoreResult<Option<RollupState>> {
        self.find(&Key::RollupState, invocation).await
    }

    async fn room_walk(&self, invocation: &Invocation) -> StoreResult<Option<RoomWalk>> {
        self.find(&Key::RoomWalk, invocation).await
    }
}

impl ReadLateChanges for DynamoStore {
    /// Consistently: a mark is written before what it is about.
    async fn late_changes(&self, invocation: &Invocation) -> StoreResult<LateChanges> {
        Ok(self.find(&Key::LateChanges, invocation).await?.unwrap_or_default())
    }
}

impl MarkLateChanges for DynamoStore {
    async fn put_late_marks(
        &self,
        marks: &[LateMark],
        expected: u64,
        invocation: &Invocation,
    ) -> StoreResult<Option<LateChanges>> {
        let version = |version: u64| Attribute::number(version);
        let mut update = Update::or_put(Key::LateChanges);
        update.set(&[MARKS], item::from_late_marks(marks));
        update.set(&[VERSION], version(expected + 1));
        update.only_if_still(&[VERSION], (expected > 0).then(|| version(expected)));
        Ok(match update.send(self, invocation).await? {
            UpdateOutcome::Updated(_) => None,
            UpdateOutcome::ConditionFailed(None) => Some(LateChanges::default()),
            UpdateOutcome::ConditionFailed(Some(known)) => Some(read(known)?),
        })
    }
}

impl ReadRefold for DynamoStore {
    async fn refold(&self, device: &DeviceId, invocation: &Invocation) -> StoreResult<Refold> {
        Ok(self.find(&Key::Refold(device.clone()), invocation).await?.unwrap_or_default())
    }
}

impl KeepRollupState for DynamoStore {
    async fn begin_rollups(
        &self,
        state: &RollupState,
        invocation: &Invocation,
    ) -> StoreResult<InsertOutcome<RollupState>> {
        self.put_if_absent(item::from_rollup_state(state), invocation).await
    }

    async fn advance_sealed(
        &self,
        groups: &BTreeSet<usize>,
        sealed: Timestamp,
        queue: Option<QueueDepth>,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        let advanced = self.advance(groups, sealed, queue, invocation).await?;
        if let UpdateOutcome::ConditionFailed(_) = advanced {
            // Another sweep was faster with some of them, or with all.
            for group in groups {
                self.advance(&[*group].into(), sealed, None, invocation).await?;
            }
            if queue.is_some() {
                self.advance(&BTreeSet::new(), sealed, queue, invocation).await?;
            }
        }
        Ok(())
    }

    async fn set_back_sealed(
        &self,
        groups: &BTreeSet<usize>,
        sealed: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        // One by one: each is set back by itself, and this happens once after a wrong clock.
        for group in groups {
            let group = group_name(*group);
            let path = [SEALED, group.as_str()];
            let sealed = Attribute::S(sealed.to_string());
            let mut update = Update::of(Key::RollupState);
            update.set(&path, sealed.clone());
            update.only_if_above(&path, sealed);
            update.send(self, invocation).await?;
        }
        Ok(())
    }

    async fn note_backlog(&self, backlog: Backlog, invocation: &Invocation) -> StoreResult<()> {
        let mut update = Update::or_put(Key::LateChanges);
        update.set(&[BACKLOG], item::from_backlog(backlog));
        update.send(self, invocation).await.map(drop)
    }

    async fn distrust_conditions(&self, invocation: &Invocation) -> StoreResult<()> {
        if self.layout.conditions_index {
            return Ok(());
        }
        let mut update = Update::of(Key::ConditionsSchema);
        update.remove(&[READY]);
        update.send(self, invocation).await.map(drop)
    }

    async fn set_rebuilt(
        &self,
        since: Timestamp,
        zone: &str,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        let mut update = Update::of(Key::RollupState);
        update.set(&[SINCE], Attribute::S(since.to_string()));
        update.set(&[ZONE], Attribute::S(zone.to_owned()));
        update.send(self, invocation).await.map(drop)
    }

    async fn set_room_walk(&self, walk: &RoomWalk, invocation: &Invocation) -> StoreResult<()> {
        let mut update = Update::or_put(Key::RoomWalk);
        update.only_if_still(&[DONE], None);
        update.set_or_remove(item::from_room_walk(walk));
        update.send(self, invocation).await.map(drop)
    }

    async fn set_refold(
        &self,
        device: &DeviceId,
        refold: &Refold,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        let mut update = Update::or_put(Key::Refold(device.clone()));
        update.set_or_remove(item::from_refold(refold));
        update.send(self, invocation).await.map(drop)
    }
}

impl DynamoStore {
    /// Moves all of the marks forward, or none where one is ahead already.
    async fn advance(
        &self,
        groups: &BTreeSet<usize>,
        sealed: Timestamp,
        queue: Option<QueueDepth>,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<SdkItem>> {
        let mut update = Update::of(Key::RollupState);
        if let Some(depth) = queue {
            update.set(&[QUEUE], item::from_queue_depth(depth));
        }
        for group in groups {
            let group = group_name(*group);
            let path = [SEALED, group.as_str()];
            let sealed = Attribute::S(sealed.to_string());
            update.set(&path, sealed.clone());
            update.only_if_below(&path, sealed);
        }
        update.send(self, invocation).await
    }
}
