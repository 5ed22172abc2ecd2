//! The readings of a device as a judgement sees them. Judges nothing.

use alerts::{MAX_AHEAD, Observation, Start};
use chrono::TimeDelta;
use domain::{DeviceId, MetricName, MetricRule, Order, Reading, TimeRange, Timestamp};
use series::Failure;
use table::{Invocation, QueryReadings, RangeQuery, ReadingKey};

/// The most readings of one judgement: a day with more than one a second.
const MAX_READINGS: usize = 100_000;
/// The readings of a page.
const PAGE: usize = 2_000;

/// The readings that a fold needs, in order of time: those behind its start, some of those ahead of the clock, and the
/// newest one before, if its value may still hold. All that was acknowledged before is seen.
pub(crate) async fn observations(
    store: &impl QueryReadings,
    device: &DeviceId,
    metric: Option<&MetricName>,
    start: &Start,
    now: Timestamp,
    invocation: &Invocation,
) -> Result<Vec<Observation>, Failure> {
    let behind = start.from().saturating_add(TimeDelta::milliseconds(1));
    let mut found = Vec::new();
    if start.is_fresh()
        && let Ok(range) = TimeRange::new(Timestamp::MIN, behind)
    {
        let query =
            RangeQuery { range, order: Order::Descending, after: None, limit: 1, consistent: true };
        let page = store.device_readings(device, &query, invocation).await?;
        found.extend(page.readings.iter().map(|reading| observation(reading, metric)));
    }
    let Ok(range) = TimeRange::new(behind, Timestamp::MAX) else { return Ok(found) };
    let (order, limit, consistent) = (Order::Ascending, PAGE, true);
    let mut query = RangeQuery { range, order, after: None, limit, consistent };
    let horizon = now.saturating_add(MAX_AHEAD);
    loop {
        let page = store.device_readings(device, &query, invocation).await?;
        found.extend(page.readings.iter().map(|reading| observation(reading, metric)));
        let Some(last) = page.readings.last().filter(|it| page.has_more && it.at <= horizon) else {
            return Ok(found);
        };
        if found.len() > MAX_READINGS {
            return Err(Failure::OutOfReach(format!(
                "A judgement reads at most {MAX_READINGS} readings; {device} has more since {}.",
                start.from()
            )));
        }
        query.after = Some(ReadingKey::of(last));
    }
}

/// What a reading says to a rule on a metric; to one without, that the device lives.
pub(crate) fn observation(reading: &Reading, metric: Option<&MetricName>) -> Observation {
    let value = metric.and_then(|name| reading.metrics().get(name)).cloned();
    Observation { at: reading.at, value }
}

/// Takes away the values that take no part in a counter, such as the 0 of a device that boots: they show that it lives.
pub(crate) fn without_zeros(
    mut readings: Vec<Observation>,
    rule: Option<&MetricRule>,
) -> Vec<Observation> {
    if let Some(MetricRule::Counter(counter)) = rule {
        for it in &mut readings {
            it.value = it.value.take().filter(|value| counter.counts(value));
        }
    }
    readings
}
