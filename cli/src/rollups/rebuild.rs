//! `roomtide rollups rebuild`: folds all days again, and stores the rollups unless the table has changed meanwhile.
//! Folds nothing itself, and chooses no order of days.

use std::fmt;
use std::future::ready;

use chrono::TimeDelta;
use domain::{Bucket, Device, Timestamp, Zone};
use futures_util::future::try_join_all;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use local::Bulk;
use rollups::{Change, Retention, SeenRooms};
use runtime::clock::Clock;
use serde::{Deserialize, Serialize};
use table::{Expected, Indexing, Invocation, StoreError, StoreResult};

use super::folds::{DayFolds, FoldedDays};
use super::scope::RollupScope;
use super::walk::{self, Day, Table, Walk};
use super::zone_change;
use crate::kept_progress::{ProgressFile, RunScope};
use crate::output::{counted, print};
use crate::patience::patiently;

/// The command line of `roomtide rollups rebuild`.
#[derive(Debug, clap::Args)]
pub(super) struct Rebuild {
    #[command(flatten)]
    pub(super) scope: RollupScope,
    /// Change the time zone of the days, such as Europe/Berlin; with --from, earlier days are given up
    #[arg(long, value_name = "ZONE", conflicts_with_all = ["device", "to"])]
    time_zone: Option<Zone>,
    /// Days until a rollup of 15 minutes expires, as the stack's parameter says; 0 is never
    #[arg(long, value_name = "DAYS", default_value_t = 0)]
    quarter_retention_days: u32,
    /// Days until a rollup of a day expires, as the stack's parameter says; 0 is never
    #[arg(long, value_name = "DAYS", default_value_t = 0)]
    day_retention_days: u32,
}

impl Rebuild {
    fn retention(&self) -> Retention {
        let days = |days| (days > 0).then(|| TimeDelta::days(i64::from(days)));
        Retention {
            readings: None,
            quarters: days(self.quarter_retention_days),
            days: days(self.day_retention_days),
        }
    }
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

/// A rebuild of days.
struct RebuildDays<'a, S, C> {
    folds: DayFolds<'a, S, C>,
    /// The writer of transactions, if the data are on this machine.
    bulk: Option<Bulk>,
}

/// Rebuilds the rollups, in transactions if `bulk` is there. Returns their numbers.
pub(super) async fn run(
    args: &Rebuild,
    store: &impl Table,
    bulk: Option<Bulk>,
    run: &RunScope,
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
    let asked = args.scope.asked(&format!("{} {schema} {quarters} {days}", zone.name()));
    // Before the zone changes: if the progress cannot be saved, the command fails and changes nothing.
    let now = clock.now();
    let mut progress = ProgressFile::<Rebuilt>::open("rollups rebuild", run, &asked, now)?;
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

    let folds = DayFolds {
        store,
        zone,
        seen: SeenRooms::default(),
        notes_rooms: true,
        retention: args.retention(),
        // If only a part of a day is given up, the rest must not become the rollup of that day.
        whole_from: args.time_zone.map_or(Timestamp::MIN, |_| range.from()),
        indexing,
        clock,
    };

    // With single puts, one day at a time: if somebody else changes a rollup meanwhile, only one day is read again.
    let window = if bulk.is_some() { walk::DAYS } else { 1 };
    let rebuild = RebuildDays { folds, bulk };
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
        note_complete(store, zone, &rebuild.folds.indexing).await?;
    }
    Ok(progress.finish())
}

/// Notes in the table that all rollups are complete, and the index of the schema by which they were made.
async fn note_complete(store: &impl Table, zone: Zone, indexing: &Indexing) -> anyhow::Result<()> {
    let set_rebuilt =
        async |invocation: &_| store.set_rebuilt(Timestamp::MIN, zone.name(), invocation).await;
    patiently(set_rebuilt).await?;

    if let Indexing::By(schema) = indexing {
        // A newer schema is not complete, because this rebuild used an older one.
        let version = schema.version();
        patiently(async |invocation| store.set_conditions_ready(version, invocation).await).await?;
    }
    Ok(())
}

impl<S: Table, C: Clock> RebuildDays<'_, S, C> {
    /// Folds the quarters of successive days, and the days themselves, and puts the rollups.
    async fn days(&self, device: &Device, days: &[Day]) -> anyhow::Result<Rebuilt> {
        let put =
            async |folded, invocation: &Invocation| self.put(device, folded, invocation).await;
        self.folds.fold(device, days, put).await
    }

    /// Puts rollups. Fails if somebody else has changed one of them meanwhile.
    async fn put(
        &self,
        device: &Device,
        folded: FoldedDays,
        invocation: &Invocation,
    ) -> StoreResult<Rebuilt> {
        let FoldedDays { changes, buckets, .. } = folded;
        // A day is put after the quarters that it sums up.
        let is_day = |change: &Change| matches!(change.rollup.key.bucket, Bucket::Day(_));
        let (days, quarters): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_day);
        let (days_put, quarters_put) = (days.len() as u64, quarters.len() as u64);

        let is_put = if let Some(bulk) = &self.bulk {
            let put = bulk.put_rollups(quarters.into_iter().chain(days).collect()).await;
            put.map_err(|why| StoreError::Unavailable(why.into()))?
        } else {
            self.put_each(&quarters, invocation).await? && self.put_each(&days, invocation).await?
        };

        if !is_put {
            return Err(StoreError::Contended(format!("rollups of {}", device.id())));
        }
        let kept = buckets.saturating_sub(quarters_put + days_put);
        Ok(Rebuilt { quarters: quarters_put, days: days_put, kept })
    }

    async fn put_each(&self, changes: &[Change], invocation: &Invocation) -> StoreResult<bool> {
        let puts: Vec<_> = changes
            .iter()
            .map(|change| {
                let version = change.replaced_version();
                let expected = version.map_or(Expected::Absent, Expected::Version);
                self.folds.store.put_rollup(&change.rollup, expected, invocation)
            })
            .collect();
        stream::iter(puts).buffer_unordered(PUT_CONCURRENCY).try_all(ready).await
    }
}

#[cfg(test)]
mod tests;
