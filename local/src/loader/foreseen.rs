//! A table for the registry function with the readings that are about to be stored. Stores none of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::{Device, DeviceId, DeviceUpdate, Order, Reading, Room, RoomId, Stay, Timestamp};
use dynamodb::DynamoStore;
use table::{
    FindRegistry, InsertOutcome, Invocation, Listing, Page, QueryReadings, RangeQuery, ReadingKey,
    RegisterDevices, Registration, StoreResult, UpdateOutcome, UpdateRegistry,
};

use super::holding::Held;

/// The table, and what comes into it.
#[derive(Debug)]
pub(super) struct Foreseen {
    pub(super) table: DynamoStore,
    pub(super) held: Arc<Held>,
}

impl QueryReadings for Foreseen {
    async fn device_readings(
        &self,
        device: &DeviceId,
        query: &RangeQuery,
        invocation: &Invocation,
    ) -> StoreResult<Page> {
        let page = self.table.device_readings(device, query, invocation).await?;
        let is_descending = query.order == Order::Descending;
        // Behind the page's last reading the table may have others.
        let last = page.readings.last().map(|it| it.at).filter(|_| page.has_more);
        let is_of_page = |reading: &Reading| {
            let key = ReadingKey::of(reading);
            let is_behind = |one: &Timestamp, other: &Timestamp| {
                if is_descending { one < other } else { one > other }
            };
            query.after.as_ref().is_none_or(|after| is_behind(&key.at, &after.at))
                && last.is_none_or(|last| !is_behind(&key.at, &last))
        };
        let mut all: BTreeMap<_, _> = page.readings.into_iter().map(|it| (it.at, it)).collect();
        let held = self.held.get(device).into_iter();
        let held = held.flat_map(|them| them.range(query.range.from()..query.range.to()));
        for (at, held) in held.filter(|(_, held)| is_of_page(&held.reading)) {
            let now = match all.get(at) {
                Some(known) if held.is_merged => known.merged(&held.reading),
                _ => held.reading.clone(),
            };
            all.insert(*at, now);
        }
        let mut readings: Vec<_> = all.into_values().collect();
        if is_descending {
            readings.reverse();
        }
        let has_more = page.has_more || readings.len() > query.limit;
        readings.truncate(query.limit);
        Ok(Page { readings, has_more })
    }
}

impl FindRegistry for Foreseen {
    async fn find_devices(
        &self,
        ids: &[DeviceId],
        invocation: &Invocation,
    ) -> StoreResult<Listing<Device>> {
        self.table.find_devices(ids, invocation).await
    }

    async fn find_rooms(
        &self,
        ids: &[RoomId],
        invocation: &Invocation,
    ) -> StoreResult<Listing<Room>> {
        self.table.find_rooms(ids, invocation).await
    }
}

impl RegisterDevices for Foreseen {
    async fn register_device(
        &self,
        device: &Device,
        invocation: &Invocation,
    ) -> StoreResult<Registration> {
        self.table.register_device(device, invocation).await
    }

    async fn register_room(
        &self,
        room: &Room,
        invocation: &Invocation,
    ) -> StoreResult<InsertOutcome<Room>> {
        self.table.register_room(room, invocation).await
    }

    async fn introduce_room(
        &self,
        device: &DeviceId,
        room: &RoomId,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        self.table.introduce_room(device, room, invocation).await
    }
}

impl UpdateRegistry for Foreseen {
    async fn update_device(
        &self,
        known: &Device,
        learned: &DeviceUpdate,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        self.table.update_device(known, learned, invocation).await
    }

    async fn begin_stay(
        &self,
        known: &Device,
        stay: &Stay,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        self.table.begin_stay(known, stay, invocation).await
    }

    async fn update_room(
        &self,
        id: &RoomId,
        first_seen: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Room>> {
        self.table.update_room(id, first_seen, invocation).await
    }
}
