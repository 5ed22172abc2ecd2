//! The two items of a device that was seen in a room, and how far this is noted of older rollups.

use super::attribute::{AFTER, DONE, FIRST_MONTH, LAST_MONTH, SINCE, VERSION};
use super::fields::{other_kind, parse_key, parsed, put, timestamp, whole_number};
use super::{Attribute, Decode, Item, ItemError, key, mark};
use crate::keys::Key;
use crate::{RoomWalk, Seen};
use domain::{DeviceId, RoomId};

/// The item among the devices that were seen in the room.
#[must_use]
pub fn from_seen(seen: &Seen) -> Item {
    let mut item = key(&Key::SeenIn(seen.room.clone(), seen.device.clone()));
    put(&mut item, FIRST_MONTH, Some(seen.first.to_string()));
    put(&mut item, LAST_MONTH, Some(seen.last.to_string()));
    item.insert(VERSION.to_owned(), Attribute::number(seen.version));
    item
}

/// The item among the device's rollups, by which a deletion of the device finds the other.
#[must_use]
pub fn seen_of(device: &DeviceId, room: &RoomId) -> Item {
    key(&Key::SeenOf(device.clone(), room.clone()))
}

impl Decode for Seen {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::SeenIn(room, device) = parse_key(&item)? else { return Err(other_kind(&item)) };
        Ok(Self {
            room,
            device,
            first: parsed(&mut item, FIRST_MONTH)?.ok_or(ItemError::Missing(FIRST_MONTH))?,
            last: parsed(&mut item, LAST_MONTH)?.ok_or(ItemError::Missing(LAST_MONTH))?,
            version: whole_number(&mut item, VERSION)?.ok_or(ItemError::Missing(VERSION))?,
        })
    }
}

/// The attributes of how far the rooms of older rollups are noted. What has no value is absent from the item.
#[must_use]
pub fn from_room_walk(walk: &RoomWalk) -> [(&'static str, Option<Attribute>); 3] {
    [
        (SINCE, Some(Attribute::S(walk.begun.to_string()))),
        (AFTER, walk.after.as_ref().map(|after| Attribute::S(after.to_string()))),
        (DONE, walk.is_done.then(mark)),
    ]
}

impl Decode for RoomWalk {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::RoomWalk = parse_key(&item)? else { return Err(other_kind(&item)) };
        Ok(Self {
            begun: timestamp(&mut item, SINCE)?.ok_or(ItemError::Missing(SINCE))?,
            after: parsed(&mut item, AFTER)?,
            is_done: item.contains_key(DONE),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::with_key;
    use domain::Timestamp;

    #[test]
    fn what_is_noted_of_a_room_comes_back_and_is_in_no_index() {
        let seen = Seen {
            room: "hall".parse().expect("an id"),
            device: "d".parse().expect("an id"),
            first: "2025-12".parse().expect("a month"),
            last: "2026-01".parse().expect("a month"),
            version: 2,
        };
        let item = from_seen(&seen);
        assert!(!item.contains_key(crate::keys::ROOM));
        assert_eq!(Seen::decode(item).expect("what was noted"), seen);
        for (after, is_done) in [(None, false), (Some(seen.device.clone()), false), (None, true)] {
            let walk = RoomWalk { begun: Timestamp::MIN, after, is_done };
            let item = with_key(&Key::RoomWalk, from_room_walk(&walk));
            assert_eq!(RoomWalk::decode(item).expect("a walk"), walk);
        }
    }
}
