//! `Query` on the stays of a device or in a room. Writes none.

use crate::DynamoStore;
use crate::attribute::to_sdk;
use crate::range::{Range, RangePage};
use domain::{DeviceId, DeviceStay, Order, RoomId};
use table::item;
use table::keys::{self, Key};
use table::{Invocation, ReadStays, StayPage, StayQuery, StoreResult};

impl ReadStays for DynamoStore {
    async fn stays_of(
        &self,
        device: &DeviceId,
        query: &StayQuery,
        invocation: &Invocation,
    ) -> StoreResult<StayPage> {
        let after = query.after.as_ref().map(|after| Key::StayOf(device.clone(), after.since));
        self.stays(keys::stays_of_pk(device), after, query, invocation).await
    }

    async fn stays_in(
        &self,
        room: &RoomId,
        query: &StayQuery,
        invocation: &Invocation,
    ) -> StoreResult<StayPage> {
        let after = query.after.as_ref();
        let after = after.map(|after| Key::StayIn(room.clone(), after.since, after.device.clone()));
        self.stays(keys::stays_in_pk(room), after, query, invocation).await
    }
}

impl DynamoStore {
    /// Consistent, because a person looks at what they have just set.
    async fn stays(
        &self,
        partition: String,
        after: Option<Key>,
        query: &StayQuery,
        invocation: &Invocation,
    ) -> StoreResult<StayPage> {
        let range = Range {
            index: None,
            partition,
            between: keys::stays_begun_before_end(query.range),
            order: Order::Ascending,
            start: after.map(|after| to_sdk(item::key(&after))),
            limit: query.limit,
            consistent: true,
            filter: None,
        };
        let is_asked_for = |of: &DeviceStay| of.stay.overlaps(query.range);
        let page = self.range(range, is_asked_for, |_| 0, invocation).await?;
        let RangePage { items: stays, has_more } = page;
        Ok(StayPage { stays, has_more })
    }
}
