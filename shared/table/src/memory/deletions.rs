//! The ports of deletion in memory.

use domain::{Annotated, Deletion, DeviceId, HomeId, Room, RoomId, Timestamp};

use super::MemoryStore;
use crate::keys::Key;
use crate::{
    BegunDeletion, Belonging, Belongings, Invocation, ItemKey, MarkDeletions, MeterChange,
    PutOutcome, RemoveBelongings, RemoveRooms, StoreResult,
};

impl MemoryStore {
    /// Deletes a tombstone, as only `DynamoDB` does, after its expiry.
    pub fn delete_tombstone(&self, id: &DeviceId) {
        self.state().deletions.remove(id);
    }
}

impl MarkDeletions for MemoryStore {
    async fn begin_deletion(
        &self,
        id: &DeviceId,
        at: Timestamp,
        _invocation: &Invocation,
    ) -> StoreResult<BegunDeletion> {
        let mut state = self.write()?;
        if let Some(device) = state.devices.get(id).cloned() {
            let is_behind =
                |it: &&DeviceId| state.devices.get(it).is_some_and(|it| it.behind() == Some(id));
            let behind: Vec<_> = device.behind_it().iter().filter(is_behind).cloned().collect();
            if !behind.is_empty() {
                return Ok(BegunDeletion::Meter(behind));
            }
            let companions = state.meter_companions(MeterChange::of_deletion(&device));
            state.write_companions(companions.expect("it is put behind no meter"));
            state.devices.remove(id);
            let begun = Deletion::begin(at, device.fold_settings().number);
            state.deletions.insert(id.clone(), begun);
        }
        let deletion = state.deletions.get(id).copied();
        Ok(deletion.map_or(BegunDeletion::NoDevice, BegunDeletion::Deletion))
    }

    async fn note_found(
        &self,
        id: &DeviceId,
        at: Timestamp,
        _invocation: &Invocation,
    ) -> StoreResult<Option<Deletion>> {
        let mut state = self.write()?;
        let under_way = state.deletions.get_mut(id).filter(|it| it.ended.is_none());
        Ok(under_way.map(|deletion| {
            deletion.found = at;
            *deletion
        }))
    }

    async fn end_deletion(
        &self,
        id: &DeviceId,
        known: &Deletion,
        at: Timestamp,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut state = self.write()?;
        let known =
            state.deletions.get_mut(id).filter(|it| **it == *known && known.ended.is_none());
        Ok(known.map(|deletion| deletion.ended = Some(at)).is_some())
    }
}

impl RemoveBelongings for MemoryStore {
    async fn belongings(
        &self,
        id: &DeviceId,
        limit: usize,
        _invocation: &Invocation,
    ) -> StoreResult<Belongings> {
        let state = self.read()?;
        let readings = state.readings.keys().filter(|key| key.device == *id);
        let readings = readings.map(|key| Key::Reading(id.clone(), key.at));
        let rollups = state.rollups.keys().filter(|key| key.device == *id);
        let rollups = rollups.map(|key| Key::Rollup(id.clone(), key.bucket));
        let refold = state.refolds.contains_key(id).then(|| Key::Refold(id.clone()));
        let all = readings.chain(rollups).chain(refold);
        let mut found: Vec<Belonging> = all.map(|key| Belonging(vec![ItemKey::of(&key)])).collect();
        let stays = state.stays.iter().filter(|(key, _)| key.device == *id);
        found.extend(stays.map(|(key, stay)| Belonging::of_stay(id, &stay.room, key.since)));
        let seen = state.seen.keys().filter(|(_, device)| device == id);
        found.extend(seen.map(|(room, _)| Belonging::of_seen(id, room)));
        let of_device = Annotated::Device(id.clone());
        let annotations = state.annotations.values().filter(|it| it.about == of_device);
        let annotations = annotations.map(|it| Key::Annotation(it.id.clone()));
        found.extend(annotations.map(|key| Belonging(vec![ItemKey::of(&key)])));
        let has_more = found.len() > limit;
        found.truncate(limit);
        Ok(Belongings { found, has_more })
    }

    async fn remove_belongings(
        &self,
        belongings: &[Belonging],
        _invocation: &Invocation,
    ) -> PutOutcome {
        let mut state = self.call();
        if let Some(cause) = state.pop_failure() {
            return PutOutcome { not_stored: (0..belongings.len()).collect(), cause: Some(cause) };
        }
        for key in belongings.iter().flat_map(|it| &it.0) {
            match Key::parse(&key.pk, &key.sk) {
                Some(Key::Reading(device, at)) => {
                    let key = crate::ReadingKey { at, device };
                    state.readings.remove(&key);
                    state.arrivals.remove(&key);
                    state.expiries.remove(&key);
                }
                Some(Key::Rollup(device, bucket)) => {
                    state.rollups.remove(&crate::RollupKey { device, bucket });
                }
                Some(Key::Refold(device)) => drop(state.refolds.remove(&device)),
                Some(Key::StayOf(device, since)) => {
                    state.stays.remove(&crate::StayKey { since, device });
                }
                Some(Key::SeenOf(device, room)) => drop(state.seen.remove(&(room, device))),
                Some(Key::Annotation(id)) => drop(state.annotations.remove(&id)),
                // Both sides are one here.
                Some(Key::StayIn(..) | Key::SeenIn(..)) => {}
                other => unreachable!("nothing else belongs to a device: {other:?}"),
            }
        }
        PutOutcome::default()
    }
}

impl RemoveRooms for MemoryStore {
    async fn remove_room(&self, id: &RoomId, _invocation: &Invocation) -> StoreResult<()> {
        self.write()?.rooms.remove(id);
        Ok(())
    }

    async fn put_back_room(&self, room: &Room, _invocation: &Invocation) -> StoreResult<()> {
        self.write()?.rooms.entry(room.id.clone()).or_insert_with(|| room.clone());
        Ok(())
    }

    async fn leave_home(
        &self,
        room: &RoomId,
        home: &HomeId,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut state = self.write()?;
        let room = state.rooms.get_mut(room).filter(|room| room.home.as_ref() == Some(home));
        Ok(room.map(|room| room.home = None).is_some())
    }
}
