//! `GetItem`, `PutItem`, `TransactWriteItems` and `Query` on the devices that were seen in a room. Notes no room.

use domain::{DeviceId, Month, Order, RoomId};

use crate::DynamoStore;
use crate::put::Put;
use crate::range::Range;
use table::item;
use table::keys::{self, Key};
use table::{Expected, Invocation, NoteSeen, ReadSeen, Seen, StoreResult, UpdateOutcome};

impl NoteSeen for DynamoStore {
    async fn seen(
        &self,
        room: &RoomId,
        device: &DeviceId,
        invocation: &Invocation,
    ) -> StoreResult<Option<Seen>> {
        self.find(&Key::SeenIn(room.clone(), device.clone()), invocation).await
    }

    async fn put_seen(
        &self,
        seen: &Seen,
        expected: Expected,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let put = Put::new(item::from_seen(seen), expected);
        if expected != Expected::Absent {
            return Ok(matches!(put.send(self, invocation).await?, UpdateOutcome::Updated(())));
        }
        let of_device = self.put_part(item::seen_of(&seen.device, &seen.room));
        let parts = vec![self.conditional_part(put), of_device];
        Ok(self.transact_parts(parts, invocation).await?.is_ok())
    }
}

impl ReadSeen for DynamoStore {
    async fn seen_in(
        &self,
        room: &RoomId,
        months: (Month, Month),
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Vec<Seen>> {
        let range = Range {
            index: None,
            partition: keys::seen_in_pk(room),
            between: keys::all_ids(),
            order: Order::Ascending,
            start: None,
            limit,
            consistent: false,
            filter: None,
        };
        let overlaps = |seen: &Seen| seen.overlaps(months);
        Ok(self.range(range, overlaps, |_| 0, invocation).await?.items)
    }
}
