//! Finds the devices of a question: one device, the devices of a room or a home, or all devices. Reads no reading.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::Problem;
use domain::{Device, DeviceId, Meter, MetricName, RoomId, TimeRange};
use runtime::registry::{FoundDevices, RegistrySnapshot};
use series::{Horizon, MAX_DEVICES, SeriesError, too_many};
use table::MAX_CACHED_ENTRIES;

use super::groups::{DeviceGroup, GroupOf};
use super::plan::{RowPlan, Span};
use super::request::{Grouping, QueryScope};
use crate::failure::problem;
use crate::ports::Store;
use crate::registry::lookup;
use crate::registry::presence::{self, RoomDevices};
use crate::shared_state::Call;

/// The parameters of a search for the devices of a question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceSearch<'a> {
    pub(crate) scope: QueryScope,
    pub(crate) horizon: &'a Horizon,
    pub(crate) range: TimeRange,
    /// Whether the search finds out which devices were in which room.
    pub(crate) is_by_room: bool,
}

impl<'a> DeviceSearch<'a> {
    /// A search in the range of a plan's rows.
    pub(crate) fn of(scope: QueryScope, plan: &'a RowPlan) -> Self {
        Self { scope, horizon: &plan.horizon, range: plan.grid.range(), is_by_room: false }
    }
}

/// The devices of a question, and the rooms that their readings must name.
pub(crate) struct QuestionDevices {
    pub(crate) scope: QueryScope,
    /// The device that the request's path names.
    pub(crate) device: Option<Device>,
    /// The rooms that readings must name; `None` accepts all readings.
    pub(crate) rooms: Option<BTreeSet<RoomId>>,
    /// The registry, and devices that were read because memory does not hold them.
    registry: FoundDevices,
    /// The devices that are or were in the rooms. Without `rooms`, only `seen` and `lack` may be filled, for rows by
    /// room.
    pub(crate) of_rooms: RoomDevices,
}

impl QuestionDevices {
    /// Finds the devices. If they cannot answer the question, the registry is read again: another instance may have
    /// registered a device or a metric. `is_answerable` gets all that was found, and the devices of the answer.
    pub(crate) async fn find(
        search: DeviceSearch<'_>,
        is_answerable: impl Fn(&Self, &[&Device]) -> bool,
        call: &mut Call<'_, impl Store>,
    ) -> Result<Self, Problem> {
        let registry = &call.shared.registry;
        let found = Self::look_up(search, call).await?;

        // If the registry is large, `look_up` has just read the device from the table, and the registry has no newer
        // state.
        let was_read_alone = found.device.is_some() && registry.would_read_many();
        if was_read_alone || is_answerable(&found, &found.devices()?) {
            return Ok(found);
        }

        if registry.has_news(found.snapshot(), call.session, call.log).await? {
            return Self::look_up(search, call).await;
        }
        Ok(found)
    }

    async fn look_up(
        search: DeviceSearch<'_>,
        call: &mut Call<'_, impl Store>,
    ) -> Result<Self, Problem> {
        let (mut device, mut rooms, mut current) = (None, None, None);
        match search.scope {
            QueryScope::Device => {
                device = Some(lookup::device(call).await?);
                // Only this device is needed, so even an old registry in memory is good enough.
                current = call.shared.registry.current();
            }
            QueryScope::Room => {
                // If memory did not hold the room, `room` has read the registry, so the snapshot has its devices.
                rooms = Some([lookup::room(call).await?.0.id].into());
            }
            QueryScope::Home => {
                let (home, snapshot) = lookup::home(call).await?;
                rooms = Some(snapshot.rooms_of(&home).map(|room| room.id.clone()).collect());
            }
            QueryScope::All => {}
        }

        let snapshot = match current {
            Some(snapshot) => snapshot,
            None => call.shared.registry.snapshot(call.session, call.log).await?,
        };

        let registry = FoundDevices::of(snapshot);
        let of_rooms = RoomDevices::default();
        let mut found = Self { scope: search.scope, device, rooms, registry, of_rooms };
        Box::pin(found.add_devices_of_rooms(search, call)).await?;
        Ok(found)
    }

    /// Finds the devices of the rooms, and the meters that also measure them.
    async fn add_devices_of_rooms(
        &mut self,
        search: DeviceSearch<'_>,
        call: &mut Call<'_, impl Store>,
    ) -> Result<(), Problem> {
        let DeviceSearch { horizon, range, .. } = search;
        if let Some(rooms) = &self.rooms {
            let registry = &mut self.registry;
            self.of_rooms =
                presence::now_or_seen_in_rooms(horizon, registry, rooms, range, call).await?;
            return self.registry.look_up_meters(call.session).await;
        }

        if search.is_by_room {
            let rooms = self.snapshot().rooms.keys();
            self.of_rooms.seen = presence::seen_in_each(call.session, rooms, range).await?;
            self.of_rooms.lack = presence::lack_of_notes(horizon, range, call.session.now);
        }
        Ok(())
    }

    /// The devices that may be in the answer.
    pub(crate) fn devices(&self) -> Result<Vec<&Device>, Problem> {
        match (&self.device, &self.rooms) {
            (Some(device), _) => Ok(vec![device]),
            (None, Some(_)) => {
                Ok(self.of_rooms.ids.iter().filter_map(|id| self.known(id)).collect())
            }
            (None, None) => all(self.snapshot()).map_err(problem),
        }
    }

    /// The snapshot of the registry.
    const fn snapshot(&self) -> &Arc<RegistrySnapshot> {
        &self.registry.snapshot
    }

    /// The members of an answer about the rows; see [`RowPlan::span`].
    pub(crate) fn span(&self, plan: &RowPlan, reach: TimeRange) -> Span {
        plan.span(reach, self.device.as_ref(), self.of_rooms.lack)
    }

    /// Whether several devices may be in the answer.
    pub(crate) const fn is_shared(&self) -> bool {
        self.device.is_none()
    }

    /// A device that is in memory, or was read because memory does not hold all devices.
    pub(crate) fn known(&self, id: &DeviceId) -> Option<&Device> {
        self.registry.device(id)
    }

    /// The meter that a device is behind, as far as known.
    pub(crate) fn behind(&self, id: &DeviceId) -> Option<&DeviceId> {
        self.known(id)?.behind()
    }

    /// Splits the devices into groups whose rows belong together.
    pub(crate) fn groups<'a>(
        &'a self,
        grouping: Grouping,
        devices: &[&'a Device],
    ) -> Vec<DeviceGroup<'a>> {
        if grouping == Grouping::ByRoom && self.is_shared() {
            return self.by_room(devices);
        }

        let of = match grouping {
            _ if !self.is_shared() => GroupOf::Device,
            Grouping::Apart => GroupOf::Apart,
            Grouping::Together | Grouping::ByRoom => GroupOf::Together,
        };
        vec![DeviceGroup { of, rooms: self.rooms.clone(), devices: devices.to_vec() }]
    }

    /// A group for each room. If the question is about all devices, also a group for the devices in no room.
    fn by_room<'a>(&'a self, devices: &[&'a Device]) -> Vec<DeviceGroup<'a>> {
        let rooms: Vec<&RoomId> = match &self.rooms {
            Some(rooms) => rooms.iter().collect(),
            None => self.snapshot().rooms.keys().collect(),
        };
        let mut groups = Vec::new();

        for room in &rooms {
            let seen = self.of_rooms.seen.get(*room);
            let may_have_been_there = |device: &&&Device| {
                device.place().room() == Some(*room)
                    || seen.is_some_and(|seen| seen.contains(device.id()))
            };
            let devices = devices.iter().filter(may_have_been_there).copied().collect();
            let rooms = Some([(*room).clone()].into());
            groups.push(DeviceGroup { of: GroupOf::Room(room), rooms, devices });
        }

        if self.scope == QueryScope::All {
            let is_in_a_room =
                |device: &Device| device.place().room().is_some_and(|room| rooms.contains(&room));
            let devices = devices.iter().filter(|device| !is_in_a_room(device)).copied().collect();
            groups.push(DeviceGroup { of: GroupOf::NoRoom, rooms: None, devices });
        }
        groups
    }

    /// The metrics from which a device's energy comes. A question about the device alone includes roles that sums omit.
    fn meter<'a>(&self, device: &'a Device, requested: Option<&MetricName>) -> Option<Meter<'a>> {
        let metrics = device.metrics();
        match (requested, self.is_shared()) {
            (None, true) => Meter::of(metrics),
            (None, false) => Meter::of(metrics)?.alone(metrics),
            (Some(requested), true) => Meter::of_one(metrics, requested),
            (Some(requested), false) => Meter::only(metrics, requested),
        }
    }

    /// The devices that measure energy or power, each with the metrics from which its energy comes.
    pub(crate) fn metered<'a>(
        &self,
        devices: &[&'a Device],
        requested: Option<&MetricName>,
    ) -> Vec<(&'a Device, Meter<'a>)> {
        let metered = |device: &&'a Device| Some((*device, self.meter(device, requested)?));
        devices.iter().filter_map(metered).collect()
    }
}

/// All devices of a snapshot. Fails if there are too many.
fn all(snapshot: &RegistrySnapshot) -> Result<Vec<&Device>, SeriesError> {
    match snapshot.all_devices() {
        None => Err(too_many(format_args!("more than {MAX_CACHED_ENTRIES}"))),
        Some(devices) if devices.len() > MAX_DEVICES => {
            Err(too_many(format_args!("{}", devices.len())))
        }
        Some(devices) => Ok(devices.values().collect()),
    }
}
