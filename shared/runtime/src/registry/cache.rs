//! The registry in memory: read once at cold start, and again when it is too old. Writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::sync::Mutex;

use crate::clock::Clock;
use crate::telemetry::chain;
use domain::{DeletedDevice, Deletion, Device, DeviceId, HomeId, Room, RoomId, Timestamp};
use table::{Invocation, Listing, MAX_CACHED_ENTRIES, ReadRegistry, StoreError, StoreResult};

/// The devices and rooms as they were when the registry was last read, plus what this process has
/// changed itself since.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Devices by id; none where there are more than memory holds.
    pub devices: BTreeMap<DeviceId, Device>,
    /// Rooms by id, likewise.
    pub rooms: BTreeMap<RoomId, Room>,
    /// The devices that are being deleted, or are deleted and not forgotten yet.
    pub deleted: BTreeMap<DeviceId, Deletion>,
    /// Whether these are all devices: a function's memory is bounded, the registry is not. Otherwise each
    /// device is asked of the table.
    pub has_all_devices: bool,
    /// Whether these are all rooms, likewise.
    pub has_all_rooms: bool,
    /// The items that could not be read, each with its key and why.
    pub unreadable: Vec<String>,
    /// When it was read.
    pub read_at: Timestamp,
}

impl Snapshot {
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
        self.devices.values().filter(move |device| device.place.room() == Some(room))
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
    // When there were found to be more devices and more rooms than memory holds.
    oversize: std::sync::Mutex<Oversize>,
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

/// The time limit for a refresh while there is a stale snapshot to answer with.
const MAX_REFRESH: Duration = Duration::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// How long a list that was too long for memory counts as such: to find out again costs hundreds of read
/// units.
const OVERSIZE_MAX_AGE: Duration = Duration::from_hours(1);
/// The largest number of devices, or rooms, that a process keeps, with those that are new since the
/// registry was read.
const MAX_KEPT: usize = 2 * MAX_CACHED_ENTRIES;

impl<C: Clock> RegistryCache<C> {
    /// A cache that holds nothing yet.
    pub(super) fn new(max_age: Duration, clock: C) -> Self {
        Self {
            current: RwLock::new(None),
            kept: std::sync::Mutex::default(),
            reading: Mutex::new(()),
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
        store: &impl ReadRegistry,
        invocation: &Invocation,
    ) -> StoreResult<(Arc<Snapshot>, Option<StoreError>)> {
        let Some(current) = self.current() else {
            let _reading = self.reading.lock().await;
            return match self.current() {
                Some(read_meanwhile) => Ok((read_meanwhile, None)),
                None => self.read(store, invocation).await.map(|read| (read, None)),
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
        let read = tokio::time::timeout(MAX_REFRESH, self.read(store, invocation)).await;
        match read.unwrap_or(Err(StoreError::TimedOut)) {
            Ok(snapshot) => Ok((snapshot, None)),
            Err(error) => {
                self.wait_longer();
                Ok((current, Some(error)))
            }
        }
    }

    fn must_wait(&self) -> bool {
        self.back_off().is_some_and(|it| self.since(it.since) < it.pause)
    }

    fn back_off(&self) -> Option<BackOff> {
        *self.back_off.read().expect("nothing panics while it holds the pause")
    }

    fn wait_longer(&self) {
        let mut back_off = self.back_off.write().expect("nothing panics while it holds the pause");
        let pause = back_off.map_or(FIRST_PAUSE, |it| (it.pause * 2).min(MAX_PAUSE));
        *back_off = Some(BackOff { pause, since: self.clock.now() });
    }

    /// Reads the registry whatever its age, because the snapshot lacks something that exists.
    pub(super) async fn refresh(
        &self,
        store: &impl ReadRegistry,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        let _reading = self.reading.lock().await;
        self.read(store, invocation).await.map(drop)
    }

    async fn read(
        &self,
        store: &impl ReadRegistry,
        invocation: &Invocation,
    ) -> StoreResult<Arc<Snapshot>> {
        let read_at = self.clock.now();
        *self.kept() = Kept::default();
        let oversize = *self.oversize();
        let is_oversize =
            |found: Option<Timestamp>| found.is_some_and(|at| self.since(at) < OVERSIZE_MAX_AGE);
        // One after the other, so that a cold start makes one connection, not two. On the heap, because
        // every handler's future contains this one, and a debug build keeps each of them on the stack.
        let devices = if is_oversize(oversize.devices) {
            None
        } else {
            bounded(Box::pin(store.devices(invocation)).await?)
        };
        let rooms = if is_oversize(oversize.rooms) {
            None
        } else {
            bounded(Box::pin(store.rooms(invocation)).await?)
        };
        let (has_all_devices, has_all_rooms) = (devices.is_some(), rooms.is_some());
        let now_oversize = |has_all: bool, before: Option<Timestamp>| {
            (!has_all).then(|| before.filter(|_| is_oversize(before)).unwrap_or(read_at))
        };
        *self.oversize() = Oversize {
            devices: now_oversize(has_all_devices, oversize.devices),
            rooms: now_oversize(has_all_rooms, oversize.rooms),
        };
        let (devices, rooms) = (devices.unwrap_or_default(), rooms.unwrap_or_default());
        let unreadable = devices.unreadable.iter().chain(&rooms.unreadable);
        let unreadable = unreadable.map(|item| chain(item)).collect();
        let mut deleted: BTreeMap<_, _> =
            devices.deleted.into_iter().map(|it| (it.id, it.deletion)).collect();
        let mut devices: BTreeMap<_, _> =
            devices.found.into_iter().map(|it| (it.id.clone(), it)).collect();
        let mut rooms: BTreeMap<_, _> =
            rooms.found.into_iter().map(|it| (it.id.clone(), it)).collect();
        // Held until the snapshot is in its place, so that nothing is kept in the one that it replaces.
        let kept = self.kept();
        if has_all_devices {
            devices.extend(kept.devices.clone());
        }
        if has_all_rooms {
            rooms.extend(kept.rooms.clone());
        }
        devices.retain(|id, _| !kept.deleted.contains_key(id));
        rooms.retain(|id, _| !kept.removed_rooms.contains(id));
        deleted.retain(|id, _| !kept.devices.contains_key(id));
        deleted.extend(kept.deleted.clone());
        let snapshot = Arc::new(Snapshot {
            devices,
            rooms,
            deleted,
            has_all_devices,
            has_all_rooms,
            unreadable,
            read_at,
        });
        *self.back_off.write().expect("nothing panics while it holds the pause") = None;
        *self.write() = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    /// Takes over a device that this process has just read or written, where memory holds all.
    pub(super) fn keep_device(&self, device: Device) {
        if self.current().is_some_and(|it| !it.has_all_devices) {
            return;
        }
        let mut kept = self.kept();
        if kept.devices.len() < MAX_KEPT {
            kept.devices.insert(device.id.clone(), device.clone());
        }
        kept.deleted.remove(&device.id);
        let may_keep = |it: &&mut Arc<Snapshot>| it.has_all_devices && it.devices.len() < MAX_KEPT;
        if let Some(snapshot) = self.write().as_mut().filter(may_keep) {
            let snapshot = Arc::make_mut(snapshot);
            snapshot.deleted.remove(&device.id);
            snapshot.devices.insert(device.id.clone(), device);
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

    /// Takes over a room that this process has just read or written, likewise.
    pub(super) fn keep_room(&self, room: Room) {
        if self.current().is_some_and(|it| !it.has_all_rooms) {
            return;
        }
        let mut kept = self.kept();
        if kept.rooms.len() < MAX_KEPT {
            kept.rooms.insert(room.id.clone(), room.clone());
        }
        kept.removed_rooms.remove(&room.id);
        let may_keep = |it: &&mut Arc<Snapshot>| it.has_all_rooms && it.rooms.len() < MAX_KEPT;
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

/// A list, if memory holds it.
fn bounded<T>(listing: Listing<T>) -> Option<Listing<T>> {
    (listing.found.len() <= MAX_CACHED_ENTRIES).then_some(listing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Deadline, TestClock};
    use domain::{Decimal, DeviceObservation, Reading};
    use table::memory::MemoryStore;

    fn setup() -> (MemoryStore, RegistryCache<TestClock>, TestClock, Invocation) {
        let clock = TestClock::at(Timestamp::from_millis(1_768_147_200_000).expect("a timestamp"));
        let cache = RegistryCache::new(Duration::from_secs(60), clock.clone());
        (
            MemoryStore::default(),
            cache,
            clock,
            Invocation::until(Deadline::after(Duration::from_secs(5))),
        )
    }

    #[tokio::test]
    async fn it_is_read_once_until_it_has_grown_old() {
        let (store, cache, clock, invocation) = setup();
        for _ in 0..3 {
            cache.snapshot(&store, &invocation).await.expect("read");
        }
        assert_eq!(store.calls().reads, 2, "devices and rooms");
        clock.advance(Duration::from_secs(60));
        cache.snapshot(&store, &invocation).await.expect("read");
        assert_eq!(store.calls().reads, 4);
    }

    #[tokio::test]
    async fn an_old_snapshot_is_better_than_none() {
        let (store, cache, clock, invocation) = setup();
        store.fail_with([StoreError::TimedOut]);
        assert!(cache.snapshot(&store, &invocation).await.is_err());
        cache.snapshot(&store, &invocation).await.expect("read");
        clock.advance(Duration::from_secs(60));
        store.fail_with([StoreError::TimedOut]);
        let (_, error) = cache.snapshot(&store, &invocation).await.expect("the old one");
        assert!(matches!(error, Some(StoreError::TimedOut)));
    }

    #[tokio::test]
    async fn while_the_table_does_not_answer_it_is_asked_less_and_less_often() {
        let (store, cache, clock, invocation) = setup();
        cache.snapshot(&store, &invocation).await.expect("read");
        clock.advance(Duration::from_secs(60));
        let outage = || (0..1_000).map(|_| StoreError::TimedOut);
        store.fail_with(outage());
        let before = store.calls().reads;
        for _ in 0..600 {
            cache.snapshot(&store, &invocation).await.expect("the old one");
            clock.advance(Duration::from_millis(100));
        }
        let asked = store.calls().reads - before;
        // After 0, 1, 3, 7, 15 and 31 of 60 seconds; the first of two requests fails at once.
        assert_eq!(asked, 6);
        store.end_failures();
        clock.advance(MAX_PAUSE);
        cache.snapshot(&store, &invocation).await.expect("read");
        clock.advance(Duration::from_secs(60));
        cache.snapshot(&store, &invocation).await.expect("read");
        assert_eq!(store.calls().reads, before + asked + 4, "and as ever once it answers");
    }

    /// A table that is asked while this process writes a room to it.
    struct Meanwhile<'a>(&'a MemoryStore, &'a RegistryCache<TestClock>, Room);

    impl ReadRegistry for Meanwhile<'_> {
        async fn devices(&self, invocation: &Invocation) -> StoreResult<Listing<Device>> {
            self.0.devices(invocation).await
        }

        async fn rooms(&self, invocation: &Invocation) -> StoreResult<Listing<Room>> {
            let before = self.0.rooms(invocation).await;
            self.1.keep_room(self.2.clone());
            before
        }
    }

    #[tokio::test]
    async fn an_answer_that_was_under_way_does_not_take_back_what_was_kept() {
        let (store, cache, _, invocation) = setup();
        let kitchen: RoomId = "kitchen".parse().expect("an id");
        let room = Room::new(kitchen.clone(), Timestamp::MIN);
        let (read, _) =
            cache.snapshot(&Meanwhile(&store, &cache, room), &invocation).await.expect("read");
        assert!(read.rooms.contains_key(&kitchen));
        cache.refresh(&store, &invocation).await.expect("read");
        let (read, _) = cache.snapshot(&store, &invocation).await.expect("read");
        assert!(!read.rooms.contains_key(&kitchen), "what is asked for later knows better");
    }

    #[tokio::test]
    async fn of_requests_at_once_each_has_the_new_registry() {
        let (store, cache, clock, invocation) = setup();
        cache.snapshot(&store, &invocation).await.expect("read");
        clock.advance(Duration::from_secs(60));
        let asked = (0..5).map(|_| cache.snapshot(&store, &invocation));
        let now = clock.now();
        for read in futures_util::future::join_all(asked).await {
            assert_eq!(read.expect("read").0.read_at, now);
        }
        assert_eq!(store.calls().reads, 4, "and it is read once");
    }

    #[tokio::test]
    async fn what_memory_does_not_hold_is_not_read_each_time() {
        use table::RegisterDevices as _;
        let (store, cache, clock, invocation) = setup();
        let metrics = [("co2".parse().expect("a name"), Decimal::parse("1").expect("a number"))];
        let any = Reading::stored("d".parse().expect("an id"), clock.now(), None, metrics.into());
        let observation = DeviceObservation::of(&any.expect("a reading"));
        let new =
            |n: usize| observation.new_device(format!("d{n}").parse().expect("an id"), |_| false);
        for n in 0..=MAX_CACHED_ENTRIES {
            store.register_device(&new(n), &invocation).await.expect("memory");
        }
        let (read, _) = cache.snapshot(&store, &invocation).await.expect("read");
        assert!(!read.has_all_devices && read.has_all_rooms && !read.is_empty());
        for n in 0..2 * MAX_KEPT {
            cache.keep_device(new(n));
        }
        let (read, _) = cache.snapshot(&store, &invocation).await.expect("read");
        assert!(read.devices.is_empty(), "{}", read.devices.len());
        assert_eq!(store.calls().reads, 2);
        for _ in 0..59 {
            clock.advance(Duration::from_secs(60));
            cache.snapshot(&store, &invocation).await.expect("read");
        }
        assert_eq!(store.calls().reads, 2 + 59, "the rooms only");
        clock.advance(Duration::from_secs(60));
        cache.snapshot(&store, &invocation).await.expect("read");
        assert_eq!(store.calls().reads, 2 + 59 + 2);
    }

    #[tokio::test]
    async fn a_clock_that_is_set_back_keeps_no_snapshot_for_ever() {
        let (store, cache, clock, invocation) = setup();
        cache.snapshot(&store, &invocation).await.expect("read");
        clock.set(Timestamp::MIN);
        cache.snapshot(&store, &invocation).await.expect("read");
        assert_eq!(store.calls().reads, 4);
    }
}
