//! `roomtide rollups rebuild`: folds all rollups again, by compare-and-swap. Chooses no order of days.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, bail};
use chrono::TimeDelta;
use domain::{Bucket, Device, DeviceId, LocalDate, Order, RoomId, TimeRange, Timestamp, Zone};
use rollups::{Assumed, DeviceRules, Fold, Folded, Retention, SeenRooms};
use runtime::clock::Clock;
use serde::{Deserialize, Serialize};
use table::{
    Expected, Indexing, Invocation, NoteSeen, PutRollups, ReadRollups, ReadStoredReadings,
    RollupKey, Seen, StoreResult, StoredReading, StoredRollup,
};

use super::progress::Progress;
use super::scope::Scope;
use super::walk::{self, Day, Table, Walk};
use super::zone_change;
use crate::output::{counted, print};
use crate::patience::patiently;

/// The command line of `roomtide rollups rebuild`.
#[derive(Debug, clap::Args)]
pub(super) struct Rebuild {
    #[command(flatten)]
    scope: Scope,
    /// Change the time zone of the days, such as Europe/Berlin; with --from, days before it are given up
    #[arg(long, value_name = "ZONE", conflicts_with_all = ["device", "to"])]
    time_zone: Option<Zone>,
    /// Days until a rollup of 15 minutes expires, as the stack's parameter says; 0 is never
    #[arg(long, value_name = "DAYS", default_value_t = 0)]
    quarter_retention_days: u32,
    /// Days until a rollup of a day expires, as the stack's parameter says; 0 is never
    #[arg(long, value_name = "DAYS", default_value_t = 0)]
    day_retention_days: u32,
}

/// The number of rollups that a rebuild stored and left.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rebuilt {
    pub(super) quarters: u64,
    pub(super) days: u64,
    /// Rollups whose readings have begun to expire.
    pub(super) kept: u64,
}

impl fmt::Display for Rebuilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { quarters, days, kept } = *self;
        let quarters = counted(quarters, "rollup");
        write!(f, "{quarters} of 15 minutes and {days} of days stored")?;
        if kept > 0 {
            let kept = counted(kept, "rollup");
            write!(
                f,
                "; {kept} left as they are, because readings of theirs have begun to expire"
            )?;
        }
        Ok(())
    }
}

/// Rebuilds the rollups. Returns their number.
pub(super) async fn run(
    args: &Rebuild,
    store: &impl Table,
    progress: &Path,
    clock: impl Clock,
) -> anyhow::Result<Rebuilt> {
    let (state, stored_zone) = walk::state(store).await?;
    let zone = args.time_zone.unwrap_or(stored_zone);
    let walk = Walk::over(store, &args.scope, zone, clock.now()).await?;
    if zone != stored_zone {
        zone_change::check(&walk, &args.scope, stored_zone, clock.now()).await?;
        // Set before the days are folded: from now on the function folds in the new zone too, and a day of
        // the old one counts as absent, so that an interrupted rebuild makes no answer wrong.
        patiently(async |invocation| store.set_rebuilt(state.since, zone.name(), invocation).await)
            .await?;
    }
    let indexing = patiently(async |invocation| store.indexing(invocation).await).await?;
    let schema = match &indexing {
        Indexing::By(schema) => schema.version(),
        Indexing::Off | Indexing::Unset => 0,
    };
    // What was folded with another schema is folded again.
    let asked = format!("{} {schema}", zone.name());
    let mut progress = Progress::<Rebuilt>::of(&args.scope, progress, &asked);
    if progress.continues() {
        print("continuing where the last rebuild stopped (--again starts over)");
    }
    let days = |days| (days > 0).then(|| TimeDelta::days(i64::from(days)));
    let retention = Retention {
        readings: None,
        quarters: days(args.quarter_retention_days),
        days: days(args.day_retention_days),
    };
    // Of a day that is given up in part, the rest is no rollup of that day.
    let whole_from = args.time_zone.map(|_| args.scope.range(clock.now())).transpose()?;
    let whole_from = whole_from.map_or(Timestamp::MIN, TimeRange::from);
    let seen = SeenRooms::default();
    let rebuild = RebuildDay { store, zone, seen, retention, whole_from, indexing, clock };
    let add = |sum: &mut Rebuilt, day: Rebuilt| {
        sum.quarters += day.quarters;
        sum.days += day.days;
        sum.kept += day.kept;
        format!("{} of 15 minutes", counted(sum.quarters, "rollup"))
    };
    walk.visit(&mut progress, async |device, day| rebuild.day(device, day).await, add).await?;
    if args.scope.is_everything() {
        patiently(async |invocation| {
            store.set_rebuilt(Timestamp::MIN, zone.name(), invocation).await
        })
        .await?;
        if let Indexing::By(schema) = &rebuild.indexing {
            // A newer schema is not ready: this rebuild knew an older one.
            let version = schema.version();
            patiently(async |invocation| store.set_conditions_ready(version, invocation).await)
                .await?;
        }
    }
    Ok(progress.finish())
}

struct RebuildDay<'a, S, C> {
    store: &'a S,
    zone: Zone,
    seen: SeenRooms,
    retention: Retention,
    /// Days that begin earlier are not folded.
    whole_from: Timestamp,
    indexing: Indexing,
    clock: C,
}

/// The most times that a device is read again because its settings changed meanwhile.
const MAX_CHANGES: usize = 5;

impl<S: Table, C: Clock> RebuildDay<'_, S, C> {
    /// Folds a day's quarters of an hour, then the day. Returns `None` if there was nothing to fold.
    async fn day(&self, device: &Device, day: Day) -> anyhow::Result<Option<Rebuilt>> {
        let mut rules = DeviceRules::of(device).indexed(&self.indexing);
        for _ in 0..MAX_CHANGES {
            let rebuilt = patiently(async |invocation| self.fold(&rules, day, invocation).await);
            if let Some(rebuilt) = rebuilt.await? {
                let is_anything = rebuilt != Rebuilt::default();
                return Ok(is_anything.then_some(rebuilt));
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
            "{}: the rollups of {} are folded with newer settings than the device has",
            device.id(),
            day.date
        )
    }

    /// Returns `None` if a rollup was folded with newer settings than these.
    async fn fold(
        &self,
        device: &DeviceRules,
        day: Day,
        invocation: &Invocation,
    ) -> StoreResult<Option<Rebuilt>> {
        let store = &Unflagged::of(self.store);
        let now = self.clock.now();
        let (seen, retention) = (&self.seen, &self.retention);
        let fold = Fold { store, device, seen, retention, now, invocation };
        let mut folded = 0;
        if let Some(quarters) = day.quarters {
            let window = fold.quarters_of(quarters, Assumed::Nothing).await?;
            if window.is_outdated {
                return Ok(None);
            }
            folded = window.folded.len() as u64;
            // What is not folded again is in the index as it is stored.
            if self.indexing != Indexing::Off && store.stored().0 < folded {
                let store = self.store;
                let fold = Fold { store, device, seen, retention, now, invocation };
                fold.index_quarters(quarters).await?;
            }
        }
        let key = RollupKey::day(device.id.clone(), day.date);
        let is_folded = day.is_over && day.range.from() >= self.whole_from;
        if is_folded && (folded > 0 || self.store.rollup(&key, invocation).await?.is_some()) {
            match fold.day(self.zone, day.date, Assumed::Nothing).await? {
                Folded::Outdated => return Ok(None),
                Folded::Stored | Folded::Frozen => folded += 1,
                Folded::Skipped => {}
            }
        }
        let (quarters, days) = store.stored();
        Ok(Some(Rebuilt { quarters, days, kept: folded.saturating_sub(quarters + days) }))
    }
}

/// A table in which no rollup is flagged as frozen: that says that a reading has changed, and a rebuild
/// changes none. Counts what is stored.
struct Unflagged<'a, S> {
    store: &'a S,
    quarters: AtomicU64,
    days: AtomicU64,
}

impl<'a, S> Unflagged<'a, S> {
    const fn of(store: &'a S) -> Self {
        Self { store, quarters: AtomicU64::new(0), days: AtomicU64::new(0) }
    }

    fn stored(&self) -> (u64, u64) {
        (self.quarters.load(Ordering::Relaxed), self.days.load(Ordering::Relaxed))
    }
}

impl<S: PutRollups> PutRollups for Unflagged<'_, S> {
    async fn put_rollup(
        &self,
        stored: &StoredRollup,
        expected: Expected,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        if stored.is_frozen {
            return Ok(true);
        }
        let is_stored = self.store.put_rollup(stored, expected, invocation).await?;
        let count = match stored.key.bucket {
            Bucket::Quarter(_) => &self.quarters,
            Bucket::Day(_) => &self.days,
        };
        count.fetch_add(u64::from(is_stored), Ordering::Relaxed);
        Ok(is_stored)
    }
}

impl<S: NoteSeen> NoteSeen for Unflagged<'_, S> {
    async fn seen(
        &self,
        room: &RoomId,
        device: &DeviceId,
        invocation: &Invocation,
    ) -> StoreResult<Option<Seen>> {
        self.store.seen(room, device, invocation).await
    }

    async fn put_seen(
        &self,
        seen: &Seen,
        expected: Expected,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        self.store.put_seen(seen, expected, invocation).await
    }
}

impl<S: ReadRollups> ReadRollups for Unflagged<'_, S> {
    async fn rollup(
        &self,
        key: &RollupKey,
        invocation: &Invocation,
    ) -> StoreResult<Option<StoredRollup>> {
        self.store.rollup(key, invocation).await
    }

    async fn quarters(
        &self,
        device: &DeviceId,
        range: TimeRange,
        consistent: bool,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        self.store.quarters(device, range, consistent, invocation).await
    }

    async fn days(
        &self,
        device: &DeviceId,
        dates: (LocalDate, LocalDate),
        order: Order,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        self.store.days(device, dates, order, limit, invocation).await
    }
}

impl<S: ReadStoredReadings> ReadStoredReadings for Unflagged<'_, S> {
    async fn stored_readings(
        &self,
        device: &DeviceId,
        range: TimeRange,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredReading>> {
        self.store.stored_readings(device, range, invocation).await
    }
}
