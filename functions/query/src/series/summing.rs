//! The devices of a sum of energy, without those that a meter in the same rooms measures too. Chooses no rooms.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Device, DeviceId, Flags, Meter, MetricName, MetricRule, TimeRange, meters_above};
use series::{
    BehindMeters, CounterSteps, DeviceRows, EnergyDevice, LeftOut, MovedMeter, PlannedRead,
    Presence, ReadAllowance, SeriesError, Store, events,
};
use table::Session;

use super::question::devices::QuestionDevices;
use super::question::groups::{DeviceGroup, read_rows};
use super::question::plan::{RowPlan, hull};

pub(super) struct EnergySum<'a> {
    /// The devices that are shown, in the order of their ids.
    pub(super) devices: Vec<EnergyDevice<'a>>,
    /// Entries that the sum leaves out: devices behind a counted meter, meters that were elsewhere for too long, and
    /// metrics that are not consumption.
    pub(super) left_out: Vec<LeftOut<'a>>,
    /// Meters that were in the rooms for a part of the range only.
    pub(super) moved: BTreeMap<&'a DeviceId, MovedMeter<'a>>,
    /// The meters that have any device of the sum behind them.
    pub(super) meters: BTreeSet<&'a DeviceId>,
    /// The range, widened to all time in which rollups were searched.
    pub(super) reach: TimeRange,
}

impl<'a> EnergySum<'a> {
    /// The devices that count in the sum.
    pub(super) fn counting(&self) -> Vec<&EnergyDevice<'a>> {
        let devices = self.devices.iter();
        devices.filter(|device| !self.is_left_out(device.values.device.id())).collect()
    }

    /// Whether a device is a meter that counts in the place of the devices behind it.
    pub(super) fn is_meter_of_others(&self, id: &DeviceId) -> bool {
        self.meters.contains(id) && !self.left_out.iter().any(|left_out| left_out.is_moved(id))
    }

    fn is_left_out(&self, id: &DeviceId) -> bool {
        self.left_out.iter().any(|left_out| left_out.is_of_whole(id))
    }
}

/// A device that measures energy or power, and the metrics from which its energy comes.
type MeteredDevice<'a> = (&'a Device, Meter<'a>);

/// The inputs of a sum of energy.
pub(super) struct Summing<'a> {
    pub(super) found: &'a QuestionDevices,
    pub(super) group: &'a DeviceGroup<'a>,
    pub(super) plan: &'a RowPlan,
    /// Whether devices that the sum leaves out are shown as well.
    pub(super) is_apart: bool,
}

impl<'a> Summing<'a> {
    /// The shown devices in two groups: the first is always read, a device of the second only if no meter counts in its
    /// place.
    fn in_order_of_reading(
        &self,
        metered: Vec<MeteredDevice<'a>>,
        meters: &BTreeSet<&DeviceId>,
    ) -> (Vec<MeteredDevice<'a>>, Vec<MeteredDevice<'a>>) {
        let shown = metered
            .into_iter()
            .filter_map(|(device, meter)| Some((device, self.shown(device, meter)?)));
        shown.partition(|(device, meter)| {
            self.is_apart
                || meters.contains(device.id())
                || !self.is_behind_any(device, meter, meters)
        })
    }

    /// Reads the devices of a sum. A device behind a meter is read only if no meter counts in its place, or if the
    /// answer shows each device (`is_apart`).
    pub(super) async fn read<S: Store>(
        &self,
        metered: Vec<MeteredDevice<'a>>,
        mut allowance: ReadAllowance<'_>,
        session: Session<'_, S>,
    ) -> Result<EnergySum<'a>, SeriesError> {
        let summed: Vec<&'a DeviceId> = metered
            .iter()
            .filter(|(_, meter)| self.is_summed(meter))
            .map(|(device, _)| device.id())
            .collect();
        let meters = self.meters_of(&summed, &metered);
        let roles: Vec<LeftOut<'a>> =
            metered.iter().flat_map(|(device, meter)| LeftOut::of_roles(device, meter)).collect();

        let all: Vec<&'a Device> = metered.iter().map(|(device, _)| *device).collect();
        let (first, mut later) = self.in_order_of_reading(metered, &meters);
        let mut devices = self.read_devices(first, &mut allowance, session).await?;

        let behind = |id: &DeviceId| self.found.behind(id);
        let values = devices.iter().map(|device| &device.values);
        let values = values.filter(|values| meters.contains(values.device.id()));
        let values: Vec<_> = values.collect();
        let question = |device| self.group.question(device, self.plan);
        let presences = series::presences(session, &values, question, &all, behind).await?;

        let of_all = BehindMeters::of(summed.iter().copied(), behind, &presences);
        later.retain(|(device, _)| !of_all.left_out.contains_key(device.id()));
        devices.extend(self.read_devices(later, &mut allowance, session).await?);
        devices.sort_by_key(|device| device.values.device.id());
        Ok(self.sum(devices, &summed, roles, &presences))
    }

    /// The sum of the devices that were read. Devices that were never in the rooms are left out.
    fn sum(
        &self,
        devices: Vec<EnergyDevice<'a>>,
        summed: &[&'a DeviceId],
        mut roles: Vec<LeftOut<'a>>,
        presences: &BTreeMap<&'a DeviceId, Presence>,
    ) -> EnergySum<'a> {
        let reaches = devices.iter().map(|device| device.values.reach);
        let reach = reaches.fold(self.plan.grid.range(), hull);

        let (mut devices, absent): (Vec<_>, Vec<_>) =
            devices.into_iter().partition(|device| self.group.was_present(&device.values));
        let absent: BTreeSet<&DeviceId> =
            absent.iter().map(|device| device.values.device.id()).collect();
        let present = summed.iter().copied().filter(|id| !absent.contains(id));
        let found = BehindMeters::of(present, |id| self.found.behind(id), presences);

        roles.retain(|role| !found.left_out.contains_key(role.device()));
        let mut left_out: Vec<LeftOut<'a>> = found.left_out.into_values().chain(roles).collect();
        left_out.retain(|left_out| !absent.contains(left_out.device()));

        if !self.is_apart {
            let is_left_out =
                |id: &DeviceId| left_out.iter().any(|left_out| left_out.is_of_whole(id));
            devices.retain(|device| !is_left_out(device.values.device.id()));
        }

        EnergySum { devices, left_out, moved: found.moved, meters: found.meters, reach }
    }

    /// Whether the energy of these metrics counts in sums of several devices.
    fn is_summed(&self, meter: &Meter<'_>) -> bool {
        self.found.is_shared() && meter.is_of_sums() && meter.other_role.is_none()
    }

    /// The metrics by which a device is shown; `None` if the device is not shown.
    fn shown(&self, device: &'a Device, meter: Meter<'a>) -> Option<Meter<'a>> {
        match meter.is_of_sums() {
            true => Some(meter),
            false if self.is_apart => meter.alone(device.metrics()),
            false => None,
        }
    }

    /// The meters of consumption that have devices of a sum behind them.
    fn meters_of(
        &self,
        summed: &[&'a DeviceId],
        metered: &[(&'a Device, Meter<'a>)],
    ) -> BTreeSet<&'a DeviceId> {
        let is_consuming = |id: &&DeviceId| {
            let mut of_sums = metered.iter().filter(|(_, meter)| self.is_summed(meter));
            of_sums.any(|(device, meter)| device.id() == *id && !meter.used.is_empty())
        };
        let above = summed.iter().flat_map(|id| meters_above(id, |id| self.found.behind(id)));
        above.filter(is_consuming).collect()
    }

    fn is_behind_any(
        &self,
        device: &'a Device,
        meter: &Meter<'_>,
        meters: &BTreeSet<&'a DeviceId>,
    ) -> bool {
        let above = meters_above(device.id(), |id| self.found.behind(id));
        self.is_summed(meter) && above.iter().any(|id| meters.contains(id))
    }

    /// Reads devices, each by the metrics from which its energy comes.
    async fn read_devices<S: Store>(
        &self,
        devices: Vec<(&'a Device, Meter<'a>)>,
        allowance: &mut ReadAllowance<'_>,
        session: Session<'_, S>,
    ) -> Result<Vec<EnergyDevice<'a>>, SeriesError> {
        let names: Vec<Vec<MetricName>> =
            devices.iter().map(|(_, meter)| meter.names().cloned().collect()).collect();
        let reads = devices.iter().zip(&names).map(|((device, _), names)| {
            PlannedRead::of(self.group.question(device, self.plan), names)
        });
        let reads: Vec<_> = reads.collect();
        Box::pin(allowance.charge(session, &reads)).await?;

        let needs_neighbours = |rule: &MetricRule| *rule != MetricRule::Gauge;
        let questions = reads.iter().map(|read| read.question).zip(names.iter().map(Vec::as_slice));
        let values: Vec<DeviceRows<'a>> = read_rows(session, questions, needs_neighbours).await?;

        let meters = devices.into_iter().map(|(_, meter)| meter);
        Ok(values
            .into_iter()
            .zip(meters)
            .map(|(values, meter)| EnergyDevice { values, meter })
            .collect())
    }

    /// The events of the devices that are shown.
    pub(super) async fn events<S: Store>(
        &self,
        sum: &EnergySum<'a>,
        session: Session<'_, S>,
    ) -> Result<CounterSteps, SeriesError> {
        let mut found = CounterSteps::default();
        for device in &sum.devices {
            let question = self.group.question(device.values.device, self.plan);
            let names: Vec<MetricName> = device.meter.names().cloned().collect();
            found.append(events(session, &question, &names, Flags::ALL).await?);
        }
        Ok(found)
    }
}
