//! A person's edits of the registry: `UpdateItem`, or `TransactWriteItems` where more changes, or must hold, than
//! the item.

use crate::DynamoStore;
use crate::pause::Pauses;
use crate::update::Update;
use crate::write_device::DeviceWrite;
use domain::{
    BehindError, Device, DeviceId, DevicePatch, DevicePatchError, Edit, Room, RoomId, RoomPatch,
    Timestamp,
};
use table::item::attribute::{
    ATTRIBUTES, BEHIND, HOME, IN_ROOM_MEANS, KIND, METRICS, NAME, OUTSIDE, STAY, TAGS,
};
use table::item::{self, Attribute};
use table::keys::Key;
use table::layout::Layout;
use table::{
    Companion, EditRegistry, Edited, Invocation, LookUpRegistry as _, MeterChange, StoreError,
    StoreResult, UpdateOutcome, companions, search_companions,
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
    ) -> StoreResult<UpdateOutcome<Edited, DevicePatchError>> {
        let mut pauses = Pauses::default();
        for _ in 0..MAX_ATTEMPTS {
            let Some(old) = self.device(id, invocation).await? else {
                return Ok(UpdateOutcome::ConditionFailed(None));
            };
            let refused = |why| Ok(UpdateOutcome::ConditionFailed(Some(why)));
            let new = match patch.edited(&old, now) {
                Ok(new) => new,
                Err(why) => return refused(why),
            };
            let change = MeterChange::of(&old, patch);
            let mut beside = match self.meter_companions(change, invocation).await? {
                Ok(companions) => companions,
                Err(why) => return refused(why.into()),
            };
            if new == old && beside.is_empty() {
                return Ok(UpdateOutcome::Updated(Edited { device: new, room: None }));
            }
            let new = new.next_version();
            beside.extend(companions(&old, &new));
            let mut room = None;
            if let Edit::Set(into) = &patch.room
                && old.place().room() != Some(into)
            {
                room = self.room(into, invocation).await?;
                if room.is_none() {
                    let new = Room::new(into.clone(), now);
                    beside.push(Companion::RegisterRoom(new.clone()));
                    room = Some(new);
                }
            }
            if self.layout.attribute_index {
                beside.extend(search_companions(&old, &new));
            } else if patch.is_searchable() {
                self.forget_index(invocation).await?;
            }
            let update = device_update(self.layout, patch, &old, &new);
            match self.write_device((&old, &new), update, beside, invocation).await? {
                DeviceWrite::Done(device) => {
                    return Ok(UpdateOutcome::Updated(Edited { device, room }));
                }
                // Somebody was faster: the edit is made of what is there after a while.
                DeviceWrite::Lost(_) | DeviceWrite::CompanionRefused => {
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
        edit(&mut update, &[OUTSIDE], &patch.outside, item::said);
        update.send_and_read(self, invocation).await
    }
}

impl DynamoStore {
    /// What is written with a device whose meter changes, as the meters are this moment.
    pub(super) async fn meter_companions(
        &self,
        mut change: MeterChange,
        invocation: &Invocation,
    ) -> StoreResult<Result<Vec<Companion>, BehindError>> {
        while let Some(id) = change.next() {
            let found = self.device(id, invocation).await?;
            if let Err(why) = change.see(found) {
                return Ok(Err(why));
            }
        }
        Ok(Ok(change.companions()))
    }
}

/// An update that sets what the patch names: what readings teach meanwhile stays.
fn device_update(layout: Layout, patch: &DevicePatch, old: &Device, new: &Device) -> Update {
    let mut update = Update::of(layout.device_key(new.id()));
    if new.fold_settings() != old.fold_settings() {
        for (name, value) in item::from_fold_settings(new.fold_settings()) {
            update.set(&[name], value);
        }
    }
    if let Some(stay) = new.stay().filter(|_| new.stay() != old.stay()) {
        update.set(&[STAY], item::newest_stay(stay));
    }
    edit(&mut update, &[BEHIND], &patch.behind, text);
    edit(&mut update, &[IN_ROOM_MEANS], &patch.in_room_means, item::said);
    edit(&mut update, &[NAME], &patch.name, text);
    edit(&mut update, &[KIND], &patch.kind, text);
    edit(&mut update, &[TAGS], &patch.tags, item::tags);
    if new.attributes() != old.attributes() {
        update.set(&[ATTRIBUTES], item::attributes(new.attributes()));
    }
    if patch.room != Edit::Keep {
        update.set_or_remove(item::from_place(new.place()));
    }
    // Each metric whole, in one clause: an expression has 4 KB at most, and the version is that of `old`.
    // https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
    for name in patch.metrics.keys() {
        let Some(info) = new.metrics().get(name) else { continue };
        update.only_if_present(&[METRICS, name.as_str()]);
        update.set(&[METRICS, name.as_str()], item::metric(info));
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
