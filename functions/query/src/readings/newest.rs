//! Finds the newest values of devices, by the timestamps of readings. Caches nothing.

use chrono::TimeDelta;
use domain::{Bucket, Device, LocalDate, MetricName, Order, Reading, TimeRange, Timestamp};
use series::RollupStateCache;
use table::sizes::{of_largest_reading, of_reading};
use table::{Page, RangeQuery, ReadingKey, Session, StoreResult, StoredRollup, at_once};

use crate::answer::latest_values::LatestValues;
use crate::ports::Store;
use crate::shared_state::Call;

/// The first query for a device's newest values reads at most this many readings.
const NEWEST: usize = 10;

/// If a metric is missing, a second query reads at most this many readings.
const FURTHER: usize = 100;

/// The maximum size of the first query's readings, in bytes: two read units. At least one reading is read.
const MAX_FIRST: usize = 16 << 10;

/// The maximum size of the readings of the first and the second query together, in bytes.
const MAX_BOTH: usize = 2 * MAX_FIRST;

/// A third query reads at most this many readings of the time that has no rollups yet.
const UNROLLED: usize = 1_000;

/// The maximum size of the third query's readings, in bytes: four read units.
const MAX_UNROLLED: usize = 32 << 10;

/// The number of daily rollups that are read for missing metrics: first of a month, then of a year in total.
const MONTH: usize = 31;
const YEAR: usize = 366;

/// The number of devices that are queried at once.
const LATEST_CONCURRENCY: usize = 8;

/// A reader of devices' newest values.
#[derive(Debug)]
pub(crate) struct NewestReader<'a, S> {
    pub(crate) session: Session<'a, S>,
    pub(crate) rollup_state: &'a RollupStateCache,
}

impl<'a, S: Store> NewestReader<'a, S> {
    /// The reader for a call.
    pub(crate) fn of(call: &Call<'a, S>) -> Self {
        Self { session: call.session, rollup_state: &call.shared.rollup_state }
    }

    /// The newest values of several devices, in their order; `None` for a device without readings.
    pub(crate) async fn latest_of(
        &self,
        devices: &[&Device],
    ) -> StoreResult<Vec<Option<LatestValues>>> {
        self.newest_of(devices.iter().map(|device| (*device, all_metrics(device))).collect()).await
    }

    /// The newest values of some metrics of each device, in their order; `None` for a device without readings.
    pub(crate) async fn newest_of(
        &self,
        devices: Vec<(&Device, Vec<&MetricName>)>,
    ) -> StoreResult<Vec<Option<LatestValues>>> {
        let questions = devices.iter().map(|(device, wanted)| self.newest(device, wanted));
        at_once(LATEST_CONCURRENCY, questions).await
    }

    /// The newest value of each metric among the newest readings. If a wanted metric is missing, older readings are
    /// searched, and then rollups. Only a limited number of readings and rollups is read, so that a device costs only a
    /// few read units.
    pub(super) async fn newest(
        &self,
        device: &Device,
        wanted: &[&MetricName],
    ) -> StoreResult<Option<LatestValues>> {
        let session = self.session;
        let time = time_of_newest(device, session.now);
        let likely = of_largest_reading(device);

        // Without wanted metrics, only the time of the last reading matters.
        let first = if wanted.is_empty() { 1 } else { within(MAX_FIRST, likely, NEWEST) };
        let query = newest_first(time, None, first);
        let page = session.device_readings(device.id(), &query).await?;
        let Page { items: mut readings, has_more } = page;
        let latest = LatestValues::among(&readings);
        if !has_more || latest.as_ref().is_none_or(|latest| latest.has_all(wanted)) {
            return Ok(latest);
        }

        let taken: usize = readings.iter().map(of_reading).sum();
        // The size of older readings is unknown, so the larger of two estimates counts.
        let each = likely.max(taken / readings.len());
        let limit = within(MAX_BOTH.saturating_sub(taken), each, FURTHER);
        let query = newest_first(time, readings.last(), limit);
        let further = session.device_readings(device.id(), &query).await?;
        readings.extend(further.items);

        match LatestValues::among(&readings) {
            Some(latest) if further.has_more && !latest.has_all(wanted) => {
                let limit = within(MAX_UNROLLED, each, UNROLLED);
                self.newest_with_rollups(device, wanted, readings, limit).await
            }
            latest => Ok(latest),
        }
    }

    /// The newest values among known readings, rollups, and at most `limit` readings that are not rolled up yet.
    async fn newest_with_rollups(
        &self,
        device: &Device,
        wanted: &[&MetricName],
        mut readings: Vec<Reading>,
        limit: usize,
    ) -> StoreResult<Option<LatestValues>> {
        let session = self.session;
        let as_of = readings.last().map_or(Timestamp::MAX, |oldest| oldest.at);
        let horizon = self.rollup_state.horizon(session).await?;
        let rolled_up = horizon.rolled_up(device.id());
        let sealed = rolled_up.map_or(Timestamp::MIN, TimeRange::to);

        let mut days = days_until(session, device, None, MONTH).await?;
        let is_whole_month = days.len() == MONTH;
        // Deleting a reading of the present or future makes a rollup at once, while the time around it may have no
        // rollups yet. So only rollups before `sealed` count, where no rollup is missing.
        days.retain(|day| day.range.to() <= sealed);

        let day_end = days.first().map_or(Timestamp::MIN, |day| day.range.to());
        let quarters = match TimeRange::new(day_end, as_of.min(sealed)) {
            Ok(range) => session.quarters(device.id(), range, false).await?,
            Err(_) => Vec::new(),
        };

        let not_rolled_up = match TimeRange::new(sealed, as_of) {
            Ok(range) => {
                session.device_readings(device.id(), &newest_first(range, None, limit)).await?
            }
            Err(_) => Page::default(),
        };
        readings.extend(not_rolled_up.items);
        let Some(mut latest) = LatestValues::among(&readings) else { return Ok(None) };

        let is_seamless = |rollup: &StoredRollup| {
            !not_rolled_up.has_more
                && rolled_up.is_some_and(|range| range.from() <= rollup.range.from())
        };
        for rollup in quarters.iter().rev().chain(&days) {
            latest.add(rollup, is_seamless(rollup));
        }

        if is_whole_month
            && !latest.has_all(wanted)
            && let Some(Bucket::Day(date)) = days.last().map(|day| day.key.bucket)
        {
            // This query includes `date`, the last day of the first query, so it reads this day again.
            for day in days_until(session, device, Some(date), YEAR - MONTH + 1).await? {
                latest.add(&day, is_seamless(&day));
            }
        }
        Ok(Some(latest))
    }
}

/// The range in which the newest reading of a device is searched: all time. If a device sends only prices, the range
/// ends now, because prices are known days ahead.
fn time_of_newest(device: &Device, now: Timestamp) -> TimeRange {
    let end = if MetricName::are_prices(device.metrics().keys()) {
        now.saturating_add(TimeDelta::milliseconds(1))
    } else {
        Timestamp::MAX
    };
    TimeRange::new(Timestamp::MIN, end).expect("now is after 1970")
}

/// A query for readings of a range, newest first, after a given reading.
fn newest_first(range: TimeRange, after: Option<&Reading>, limit: usize) -> RangeQuery {
    let after = after.map(ReadingKey::of);
    RangeQuery { range, order: Order::Descending, after, limit, consistent: false }
}

pub(super) fn all_metrics(device: &Device) -> Vec<&MetricName> {
    device.metrics().keys().collect()
}

/// The newest daily rollups of a device up to a date, newest first.
async fn days_until(
    session: Session<'_, impl Store>,
    device: &Device,
    last: Option<LocalDate>,
    limit: usize,
) -> StoreResult<Vec<StoredRollup>> {
    let date = |text: &str| text.parse::<LocalDate>().expect("a date");
    let dates = date("0000-01-01")..=last.unwrap_or_else(|| date("9999-12-31"));
    session.days(device.id(), dates, Order::Descending, limit).await
}

/// The number of readings of `each` bytes that fit into `bytes`: at least one and at most `most`.
fn within(bytes: usize, each: usize, most: usize) -> usize {
    (bytes / each).clamp(1, most)
}
