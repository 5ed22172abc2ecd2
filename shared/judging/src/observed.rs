//! Reads the readings of a device for a judgement. Judges nothing.

use alerts::{MAX_AHEAD, Observation, ReadingsBefore, Rule, Start};
use chrono::TimeDelta;
use domain::{DeviceId, MetricName, MetricRule, Order, Reading, TimeRange, Timestamp};
use series::SeriesError;
use table::{NearestReading, RangeQuery, ReadingKey};

use crate::Result;
use crate::judging::JudgingSession;
use crate::ports::Store;

/// The largest number of readings of one judgement or preview: a day with more than one reading a second.
pub(crate) const MAX_READINGS: usize = 100_000;
/// The number of readings that are read at once.
const PAGE: usize = 2_000;
/// The number of readings that show whether an episode still has its begin.
const FIRST: usize = 200;
/// The sizes of the pages that are read until a reading is decisive ([`Rule::is_decisive`]); at most all four. Most
/// often the first reading is.
const PAGES_BACK: [usize; 4] = [1, 20, 200, PAGE];

/// The readings of one device that are read.
pub(crate) struct ObservationQuery<'a> {
    pub(crate) device: &'a DeviceId,
    pub(crate) metric: Option<&'a MetricName>,
    pub(crate) range: TimeRange,
    /// Reading stops at the first page that ends after this time.
    pub(crate) until: Timestamp,
    /// The number of readings that are read at once.
    pub(crate) page: usize,
    /// Whether the read is strongly consistent.
    pub(crate) consistent: bool,
}

impl<S: Store> JudgingSession<'_, S> {
    /// The readings that a fold needs, by time: all after its start, including some ahead of the clock, and before the
    /// start those of [`Start::before`]. The reads are strongly consistent.
    pub(crate) async fn observations(
        &self,
        device: &DeviceId,
        rule: &Rule,
        start: &Start,
    ) -> Result<Vec<Observation>> {
        let metric = rule.watch.metric();
        let after_start = start.from().saturating_add(TimeDelta::milliseconds(1));
        let mut found = match start.before() {
            ReadingsBefore::None => Vec::new(),
            ReadingsBefore::Newest => {
                let newest = self.newest_reading(device, after_start, true).await?;
                newest.iter().map(|reading| observation(reading, metric)).collect()
            }
            ReadingsBefore::Decisive => self.back_to_decisive(device, rule, after_start).await?,
        };

        let Ok(range) = TimeRange::new(after_start, Timestamp::MAX) else { return Ok(found) };
        let until = self.table.now.saturating_add(MAX_AHEAD);
        let query = ObservationQuery { device, metric, range, until, page: PAGE, consistent: true };
        let too_many = || {
            let from = start.from();
            format!(
                "A judgement reads at most {MAX_READINGS} readings; {device} has more since {from}."
            )
        };
        let mut left = MAX_READINGS;
        found.extend(self.read_observations(&query, &mut left, too_many).await?);
        Ok(found)
    }

    /// The first readings of a device from an instant on.
    pub(crate) async fn first_observations(
        &self,
        device: &DeviceId,
        rule: &Rule,
        from: Timestamp,
    ) -> Result<Vec<Observation>> {
        let Ok(range) = TimeRange::new(from, Timestamp::MAX) else { return Ok(Vec::new()) };
        let (order, limit) = (Order::Ascending, FIRST);
        let query = RangeQuery { range, order, after: None, limit, consistent: true };
        let page = self.table.device_readings(device, &query).await?;
        let metric = rule.watch.metric();
        Ok(page.items.iter().map(|reading| observation(reading, metric)).collect())
    }

    /// The readings before an instant, by time, from the newest decisive one on. Looks back a limited number of
    /// readings.
    async fn back_to_decisive(
        &self,
        device: &DeviceId,
        rule: &Rule,
        before: Timestamp,
    ) -> Result<Vec<Observation>> {
        let Ok(range) = TimeRange::new(Timestamp::MIN, before) else { return Ok(Vec::new()) };
        let (metric, order) = (rule.watch.metric(), Order::Descending);
        let mut query = RangeQuery { range, order, after: None, limit: 0, consistent: true };
        let mut found = Vec::new();

        for limit in PAGES_BACK {
            query.limit = limit;
            let page = self.table.device_readings(device, &query).await?;
            for reading in &page.items {
                let observation = observation(reading, metric);
                let is_decisive = rule.is_decisive(observation.value.as_ref());
                found.push(observation);
                if is_decisive {
                    found.reverse();
                    return Ok(found);
                }
            }

            query.after = page.items.last().filter(|_| page.has_more).map(ReadingKey::of);
            if query.after.is_none() {
                break;
            }
        }
        found.reverse();
        Ok(found)
    }

    /// The newest reading of a device before an instant.
    pub(crate) async fn newest_reading(
        &self,
        device: &DeviceId,
        before: Timestamp,
        consistent: bool,
    ) -> Result<Option<Reading>> {
        let Ok(range) = TimeRange::new(Timestamp::MIN, before) else { return Ok(None) };
        let newest = NearestReading { device, range, order: Order::Descending, consistent };
        Ok(newest.find(self.table).await?)
    }

    /// Reads readings by time. Fails with `too_many` if there are more than `left`.
    pub(crate) async fn read_observations(
        &self,
        query: &ObservationQuery<'_>,
        left: &mut usize,
        too_many: impl Fn() -> String,
    ) -> Result<Vec<Observation>> {
        let ObservationQuery { device, metric, range, until, page: limit, consistent } = *query;
        let order = Order::Ascending;
        let mut query = RangeQuery { range, order, after: None, limit, consistent };
        let mut found = Vec::new();

        loop {
            let page = self.table.device_readings(device, &query).await?;
            found.extend(page.items.iter().map(|reading| observation(reading, metric)));
            *left = left
                .checked_sub(page.items.len())
                .ok_or_else(|| SeriesError::OutOfReach(too_many()))?;
            let last = page.items.last().filter(|last| page.has_more && last.at <= until);
            let Some(last) = last else { return Ok(found) };
            query.after = Some(ReadingKey::of(last));
        }
    }
}

/// The value of a reading for a rule on a metric. Without a metric the reading only shows that the device is alive.
pub(crate) fn observation(reading: &Reading, metric: Option<&MetricName>) -> Observation {
    let value = metric.and_then(|name| reading.metrics().get(name)).cloned();
    Observation { at: reading.at, value }
}

/// Drops values that do not belong to a counter, such as the 0 of a device that boots. The reading itself stays,
/// because it shows that the device is alive.
pub(crate) fn without_zeros(
    mut readings: Vec<Observation>,
    rule: Option<&MetricRule>,
) -> Vec<Observation> {
    if let Some(MetricRule::Counter(counter)) = rule {
        for reading in &mut readings {
            reading.value = reading.value.take().filter(|value| counter.counts(value));
        }
    }
    readings
}
