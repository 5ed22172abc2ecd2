//! Visits the days of devices, and skips times without readings and rollups. Changes nothing itself.

use anyhow::{Context as _, ensure};
use chrono::TimeDelta;
use domain::{Bucket, Device, DeviceId, LocalDate, Order, QuarterHour, TimeRange, Timestamp, Zone};
use rollups::{Store, is_closing, newest_sealable_end, part_of_day};
use runtime::clock::{Clock as _, SystemClock};
use serde::Serialize;
use serde::de::DeserializeOwned;
use table::{
    FindRegistry, KeepRollupState, ListDevices, NearestReading, QueryReadings,
    ReadConditionsSchema, ReadRefold, ReadRollupState, RollupState, Session, SetConditionsReady,
    StoredRollup,
};

use super::scope::RollupScope;
use crate::kept_progress::ProgressFile;
use crate::patience::{all_devices, patiently};
use crate::progress;

/// The ports of the table that the commands use.
pub(super) trait Table:
    Store
    + QueryReadings
    + FindRegistry
    + ListDevices
    + ReadRefold
    + ReadRollupState
    + KeepRollupState
    + ReadConditionsSchema
    + SetConditionsReady
{
}

impl<S> Table for S where
    S: Store
        + QueryReadings
        + FindRegistry
        + ListDevices
        + ReadRefold
        + ReadRollupState
        + KeepRollupState
        + ReadConditionsSchema
        + SetConditionsReady
{
}

/// The number of days that are visited at once, so that their content fits into memory.
pub(super) const DAYS: usize = 8;
/// The time that is searched at once for rollups of 15 minutes without readings.
const SEARCHED: TimeDelta = TimeDelta::days(64);
/// A local day, or the part of it that is visited.
#[derive(Debug, Clone, Copy)]
pub(super) struct Day {
    pub(super) date: LocalDate,
    /// The timestamps of the whole day.
    pub(super) range: TimeRange,
    /// The visited quarters of an hour; `None` if no quarter begins in the visited part.
    pub(super) quarters: Option<TimeRange>,
    /// The part of the day that has a rollup; the whole day once it is over.
    pub(super) folded: Option<TimeRange>,
}

impl Day {
    /// Returns whether a bucket is visited.
    pub(super) fn has(&self, bucket: Bucket) -> bool {
        match bucket {
            Bucket::QuarterHour(quarter) => {
                self.quarters.is_some_and(|visited| visited.contains(quarter.start()))
            }
            Bucket::Day(date) => date == self.date && self.folded.is_some(),
        }
    }
}

/// A walk over all days of some devices, up to the newest complete quarter of an hour.
pub(super) struct Walk<'a, S> {
    pub(super) store: &'a S,
    /// The time zone of the days.
    pub(super) zone: Zone,
    /// The devices, in the order of their ids.
    pub(super) devices: Vec<Device>,
    /// The range of the walk, in whole quarters of an hour.
    range: TimeRange,
    /// The end of the newest complete quarter of an hour.
    newest: Timestamp,
}

impl<'a, S: Table> Walk<'a, S> {
    /// Reads the devices of a scope. `asked` is the requested range.
    pub(super) async fn over(
        store: &'a S,
        scope: &RollupScope,
        asked: TimeRange,
        zone: Zone,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let newest = newest_sealable_end(now);
        let end = QuarterHour::of(asked.last()).end().min(newest);
        let range = TimeRange::new(QuarterHour::of(asked.from()).start(), end)
            .context("the range has no 15 minutes that are over")?;
        let mut devices = all_devices(store).await?;
        for id in &scope.device {
            ensure!(devices.iter().any(|device| device.id() == id), "there is no device {id}");
        }
        if !scope.device.is_empty() {
            devices.retain(|device| scope.device.contains(device.id()));
        }
        Ok(Self { store, zone, devices, range, newest })
    }

    /// Visits every day of every device that has readings or rollups, and saves the progress.
    ///
    /// `visit` gets some successive days, and returns `None` if they are empty; `add` collects any other result.
    pub(super) async fn visit<T, V>(
        &self,
        progress: &mut ProgressFile<T>,
        visit: impl AsyncFn(&Device, &[Day]) -> anyhow::Result<Option<V>>,
        add: impl Fn(&mut T, V) -> String,
    ) -> anyhow::Result<()>
    where
        T: Default + Serialize + DeserializeOwned,
    {
        let bar = progress::share(0)?;
        let mut begins = Vec::with_capacity(self.devices.len());
        for device in &self.devices {
            let begin = self.begin(device).await?;
            bar.inc_length(days(begin, self.range.to()));
            begins.push(begin);
        }

        for (device, begin) in self.devices.iter().zip(begins) {
            let mut at = begin.max(progress.done_until(device.id()).unwrap_or(begin));
            bar.inc(days(begin, at.min(self.range.to())));
            while at < self.range.to() {
                let before = at;
                let batch = self.days(at);
                let visited = visit(device, &batch).await?;
                at = batch.last().map_or(self.range.to(), |day| day.range.to());
                match visited {
                    Some(found) => bar.set_message(add(progress.found(), found)),
                    None => at = self.next(device.id(), at).await?,
                }
                progress.save(device.id(), at)?;
                bar.inc(days(before, at.min(self.range.to())));
            }
        }

        bar.finish_and_clear();
        Ok(())
    }

    /// Returns the next days from a time on.
    fn days(&self, mut at: Timestamp) -> Vec<Day> {
        let mut days = Vec::with_capacity(DAYS);
        while days.len() < DAYS && at < self.range.to() {
            let day = self.day(self.zone.date(at)).expect("a timestamp lies in it");
            at = day.range.to();
            days.push(day);
        }
        days
    }

    /// Returns a local day, or the part of it that the walk visits. `None` for a date that the zone skips.
    pub(super) fn day(&self, date: LocalDate) -> Option<Day> {
        let range = self.zone.day(date)?;
        let from = QuarterHour::of(range.from()).start().max(self.range.from());
        let to = QuarterHour::of(range.to()).start().min(self.range.to());
        let quarters = TimeRange::new(from, to).ok();
        // A partly visited day has a rollup of that part only while the day is not over.
        let folded = part_of_day(range, self.range.to());
        let folded = folded.filter(|part| *part == range || range.to() > self.newest);
        Some(Day { date, range, quarters, folded })
    }

    /// The time of a device's first reading, even if it was deleted since, or of its first rollup.
    async fn begin(&self, device: &Device) -> anyhow::Result<Timestamp> {
        let dates = self.zone.date(self.range.from())..=self.zone.date(self.range.to());
        let day = patiently(async |invocation| {
            self.store.days(device.id(), dates.clone(), Order::Ascending, 1, invocation).await
        });
        let day = day.await?.first().map(|day| day.range.from());
        let reading = self.first_reading(device.id(), self.range).await?;
        let begin = day.into_iter().chain(reading).fold(device.first_seen(), Timestamp::min);

        // Quarters are older only after a part of a backup was restored.
        let mut older = Vec::new();
        if let Ok(range) = TimeRange::new(self.range.from(), begin.min(self.range.to())) {
            older = patiently(async |invocation| {
                self.store.quarters(device.id(), range, true, invocation).await
            })
            .await?;
        }
        let begin = older.first().map_or(begin, |quarter| quarter.range.from());
        Ok(QuarterHour::of(begin).start().clamp(self.range.from(), self.range.to()))
    }

    /// The next time from `at` on when a device has a reading or a rollup of 15 minutes.
    async fn next(&self, device: &DeviceId, at: Timestamp) -> anyhow::Result<Timestamp> {
        let found = self.first(device, at, |_| true).await?;
        Ok(found.unwrap_or(self.range.to()).max(at))
    }

    /// The first time from `at` on when a device has a reading or an unexpired rollup, from which days in another time
    /// zone can be folded.
    pub(super) async fn first_source(
        &self,
        device: &DeviceId,
        at: Timestamp,
        now: Timestamp,
    ) -> anyhow::Result<Option<Timestamp>> {
        let is_source =
            |stored: &StoredRollup| !stored.rollup.is_empty() && !is_closing(stored.expires, now);
        self.first(device, at, is_source).await
    }

    /// The start of the first quarter of an hour from `at` on with a reading, or with a rollup that `is_meant`.
    async fn first(
        &self,
        device: &DeviceId,
        mut at: Timestamp,
        is_meant: impl Fn(&StoredRollup) -> bool,
    ) -> anyhow::Result<Option<Timestamp>> {
        let Ok(rest) = TimeRange::new(at, self.range.to()) else { return Ok(None) };
        let reading = self.first_reading(device, rest).await?;
        let reading = reading.map(|at| QuarterHour::of(at).start());
        let end = reading.unwrap_or(rest.to());
        while let Ok(range) = TimeRange::new(at, at.saturating_add(SEARCHED).min(end)) {
            let quarters = patiently(async |invocation| {
                self.store.quarters(device, range, true, invocation).await
            });
            if let Some(rollup) = quarters.await?.iter().find(|quarter| is_meant(quarter)) {
                return Ok(Some(rollup.range.from()));
            }
            at = range.to();
        }

        Ok(reading)
    }

    async fn first_reading(
        &self,
        device: &DeviceId,
        range: TimeRange,
    ) -> anyhow::Result<Option<Timestamp>> {
        let order = Order::Ascending;
        let first = NearestReading { device, range, order, consistent: true };
        let first = patiently(async |invocation| {
            first.find(Session::new(self.store, invocation, SystemClock.now())).await
        });
        let first = first.await?;
        Ok(first.map(|reading| reading.at))
    }
}

/// Reads the state of the rollups, and the time zone of the days.
pub(super) async fn state(store: &impl Table) -> anyhow::Result<(RollupState, Zone)> {
    let state = patiently(async |invocation| store.rollup_state(invocation).await).await?;
    let state = state.context(
        "the table has no rollups yet; the rollup function begins within a minute of its first start",
    )?;
    let zone = state.zone.parse().context("the time zone of the table's days")?;
    Ok((state, zone))
}

fn days(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.since(from).num_days()).unwrap_or(0)
}
