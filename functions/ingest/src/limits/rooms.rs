//! Limits how many rooms a device introduces while the registry has not noted them yet. Reads and writes no table.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use domain::{Device, DeviceId, MAX_INTRODUCED_ROOMS, RoomId, Timestamp};

/// The number of devices whose rooms are remembered. Beyond it, all are forgotten.
const MAX_DEVICES: usize = 1_000;
/// The time for which rooms are remembered. Later the registry has noted them, or they were not stored.
const REMEMBERED: TimeDelta = TimeDelta::minutes(3);

/// Rooms that devices introduced in the last minutes. They count towards the limit until the registry has noted them,
/// because overlapping requests do not see each other's rooms there.
#[derive(Debug, Default)]
pub(crate) struct RoomLimit(Mutex<HashMap<DeviceId, IntroducedRooms>>);

/// The rooms that a device introduced, and when it introduced the last of them.
#[derive(Debug)]
struct IntroducedRooms {
    rooms: BTreeSet<RoomId>,
    at: Timestamp,
}

impl RoomLimit {
    /// Returns whether a device may introduce a room, and remembers that it did. `known` is the device as the registry has
    /// it.
    pub(crate) fn introduce(
        &self,
        id: &DeviceId,
        room: &RoomId,
        known: Option<&Device>,
        now: Timestamp,
    ) -> bool {
        let mut devices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if devices.len() >= MAX_DEVICES && !devices.contains_key(id) {
            devices.clear();
        }
        let introduced = devices
            .entry(id.clone())
            .or_insert_with(|| IntroducedRooms { rooms: BTreeSet::new(), at: now });
        if now.since(introduced.at).abs() >= REMEMBERED {
            introduced.rooms.clear();
        }

        let is_noted =
            |room: &RoomId| known.is_some_and(|device| device.introduced_rooms().contains(room));
        introduced.rooms.retain(|room| !is_noted(room));
        let noted = known.map_or(0, |device| device.introduced_rooms().len());
        if !introduced.rooms.contains(room)
            && noted + introduced.rooms.len() >= MAX_INTRODUCED_ROOMS
        {
            return false;
        }

        introduced.rooms.insert(room.clone());
        introduced.at = now;
        true
    }
}

#[cfg(test)]
mod tests {
    use domain::given;

    use super::*;

    #[test]
    fn rooms_count_until_they_are_noted_or_forgotten() {
        let limit = RoomLimit::default();
        let id = given::device("d");
        let now = Timestamp::from_millis(1_000_000).unwrap();
        let introduce =
            |n: usize, now| limit.introduce(&id, &given::room(&format!("r{n}")), None, now);
        for n in 0..MAX_INTRODUCED_ROOMS {
            assert!(introduce(n, now));
        }
        assert!(!introduce(MAX_INTRODUCED_ROOMS, now), "one more");
        assert!(introduce(0, now), "the same room again");

        let later = now.saturating_add(REMEMBERED);
        assert!(
            introduce(MAX_INTRODUCED_ROOMS, later),
            "what was not noted until now was not stored"
        );
    }
}
