//! The state of the rollups, and the announcements of late changes. Does not decide what is complete.

use std::collections::BTreeSet;

use domain::{DeviceId, Timestamp};
use ports::port;

use super::read;
use crate::db::{
    Db, Path, WriteOutcome, above, below, member, put, remove, replace_all, set, set_as, still,
    update, upsert,
};
use crate::item::attribute::{BACKLOG, MARKS, QUEUE, READY, SEALED, SINCE, VERSION, ZONE};
use crate::item::{Attribute, Kind as _, List, group_name, listed};
use crate::keys::Key;
use crate::{
    Backlog, InsertOutcome, LateChanges, LateMark, MarksOutcome, Patterns, QueueDepth, Refold,
    RollupState, StoreResult,
};

/// Reads how far the rollups are complete.
#[port(ReadRollupState, GetItem(RollupState))]
impl<D: Db> Patterns<'_, D> {
    /// The state, as it is this moment; `None` before the rollup function has run.
    pub async fn rollup_state(self) -> StoreResult<Option<RollupState>> {
        self.find(&Key::RollupState).await
    }
}

/// Reads the announcements of changes of past readings that rollups may not have yet.
#[port(ReadLateChanges, GetItem(LateChanges))]
impl<D: Db> Patterns<'_, D> {
    /// The marks and the backlog, as they are this moment, because a mark is stored before its readings.
    pub async fn late_changes(self) -> StoreResult<LateChanges> {
        Ok(self.find(&Key::LateChanges).await?.unwrap_or_default())
    }
}

/// Announces changes of past readings before they are made.
#[port(MarkLateChanges, UpdateItem(LateChanges))]
impl<D: Db> Patterns<'_, D> {
    /// Stores marks, if the stored ones have the expected version, which is 0 if there are none. If several processes
    /// store at once, one succeeds and the others get its marks.
    pub async fn put_late_marks(
        self,
        marks: &[LateMark],
        version: u64,
    ) -> StoreResult<MarksOutcome> {
        let before = (version > 0).then(|| Attribute::number(version));
        let marks = upsert(&Key::LateChanges)
            .when([still(VERSION, before)])
            .with([set(MARKS, listed::<List, _>(marks))])
            .with([set(VERSION, Attribute::number(version + 1))]);
        Ok(match self.write(marks).await? {
            WriteOutcome::Done(_) => MarksOutcome::Stored,
            WriteOutcome::Refused(known) => {
                MarksOutcome::Outdated(known.map_or(Ok(LateChanges::default()), read)?)
            }
        })
    }
}

/// Reads how far a device's rollups are folded with its new settings.
#[port(ReadRefold, GetItem(Rollups))]
impl<D: Db> Patterns<'_, D> {
    /// The progress of folding a device's rollups again, as it is this moment. If nothing is stored, all are folded
    /// with settings 0.
    pub async fn refold(self, device: &DeviceId) -> StoreResult<Refold> {
        Ok(self.find(&Key::Refold(device.clone())).await?.unwrap_or_default())
    }
}

/// Writes the state of the rollups. A repeat has the same result, also if several processes write at once. A watermark
/// moves back only if it is ahead of the clock. Of several backlogs, the one that is stored last stays.
#[port(
    KeepRollupState,
    PutItem(RollupState),
    UpdateItem(RollupState, LateChanges, ConditionsSchema, Rollups)
)]
impl<D: Db> Patterns<'_, D> {
    /// Stores the first state, unless there is one.
    pub async fn begin_rollups(
        self,
        state: &RollupState,
    ) -> StoreResult<InsertOutcome<RollupState>> {
        self.insert(put(state.item())).await
    }

    /// Moves the watermarks of groups of devices forward to `sealed`, except watermarks that are as far already. Stores
    /// the length of the queue if it is known.
    pub async fn advance_sealed(
        self,
        groups: &BTreeSet<usize>,
        sealed: Timestamp,
        queue: Option<QueueDepth>,
    ) -> StoreResult<()> {
        if self.is_advanced(groups, sealed, queue).await? {
            return Ok(());
        }
        // Another sweep has moved some of these watermarks as far already, so each watermark is tried by itself.
        for group in groups {
            self.is_advanced(&[*group].into(), sealed, None).await?;
        }
        if queue.is_some() {
            self.is_advanced(&BTreeSet::new(), sealed, queue).await?;
        }
        Ok(())
    }

    /// Moves all these watermarks forward, unless one of them is as far already. Returns whether they moved.
    async fn is_advanced(
        self,
        groups: &BTreeSet<usize>,
        sealed: Timestamp,
        queue: Option<QueueDepth>,
    ) -> StoreResult<bool> {
        let watermarks = groups.iter().map(|group| watermark_of(*group));
        let advanced = update(&Key::RollupState)
            .when(watermarks.clone().map(|path| below(path, Attribute::text(&sealed))))
            .with(queue.map(|depth| set_as::<List, _>(QUEUE, &depth)))
            .with(watermarks.map(|path| set(path, Attribute::text(&sealed))));
        self.is_written(advanced).await
    }

    /// Moves the watermarks of groups of devices back to `sealed` if they are later, because an earlier sweep had a
    /// wrong clock. Each has its own condition, so each is a request of its own.
    pub async fn set_back_sealed(
        self,
        groups: &BTreeSet<usize>,
        sealed: Timestamp,
    ) -> StoreResult<()> {
        for group in groups {
            let watermark = watermark_of(*group);
            let is_ahead = above(watermark.clone(), Attribute::text(&sealed));
            let set_back = [set(watermark, Attribute::text(&sealed))];
            self.write(update(&Key::RollupState).when([is_ahead]).with(set_back)).await?;
        }
        Ok(())
    }

    /// Stores since when late changes are waiting to be folded.
    pub async fn note_backlog(self, backlog: Backlog) -> StoreResult<()> {
        let noted = set_as::<List, _>(BACKLOG, &backlog);
        self.write(upsert(&Key::LateChanges).with([noted])).await.map(drop)
    }

    /// If a schema is stored but the table has no conditions index now, records that the index is not complete.
    /// Otherwise an index that is made again later would count as complete.
    pub async fn distrust_conditions(self) -> StoreResult<()> {
        if self.db.layout().conditions_index {
            return Ok(());
        }
        self.write(update(&Key::ConditionsSchema).with([remove(READY)])).await.map(drop)
    }

    /// Stores the time from which the rollups are complete, and the time zone of their days.
    pub async fn set_rebuilt(self, since: Timestamp, zone: &str) -> StoreResult<()> {
        let rebuilt =
            [set(SINCE, Attribute::text(&since)), set(ZONE, Attribute::S(zone.to_owned()))];
        self.write(update(&Key::RollupState).with(rebuilt)).await.map(drop)
    }

    /// Stores the progress of folding a device's rollups again.
    pub async fn set_refold(self, device: &DeviceId, refold: &Refold) -> StoreResult<()> {
        let refold = upsert(&Key::Refold(device.clone())).with(replace_all(refold));
        self.write(refold).await.map(drop)
    }
}

/// The path of the watermark of a group of devices.
fn watermark_of(group: usize) -> Path {
    member(SEALED, group_name(group))
}
