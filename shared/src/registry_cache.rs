//! The registry in memory: read once at cold start, again when it has grown old. Decides nothing by itself.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::sync::Mutex;

use crate::clock::Clock;
use crate::domain::{Device, DeviceId, Instant, Room, RoomId};
use crate::store::{Budget, REGISTRY_MOST, ReadRegistry, StoreError, StoreResult};

/// The devices and rooms as they were when the registry was last read, plus what this process has
/// changed itself since.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Devices by id.
    pub devices: BTreeMap<DeviceId, Device>,
    /// Rooms by id.
    pub rooms: BTreeMap<RoomId, Room>,
    /// Whether these are all devices: a function's memory is bounded, the registry is not. Who must
    /// know of a device that is not here asks the table.
    pub has_all_devices: bool,
    /// Whether these are all rooms, likewise.
    pub has_all_rooms: bool,
    /// When it was read.
    pub read_at: Instant,
}

impl Snapshot {
    /// Whether nothing is registered yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty() && self.rooms.is_empty()
    }
}

/// A registry that is at most so old. One process has one; it is shared by reference.
#[derive(Debug)]
pub struct RegistryCache<C> {
    current: RwLock<Option<Arc<Snapshot>>>,
    // Held while the registry is read, so that it is read once however many ask for it.
    reading: Mutex<()>,
    max_age: Duration,
    clock: C,
}

impl<C: Clock> RegistryCache<C> {
    /// A cache that holds nothing yet.
    #[must_use]
    pub fn new(max_age: Duration, clock: C) -> Self {
        Self { current: RwLock::new(None), reading: Mutex::new(()), max_age, clock }
    }

    /// How old a snapshot may grow.
    #[must_use]
    pub const fn max_age(&self) -> Duration {
        self.max_age
    }

    /// How old a snapshot is now.
    #[must_use]
    pub fn age(&self, snapshot: &Snapshot) -> Duration {
        let millis = self.clock.now().as_millis() - snapshot.read_at.as_millis();
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }

    /// The registry: from memory while it is fresh, else read from the table.
    ///
    /// Where it cannot be read, an old snapshot is better than none; then the error comes beside it.
    pub async fn snapshot(
        &self,
        store: &impl ReadRegistry,
        budget: &Budget,
    ) -> StoreResult<(Arc<Snapshot>, Option<StoreError>)> {
        if let Some(fresh) = self.fresh() {
            return Ok((fresh, None));
        }
        let _reading = self.reading.lock().await;
        if let Some(fresh) = self.fresh() {
            return Ok((fresh, None));
        }
        match (self.read(store, budget).await, self.any()) {
            (Ok(snapshot), _) => Ok((snapshot, None)),
            (Err(error), Some(old)) => Ok((old, Some(error))),
            (Err(error), None) => Err(error),
        }
    }

    /// Reads the registry whatever its age: something has turned up that the snapshot lacks.
    pub async fn refresh(&self, store: &impl ReadRegistry, budget: &Budget) -> StoreResult<()> {
        let _reading = self.reading.lock().await;
        self.read(store, budget).await.map(drop)
    }

    async fn read(&self, store: &impl ReadRegistry, budget: &Budget) -> StoreResult<Arc<Snapshot>> {
        let read_at = self.clock.now();
        let (devices, rooms) =
            futures_util::future::try_join(store.devices(budget), store.rooms(budget)).await?;
        let has_all_devices = devices.len() <= REGISTRY_MOST;
        let has_all_rooms = rooms.len() <= REGISTRY_MOST;
        let devices = devices.into_iter().take(REGISTRY_MOST);
        let rooms = rooms.into_iter().take(REGISTRY_MOST);
        let snapshot = Arc::new(Snapshot {
            devices: devices.map(|device| (device.id.clone(), device)).collect(),
            rooms: rooms.map(|room| (room.id.clone(), room)).collect(),
            has_all_devices,
            has_all_rooms,
            read_at,
        });
        *self.write() = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    /// Takes over a device that this process has just read or written.
    pub fn keep_device(&self, device: Device) {
        if let Some(snapshot) = self.write().as_mut() {
            Arc::make_mut(snapshot).devices.insert(device.id.clone(), device);
        }
    }

    /// Takes over a room that this process has just read or written.
    pub fn keep_room(&self, room: Room) {
        if let Some(snapshot) = self.write().as_mut() {
            Arc::make_mut(snapshot).rooms.insert(room.id.clone(), room);
        }
    }

    fn any(&self) -> Option<Arc<Snapshot>> {
        self.current.read().expect("nothing panics while it holds the snapshot").clone()
    }

    fn fresh(&self) -> Option<Arc<Snapshot>> {
        self.any().filter(|snapshot| self.age(snapshot) < self.max_age)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Option<Arc<Snapshot>>> {
        self.current.write().expect("nothing panics while it holds the snapshot")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Deadline, TestClock};
    use crate::store::memory::MemoryStore;

    fn setup() -> (MemoryStore, RegistryCache<TestClock>, TestClock, Budget) {
        let clock = TestClock::at(Instant::from_millis(1_768_147_200_000).expect("an instant"));
        let cache = RegistryCache::new(Duration::from_secs(60), clock.clone());
        (
            MemoryStore::default(),
            cache,
            clock,
            Budget::until(Deadline::after(Duration::from_secs(5))),
        )
    }

    #[tokio::test]
    async fn it_is_read_once_until_it_has_grown_old() {
        let (store, cache, clock, budget) = setup();
        for _ in 0..3 {
            cache.snapshot(&store, &budget).await.expect("read");
        }
        assert_eq!(store.calls().reads, 2, "devices and rooms");
        clock.advance(Duration::from_secs(60));
        cache.snapshot(&store, &budget).await.expect("read");
        assert_eq!(store.calls().reads, 4);
    }

    #[tokio::test]
    async fn an_old_snapshot_is_better_than_none() {
        let (store, cache, clock, budget) = setup();
        store.fail_with([StoreError::TimedOut]);
        assert!(cache.snapshot(&store, &budget).await.is_err());
        cache.snapshot(&store, &budget).await.expect("read");
        clock.advance(Duration::from_secs(60));
        store.fail_with([StoreError::TimedOut]);
        let (_, error) = cache.snapshot(&store, &budget).await.expect("the old one");
        assert!(matches!(error, Some(StoreError::TimedOut)));
    }
}
