//! Folds a bucket of a device and puts its rollup by compare-and-swap. Chooses no buckets.

use std::time::Duration;

use domain::{Bucket, LocalDate, QuarterHour, Rollup, Timestamp, Zone};
use table::{
    Expected, NoteSeen, PutRollups, ReadRollups, ReadStoredReadings, RollupKey, Session,
    StoreError, StoreResult, StoredRollup,
};

use crate::bounds::Bounds;
use crate::fresh::Fresh;
use crate::retention::{emptied_expires, is_closing};
use crate::{DeviceRules, NamedRooms, Retention, SeenRooms};

/// The ports of the table that a fold uses.
pub trait Store: ReadStoredReadings + ReadRollups + PutRollups + NoteSeen {}

impl<S: ReadStoredReadings + ReadRollups + PutRollups + NoteSeen> Store for S {}

/// The folds of one device: reads the readings, folds them, and puts the rollup.
///
/// Repeated and concurrent folds give the same rollups, except for their versions.
#[derive(Debug)]
pub struct DeviceFolds<'a, S> {
    /// The table.
    pub session: Session<'a, S>,
    /// The device. After a change of a reading, the rules must be read again before the fold.
    pub device: &'a DeviceRules,
    /// The rooms that are already noted.
    pub seen: &'a SeenRooms,
    /// The times for which readings and rollups are kept.
    pub retention: &'a Retention,
}

/// The first assumption about a bucket's rollup in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assumed {
    /// Nothing is assumed: the version of the rollup is read first.
    Nothing,
    /// There is no rollup, so none is read at first. If there is a rollup, its put is refused, and then the rollup is
    /// read.
    Absent,
}

/// The result of folding a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folded {
    /// The rollup is stored.
    Stored,
    /// No rollup is stored: there was nothing to fold, or the rollup would have expired already.
    Skipped,
    /// The rollup stays as it is, because its readings or quarters may have begun to expire. It is flagged as frozen,
    /// except for an expired rollup, and for a part of a day that would lose values.
    Frozen,
    /// The rollup stays, because it was folded with newer settings, or put into the conditions index by a newer schema.
    /// The device has to be read again.
    Outdated,
}

/// The result of folding a bucket, and the rollup that the fold put.
pub(crate) struct FoldedBucket {
    pub(crate) folded: Folded,
    pub(crate) put: Option<Rollup>,
}

impl From<Folded> for FoldedBucket {
    /// The result of a fold that put no rollup.
    fn from(folded: Folded) -> Self {
        Self { folded, put: None }
    }
}

/// The next step for a bucket, according to the stored rollup.
pub(crate) enum FoldStep {
    /// There is nothing to do; the result is known.
    Done(Folded),
    /// Flag the stored rollup as frozen.
    Freeze(Box<StoredRollup>),
    /// Fold the bucket.
    Fold,
}

/// The largest number of attempts at a rollup that keeps changing.
const MAX_ATTEMPTS: u32 = 5;
/// The longest pause before the second attempt. It doubles with each further attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

impl<S: Store> DeviceFolds<'_, S> {
    /// Folds the readings of a quarter of an hour.
    pub async fn quarter(&self, quarter: QuarterHour, assumed: Assumed) -> StoreResult<Folded> {
        Ok(self.put_quarter(quarter, assumed).await?.folded)
    }

    /// Folds as [`quarter`](Self::quarter), and also returns the rollup that was put.
    pub(crate) async fn put_quarter(
        &self,
        quarter: QuarterHour,
        assumed: Assumed,
    ) -> StoreResult<FoldedBucket> {
        self.bucket(&Bounds::quarter(quarter), assumed).await
    }

    /// Folds the quarters of a local day, or its readings if the quarters have begun to expire and none is left. If the
    /// day is open at `until`, folds [the part](crate::part_of_day) that is over by then, but never less than is stored
    /// already.
    ///
    /// A stored day of another zone or with other bounds is replaced. A date that the zone skips has no day.
    pub async fn day(
        &self,
        zone: Zone,
        date: LocalDate,
        until: Timestamp,
        assumed: Assumed,
    ) -> StoreResult<Folded> {
        match Bounds::day(zone, date, until) {
            Some(bounds) => Ok(self.bucket(&bounds, assumed).await?.folded),
            None => Ok(Folded::Skipped),
        }
    }

    async fn bucket(&self, bounds: &Bounds, assumed: Assumed) -> StoreResult<FoldedBucket> {
        let key = self.key(bounds.bucket);
        for attempt in 0..MAX_ATTEMPTS {
            let known = if attempt == 0 && assumed == Assumed::Absent {
                None
            } else {
                self.pause_before(attempt).await;
                self.session.rollup(&key).await?
            };

            let bounds = &bounds.at_least(known.as_ref());
            let (rollup, folded) = match self.step(bounds, known.as_ref()) {
                FoldStep::Done(folded) => return Ok(folded.into()),
                FoldStep::Freeze(frozen) => (*frozen, Folded::Frozen),
                // The source is read after the version, so a fold that reads the source later also puts later.
                FoldStep::Fold => {
                    let source = self.read(bounds).await?;
                    if known.as_ref().is_some_and(|known| self.is_losing(known, &source.rollup)) {
                        return Ok(Folded::Frozen.into());
                    }
                    self.note(&source.named).await?;
                    match self.next(bounds, known.as_ref(), source) {
                        Ok(rollup) => (rollup, Folded::Stored),
                        Err(folded) => return Ok(folded.into()),
                    }
                }
            };

            if self.put(&rollup, known.as_ref()).await? {
                return Ok(FoldedBucket { folded, put: Some(rollup.rollup) });
            }
        }

        Err(StoreError::Contended(format!("the rollup {key:?}")))
    }

    /// Notes the rooms of readings before the rollup of these readings is stored.
    pub(crate) async fn note(&self, named: &NamedRooms) -> StoreResult<()> {
        let device = self.device.registered();
        self.seen.note(self.session, device, named).await
    }

    /// Decides the next step from the stored rollup.
    pub(crate) fn step(&self, bounds: &Bounds, known: Option<&StoredRollup>) -> FoldStep {
        let Some(known) = known else { return FoldStep::Fold };
        if known.settings > self.device.settings.number || self.device.indexing.is_older_than(known)
        {
            return FoldStep::Done(Folded::Outdated);
        }

        if !is_closing(known.raw_until, self.session.now) || bounds.continues(known) {
            return FoldStep::Fold;
        }
        if known.is_frozen || known.is_expired(self.session.now) {
            return FoldStep::Done(Folded::Frozen);
        }

        FoldStep::Freeze(Box::new(StoredRollup {
            version: known.version + 1,
            is_frozen: true,
            indexed: self.device.indexing.of(known.key.bucket, &known.rollup),
            ..known.clone()
        }))
    }

    /// Whether the stored part of a day has more values than its quarters still have, because quarters are expiring.
    fn is_losing(&self, known: &StoredRollup, new: &Rollup) -> bool {
        let count = |of: &Rollup| of.metrics.values().map(|metric| metric.count).sum::<u64>();
        is_closing(known.raw_until, self.session.now) && count(new) < count(&known.rollup)
    }

    /// The rollup to store. `Err` is the result of the fold if it stores no rollup.
    pub(crate) fn next(
        &self,
        bounds: &Bounds,
        known: Option<&StoredRollup>,
        source: Fresh,
    ) -> Result<StoredRollup, Folded> {
        if source.settings > self.device.settings.number {
            return Err(Folded::Outdated);
        }
        if known.is_none() && !source.is_stored_even_if_new {
            return Err(Folded::Skipped);
        }

        let is_ahead = |expires: &Timestamp| *expires > self.session.now;
        let expires = if source.rollup.is_empty() {
            Some(emptied_expires(self.session.now))
        } else {
            match self.retention.expires(bounds.bucket, bounds.range.from()) {
                // The retention was shortened. A rollup that is still there must be right until it expires.
                Some(expires) if !is_ahead(&expires) => {
                    let kept = known.and_then(|known| known.expires).filter(is_ahead);
                    Some(kept.ok_or(Folded::Skipped)?)
                }
                expires => expires,
            }
        };

        Ok(StoredRollup {
            key: self.key(bounds.bucket),
            range: bounds.range,
            zone: bounds.zone.map(|zone| zone.name().to_owned()),
            version: known.map_or(0, |known| known.version) + 1,
            // A day with quarters that must be folded again must be folded again itself.
            settings: source.outdated.unwrap_or(self.device.settings.number),
            raw_until: source.until,
            expires,
            is_frozen: false,
            indexed: self.device.indexing.of(bounds.bucket, &source.rollup),
            rollup: source.rollup,
        })
    }

    /// Replaces `known` by a new rollup. Returns `false` if the stored rollup is no longer `known`.
    pub(crate) async fn put(
        &self,
        rollup: &StoredRollup,
        known: Option<&StoredRollup>,
    ) -> StoreResult<bool> {
        let expected = known.map_or(Expected::Absent, |known| Expected::Version(known.version));
        self.session.put_rollup(rollup, expected).await
    }

    fn key(&self, bucket: Bucket) -> RollupKey {
        RollupKey { device: self.device.id.clone(), bucket }
    }

    /// Waits a random time, so that two folds that collided do not collide again.
    async fn pause_before(&self, attempt: u32) {
        if let Some(doublings) = attempt.checked_sub(1) {
            let longest = FIRST_PAUSE * 2_u32.pow(doublings);
            let pause = longest.mul_f64(fastrand::f64());
            tokio::time::sleep(pause.min(self.session.invocation.remaining())).await;
        }
    }
}
