//! Folds successive days of a device in memory, as the rollup function folds them. Stores nothing.

use anyhow::{Context as _, bail};
use domain::{Device, TimeRange, Timestamp, Zone};
use rollups::{Assumed, Change, DeviceFolds, DeviceRules, Folded, Retention, SeenRooms, Snapshot};
use runtime::clock::Clock;
use table::{Indexing, Invocation, RollupKey, Session, StoreResult, StoredRollup};

use super::walk::{Day, Table};
use crate::patience::patiently;

/// The folds of days in one time zone.
pub(super) struct DayFolds<'a, S, C> {
    pub(super) store: &'a S,
    pub(super) zone: Zone,
    pub(super) seen: SeenRooms,
    /// Whether the rooms that readings name are noted in the table.
    pub(super) notes_rooms: bool,
    pub(super) retention: Retention,
    /// The start of the first day to fold; days that begin earlier are left out.
    pub(super) whole_from: Timestamp,
    pub(super) indexing: Indexing,
    pub(super) clock: C,
}

/// The rollups of some days of a device.
#[derive(Debug, Default)]
pub(super) struct FoldedDays {
    /// The rollups that were folded.
    pub(super) changes: Vec<Change>,
    /// The other stored rollups.
    pub(super) unchanged: Vec<StoredRollup>,
    /// The number of buckets that were looked at, including those whose readings have begun to expire.
    pub(super) buckets: u64,
}

/// The maximum number of times that a device is read again because its settings have changed meanwhile.
const MAX_CHANGES: usize = 5;

impl<S: Table, C: Clock> DayFolds<'_, S, C> {
    /// Folds the quarters of successive days, and the days themselves, and passes the rollups to `take`. Folds again
    /// while the table is busy, and while a stored rollup was folded with newer settings than the device has.
    pub(super) async fn fold<T>(
        &self,
        device: &Device,
        days: &[Day],
        take: impl AsyncFn(FoldedDays, &Invocation) -> StoreResult<T>,
    ) -> anyhow::Result<T> {
        let mut rules = DeviceRules::of(device).indexed(&self.indexing);
        for _ in 0..MAX_CHANGES {
            let taken = patiently(async |invocation| {
                match self.fold_with(&rules, days, invocation).await? {
                    Some(folded) => take(folded, invocation).await.map(Some),
                    None => Ok(None),
                }
            });
            if let Some(taken) = taken.await? {
                return Ok(taken);
            }

            let ids = [device.id().clone()];
            let listing =
                patiently(async |invocation| self.store.find_devices(&ids, invocation).await);
            let listing = listing.await?;
            let found = listing.found.first();
            let found = found.with_context(|| format!("the device {} is gone", device.id()))?;
            let indexing = patiently(async |invocation| self.store.indexing(invocation).await);
            rules = DeviceRules::of(found).indexed(&indexing.await?);
        }

        bail!(
            "{}: the rollups from {} on are folded with newer settings than the device has",
            device.id(),
            days[0].date
        )
    }

    /// Folds days. Returns `None` if a stored rollup was folded with newer settings than `device` has.
    async fn fold_with(
        &self,
        device: &DeviceRules,
        days: &[Day],
        invocation: &Invocation,
    ) -> StoreResult<Option<FoldedDays>> {
        let (Some(first), Some(last)) = (days.first(), days.last()) else {
            return Ok(Some(FoldedDays::default()));
        };
        // In some historic zones a day begins within a quarter of an hour.
        let from = first
            .quarters
            .map_or(first.range.from(), |quarters| quarters.from().min(first.range.from()));
        let range =
            TimeRange::new(from, last.range.to()).expect("a day does not end before it begins");
        let dates = first.date..=last.date;
        let snapshot = Snapshot::read(self.store, &device.id, range, dates, invocation).await?;
        // Flags mark changed readings, and a rebuild changes none.
        let snapshot = snapshot.without_flags();
        let snapshot = if self.notes_rooms { snapshot } else { snapshot.without_notes() };

        let session = Session::new(&snapshot, invocation, self.clock.now());
        let fold = DeviceFolds { session, device, seen: &self.seen, retention: &self.retention };
        // Includes rollups that stay because their readings have expired.
        self.seen.note(session, device.registered(), &snapshot.named_rooms()).await?;
        let mut buckets = 0;
        for day in days {
            let Some(folded) = self.fold_day(&fold, day).await? else { return Ok(None) };
            buckets += folded;
        }

        let (changes, unchanged) = snapshot.into_rollups();
        Ok(Some(FoldedDays { changes, unchanged, buckets }))
    }

    /// Folds the quarters of a day and then the day. Returns the number of buckets; `None` if a stored rollup has newer
    /// settings than the device.
    async fn fold_day(
        &self,
        fold: &DeviceFolds<'_, Snapshot<'_, S>>,
        day: &Day,
    ) -> StoreResult<Option<u64>> {
        let mut buckets = 0;
        if let Some(quarters) = day.quarters {
            let window = fold.quarters_of(quarters, Assumed::Nothing).await?;
            if window.is_outdated {
                return Ok(None);
            }
            buckets = window.folded.len() as u64;
            // Quarters that are not folded again are indexed as they are stored.
            fold.index_quarters(quarters).await?;
        }

        let Some(part) = day.folded.filter(|part| part.from() >= self.whole_from) else {
            return Ok(Some(buckets));
        };
        let key = RollupKey::day(fold.device.id.clone(), day.date);
        if buckets == 0 && fold.session.rollup(&key).await?.is_none() {
            return Ok(Some(buckets));
        }

        match fold.day(self.zone, day.date, part.to(), Assumed::Nothing).await? {
            Folded::Outdated => Ok(None),
            Folded::Stored | Folded::Frozen => Ok(Some(buckets + 1)),
            Folded::Skipped => Ok(Some(buckets)),
        }
    }
}
