//! A stay's two items, among those of its device and among those in its room; and the copy of the newest in
//! the device's item.

use super::attribute::{SINCE, STAY, STAY_ROOM, UNTIL};
use super::fields::{other_kind, parse_key, parsed, put, timestamp};
use super::{Attribute, Decode, Item, ItemError, key};
use crate::keys::Key;
use domain::{DeviceStay, Stay};

/// The items of a stay, which are only ever written together.
#[must_use]
pub fn from_stay(of: &DeviceStay) -> [Item; 2] {
    let DeviceStay { device, stay } = of;
    let mut of_device = key(&Key::StayOf(device.clone(), stay.since));
    put(&mut of_device, STAY_ROOM, Some(stay.room.to_string()));
    let mut in_room = key(&Key::StayIn(stay.room.clone(), stay.since, device.clone()));
    for item in [&mut of_device, &mut in_room] {
        put(item, UNTIL, stay.until.map(|until| until.to_string()));
    }
    [of_device, in_room]
}

impl Decode for DeviceStay {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let (device, room, since) = match parse_key(&item)? {
            Key::StayOf(device, since) => {
                let room = parsed(&mut item, STAY_ROOM)?.ok_or(ItemError::Missing(STAY_ROOM))?;
                (device, room, since)
            }
            Key::StayIn(room, since, device) => (device, room, since),
            _ => return Err(other_kind(&item)),
        };
        let until = timestamp(&mut item, UNTIL)?;
        Ok(Self { device, stay: Stay { room, since, until } })
    }
}

/// The attribute of a device's newest stay.
#[must_use]
pub fn newest_stay(stay: &Stay) -> Attribute {
    let mut item = Item::new();
    put(&mut item, STAY_ROOM, Some(stay.room.to_string()));
    put(&mut item, SINCE, Some(stay.since.to_string()));
    put(&mut item, UNTIL, stay.until.map(|until| until.to_string()));
    Attribute::M(item)
}

pub(super) fn to_newest_stay(item: &mut Item) -> Result<Option<Stay>, ItemError> {
    let mut stay = match item.remove(STAY) {
        None => return Ok(None),
        Some(Attribute::M(stay)) => stay,
        Some(_) => return Err(ItemError::Missing(STAY)),
    };
    let room = parsed(&mut stay, STAY_ROOM)?.ok_or(ItemError::Missing(STAY_ROOM))?;
    let since = timestamp(&mut stay, SINCE)?.ok_or(ItemError::Missing(SINCE))?;
    Ok(Some(Stay { room, since, until: timestamp(&mut stay, UNTIL)? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Timestamp;

    #[test]
    fn a_stay_comes_back_from_either_side_and_is_in_no_index() {
        let since = Timestamp::parse("2026-01-11T16:00:00Z", Timestamp::MIN).expect("a timestamp");
        let begun = Stay::begun("hall".parse().expect("an id"), since);
        for stay in [begun.clone(), begun.ended(Timestamp::MAX)] {
            let of = DeviceStay { device: "d".parse().expect("an id"), stay };
            for item in from_stay(&of) {
                assert!(!item.contains_key(crate::keys::ROOM));
                assert_eq!(DeviceStay::decode(item).expect("a stay"), of);
            }
        }
    }
}
