//! The devices, room, home or all devices that a question is about. Reads no reading.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::Problem;
use domain::{Device, DeviceId, Meter, MetricName, RoomId, TimeRange, Timestamp};
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::registry::{CachedRegistry, Snapshot};
use series::{DeviceValues, Failure, Horizon, MAX_DEVICES, too_many};
use table::MAX_CACHED_ENTRIES;

use crate::failure::problem;
use crate::ports::Store;
use crate::registry::lookup;
use crate::registry::presence::{self, RoomDevices, RoomsLack};

/// What is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// The device of the path.
    Device,
    /// The room of the path.
    Room,
    /// The rooms of the home of the path.
    Home,
    /// All devices.
    All,
}

/// The devices that are asked about, and the rooms that their readings must name.
pub(super) struct Subject {
    pub(super) about: About,
    pub(super) snapshot: Arc<Snapshot>,
    /// The rooms' devices and those behind which they are, where memory does not hold all devices.
    pub(super) read: BTreeMap<DeviceId, Device>,
    pub(super) device: Option<Device>,
    pub(super) rooms: Option<BTreeSet<RoomId>>,
    /// The devices that are or were in the rooms.
    pub(super) occupants: BTreeSet<DeviceId>,
    pub(super) rooms_lack: Option<RoomsLack>,
    /// What it costs, about, to know which devices these are, beside the registry.
    pub(super) units: f64,
}

impl Subject {
    pub(super) async fn of(
        about: About,
        registry: &CachedRegistry<impl Clock>,
        store: &impl Store,
        call: &mut Call<'_>,
    ) -> Result<Self, Problem> {
        let (mut device, mut rooms) = (None, None);
        match about {
            About::Device => {
                device = Some(lookup::device(registry, store, call).await?);
                // Nothing else of the registry is asked about, so an old one serves.
                if let Some(snapshot) = registry.current() {
                    return Ok(Self::new(about, snapshot, device, rooms));
                }
            }
            About::Room => rooms = Some([lookup::room(registry, store, call).await?.0.id].into()),
            About::Home => {
                let (home, snapshot) = lookup::home(registry, store, call).await?;
                rooms = Some(snapshot.rooms_of(&home).map(|room| room.id.clone()).collect());
            }
            About::All => {}
        }
        let snapshot = lookup::snapshot(registry, store, call).await?;
        Ok(Self::new(about, snapshot, device, rooms))
    }

    fn new(
        about: About,
        snapshot: Arc<Snapshot>,
        device: Option<Device>,
        rooms: Option<BTreeSet<RoomId>>,
    ) -> Self {
        let (read, occupants, rooms_lack) = (BTreeMap::new(), BTreeSet::new(), None);
        Self { about, snapshot, read, device, rooms, occupants, rooms_lack, units: 0.0 }
    }

    /// The rooms that are asked about, each by itself.
    pub(super) fn each_room(&self) -> Vec<BTreeSet<RoomId>> {
        let one = |room: &RoomId| [room.clone()].into();
        match &self.rooms {
            Some(rooms) => rooms.iter().map(one).collect(),
            None => self.snapshot.rooms.keys().map(one).collect(),
        }
    }

    pub(super) const fn is_shared(&self) -> bool {
        self.device.is_none()
    }

    /// Finds the devices that are asked about. If they do not have what is asked for, the registry is read again
    /// before that is said: another instance may have met it since.
    pub(super) async fn find_devices(
        &mut self,
        registry: &CachedRegistry<impl Clock>,
        store: &impl Store,
        horizon: &Horizon,
        (range, now): (TimeRange, Timestamp),
        have_it: impl Fn(&Self, &[&Device]) -> bool,
        call: &mut Call<'_>,
    ) -> Result<(), Problem> {
        self.find_occupants(store, horizon, (range, now), call).await?;
        // A device that was read alone is as it is now.
        let is_new = self.device.is_some() && registry.would_read_many();
        if is_new
            || have_it(self, &self.devices(call)?)
            || !lookup::has_news(&self.snapshot, registry, store, call).await?
        {
            return Ok(());
        }
        *self = Self::of(self.about, registry, store, call).await?;
        self.find_occupants(store, horizon, (range, now), call).await
    }

    /// Finds the devices of the rooms that are asked about.
    async fn find_occupants(
        &mut self,
        store: &impl Store,
        horizon: &Horizon,
        (range, now): (TimeRange, Timestamp),
        call: &mut Call<'_>,
    ) -> Result<(), Problem> {
        let Some(rooms) = &self.rooms else { return Ok(()) };
        let found = presence::in_rooms(store, horizon, &self.snapshot, rooms, range, now, call);
        let RoomDevices { ids, read, lack, units } = Box::pin(found).await?;
        (self.occupants, self.read, self.rooms_lack) = (ids, read, lack);
        self.units += units;
        lookup::add_meters(&mut self.read, store, &self.snapshot, call).await
    }

    pub(super) fn devices(&self, call: &mut Call<'_>) -> Result<Vec<&Device>, Problem> {
        match (&self.device, &self.rooms) {
            (Some(device), _) => Ok(vec![device]),
            (None, Some(_)) => Ok(self.occupants.iter().filter_map(|id| self.known(id)).collect()),
            (None, None) => all(&self.snapshot).map_err(|failure| problem(failure, call)),
        }
    }

    /// A device of the registry in memory, or one that was read because memory does not hold all.
    pub(super) fn known(&self, id: &DeviceId) -> Option<&Device> {
        self.snapshot.devices.get(id).or_else(|| self.read.get(id))
    }

    /// Whether a device that may have been in the rooms is or was there: it is there now, or has readings or a share of
    /// a step there.
    pub(super) fn is_present(&self, it: &DeviceValues<'_>) -> bool {
        let mut pieces = it.gathered.pieces.iter();
        self.has_now(it.device) || pieces.any(|piece| !piece.is_elsewhere) || it.has_share()
    }

    /// Whether a device is in the rooms now.
    pub(super) fn has_now(&self, device: &Device) -> bool {
        let Some(rooms) = &self.rooms else { return true };
        device.place().room().is_some_and(|room| rooms.contains(room))
    }

    /// The meter of a device. A device that is asked about by itself tells what it measures, whatever the role.
    pub(super) fn meter<'a>(
        &self,
        device: &'a Device,
        asked: Option<&MetricName>,
    ) -> Option<Meter<'a>> {
        let metrics = device.metrics();
        match (asked, self.is_shared()) {
            (None, true) => Meter::of(metrics),
            (None, false) => Meter::of(metrics)?.alone(metrics),
            (Some(asked), true) => Meter::of_one(metrics, asked),
            (Some(asked), false) => Meter::only(metrics, asked),
        }
    }

    /// Those of the devices that measure energy or power, and their meters.
    pub(super) fn metered<'a>(
        &self,
        devices: &[&'a Device],
        asked: Option<&MetricName>,
    ) -> Vec<(&'a Device, Meter<'a>)> {
        let metered = devices.iter().filter_map(|it| Some((*it, self.meter(it, asked)?)));
        metered.collect()
    }

    /// The device that a device is behind.
    pub(super) fn behind(&self, id: &DeviceId) -> Option<&DeviceId> {
        self.known(id)?.behind()
    }
}

/// All devices of a registry.
fn all(snapshot: &Snapshot) -> Result<Vec<&Device>, Failure> {
    if !snapshot.has_all_devices {
        return Err(too_many(format_args!("more than {MAX_CACHED_ENTRIES}")));
    }
    match snapshot.devices.len() {
        0..=MAX_DEVICES => Ok(snapshot.devices.values().collect()),
        number => Err(too_many(format_args!("{number}"))),
    }
}
