//! Applies the settings of a source to its fetched readings: rooms, names, meanings of metrics, devices to leave out.
//! Reads no body.

use std::collections::BTreeSet;

use domain::{About, DeviceId, Reading};

use crate::event::{FetchedMessage, FetchedRoom};
use crate::formats::draft::{Fault, Refusal};
use crate::readings::batch::Assembled;

/// The largest number of devices that one event may have, and that a source may introduce.
pub(crate) const MAX_FETCHED_DEVICES: usize = 64;

impl FetchedMessage {
    /// Removes readings of unwanted devices, and of devices beyond the largest number. Completes all other readings.
    pub(super) fn complete(&self, assembled: &mut Assembled) {
        self.leave_out(assembled);
        self.refuse_devices(assembled);

        let Assembled { timed, arrivals, .. } = assembled;
        for reading in timed.readings.iter_mut().chain(&mut arrivals.readings) {
            self.complete_reading(reading);
        }
    }

    /// Removes and counts the readings of devices that the person who made the source does not want.
    fn leave_out(&self, assembled: &mut Assembled) {
        let Assembled { timed, arrivals, left_out, .. } = assembled;
        for placed in [timed, arrivals] {
            let unwanted =
                placed.split_off(|reading| matches!(self.room_of(&reading.device), Some(None)));

            for (reading, origins) in unwanted.readings.into_iter().zip(unwanted.origins) {
                *left_out.entry(reading.device).or_default() += origins.len();
            }
        }
    }

    /// Gives a reading the room of its device, as if the sender had named it, and facts that the payload does not have.
    fn complete_reading(&self, reading: &mut Reading) {
        let chosen = self.room_of(&reading.device).and_then(Option::as_ref);
        let room = match chosen {
            Some(chosen) => Some(chosen.room.clone()),
            None => reading.named_room.take().or_else(|| self.room.clone()),
        };
        reading.room.clone_from(&room);
        reading.named_room.clone_from(&room);

        let about = About {
            name: self.names.get(&reading.device).cloned(),
            room_name: chosen.and_then(|chosen| chosen.name.clone()),
            metrics: self.about.clone(),
            ..About::default()
        };
        reading.say(about, room.as_ref());
    }

    /// The entry of a device in `rooms`. A part without an entry has the entry of its device. `Some(None)` is an
    /// unwanted device.
    fn room_of(&self, device: &DeviceId) -> Option<&Option<FetchedRoom>> {
        let own = self.rooms.iter().filter(|(id, _)| device.is_part_of(id));
        own.max_by_key(|(id, _)| id.as_str().len()).map(|(_, room)| room)
    }

    /// Refuses the readings of devices beyond the largest number. Readings with a timestamp count first. Also refuses
    /// readings of a source's state in an answer: rules of alerts watch these states.
    fn refuse_devices(&self, assembled: &mut Assembled) {
        let mut devices = BTreeSet::new();
        let mut refusal = |reading: &Reading| {
            let device = &reading.device;
            let refused = |fault| Some(Refusal::of("device_id", fault).at(None));
            if device.is_of_source() && !self.own {
                return refused(Fault::SourceState);
            }

            if devices.len() < MAX_FETCHED_DEVICES {
                devices.insert(device.clone());
            }
            if devices.contains(device) {
                return None;
            }
            refused(Fault::TooManyFetchedDevices(MAX_FETCHED_DEVICES))
        };

        let Assembled { timed, arrivals, rejected, .. } = assembled;
        for placed in [timed, arrivals] {
            rejected.extend(placed.refuse(&mut refusal));
        }
    }
}
