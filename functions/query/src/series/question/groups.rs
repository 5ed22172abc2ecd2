//! The groups of devices whose rows belong together, and what the devices measured. Shows nothing.

use std::collections::{BTreeMap, BTreeSet};

use api::Problem;
use domain::{Device, DeviceId, MAX_ROLLUP_ROOMS, MetricName, MetricRule, RoomId, meters_above};
use series::{
    BehindMeters, DEVICE_CONCURRENCY, DeviceQuestion, DeviceRows, LeftOut, MovedMeter, PlannedRead,
    Presence, SeriesError, Store, device_rows, presences,
};
use table::{Session, at_once};

use super::plan::RowPlan;
use super::request::SeriesRequest;
use crate::series::answer::columns::MetricColumns;

/// The device, devices or room that the rows of a group are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupOf<'a> {
    /// The device that the request's path names.
    Device,
    /// Several devices, which share a row.
    Together,
    /// Several devices, each with a row of its own.
    Apart,
    /// The devices of a room, which share a row.
    Room(&'a RoomId),
    /// The devices in no room. Each has a row of its own, with all that the device sent.
    NoRoom,
}

impl<'a> GroupOf<'a> {
    /// Whether the devices of the group share one row.
    pub(crate) const fn is_combined(self) -> bool {
        matches!(self, Self::Together | Self::Room(_))
    }

    /// The room, if the rows are about the devices of a room.
    pub(crate) const fn room(self) -> Option<&'a RoomId> {
        match self {
            Self::Room(room) => Some(room),
            _ => None,
        }
    }
}

/// A group of devices that are read together.
#[derive(Debug, Clone)]
pub(crate) struct DeviceGroup<'a> {
    pub(crate) of: GroupOf<'a>,
    /// The rooms that readings must name; `None` accepts all readings.
    pub(crate) rooms: Option<BTreeSet<RoomId>>,
    pub(crate) devices: Vec<&'a Device>,
}

/// The devices that meters exclude from the sums of a group, and the meters that moved.
#[derive(Debug, Default)]
pub(crate) struct SumExclusions<'a> {
    pub(crate) left_out: Vec<LeftOut<'a>>,
    pub(crate) moved: Vec<MovedMeter<'a>>,
}

impl DeviceGroup<'_> {
    /// The columns of the group's rows, which have the values of the devices that were present.
    pub(crate) fn columns(
        &self,
        request: &SeriesRequest,
        names: &[MetricName],
        values: &[DeviceRows<'_>],
    ) -> Result<MetricColumns, Problem> {
        let present = values.iter().filter(|device| self.was_present(device));
        let present: Vec<&Device> = present.map(|device| device.device).collect();
        let columns = MetricColumns::choose(request, names, &present, self.of.is_combined());

        columns.map_err(|mut problem| {
            let room = match self.of {
                GroupOf::Room(room) => room.as_str(),
                GroupOf::NoRoom => "no room",
                GroupOf::Device | GroupOf::Together | GroupOf::Apart => return problem,
            };
            problem.detail = format!("{} (in {room})", problem.detail);
            problem
        })
    }

    /// The question about one of the devices.
    pub(crate) fn question<'a>(
        &'a self,
        device: &'a Device,
        plan: &'a RowPlan,
    ) -> DeviceQuestion<'a> {
        DeviceQuestion { rooms: self.rooms.as_ref(), ..plan.question(device) }
    }

    /// The reads of the devices, whose cost is charged before a reading is read.
    pub(crate) fn planned_reads<'a>(
        &'a self,
        names: &[MetricName],
        plan: &'a RowPlan,
    ) -> impl Iterator<Item = PlannedRead<'a>> {
        self.devices.iter().map(|device| PlannedRead::of(self.question(device, plan), names))
    }

    /// Reads the rows of the devices. The nearest readings outside of the range are read only for metrics that
    /// `needs_neighbours` accepts.
    pub(crate) async fn read<'a, S: Store>(
        &'a self,
        session: Session<'_, S>,
        names: &[MetricName],
        needs_neighbours: impl Fn(&MetricRule) -> bool + Copy,
        plan: &'a RowPlan,
    ) -> Result<Vec<DeviceRows<'a>>, SeriesError> {
        let devices = self.devices.iter().map(|device| (self.question(device, plan), names));
        read_rows(session, devices, needs_neighbours).await
    }

    /// Whether a device was in the rooms of the group: it is there now, has readings there, or has a share of a
    /// counter's rise or of a power.
    pub(crate) fn was_present(&self, values: &DeviceRows<'_>) -> bool {
        let Some(rooms) = &self.rooms else { return true };
        let is_there_now = values.device.place().room().is_some_and(|room| rooms.contains(room));
        let mut pieces = values.gathered.pieces.iter();
        is_there_now || pieces.any(|piece| !piece.is_in_other_room) || values.has_share()
    }

    /// Finds the devices that the `sums` of metrics leave out, because a meter with the same metric measures the same
    /// energy. Also finds the meters that were in the rooms for only a part of the range. Devices with rows of their
    /// own have no sum.
    pub(crate) async fn sum_exclusions<'a, S: Store>(
        &self,
        values: &[DeviceRows<'a>],
        sums: impl Iterator<Item = &MetricName>,
        behind: impl Fn(&DeviceId) -> Option<&'a DeviceId> + Copy,
        plan: &RowPlan,
        session: Session<'_, S>,
    ) -> Result<SumExclusions<'a>, SeriesError> {
        if !self.of.is_combined() {
            return Ok(SumExclusions::default());
        }

        let sums: Vec<MetricSum<'_, 'a>> = sums.map(|name| self.sum_of(name, values)).collect();
        let meters: BTreeMap<&DeviceId, &DeviceRows<'a>> =
            sums.iter().flat_map(|sum| sum.meters(behind)).collect();
        let meters: Vec<&DeviceRows<'a>> = meters.into_values().collect();

        let devices: Vec<&Device> = values.iter().map(|values| values.device).collect();
        let question = |device| self.question(device, plan);
        let presences = presences(session, &meters, question, &devices, behind).await?;

        let mut left_out: BTreeMap<&DeviceId, Vec<Option<LeftOut<'a>>>> = BTreeMap::new();
        let mut moved = BTreeMap::new();
        for sum in sums {
            let mut found = sum.sum_exclusions(behind, &presences);
            for id in sum.present {
                left_out.entry(id).or_default().push(found.left_out.remove(id));
            }
            moved.append(&mut found.moved);
        }

        let left_out = left_out.into_values().flat_map(LeftOut::joined).collect();
        Ok(SumExclusions { left_out, moved: moved.into_values().collect() })
    }

    /// The devices of the sum of a metric.
    fn sum_of<'v, 'a>(
        &self,
        name: &'v MetricName,
        values: &'v [DeviceRows<'a>],
    ) -> MetricSum<'v, 'a> {
        let measures = |device: &&DeviceRows<'a>| {
            device.metrics.contains_key(name) && device.device.not_of_room(name).is_none()
        };
        let measuring: BTreeMap<&'a DeviceId, &DeviceRows<'a>> =
            values.iter().filter(measures).map(|device| (device.device.id(), device)).collect();

        let present = measuring.iter().filter(|(_, device)| self.was_present(device));
        let present = present.map(|(id, _)| *id).collect();
        MetricSum { name, measuring, present }
    }
}

/// The devices of the sum of a metric.
struct MetricSum<'v, 'a> {
    name: &'v MetricName,
    /// The devices that measure the metric.
    measuring: BTreeMap<&'a DeviceId, &'v DeviceRows<'a>>,
    /// The measuring devices that were in the rooms.
    present: Vec<&'a DeviceId>,
}

impl<'v, 'a> MetricSum<'v, 'a> {
    /// The measuring meters that any present device is behind.
    fn meters(
        &self,
        behind: impl Fn(&DeviceId) -> Option<&'a DeviceId> + Copy,
    ) -> impl Iterator<Item = (&'a DeviceId, &'v DeviceRows<'a>)> {
        let above = self.present.iter().flat_map(move |id| meters_above(id, behind));
        above.filter_map(|meter| Some((meter, *self.measuring.get(meter)?)))
    }

    /// The devices that the sum leaves out, each with the metric, and the meters that moved.
    fn sum_exclusions(
        &self,
        behind: impl Fn(&DeviceId) -> Option<&'a DeviceId>,
        presences: &BTreeMap<&'a DeviceId, Presence>,
    ) -> BehindMeters<'a> {
        // A meter that does not measure the metric leaves no device out.
        let measuring = presences.iter().filter(|(id, _)| self.measuring.contains_key(*id));
        let measuring = measuring.map(|(id, presence)| (*id, presence.clone())).collect();
        let mut found = BehindMeters::of(self.present.iter().copied(), behind, &measuring);

        for (id, left_out) in &mut found.left_out {
            let metrics = self.measuring[id].device.metrics();
            let name = metrics.get_key_value(self.name).map(|(name, _)| name);
            *left_out = left_out.clone().of_metrics(name.into_iter().collect());
        }
        found
    }
}

/// Reads the rows of devices, each with its metrics. Several devices are read at once.
pub(crate) async fn read_rows<'a, 'n, S: Store>(
    session: Session<'_, S>,
    devices: impl Iterator<Item = (DeviceQuestion<'a>, &'n [MetricName])>,
    needs_neighbours: impl Fn(&MetricRule) -> bool + Copy,
) -> Result<Vec<DeviceRows<'a>>, SeriesError> {
    let reads = devices.map(|(question, names)| async move {
        device_rows(session, &question, names, needs_neighbours).await
    });
    at_once(DEVICE_CONCURRENCY, reads).await
}

/// The rooms that have rows in an answer about all devices by rooms. They say which readings are in no row.
pub(crate) struct RoomsOfRows<'a>(BTreeSet<&'a RoomId>);

impl<'a> RoomsOfRows<'a> {
    /// The rooms of an answer about all devices by rooms; `None` for another answer.
    pub(crate) fn of_all(groups: &[DeviceGroup<'a>]) -> Option<Self> {
        let is_of_all = groups.iter().any(|group| group.of == GroupOf::NoRoom);
        is_of_all.then(|| Self(groups.iter().filter_map(|group| group.of.room()).collect()))
    }

    fn has(&self, room: Option<&RoomId>) -> bool {
        room.is_some_and(|room| self.0.contains(room))
    }

    /// Whether a device has rows in a group. In the group `NoRoom`, a device has rows if it sent readings without a
    /// room, or no readings in a room of the answer.
    pub(crate) fn has_rows(&self, group: &DeviceGroup<'_>, values: &DeviceRows<'_>) -> bool {
        let pieces = || values.gathered.pieces.iter().map(|piece| &piece.rollup.rooms);
        let is_of_rows = pieces().flatten().any(|room| self.has(room.as_ref()));
        group.of != GroupOf::NoRoom || !is_of_rows || pieces().any(|rooms| rooms.contains(&None))
    }

    /// Whether a device sent something without a room, or in a room that is not in the answer.
    pub(crate) fn has_readings_elsewhere(&self, values: &DeviceRows<'_>) -> bool {
        let mut rooms = values.gathered.pieces.iter().map(|piece| &piece.rollup.rooms);
        // A rollup names a limited number of rooms. If a rollup names this number, the device may have been in further
        // rooms.
        rooms.any(|rooms| {
            rooms.len() >= MAX_ROLLUP_ROOMS || !rooms.iter().all(|room| self.has(room.as_ref()))
        })
    }
}
