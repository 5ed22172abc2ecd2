//! The registry in memory: read at cold start, and again when it is too old or lacks something. Writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use domain::{DeletedDevice, Deletion, Device, DeviceId, Room, RoomId, Timestamp};
use table::{
    Invocation, Listing, LookUpRegistry, MAX_CACHED_ENTRIES, ReadRegistry, Session, StoreError,
    StoreResult,
};

use super::place_cache::PlaceCache;
use super::{PLACE_AGE_FACTOR, Snapshot};
use crate::clock::{Clock, Deadline};
use crate::telemetry::{Telemetry, WideEvent};

/// The time limit for reading the registry at cold start, before the first request.
const COLD_START: Duration = Duration::from_secs(5);
/// The time limits for a refresh while there is a stale snapshot to answer with: the first, and the longest after
/// refreshes that failed. A large registry may take longer than the first, and would never be read again.
const FIRST_REFRESH: Duration = Duration::from_secs(2);
const MAX_REFRESH: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// How long a list that was too long for memory counts as such: to find out again costs hundreds of read
/// units.
const OVERSIZE_MAX_AGE: Duration = Duration::from_hours(1);
/// How old the registry of a list may be where a read costs at most [`MAX_LIST_HALVES`].
const MAX_LIST_AGE: Duration = Duration::from_secs(2);
/// The half read units that a list may take to have the registry of this moment: four units.
const MAX_LIST_HALVES: u64 = 8;
/// The largest number of devices, or rooms, that a process keeps, with those that are new since the
/// registry was read.
const MAX_KEPT: usize = 2 * MAX_CACHED_ENTRIES;
/// So many devices and rooms, some 4 read units, are read again at most once a second because one is missing. Twice as
/// many at most every two seconds, and fewer at once.
const ENTRIES_PER_SECOND: usize = 100;
/// How long an invocation may still store readings after the registry that it uses has become too old.
const MAX_INVOCATION: TimeDelta = TimeDelta::minutes(1);

/// The registry, cached. One process has one; it is shared by reference.
#[derive(Debug)]
pub struct CachedRegistry<C> {
    state: Mutex<State>,
    /// Held while the registry is read, so that it is read once however many ask for it.
    reading: tokio::sync::Mutex<()>,
    /// The places of devices, where memory does not hold the registry.
    pub(super) places: PlaceCache<C>,
    max_age: Duration,
    clock: C,
}

/// The state of the cache. It is locked for moments only, never while the table is asked.
#[derive(Debug, Default)]
struct State {
    current: Option<Arc<Snapshot>>,
    /// What this process has read or written itself since the registry was last asked for: an answer
    /// that was under way must not put the old back.
    kept: Kept,
    /// How many reads have begun.
    begun: u64,
    /// Which of the reads, from 1, was the last to succeed. Whoever asked before it began uses its result.
    succeeded: u64,
    /// When there were found to be more devices and more rooms than memory holds.
    too_many_devices: Option<Timestamp>,
    too_many_rooms: Option<Timestamp>,
    /// The half read units that the last read took.
    last_read_halves: u64,
    /// What keeps a table that does not answer from being asked by every request.
    back_off: Option<BackOff>,
}

/// Devices and rooms that were kept.
#[derive(Debug, Default)]
struct Kept {
    devices: BTreeMap<DeviceId, Device>,
    rooms: BTreeMap<RoomId, Room>,
    deleted: BTreeMap<DeviceId, Deletion>,
    removed_rooms: BTreeSet<RoomId>,
}

impl Kept {
    /// Changes a snapshot that was read meanwhile: what this process has written itself is newer.
    fn apply(&self, snapshot: &mut Snapshot) {
        for device in self.devices.values() {
            if snapshot.has_all_devices {
                snapshot.devices.insert(device.clone());
            }
            snapshot.deleted.remove(device.id());
        }

        if snapshot.has_all_rooms {
            snapshot.rooms.extend(self.rooms.iter().map(|(id, room)| (id.clone(), room.clone())));
        }

        for (id, deletion) in &self.deleted {
            snapshot.devices.remove(id);
            snapshot.deleted.insert(id.clone(), *deletion);
        }

        self.removed_rooms.iter().for_each(|id| snapshot.rooms.remove(id));
    }
}

/// The table did not answer; an old snapshot serves meanwhile.
#[derive(Debug, Clone, Copy)]
struct BackOff {
    pause: Duration,
    since: Timestamp,
}

impl<C: Clock> CachedRegistry<C> {
    /// A registry that is read when it is first asked for, and again once it is older than `max_age`.
    pub fn new(max_age: Duration, clock: C) -> Self {
        let place_age = max_age.saturating_mul(PLACE_AGE_FACTOR);
        Self {
            state: Mutex::default(),
            reading: tokio::sync::Mutex::new(()),
            places: PlaceCache::new(place_age, clock.clone()),
            max_age,
            clock,
        }
    }

    /// Reads the registry at cold start, and logs that as `event`. Where it fails, the first request
    /// tries again.
    pub async fn load(&self, store: &impl ReadRegistry, event: &'static str, to: &Telemetry) {
        let mut log = WideEvent::begin(event);
        let invocation = Invocation::until(Deadline::after(COLD_START));
        let session = Session::new(store, &invocation, self.clock.now());
        match self.snapshot(session, &mut log).await {
            Ok(snapshot) => {
                log.set("registry.devices", snapshot.devices.len());
                log.set("registry.rooms", snapshot.rooms.len());
            }
            Err(error) => log.warn("registry.error", &error),
        }
        log.emit(&invocation, to, &self.clock);
    }

    /// The registry: from memory while it is fresh, else read from the table.
    ///
    /// Where the table cannot be read, the stale snapshot is returned and the error logged, and for a while,
    /// longer each time, the table is not asked.
    pub async fn snapshot(
        &self,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Arc<Snapshot>> {
        let Some(current) = self.current() else {
            let _reading = self.reading.lock().await;
            return self.read_unless(|_| true, session, log).await;
        };
        let will_do = |snapshot: &Snapshot| self.age(snapshot) < self.max_age || self.must_wait();
        if will_do(&current) {
            return Ok(with_unreadable_logged(current, log));
        }

        // One reader reads for all; but while the table does not answer, no request waits for that.
        let _reading = match self.reading.try_lock() {
            Ok(reading) => reading,
            Err(_) if self.state().back_off.is_some() => {
                return Ok(with_unreadable_logged(current, log));
            }
            Err(_) => self.reading.lock().await,
        };
        Ok(self.read_or_stale(current, will_do, session, log).await)
    }

    /// The registry for a list, which has what was registered a moment ago: read anew if it is older than
    /// `MAX_LIST_AGE`, where a read costs little. However many ask at once, it is read once. An empty one is read each
    /// time: whoever has just sent a first reading looks for its device.
    ///
    /// If the table cannot be read, returns the stale snapshot.
    pub async fn snapshot_for_list(
        &self,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Arc<Snapshot>> {
        let asked = self.state().begun;
        let snapshot = self.snapshot(session, log).await?;
        let is_new = |snapshot: &Snapshot| {
            self.age(snapshot) < MAX_LIST_AGE && !snapshot.is_empty()
                || self.state().succeeded > asked
        };
        let is_cheap = snapshot.has_all_devices
            && snapshot.has_all_rooms
            && self.state().last_read_halves <= MAX_LIST_HALVES;
        if is_new(&snapshot) || self.must_wait() || !is_cheap {
            return Ok(snapshot);
        }

        let _reading = self.reading.lock().await;
        Ok(self.read_or_stale(snapshot, is_new, session, log).await)
    }

    /// The registry as it is now or later, whatever its age in memory: read anew, or by somebody else who began after
    /// this call.
    pub async fn refresh(
        &self,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Arc<Snapshot>> {
        let asked = self.state().begun;
        let _reading = self.reading.lock().await;
        self.read_unless(|_| self.state().succeeded > asked, session, log).await
    }

    /// The registry for a question about a device or room that memory lacks: read anew, unless it was read a moment ago.
    /// The moment is a second for each hundred devices and rooms: in a smaller registry, a device of another instance
    /// is found at once.
    pub async fn refresh_for_missing(
        &self,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Arc<Snapshot>> {
        let asked = self.state().begun;
        let is_new = |snapshot: &Snapshot| {
            let seconds = (entries(snapshot) / ENTRIES_PER_SECOND) as u64;
            self.age(snapshot) < Duration::from_secs(seconds).min(self.max_age)
                || self.state().succeeded > asked
        };
        if let Some(current) = self.current().filter(|snapshot| is_new(snapshot)) {
            return Ok(with_unreadable_logged(current, log));
        }

        let _reading = self.reading.lock().await;
        self.read_unless(is_new, session, log).await
    }

    /// Reads the registry again for a question about something that it lacks, and tells whether its devices have changed.
    /// Where memory does not hold all devices, those that are asked about have been read from the table.
    pub async fn has_news(
        &self,
        before: &Snapshot,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<bool> {
        if !before.has_all_devices {
            return Ok(false);
        }
        let now = self.refresh_for_missing(session, log).await?;
        Ok(!now.devices.values().eq(before.devices.values()))
    }

    /// Whether [`snapshot`](Self::snapshot) would now read more than a hundred devices and rooms, because it is too old:
    /// then a question about a few of them is better asked of the table.
    pub fn would_read_many(&self) -> bool {
        self.current().is_some_and(|snapshot| {
            entries(&snapshot) > ENTRIES_PER_SECOND
                && self.age(&snapshot) >= self.max_age
                && !self.must_wait()
        })
    }

    /// One device, from the cache or else from the table: it may be new. Then the cache has it too, with what
    /// else is new, such as its room, as [`refresh_for_missing`](Self::refresh_for_missing) says. Where a large
    /// registry would have to be read again only for it, it is read alone. An item that cannot be read is an error
    /// either way, of questions about this device.
    pub async fn device(
        &self,
        id: &DeviceId,
        session: Session<'_, impl ReadRegistry + LookUpRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Option<Device>> {
        if self.would_read_many() {
            return self.device_alone(id, session, log).await;
        }

        let snapshot = self.snapshot(session, log).await?;
        if let Some(device) = snapshot.devices.get(id) {
            return Ok(Some(device.clone()));
        }

        let found = Box::pin(session.device(id)).await?;
        if let Some(device) = found.as_ref().filter(|_| snapshot.has_all_devices) {
            let now = self.refresh_for_missing(session, log).await?;
            if !now.devices.contains_key(id) && !now.deleted.contains_key(id) {
                self.keep_device(device.clone());
            }
        }
        Ok(found)
    }

    /// A device as the table has it; where the table does not answer, as memory has it.
    async fn device_alone(
        &self,
        id: &DeviceId,
        session: Session<'_, impl LookUpRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Option<Device>> {
        match Box::pin(session.device(id)).await {
            Ok(found) => {
                found.iter().for_each(|device| self.keep_device(device.clone()));
                Ok(found)
            }
            // Memory would hide it for as long as nobody asks for the whole registry.
            Err(error) if error.is_permanent() => Err(error),
            // What is in memory serves, as for any other question. The whole registry is not read in the place
            // of one device: that would ask a busy table for the most of all.
            Err(error) => {
                let remembered =
                    self.current().and_then(|snapshot| snapshot.devices.get(id).cloned());
                log.warn("registry.error", &error);
                remembered.map(Some).ok_or(error)
            }
        }
    }

    /// A room and a registry with its devices. A room that memory lacks is read by its key.
    pub async fn room(
        &self,
        id: &RoomId,
        session: Session<'_, impl ReadRegistry + LookUpRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Option<(Room, Arc<Snapshot>)>> {
        let snapshot = self.snapshot(session, log).await?;
        if let Some(room) = snapshot.rooms.get(id) {
            return Ok(Some((room.clone(), snapshot)));
        }
        let Some(room) = Box::pin(session.room(id)).await? else { return Ok(None) };
        if !snapshot.has_all_rooms {
            return Ok(Some((room, snapshot)));
        }
        // It is not kept: while it is missing, the registry is asked for its devices again.
        Ok(Some((room, self.refresh_for_missing(session, log).await?)))
    }

    /// The time without anything of a deleted device after which its deletion ends. An instance that stores readings may
    /// remember the device for so long.
    pub fn deletion_quiet(&self, snapshot: &Snapshot) -> TimeDelta {
        let factor = if snapshot.has_all_devices { 1 } else { PLACE_AGE_FACTOR };
        let age = TimeDelta::from_std(self.max_age.saturating_mul(factor));
        let age = age.unwrap_or(TimeDelta::MAX);
        domain::DELETION_QUIET.max(age.checked_add(&MAX_INVOCATION).unwrap_or(age))
    }

    /// The registry in memory if it will do, else read. Whoever calls it holds `reading`.
    async fn read_unless(
        &self,
        will_do: impl Fn(&Snapshot) -> bool,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Arc<Snapshot>> {
        let snapshot = match self.current().filter(|snapshot| will_do(snapshot)) {
            Some(current) => current,
            None => self.read(session).await?,
        };
        Ok(with_unreadable_logged(snapshot, log))
    }

    /// The registry in memory if it will do, else read. If the table does not answer in time, the error is logged and the
    /// stale one serves. Whoever calls it holds `reading`.
    async fn read_or_stale(
        &self,
        stale: Arc<Snapshot>,
        will_do: impl Fn(&Snapshot) -> bool,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> Arc<Snapshot> {
        // The longer, the more refreshes have failed.
        let pause = self.state().back_off.map_or(Duration::ZERO, |back_off| back_off.pause);
        let limit = (pause * 2).clamp(FIRST_REFRESH, MAX_REFRESH);
        let read = tokio::time::timeout(limit, self.read_unless(will_do, session, log)).await;

        read.unwrap_or(Err(StoreError::TimedOut)).unwrap_or_else(|error| {
            let since = self.clock.now();
            let pause = if pause.is_zero() { FIRST_PAUSE } else { (pause * 2).min(MAX_PAUSE) };
            self.state().back_off = Some(BackOff { pause, since });
            log.warn("registry.error", &error);
            with_unreadable_logged(stale, log)
        })
    }

    /// Reads the registry and puts it into the place of what is in memory. Whoever calls it holds `reading`.
    async fn read(&self, session: Session<'_, impl ReadRegistry>) -> StoreResult<Arc<Snapshot>> {
        let read_at = self.clock.now();
        let halves_before = read_halves(session.invocation);
        let (number, too_many_devices, too_many_rooms) = {
            let mut state = self.state();
            state.begun += 1;
            state.kept = Kept::default();
            let recent = |found: Option<Timestamp>| {
                found.filter(|found| self.since(*found) < OVERSIZE_MAX_AGE)
            };
            (state.begun, recent(state.too_many_devices), recent(state.too_many_rooms))
        };

        // One after the other, so that a cold start makes one connection, not two. On the heap, because
        // every handler's future contains this one, and a debug build keeps each of them on the stack.
        let devices = match too_many_devices {
            Some(_) => None,
            None => bounded(Box::pin(session.devices()).await?),
        };
        let rooms = match too_many_rooms {
            Some(_) => None,
            None => bounded(Box::pin(session.rooms()).await?),
        };

        // Locked until the snapshot is in its place, so that nothing is kept in the one that it replaces.
        let mut state = self.state();
        let found_now =
            |fits: bool, before: Option<Timestamp>| (!fits).then(|| before.unwrap_or(read_at));
        state.too_many_devices = found_now(devices.is_some(), too_many_devices);
        state.too_many_rooms = found_now(rooms.is_some(), too_many_rooms);

        let mut snapshot = Snapshot::of(devices, rooms, read_at);
        state.kept.apply(&mut snapshot);
        let snapshot = Arc::new(snapshot);

        state.last_read_halves = read_halves(session.invocation).saturating_sub(halves_before);
        state.back_off = None;
        state.current = Some(Arc::clone(&snapshot));
        state.succeeded = number;
        Ok(snapshot)
    }

    /// Takes over a device that this process has just read or written. If memory does not hold the registry, only the
    /// device's place is remembered.
    pub fn keep_device(&self, device: Device) {
        let mut state = self.state();
        let State { current, kept, .. } = &mut *state;
        if current.as_ref().is_some_and(|snapshot| !snapshot.has_all_devices) {
            return self.places.keep(&device);
        }

        if kept.devices.len() < MAX_KEPT {
            kept.devices.insert(device.id().clone(), device.clone());
        }

        kept.deleted.remove(device.id());
        if let Some(snapshot) = current.as_mut().filter(|now| now.devices.len() < MAX_KEPT) {
            let snapshot = Arc::make_mut(snapshot);
            snapshot.deleted.remove(device.id());
            snapshot.devices.insert(device);
        }
    }

    /// Forgets a device whose deletion this process has just begun or met.
    pub fn keep_deleted(&self, DeletedDevice { id, deletion }: DeletedDevice) {
        let mut state = self.state();
        let State { current, kept, .. } = &mut *state;
        kept.devices.remove(&id);
        if kept.deleted.len() < MAX_KEPT {
            kept.deleted.insert(id.clone(), deletion);
        }
        if let Some(snapshot) = current.as_mut() {
            let snapshot = Arc::make_mut(snapshot);
            snapshot.devices.remove(&id);
            if snapshot.deleted.len() < MAX_KEPT {
                snapshot.deleted.insert(id, deletion);
            }
        }
    }

    /// Takes over a room that this process has just read or written. If memory does not hold the rooms, only its id is
    /// remembered.
    pub fn keep_room(&self, room: Room) {
        let mut state = self.state();
        let State { current, kept, .. } = &mut *state;
        if current.as_ref().is_some_and(|snapshot| !snapshot.has_all_rooms) {
            return self.places.keep_room(&room.id);
        }

        if kept.rooms.len() < MAX_KEPT {
            kept.rooms.insert(room.id.clone(), room.clone());
        }

        kept.removed_rooms.remove(&room.id);
        if let Some(snapshot) = current.as_mut().filter(|now| now.rooms.len() < MAX_KEPT) {
            Arc::make_mut(snapshot).rooms.insert(room.id.clone(), room);
        }
    }

    /// Forgets a room that this process has just removed.
    pub fn forget_room(&self, id: &RoomId) {
        let mut state = self.state();
        let State { current, kept, .. } = &mut *state;
        kept.rooms.remove(id);
        if kept.removed_rooms.len() < MAX_KEPT {
            kept.removed_rooms.insert(id.clone());
        }
        if let Some(snapshot) = current.as_mut() {
            Arc::make_mut(snapshot).rooms.remove(id);
        }
    }

    /// The registry as far as this process knows it, however old.
    pub fn current(&self) -> Option<Arc<Snapshot>> {
        self.state().current.clone()
    }

    /// How old a snapshot is now.
    fn age(&self, snapshot: &Snapshot) -> Duration {
        self.since(snapshot.read_at)
    }

    /// The time since `then`; for ever where the clock has been set back behind it.
    fn since(&self, then: Timestamp) -> Duration {
        let millis = u64::try_from(self.clock.now().as_millis() - then.as_millis());
        millis.map_or(Duration::MAX, Duration::from_millis)
    }

    /// Whether the table has not answered lately.
    fn must_wait(&self) -> bool {
        let back_off = self.state().back_off;
        back_off.is_some_and(|back_off| self.since(back_off.since) < back_off.pause)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The registry, whose items that could not be read are logged.
fn with_unreadable_logged(snapshot: Arc<Snapshot>, log: &mut WideEvent) -> Arc<Snapshot> {
    if !snapshot.unreadable.is_empty() {
        log.set("registry.unreadable", snapshot.unreadable.to_vec());
    }
    snapshot
}

/// The number of devices and rooms in memory.
fn entries(snapshot: &Snapshot) -> usize {
    snapshot.devices.len() + snapshot.rooms.len()
}

/// The half read units of an invocation so far. What is read beside the registry at the same time counts as well.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "units are few")]
fn read_halves(invocation: &Invocation) -> u64 {
    (invocation.read_units() * 2.0) as u64
}

/// A list, if memory holds it.
fn bounded<T>(listing: Listing<T>) -> Option<Listing<T>> {
    (listing.found.len() <= MAX_CACHED_ENTRIES).then_some(listing)
}

#[cfg(test)]
mod tests;
