//! `roomtide rollups rebuild`: folds some days of a device in memory, and stores the rollups unless their sources in
//! the table have changed meanwhile. Chooses no order of days.

use std::fmt;
use std::future::ready;

use anyhow::{Context as _, bail};
use chrono::TimeDelta;
use domain::{Bucket, Device, TimeRange, Timestamp, Zone};
use futures_util::future::try_join_all;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use local::Bulk;
use rollups::{Assumed, Change, DeviceRules, Fold, Folded, Retention, SeenRooms, Snapshot};
use runtime::clock::Clock;
use serde::{Deserialize, Serialize};
use table::{
    Expected, Indexing, Invocation, ReadRollups as _, RollupKey, Session, StoreError, StoreResult,
};

use super::progress::Progress;
use super::scope::Scope;
use super::walk::{self, Day, Table, Walk};
use super::zone_change;
use crate::output::{counted, print};
use crate::patience::patiently;
use crate::place::ProgressFile;

/// The command line of `roomtide rollups rebuild`.
#[derive(Debug, clap::Args)]
pub(super) struct Rebuild {
    #[command(flatten)]
    pub(super) scope: Scope,
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

/// The number of rollups that a rebuild stored, and of those it left unchanged.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rebuilt {
    pub(super) quarters: u64,
    pub(super) days: u64,
    /// The number of rollups that were left unchanged, because their readings have begun to expire.
    pub(super) kept: u64,
}

impl Rebuilt {
    const fn plus(self, other: Self) -> Self {
        Self {
            quarters: self.quarters + other.quarters,
            days: self.days + other.days,
            kept: self.kept + other.kept,
        }
    }
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

/// The number of a window's rollups that are put at once.
const PUT_CONCURRENCY: usize = 8;

/// Rebuilds the rollups, in transactions if `bulk` is there. Returns their numbers.
pub(super) async fn run(
    args: &Rebuild,
    store: &impl Table,
    bulk: Option<Bulk>,
    progress: &ProgressFile,
    clock: impl Clock,
) -> anyhow::Result<Rebuilt> {
    let (state, stored_zone) = walk::state(store).await?;
    let zone = args.time_zone.unwrap_or(stored_zone);
    let indexing = patiently(async |invocation| store.indexing(invocation).await).await?;
    let schema = match &indexing {
        Indexing::By(schema) => schema.version(),
        Indexing::Off | Indexing::Unset => 0,
    };
    // Another schema or another expiry also makes a rollup outdated, so it is folded again.
    let Rebuild { quarter_retention_days: quarters, day_retention_days: days, .. } = args;
    let asked = format!("{} {schema} {quarters} {days}", zone.name());
    // Before the zone changes: if the progress cannot be saved, the command fails and changes nothing.
    let now = clock.now();
    let mut progress =
        Progress::<Rebuilt>::of("rollups rebuild", &args.scope, progress, &asked, now)?;
    // Computed once, so that the same range is given up, checked and folded.
    let range = args.scope.range(progress.began()?, now)?;
    let walk = Walk::over(store, &args.scope, range, zone, now).await?;

    if zone != stored_zone {
        zone_change::check(&walk, range.from(), stored_zone, clock.now()).await?;
        // Set before the days are folded: from now on the function also folds in the new zone, and a day of the old
        // zone counts as absent. So no answer is wrong if the rebuild is interrupted.
        patiently(async |invocation| store.set_rebuilt(state.since, zone.name(), invocation).await)
            .await?;
    }
    if progress.continues() {
        let began = progress.began()?;
        print(format_args!("continuing the rebuild that began {began} (--again starts over)"));
    }
    let days = |days| (days > 0).then(|| TimeDelta::days(i64::from(days)));
    let retention = Retention {
        readings: None,
        quarters: days(args.quarter_retention_days),
        days: days(args.day_retention_days),
    };
    // If only a part of a day is given up, the rest must not become the rollup of that day.
    let whole_from = args.time_zone.map_or(Timestamp::MIN, |_| range.from());
    let seen = SeenRooms::default();
    // With single puts, one day at a time: if somebody else changes a rollup meanwhile, only one day is read again.
    let window = if bulk.is_some() { walk::DAYS } else { 1 };
    let rebuild = RebuildDays { store, bulk, zone, seen, retention, whole_from, indexing, clock };
    let visit = async |device: &Device, days: &[Day]| {
        let windows = days.chunks(window).map(|days| rebuild.days(device, days));
        let sum = try_join_all(windows).await?.into_iter().fold(Rebuilt::default(), Rebuilt::plus);
        Ok((sum != Rebuilt::default()).then_some(sum))
    };
    let add = |sum: &mut Rebuilt, days| {
        *sum = sum.plus(days);
        format!("{} of 15 minutes", counted(sum.quarters, "rollup"))
    };
    walk.visit(&mut progress, visit, add).await?;
    if args.scope.is_everything() {
        patiently(async |invocation| {
            store.set_rebuilt(Timestamp::MIN, zone.name(), invocation).await
        })
        .await?;
        if let Indexing::By(schema) = &rebuild.indexing {
            // A newer schema is not complete, because this rebuild used an older one.
            let version = schema.version();
            patiently(async |invocation| store.set_conditions_ready(version, invocation).await)
                .await?;
        }
    }
    Ok(progress.finish())
}

struct RebuildDays<'a, S, C> {
    store: &'a S,
    bulk: Option<Bulk>,
    zone: Zone,
    seen: SeenRooms,
    retention: Retention,
    /// The start of the first day to fold; days that begin earlier are left out.
    whole_from: Timestamp,
    indexing: Indexing,
    clock: C,
}

/// The maximum number of times that a device is read again because its settings have changed meanwhile.
const MAX_CHANGES: usize = 5;

impl<S: Table, C: Clock> RebuildDays<'_, S, C> {
    /// Folds the quarters of successive days, and the days themselves.
    async fn days(&self, device: &Device, days: &[Day]) -> anyhow::Result<Rebuilt> {
        let mut rules = DeviceRules::of(device).indexed(&self.indexing);
        for _ in 0..MAX_CHANGES {
            let rebuilt = patiently(async |invocation| self.fold(&rules, days, invocation).await);
            if let Some(rebuilt) = rebuilt.await? {
                return Ok(rebuilt);
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

    /// Folds days in memory and puts the rollups. Returns `None` if a stored rollup was folded with newer settings than
    /// `device` has.
    async fn fold(
        &self,
        device: &DeviceRules,
        days: &[Day],
        invocation: &Invocation,
    ) -> StoreResult<Option<Rebuilt>> {
        let (Some(first), Some(last)) = (days.first(), days.last()) else {
            return Ok(Some(Rebuilt::default()));
        };
        // In some historic zones a day begins within a quarter of an hour.
        let from =
            first.quarters.map_or(first.range.from(), |it| it.from().min(first.range.from()));
        let range =
            TimeRange::new(from, last.range.to()).expect("a day does not end before it begins");
        let dates = first.date..=last.date;
        let snapshot = Snapshot::read(self.store, &device.id, range, dates, invocation).await?;
        // Flags mark changed readings, and a rebuild changes none.
        let snapshot = snapshot.without_flags();
        let session = Session::new(&snapshot, invocation, self.clock.now());
        let fold = Fold { session, device, seen: &self.seen, retention: &self.retention };
        // Includes rollups that stay because their readings have expired.
        let named = snapshot.named_rooms();
        self.seen.note(session, device.registered(), &named).await?;
        let mut folded = 0;
        for day in days {
            let mut is_anything = false;
            if let Some(quarters) = day.quarters {
                let window = fold.quarters_of(quarters, Assumed::Nothing).await?;
                if window.is_outdated {
                    return Ok(None);
                }
                is_anything = !window.folded.is_empty();
                folded += window.folded.len() as u64;
                // Quarters that are not folded again are indexed as they are stored.
                fold.index_quarters(quarters).await?;
            }
            let key = RollupKey::day(device.id.clone(), day.date);
            let Some(part) = day.folded.filter(|day| day.from() >= self.whole_from) else {
                continue;
            };
            if is_anything || snapshot.rollup(&key, invocation).await?.is_some() {
                match fold.day(self.zone, day.date, part.to(), Assumed::Nothing).await? {
                    Folded::Outdated => return Ok(None),
                    Folded::Stored | Folded::Frozen => folded += 1,
                    Folded::Skipped => {}
                }
            }
        }
        let changes = snapshot.into_changes();
        let is_day = |it: &&Change| matches!(it.rollup.key.bucket, Bucket::Day(_));
        let days = changes.iter().filter(is_day).count() as u64;
        let stored = changes.len() as u64;
        if !self.put(changes, invocation).await? {
            return Err(StoreError::Contended(format!("rollups of {}", device.id)));
        }
        Ok(Some(Rebuilt { quarters: stored - days, days, kept: folded.saturating_sub(stored) }))
    }

    /// Puts rollups. Returns `false` if somebody else has changed one of them meanwhile.
    async fn put(&self, changes: Vec<Change>, invocation: &Invocation) -> StoreResult<bool> {
        if let Some(bulk) = &self.bulk {
            let put = bulk.put_rollups(changes).await;
            return put.map_err(|why| StoreError::Unavailable(why.into()));
        }
        // A day is put after the quarters that it sums up.
        let is_day = |it: &Change| matches!(it.rollup.key.bucket, Bucket::Day(_));
        let (days, quarters): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_day);
        Ok(self.put_each(&quarters, invocation).await? && self.put_each(&days, invocation).await?)
    }

    async fn put_each(&self, changes: &[Change], invocation: &Invocation) -> StoreResult<bool> {
        let puts: Vec<_> = changes
            .iter()
            .map(|change| {
                let expected = change.replaced.map_or(Expected::Absent, Expected::Version);
                self.store.put_rollup(&change.rollup, expected, invocation)
            })
            .collect();
        stream::iter(puts).buffer_unordered(PUT_CONCURRENCY).try_all(ready).await
    }
}

#[cfg(test)]
mod tests;
