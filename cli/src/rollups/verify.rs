//! `roomtide rollups verify`: folds all days again in memory, as a rebuild does, and says which stored rollups differ.
//! Changes nothing.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use chrono::TimeDelta;
use domain::{Bucket, Device, DeviceId, LocalDate, QuarterHour, Timestamp, Zone};
use futures_util::future::try_join_all;
use rollups::{
    Change, GRACE, NamedRooms, Retention, SeenRooms, is_closing, months_of, named_by_rollup,
    newest_watermark,
};
use runtime::clock::Clock;
use serde::{Deserialize, Serialize};
use table::{RollupKey, RollupState, StoredRollup};

use super::difference::{differences, shown};
use super::folds::{DayFolds, FoldedDays};
use super::scope::RollupScope;
use super::walk::{self, Day, Table, Walk};
use crate::kept_progress::{ProgressFile, RunScope};
use crate::output::{counted, print};
use crate::patience::{all_devices, patiently};

/// The command line of `roomtide rollups verify`.
#[derive(Debug, clap::Args)]
pub(super) struct Verify {
    #[command(flatten)]
    pub(super) scope: RollupScope,
    /// The time after which rollups that differ are compared again, such as 2s or 11m; by default longer
    /// than a late reading takes to reach its rollups
    #[arg(long, value_name = "TIME", value_parser = duration, hide = true)]
    again_after: Option<Duration>,
}

/// The maximum time for which the rollup function gathers changes.
const WINDOW: TimeDelta = TimeDelta::minutes(5);
/// The exit code if the only differences are rollups with older settings of their devices.
const ONLY_OLDER_SETTINGS: u8 = 3;
/// The maximum number of rollups that are compared again.
const MAX_SUSPECTS: usize = 10_000;

/// The findings of the first look at all days, or of a look at a day. A rollup is named as in the text of a difference.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Found {
    quarters: u64,
    days: u64,
    /// The number of rollups that cannot be computed any more.
    expiring: u64,
    /// The number of buckets without a rollup, from before the table had rollups.
    earlier: u64,
    /// The rollups that stay as they are although a reading of theirs has changed.
    frozen: Vec<String>,
    /// The rollups that differ and are compared again.
    suspects: Vec<String>,
    /// The number of further rollups that differ. They are not compared again, and count as different.
    further_suspects: u64,
    /// The differences of a day, which become suspects.
    #[serde(skip)]
    differences: Vec<Difference>,
}

/// What a rebuild would change of a bucket.
#[derive(Debug)]
struct Difference {
    key: RollupKey,
    /// The texts that are printed.
    texts: Vec<String>,
    /// Whether the settings of the device have changed since the fold, in a way that concerns the rollup.
    has_older_settings: bool,
}

/// Verifies the rollups, and prints what differs.
pub(super) async fn run(
    args: &Verify,
    store: &impl Table,
    run: &RunScope,
    clock: impl Clock,
) -> anyhow::Result<ExitCode> {
    let (state, zone) = walk::state(store).await?;
    let now = clock.now();
    let asked = args.scope.asked(zone.name());
    let mut progress = ProgressFile::<Found>::open("rollups verify", run, &asked, now)?;
    let range = args.scope.range(progress.began()?, now)?;
    let mut walk = Walk::over(store, &args.scope, range, zone, now).await?;
    if progress.continues() {
        let began = progress.began()?;
        print(format_args!("continuing the verification that began {began} (--again starts over)"));
    }

    let was_ahead = watermark_ahead(&state, now).is_some();
    let comparison = RollupComparison::new(&walk, state, clock.clone()).await?;
    let visit = async |device: &Device, days: &[Day]| {
        let visits = days.iter().map(|day| comparison.day(device, *day));
        let visits = try_join_all(visits).await?;
        Ok(visits.iter().any(Found::has_anything).then_some(visits))
    };
    let add = |found: &mut Found, days: Vec<Found>| {
        days.into_iter().for_each(|day| found.add(day));
        format!("{} compared", counted(found.quarters, "rollup"))
    };
    walk.visit(&mut progress, visit, add).await?;

    let devices = counted(walk.devices.len() as u64, "device");
    let wait =
        args.again_after.unwrap_or_else(|| (GRACE + WINDOW).to_std().expect("a time forward"));
    let (different, older_settings) =
        look_again(&mut walk, &progress.found().suspects, wait, clock.clone()).await?;
    let found = progress.finish();
    different.iter().for_each(print);
    found.print(&devices, older_settings);

    let is_ahead = was_ahead && say_watermark_ahead(store, clock.now()).await?;
    let differences = different.len() as u64 + found.further_suspects;
    let (conclusion, code) = match (differences, is_ahead, older_settings) {
        (0, true, _) => ("no rollup differs", ExitCode::FAILURE),
        (0, false, 0) => ("none differs", ExitCode::SUCCESS),
        (0, false, _) => ("no other differs", ONLY_OLDER_SETTINGS.into()),
        (count, ..) => (&*format!("{} found", counted(count, "difference")), ExitCode::FAILURE),
    };
    print(conclusion);
    Ok(code)
}

/// Compares suspects again after a while, because they may have lacked a late change. Returns the texts of the
/// differences, and the number of rollups with older settings that the rollup function will soon fold again.
async fn look_again<S: Table>(
    walk: &mut Walk<'_, S>,
    suspects: &[String],
    wait: Duration,
    clock: impl Clock,
) -> anyhow::Result<(BTreeSet<String>, u64)> {
    let (mut different, mut older_settings) = (BTreeSet::new(), 0);
    let suspects: BTreeSet<RollupKey> = suspects.iter().filter_map(|text| key_of(text)).collect();
    if suspects.is_empty() {
        return Ok((different, older_settings));
    }
    let (rollups, seconds) = (counted(suspects.len() as u64, "rollup"), wait.as_secs());
    print(format_args!("{rollups} may lack a late change; looking again in {seconds} s"));
    tokio::time::sleep(wait).await;

    let store = walk.store;
    let (state, zone) = walk::state(store).await?;
    (walk.devices, walk.zone) = (all_devices(store).await?, zone);
    let comparison = RollupComparison::new(walk, state, clock).await?;

    for device in &walk.devices {
        let of_device = suspects.iter().filter(|key| key.device == *device.id());
        let dates: BTreeSet<_> = of_device.map(|key| date_of(key, zone)).collect();
        let mut differences = Vec::new();

        // The time zone may have changed since the first look, and may skip a date.
        for day in dates.into_iter().filter_map(|date| walk.day(date)) {
            differences.extend(comparison.day(device, day).await?.differences);
        }
        differences.retain(|difference| suspects.contains(&difference.key));
        if differences.is_empty() {
            continue;
        }

        let refold = patiently(async |invocation| store.refold(device.id(), invocation).await);
        let is_refolded = device.fold_settings().changed_since(refold.await?.settings).is_none();
        for difference in differences {
            if difference.has_older_settings && !is_refolded {
                older_settings += 1;
            } else {
                different.extend(difference.texts);
            }
        }
    }
    Ok((different, older_settings))
}

/// The date of the day with which the walk visits a rollup.
fn date_of(key: &RollupKey, zone: Zone) -> LocalDate {
    match key.bucket {
        Bucket::Day(date) => date,
        // In some historic zones a day begins within a quarter, which is visited with that day.
        Bucket::QuarterHour(quarter) => zone.date(quarter.range().last()),
    }
}

/// The key of a rollup in the progress file; `None` if another program has changed the file.
fn key_of(suspect: &str) -> Option<RollupKey> {
    let (device, bucket) = suspect.rsplit_once("  ")?;
    let device = device.parse().ok()?;
    let bucket = match bucket.parse() {
        Ok(date) => Bucket::Day(date),
        Err(_) => {
            let start = Timestamp::parse_absolute(bucket).ok()?;
            Bucket::QuarterHour(QuarterHour::starting_at(start)?)
        }
    };
    Some(RollupKey { device, bucket })
}

/// The newest watermark, up to which rollups count as complete, if it is ahead of the clock.
fn watermark_ahead(state: &RollupState, now: Timestamp) -> Option<Timestamp> {
    state.sealed.iter().copied().max().filter(|sealed| *sealed > newest_watermark(now))
}

/// Reports a watermark that is still ahead of the clock. The rollup function may have set it back meanwhile.
async fn say_watermark_ahead(store: &impl Table, now: Timestamp) -> anyhow::Result<bool> {
    let (state, _) = walk::state(store).await?;
    let Some(sealed) = watermark_ahead(&state, now) else { return Ok(false) };
    print(format_args!(
        "the rollups are marked as complete up to {sealed}, which is ahead of the clock: what was stored \
         since may have none; the rollup function sets that back when it runs"
    ));
    Ok(true)
}

impl Found {
    const fn has_anything(&self) -> bool {
        let Self { quarters, days, expiring, earlier, .. } = self;
        *quarters + *days + *expiring + *earlier > 0 || !self.differences.is_empty()
    }

    /// Adds the findings of a day.
    fn add(&mut self, day: Self) {
        self.quarters += day.quarters;
        self.days += day.days;
        self.expiring += day.expiring;
        self.earlier += day.earlier;
        self.frozen.extend(day.frozen);
        for difference in day.differences {
            if self.suspects.len() < MAX_SUSPECTS {
                self.suspects.push(shown(&difference.key));
            } else {
                self.further_suspects += 1;
            }
        }
    }

    fn print(&self, devices: &str, older_settings: u64) {
        let Self { quarters, days, .. } = self;
        for rollup in &self.frozen {
            print(format_args!("{rollup}  a reading changed too late to be folded"));
        }
        let rollups = counted(*quarters, "rollup");
        print(format_args!("{rollups} of 15 minutes and {days} of days compared, of {devices}"));

        for (count, what) in [
            (self.expiring, "not compared: readings of theirs have begun to expire"),
            (
                self.earlier,
                "missing from before the table had rollups; roomtide rollups rebuild makes them",
            ),
            (
                self.further_suspects,
                "more differed, and were not looked at again; the next run does",
            ),
            (older_settings, "with older settings of a device differ; folded again within minutes"),
        ] {
            if count > 0 {
                print(format_args!("{count} {what}"));
            }
        }
    }
}

/// A comparison of stored rollups with folds, by the state of the table at one time.
struct RollupComparison<'a, S, C> {
    folds: DayFolds<'a, S, C>,
    state: RollupState,
}

impl<'a, S: Table, C: Clock> RollupComparison<'a, S, C> {
    async fn new(walk: &Walk<'a, S>, state: RollupState, clock: C) -> anyhow::Result<Self> {
        let (store, zone) = (walk.store, walk.zone);
        let indexing = patiently(async |invocation| store.indexing(invocation).await).await?;
        let (seen, retention) = (SeenRooms::default(), Retention::default());
        let (notes_rooms, whole_from) = (false, Timestamp::MIN);
        let folds =
            DayFolds { store, zone, seen, notes_rooms, retention, whole_from, indexing, clock };
        Ok(Self { folds, state })
    }

    /// Compares the quarters of a day, and the day.
    async fn day(&self, device: &Device, day: Day) -> anyhow::Result<Found> {
        let day = self.as_stored(device, day).await?;
        let folded = self.folds.fold(device, &[day], async |folded, _| Ok(folded)).await?;
        let FoldedDays { changes, mut unchanged, .. } = folded;
        unchanged.retain(|stored| day.has(stored.key.bucket) && self.is_of_zone(stored, day));

        let stored = changes.iter().filter_map(|change| change.replaced.as_ref());
        let quarters = stored.chain(&unchanged).filter(|stored| is_quarter(stored));
        let named = quarters.flat_map(named_by_rollup).collect();
        let mut found = Found::default();
        found.differences.extend(self.unnoted(device.id(), day, &named).await?);
        for stored in &unchanged {
            self.count_without_sources(stored, &mut found);
        }

        for change in changes {
            self.compare(device, day, change, &mut found);
        }
        Ok(found)
    }

    /// Returns an open day up to the end of the part that is stored, because readers take quarters for the rest. They
    /// ignore a part that is not completely sealed.
    async fn as_stored(&self, device: &Device, day: Day) -> anyhow::Result<Day> {
        let sealed = self.state.sealed_of(device.id());
        if sealed >= day.range.to() {
            return Ok(day);
        }

        let key = RollupKey::day(device.id().clone(), day.date);
        let store = self.folds.store;
        let stored = patiently(async |invocation| store.rollup(&key, invocation).await).await?;
        let is_read = |part: &StoredRollup| self.is_of_zone(part, day) && part.range.to() <= sealed;
        let part = stored.filter(is_read).map(|part| part.range);
        Ok(Day { folded: day.folded.and(part), ..day })
    }

    /// Returns whether a rollup is a quarter, or a day as the zone has it: readers ignore a day of another zone.
    fn is_of_zone(&self, stored: &StoredRollup, day: Day) -> bool {
        let is_day = stored.zone.as_deref() == Some(self.folds.zone.name())
            && stored.range.from() == day.range.from();
        is_day || is_quarter(stored)
    }

    /// Returns the rooms that rollups name and for which presence is not noted, as a difference of the day.
    async fn unnoted(
        &self,
        device: &DeviceId,
        day: Day,
        named: &NamedRooms,
    ) -> anyhow::Result<Option<Difference>> {
        let store = self.folds.store;
        let mut texts = Vec::new();
        for (room, months) in months_of(named) {
            let seen = patiently(async |invocation| store.seen(room, device, invocation).await);
            if seen.await?.is_some_and(|seen| seen.covers(&months)) {
                continue;
            }
            let (first, last) = months.into_inner();
            texts.push(format!(
                "{device}  was in {room} between {first} and {last}, and answers about the room may lack it; \
                 roomtide rollups rebuild notes it"
            ));
        }

        let key = RollupKey::day(device.clone(), day.date);
        Ok((!texts.is_empty()).then_some(Difference { key, texts, has_older_settings: false }))
    }

    /// Compares a stored rollup with the folded one, if there is something to compare yet.
    fn compare(&self, device: &Device, day: Day, change: Change, found: &mut Found) {
        let Change { rollup: folded, replaced } = change;
        let stored = replaced.filter(|stored| self.is_of_zone(stored, day));
        let is_sealed = folded.range.to() <= self.state.sealed_of(device.id());
        match &stored {
            Some(stored) if self.count_without_sources(stored, found) => return,
            _ if is_closing(folded.raw_until, self.folds.clock.now()) => {
                found.expiring += 1;
                return;
            }
            None if folded.rollup.is_empty() || !is_sealed => return,
            None if folded.range.from() < self.state.since => {
                found.earlier += 1;
                return;
            }
            _ => {}
        }

        let counted = match folded.key.bucket {
            Bucket::QuarterHour(_) => &mut found.quarters,
            Bucket::Day(_) => &mut found.days,
        };
        *counted += 1;
        let stored = stored.as_ref();
        let texts = differences(&folded.key, stored.map(|stored| &stored.rollup), &folded.rollup);
        if !texts.is_empty() {
            let settings = device.fold_settings();
            let has_older_settings =
                stored.is_some_and(|stored| settings.concerns(stored.settings, folded.range));
            found.differences.push(Difference { key: folded.key, texts, has_older_settings });
        }
    }

    /// Counts a stored rollup whose sources have begun to expire. Returns whether it is one.
    fn count_without_sources(&self, stored: &StoredRollup, found: &mut Found) -> bool {
        let now = self.folds.clock.now();
        if stored.is_frozen {
            found.frozen.push(shown(&stored.key));
        }
        let is_expiring =
            stored.is_frozen || is_closing(stored.raw_until, now) || stored.is_expired(now);
        found.expiring += u64::from(is_expiring);
        is_expiring
    }
}

fn is_quarter(stored: &StoredRollup) -> bool {
    matches!(stored.key.bucket, Bucket::QuarterHour(_))
}

/// Parses a time such as `2s` or `11m`.
fn duration(text: &str) -> Result<Duration, String> {
    // Uses the units of relative times.
    let after = Timestamp::parse(&format!("+{text}"), Timestamp::MIN);
    let after =
        after.map_err(|_| format!("{text:?} is not a time; write one like 2s, 11m or 1h"))?;
    Ok(Duration::from_millis(after.as_millis().unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> [RollupKey; 2] {
        let start = Timestamp::parse_absolute("2026-01-11T16:15:00Z").expect("a timestamp");
        let quarter = QuarterHour::starting_at(start).expect("the start of a quarter");
        let day = Bucket::Day("2026-01-11".parse().expect("a date"));
        [Bucket::QuarterHour(quarter), day]
            .map(|bucket| RollupKey { device: "a".parse().expect("an id"), bucket })
    }

    fn found_of(key: RollupKey) -> Found {
        let difference = Difference { key, texts: Vec::new(), has_older_settings: false };
        Found { differences: vec![difference], ..Found::default() }
    }

    #[test]
    fn rollups_beyond_those_that_are_compared_again_count_as_different() {
        let mut found = Found::default();
        for _ in 0..MAX_SUSPECTS + 3 {
            found.add(found_of(keys()[1].clone()));
        }
        assert_eq!((found.suspects.len(), found.further_suspects), (MAX_SUSPECTS, 3));
    }

    #[test]
    fn a_suspect_in_the_progress_file_is_the_rollup_that_it_was() {
        let mut found = Found::default();
        keys().into_iter().for_each(|key| found.add(found_of(key)));
        assert_eq!(found.suspects, ["a  2026-01-11T16:15:00.000Z", "a  2026-01-11"]);
        let read: Vec<_> = found.suspects.iter().filter_map(|text| key_of(text)).collect();
        assert_eq!(read, keys());
    }
}
