//! Notes the rooms that readings name, before a rollup of the readings is stored. So a reader of the rollup can find
//! the device by its room. Reads no reading.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::ops::RangeInclusive;

use chrono::TimeDelta;
use domain::{DeviceId, Month, RoomId, Timestamp};
use table::{
    BoundedMemory, Expected, NoteSeen, RoomVisit, Session, StoreError, StoreResult, StoredReading,
    StoredRollup,
};

/// The rooms of some readings of a device, each with the month in which a reading named it.
pub type NamedRooms = BTreeSet<(RoomId, Month)>;

/// A device from its registration to its deletion. If it is registered again, its settings have a higher number.
#[derive(Debug, Clone, Copy)]
pub struct Registered<'a> {
    /// The id.
    pub device: &'a DeviceId,
    /// The number of the device's settings.
    pub settings: u64,
}

/// The rooms that are already noted. So an instance reads the table only once in six hours for a device, a room and a
/// month.
///
/// The key of an entry is a hash with a key of the process, so that the rooms of a fleet fit into memory. An entry is
/// valid for one registration of a device: a deletion removes the notes, and the device may be registered again.
#[derive(Debug)]
pub struct SeenRooms {
    /// The number of the device's settings when the room was noted.
    noted: BoundedMemory<u64, u64>,
    hasher: RandomState,
}

impl Default for SeenRooms {
    fn default() -> Self {
        Self { noted: BoundedMemory::new(MAX_NOTED, MAX_AGE), hasher: RandomState::new() }
    }
}

/// The time for which an entry is valid.
const MAX_AGE: TimeDelta = TimeDelta::hours(6);

/// The largest number of entries. Beyond, all are forgotten.
const MAX_NOTED: usize = 1_000_000;
/// The largest number of attempts to write an item that keeps changing.
const MAX_ATTEMPTS: usize = 8;

impl SeenRooms {
    /// Whether the room of a reading has been noted, perhaps before a deletion of the device.
    pub fn has_noted(
        &self,
        device: &DeviceId,
        room: &RoomId,
        month: Month,
        now: Timestamp,
    ) -> bool {
        self.noted.get(&self.key(device, room, month), now).is_some()
    }

    /// Notes the rooms that readings of a device name. Repeated and concurrent calls give the same result.
    pub async fn note(
        &self,
        session: Session<'_, impl NoteSeen>,
        Registered { device, settings }: Registered<'_>,
        named: &NamedRooms,
    ) -> StoreResult<()> {
        let is_known = |room, month| {
            self.noted.get(&self.key(device, room, month), session.now) == Some(settings)
        };
        let unknown = months_of(named.iter().filter(|(room, month)| !is_known(room, *month)));
        for (room, months) in &unknown {
            widen(session, device, room, months).await?;
        }

        let found = named.iter().filter(|(room, _)| unknown.contains_key(room));
        let noted = found.map(|(room, month)| (self.key(device, room, *month), settings));
        self.noted.keep_all(noted, session.now);
        Ok(())
    }

    fn key(&self, device: &DeviceId, room: &RoomId, month: Month) -> u64 {
        self.hasher.hash_one((device, room, month))
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
    session: Session<'_, impl NoteSeen>,
    device: &DeviceId,
    room: &RoomId,
    months: &RangeInclusive<Month>,
) -> StoreResult<()> {
    for _ in 0..MAX_ATTEMPTS {
        let (new, expected) = match session.seen(room, device).await? {
            Some(known) if known.covers(months) => return Ok(()),
            Some(known) => (known.widened(months), Expected::Version(known.version)),
            None => {
                let begun = RoomVisit::begun(room.clone(), device.clone(), *months.start());
                (RoomVisit { last: *months.end(), ..begun }, Expected::Absent)
            }
        };
        if session.put_seen(&new, expected).await? {
            return Ok(());
        }
    }

    Err(StoreError::Contended(format!("that {device} was seen in {room}")))
}

/// The rooms that stored readings name.
pub fn named_by_readings<'a>(readings: impl IntoIterator<Item = &'a StoredReading>) -> NamedRooms {
    let named = readings.into_iter().filter_map(|StoredReading { reading, .. }| {
        Some((reading.room.clone()?, Month::of(reading.at)))
    });
    named.collect()
}

/// The rooms that a rollup names. If a day lies in two months of UTC, each room counts for both months.
pub fn named_by_rollup(stored: &StoredRollup) -> NamedRooms {
    let months = [stored.range.from(), stored.range.last()].map(Month::of);
    let rooms = stored.rollup.rooms.iter().flatten();
    rooms.flat_map(|room| months.map(|month| (room.clone(), month))).collect()
}
