//! The registry as the functions share it: read from memory, and from the table where memory lacks something. Writes
//! nothing.

mod cache;
mod devices;
mod gone;
mod shared_map;

use std::sync::Arc;
use std::time::Duration;

use domain::{DeletedDevice, Device, DeviceId, Room, RoomId};
use table::{Invocation, LookUpRegistry, ReadRegistry, Session, StoreResult};

use crate::clock::{Clock, Deadline};
use crate::telemetry::{Telemetry, WideEvent};

use cache::RegistryCache;
pub use cache::Snapshot;
pub use devices::Devices;
pub use gone::{has_readings, is_gone};
pub use shared_map::SharedMap;

/// In a fleet, a device's cached room may be this many times as old as a cached registry. Each look-up costs a
/// read unit, and in a large fleet most devices never move.
pub const PLACE_AGE_FACTOR: u32 = 60;

/// The time limit for reading the registry at cold start, before the first request.
const COLD_START: Duration = Duration::from_secs(5);

/// The registry, cached. One process has one; it is shared by reference.
#[derive(Debug)]
pub struct CachedRegistry<C> {
    cache: RegistryCache<C>,
    clock: C,
}

impl<C: Clock> CachedRegistry<C> {
    /// A registry that is read when it is first asked for, and again once it is older than `max_age`.
    #[must_use]
    pub fn new(max_age: Duration, clock: C) -> Self {
        Self { cache: RegistryCache::new(max_age, clock.clone()), clock }
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

    /// The registry, at most as old as allowed. A stale one that the table could not replace, and the
    /// items that could not be read, are logged.
    pub async fn snapshot(
        &self,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Arc<Snapshot>> {
        let (snapshot, stale) = self.cache.snapshot(session).await?;
        if let Some(error) = stale {
            log.warn("registry.error", &error);
        }
        Ok(told(snapshot, log))
    }

    /// Whether [`snapshot`](Self::snapshot) would now read more than a hundred devices and rooms: then a question
    /// about a few of them is better asked of the table.
    #[must_use]
    pub fn would_read_many(&self) -> bool {
        self.cache.would_read_many()
    }

    /// The registry for a list: at most two seconds old where it costs at most four read units to read it, else at most
    /// as old as allowed. An empty one is read each time: whoever has just sent a first reading looks for its device.
    pub async fn snapshot_for_list(
        &self,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Arc<Snapshot>> {
        let (snapshot, stale) = self.cache.snapshot_for_list(session).await?;
        if let Some(error) = stale {
            log.warn("registry.error", &error);
        }
        Ok(told(snapshot, log))
    }

    /// The registry as it is now, whatever its age in memory.
    pub async fn refresh(
        &self,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Arc<Snapshot>> {
        let snapshot = self.cache.refresh(session).await?;
        Ok(told(snapshot, log))
    }

    /// The registry for a question about a device or room that memory lacks: read anew, at most once in a second for each
    /// hundred devices and rooms. In a smaller registry, a device of another instance is found at once.
    pub async fn refresh_for_missing(
        &self,
        session: Session<'_, impl ReadRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Arc<Snapshot>> {
        let snapshot = self.cache.refresh_for_missing(session).await?;
        Ok(told(snapshot, log))
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
            return match Box::pin(session.device(id)).await {
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
            };
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

    /// Takes over a device that this process has just read or written.
    pub fn keep_device(&self, device: Device) {
        self.cache.keep_device(device);
    }

    /// Takes over a room that this process has just read or written.
    pub fn keep_room(&self, room: Room) {
        self.cache.keep_room(room);
    }

    /// Forgets a device whose deletion this process has just begun or met.
    pub fn keep_deleted(&self, device: DeletedDevice) {
        self.cache.keep_deleted(device);
    }

    /// Forgets a room that this process has just removed.
    pub fn forget_room(&self, id: &RoomId) {
        self.cache.forget_room(id);
    }

    /// The registry as far as this process knows it, however old.
    #[must_use]
    pub fn current(&self) -> Option<Arc<Snapshot>> {
        self.cache.current()
    }
}

/// The registry, whose items that could not be read are logged.
fn told(snapshot: Arc<Snapshot>, log: &mut WideEvent) -> Arc<Snapshot> {
    if !snapshot.unreadable.is_empty() {
        log.set("registry.unreadable", snapshot.unreadable.to_vec());
    }
    snapshot
}
