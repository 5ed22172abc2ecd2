//! Writes that share a transaction with a device's own item. Writes nothing itself.

use std::collections::BTreeSet;

use domain::{Device, DeviceId, DeviceStay, Room, SearchEntry};

/// A write that is made in one transaction with the write of a device's item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Companion {
    /// Registers the room into which the device is put; refused if the room is registered already.
    RegisterRoom(Room),
    /// Stores a stay that has begun or ended, as an item of the device and an item of the room.
    KeepStay(DeviceStay),
    /// Stores an entry of the device for the attribute index.
    KeepEntry(DeviceId, SearchEntry),
    /// Deletes an entry of the device from the attribute index.
    DropEntry(DeviceId, SearchEntry),
    /// Adds a device to the meter's list of devices behind it; refused if the meter has changed since the read.
    NoteBehind(Box<Device>, DeviceId),
    /// Removes a device from the meter's list of devices behind it; refused if the meter has changed since the read.
    ForgetBehind(Box<Device>, DeviceId),
    /// Only a check: refused if the device is not behind `meter`. Without a `meter`, refused if it is behind any meter.
    StillBehind {
        /// The device, which may be unregistered.
        device: DeviceId,
        /// The meter.
        meter: Option<DeviceId>,
    },
}

/// The stays to write with a change of `old` to `new`. `old` and `new` do not show whether a room is new, so the caller
/// adds [`Companion::RegisterRoom`].
pub fn companions(old: &Device, new: &Device) -> Vec<Companion> {
    if old.stay() == new.stay() {
        return Vec::new();
    }
    let ended = old.open_stay().zip(new.stay()).and_then(|(open, newest)| {
        // The start of a new stay ends the open stay. If there is no new stay, `new` has the open stay with its end.
        (newest.since != open.since).then(|| open.ended(newest.since))
    });
    let stays = ended.into_iter().chain(new.stay().cloned());
    stays.map(|stay| Companion::KeepStay(DeviceStay { device: new.id().clone(), stay })).collect()
}

/// The entries of the attribute index to write with a change of `old` to `new`. Equal entries are not written again.
pub fn search_companions(old: &Device, new: &Device) -> Vec<Companion> {
    entry_companions(new.id(), &old.search_entries(), &new.search_entries())
}

/// The writes that turn the stored entries of a device into the wanted ones.
pub fn entry_companions(
    device: &DeviceId,
    stored: &BTreeSet<SearchEntry>,
    wanted: &BTreeSet<SearchEntry>,
) -> Vec<Companion> {
    let dropped = stored.difference(wanted);
    let dropped = dropped.map(|entry| Companion::DropEntry(device.clone(), entry.clone()));
    let kept = wanted.difference(stored);
    dropped.chain(kept.map(|entry| Companion::KeepEntry(device.clone(), entry.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::{self, at_millis, metric, number, room};
    use domain::{DeviceObservation, DevicePatch, Edit, Reading, Stay};

    fn stay(id: &str, since: i64, until: Option<i64>) -> Stay {
        Stay { room: room(id), since: at_millis(since), until: until.map(at_millis) }
    }

    #[test]
    fn an_edit_ends_the_stay_that_lasts_and_begins_another() {
        let kept = |patch: Edit<&str>, now: i64, device: &mut Device| -> Vec<Stay> {
            let room = match patch {
                Edit::Keep => Edit::Keep,
                Edit::Clear => Edit::Clear,
                Edit::Set(room) => Edit::Set(room.parse().expect("an id")),
            };
            let old = device.clone();
            let patch = DevicePatch { room, ..DevicePatch::default() };
            *device = patch.edited(device, at_millis(now)).expect("a room");
            let companions = companions(&old, device).into_iter();
            let kept = companions.map(|it| match it {
                Companion::KeepStay(DeviceStay { stay, .. }) => stay,
                other => panic!("{other:?}"),
            });
            kept.collect()
        };
        let metrics = [(metric("t"), number("1"))];
        let reading = Reading::new(given::device("d"), at_millis(0), None, metrics.into());
        let observation = DeviceObservation::of(&reading.expect("a reading"));
        let device = &mut observation.new_device(given::device("d"), |_| true);
        assert_eq!(kept(Edit::Set("a"), 5, device), [stay("a", 5, None)]);
        assert_eq!(kept(Edit::Set("a"), 6, device), []);
        assert_eq!(kept(Edit::Keep, 6, device), []);
        assert_eq!(kept(Edit::Set("b"), 7, device), [stay("a", 5, Some(7)), stay("b", 7, None)]);
        assert_eq!(kept(Edit::Clear, 9, device), [stay("b", 7, Some(9))]);
        assert_eq!(kept(Edit::Clear, 11, device), []);
        assert_eq!(kept(Edit::Set("b"), 3, device), [stay("b", 9, None)], "stays do not overlap");
        assert_eq!(kept(Edit::Set("a"), 9, device), [stay("b", 9, Some(10)), stay("a", 10, None)]);
    }
}
