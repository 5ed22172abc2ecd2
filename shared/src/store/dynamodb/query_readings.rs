//! `Query`: readings of a device or a room in a range, through 1 MB pages. Writes nothing.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};

use super::attribute::{SdkItem, from_sdk, to_sdk};
use super::error::store_error;
use super::{DynamoStore, note_read};
use crate::domain::{DeviceId, Order, Reading, RoomId, TimeRange};
use crate::store::keys::{self, Key, PK, ROOM, ROOM_INDEX, SK};
use crate::store::{Budget, Page, Position, QueryReadings, RangeQuery, StoreResult, item};

/// Whose readings.
enum Partition<'a> {
    Device(&'a DeviceId),
    Room(&'a RoomId),
}

impl QueryReadings for DynamoStore {
    async fn device_readings(
        &self,
        device: &DeviceId,
        query: &RangeQuery,
        budget: &Budget,
    ) -> StoreResult<Page> {
        self.collect(&Partition::Device(device), query, |_| true, budget).await
    }

    async fn room_readings(
        &self,
        room: &RoomId,
        devices: &[DeviceId],
        query: &RangeQuery,
        budget: &Budget,
    ) -> StoreResult<Page> {
        if self.room_index {
            return self.collect(&Partition::Room(room), query, |_| true, budget).await;
        }
        self.merge(room, devices, query, budget).await
    }
}

impl DynamoStore {
    /// Follows `DynamoDB`'s pages until `limit` readings that `keep` wants are found, and asks for one
    /// more than that, which tells whether there is another page.
    async fn collect(
        &self,
        partition: &Partition<'_>,
        query: &RangeQuery,
        keep: impl Fn(&Reading) -> bool,
        budget: &Budget,
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
            // Where most is passed over, each request asks for as much again as all before it.
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
            let answer = budget.within(answer).await?.map_err(store_error)?;
            note_read(budget, answer.consumed_capacity());
            // What other writers left among the readings and is none cannot be shown as one.
            let found = answer.items.unwrap_or_default();
            passed_over += found.len() + readings.len();
            let found = found.into_iter().filter_map(|i| item::to_reading(from_sdk(i)).ok());
            readings.extend(found.filter(&keep));
            passed_over -= readings.len();
            start = answer.last_evaluated_key;
            if start.is_none() || readings.len() > query.limit {
                break;
            }
        }
        let has_more = readings.len() > query.limit;
        readings.truncate(query.limit);
        Ok(Page { readings, has_more })
    }

    /// A room's range without the index: the pages of its devices, merged.
    ///
    /// Each device is asked from the position on for as many readings as the page may hold, so that no
    /// reading can be missed that sorts before the page's last.
    async fn merge(
        &self,
        room: &RoomId,
        devices: &[DeviceId],
        query: &RangeQuery,
        budget: &Budget,
    ) -> StoreResult<Page> {
        let mut merged = Vec::new();
        let mut has_more = false;
        let Some(range) = rest_of(query) else { return Ok(Page::default()) };
        let behind = |reading: &Reading| match (&query.after, query.order) {
            (None, _) => true,
            (Some(after), Order::Ascending) => Position::of(reading) > *after,
            (Some(after), Order::Descending) => Position::of(reading) < *after,
        };
        let query = RangeQuery { range, after: None, ..query.clone() };
        for device in devices {
            let keep = |reading: &Reading| reading.room.as_ref() == Some(room) && behind(reading);
            let page = self.collect(&Partition::Device(device), &query, keep, budget).await?;
            has_more |= page.has_more;
            merged.extend(page.readings);
        }
        merged.sort_by_cached_key(Position::of);
        if query.order == Order::Descending {
            merged.reverse();
        }
        has_more |= merged.len() > query.limit;
        merged.truncate(query.limit);
        Ok(Page { readings: merged, has_more })
    }
}

/// The range from a query's position on, the position's own instant included.
fn rest_of(query: &RangeQuery) -> Option<TimeRange> {
    let Some(after) = &query.after else { return Some(query.range) };
    let rest = match query.order {
        Order::Ascending => TimeRange::new(after.at.max(query.range.from()), query.range.to()),
        Order::Descending => {
            let behind = after.at.saturating_add(chrono::TimeDelta::milliseconds(1));
            TimeRange::new(query.range.from(), behind.min(query.range.to()))
        }
    };
    rest.ok()
}

/// The key behind which a page begins: made from the place of a reading, so that no cursor can reach
/// another partition than the one asked for.
fn start_key(partition: &Partition<'_>, after: &Position) -> SdkItem {
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
