//! The stays of devices, and the rooms in which devices were seen. Writes no stay.

use std::ops::RangeInclusive;

use domain::{DeviceId, DeviceStay, Month, RoomId};
use ports::port;

use super::expected;
use crate::db::{Db, ItemQuery, put};
use crate::item::{self, Kind as _};
use crate::keys::{self, Key};
use crate::{Expected, Page, Patterns, RoomVisit, StayQuery, StoreResult};

/// The rooms in which a device has been, and the devices that have been in a room.
#[port(ReadStays, Query(Stays))]
impl<D: Db> Patterns<'_, D> {
    /// A page of a device's stays, sorted by when they began.
    pub async fn stays_of(
        self,
        device: &DeviceId,
        query: &StayQuery,
    ) -> StoreResult<Page<DeviceStay>> {
        let after = query.after.as_ref().map(|after| Key::StayOf(device.clone(), after.since));
        self.stays(keys::stays_of_pk(device), after, query).await
    }

    /// A page of the stays in a room, sorted by when they began.
    pub async fn stays_in(self, room: &RoomId, query: &StayQuery) -> StoreResult<Page<DeviceStay>> {
        let after = query.after.as_ref();
        let after = after.map(|after| Key::StayIn(room.clone(), after.since, after.device.clone()));
        self.stays(keys::stays_in_pk(room), after, query).await
    }

    /// A page of stays. The read is consistent, because a person looks at a stay just after an edit.
    async fn stays(
        self,
        partition: String,
        after: Option<Key>,
        query: &StayQuery,
    ) -> StoreResult<Page<DeviceStay>> {
        let stays = ItemQuery {
            start: after.as_ref().map(item::key),
            ..ItemQuery::of(partition).between(keys::stays_begun_before_end(query.range))
        };
        let is_asked_for = |of: &DeviceStay| of.stay.overlaps(query.range);
        self.range(stays, query.limit, is_asked_for, |_| 0).await
    }
}

/// Stores which devices were seen in which rooms.
///
/// The stored months only grow. They may include months without readings, because readings may be deleted.
#[port(NoteSeen, GetItem(SeenIn), PutItem(SeenIn, Rollups))]
impl<D: Db> Patterns<'_, D> {
    /// The months in which a device was seen in a room, as they are this moment.
    pub async fn seen(self, room: &RoomId, device: &DeviceId) -> StoreResult<Option<RoomVisit>> {
        self.find(&Key::SeenIn(room.clone(), device.clone())).await
    }

    /// Stores the months, if the stored ones are as `before`; returns whether they are stored. The first time, an item
    /// among the device's rollups is stored too. A repeat is refused.
    pub async fn put_seen(self, seen: &RoomVisit, before: Expected) -> StoreResult<bool> {
        let noted = put(seen.item()).when([expected(before)]);
        if before != Expected::Absent {
            return self.is_written(noted).await;
        }
        let of_device = put(item::seen_of(&seen.device, &seen.room));
        Ok(self.transact(vec![noted, of_device]).await?.is_ok())
    }
}

/// The devices that were seen in a room.
#[port(ReadSeen, Query(SeenIn))]
impl<D: Db> Patterns<'_, D> {
    /// The devices that were seen in a room in these months, including both ends, sorted by id: at most `limit`.
    pub async fn seen_in(
        self,
        room: &RoomId,
        months: RangeInclusive<Month>,
        limit: usize,
    ) -> StoreResult<Vec<RoomVisit>> {
        let query = ItemQuery {
            consistent: false,
            ..ItemQuery::of(keys::seen_in_pk(room)).between(keys::all_ids())
        };
        let overlaps = |seen: &RoomVisit| seen.overlaps(&months);
        Ok(self.range(query, limit, overlaps, |_| 0).await?.items)
    }
}
