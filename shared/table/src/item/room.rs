//! A room's item. Says nothing of the devices and readings in the room.

use super::attribute::{FIRST_SEEN, HOME, NAME, OUTSIDE};
use super::fields::{other_kind, parse_key, parsed, put, said, timestamp, to_said};
use super::{Attribute, Decode, Item, ItemError, key};
use crate::keys::Key;
use domain::Room;

/// The item of a room.
#[must_use]
pub fn from_room(room: &Room) -> Item {
    let mut item = key(&Key::Room(room.id.clone()));
    put(&mut item, NAME, room.name.clone().map(String::from));
    put(&mut item, HOME, room.home.as_ref().map(ToString::to_string));
    item.extend(room.outside.map(|it| (OUTSIDE.to_owned(), said(&it))));
    put(&mut item, FIRST_SEEN, Some(room.first_seen.to_string()));
    item
}

impl Decode for Room {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        to_room(attributes.into_iter().collect())
    }
}

fn to_room(mut item: Item) -> Result<Room, ItemError> {
    let Key::Room(id) = parse_key(&item)? else { return Err(other_kind(&item)) };
    let first_seen = timestamp(&mut item, FIRST_SEEN)?.ok_or(ItemError::Missing(FIRST_SEEN))?;
    let (name, home) = (parsed(&mut item, NAME)?, parsed(&mut item, HOME)?);
    Ok(Room { id, name, home, outside: to_said(&mut item, OUTSIDE), first_seen })
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Timestamp;

    #[test]
    fn a_room_comes_back() {
        let first_seen = Timestamp::parse("2026-01-11T16:00:00Z", Timestamp::MIN).expect("valid");
        let mut room = Room::new("chiyoda1-a".parse().expect("an id"), first_seen);
        assert_eq!(Room::decode(from_room(&room)).expect("a room"), room);
        room.name = Some("Bedroom".parse().expect("a label"));
        room.home = Some("chiyoda1".parse().expect("an id"));
        for outside in [None, Some(true), Some(false)] {
            room.outside = outside;
            assert_eq!(Room::decode(from_room(&room)).expect("a room"), room);
        }
    }
}
