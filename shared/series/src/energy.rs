//! The energy of meters in kWh: from counters, else from the area under their powers. Reads nothing.

use std::ops::Range;

use domain::{Amount, Device, EnergyUnit, Exact, Flags, Meter, MetricName, watts};

use super::device::DeviceRows;
use super::values::RowValues;

/// The energy of one metric in a row.
fn amount(device: &Device, name: &MetricName, row: &RowValues) -> Option<Amount> {
    let unit = device.metrics().get(name)?.unit.as_ref();
    if let Some(unit) = EnergyUnit::of(unit) {
        return Some(Amount::counted(unit.to_kwh(row.increase.amount.as_ref()?)));
    }
    let watt_millis = &row.area.as_ref()?.area * watts(unit)?;
    Some(Amount::integrated(watt_millis))
}

/// A counter's amount in kWh, or in its own unit if the unit is not one of energy.
pub fn counted_amount(device: &Device, name: &MetricName, amount: &Exact) -> Amount {
    let info = device.metrics().get(name);
    let unit = info.and_then(|info| EnergyUnit::of(info.unit.as_ref()));
    Amount::counted(unit.map_or_else(|| amount.clone(), |unit| unit.to_kwh(amount)))
}

/// The amount of one metric in a row: energy in kWh, or the increase of another counter in its own unit.
pub fn counted(device: &Device, name: &MetricName, row: &RowValues) -> Option<Amount> {
    let other = || Some(counted_amount(device, name, row.increase.amount.as_ref()?));
    amount(device, name, row).or_else(other)
}

/// One row of energy.
#[derive(Debug, Clone, Default)]
pub struct RowEnergy {
    /// The energy that was bought.
    pub bought: Option<Amount>,
    /// The energy that was sold.
    pub sold: Option<Amount>,
    /// The flags of the counters' steps.
    pub flags: Flags,
    /// Whether a share of the energy is estimated.
    pub is_estimated: bool,
}

impl RowEnergy {
    /// The energy of a device in the row with the index `place`.
    pub fn of(it: &DeviceRows<'_>, meter: &Meter<'_>, place: usize) -> Self {
        let mut energy = Self::default();
        let flows = [(&mut energy.bought, &meter.used), (&mut energy.sold, &meter.sold)];

        for (sum, names) in flows {
            for name in names {
                let metric = it.metrics.get(*name);
                let Some(row) = metric.and_then(|metric| metric.rows.get(place)) else { continue };
                energy.flags = energy.flags.union(row.increase.flags);
                energy.is_estimated |= !row.increase.estimated.is_empty();
                if let Some(amount) = amount(it.device, name, row) {
                    sum.get_or_insert_with(Amount::zero).add(&amount);
                }
            }
        }

        energy
    }

    /// Adds the energy of another device or row.
    pub fn add(&mut self, other: &Self) {
        for (sum, part) in [(&mut self.bought, &other.bought), (&mut self.sold, &other.sold)] {
            if let Some(part) = part {
                sum.get_or_insert_with(Amount::zero).add(part);
            }
        }
        self.flags = self.flags.union(other.flags);
        self.is_estimated |= other.is_estimated;
    }
}

/// A device that measures energy, and the metrics that count.
#[derive(Debug)]
pub struct EnergyDevice<'a> {
    /// The rows of the device.
    pub values: DeviceRows<'a>,
    /// The metrics summed up.
    pub meter: Meter<'a>,
}

impl EnergyDevice<'_> {
    /// The energy in the row with this index.
    pub fn row(&self, index: usize) -> RowEnergy {
        RowEnergy::of(&self.values, &self.meter, index)
    }

    /// The energy bought in the row with this index, in kWh; `None` if the row has no such value.
    pub fn bought(&self, index: usize) -> Option<Exact> {
        self.row(index).bought.map(|amount| amount.shown())
    }
}

/// The energy of all devices in a range of rows.
pub fn sum(devices: &[&EnergyDevice<'_>], rows: Range<usize>) -> RowEnergy {
    let mut sum = RowEnergy::default();
    for index in rows {
        devices.iter().for_each(|device| sum.add(&device.row(index)));
    }
    sum
}
