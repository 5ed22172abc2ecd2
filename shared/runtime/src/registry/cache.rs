//! The registry in memory: read once at cold start, and again when it is too old. Writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::sync::Mutex;

use super::{Devices, SharedMap};
use crate::clock::Clock;
use crate::telemetry::chain;
use domain::{DeletedDevice, Deletion, Device, DeviceId, HomeId, Room, RoomId, Timestamp};
use table::{
    Invocation, Listing, MAX_CACHED_ENTRIES, ReadRegistry, Session, StoreError, StoreResult,
};

/// The devices and rooms as they were when the registry was last read, plus what this process has
/// changed itself since. A copy costs nothing: each new metric of a device and each move makes one.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Devices by id; empty if there are more than memory holds.
    pub devices: Devices,
    /// Rooms by id; empty if there are more than memory holds.
    pub rooms: SharedMap<RoomId, Room>,
    /// The devices that are being deleted, or are deleted and not forgotten yet.
    pub deleted: SharedMap<DeviceId, Deletion>,
    /// Whether these are all devices: a function's memory is bounded, the registry is not. Otherwise each
    /// device is asked of the table.
    pub has_all_devices: bool,
    /// Whether these are all rooms of the table.
    pub has_all_rooms: bool,
    /// The items that could not be read, each with its key and why.
    pub unreadable: Arc<[String]>,
    /// When it was read.
    pub read_at: Timestamp,
}

impl Snapshot {
    /// The registry as it was read. A list is `None` if memory does not hold it.
    fn of(
        devices: Option<Listing<Device>>,
        rooms: Option<Listing<Room>>,
        read_at: Timestamp,
    ) -> Self {
        let (has_all_devices, has_all_rooms) = (devices.is_some(), rooms.is_some());
        let (devices, rooms) = (devices.unwrap_or_default(), rooms.unwrap_or_default());
        let unreadable = devices.unreadable.iter().chain(&rooms.unreadable);
        let unreadable = unreadable.map(|item| chain(item)).collect();

        let deleted = devices.deleted.into_iter().map(|device| (device.id, device.deletion));
        let rooms = rooms.found.into_iter().map(|room| (room.id.clone(), room));
        Self {
            deleted: deleted.collect(),
            devices: devices.found.into_iter().collect(),
            rooms: rooms.collect(),
            has_all_devices,
            has_all_rooms,
            unreadable,
            read_at,
        }
    }

    /// Tells whether nothing is registered yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.has_all_devices
            && self.has_all_rooms
            && self.devices.is_empty()
            && self.rooms.is_empty()
    }

    /// The devices in a room, by id.
    pub fn devices_in<'a>(&'a self, room: &'a RoomId) -> impl Iterator<Item = &'a Device> {
        self.devices.values().filter(move |device| device.place().room() == Some(room))
    }

    /// Whether a device is being deleted.
    #[must_use]
    pub fn is_being_deleted(&self, id: &DeviceId) -> bool {
        self.deleted.get(id).is_some_and(|deletion| deletion.ended.is_none())
    }

    /// The rooms of a home, by id.
    pub fn rooms_of<'a>(&'a self, home: &'a HomeId) -> impl Iterator<Item = &'a Room> {
        self.rooms.values().filter(move |room| room.home.as_ref() == Some(home))
    }
}

/// The cache: a snapshot, its age, and what this process has written since.
#[derive(Debug)]
pub(super) struct RegistryCache<C> {
    current: RwLock<Option<Arc<Snapshot>>>,
    // What this process has read or written itself since the registry was last asked for: an answer
    // that was under way must not put the old back.
    kept: std::sync::Mutex<Kept>,
    // Held while the registry is read, so that it is read once however many ask for it.
    reading: Mutex<()>,
    // How many reads have begun, and which of them was the last to succeed: whoever asked before that read began
    // needs no other.
    begun: AtomicU64,
    succeeded: AtomicU64,
    // When there were found to be more devices and more rooms than memory holds.
    oversize: std::sync::Mutex<Oversize>,
    // The half read units that the last read took.
    last_read_halves: AtomicU64,
    // What keeps a table that does not answer from being asked by every request.
    back_off: RwLock<Option<BackOff>>,
    max_age: Duration,
    clock: C,
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

/// When each list was last found to be longer than memory holds.
#[derive(Debug, Clone, Copy, Default)]
struct Oversize {
    devices: Option<Timestamp>,
    rooms: Option<Timestamp>,
}

/// The table did not answer; an old snapshot serves meanwhile.
#[derive(Debug, Clone, Copy)]
struct BackOff {
    pause: Duration,
    since: Timestamp,
}

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
/// The number of devices and rooms that are read in a second at most because something is missing among them;
/// some 4 read units. Fewer are read each time.
const ENTRIES_PER_SECOND: usize = 100;

impl<C: Clock> RegistryCache<C> {
    /// A cache that holds nothing yet.
    pub(super) fn new(max_age: Duration, clock: C) -> Self {
        Self {
            current: RwLock::new(None),
            kept: std::sync::Mutex::default(),
            reading: Mutex::new(()),
            begun: AtomicU64::new(0),
            succeeded: AtomicU64::new(0),
            last_read_halves: AtomicU64::new(0),
            oversize: std::sync::Mutex::default(),
            back_off: RwLock::new(None),
            max_age,
            clock,
        }
    }

    /// How old a snapshot is now.
    pub(super) fn age(&self, snapshot: &Snapshot) -> Duration {
        self.since(snapshot.read_at)
    }

    /// The time since `then`; for ever where the clock has been set back behind it.
    fn since(&self, then: Timestamp) -> Duration {
        let millis = u64::try_from(self.clock.now().as_millis() - then.as_millis());
        millis.map_or(Duration::MAX, Duration::from_millis)
    }

    /// The registry: from memory while it is fresh, else read from the table.
    ///
    /// Where the table cannot be read, the stale snapshot is returned with the error, and for a while,
    /// longer each time, without asking the table.
    pub(super) async fn snapshot(
        &self,
        session: Session<'_, impl ReadRegistry>,
    ) -> StoreResult<(Arc<Snapshot>, Option<StoreError>)> {
        let Some(current) = self.current() else {
            let _reading = self.reading.lock().await;
            return match self.current() {
                Some(read_meanwhile) => Ok((read_meanwhile, None)),
                None => self.read(session).await.map(|read| (read, None)),
            };
        };
        if self.age(&current) < self.max_age || self.must_wait() {
            return Ok((current, None));
        }

        // One reader reads for all; but while the table does not answer, no request waits for that.
        let _reading = match self.reading.try_lock() {
            Ok(reading) => reading,
            Err(_) if self.back_off().is_some() => return Ok((current, None)),
            Err(_) => {
                let reading = self.reading.lock().await;
                match self.current() {
                    Some(read) if self.age(&read) < self.max_age || self.must_wait() => {
                        return Ok((read, None));
                    }
                    _ => reading,
                }
            }
        };

        let read = tokio::time::timeout(self.refresh_limit(), self.read(session)).await;
        match read.unwrap_or(Err(StoreError::TimedOut)) {
            Ok(snapshot) => Ok((snapshot, None)),
            Err(error) => {
                self.wait_longer();
                Ok((current, Some(error)))
            }
        }
    }

    /// The registry for a list, which has what was registered a moment ago: read anew if it is empty or older than
    /// [`MAX_LIST_AGE`], where a read costs little. However many ask at once, it is read once.
    ///
    /// Where the table cannot be read, the stale snapshot is returned with the error.
    pub(super) async fn snapshot_for_list(
        &self,
        session: Session<'_, impl ReadRegistry>,
    ) -> StoreResult<(Arc<Snapshot>, Option<StoreError>)> {
        let asked = self.begun.load(Ordering::SeqCst);
        let (snapshot, stale) = self.snapshot(session).await?;
        let is_new = |snapshot: &Snapshot| {
            self.age(snapshot) < MAX_LIST_AGE && !snapshot.is_empty()
                || self.succeeded.load(Ordering::SeqCst) > asked
        };
        if stale.is_some() || is_new(&snapshot) || self.must_wait() || !self.is_cheap(&snapshot) {
            return Ok((snapshot, stale));
        }

        let _reading = self.reading.lock().await;
        let read = self.read_unless(is_new, session);
        let read = tokio::time::timeout(self.refresh_limit(), read).await;
        match read.unwrap_or(Err(StoreError::TimedOut)) {
            Ok(read) => Ok((read, None)),
            Err(error) => {
                self.wait_longer();
                Ok((snapshot, Some(error)))
            }
        }
    }

    /// Whether a list may read the registry anew.
    fn is_cheap(&self, snapshot: &Snapshot) -> bool {
        let halves = self.last_read_halves.load(Ordering::Relaxed);
        snapshot.has_all_devices && snapshot.has_all_rooms && halves <= MAX_LIST_HALVES
    }

    fn must_wait(&self) -> bool {
        self.back_off().is_some_and(|back_off| self.since(back_off.since) < back_off.pause)
    }

    fn back_off(&self) -> Option<BackOff> {
        *self.back_off.read().expect("nothing panics while it holds the pause")
    }

    /// The time limit for the next refresh: the longer, the more refreshes have failed.
    fn refresh_limit(&self) -> Duration {
        let pause = self.back_off().map_or(Duration::ZERO, |back_off| back_off.pause);
        (pause * 2).clamp(FIRST_REFRESH, MAX_REFRESH)
    }

    fn wait_longer(&self) {
        let mut back_off = self.back_off.write().expect("nothing panics while it holds the pause");
        let pause = back_off.map_or(FIRST_PAUSE, |last| (last.pause * 2).min(MAX_PAUSE));
        *back_off = Some(BackOff { pause, since: self.clock.now() });
    }

    /// Whether [`snapshot`](Self::snapshot) would read a large registry now, because it is too old.
    pub(super) fn would_read_many(&self) -> bool {
        self.current().is_some_and(|snapshot| {
            let is_large = snapshot.devices.len() + snapshot.rooms.len() > ENTRIES_PER_SECOND;
            is_large && self.age(&snapshot) >= self.max_age && !self.must_wait()
        })
    }

    /// The registry as it is now or later: read anew, or by somebody else who began after this call.
    pub(super) async fn refresh(
        &self,
        session: Session<'_, impl ReadRegistry>,
    ) -> StoreResult<Arc<Snapshot>> {
        let asked = self.begun.load(Ordering::SeqCst);
        let _reading = self.reading.lock().await;
        self.read_unless(|_| self.succeeded.load(Ordering::SeqCst) > asked, session).await
    }

    /// The registry for a question about a device or room that memory lacks: read anew, unless it was read a moment ago.
    /// The moment is the longer, the more the read would cost.
    pub(super) async fn refresh_for_missing(
        &self,
        session: Session<'_, impl ReadRegistry>,
    ) -> StoreResult<Arc<Snapshot>> {
        let asked = self.begun.load(Ordering::SeqCst);
        let is_new = |snapshot: &Snapshot| {
            self.age(snapshot) < self.pause(snapshot)
                || self.succeeded.load(Ordering::SeqCst) > asked
        };
        if let Some(current) = self.current().filter(|snapshot| is_new(snapshot)) {
            return Ok(current);
        }
        let _reading = self.reading.lock().await;
        self.read_unless(is_new, session).await
    }

    /// The time after which a registry is read again for something that it lacks.
    fn pause(&self, snapshot: &Snapshot) -> Duration {
        let entries = snapshot.devices.len() + snapshot.rooms.len();
        Duration::from_secs((entries / ENTRIES_PER_SECOND) as u64).min(self.max_age)
    }

    /// The registry in memory if it will do, else read. Whoever calls it holds `reading`.
    async fn read_unless(
        &self,
        will_do: impl Fn(&Snapshot) -> bool,
        session: Session<'_, impl ReadRegistry>,
    ) -> StoreResult<Arc<Snapshot>> {
        match self.current().filter(|snapshot| will_do(snapshot)) {
            Some(current) => Ok(current),
            None => self.read(session).await,
        }
    }

    /// Reads the registry and puts it into the place of what is in memory. Whoever calls it holds `reading`.
    async fn read(&self, session: Session<'_, impl ReadRegistry>) -> StoreResult<Arc<Snapshot>> {
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let read_at = self.clock.now();
        let halves_before = read_halves(session.invocation);
        *self.kept() = Kept::default();

        // One after the other, so that a cold start makes one connection, not two. On the heap, because
        // every handler's future contains this one, and a debug build keeps each of them on the stack.
        let oversize = *self.oversize();
        let devices = match self.recent(oversize.devices) {
            Some(_) => None,
            None => bounded(Box::pin(session.devices()).await?),
        };
        let rooms = match self.recent(oversize.rooms) {
            Some(_) => None,
            None => bounded(Box::pin(session.rooms()).await?),
        };
        let found_now = |listing_fits: bool, before: Option<Timestamp>| {
            (!listing_fits).then(|| self.recent(before).unwrap_or(read_at))
        };
        *self.oversize() = Oversize {
            devices: found_now(devices.is_some(), oversize.devices),
            rooms: found_now(rooms.is_some(), oversize.rooms),
        };

        // Held until the snapshot is in its place, so that nothing is kept in the one that it replaces.
        let kept = self.kept();
        let mut snapshot = Snapshot::of(devices, rooms, read_at);
        kept.apply(&mut snapshot);
        let snapshot = Arc::new(snapshot);

        let halves = read_halves(session.invocation).saturating_sub(halves_before);
        self.last_read_halves.store(halves, Ordering::Relaxed);
        *self.back_off.write().expect("nothing panics while it holds the pause") = None;
        *self.write() = Some(Arc::clone(&snapshot));
        self.succeeded.store(number, Ordering::SeqCst);
        Ok(snapshot)
    }

    /// When a list was found to be longer than memory holds, if that was less than an hour ago.
    fn recent(&self, found: Option<Timestamp>) -> Option<Timestamp> {
        found.filter(|at| self.since(*at) < OVERSIZE_MAX_AGE)
    }

    /// Takes over a device that this process has just read or written, where memory holds all.
    pub(super) fn keep_device(&self, device: Device) {
        if self.current().is_some_and(|snapshot| !snapshot.has_all_devices) {
            return;
        }
        let mut kept = self.kept();
        if kept.devices.len() < MAX_KEPT {
            kept.devices.insert(device.id().clone(), device.clone());
        }
        kept.deleted.remove(device.id());
        let may_keep = |snapshot: &&mut Arc<Snapshot>| {
            snapshot.has_all_devices && snapshot.devices.len() < MAX_KEPT
        };
        if let Some(snapshot) = self.write().as_mut().filter(may_keep) {
            let snapshot = Arc::make_mut(snapshot);
            snapshot.deleted.remove(device.id());
            snapshot.devices.insert(device);
        }
    }

    /// Forgets a device whose deletion this process has just begun or met.
    pub(super) fn keep_deleted(&self, DeletedDevice { id, deletion }: DeletedDevice) {
        let mut kept = self.kept();
        kept.devices.remove(&id);
        if kept.deleted.len() < MAX_KEPT {
            kept.deleted.insert(id.clone(), deletion);
        }
        if let Some(snapshot) = self.write().as_mut() {
            let snapshot = Arc::make_mut(snapshot);
            snapshot.devices.remove(&id);
            if snapshot.deleted.len() < MAX_KEPT {
                snapshot.deleted.insert(id, deletion);
            }
        }
    }

    /// Forgets a room that this process has just removed.
    pub(super) fn forget_room(&self, id: &RoomId) {
        let mut kept = self.kept();
        kept.rooms.remove(id);
        if kept.removed_rooms.len() < MAX_KEPT {
            kept.removed_rooms.insert(id.clone());
        }
        if let Some(snapshot) = self.write().as_mut() {
            Arc::make_mut(snapshot).rooms.remove(id);
        }
    }

    /// Takes over a room that this process has just read or written.
    pub(super) fn keep_room(&self, room: Room) {
        if self.current().is_some_and(|snapshot| !snapshot.has_all_rooms) {
            return;
        }
        let mut kept = self.kept();
        if kept.rooms.len() < MAX_KEPT {
            kept.rooms.insert(room.id.clone(), room.clone());
        }
        kept.removed_rooms.remove(&room.id);
        let may_keep = |snapshot: &&mut Arc<Snapshot>| {
            snapshot.has_all_rooms && snapshot.rooms.len() < MAX_KEPT
        };
        if let Some(snapshot) = self.write().as_mut().filter(may_keep) {
            Arc::make_mut(snapshot).rooms.insert(room.id.clone(), room);
        }
    }

    fn oversize(&self) -> std::sync::MutexGuard<'_, Oversize> {
        self.oversize.lock().expect("nothing panics while it holds what was found")
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().expect("nothing panics while it holds what was kept")
    }

    /// The registry as far as this process knows it, however old.
    pub(super) fn current(&self) -> Option<Arc<Snapshot>> {
        self.current.read().expect("nothing panics while it holds the snapshot").clone()
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Option<Arc<Snapshot>>> {
        self.current.write().expect("nothing panics while it holds the snapshot")
    }
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
