//! A person's edits of the registry. An edit is one update, or a transaction with writes and checks of other items.

use domain::{
    BehindError, Device, DeviceId, DevicePatch, DevicePatchError, Edit, Room, RoomId, RoomPatch,
    Timestamp,
};
use ports::port;

use super::device_write::{changed_fold_settings, metric_path};
use crate::db::{AttributeChange, Db, Write, delete, present, remove, replace_all, set_as, update};
use crate::item::attribute::{
    ATTRIBUTES, BEHIND, HOME, IN_ROOM_MEANS, KIND, NAME, OUTSIDE, STAY, TAGS,
};
use crate::item::{Described, Form, Labels, Members, Said, Text};
use crate::keys::Key;
use crate::{
    Companion, Edited, MeterChange, Patterns, Pauses, StoreError, StoreResult, UpdateOutcome,
    companions, search_companions,
};

/// The number of attempts to edit a device that others keep changing.
const MAX_ATTEMPTS: usize = 8;

/// The result of one attempt to edit a device.
enum EditAttempt {
    Done(Box<Edited>),
    Refused(DevicePatchError),
    /// Another writer changed the device between read and write.
    Outdated,
}

/// A person's edits of the registry. A repeat leaves the same values.
#[port(
    EditRegistry,
    GetItem(Devices, Rooms),
    UpdateItem(Devices, Rooms),
    ConditionCheckItem(Devices),
    PutItem(Rooms, Stays, Attributes),
    Query(Devices),
    DeleteItem(Attributes)
)]
impl<D: Db> Patterns<'_, D> {
    /// Edits a registered device if the patch may be applied ([`DevicePatch::check`],
    /// [`MeterChange`](crate::MeterChange)); otherwise says why not. The patch is checked against the device and the
    /// meters as they are stored when the edit is written. The device and all [`companions`](crate::companions) are
    /// written together, or nothing is written. A room that a person names is registered at once, without a reading.
    pub async fn edit_device(
        self,
        id: &DeviceId,
        patch: &DevicePatch,
        now: Timestamp,
    ) -> StoreResult<UpdateOutcome<Edited, DevicePatchError>> {
        let mut pauses = Pauses::default();
        for _ in 0..MAX_ATTEMPTS {
            let Some(old) = self.device(id).await? else {
                return Ok(UpdateOutcome::ConditionFailed(None));
            };
            match self.try_edit(old, patch, now).await? {
                EditAttempt::Done(edited) => return Ok(UpdateOutcome::Updated(*edited)),
                EditAttempt::Refused(why) => return Ok(UpdateOutcome::ConditionFailed(Some(why))),
                EditAttempt::Outdated => {}
            }
            if !pauses.pause(self.invocation).await {
                break;
            }
        }
        Err(StoreError::Contended(format!("the device {id}")))
    }

    /// One attempt to edit a device as it was read.
    async fn try_edit(
        self,
        old: Device,
        patch: &DevicePatch,
        now: Timestamp,
    ) -> StoreResult<EditAttempt> {
        let new = match patch.edited(&old, now) {
            Ok(new) => new,
            Err(why) => return Ok(EditAttempt::Refused(why)),
        };

        let change = MeterChange::of(&old, patch);
        let mut beside = match self.meter_companions(change).await? {
            Ok(companions) => companions,
            Err(why) => return Ok(EditAttempt::Refused(why.into())),
        };
        if new == old && beside.is_empty() {
            return Ok(EditAttempt::Done(Box::new(Edited { device: new, room: None })));
        }

        let new = new.next_version();
        beside.extend(companions(&old, &new));
        let (room, registered) = self.room_of_edit(&old, patch, now).await?;
        beside.extend(registered);

        if self.db.layout().attribute_index {
            beside.extend(search_companions(&old, &new));
        } else if patch.is_searchable() {
            // This comes before the edit, because an index without the edit must not be trusted.
            self.forget_index().await?;
        }

        let update = self.device_update(patch, &old, &new);
        Ok(match self.write_device(&new, update, beside).await? {
            UpdateOutcome::Updated(device) => EditAttempt::Done(Box::new(Edited { device, room })),
            UpdateOutcome::ConditionFailed(_) => EditAttempt::Outdated,
        })
    }

    /// The room into which an edit moves a device, and the write that registers the room if it is new.
    async fn room_of_edit(
        self,
        old: &Device,
        patch: &DevicePatch,
        now: Timestamp,
    ) -> StoreResult<(Option<Room>, Option<Companion>)> {
        let Edit::Set(into) = &patch.room else { return Ok((None, None)) };
        if old.place().room() == Some(into) {
            return Ok((None, None));
        }

        if let Some(known) = self.room(into).await? {
            return Ok((Some(known), None));
        }
        let added = Room::new(into.clone(), now);
        Ok((Some(added.clone()), Some(Companion::RegisterRoom(added))))
    }

    /// Edits a room.
    pub async fn edit_room(
        self,
        id: &RoomId,
        patch: &RoomPatch,
    ) -> StoreResult<UpdateOutcome<Room>> {
        let update = update(&Key::Room(id.clone()))
            .with(edit::<Text, _>(NAME, &patch.name))
            .with(edit::<Text, _>(HOME, &patch.home))
            .with(edit::<Said, _>(OUTSIDE, &patch.outside));
        self.update_and_read(update).await
    }

    /// The companions for a change of a device's meter, by the meters as they are stored now.
    pub(super) async fn meter_companions(
        self,
        mut change: MeterChange,
    ) -> StoreResult<Result<Vec<Companion>, BehindError>> {
        while let Some(id) = change.next() {
            let found = self.device(id).await?;
            if let Err(why) = change.see(found) {
                return Ok(Err(why));
            }
        }
        Ok(Ok(change.companions()))
    }

    /// Deletes the record that the attribute index is complete, because the next edit does not write to the index.
    async fn forget_index(self) -> StoreResult<()> {
        self.write(delete(&Key::Indexed)).await.map(drop)
    }

    /// An update that sets only the values in the patch. So facts that were learned from readings since the read stay.
    fn device_update(self, patch: &DevicePatch, old: &Device, new: &Device) -> Write {
        let stay = new.stay().filter(|_| new.stay() != old.stay());
        let attributes = (new.attributes() != old.attributes()).then(|| new.attributes());
        let place = (patch.room != Edit::Keep).then(|| replace_all(new.place()));
        // A metric is set as a whole by one clause, because an expression has at most 4 KB. Nothing is lost, because
        // the device must still have the version of `old`.
        let metrics = patch.metrics.keys().filter_map(|name| new.metrics().get_key_value(name));
        let known = metrics.clone().filter(|(name, _)| old.metrics().contains_key(*name));

        self.next_version(old)
            .with(changed_fold_settings(old, new))
            .with(stay.map(|stay| set_as::<Members, _>(STAY, stay)))
            .with(edit::<Text, _>(BEHIND, &patch.behind))
            .with(edit::<Said, _>(IN_ROOM_MEANS, &patch.in_room_means))
            .with(edit::<Text, _>(NAME, &patch.name))
            .with(edit::<Text, _>(KIND, &patch.kind))
            .with(edit::<Labels, _>(TAGS, &patch.tags))
            .with(attributes.map(|attributes| set_as::<Described, _>(ATTRIBUTES, attributes)))
            .with(place.into_iter().flatten())
            .when(known.map(|(name, _)| present(metric_path(name))))
            .with(metrics.map(|(name, info)| set_as::<Members, _>(metric_path(name), info)))
            .with(patch.dropped_metrics().map(|name| remove(metric_path(name))))
    }
}

/// The change of an attribute that an edit makes; `None` if the attribute stays.
fn edit<F: Form<T>, T>(name: &'static str, edit: &Edit<T>) -> Option<AttributeChange> {
    match edit {
        Edit::Keep => None,
        Edit::Clear => Some(remove(name)),
        Edit::Set(value) => Some(set_as::<F, _>(name, value)),
    }
}
