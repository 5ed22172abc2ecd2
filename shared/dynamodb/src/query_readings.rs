//! `Query`: readings of a device or a room in a range, through 1 MB pages. Writes nothing.

use std::cmp::Ordering;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::attribute::{SdkItem, from_sdk, to_sdk};
use crate::error::store_error;
use crate::{DynamoStore, note_read};
use domain::{DeviceId, Order, Reading, RoomId, Timestamp};
use table::keys::{self, Key, PK, ROOM, ROOM_INDEX, SK};
use table::item::{self, Decode as _};
use table::{Invocation, Page, QueryReadings, RangeQuery, ReadingKey, StoreResult};

/// Whose readings.
enum Partition<'a> {
    Device(&'a DeviceId),
    Room(&'a RoomId),
}

/// How large the readings of a page grow, about; an answer of Lambda holds no more.
const MAX_PAGE_BYTES: usize = 6 << 20;

impl QueryReadings for DynamoStore {
    async fn device_readings(
        &self,
        device: &DeviceId,
        query: &RangeQuery,
        invocation: &Invocation,
    ) -> StoreResult<Page> {
        self.collect(&Partition::Device(device), query, |_| true, invocation).await
    }

    async fn room_readings(
        &self,
        room: &RoomId,
        devices: &[DeviceId],
        query: &RangeQuery,
        invocation: &Invocation,
    ) -> StoreResult<Page> {
        if self.room_index {
            return self.collect(&Partition::Room(room), query, |_| true, invocation).await;
        }
        self.merge(room, devices, query, invocation).await
    }
}

impl DynamoStore {
    /// Follows `DynamoDB`'s pages until `limit` readings that `keep` wants are found, or as many as an
    /// answer can hold, and asks for one more, which tells whether there is another page.
    async fn collect(
        &self,
        partition: &Partition<'_>,
        query: &RangeQuery,
        keep: impl Fn(&Reading) -> bool,
        invocation: &Invocation,
    ) -> StoreResult<Page> {
        let (index, name, value) = match partition {
            Partition::Device(device) => (None, PK, device.to_string()),
            Partition::Room(room) => (Some(ROOM_INDEX.to_owned()), ROOM, room.to_string()),
        };
        let (first, last) = keys::reading_range(query.range);
        let mut start = query.after.as_ref().map(|after| start_key(partition, after));
        let mut readings = Vec::new();
        let mut passed_over = 0;
        loop {
            // Where most is skipped, each request asks for as much again as all before it.
            let wanted = (query.limit + 1 - readings.len()).max(passed_over);
            let answer = self
                .client
                .query()
                .table_name(&self.table)
                .set_index_name(index.clone())
                .key_condition_expression("#p = :p AND #s BETWEEN :a AND :b")
                .expression_attribute_names("#p", name)
                .expression_attribute_names("#s", SK)
                .expression_attribute_values(":p", AttributeValue::S(value.clone()))
                .expression_attribute_values(":a", AttributeValue::S(first.clone()))
                .expression_attribute_values(":b", AttributeValue::S(last.clone()))
                .scan_index_forward(query.order == Order::Ascending)
                .consistent_read(query.consistent && index.is_none())
                .limit(i32::try_from(wanted).unwrap_or(i32::MAX))
                .set_exclusive_start_key(start.take())
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send();
            let answer = invocation.within(answer).await?.map_err(store_error)?;
            note_read(invocation, answer.consumed_capacity());
            // What other writers left among the readings and is none cannot be shown as one.
            let found = answer.items.unwrap_or_default();
            passed_over += found.len() + readings.len();
            let found = found.into_iter().filter_map(|i| Reading::decode(from_sdk(i)).ok());
            readings.extend(found.filter(&keep));
            passed_over -= readings.len();
            start = answer.last_evaluated_key;
            let bytes: usize = readings.iter().map(bytes).sum();
            if start.is_none() || readings.len() > query.limit || bytes > MAX_PAGE_BYTES {
                break;
            }
        }
        let has_more = readings.len() > query.limit || start.is_some();
        readings.truncate(query.limit);
        Ok(Page { readings, has_more })
    }

    /// A room's range without the index: its devices, merged.
    ///
    /// Each round asks the devices that may still hold a reading of the page, several at once, for
    /// about their share of it, and for twice as many the next time. In memory are the readings of the
    /// page and what one round brings.
    async fn merge(
        &self,
        room: &RoomId,
        devices: &[DeviceId],
        query: &RangeQuery,
        invocation: &Invocation,
    ) -> StoreResult<Page> {
        let in_room = |reading: &Reading| reading.room.as_ref() == Some(room);
        let share = (query.limit + 1) * 5 / 4 / devices.len().max(1) + 2;
        let share = share.min(query.limit + 1);
        let mut lanes: Vec<Lane<'_>> =
            devices.iter().map(|device| Lane::begin(device, query, share)).collect();
        let mut merged: Vec<Reading> = Vec::new();
        loop {
            // Behind this one no reading belongs to the page; it only tells that there is another page.
            let last = merged.get(query.limit);
            let waiting = lanes.iter_mut().filter(|lane| lane.may_precede(last, query.order));
            let asked: Vec<_> = waiting
                .map(|lane| async {
                    let partition = Partition::Device(lane.device);
                    let page = self.collect(&partition, &lane.query, in_room, invocation).await?;
                    Ok(lane.take(page))
                })
                .collect();
            if asked.is_empty() {
                break;
            }
            let found: Vec<Vec<Reading>> =
                stream::iter(asked).buffer_unordered(MERGE_CONCURRENCY).try_collect().await?;
            merged.extend(found.into_iter().flatten());
            merged.sort_by(|a, b| in_order(query.order, a, b));
            merged.truncate(query.limit + 1);
        }
        let has_more = merged.len() > query.limit;
        merged.truncate(query.limit);
        Ok(Page { readings: merged, has_more })
    }
}

/// How many devices of a room are asked at once.
const MERGE_CONCURRENCY: usize = 8;

/// One device's readings on their way into a room's page.
struct Lane<'a> {
    device: &'a DeviceId,
    /// The next page to ask for: it begins behind the last reading that was found.
    query: RangeQuery,
    is_done: bool,
}

impl<'a> Lane<'a> {
    fn begin(device: &'a DeviceId, query: &RangeQuery, share: usize) -> Self {
        let after = query.after.as_ref().and_then(|after| after_in_lane(query, after, device));
        let query = RangeQuery { after, limit: share, ..query.clone() };
        Self { device, query, is_done: false }
    }

    /// Whether a reading that is yet to be found may come before `last`.
    fn may_precede(&self, last: Option<&Reading>, order: Order) -> bool {
        let found = self.query.after.as_ref();
        let is_before = |last: &Reading| {
            found.is_none_or(|found| match order {
                Order::Ascending => (found.at, &found.device) < (last.at, &last.device),
                Order::Descending => (found.at, &found.device) > (last.at, &last.device),
            })
        };
        !self.is_done && last.is_none_or(is_before)
    }

    fn take(&mut self, page: Page) -> Vec<Reading> {
        self.is_done = !page.has_more;
        self.query.after = page.readings.last().map(ReadingKey::of).or(self.query.after.take());
        self.query.limit *= 2;
        page.readings
    }
}

fn in_order(order: Order, a: &Reading, b: &Reading) -> Ordering {
    let ascending = (a.at, &a.device).cmp(&(b.at, &b.device));
    if order == Order::Ascending { ascending } else { ascending.reverse() }
}

/// The position behind which a device's part of a room's page begins: readings of one timestamp follow
/// each other by device, so those of the page before at that timestamp end with `after`'s.
fn after_in_lane(query: &RangeQuery, after: &ReadingKey, device: &DeviceId) -> Option<ReadingKey> {
    let (is_passed, step) = match query.order {
        Order::Ascending => (*device <= after.device, -1),
        Order::Descending => (*device >= after.device, 1),
    };
    let millis = after.at.as_millis() + if is_passed { 0 } else { step };
    // A page cannot begin behind a place outside of its range; then it begins with the range.
    let at = Timestamp::from_millis(millis).ok().filter(|at| query.range.contains(*at))?;
    Some(ReadingKey { at, device: device.clone() })
}

/// The key behind which a page begins: made from the place of a reading, so that no cursor can reach
/// another partition than the one asked for.
fn start_key(partition: &Partition<'_>, after: &ReadingKey) -> SdkItem {
    let device = match partition {
        Partition::Device(device) => (*device).clone(),
        Partition::Room(_) => after.device.clone(),
    };
    let mut start = to_sdk(item::key(&Key::Reading(device, after.at)));
    if let Partition::Room(room) = partition {
        start.insert(ROOM.to_owned(), AttributeValue::S(room.to_string()));
    }
    start
}

/// How many bytes a reading takes in an answer, at the least.
fn bytes(reading: &Reading) -> usize {
    let metrics = reading.metrics().iter();
    metrics.map(|(name, value)| name.as_str().len() + value.as_str().len()).sum()
}
