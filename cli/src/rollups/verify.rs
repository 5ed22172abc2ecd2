//! `roomtide rollups verify`: compares the rollups with their sources. Changes nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::Duration;

use chrono::TimeDelta;
use domain::{
    Bucket, Device, DeviceId, Extent, FoldRules, Month, QuarterHour, Rollup, RoomId, TimeRange,
    Timestamp, Zone,
};
use futures_util::future::try_join_all;
use rollups::{GRACE, NamedRooms, is_closing, months_of, named_by_rollup, newest_watermark};
use runtime::clock::Clock;
use serde::{Deserialize, Serialize};
use table::{Invocation, RollupKey, RollupState, StoreResult, StoredReading, StoredRollup};

use super::difference::{Difference, differences};
use super::progress::Progress;
use super::scope::Scope;
use super::walk::{self, Day, Table, Walk};
use crate::output::{counted, print};
use crate::patience::patiently;
use crate::place::ProgressFile;

/// The command line of `roomtide rollups verify`.
#[derive(Debug, clap::Args)]
pub(super) struct Verify {
    #[command(flatten)]
    pub(super) scope: Scope,
    /// The time after which rollups that differ are compared again, such as 2s or 11m; by default longer
    /// than a late reading takes to reach its rollups
    #[arg(long, value_name = "TIME", value_parser = duration)]
    again_after: Option<Duration>,
}

/// The maximum time for which the rollup function gathers changes.
const WINDOW: TimeDelta = TimeDelta::minutes(5);
/// The exit code if the only differences are rollups with older settings of their devices.
const ONLY_OLDER_SETTINGS: u8 = 3;
/// The maximum number of rollups that are compared again.
const MAX_SUSPECTS: usize = 10_000;

/// The findings of the first comparison.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Found {
    quarters: u64,
    days: u64,
    /// The number of rollups that cannot be computed any more.
    expiring: u64,
    /// The number of buckets without a rollup, from before the table had rollups.
    earlier: u64,
    frozen: Vec<Suspect>,
    /// The rollups that differ and are compared again.
    suspects: Vec<Suspect>,
    /// The number of further rollups that differ. They are not compared again, and count as different.
    #[serde(default)]
    further_suspects: u64,
    /// Absent in a file of an earlier version.
    #[serde(default)]
    unnoted: Vec<Unnoted>,
}

/// A room in a device's rollups for which the table has no note of presence, with the first and last month.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Unnoted {
    device: String,
    room: String,
    first: String,
    last: String,
}

/// The findings for some days of a device.
#[derive(Debug, Default)]
struct Visited {
    verdicts: Vec<(RollupKey, Verdict)>,
    named: NamedRooms,
    unnoted: Vec<Unnoted>,
}

/// A bucket of a device that is to be compared again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Suspect {
    device: String,
    bucket: BucketText,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum BucketText {
    QuarterHour(i64),
    Day(String),
}

impl Suspect {
    fn of(key: &RollupKey) -> Self {
        let bucket = match key.bucket {
            Bucket::QuarterHour(quarter) => BucketText::QuarterHour(quarter.start().as_millis()),
            Bucket::Day(date) => BucketText::Day(date.to_string()),
        };
        Self { device: key.device.to_string(), bucket }
    }

    /// The key of the rollup; `None` if another program has changed the file.
    fn key(&self) -> Option<RollupKey> {
        let device = self.device.parse().ok()?;
        let bucket = match &self.bucket {
            BucketText::QuarterHour(start) => {
                Bucket::QuarterHour(QuarterHour::starting_at(Timestamp::from_millis(*start).ok()?)?)
            }
            BucketText::Day(date) => Bucket::Day(date.parse().ok()?),
        };
        Some(RollupKey { device, bucket })
    }
}

/// The result of comparing one bucket.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Equal,
    Different(Vec<Difference>),
    /// The rollup was folded with older settings of the device; the rollup function will soon fold it again.
    OlderSettings,
    /// The sources of the rollup have begun to expire.
    Expiring,
    /// The rollup is marked as frozen: a reading changed too late for another fold.
    Frozen,
    /// There is no rollup, because the table had none at that time.
    Earlier,
    /// There is neither a rollup nor a source.
    Nothing,
}

/// Verifies the rollups, and prints what differs.
pub(super) async fn run(
    args: &Verify,
    store: &impl Table,
    progress: &ProgressFile,
    clock: impl Clock,
) -> anyhow::Result<ExitCode> {
    let (state, zone) = walk::state(store).await?;
    let (asked, now) = (zone.name(), clock.now());
    let mut progress = Progress::<Found>::of("rollups verify", &args.scope, progress, asked, now)?;
    let range = args.scope.range(progress.began()?, now)?;
    let walk = Walk::over(store, &args.scope, range, zone, now).await?;
    if progress.continues() {
        let began = progress.began()?;
        print(format_args!("continuing the verification that began {began} (--again starts over)"));
    }
    let was_ahead = watermark_ahead(&state, clock.now()).is_some();
    let due = due_changes(store, &walk.devices).await?;
    let mut comparison = Comparison { store, zone, state, due, clock };
    let add = |sum: &mut Found, visited: Visited| {
        for (key, verdict) in visited.verdicts {
            sum.add(&key, &verdict);
        }
        sum.unnoted.extend(visited.unnoted);
        format!("{} compared", counted(sum.quarters, "rollup"))
    };
    let visit = async |device: &Device, days: &[Day]| {
        let visited = try_join_all(days.iter().map(|day| comparison.day(device, *day))).await?;
        let mut sum = visited.into_iter().fold(Visited::default(), Visited::plus);
        sum.unnoted = comparison.unnoted(device.id(), &sum.named).await?;
        Ok((!sum.verdicts.is_empty()).then_some(sum))
    };
    walk.visit(&mut progress, visit, add).await?;

    let suspects = &progress.found().suspects;
    let keys: Vec<RollupKey> = suspects.iter().filter_map(Suspect::key).collect();
    let wait =
        args.again_after.unwrap_or_else(|| (GRACE + WINDOW).to_std().expect("a time forward"));
    let (different, older_settings) = comparison.again(keys, wait).await?;
    let found = progress.finish();
    different.iter().for_each(print);
    found.frozen.iter().filter_map(Suspect::key).for_each(|RollupKey { device, bucket }| {
        let bucket = match bucket {
            Bucket::QuarterHour(quarter) => quarter.start().to_string(),
            Bucket::Day(date) => date.to_string(),
        };
        print(format_args!("{device}  {bucket}  a reading changed too late to be folded"));
    });
    let unnoted = comparison.still_unnoted(&found.unnoted).await?;
    unnoted.iter().for_each(print);
    let Found { quarters, days, expiring, earlier, further_suspects, .. } = found;
    let devices = counted(walk.devices.len() as u64, "device");
    print(format_args!(
        "{} of 15 minutes and {days} of days compared, of {devices}",
        counted(quarters, "rollup")
    ));
    if expiring > 0 {
        print(format_args!("{expiring} not compared: readings of theirs have begun to expire"));
    }
    if earlier > 0 {
        print(format_args!(
            "{earlier} missing from before the table had rollups; roomtide rollups rebuild makes them"
        ));
    }
    if further_suspects > 0 {
        print(format_args!(
            "{further_suspects} more differed, and were not looked at again; the next run does"
        ));
    }
    if older_settings > 0 {
        print(format_args!(
            "{} with a difference (older settings; folded again within minutes)",
            counted(older_settings, "rollup")
        ));
    }
    let is_ahead = was_ahead && comparison.say_watermark_ahead().await?;
    let differences = different.len() as u64 + unnoted.len() as u64 + further_suspects;
    match (differences, older_settings) {
        (0, _) if is_ahead => {
            print("no rollup differs");
            Ok(ExitCode::FAILURE)
        }
        (0, 0) => {
            print("none differs");
            Ok(ExitCode::SUCCESS)
        }
        (0, _) => {
            print("no other differs");
            Ok(ONLY_OLDER_SETTINGS.into())
        }
        (found, _) => {
            print(format_args!("{} found", counted(found, "difference")));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The newest watermark, up to which rollups count as complete, if it is ahead of the clock.
fn watermark_ahead(state: &RollupState, now: Timestamp) -> Option<Timestamp> {
    state.sealed.iter().copied().max().filter(|sealed| *sealed > newest_watermark(now))
}

/// For each device, the range that the rollup function still has to fold again after a change of settings.
async fn due_changes(
    store: &impl Table,
    devices: &[Device],
) -> anyhow::Result<BTreeMap<DeviceId, Extent>> {
    let mut due = BTreeMap::new();
    for device in devices {
        let (id, fold_settings) = (device.id(), device.fold_settings());
        if fold_settings.number > 0 {
            let done = patiently(async |invocation| store.refold(id, invocation).await).await?;
            due.extend(fold_settings.changed_since(done.settings).map(|it| (id.clone(), it)));
        }
    }
    Ok(due)
}

impl Visited {
    fn plus(mut self, other: Self) -> Self {
        self.verdicts.extend(other.verdicts);
        self.named.extend(other.named);
        self
    }
}

impl fmt::Display for Unnoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, room, first, last } = self;
        write!(
            f,
            "{device}  was in {room} between {first} and {last}, and answers about the room may lack it; \
             roomtide rollups rebuild notes it"
        )
    }
}

impl Found {
    fn add(&mut self, key: &RollupKey, verdict: &Verdict) {
        match (verdict, key.bucket) {
            (Verdict::Equal | Verdict::Different(_) | Verdict::OlderSettings, bucket) => {
                *(match bucket {
                    Bucket::QuarterHour(_) => &mut self.quarters,
                    Bucket::Day(_) => &mut self.days,
                }) += 1;
            }
            (Verdict::Expiring, _) => self.expiring += 1,
            (Verdict::Earlier, _) => self.earlier += 1,
            (Verdict::Frozen, _) => {
                self.expiring += 1;
                self.frozen.push(Suspect::of(key));
            }
            (Verdict::Nothing, _) => {}
        }

        let differs = matches!(verdict, Verdict::Different(_) | Verdict::OlderSettings);
        if differs && self.suspects.len() < MAX_SUSPECTS {
            self.suspects.push(Suspect::of(key));
        } else if differs {
            self.further_suspects += 1;
        }
    }
}

struct Comparison<'a, S, C> {
    store: &'a S,
    zone: Zone,
    state: RollupState,
    due: BTreeMap<DeviceId, Extent>,
    clock: C,
}

impl<S: Table, C: Clock> Comparison<'_, S, C> {
    /// Compares some buckets again after a while. Returns the differences, and the number of buckets with older
    /// settings.
    async fn again(
        &mut self,
        keys: Vec<RollupKey>,
        wait: Duration,
    ) -> anyhow::Result<(Vec<Difference>, u64)> {
        let (mut different, mut older_settings) = (Vec::new(), 0);
        if keys.is_empty() {
            return Ok((different, older_settings));
        }
        let (rollups, seconds) = (counted(keys.len() as u64, "rollup"), wait.as_secs());
        print(format_args!(
            "{rollups} may be behind a change; looking again in {seconds} s (--again-after)"
        ));
        tokio::time::sleep(wait).await;
        (self.state, self.zone) = walk::state(self.store).await?;
        let listing =
            patiently(async |invocation| self.store.all_devices(invocation).await).await?;
        self.due = due_changes(self.store, &listing.found).await?;
        let devices: BTreeMap<DeviceId, Device> =
            listing.found.into_iter().map(|device| (device.id().clone(), device)).collect();
        for key in keys {
            let Some(device) = devices.get(&key.device) else { continue };
            match self.bucket(device, key.bucket).await? {
                Verdict::Different(found) => different.extend(found),
                Verdict::OlderSettings => older_settings += 1,
                _ => {}
            }
        }
        Ok((different, older_settings))
    }

    /// Reports a watermark that is still ahead of the clock. The rollup function may have set it back meanwhile.
    async fn say_watermark_ahead(&mut self) -> anyhow::Result<bool> {
        (self.state, _) = walk::state(self.store).await?;
        let Some(sealed) = watermark_ahead(&self.state, self.clock.now()) else { return Ok(false) };
        print(format_args!(
            "the rollups are marked as complete up to {sealed}, which is ahead of the clock: what was stored \
             since may have none; the rollup function sets that back when it runs"
        ));
        Ok(true)
    }

    /// Compares the quarters of a day, and the day.
    async fn day(&self, device: &Device, day: Day) -> anyhow::Result<Visited> {
        let mut verdicts = Vec::new();
        let mut named = NamedRooms::new();
        if let Some(range) = day.quarters {
            let buckets =
                patiently(async |invocation| self.quarters(device, range, invocation).await);
            for (quarter, (stored, readings)) in buckets.await? {
                named.extend(stored.iter().flat_map(named_by_rollup));
                let verdict = self.compare_quarter(device, quarter, stored.as_ref(), &readings);
                verdicts.push((RollupKey::quarter(device.id().clone(), quarter), verdict));
            }
        }
        if day.folded.is_some() {
            let bucket = Bucket::Day(day.date);
            let verdict = self.bucket(device, bucket).await?;
            verdicts.push((RollupKey { device: device.id().clone(), bucket }, verdict));
        }
        verdicts.retain(|(_, verdict)| *verdict != Verdict::Nothing);
        Ok(Visited { verdicts, named, unnoted: Vec::new() })
    }

    /// The rooms that rollups name and for which presence is not noted. Empty while old rollups are not noted yet.
    async fn unnoted(&self, device: &DeviceId, named: &NamedRooms) -> anyhow::Result<Vec<Unnoted>> {
        let mut unnoted = Vec::new();
        for (room, months) in months_of(named) {
            if !self.is_noted(device, room, &months).await? {
                let (first, last) = (months.start().to_string(), months.end().to_string());
                let (device, room) = (device.to_string(), room.to_string());
                unnoted.push(Unnoted { device, room, first, last });
            }
        }
        Ok(unnoted)
    }

    async fn is_noted(
        &self,
        device: &DeviceId,
        room: &RoomId,
        months: &RangeInclusive<Month>,
    ) -> anyhow::Result<bool> {
        let seen = patiently(async |invocation| self.store.seen(room, device, invocation).await);
        Ok(seen.await?.is_some_and(|seen| seen.covers(months)))
    }

    /// The rooms that are still not noted, for devices that still exist.
    async fn still_unnoted(&self, found: &[Unnoted]) -> anyhow::Result<Vec<Unnoted>> {
        let mut still = Vec::new();
        for unnoted in found {
            // Another program may have changed the file.
            let Unnoted { device, room, first, last } = unnoted;
            let (Ok(device), Ok(room), Ok(first), Ok(last)) =
                (device.parse(), room.parse(), first.parse(), last.parse())
            else {
                continue;
            };
            let ids = [device];
            let listing =
                patiently(async |invocation| self.store.find_devices(&ids, invocation).await);
            let is_there = !listing.await?.found.is_empty();
            if is_there && !self.is_noted(&ids[0], &room, &(first..=last)).await? {
                still.push(unnoted.clone());
            }
        }
        Ok(still)
    }

    /// Compares one bucket.
    async fn bucket(&self, device: &Device, bucket: Bucket) -> anyhow::Result<Verdict> {
        match bucket {
            Bucket::QuarterHour(quarter) => {
                let found = patiently(async |invocation| {
                    self.quarters(device, quarter.range(), invocation).await
                });
                let (stored, readings) = found.await?.remove(&quarter).unwrap_or_default();
                Ok(self.compare_quarter(device, quarter, stored.as_ref(), &readings))
            }
            Bucket::Day(date) => {
                // The time zone may have changed since the first comparison.
                let Some(range) = self.zone.day(date) else { return Ok(Verdict::Nothing) };
                patiently(async |invocation| {
                    self.compare_day(device, bucket, range, invocation).await
                })
                .await
            }
        }
    }

    /// The rollups and the readings of a range, by quarter of an hour.
    async fn quarters(
        &self,
        device: &Device,
        range: TimeRange,
        invocation: &Invocation,
    ) -> StoreResult<BTreeMap<QuarterHour, (Option<StoredRollup>, Vec<StoredReading>)>> {
        let mut buckets: BTreeMap<QuarterHour, (Option<StoredRollup>, Vec<StoredReading>)> =
            BTreeMap::new();
        for rollup in self.store.quarters(device.id(), range, true, invocation).await? {
            let quarter = QuarterHour::of(rollup.range.from());
            buckets.entry(quarter).or_default().0 = Some(rollup);
        }
        for reading in self.store.stored_readings(device.id(), range, invocation).await? {
            buckets.entry(QuarterHour::of(reading.reading.at)).or_default().1.push(reading);
        }
        Ok(buckets)
    }

    fn compare_quarter(
        &self,
        device: &Device,
        quarter: QuarterHour,
        stored: Option<&StoredRollup>,
        readings: &[StoredReading],
    ) -> Verdict {
        let now = self.clock.now();
        let is_expiring = readings.iter().any(|reading| is_closing(reading.expires, now));
        let readings = readings.iter().map(|it| &it.reading);
        let computed = Rollup::fold(readings, &FoldRules::of(device));
        self.verdict(
            device,
            Bucket::QuarterHour(quarter),
            quarter.range(),
            stored,
            is_expiring,
            &computed,
        )
    }

    async fn compare_day(
        &self,
        device: &Device,
        bucket: Bucket,
        range: TimeRange,
        invocation: &Invocation,
    ) -> StoreResult<Verdict> {
        let now = self.clock.now();
        let key = RollupKey { device: device.id().clone(), bucket };
        let stored = self.store.rollup(&key, invocation).await?;
        // Readers ignore a day in another zone. They also ignore a part of a day that is not completely sealed.
        let sealed = self.state.sealed_of(device.id());
        let is_of_zone = |it: &StoredRollup| {
            let is_part = it.range.from() == range.from() && it.range.to() <= sealed;
            it.zone.as_deref() == Some(self.zone.name()) && (it.range == range || is_part)
        };
        let stored = stored.filter(is_of_zone);
        let range = match &stored {
            // Readers use the stored part of the day, and quarters for the rest.
            Some(part) if sealed < range.to() => part.range,
            _ => range,
        };
        let mut quarters = self.store.quarters(device.id(), range, true, invocation).await?;
        let rules = FoldRules::of(device);
        let mut computed = Rollup::default();
        let is_expiring = if quarters.is_empty() {
            // Without quarters, the day is the fold of its readings, which may be kept longer.
            let readings = self.store.stored_readings(device.id(), range, invocation).await?;
            computed = Rollup::fold(readings.iter().map(|it| &it.reading), &rules);
            readings.iter().any(|it| is_closing(it.expires, now))
        } else {
            // An empty rollup expires soon, which must not delay the comparison.
            quarters.retain(|it| !it.rollup.is_empty());
            quarters.iter().for_each(|it| computed.append(&it.rollup, &rules));
            quarters.iter().any(|it| is_closing(it.expires, now))
        };
        Ok(self.verdict(device, bucket, range, stored.as_ref(), is_expiring, &computed))
    }

    fn verdict(
        &self,
        device: &Device,
        bucket: Bucket,
        range: TimeRange,
        stored: Option<&StoredRollup>,
        is_expiring: bool,
        computed: &Rollup,
    ) -> Verdict {
        let now = self.clock.now();
        match stored {
            Some(it) if it.is_frozen => return Verdict::Frozen,
            Some(it) if is_closing(it.raw_until, now) || it.is_expired(now) => {
                return Verdict::Expiring;
            }
            _ if is_expiring => return Verdict::Expiring,
            None if computed.is_empty() => return Verdict::Nothing,
            // The sweep has not reached this device's group yet.
            None if self.state.sealed_of(device.id()) < range.to() => return Verdict::Nothing,
            None if range.from() < self.state.since => return Verdict::Earlier,
            _ => {}
        }
        let rollup = stored.map(|it| &it.rollup);
        let found = differences(device.id(), bucket, rollup, computed);
        if found.is_empty() {
            Verdict::Equal
        } else if stored.is_some_and(|it| self.is_due(device, range, it.settings)) {
            Verdict::OlderSettings
        } else {
            Verdict::Different(found)
        }
    }

    /// Returns whether a rollup with these settings will be folded again because of newer ones. The function folds
    /// whole days, up to the last day that the newer settings concern.
    fn is_due(&self, device: &Device, range: TimeRange, settings: u64) -> bool {
        let Some(Extent { first, last }) = self.due.get(device.id()).copied() else { return false };
        let end = self.zone.day(self.zone.date(last)).map_or(last, TimeRange::to);
        settings < device.fold_settings().number && first < range.to() && range.from() < end
    }
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
    use domain::{DeviceId, LocalDate};

    use super::*;

    #[test]
    fn rollups_beyond_those_that_are_compared_again_count_as_different() {
        let device: DeviceId = "a".parse().expect("an id");
        let day: LocalDate = "2026-01-11".parse().expect("a date");
        let key = RollupKey { device, bucket: Bucket::Day(day) };
        let mut found = Found::default();
        for _ in 0..MAX_SUSPECTS + 3 {
            found.add(&key, &Verdict::OlderSettings);
        }
        assert_eq!((found.suspects.len(), found.further_suspects), (MAX_SUSPECTS, 3));
    }
}
