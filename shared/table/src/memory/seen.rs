//! Devices that were seen in a room, in memory: one copy, which both of its sides show.

use super::MemoryStore;
use crate::{Expected, Invocation, NoteSeen, ReadSeen, Seen, StoreResult};
use domain::{DeviceId, Month, RoomId};

impl MemoryStore {
    /// All that is noted, by room.
    #[must_use]
    pub fn all_seen(&self) -> Vec<Seen> {
        self.state().seen.values().cloned().collect()
    }
}

impl NoteSeen for MemoryStore {
    async fn seen(
        &self,
        room: &RoomId,
        device: &DeviceId,
        _invocation: &Invocation,
    ) -> StoreResult<Option<Seen>> {
        Ok(self.read()?.seen.get(&(room.clone(), device.clone())).cloned())
    }

    async fn put_seen(
        &self,
        seen: &Seen,
        expected: Expected,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut state = self.write()?;
        let key = (seen.room.clone(), seen.device.clone());
        let known = state.seen.get(&key);
        let is_as_expected = match expected {
            Expected::Absent => known.is_none(),
            Expected::Present => known.is_some(),
            Expected::Version(version) => known.is_some_and(|it| it.version == version),
        };
        if is_as_expected {
            state.seen.insert(key, seen.clone());
        }
        Ok(is_as_expected)
    }
}

impl ReadSeen for MemoryStore {
    async fn seen_in(
        &self,
        room: &RoomId,
        months: (Month, Month),
        limit: usize,
        _invocation: &Invocation,
    ) -> StoreResult<Vec<Seen>> {
        let state = self.read()?;
        let found = state.seen.values().filter(|it| it.room == *room && it.overlaps(months));
        Ok(found.take(limit).cloned().collect())
    }
}
