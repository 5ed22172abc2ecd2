//! Notes which rooms readings name before a rollup of them is stored: so whoever sees the rollup can find the
//! device by its room. Reads no reading.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use domain::{DeviceId, Month, RoomId, Timestamp};
use table::{
    Expected, Invocation, NoteSeen, Seen, StoreError, StoreResult, StoredReading, StoredRollup,
};

/// The rooms of some readings of a device, each with the month in which a reading named it.
pub type NamedRooms = BTreeSet<(RoomId, Month)>;

/// The rooms that are known to be noted, so that the table is asked once in six hours and an instance for a device,
/// a room and a month.
///
/// An entry is a hash with a key of the process: 16 bytes, so that the rooms of a fleet fit. It does not stay true
/// for ever: a deletion of the device removes what is noted, and the device may come again.
#[derive(Debug, Default)]
pub struct SeenRooms {
    noted: Mutex<HashMap<u64, Timestamp>>,
    hasher: RandomState,
}

/// The time for which an entry counts.
const MAX_AGE: TimeDelta = TimeDelta::hours(6);

/// The largest number of entries; all are forgotten then.
const MAX_NOTED: usize = 1_000_000;
/// The largest number of attempts at an item that keeps changing.
const MAX_ATTEMPTS: usize = 8;

impl SeenRooms {
    /// Whether it is known that a reading's room is noted.
    #[must_use]
    pub fn knows(&self, device: &DeviceId, room: &RoomId, month: Month, now: Timestamp) -> bool {
        let noted = self.noted().get(&self.key(device, room, month)).copied();
        noted.is_some_and(|at| now.since(at) < MAX_AGE)
    }

    /// Notes the rooms that readings of a device name. Done twice, or by many at once, it is the same.
    pub async fn note(
        &self,
        store: &impl NoteSeen,
        device: &DeviceId,
        named: &NamedRooms,
        now: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        let mut unknown: BTreeMap<&RoomId, (Month, Month)> = BTreeMap::new();
        for (room, month) in named.iter().filter(|(room, it)| !self.knows(device, room, *it, now)) {
            let months = unknown.entry(room).or_insert((*month, *month));
            *months = (months.0.min(*month), months.1.max(*month));
        }
        for (room, months) in &unknown {
            widen(store, device, room, *months, invocation).await?;
        }
        let mut noted = self.noted();
        if noted.len() >= MAX_NOTED {
            noted.clear();
        }
        let found = named.iter().filter(|(room, _)| unknown.contains_key(room));
        noted.extend(found.map(|(room, month)| (self.key(device, room, *month), now)));
        Ok(())
    }

    fn key(&self, device: &DeviceId, room: &RoomId, month: Month) -> u64 {
        self.hasher.hash_one((device, room, month))
    }

    fn noted(&self) -> MutexGuard<'_, HashMap<u64, Timestamp>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn widen(
    store: &impl NoteSeen,
    device: &DeviceId,
    room: &RoomId,
    months: (Month, Month),
    invocation: &Invocation,
) -> StoreResult<()> {
    for _ in 0..MAX_ATTEMPTS {
        let (new, expected) = match store.seen(room, device, invocation).await? {
            Some(known) if known.covers(months) => return Ok(()),
            Some(known) => (known.widened(months), Expected::Version(known.version)),
            None => {
                let begun = Seen::begun(room.clone(), device.clone(), months.0);
                (Seen { last: months.1, ..begun }, Expected::Absent)
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
