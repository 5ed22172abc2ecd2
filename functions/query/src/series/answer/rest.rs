//! The rest: energy that meters measured and the devices behind them did not. Does not decide which devices count.

use std::collections::BTreeMap;
use std::ops::Range;

use domain::{Amount, DeviceId, Exact, TimeRange, Timestamp};
use serde::Serialize;
use series::{EnergyDevice, MovedMeter, sum};

use crate::series::summing::EnergySum;

/// The devices of a sum of energy, sorted to compute the rest.
pub(crate) struct EnergyRest<'s, 'a> {
    /// The devices that count in the sum.
    counting: Vec<&'s EnergyDevice<'a>>,
    /// The devices that measure consumption and have no device behind them.
    endmost: Vec<&'s EnergyDevice<'a>>,
    /// The meters that count in the place of the devices behind them.
    meters: Vec<&'s EnergyDevice<'a>>,
    moved: &'s BTreeMap<&'a DeviceId, MovedMeter<'a>>,
    rows: &'s [TimeRange],
}

/// The energy of one row that meters measured and the devices behind them did not.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub(crate) struct RestRow {
    timestamp: Timestamp,
    kwh: Option<Exact>,
}

impl<'s, 'a> EnergyRest<'s, 'a> {
    /// Sorts the devices of a sum.
    pub(crate) fn of(sum: &'s EnergySum<'a>, rows: &'s [TimeRange]) -> Self {
        let (mut endmost, mut meters) = (Vec::new(), Vec::new());
        let consuming = sum.devices.iter().filter(|device| device.meter.other_role.is_none());
        for device in consuming {
            let id = device.values.device.id();
            if !sum.meters.contains(id) {
                endmost.push(device);
            } else if sum.is_meter_of_others(id) {
                meters.push(device);
            }
        }
        Self { counting: sum.counting(), endmost, meters, moved: &sum.moved, rows }
    }

    /// The sum of the devices that have no device behind them, in some rows.
    pub(crate) fn counted(&self, rows: Range<usize>) -> Option<Exact> {
        bought(&self.endmost, rows).map(|amount| amount.shown())
    }

    /// The rest of some rows: the total energy without `counted`. `None` if a meter measured nothing or was elsewhere.
    pub(crate) fn rest_of(&self, rows: &Range<usize>) -> Option<Exact> {
        let total = bought(&self.counting, rows.clone())?.shown();
        let rest = match self.counted(rows.clone()) {
            Some(counted) => &total - &counted,
            None => total,
        };
        self.meters.iter().all(|meter| self.is_known(meter, rows)).then_some(rest)
    }

    /// Whether a meter measured something in some rows, and was in the rooms for all their time.
    fn is_known(&self, meter: &EnergyDevice<'_>, rows: &Range<usize>) -> bool {
        let moved = self.moved.get(meter.values.device.id());
        let mut ranges = self.rows[rows.clone()].iter();
        let was_there = moved.is_none_or(|moved| ranges.all(|range| moved.was_there(*range)));
        was_there && bought(&[meter], rows.clone()).is_some()
    }

    /// Whether any device is behind a meter.
    pub(crate) fn has_meters(&self) -> bool {
        !self.meters.is_empty()
    }

    pub(crate) fn rows(&self) -> Vec<RestRow> {
        let rest_row = |(row, range): (usize, &TimeRange)| RestRow {
            timestamp: range.from(),
            kwh: self.rest_of(&(row..row + 1)),
        };
        self.rows.iter().enumerate().map(rest_row).collect()
    }
}

/// The energy that devices consumed in some rows.
fn bought(devices: &[&EnergyDevice<'_>], rows: Range<usize>) -> Option<Amount> {
    sum(devices, rows).bought
}
