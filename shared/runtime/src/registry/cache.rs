//! The registry in memory: read at cold start, and again if it is too old or something is missing. Writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use domain::{DeletedDevice, Deletion, Device, DeviceId, Room, RoomId, Timestamp};
use table::{
    Invocation, Listing, LookUpRegistry, MAX_CACHED_ENTRIES, ReadRegistry, Session, StoreError,
    StoreResult,
};

use super::known_facts::KnownFacts;
use super::place_cache::PlaceCache;
use super::{PLACE_AGE_FACTOR, RegistrySnapshot};
use crate::clock::{Clock, Deadline};
use crate::telemetry::{Telemetry, WideEvent};

/// The time limit for reading the registry at cold start, before the first request.
const COLD_START: Duration = Duration::from_secs(5);
/// The time limits for refreshing a stale snapshot: the first one, and, after failed refreshes, the longest one. A
/// large registry may take longer than the first limit and would otherwise never be read again.
const FIRST_REFRESH: Duration = Duration::from_secs(2);
const MAX_REFRESH: Duration = Duration::from_secs(10);
/// The pauses after failed refreshes, in which the table is not read: the first one, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// How long devices or rooms count as too many for memory. Finding out again costs hundreds of read units.
const OVERSIZE_MAX_AGE: Duration = Duration::from_hours(1);
/// The largest age of the registry for an answer that is a list, if reading again costs at most [`MAX_LIST_HALVES`].
const MAX_LIST_AGE: Duration = Duration::from_secs(2);
/// The largest cost of reading the registry again for such a list, in half read units: four units.
const MAX_LIST_HALVES: u64 = 8;
/// The largest number of devices, and of rooms, that a process keeps, including those newer than its last read.
const MAX_KEPT: usize = 2 * MAX_CACHED_ENTRIES;
/// Limits how often the registry is read again because a device or room is missing. A registry of this many devices and
/// rooms, some 4 read units, is read at most once a second. With twice as many, the registry is read at most once in
/// two seconds; with fewer, each time.
const ENTRIES_PER_SECOND: usize = 100;
/// How long an invocation may go on storing readings with a registry that has become too old.
const MAX_INVOCATION: TimeDelta = TimeDelta::minutes(1);

/// The cached registry. A process shares one cache by reference.
#[derive(Debug)]
pub struct CachedRegistry<C> {
    state: Mutex<State>,
    /// Held while the registry is read, so that concurrent requests share one read.
    read_lock: tokio::sync::Mutex<()>,
    /// The places of devices, used if memory does not hold the registry.
    pub(super) cached_places: PlaceCache<C>,
    /// The facts about these devices that the registry has.
    pub(super) known_facts: KnownFacts,
    max_age: Duration,
    clock: C,
}

/// The state of the cache. Locked for moments only, never during a request to the table.
#[derive(Debug, Default)]
struct State {
    current: Option<Arc<RegistrySnapshot>>,
    /// Devices and rooms that this process has read or written individually since the last read of the registry began.
    /// The result of that read is older, and must not replace them.
    kept: Kept,
    /// The number of reads that have begun.
    reads_begun: u64,
    /// The number of the last read that succeeded, counted from 1. If a caller noted `reads_begun` before, a greater
    /// number means that the read began after the note.
    last_success: u64,
    /// When more devices were found than memory holds; `None` if all fit.
    too_many_devices: Option<Timestamp>,
    /// When more rooms were found than memory holds; `None` if all fit.
    too_many_rooms: Option<Timestamp>,
    /// The cost of the last read, in half read units.
    last_read_halves: u64,
    /// The pause during which the table is not read, because it did not answer.
    back_off: Option<BackOff>,
}

/// Devices and rooms that this process has read, written or deleted individually.
#[derive(Debug, Default)]
struct Kept {
    devices: BTreeMap<DeviceId, Device>,
    rooms: BTreeMap<RoomId, Room>,
    deleted: BTreeMap<DeviceId, Deletion>,
    removed_rooms: BTreeSet<RoomId>,
}

impl Kept {
    /// Puts the kept devices and rooms into a snapshot. They are newer, because the snapshot was read meanwhile.
    fn apply(&self, snapshot: &mut RegistrySnapshot) {
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

/// A pause because the table did not answer. Until it ends, requests get the stale snapshot.
#[derive(Debug, Clone, Copy)]
struct BackOff {
    pause: Duration,
    since: Timestamp,
}

impl<C: Clock> CachedRegistry<C> {
    /// A registry that is read on first use, and again once the snapshot is older than `max_age`.
    pub fn new(max_age: Duration, clock: C) -> Self {
        let place_age = max_age.saturating_mul(PLACE_AGE_FACTOR);
        Self {
            state: Mutex::default(),
            read_lock: tokio::sync::Mutex::new(()),
            cached_places: PlaceCache::new(place_age, clock.clone()),
            known_facts: KnownFacts::new(place_age),
            max_age,
            clock,
        }
    }

    /// Reads the registry at cold start, and logs this as `event`. If it fails, the first request reads again.
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
    /// If the table cannot be read, returns the stale snapshot and logs the error. A pause follows in which the table
    /// is not read. It grows with each failure.
    pub async fn snapshot(
        &self,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Arc<RegistrySnapshot>> {
        let Some(current) = self.current() else {
            // If another request has read the registry while this one waited, its result is used, however old.
            let _lock = self.read_lock.lock().await;
            return self.current_if_or_read(|_| true, session, log).await;
        };

        let is_good_enough =
            |snapshot: &RegistrySnapshot| self.age(snapshot) < self.max_age || self.must_wait();
        if is_good_enough(&current) {
            return Ok(with_unreadable_logged(current, log));
        }

        // One request reads for all. If the table did not answer the last time, the other requests do not wait for it.
        let _lock = match self.read_lock.try_lock() {
            Ok(lock) => lock,
            Err(_) if self.state().back_off.is_some() => {
                return Ok(with_unreadable_logged(current, log));
            }
            Err(_) => self.read_lock.lock().await,
        };
        Ok(self.read_or_stale(current, is_good_enough, session, log).await)
    }

    /// The registry for an answer that is a list, with devices that were registered a moment ago. A registry older than
    /// `MAX_LIST_AGE` is read again if this costs little; concurrent requests share one read. An empty registry is read
    /// each time: a person who has just sent a first reading looks for the device.
    ///
    /// If the table cannot be read, returns the stale snapshot.
    pub async fn snapshot_for_list(
        &self,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Arc<RegistrySnapshot>> {
        let begun_before = self.state().reads_begun;
        let snapshot = self.snapshot(session, log).await?;
        let is_new = |snapshot: &RegistrySnapshot| {
            self.age(snapshot) < MAX_LIST_AGE && !snapshot.is_empty()
                || self.state().last_success > begun_before
        };
        let is_cheap = snapshot.has_all_devices
            && snapshot.has_all_rooms
            && self.state().last_read_halves <= MAX_LIST_HALVES;
        if is_new(&snapshot) || self.must_wait() || !is_cheap {
            return Ok(snapshot);
        }

        let _lock = self.read_lock.lock().await;
        Ok(self.read_or_stale(snapshot, is_new, session, log).await)
    }

    /// The registry as it is at the time of this call or later. Reads the table, or shares a read that began after the
    /// call.
    pub async fn refresh(
        &self,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Arc<RegistrySnapshot>> {
        let begun_before = self.state().reads_begun;
        let _lock = self.read_lock.lock().await;
        self.current_if_or_read(|_| self.state().last_success > begun_before, session, log).await
    }

    /// The registry for a request about a device or room that is not in memory. The registry is read again, unless its
    /// last read is younger than a second for each full hundred devices and rooms. So with fewer than a hundred, a
    /// device that another instance registered is found at once.
    pub async fn refresh_for_missing(
        &self,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Arc<RegistrySnapshot>> {
        let begun_before = self.state().reads_begun;
        let is_new = |snapshot: &RegistrySnapshot| {
            let seconds = (entries(snapshot) / ENTRIES_PER_SECOND) as u64;
            self.age(snapshot) < Duration::from_secs(seconds).min(self.max_age)
                || self.state().last_success > begun_before
        };
        if let Some(current) = self.current().filter(|snapshot| is_new(snapshot)) {
            return Ok(with_unreadable_logged(current, log));
        }

        let _lock = self.read_lock.lock().await;
        self.current_if_or_read(is_new, session, log).await
    }

    /// Reads the registry again for a request about something that is not in memory. Returns whether the devices have
    /// changed. If memory does not hold all devices, the request has already read the table, and the result is `false`.
    pub async fn has_news(
        &self,
        before: &RegistrySnapshot,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<bool> {
        if !before.has_all_devices {
            return Ok(false);
        }
        let now = self.refresh_for_missing(session, log).await?;
        Ok(!now.devices.values().eq(before.devices.values()))
    }

    /// Whether [`snapshot`](Self::snapshot) would now read more than a hundred devices and rooms, because the cached
    /// ones are too old. To read a few devices by themselves is then cheaper.
    pub fn would_read_many(&self) -> bool {
        self.current().is_some_and(|snapshot| {
            entries(&snapshot) > ENTRIES_PER_SECOND
                && self.age(&snapshot) >= self.max_age
                && !self.must_wait()
        })
    }

    /// One device, from memory, else from the table. If the device is new, the registry is read again as by
    /// [`refresh_for_missing`](Self::refresh_for_missing), so that memory also has the device's room. If a large
    /// registry would be read only for this device, the device is read by itself. An unreadable item of the device is
    /// always an error.
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

    /// One device from the table, or from memory if the table does not answer.
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
            // A permanent error must be returned: the device in memory would hide it until the whole registry is read.
            Err(error) if error.is_permanent() => Err(error),
            // The device in memory is returned, as for all other requests. To read the whole registry in place of one
            // device would burden a busy table even more.
            Err(error) => {
                let remembered =
                    self.current().and_then(|snapshot| snapshot.devices.get(id).cloned());
                log.warn("registry.error", &error);
                remembered.map(Some).ok_or(error)
            }
        }
    }

    /// A room, and a registry with the room's devices. A room that is not in memory is read by its key.
    pub async fn room(
        &self,
        id: &RoomId,
        session: Session<'_, impl ReadRegistry + LookUpRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Option<(Room, Arc<RegistrySnapshot>)>> {
        let snapshot = self.snapshot(session, log).await?;
        if let Some(room) = snapshot.rooms.get(id) {
            return Ok(Some((room.clone(), snapshot)));
        }
        let Some(room) = Box::pin(session.room(id)).await? else { return Ok(None) };
        if !snapshot.has_all_rooms {
            return Ok(Some((room, snapshot)));
        }
        // The room is not put into memory: as long as it is missing there, the registry is read again for its devices.
        Ok(Some((room, self.refresh_for_missing(session, log).await?)))
    }

    /// How long a deletion must find no item of its device before the deletion may end. Until then, an instance that
    /// stores readings may still remember the device.
    pub fn deletion_quiet(&self, snapshot: &RegistrySnapshot) -> TimeDelta {
        let factor = if snapshot.has_all_devices { 1 } else { PLACE_AGE_FACTOR };
        let age = TimeDelta::from_std(self.max_age.saturating_mul(factor));
        let age = age.unwrap_or(TimeDelta::MAX);
        domain::DELETION_QUIET.max(age.checked_add(&MAX_INVOCATION).unwrap_or(age))
    }

    /// The registry in memory if `is_good_enough` accepts it, else read from the table. The caller holds `read_lock`.
    async fn current_if_or_read(
        &self,
        is_good_enough: impl Fn(&RegistrySnapshot) -> bool,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Arc<RegistrySnapshot>> {
        let snapshot = match self.current().filter(|snapshot| is_good_enough(snapshot)) {
            Some(current) => current,
            None => self.read(session).await?,
        };
        Ok(with_unreadable_logged(snapshot, log))
    }

    /// Like `current_if_or_read`, but logs the error and returns `stale` if the table does not answer in time. The
    /// caller holds `read_lock`.
    async fn read_or_stale(
        &self,
        stale: Arc<RegistrySnapshot>,
        is_good_enough: impl Fn(&RegistrySnapshot) -> bool,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> Arc<RegistrySnapshot> {
        // The time limit grows with each failed refresh.
        let pause = self.state().back_off.map_or(Duration::ZERO, |back_off| back_off.pause);
        let limit = (pause * 2).clamp(FIRST_REFRESH, MAX_REFRESH);
        let read =
            tokio::time::timeout(limit, self.current_if_or_read(is_good_enough, session, log))
                .await;

        read.unwrap_or(Err(StoreError::TimedOut)).unwrap_or_else(|error| {
            let since = self.clock.now();
            let pause = if pause.is_zero() { FIRST_PAUSE } else { (pause * 2).min(MAX_PAUSE) };
            self.state().back_off = Some(BackOff { pause, since });
            log.warn("registry.error", &error);
            with_unreadable_logged(stale, log)
        })
    }

    /// Reads the registry and replaces the snapshot in memory. The caller holds `read_lock`.
    async fn read(
        &self,
        session: Session<'_, impl ReadRegistry>,
    ) -> StoreResult<Arc<RegistrySnapshot>> {
        let read_at = self.clock.now();
        let halves_before = read_halves(session.invocation);
        let (number, too_many_devices, too_many_rooms) = {
            let mut state = self.state();
            state.reads_begun += 1;
            state.kept = Kept::default();
            let recent = |found: Option<Timestamp>| {
                found.filter(|found| self.since(*found) < OVERSIZE_MAX_AGE)
            };
            (state.reads_begun, recent(state.too_many_devices), recent(state.too_many_rooms))
        };

        // The lists are read one after the other, so that a cold start makes a single connection. Boxed, because every
        // handler's future contains these futures, and a debug build keeps each of them on the stack.
        let devices = match too_many_devices {
            Some(_) => None,
            None => bounded(Box::pin(session.devices()).await?),
        };
        let rooms = match too_many_rooms {
            Some(_) => None,
            None => bounded(Box::pin(session.rooms()).await?),
        };

        // Locked until the new snapshot is in place, so that nobody adds a device to the old one meanwhile.
        let mut state = self.state();
        let too_many_since =
            |fits: bool, before: Option<Timestamp>| (!fits).then(|| before.unwrap_or(read_at));
        state.too_many_devices = too_many_since(devices.is_some(), too_many_devices);
        state.too_many_rooms = too_many_since(rooms.is_some(), too_many_rooms);

        let mut snapshot = RegistrySnapshot::of(devices, rooms, read_at);
        state.kept.apply(&mut snapshot);
        let snapshot = Arc::new(snapshot);

        state.last_read_halves = read_halves(session.invocation).saturating_sub(halves_before);
        state.back_off = None;
        state.current = Some(Arc::clone(&snapshot));
        state.last_success = number;
        Ok(snapshot)
    }

    /// Stores a device in memory that this process has just read or written. If memory does not hold all devices, only
    /// the device's room is stored.
    pub fn keep_device(&self, device: Device) {
        let mut state = self.state();
        let State { current, kept, .. } = &mut *state;
        if current.as_ref().is_some_and(|snapshot| !snapshot.has_all_devices) {
            return self.cached_places.keep(&device);
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

    /// Forgets a device whose deletion this process has just begun, or found in the table.
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

    /// Stores a room in memory that this process has just read or written. If memory does not hold all rooms, only the
    /// room's id is stored.
    pub fn keep_room(&self, room: Room) {
        let mut state = self.state();
        let State { current, kept, .. } = &mut *state;
        if current.as_ref().is_some_and(|snapshot| !snapshot.has_all_rooms) {
            return self.cached_places.keep_room(&room.id);
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

    /// The registry in memory, however old; `None` before the first read.
    pub fn current(&self) -> Option<Arc<RegistrySnapshot>> {
        self.state().current.clone()
    }

    /// How old a snapshot is now.
    fn age(&self, snapshot: &RegistrySnapshot) -> Duration {
        self.since(snapshot.read_at)
    }

    /// The time since `then`. If the clock was set back to before `then`, the longest duration.
    fn since(&self, then: Timestamp) -> Duration {
        let millis = u64::try_from(self.clock.now().as_millis() - then.as_millis());
        millis.map_or(Duration::MAX, Duration::from_millis)
    }

    /// Whether the pause after a failed read is still going on.
    fn must_wait(&self) -> bool {
        let back_off = self.state().back_off;
        back_off.is_some_and(|back_off| self.since(back_off.since) < back_off.pause)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Logs the items of a snapshot that could not be read, and returns the snapshot.
fn with_unreadable_logged(
    snapshot: Arc<RegistrySnapshot>,
    log: &mut WideEvent,
) -> Arc<RegistrySnapshot> {
    if !snapshot.unreadable.is_empty() {
        log.set("registry.unreadable", snapshot.unreadable.to_vec());
    }
    snapshot
}

/// The number of devices and rooms in memory.
fn entries(snapshot: &RegistrySnapshot) -> usize {
    snapshot.devices.len() + snapshot.rooms.len()
}

/// The half read units that an invocation has consumed so far. Concurrent reads of other items are included.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "units are few")]
fn read_halves(invocation: &Invocation) -> u64 {
    (invocation.read_units() * 2.0) as u64
}

/// The list, if it is not too long for memory.
fn bounded<T>(listing: Listing<T>) -> Option<Listing<T>> {
    (listing.found.len() <= MAX_CACHED_ENTRIES).then_some(listing)
}

#[cfg(test)]
mod tests;
