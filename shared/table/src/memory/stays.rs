//! The stays in memory: one copy of each, which both of its sides show.

use super::MemoryStore;
use crate::{
    Companion, Invocation, ReadStays, RestoreStays, StayKey, StayPage, StayQuery, StoreResult,
    UpdateOutcome,
};
use domain::{Device, DeviceId, DeviceStay, RoomId, Stay};

impl ReadStays for MemoryStore {
    async fn stays_of(
        &self,
        device: &DeviceId,
        query: &StayQuery,
        _invocation: &Invocation,
    ) -> StoreResult<StayPage> {
        self.stays(query, |of| of.device == *device)
    }

    async fn stays_in(
        &self,
        room: &RoomId,
        query: &StayQuery,
        _invocation: &Invocation,
    ) -> StoreResult<StayPage> {
        self.stays(query, |of| of.stay.room == *room)
    }
}

impl RestoreStays for MemoryStore {
    async fn restore_stays(
        &self,
        known: &Device,
        stays: &[Stay],
        _invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let mut state = self.write()?;
        let Some(old) = state.devices.get(known.id()).filter(|it| it.version() == known.version())
        else {
            return Ok(UpdateOutcome::ConditionFailed(state.devices.get(known.id()).cloned()));
        };
        let id = known.id();
        let device = old.with_stay(old.stay().or(stays.last()).cloned());
        let keep = |stay: &Stay| {
            Companion::KeepStay(DeviceStay { device: id.clone(), stay: stay.clone() })
        };
        state.write_device(device.clone(), stays.iter().map(keep).collect());
        Ok(UpdateOutcome::Updated(device))
    }
}

impl MemoryStore {
    fn stays(
        &self,
        query: &StayQuery,
        keep: impl Fn(&DeviceStay) -> bool,
    ) -> StoreResult<StayPage> {
        let state = self.read()?;
        let all = state
            .stays
            .iter()
            .filter(|(key, stay)| {
                query.after.as_ref().is_none_or(|after| after < *key) && stay.overlaps(query.range)
            })
            .map(|(StayKey { device, .. }, stay)| DeviceStay {
                device: device.clone(),
                stay: stay.clone(),
            });
        let mut stays: Vec<DeviceStay> = all.filter(keep).collect();
        let has_more = stays.len() > query.limit;
        stays.truncate(query.limit);
        Ok(StayPage { stays, has_more })
    }
}
