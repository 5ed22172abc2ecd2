//! Completes readings from the registry: fills in rooms, and attaches new facts about devices. The registry function
//! learns these facts from the stored readings. Writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    About, Device, DeviceId, DeviceObservation, Label, Place, Reading, RoomId, Timestamp,
};
use runtime::registry::FoundDevices;

use crate::limits::new_names::RoomLimit;
use crate::store_request::StoreRequest;

/// Gives each reading its room, by the first rule that applies:
///
/// 1. The room that a person chose for the device. It overrides even a room that the reading names.
/// 2. The room that the reading names. Otherwise the room that the device named last in this request, unless the
///    device moved between the two readings, according to the registry.
/// 3. The room in which the registry has the device now, also for a reading of the past.
pub(crate) fn fill_in_rooms(request: &mut StoreRequest<'_>, found: &FoundDevices) {
    let mut readings: Vec<&mut Reading> = request.readings_mut().collect();
    if readings.iter().any(|reading| reading.named_room.is_some()) {
        carry_named_rooms(&mut readings, found);
    }
    readings.into_iter().for_each(|reading| found.fill_in_room(reading));
}

/// Sorts the readings by device and timestamp. Gives each reading without a room the room that its device
/// named last before it.
fn carry_named_rooms(readings: &mut [&mut Reading], found: &FoundDevices) {
    readings.sort_by(|a, b| (&a.device, a.at).cmp(&(&b.device, b.at)));
    for of_device in readings.chunk_by_mut(|a, b| a.device == b.device) {
        let moved = match found.device(&of_device[0].device).map(Device::place) {
            Some(Place::Learned(_, since)) => Some(*since),
            _ => None,
        };

        let mut named: Option<(RoomId, Timestamp)> = None;
        for reading in of_device {
            let has_moved =
                |after: Timestamp| moved.is_some_and(|moved| after < moved && moved <= reading.at);
            if let Some(room) = &reading.named_room {
                named = Some((room.clone(), reading.at));
            } else if let Some((room, at)) = &named
                && !has_moved(*at)
            {
                // Sets `room` but leaves `named_room` empty: a device moves only to a room that its sender named.
                reading.room = Some(room.clone());
            }
        }
    }
}

/// Removes from each reading the facts about its device and room that the registry or an earlier reading has already.
/// `introduced` are the devices that the sender introduces; their readings also name the sender.
///
/// If only the room of a device was looked up, no fact is attached: the registry has all facts of the reading already.
pub(crate) fn keep_only_news(
    request: &mut StoreRequest<'_>,
    found: &FoundDevices,
    introduced: &BTreeSet<DeviceId>,
    room_limit: &RoomLimit,
    now: Timestamp,
) {
    let sender = request.counted_sender.map(|sender| sender.name.clone());
    let mut said = SaidSoFar::of(found);

    // Most readings say nothing new, and the readings of a device follow one another. A reading of the same device and
    // room as the last one needs no look-up.
    let mut last_known: Option<&Reading> = None;
    for reading in request.readings_mut() {
        let is_like = |last: &Reading| {
            (&last.device, &last.named_room) == (&reading.device, &reading.named_room)
        };
        if reading.about.is_none() && (last_known.is_some_and(is_like) || is_known(reading, found))
        {
            last_known = Some(reading);
            continue;
        }

        let mut news = said.news_of(reading, room_limit, now);
        if introduced.contains(&reading.device) {
            // Every reading of the device names the sender, because a single reading might fail to be stored.
            news.introduced_by.clone_from(&sender);
        }
        reading.about = (!news.is_empty()).then(|| Box::new(news));
    }
}

/// Whether the device and the named room of a reading are registered.
fn is_known(reading: &Reading, found: &FoundDevices) -> bool {
    found.is_registered(&reading.device)
        && reading.named_room.as_ref().is_none_or(|room| found.has_room(room))
}

/// The registry as it will be when the readings that were handled so far are applied.
struct SaidSoFar<'a> {
    found: &'a FoundDevices,
    /// The devices that the readings change, as they are after the readings that were handled so far.
    devices: BTreeMap<DeviceId, Device>,
    introduced_rooms: BTreeSet<RoomId>,
    named_rooms: BTreeSet<RoomId>,
}

impl<'a> SaidSoFar<'a> {
    fn of(found: &'a FoundDevices) -> Self {
        Self {
            found,
            devices: BTreeMap::new(),
            introduced_rooms: BTreeSet::new(),
            named_rooms: BTreeSet::new(),
        }
    }

    /// Takes the facts out of a reading, and returns the new ones.
    fn news_of(&mut self, reading: &mut Reading, limit: &RoomLimit, now: Timestamp) -> About {
        let mut about = reading.about.take().map(|about| *about).unwrap_or_default();
        let room_name = about.room_name.take();
        About {
            introduces_room: self.introduce_room(reading, limit, now),
            room_name: self.news_of_room(reading, room_name),
            ..self.news_of_device(reading, &about).unwrap_or_default()
        }
    }

    /// The facts in `about` that the device does not have yet; `None` without such facts.
    fn news_of_device(&mut self, reading: &Reading, about: &About) -> Option<About> {
        let id = &reading.device;
        let known = match self.devices.get(id).or_else(|| self.found.device(id)) {
            Some(known) => known,
            None if self.found.is_registered(id) => return None,
            // A new device with the metrics and the room of its first reading. It has none of the facts in `about`, so
            // all are news. Each room counts as registered here, because `introduce_room` decides about rooms.
            None => {
                let new = DeviceObservation::of(reading).new_device(id.clone(), |_| true);
                self.devices.entry(id.clone()).or_insert(new)
            }
        };

        let news = known.news(about)?;
        let described = known.with_about(&news)?;
        self.devices.insert(id.clone(), described);
        Some(news)
    }

    /// Notes the room of a reading if this is the first reading that names it, and if the device may still introduce a
    /// room. Returns whether the reading introduces the room.
    fn introduce_room(&mut self, reading: &Reading, limit: &RoomLimit, now: Timestamp) -> bool {
        let Some(room) = &reading.named_room else { return false };
        if self.found.has_room(room) || self.introduced_rooms.contains(room) {
            return false;
        }

        let known = self.found.device(&reading.device);
        let is_introduced = limit.introduce(&reading.device, room, known, now);
        if is_introduced {
            self.introduced_rooms.insert(room.clone());
        }
        is_introduced
    }

    /// The name that a reading has for its room, if the room is new or has no name.
    fn news_of_room(&mut self, reading: &Reading, name: Option<Label>) -> Option<Label> {
        let room = reading.named_room.as_ref()?;
        let name = name.filter(|_| self.found.lacks_name(room))?;
        self.named_rooms.insert(room.clone()).then_some(name)
    }
}
