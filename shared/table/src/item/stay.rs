//! The two items of a stay, in the partitions of its device and of its room; and the copy of the newest stay in the
//! device's item.

use super::attribute::{SINCE, STAY_ROOM, UNTIL};
use super::fields::{other_kind, parse_key};
use super::form::{At, Maybe, Text, part};
use super::kind::{group, take};
use super::{FromItem, Item, ItemError, with_key};
use crate::keys::Key;
use domain::{DeviceStay, Stay};

group! { Stay { room: Text = STAY_ROOM, since: At = SINCE, until: Maybe<At> = UNTIL } }

/// The two items of a stay. They are always written together.
pub fn from_stay(of: &DeviceStay) -> [Item; 2] {
    let DeviceStay { device, stay } = of;
    let of_device = Key::StayOf(device.clone(), stay.since);
    let in_room = Key::StayIn(stay.room.clone(), stay.since, device.clone());
    let until = (UNTIL, part::<Maybe<At>, _>(&stay.until));
    [
        with_key(&of_device, [(STAY_ROOM, part::<Text, _>(&stay.room)), until.clone()]),
        with_key(&in_room, [until]),
    ]
}

impl FromItem for DeviceStay {
    fn from_item(mut item: Item) -> Result<Self, ItemError> {
        let (device, room, since) = match parse_key(&item)? {
            Key::StayOf(device, since) => (device, take::<Text, _>(&mut item, STAY_ROOM)?, since),
            Key::StayIn(room, since, device) => (device, room, since),
            _ => return Err(other_kind(&item)),
        };
        let until = take::<Maybe<At>, _>(&mut item, UNTIL)?;
        Ok(Self { device, stay: Stay { room, since, until } })
    }
}
