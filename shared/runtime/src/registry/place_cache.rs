//! Caches the rooms of registered devices, in 16 bytes a device, if the registry is too large for memory. Reads no
//! table.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::{Device, DeviceId, RoomId};

use crate::clock::Clock;

/// The largest number of slots: 32 MB.
const MAX_SLOTS: usize = 1 << 21;
/// The number of slots with which the cache begins.
const FIRST_SLOTS: usize = 1 << 10;
/// The number of consecutive slots in which a device may be.
const WAYS: usize = 16;
/// The largest number of rooms. If there would be more, the whole cache is emptied, and filled again by look-ups.
const MAX_ROOMS: usize = 1 << 17;

/// The room of a device, like its `Place` without the timestamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CachedPlace {
    pub(super) room: Option<RoomId>,
    /// Whether a person chose the room.
    pub(super) is_chosen: bool,
}

impl CachedPlace {
    /// The room of a device.
    pub(super) fn of(device: &Device) -> Self {
        let place = device.place();
        Self { room: place.room().cloned(), is_chosen: place.chosen_room().is_some() }
    }
}

/// The rooms of devices that this process has looked up or registered, each kept for a limited time.
///
/// A device is identified by a hash of 64 bits with a key of this process. Among a million devices, two have the same
/// hash with a probability of 3 in 100 million. The second device then seems to be registered, so the registry function
/// must register it. Its readings without a room get the room of the first device.
#[derive(Debug)]
pub(super) struct PlaceCache<C> {
    places: Mutex<Places>,
    hasher: RandomState,
    max_age: Duration,
    clock: C,
}

#[derive(Debug)]
struct Places {
    max_slots: usize,
    slots: Vec<Slot>,
    taken: usize,
    /// The rooms, each with the second at which it was last known to be registered.
    rooms: Vec<(RoomId, u32)>,
    numbers: HashMap<RoomId, u32>,
}

/// One device; 16 bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    hash: u64,
    /// 0 without a room, else twice the number of the room, counted from 1. Plus one if a person chose the room.
    room: u32,
    /// When the device was looked up, in seconds; 0 if the slot is free.
    looked_up: u32,
}

impl<C: Clock> PlaceCache<C> {
    /// An empty cache.
    pub(super) fn new(max_age: Duration, clock: C) -> Self {
        let places = Mutex::new(Places::of_at_most(MAX_SLOTS));
        Self { places, hasher: RandomState::new(), max_age, clock }
    }

    /// The room of a device, if it is cached and not too old.
    pub(super) fn get(&self, id: &DeviceId) -> Option<CachedPlace> {
        let (hash, now) = (self.hasher.hash_one(id.as_str()), self.now());
        let places = self.places();
        let slot = places.slots_of(hash)?.iter().find(|slot| slot.is_of(hash))?;
        if !self.is_new(slot.looked_up, now) {
            return None;
        }
        let room = (slot.room / 2).checked_sub(1).map(|n| places.rooms[n as usize].0.clone());
        Some(CachedPlace { room, is_chosen: slot.room % 2 == 1 })
    }

    /// Caches the current room of a device.
    pub(super) fn keep(&self, device: &Device) {
        let CachedPlace { room, is_chosen } = CachedPlace::of(device);
        let mut places = self.places();
        let number = room.map_or(0, |room| places.number(&room, self.now()) + 1);
        let room = 2 * number + u32::from(is_chosen);
        let hash = self.hasher.hash_one(device.id().as_str());
        places.put(Slot { hash, room, looked_up: self.now() });
    }

    /// Whether a room is cached as registered. An old entry does not count: another instance may have removed the room.
    pub(super) fn has_room(&self, room: &RoomId) -> bool {
        let places = self.places();
        let number = places.numbers.get(room);
        number.is_some_and(|n| self.is_new(places.rooms[*n as usize].1, self.now()))
    }

    /// Caches that a room is registered now.
    pub(super) fn keep_room(&self, room: &RoomId) {
        self.places().number(room, self.now());
    }

    /// Whether an entry is not too old if it was looked up at this second.
    fn is_new(&self, looked_up: u32, now: u32) -> bool {
        let age = now.checked_sub(looked_up);
        age.is_some_and(|age| Duration::from_secs(age.into()) < self.max_age)
    }

    /// The clock's time in seconds, at least 1, because 0 marks a free slot.
    fn now(&self) -> u32 {
        let seconds = self.clock.now().as_millis() / 1_000;
        u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    const fn is_of(&self, hash: u64) -> bool {
        self.looked_up != 0 && self.hash == hash
    }
}

impl Places {
    fn of_at_most(max_slots: usize) -> Self {
        Self { max_slots, slots: Vec::new(), taken: 0, rooms: Vec::new(), numbers: HashMap::new() }
    }

    /// The index of the first slot for a hash.
    fn begin(&self, hash: u64) -> usize {
        let sets = self.slots.len() / WAYS;
        usize::try_from(hash % sets as u64).expect("less than the number of sets") * WAYS
    }

    fn slots_of(&self, hash: u64) -> Option<&[Slot]> {
        if self.slots.is_empty() {
            return None;
        }
        let begin = self.begin(hash);
        Some(&self.slots[begin..begin + WAYS])
    }

    /// Replaces the slot of the same device, else a free slot, else the slot whose device was looked up longest ago.
    fn put(&mut self, new: Slot) {
        if self.taken * 2 >= self.slots.len() && self.slots.len() < self.max_slots {
            self.grow();
        }

        let begin = self.begin(new.hash);
        let set = &mut self.slots[begin..begin + WAYS];
        let own = set.iter().position(|slot| slot.is_of(new.hash));
        let oldest = (0..WAYS).min_by_key(|n| set[*n].looked_up).expect("a set is not empty");
        let slot = &mut set[own.unwrap_or(oldest)];
        self.taken += usize::from(slot.looked_up == 0);
        *slot = new;
    }

    fn grow(&mut self) {
        let number = (self.slots.len() * 2).clamp(FIRST_SLOTS, self.max_slots);
        let before = std::mem::replace(&mut self.slots, vec![Slot::default(); number]);
        self.taken = 0;
        before.into_iter().filter(|slot| slot.looked_up != 0).for_each(|slot| self.put(slot));
    }

    /// The number of a room, counted from 0. The room is cached as registered now.
    fn number(&mut self, room: &RoomId, now: u32) -> u32 {
        if let Some(number) = self.numbers.get(room) {
            self.rooms[*number as usize].1 = now;
            return *number;
        }
        if self.rooms.len() == MAX_ROOMS {
            *self = Self::of_at_most(self.max_slots);
        }

        let number = u32::try_from(self.rooms.len()).expect("at most so many rooms");
        self.rooms.push((room.clone(), now));
        self.numbers.insert(room.clone(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::TestClock;
    use domain::given::{self, at, metric, number};
    use domain::{DeviceObservation, Place, Reading, Timestamp};

    fn clock() -> TestClock {
        TestClock::at(at("2026-01-11T16:00:00Z"))
    }

    fn device(id: &str, place: Place) -> Device {
        let metrics = [(metric("co2"), number("1"))];
        let any = Reading::stored(given::device(id), Timestamp::MIN, None, metrics.into());
        let new = DeviceObservation::of(&any.expect("a reading"));
        let new = new.new_device(given::device(id), |_| true);
        new.changed(|it| it.place = place).expect("a device")
    }

    fn room(n: usize) -> RoomId {
        given::room(&format!("room-{n}"))
    }

    #[test]
    fn a_slot_is_16_bytes() {
        assert_eq!(size_of::<Slot>() * MAX_SLOTS, 32 << 20);
    }

    #[test]
    fn a_place_comes_back_until_it_is_too_old() {
        let clock = clock();
        let places = PlaceCache::new(Duration::from_hours(1), clock.clone());
        let devices = [
            device("a", Place::Unknown),
            device("b", Place::Learned(room(0), Timestamp::MIN)),
            device("c", Place::Chosen(room(1))),
        ];
        assert_eq!(places.get(devices[0].id()), None);
        devices.iter().for_each(|device| places.keep(device));
        for device in &devices {
            assert_eq!(places.get(device.id()), Some(CachedPlace::of(device)));
        }
        assert!(places.has_room(&room(0)) && !places.has_room(&room(2)));
        clock.advance(Duration::from_secs(3_599));
        let moved = device("b", Place::Learned(room(2), Timestamp::MAX));
        places.keep(&moved);
        clock.advance(Duration::from_secs(1));
        assert_eq!(places.get(devices[0].id()), None);
        assert_eq!(places.get(moved.id()), Some(CachedPlace::of(&moved)));
        clock.set(Timestamp::MIN);
        assert_eq!(places.get(moved.id()), None, "by a clock that was set back");
    }

    #[test]
    fn a_room_that_was_not_met_for_long_is_looked_up_again() {
        let clock = clock();
        let places = PlaceCache::new(Duration::from_hours(1), clock.clone());
        places.keep_room(&room(0));
        places.keep(&device("a", Place::Learned(room(1), Timestamp::MIN)));
        clock.advance(Duration::from_secs(3_599));
        assert!(places.has_room(&room(0)) && places.has_room(&room(1)));
        places.keep_room(&room(1));
        clock.advance(Duration::from_secs(1));
        assert!(!places.has_room(&room(0)) && places.has_room(&room(1)));
        clock.set(Timestamp::MIN);
        assert!(!places.has_room(&room(1)), "by a clock that was set back");
    }

    /// In the proportions of a million devices, and of three million, to all slots.
    #[test]
    fn half_as_many_devices_as_slots_are_known_and_more_take_no_more_memory() {
        let places = PlaceCache::new(Duration::from_hours(1), clock());
        *places.places() = Places::of_at_most(1 << 13);
        let one = device("d", Place::Unknown);
        let id = |n: usize| format!("d{n}").parse::<DeviceId>().expect("an id");
        let mut keep = |n: usize| {
            let place = Place::Learned(room(n % 100), Timestamp::MIN);
            let one = one.changed(|it| (it.id, it.place) = (id(n), place));
            places.keep(&one.expect("a device"));
        };
        let known = |n: usize| places.get(&id(n)).map(|known| known.room);
        (0..1 << 12).for_each(&mut keep);
        let lost = (0..1 << 12).filter(|n| known(*n).is_none()).count();
        // A few do not find a free slot among their sixteen.
        assert!(lost < 40, "{lost}");
        (1 << 12..3 << 12).for_each(&mut keep);
        assert_eq!(places.places().slots.len(), 1 << 13);
        let found = (0..3 << 12).filter_map(|n| Some((n, known(n)?)));
        let found: Vec<_> = found.collect();
        assert!(found.len() > 7 << 10 && found.iter().all(|(n, it)| *it == Some(room(n % 100))));
    }

    #[test]
    fn too_many_rooms_are_forgotten() {
        let places = PlaceCache::new(Duration::from_hours(1), clock());
        let device = device("d", Place::Learned(room(0), Timestamp::MIN));
        places.keep(&device);
        (1..MAX_ROOMS).for_each(|n| places.keep_room(&room(n)));
        assert!(places.has_room(&room(0)) && places.get(device.id()).is_some());
        places.keep_room(&room(MAX_ROOMS));
        assert!(!places.has_room(&room(0)) && places.get(device.id()).is_none());
        assert_eq!(places.places().rooms.len(), 1);
    }
}
