//! `UpdateItem`: a person's edits of the registry. Registers nothing.

use super::DynamoStore;
use super::update::{Update, Updated};
use crate::domain::{
    Device, DeviceId, DevicePatch, Edit, Instant, Number, Room, RoomId, RoomPatch,
};
use crate::store::item::attribute::{
    DIP, KIND, MAX_W, METRICS, MODULUS, NAME, ROOM_AT, TAGS, UNIT,
};
use crate::store::item::{self, Attribute};
use crate::store::keys::{Key, ROOM};
use crate::store::{Budget, EditRegistry, Edited, StoreError, StoreResult};

impl EditRegistry for DynamoStore {
    async fn edit_device(
        &self,
        id: &DeviceId,
        patch: &DevicePatch,
        budget: &Budget,
    ) -> StoreResult<Edited<Device>> {
        let mut update = Update::of(Key::Device(id.clone()));
        edit(&mut update, &[NAME], &patch.name, text);
        edit(&mut update, &[KIND], &patch.kind, text);
        edit(&mut update, &[TAGS], &patch.tags, |tags| item::tags(tags));
        edit(&mut update, &[ROOM], &patch.room, |room| Attribute::S(room.to_string()));
        // A person's choice counts as newer than any reading; taken back, the readings decide again.
        match patch.room {
            Edit::Keep => {}
            Edit::Clear => update.remove(&[ROOM_AT]),
            Edit::Set(_) => update.set(&[ROOM_AT], Attribute::S(Instant::MAX.to_string())),
        }
        for (name, patch) in &patch.metrics {
            let name = name.as_str();
            update.only_if_present(&[METRICS, name]);
            edit(&mut update, &[METRICS, name, UNIT], &patch.unit, text);
            edit(&mut update, &[METRICS, name, MODULUS], &patch.modulus, number);
            edit(&mut update, &[METRICS, name, MAX_W], &patch.max_w, number);
            edit(&mut update, &[METRICS, name, DIP], &patch.dip, number);
        }
        match update.send(self, budget).await? {
            Updated::Written(now) => item::read(now, item::to_device)
                .map(Edited::Written)
                .map_err(StoreError::Unreadable),
            Updated::Refused(None) => Ok(Edited::Unknown),
            Updated::Refused(Some(was)) => {
                let was = item::read(was, item::to_device).map_err(StoreError::Unreadable)?;
                let unknown = patch.metrics.keys().find(|name| !was.metrics.contains_key(name));
                Ok(unknown.cloned().map_or(Edited::Unknown, Edited::UnknownMetric))
            }
        }
    }

    async fn edit_room(
        &self,
        id: &RoomId,
        patch: &RoomPatch,
        budget: &Budget,
    ) -> StoreResult<Edited<Room>> {
        let mut update = Update::of(Key::Room(id.clone()));
        edit(&mut update, &[NAME], &patch.name, text);
        match update.send(self, budget).await? {
            Updated::Written(now) => {
                item::read(now, item::to_room).map(Edited::Written).map_err(StoreError::Unreadable)
            }
            Updated::Refused(_) => Ok(Edited::Unknown),
        }
    }
}

fn edit<T>(
    update: &mut Update,
    path: &[&str],
    edit: &Edit<T>,
    attribute: impl Fn(&T) -> Attribute,
) {
    match edit {
        Edit::Keep => {}
        Edit::Clear => update.remove(path),
        Edit::Set(value) => update.set(path, attribute(value)),
    }
}

#[expect(clippy::ptr_arg, reason = "an edit hands over what it holds: a String")]
fn text(text: &String) -> Attribute {
    Attribute::S(text.clone())
}

fn number(number: &Number) -> Attribute {
    Attribute::N(number.to_string())
}
