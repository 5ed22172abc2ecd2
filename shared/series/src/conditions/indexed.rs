//! Finds matching quarters of an hour in the index, within an allowance of read units. Chooses no plan.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use domain::z_order::Region;
use domain::{ConditionsSchema, Interval, MetricName, TimeRange, Timestamp};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use table::{ConditionsQuery, IndexedQuarter, Page, QueryConditions, Session, StoreResult};

use super::matching::{Matching, is_of, months};
use super::search::EpisodeSearch;
use crate::gather::DeviceQuestion;

/// The number of entries of one page. If a page ends with an entry outside the box, the reader goes on at the next
/// address inside.
const PAGE: usize = 100;
/// The largest number of read units of a full page.
pub(crate) const PAGE_UNITS: f64 = 4.0;
/// The number of queries that run at once.
const CONCURRENCY: usize = 16;

/// Conditions as a box in the index, and the ranges of addresses that cover the box. The index has a dimension for each
/// metric.
pub(crate) struct Boxed<'a> {
    pub schema: &'a ConditionsSchema,
    pub conditions: BTreeMap<&'a MetricName, &'a Interval>,
    pub region: Region,
    /// The ranges of addresses in the index that cover the box.
    pub ranges: Vec<RangeInclusive<u64>>,
}

/// A question about a device, and the part of its range that is read from the index.
pub(crate) struct IndexedPart<'a> {
    pub question: &'a DeviceQuestion<'a>,
    pub range: TimeRange,
}

/// One range of addresses in a month of a device.
struct Task {
    /// The index of the device in the list of devices.
    device: usize,
    month: Timestamp,
    range: RangeInclusive<u64>,
    /// The last entry that was read in the range.
    after: Option<IndexedQuarter>,
}

/// Reads the index for all devices. Returns the matching quarters of each device, or `None` if the next query might
/// exceed the allowance of read units, or if the index is damaged.
pub(crate) async fn matching(
    session: Session<'_, impl QueryConditions>,
    devices: &[IndexedPart<'_>],
    boxed: &Boxed<'_>,
    allowance: f64,
) -> StoreResult<Option<Vec<Matching>>> {
    let mut waiting: VecDeque<Task> = tasks(devices, boxed).collect();
    let mut under_way = FuturesUnordered::new();
    let mut found: Vec<Matching> = devices.iter().map(|_| Matching::new()).collect();
    let before = session.invocation.read_units();

    loop {
        let left = allowance - (session.invocation.read_units() - before);
        let affordable = |count: usize| {
            let pages = f64::from(u32::try_from(count).expect("few"));
            pages * PAGE_UNITS <= left
        };
        while under_way.len() < CONCURRENCY
            && affordable(under_way.len() + 1)
            && let Some(task) = waiting.pop_front()
        {
            under_way.push(page(session, devices, boxed, task));
        }

        let Some(page) = under_way.next().await else { break };
        let (task, page) = page?;
        let device = &devices[task.device];
        let matching =
            page.items.iter().filter_map(|quarter| matching_entry(quarter, device, boxed));
        found[task.device].extend(matching);

        // A page without a readable entry has no address from which to go on.
        if page.has_more && page.items.is_empty() {
            return Ok(None);
        }
        waiting.extend(next(task, page, boxed));
    }

    Ok(waiting.is_empty().then_some(found))
}

/// The tasks: one for each device, month and range of addresses in the index.
fn tasks<'t>(
    devices: &'t [IndexedPart<'_>],
    boxed: &'t Boxed<'_>,
) -> impl Iterator<Item = Task> + 't {
    let months = devices.iter().enumerate().flat_map(|(device, indexed)| {
        months(indexed.range).into_iter().map(move |month| (device, month.from()))
    });
    months.flat_map(|(device, month)| {
        let ranges = boxed.ranges.iter();
        ranges.map(move |range| Task { device, month, range: range.clone(), after: None })
    })
}

async fn page(
    session: Session<'_, impl QueryConditions>,
    devices: &[IndexedPart<'_>],
    boxed: &Boxed<'_>,
    task: Task,
) -> StoreResult<(Task, Page<IndexedQuarter>)> {
    let query = ConditionsQuery {
        device: devices[task.device].question.device.id(),
        month: task.month,
        first: &boxed.schema.address(*task.range.start()),
        last: &boxed.schema.address(*task.range.end()),
        after: task.after.as_ref(),
        limit: PAGE,
    };
    let page = session.indexed_quarters(&query).await?;
    Ok((task, page))
}

/// The rest of a range to read; `None` at its end. If the last entry is outside the box, the rest begins at the next
/// address inside.
fn next(task: Task, page: Page<IndexedQuarter>, boxed: &Boxed<'_>) -> Option<Task> {
    if !page.has_more {
        return None;
    }
    let last = page.items.into_iter().next_back()?;
    let address = boxed.schema.parse_address(&last.entry.address)?;
    if boxed.region.contains(&boxed.schema.curve().point(address)) {
        return Some(Task { after: Some(last), ..task });
    }

    let next = boxed.schema.curve().next_inside(address, &boxed.region)?;
    let end = *task.range.end();
    (next <= end).then_some(Task { range: next..=end, after: None, ..task })
}

/// The quarter of an entry, if its values match. The values are compared, because several values share an address.
fn matching_entry(
    found: &IndexedQuarter,
    device: &IndexedPart<'_>,
    boxed: &Boxed<'_>,
) -> Option<(domain::QuarterHour, BTreeMap<MetricName, domain::MetricMeans>)> {
    let is_there = device.range.contains(found.quarter.start())
        && found.expires.is_none_or(|expires| expires > device.question.now);
    if !is_there || !is_of(device.question, &found.rooms) {
        return None;
    }

    let values = boxed.conditions.iter().map(|(name, interval)| {
        let means = found.values().get(boxed.schema.index_of(name)?)?;
        interval.contains(&means.mean).then(|| ((*name).clone(), means.clone()))
    });
    Some((found.quarter, values.collect::<Option<_>>()?))
}

impl<'a> Boxed<'a> {
    /// The box of the conditions, without address ranges; `Err` names a metric that is not in the schema.
    pub(crate) fn of(
        schema: &'a ConditionsSchema,
        search: &'a EpisodeSearch,
    ) -> Result<Self, &'a MetricName> {
        let conditions =
            search.conditions.iter().map(|condition| (&condition.metric, &condition.interval));
        let conditions: BTreeMap<_, _> = conditions.collect();
        match conditions.keys().find(|name| schema.index_of(name).is_none()) {
            Some(name) => Err(name),
            None => {
                let region = schema.region(&conditions);
                Ok(Self { schema, region, conditions, ranges: Vec::new() })
            }
        }
    }
}
