//! A person's edits of the registry: `UpdateItem`, or `TransactWriteItems` where more changes than the item.

use crate::DynamoStore;
use crate::pause::Pauses;
use crate::update::Update;
use crate::write_device::DeviceWrite;
use domain::{
    Decimal, Device, DeviceId, DevicePatch, Edit, Role, Room, RoomId, RoomPatch, Timestamp,
};
use table::item::attribute::{
    ATTRIBUTES, BEHIND, CYCLE, DESCRIBED, EXCHANGES, HOLD, HOME, IN_ROOM_MEANS, KIND, MAX_W,
    METRICS, MODULUS, NAME, NET, ROLE, STAY, TAGS, TOLERANCE, UNIT, VERDICTS,
};
use table::item::{self, Attribute};
use table::keys::Key;
use table::layout::Layout;
use table::{
    Companion, EditRegistry, Edited, Invocation, LookUpRegistry as _, StoreError, StoreResult,
    UpdateOutcome, companions, search_companions,
};

/// The number of attempts at an edit of a device that others keep changing.
const MAX_ATTEMPTS: usize = 8;

impl EditRegistry for DynamoStore {
    async fn edit_device(
        &self,
        id: &DeviceId,
        patch: &DevicePatch,
        now: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Edited, Device>> {
        let mut pauses = Pauses::default();
        for _ in 0..MAX_ATTEMPTS {
            let Some(old) = self.device(id, invocation).await? else {
                return Ok(UpdateOutcome::ConditionFailed(None));
            };
            if patch.check(&old).is_err() {
                return Ok(UpdateOutcome::ConditionFailed(Some(old)));
            }
            let mut new = old.clone();
            patch.apply(&mut new, now);
            if new == old {
                return Ok(UpdateOutcome::Updated(Edited { device: new, room: None }));
            }
            new.version += 1;
            let mut companions = companions(&old, &new);
            let mut room = None;
            if let Edit::Set(into) = &patch.room
                && old.place.room() != Some(into)
            {
                room = self.room(into, invocation).await?;
                if room.is_none() {
                    let new = Room::new(into.clone(), now);
                    companions.push(Companion::RegisterRoom(new.clone()));
                    room = Some(new);
                }
            }
            if self.layout.attribute_index {
                companions.extend(search_companions(&old, &new));
            } else if patch.is_searchable() {
                self.forget_index(invocation).await?;
            }
            let update = device_update(self.layout, patch, &old, &new);
            match self.write_device((&old, &new), update, companions, invocation).await? {
                DeviceWrite::Done(device) => {
                    return Ok(UpdateOutcome::Updated(Edited { device, room }));
                }
                // Somebody was faster: the edit is made of what is there after a while.
                DeviceWrite::Lost(_) | DeviceWrite::CompanionExists => {
                    if !pauses.pause(invocation).await {
                        break;
                    }
                }
            }
        }
        Err(StoreError::Contended(format!("the device {id}")))
    }

    async fn edit_room(
        &self,
        id: &RoomId,
        patch: &RoomPatch,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Room>> {
        let mut update = Update::of(Key::Room(id.clone()));
        edit(&mut update, &[NAME], &patch.name, text);
        edit(&mut update, &[HOME], &patch.home, text);
        update.send_and_read(self, invocation).await
    }
}

/// An update that sets what the patch names: what readings teach meanwhile stays.
fn device_update(layout: Layout, patch: &DevicePatch, old: &Device, new: &Device) -> Update {
    let mut update = Update::of(layout.device_key(&new.id));
    if new.fold_settings != old.fold_settings {
        for (name, value) in item::from_fold_settings(&new.fold_settings) {
            update.set(&[name], value);
        }
    }
    if let Some(stay) = new.stay.as_ref().filter(|_| new.stay != old.stay) {
        update.set(&[STAY], item::newest_stay(stay));
    }
    edit(&mut update, &[BEHIND], &patch.behind, text);
    edit(&mut update, &[IN_ROOM_MEANS], &patch.in_room_means, item::said);
    edit(&mut update, &[NAME], &patch.name, text);
    edit(&mut update, &[KIND], &patch.kind, text);
    edit(&mut update, &[TAGS], &patch.tags, item::tags);
    if new.attributes != old.attributes {
        update.set(&[ATTRIBUTES], item::attributes(&new.attributes));
    }
    if patch.room != Edit::Keep {
        for (name, value) in item::from_place(&new.place) {
            match value {
                Some(value) => update.set(&[name], value),
                None => update.remove(&[name]),
            }
        }
    }
    for (name, patch) in &patch.metrics {
        let name = name.as_str();
        update.only_if_present(&[METRICS, name]);
        edit(&mut update, &[METRICS, name, UNIT], &patch.unit, text);
        edit(&mut update, &[METRICS, name, MODULUS], &patch.modulus, number);
        edit(&mut update, &[METRICS, name, MAX_W], &patch.max_w, number);
        edit(&mut update, &[METRICS, name, TOLERANCE], &patch.tolerance, number);
        edit(&mut update, &[METRICS, name, HOLD], &patch.hold, item::hold);
        edit(&mut update, &[METRICS, name, EXCHANGES], &patch.exchanges, item::exchanges);
        edit(&mut update, &[METRICS, name, VERDICTS], &patch.verdicts, item::verdicts);
        let role = |role: &Role| Attribute::S(role.as_str().to_owned());
        edit(&mut update, &[METRICS, name, ROLE], &patch.role, role);
        edit(&mut update, &[METRICS, name, CYCLE], &patch.cycle, text);
        match patch.net {
            Edit::Keep => {}
            Edit::Set(true) => update.set(&[METRICS, name, NET], item::mark()),
            Edit::Set(false) | Edit::Clear => update.remove(&[METRICS, name, NET]),
        }
        edit(&mut update, &[METRICS, name, IN_ROOM_MEANS], &patch.in_room_means, item::said);
        if patch.describes() {
            update.set(&[METRICS, name, DESCRIBED], item::mark());
        }
        match patch.kind {
            Edit::Keep => {}
            // Without a kind the metric's name decides.
            Edit::Clear => update.remove(&[METRICS, name, KIND]),
            Edit::Set(kind) => {
                update.set(&[METRICS, name, KIND], Attribute::S(kind.as_str().to_owned()));
            }
        }
    }
    for name in &patch.dropped_metrics {
        update.remove(&[METRICS, name.as_str()]);
    }
    update
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

fn text(text: &impl ToString) -> Attribute {
    Attribute::S(text.to_string())
}

fn number(number: &Decimal) -> Attribute {
    Attribute::N(number.to_string())
}
