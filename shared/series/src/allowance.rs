//! The limits of an answer's cost, checked by an estimate before data is read. Reads only the densities of devices.

use std::collections::BTreeSet;

use domain::{DeviceId, MetricName};
use table::{Session, at_once};

use crate::density::{Cost, Densities};
use crate::error::SeriesError;
use crate::gather::{DeviceQuestion, Level};
use crate::left_out::DEVICE_CONCURRENCY;
use crate::ports::Store;

/// The largest number of estimated read units of one answer that has rows.
const MAX_ROW_UNITS: f64 = 10_000.0;
/// The largest number of values of one answer that has rows: rows times the metrics of each device. Each value takes
/// about 400 bytes of the function's memory, also where nothing was measured.
pub const MAX_ROW_VALUES: usize = 1_000_000;

/// The cost of an answer so far, and its limit.
#[derive(Debug)]
pub struct ReadAllowance<'a> {
    /// The known densities of devices.
    pub densities: &'a Densities,
    max_units: f64,
    units: f64,
    values: usize,
    devices: BTreeSet<DeviceId>,
}

/// The error of an answer that would cost too many read units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TooDear {
    /// The estimated units.
    pub units: f64,
    /// The largest number of units that is allowed.
    pub max_units: f64,
}

/// A read of one device that an answer needs. Its cost is charged before anything is read.
#[derive(Debug, Clone, Copy)]
pub struct PlannedRead<'a> {
    /// The question about the device.
    pub question: DeviceQuestion<'a>,
    /// The number of metrics that are read.
    pub metrics: usize,
}

impl<'a> PlannedRead<'a> {
    /// A read of the metrics in `names` that the device has.
    pub fn of(question: DeviceQuestion<'a>, names: &[MetricName]) -> Self {
        let known = question.device.metrics();
        let metrics = names.iter().filter(|name| known.contains_key(*name)).count();
        Self { question, metrics }
    }

    fn values(&self) -> usize {
        self.metrics * self.question.grid.rows().len()
    }
}

impl<'a> ReadAllowance<'a> {
    /// The allowance of an answer that has rows.
    pub const fn of_rows(densities: &'a Densities) -> Self {
        Self::of(MAX_ROW_UNITS, densities)
    }

    /// An allowance of `max_units` read units.
    pub const fn of(max_units: f64, densities: &'a Densities) -> Self {
        Self { densities, max_units, units: 0.0, values: 0, devices: BTreeSet::new() }
    }

    /// Adds the cost of a read; an error if the limit is passed.
    pub fn add_units(&mut self, units: f64) -> Result<(), TooDear> {
        self.units += units;
        let Self { units, max_units, .. } = *self;
        if units > max_units { Err(TooDear { units, max_units }) } else { Ok(()) }
    }

    /// Charges the reads of devices that an answer in rows needs.
    ///
    /// # Errors
    ///
    /// If the rows have too many values or cost too many read units; the message says what to request instead.
    pub async fn charge(
        &mut self,
        session: Session<'_, impl Store>,
        reads: &[PlannedRead<'_>],
    ) -> Result<(), SeriesError> {
        let Some(first) = reads.first() else { return Ok(()) };
        let devices_before = self.devices.len();
        self.devices.extend(reads.iter().map(|read| read.question.device.id().clone()));
        self.values += reads.iter().map(PlannedRead::values).sum::<usize>();
        if self.values > MAX_ROW_VALUES {
            return Err(SeriesError::OutOfReach(self.too_many(&first.question)));
        }

        // The first read of a lone device is not charged: `gather` limits it.
        let new_devices = self.devices.len() - devices_before;
        let is_first_read_of_single_device = self.devices.len() == 1 && new_devices == reads.len();
        if is_first_read_of_single_device {
            return Ok(());
        }

        let costs = reads.iter().map(|read| self.densities.cost(session, &read.question));
        let costs: Vec<Cost> = at_once(DEVICE_CONCURRENCY, costs).await?;
        let units = reads.iter().zip(costs).map(|(read, cost)| cost.of(read.question.coarsest));
        let spent = self.add_units(units.sum());
        spent.map_err(|why| SeriesError::OutOfReach(self.too_dear(&first.question, why)))
    }

    /// The number of devices, in words.
    fn devices(&self) -> String {
        match self.devices.len() {
            1 => "one device".to_owned(),
            number => format!("{number} devices"),
        }
    }

    fn too_many(&self, question: &DeviceQuestion<'_>) -> String {
        let (rows, devices) = (question.grid.rows().len(), self.devices());
        format!(
            "This answer would have {} values, from {rows} rows of the metrics of {devices}; one answer has at most \
             {MAX_ROW_VALUES}. Narrow from and to, or ask for a longer unit, for fewer metrics, or room by room or \
             device by device.",
            self.values
        )
    }

    fn too_dear(
        &self,
        question: &DeviceQuestion<'_>,
        TooDear { units, max_units }: TooDear,
    ) -> String {
        let longer = match question.coarsest {
            Level::Readings => ", or ask with every=15m or longer".to_owned(),
            Level::QuarterHours => {
                let zone = question.horizon.zone();
                format!(", or ask with every=1d, 1w, 1mo or 1y in the home's time zone, {zone}")
            }
            Level::Days => String::new(),
        };

        format!(
            "This takes about {units:.0} read units of {}, and one answer takes at most {max_units}. Narrow \
             from and to{longer}, or ask room by room or device by device.",
            self.devices()
        )
    }
}
