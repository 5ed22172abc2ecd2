//! Newest values, by the readings' own time. Caches none.

use api::{Problem, ProblemKind, Response};
use domain::{
    Bucket, Device, LocalDate, MAX_METRICS, MetricName, Order, Reading, TimeRange, Timestamp,
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::registry::CachedRegistry;
use table::{
    Invocation, ListDevices, LookUpRegistry, Page, PageRegistry, QueryReadings, RangeQuery,
    ReadRegistry, ReadRollups, ReadingKey, StoreResult,
};

use crate::lists::metrics_of;
use crate::lookup::{self, Members};
use crate::page;
use crate::pagination::ListRequest;
use crate::rows::{LATEST_COLUMNS, LatestRow, LatestValues};
use crate::sheet::Columns;

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

/// `GET /devices/{id}/latest`
pub(crate) async fn of_device(
    registry: &CachedRegistry<impl Clock>,
    store: &(impl ReadRegistry + LookUpRegistry + QueryReadings + ReadRollups),
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let device = lookup::device(registry, store, call).await?;
    let latest = newest(store, &device, &all_metrics(&device), call.invocation).await;
    let latest = latest.map_err(|error| call.failed(&error))?;
    let values = latest.ok_or_else(|| {
        Problem::new(
            ProblemKind::NotFound,
            format!("The device {:?} has no readings.", device.id.as_str()),
        )
    })?;
    Ok(Response::json(200, &LatestRow { device_id: &device.id, values }))
}

/// `GET /rooms/{id}/latest`
pub(crate) async fn of_room(
    registry: &CachedRegistry<impl Clock>,
    store: &(
         impl ReadRegistry + ListDevices + PageRegistry + LookUpRegistry + QueryReadings + ReadRollups
     ),
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let list = ListRequest::of(call.request, &call.params)?;
    let members = Members::of_room(registry, store, &list, call).await?;
    page_of_latest(store, call, &list, members.devices()).await
}

/// `GET /homes/{id}/latest`
pub(crate) async fn of_home(
    registry: &CachedRegistry<impl Clock>,
    store: &(impl ReadRegistry + ListDevices + PageRegistry + QueryReadings + ReadRollups),
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let list = ListRequest::of(call.request, &call.params)?;
    let members = Members::of_home(registry, store, &list, call).await?;
    page_of_latest(store, call, &list, members.devices()).await
}

/// A page of devices' newest values; a device without readings has none. The table may have more devices.
async fn page_of_latest(
    store: &(impl QueryReadings + ReadRollups),
    call: &mut Call<'_>,
    list: &ListRequest,
    (all, has_more): (Vec<&Device>, bool),
) -> Result<Response, Problem> {
    let (devices, rest) = list.devices(all.clone(), has_more, true);
    let latest = latest_of(store, &devices, call).await?;
    let rows: Vec<LatestRow<'_>> = devices
        .iter()
        .zip(latest)
        .filter_map(|(device, values)| Some(LatestRow { device_id: &device.id, values: values? }))
        .collect();
    let known = || metrics_of(all.iter().copied());
    let columns = || Columns { own: &LATEST_COLUMNS, known: known() };
    let behind = |row: usize| list.cursor_behind(rows[row].device_id.as_str());
    let request = (call.request, &call.params);
    Ok(page::write(list.format, request, &rows, columns, rest, behind))
}

/// The newest values of several devices, in their order; none where a device has no readings.
pub(crate) async fn latest_of(
    store: &(impl QueryReadings + ReadRollups),
    devices: &[&Device],
    call: &mut Call<'_>,
) -> Result<Vec<Option<LatestValues>>, Problem> {
    let asked = devices.iter().map(|device| (*device, all_metrics(device))).collect();
    let latest = newest_of(store, asked, call.invocation).await;
    latest.map_err(|error| call.failed(&error))
}

/// The newest values of some metrics of each device, in their order; none where a device has no readings.
pub(crate) async fn newest_of(
    store: &(impl QueryReadings + ReadRollups),
    devices: Vec<(&Device, Vec<&MetricName>)>,
    invocation: &Invocation,
) -> StoreResult<Vec<Option<LatestValues>>> {
    let asked: Vec<_> =
        devices.iter().map(|(device, wanted)| newest(store, device, wanted, invocation)).collect();
    stream::iter(asked).buffered(LATEST_CONCURRENCY).try_collect().await
}

fn all_metrics(device: &Device) -> Vec<&MetricName> {
    device.metrics.keys().collect()
}

/// The newest value of each metric among the newest readings; of a metric that is wanted and they lack,
/// further back, and then from the rollup of the newest day that has it. What is older than
/// those is not found, whatever the registry holds: the cost of a device is a few read units.
async fn newest(
    store: &(impl QueryReadings + ReadRollups),
    device: &Device,
    wanted: &[&MetricName],
    invocation: &Invocation,
) -> StoreResult<Option<LatestValues>> {
    let range = TimeRange::new(Timestamp::MIN, Timestamp::MAX).expect("1970 is before 9999");
    let look = async |after: Option<&Reading>, limit: usize| {
        let after = after.map(ReadingKey::of);
        let order = Order::Descending;
        let query = RangeQuery { range, order, after, limit, consistent: false };
        store.device_readings(&device.id, &query, invocation).await
    };
    let likely = likely_bytes(device);
    // Without a metric it is only asked when the device sent the last reading.
    let first = if wanted.is_empty() { 1 } else { within(MAX_FIRST, likely, NEWEST) };
    let Page { mut readings, has_more } = look(None, first).await?;
    let latest = LatestValues::among(&readings);
    let is_complete = latest.as_ref().is_none_or(|latest| latest.has_all(wanted));
    if is_complete || !has_more {
        return Ok(latest);
    }
    let taken: usize = readings.iter().map(bytes).sum();
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
    store: &impl ReadRollups,
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
        let days = store.days(&device.id, dates, Order::Descending, limit + 1, invocation).await?;
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

/// The size of a reading's key, room and own attributes.
const OVERHEAD: usize = 200;

/// The approximate size of a reading.
pub(crate) fn bytes(reading: &Reading) -> usize {
    let metrics = reading.metrics().iter();
    OVERHEAD
        + metrics.map(|(name, value)| name.as_str().len() + value.as_str().len()).sum::<usize>()
}

/// The approximate size of a device's reading that has the longest metrics that are known.
fn likely_bytes(device: &Device) -> usize {
    const NUMBER: usize = 20;
    let mut metrics: Vec<usize> =
        device.metrics.keys().map(|name| name.as_str().len() + NUMBER).collect();
    metrics.sort_unstable_by(|a, b| b.cmp(a));
    OVERHEAD + metrics.into_iter().take(MAX_METRICS).sum::<usize>()
}
