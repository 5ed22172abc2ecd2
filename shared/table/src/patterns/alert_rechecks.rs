//! The rechecks of devices and rules, and the note that says when the system last ran. Judges nothing.

use domain::{DeviceId, Timestamp};
use ports::port;

use super::expected;
use crate::db::{
    Db, If, ItemQuery, Op, absent_or, below, delete, is, put, remove, set, update, upsert,
};
use crate::item::attribute::{AFTER, SINCE, TOUCH};
use crate::item::{self, Attribute, Kind as _};
use crate::keys::{self, ALERT_RECHECKS, Key};
use crate::{
    Expected, ListPage, Patterns, PutOutcome, Recheck, Rechecked, RunningNote, StoreError,
    StoreResult,
};

/// The number of rechecks that are stored at once.
const NOTE_CONCURRENCY: usize = 16;
/// The number of attempts to store a recheck that others store and remove at the same time.
const MAX_ATTEMPTS: usize = 8;

/// Requests that devices and rules are rechecked.
#[port(NoteRechecks, UpdateItem(AlertRechecks))]
impl<D: Db> Patterns<'_, D> {
    /// Stores a recheck of each device or rule, from the given time on. If the stored recheck begins earlier, the
    /// stored time stays. The recheck of a rule begins again at the rule's first device. Positions in the outcome are
    /// indices into `touched`. A repeat does no harm.
    pub async fn note_rechecks(self, touched: &[(Rechecked, Timestamp)]) -> PutOutcome {
        let noting = touched.iter().map(|(what, since)| self.note_recheck(what, *since));
        PutOutcome::of_all(NOTE_CONCURRENCY, noting).await
    }

    /// Stores a recheck from `since` on. If the stored recheck begins earlier, only its random number is replaced. A
    /// rule begins again at its first device.
    async fn note_recheck(self, what: &Rechecked, since: Timestamp) -> StoreResult<()> {
        let key = Key::AlertRecheck(what.clone());
        // A random number distinguishes this recheck from one that was removed before.
        let (at, touch) = (Attribute::text(&since), Attribute::number(fastrand::u64(..)));
        let touched = [set(TOUCH, touch), remove(AFTER)];

        for _ in 0..MAX_ATTEMPTS {
            let first = upsert(&key)
                .when([absent_or(SINCE, Op::AtLeast, at.clone())])
                .with([set(SINCE, at.clone())])
                .with(touched.clone());
            if self.is_written(first).await? {
                return Ok(());
            }

            let later = update(&key).when([below(SINCE, at.clone())]).with(touched.clone());
            if self.is_written(later).await? {
                return Ok(());
            }
        }

        Err(StoreError::Contended(format!("the recheck of {what}")))
    }
}

/// The rechecks of devices and rules.
#[port(ReadRechecks, Query(AlertRechecks))]
impl<D: Db> Patterns<'_, D> {
    /// A page of rechecks: rules first, then devices. Rechecks that were stored a moment ago may be missing.
    pub async fn rechecks(
        self,
        after: Option<&Rechecked>,
        limit: usize,
    ) -> StoreResult<ListPage<Recheck>> {
        let range = ItemQuery {
            start: after.map(|after| item::key(&Key::AlertRecheck(after.clone()))),
            consistent: false,
            ..ItemQuery::of(ALERT_RECHECKS).between(keys::all_ids())
        };
        self.alert_page(range, limit, |_| true).await
    }
}

/// Removes a recheck, or stores how far the recheck of a rule has come.
#[port(FinishRechecks, UpdateItem(AlertRechecks), DeleteItem(AlertRechecks))]
impl<D: Db> Patterns<'_, D> {
    /// Stores the last device on which a rule was rechecked, unless data were touched since the recheck was read.
    /// Returns whether this is stored. A repeat changes nothing.
    pub async fn move_recheck(self, recheck: &Recheck, after: &DeviceId) -> StoreResult<bool> {
        let place = update(&Key::AlertRecheck(recheck.target.clone()))
            .when(is_still(recheck))
            .with([set(AFTER, Attribute::text(after))]);
        self.is_written(place).await
    }

    /// Removes a recheck, unless data were touched since it was read; returns whether it was removed. A repeat is
    /// refused.
    pub async fn remove_recheck(self, recheck: &Recheck) -> StoreResult<bool> {
        self.is_written(delete(&Key::AlertRecheck(recheck.target.clone())).when(is_still(recheck)))
            .await
    }
}

/// The note that says when the system last ran.
#[port(ReadRunning, GetItem(AlertRunning))]
impl<D: Db> Patterns<'_, D> {
    /// The time when the system last ran, as it is stored this moment; `None` if alerts were never judged.
    pub async fn running_note(self) -> StoreResult<Option<RunningNote>> {
        self.find(&Key::AlertRunning).await
    }
}

/// Records that the system runs.
#[port(NoteRunning, PutItem(AlertRunning))]
impl<D: Db> Patterns<'_, D> {
    /// Stores when the system last ran, if the stored note is as expected; returns whether it is stored. A repeat is
    /// refused, except with [`Expected::Present`].
    pub async fn put_running_note(self, note: &RunningNote, before: Expected) -> StoreResult<bool> {
        self.is_written(put(note.item()).when([expected(before)])).await
    }
}

/// The conditions that no data were touched since a recheck was read.
fn is_still(recheck: &Recheck) -> [If; 2] {
    [is(SINCE, Attribute::text(&recheck.since)), is(TOUCH, Attribute::number(recheck.touch))]
}
