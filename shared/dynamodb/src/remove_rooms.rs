//! `DeleteItem` on rooms, and `UpdateItem` that takes them out of a home. Looks at no device.

use domain::{HomeId, Room, RoomId};

use crate::DynamoStore;
use crate::update::Update;
use table::item::attribute::HOME;
use table::item::{self, Attribute};
use table::keys::Key;
use table::{Invocation, RemoveRooms, StoreResult, UpdateOutcome};

impl RemoveRooms for DynamoStore {
    async fn remove_room(&self, id: &RoomId, invocation: &Invocation) -> StoreResult<()> {
        let key = Key::Room(id.clone());
        self.delete_item(key.pk(), key.sk(), invocation).await
    }

    async fn put_back_room(&self, room: &Room, invocation: &Invocation) -> StoreResult<()> {
        let put = self.put_if_absent::<_, Room>(item::from_room(room), invocation);
        put.await.map(drop)
    }

    async fn leave_home(
        &self,
        room: &RoomId,
        home: &HomeId,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut update = Update::of(Key::Room(room.clone()));
        update.only_if_still(&[HOME], Some(Attribute::S(home.to_string())));
        update.remove(&[HOME]);
        let left = update.send(self, invocation).await?;
        Ok(matches!(left, UpdateOutcome::Updated(_)))
    }
}
