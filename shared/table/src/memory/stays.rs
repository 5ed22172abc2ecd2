//! The stays in memory: one copy of each, which both of its sides show.

use super::MemoryStore;
use crate::{Invocation, ReadStays, StayKey, StayPage, StayQuery, StoreResult};
use domain::{DeviceId, DeviceStay, RoomId};

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
