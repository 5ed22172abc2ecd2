//! Finds the newest values of devices, by the readings' own time. Caches none.

use api::Problem;
use domain::{Bucket, Device, LocalDate, MetricName, Order, Reading, TimeRange, Timestamp};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use runtime::http::Call;
use table::sizes::{of_largest_reading, of_reading};
use table::{Invocation, Page, RangeQuery, ReadingKey, StoreResult};

use crate::answer::latest_values::LatestValues;
use crate::ports::Store;

/// The number of a device's newest readings that the first query reads.
const NEWEST: usize = 10;

/// The number of readings that the second query reads, if a metric is missing from the first.
const FURTHER: usize = 100;

/// The size of the first query's readings, but always one reading: two read units.
const MAX_FIRST: usize = 16 << 10;

/// The size of the readings of both queries together, in bytes.
const MAX_BOTH: usize = 2 * MAX_FIRST;

/// The number of devices that are queried at once.
const LATEST_CONCURRENCY: usize = 8;

/// The newest values of several devices, in their order; none where a device has no readings.
pub(crate) async fn latest_of(
    store: &impl Store,
    devices: &[&Device],
    call: &mut Call<'_>,
) -> Result<Vec<Option<LatestValues>>, Problem> {
    let asked = devices.iter().map(|device| (*device, all_metrics(device))).collect();
    let latest = newest_of(store, asked, call.invocation).await;
    latest.map_err(|error| call.failed(&error))
}

/// The newest values of some metrics of each device, in their order; none where a device has no readings.
pub(crate) async fn newest_of(
    store: &impl Store,
    devices: Vec<(&Device, Vec<&MetricName>)>,
    invocation: &Invocation,
) -> StoreResult<Vec<Option<LatestValues>>> {
    let asked: Vec<_> =
        devices.iter().map(|(device, wanted)| newest(store, device, wanted, invocation)).collect();
    stream::iter(asked).buffered(LATEST_CONCURRENCY).try_collect().await
}

pub(super) fn all_metrics(device: &Device) -> Vec<&MetricName> {
    device.metrics().keys().collect()
}

/// The newest value of each metric among the newest readings; of a metric that is wanted and they lack,
/// further back, and then from the rollup of the newest day that has it. What is older than
/// those is not found, whatever the registry holds: the cost of a device is a few read units.
pub(super) async fn newest(
    store: &impl Store,
    device: &Device,
    wanted: &[&MetricName],
    invocation: &Invocation,
) -> StoreResult<Option<LatestValues>> {
    let range = TimeRange::new(Timestamp::MIN, Timestamp::MAX).expect("1970 is before 9999");
    let look = async |after: Option<&Reading>, limit: usize| {
        let after = after.map(ReadingKey::of);
        let order = Order::Descending;
        let query = RangeQuery { range, order, after, limit, consistent: false };
        store.device_readings(device.id(), &query, invocation).await
    };
    let likely = of_largest_reading(device);
    // Without a metric it is only asked when the device sent the last reading.
    let first = if wanted.is_empty() { 1 } else { within(MAX_FIRST, likely, NEWEST) };
    let Page { mut readings, has_more } = look(None, first).await?;
    let latest = LatestValues::among(&readings);
    let is_complete = latest.as_ref().is_none_or(|latest| latest.has_all(wanted));
    if is_complete || !has_more {
        return Ok(latest);
    }
    let taken: usize = readings.iter().map(of_reading).sum();
    // The newest may be small and those before them large, or the other way round.
    let each = likely.max(taken / readings.len());
    let limit = within(MAX_BOTH.saturating_sub(taken), each, FURTHER);
    let further = look(readings.last(), limit).await?;
    readings.extend(further.readings);
    let Some(mut latest) = LatestValues::among(&readings) else { return Ok(None) };
    if further.has_more {
        add_days(store, device, wanted, &mut latest, invocation).await?;
    }
    Ok(Some(latest))
}

/// The numbers of days whose rollups are read for metrics that no reading has had, one after the other.
const DAYS: [usize; 2] = [31, 335];

/// Adds the metrics that are still missing from the newest days that have them.
async fn add_days(
    store: &impl Store,
    device: &Device,
    wanted: &[&MetricName],
    latest: &mut LatestValues,
    invocation: &Invocation,
) -> StoreResult<()> {
    let date = |text: &str| text.parse::<LocalDate>().expect("a date");
    let (first, mut last) = (date("0000-01-01"), date("9999-12-31"));
    for limit in DAYS {
        if latest.has_all(wanted) {
            break;
        }
        let dates = (first, last);
        // One more than before, because the day at which the search goes on is read again.
        let days = store.days(device.id(), dates, Order::Descending, limit + 1, invocation).await?;
        for day in &days {
            latest.add(day.range.from(), &day.rollup);
        }
        match days.last().map(|day| day.key.bucket) {
            Some(Bucket::Day(date)) if days.len() > limit => last = date,
            _ => break,
        }
    }
    Ok(())
}

/// The number of readings of `each` bytes that fit into `bytes`, at least one.
fn within(bytes: usize, each: usize, most: usize) -> usize {
    (bytes / each).clamp(1, most)
}
