//! The state of the rollups, and the announcements of late changes. Does not decide what is complete.

use std::collections::BTreeSet;

use domain::{DeviceId, Timestamp};

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

impl<D: Db> Patterns<'_, D> {
    /// The state; `None` before the rollup function has run.
    pub async fn rollup_state(self) -> StoreResult<Option<RollupState>> {
        self.find(&Key::RollupState).await
    }

    /// The marks and the backlog. Read consistently, because a mark is stored before its readings.
    pub async fn late_changes(self) -> StoreResult<LateChanges> {
        Ok(self.find(&Key::LateChanges).await?.unwrap_or_default())
    }

    /// Stores marks if the stored ones have the expected version.
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

    /// The progress of folding the rollups of a device again.
    pub async fn refold(self, device: &DeviceId) -> StoreResult<Refold> {
        Ok(self.find(&Key::Refold(device.clone())).await?.unwrap_or_default())
    }

    /// Stores the first state.
    pub async fn begin_rollups(
        self,
        state: &RollupState,
    ) -> StoreResult<InsertOutcome<RollupState>> {
        self.insert(put(state.item())).await
    }

    /// Moves the watermarks of groups forward, and stores the length of the queue.
    pub async fn advance_sealed(
        self,
        groups: &BTreeSet<usize>,
        sealed: Timestamp,
        queue: Option<QueueDepth>,
    ) -> StoreResult<()> {
        if self.is_advanced(groups, sealed, queue).await? {
            return Ok(());
        }
        // Another sweep has moved some of these watermarks as far or further.
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

    /// Moves back the watermarks that are ahead of `sealed`. Each has its own condition, so each is a request of its
    /// own. This happens only after a wrong clock.
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

    /// If the table has no conditions index now, records that the index is not complete.
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

    /// Stores the progress of folding the rollups of a device again.
    pub async fn set_refold(self, device: &DeviceId, refold: &Refold) -> StoreResult<()> {
        let refold = upsert(&Key::Refold(device.clone())).with(replace_all(refold));
        self.write(refold).await.map(drop)
    }
}

/// The path of the watermark of a group of devices.
fn watermark_of(group: usize) -> Path {
    member(SEALED, group_name(group))
}
