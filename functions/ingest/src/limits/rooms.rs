//! Limits how many rooms a device introduces. Reads and writes no table.

use std::collections::BTreeSet;

use domain::{Device, DeviceId, MAX_INTRODUCED_ROOMS, RoomId, Timestamp};

use super::new_names::NewNames;

/// Rooms that devices introduced in the last minutes. They count towards the limit until the registry has noted them.
#[derive(Debug, Default)]
pub(crate) struct RoomLimit(NewNames<RoomId>);

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
        let noted = known.map(Device::introduced_rooms);
        let is_noted = |room: &RoomId| noted.is_some_and(|noted| noted.contains(room));
        let free = MAX_INTRODUCED_ROOMS.saturating_sub(noted.map_or(0, BTreeSet::len));
        self.0.introduce(id, std::iter::once(room), is_noted, free, now).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
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

        let later = now.saturating_add(TimeDelta::minutes(3));
        assert!(
            introduce(MAX_INTRODUCED_ROOMS, later),
            "what was not noted until now was not stored"
        );
    }
}
