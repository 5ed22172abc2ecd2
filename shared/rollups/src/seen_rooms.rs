//! Notes which rooms readings name before a rollup of them is stored: so whoever sees the rollup can find the
//! device by its room. Reads no reading.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use domain::{DeviceId, Month, RoomId, Timestamp};
use table::{
    Expected, Invocation, NoteSeen, RoomVisit, StoreError, StoreResult, StoredReading, StoredRollup,
};

/// The rooms of some readings of a device, each with the month in which a reading named it.
pub type NamedRooms = BTreeSet<(RoomId, Month)>;

/// A device from its registration to its deletion. One that comes again has settings of a higher number.
#[derive(Debug, Clone, Copy)]
pub struct Registered<'a> {
    /// The id.
    pub device: &'a DeviceId,
    /// The number of its settings.
    pub settings: u64,
}

/// The rooms that are known to be noted, so that the table is asked once in six hours and an instance for a device,
/// a room and a month.
///
/// The key of an entry is a hash with a key of the process, so that the rooms of a fleet fit. An entry is of a device
/// as it was registered: its deletion removes what is noted, and the device may come again.
#[derive(Debug, Default)]
pub struct SeenRooms {
    noted: Mutex<HashMap<u64, Noted>>,
    hasher: RandomState,
}

/// That a room is noted.
#[derive(Debug, Clone, Copy)]
struct Noted {
    at: Timestamp,
    /// The number of the device's settings.
    settings: u64,
}

/// The time for which an entry counts.
const MAX_AGE: TimeDelta = TimeDelta::hours(6);

/// The largest number of entries; all are forgotten then.
const MAX_NOTED: usize = 1_000_000;
/// The largest number of attempts at an item that keeps changing.
const MAX_ATTEMPTS: usize = 8;

impl SeenRooms {
    /// Whether a reading's room has been noted, perhaps of a device that has been deleted since.
    #[must_use]
    pub fn has_noted(
        &self,
        device: &DeviceId,
        room: &RoomId,
        month: Month,
        now: Timestamp,
    ) -> bool {
        self.noted_since(self.key(device, room, month), now).is_some()
    }

    /// Notes the rooms that readings of a device name. Done twice, or by many at once, it is the same.
    pub async fn note(
        &self,
        store: &impl NoteSeen,
        Registered { device, settings }: Registered<'_>,
        named: &NamedRooms,
        now: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        let is_known = |room, month| {
            let noted = self.noted_since(self.key(device, room, month), now);
            noted.is_some_and(|noted| noted.settings == settings)
        };
        let unknown = months_of(named.iter().filter(|(room, month)| !is_known(room, *month)));
        for (room, months) in &unknown {
            widen(store, device, room, months, invocation).await?;
        }
        let mut noted = self.noted();
        if noted.len() >= MAX_NOTED {
            noted.clear();
        }
        let found = named.iter().filter(|(room, _)| unknown.contains_key(room));
        let entry = Noted { at: now, settings };
        noted.extend(found.map(|(room, month)| (self.key(device, room, *month), entry)));
        Ok(())
    }

    fn noted_since(&self, key: u64, now: Timestamp) -> Option<Noted> {
        let noted = self.noted().get(&key).copied();
        noted.filter(|noted| now.since(noted.at) < MAX_AGE)
    }

    fn key(&self, device: &DeviceId, room: &RoomId, month: Month) -> u64 {
        self.hasher.hash_one((device, room, month))
    }

    fn noted(&self) -> MutexGuard<'_, HashMap<u64, Noted>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first and the last month of each room.
pub fn months_of<'a>(
    named: impl IntoIterator<Item = &'a (RoomId, Month)>,
) -> BTreeMap<&'a RoomId, RangeInclusive<Month>> {
    let mut months: BTreeMap<_, RangeInclusive<Month>> = BTreeMap::new();
    for (room, month) in named {
        let known = months.entry(room).or_insert(*month..=*month);
        *known = *known.start().min(month)..=*known.end().max(month);
    }
    months
}

async fn widen(
    store: &impl NoteSeen,
    device: &DeviceId,
    room: &RoomId,
    months: &RangeInclusive<Month>,
    invocation: &Invocation,
) -> StoreResult<()> {
    for _ in 0..MAX_ATTEMPTS {
        let (new, expected) = match store.seen(room, device, invocation).await? {
            Some(known) if known.covers(months) => return Ok(()),
            Some(known) => (known.widened(months), Expected::Version(known.version)),
            None => {
                let begun = RoomVisit::begun(room.clone(), device.clone(), *months.start());
                (RoomVisit { last: *months.end(), ..begun }, Expected::Absent)
            }
        };
        if store.put_seen(&new, expected, invocation).await? {
            return Ok(());
        }
    }
    Err(StoreError::Contended(format!("that {device} was seen in {room}")))
}

/// The rooms that stored readings name.
#[must_use]
pub fn named_by_readings<'a>(readings: impl IntoIterator<Item = &'a StoredReading>) -> NamedRooms {
    let named = readings.into_iter().filter_map(|StoredReading { reading, .. }| {
        Some((reading.room.clone()?, Month::of(reading.at)))
    });
    named.collect()
}

/// The rooms that a rollup names. Of a day that lies in two months of UTC, each counts for both.
#[must_use]
pub fn named_by_rollup(stored: &StoredRollup) -> NamedRooms {
    let months = [stored.range.from(), stored.range.last()].map(Month::of);
    let rooms = stored.rollup.rooms.iter().flatten();
    rooms.flat_map(|room| months.map(|month| (room.clone(), month))).collect()
}
