//! Readings of a device or a room in a range. If the table has no room index, the readings of a room's devices are
//! merged. Writes nothing.

use std::cmp::Ordering;

use domain::{DeviceId, Order, Reading, RoomId, Timestamp};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use ports::port;

use crate::db::{Db, ItemQuery};
use crate::item::{self, Attribute};
use crate::keys::{self, Key};
use crate::layout::ROOM_INDEX;
use crate::{Page, Patterns, RangeQuery, ReadingKey, StoreResult};

/// Readings of a device in a range.
#[port(QueryReadings, Query(Readings))]
impl<D: Db> Patterns<'_, D> {
    /// A page of one device's readings.
    pub async fn device_readings(
        self,
        device: &DeviceId,
        query: &RangeQuery,
    ) -> StoreResult<Page<Reading>> {
        self.range(of_device(device, query), query.limit, |_| true, bytes).await
    }
}

/// Readings of a room in a range.
#[port(QueryRoomReadings, Query(RoomIndex, Readings))]
impl<D: Db> Patterns<'_, D> {
    /// Whether the table has the room index.
    pub fn has_room_index(self) -> bool {
        self.db.layout().room_index
    }

    /// A page of one room's readings: those of all its devices, sorted by time.
    ///
    /// `devices` are all devices that are or were in the room. If the table has no room index, these devices are read
    /// instead.
    pub async fn room_readings(
        self,
        room: &RoomId,
        devices: &[DeviceId],
        query: &RangeQuery,
    ) -> StoreResult<Page<Reading>> {
        if self.has_room_index() {
            return self.range(of_room(room, query), query.limit, |_| true, bytes).await;
        }
        self.merged_readings(room, devices, query).await
    }

    /// The readings of a room, merged from those of its devices, because there is no index.
    ///
    /// Each round reads, several at once, the devices that may still have a reading of the page. The first round reads
    /// a little more than a device's share of the page, and each further round reads twice as many readings. Memory
    /// holds the readings of the page and of one round.
    async fn merged_readings(
        self,
        room: &RoomId,
        devices: &[DeviceId],
        query: &RangeQuery,
    ) -> StoreResult<Page<Reading>> {
        let in_room = |reading: &Reading| reading.room.as_ref() == Some(room);
        let share = (query.limit + 1) * 5 / 4 / devices.len().max(1) + 2;
        let share = share.min(query.limit + 1);
        let mut cursors: Vec<DeviceCursor<'_>> =
            devices.iter().map(|device| DeviceCursor::begin(device, query, share)).collect();
        let mut merged: Vec<Reading> = Vec::new();

        loop {
            // The first reading after the page. Once it is known, no later reading is needed.
            let last = merged.get(query.limit);
            let waiting = cursors.iter_mut().filter(|cursor| cursor.may_precede(last, query.order));
            let requests: Vec<_> = waiting
                .map(|cursor| async {
                    let readings = of_device(cursor.device, &cursor.query);
                    Ok(cursor.take(self.range(readings, cursor.query.limit, in_room, bytes).await?))
                })
                .collect();
            if requests.is_empty() {
                break;
            }

            let found: Vec<Vec<Reading>> =
                stream::iter(requests).buffer_unordered(MERGE_CONCURRENCY).try_collect().await?;
            merged.extend(found.into_iter().flatten());
            merged.sort_by(|a, b| in_order(query.order, a, b));
            merged.truncate(query.limit + 1);
        }

        let has_more = merged.len() > query.limit;
        merged.truncate(query.limit);
        Ok(Page { items: merged, has_more })
    }
}

/// The readings of a device, in its partition.
fn of_device(device: &DeviceId, query: &RangeQuery) -> ItemQuery {
    let after = query.after.as_ref();
    ItemQuery {
        order: query.order,
        start: after.map(|after| item::key(&Key::Reading(device.clone(), after.at))),
        consistent: query.consistent,
        ..ItemQuery::of(device.to_string())
    }
    .between(keys::reading_range(query.range))
}

/// The readings of a room, in its partition of the room index.
fn of_room(room: &RoomId, query: &RangeQuery) -> ItemQuery {
    ItemQuery {
        order: query.order,
        start: query.after.as_ref().map(|after| {
            let mut start = item::key(&Key::Reading(after.device.clone(), after.at));
            start.insert(ROOM_INDEX.partition_key.to_owned(), Attribute::text(room));
            start
        }),
        ..ItemQuery::of_index(&ROOM_INDEX, room.to_string())
    }
    .between(keys::reading_range(query.range))
}

/// The number of devices of a room that are read at once.
const MERGE_CONCURRENCY: usize = 8;

/// The position in one device's readings, which are merged into a room's page.
struct DeviceCursor<'a> {
    device: &'a DeviceId,
    /// The query for the device's next readings, after the last one that was found.
    query: RangeQuery,
    is_done: bool,
}

impl<'a> DeviceCursor<'a> {
    fn begin(device: &'a DeviceId, query: &RangeQuery, share: usize) -> Self {
        let after = query.after.as_ref().and_then(|after| begin_after(query, after, device));
        let query = RangeQuery { after, limit: share, ..query.clone() };
        Self { device, query, is_done: false }
    }

    /// Whether the device may have an unread reading that comes before `last`.
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

    fn take(&mut self, page: Page<Reading>) -> Vec<Reading> {
        self.is_done = !page.has_more;
        self.query.after = page.items.last().map(ReadingKey::of).or(self.query.after.take());
        self.query.limit *= 2;
        page.items
    }
}

fn in_order(order: Order, a: &Reading, b: &Reading) -> Ordering {
    let ascending = (a.at, &a.device).cmp(&(b.at, &b.device));
    if order == Order::Ascending { ascending } else { ascending.reverse() }
}

/// The position after which to read a device for a room's page, if the previous page ended with `after`. Readings with
/// the same timestamp are sorted by device.
fn begin_after(query: &RangeQuery, after: &ReadingKey, device: &DeviceId) -> Option<ReadingKey> {
    let (is_passed, step) = match query.order {
        Order::Ascending => (*device <= after.device, -1),
        Order::Descending => (*device >= after.device, 1),
    };
    let millis = after.at.as_millis() + if is_passed { 0 } else { step };
    // If the position is outside of the range, the page begins with the range.
    let at = Timestamp::from_millis(millis).ok().filter(|at| query.range.contains(*at))?;
    Some(ReadingKey { at, device: device.clone() })
}

/// The number of bytes that a reading takes at least in an answer.
fn bytes(reading: &Reading) -> usize {
    let metrics = reading.metrics().iter();
    metrics.map(|(name, value)| name.as_str().len() + value.as_str().len()).sum()
}
