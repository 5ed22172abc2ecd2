//! The limits of what one answer may cost, checked by an estimate before its data is read. Reads only the densities of
//! devices.

use std::collections::BTreeSet;

use domain::{DeviceId, MetricName};
use table::{Session, at_once};

use crate::density::{Cost, Densities};
use crate::error::SeriesError;
use crate::gather::{DeviceQuestion, Level};
use crate::left_out::DEVICE_CONCURRENCY;
use crate::ports::Store;

/// The largest number of estimated read units of one answer that has rows.
pub const MAX_ROW_UNITS: f64 = 10_000.0;
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

/// The rows of one device that are about to be read.
#[derive(Debug, Clone, Copy)]
pub struct DeviceRows<'a> {
    /// The question that the rows answer.
    pub question: DeviceQuestion<'a>,
    /// The number of metrics that are read.
    pub metrics: usize,
}

impl<'a> DeviceRows<'a> {
    /// The rows with the metrics in `names` that the device has.
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
            "This is made of {} values, of {rows} rows of the metrics of {devices}, and one answer is made \
             of at most {MAX_ROW_VALUES}. Narrow from and to, or ask for a longer unit, for fewer metrics, or room by \
             room or device by device.",
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

/// Reads rows within an allowance.
#[derive(Debug)]
pub struct RowReader<'r, S> {
    /// The table.
    pub session: Session<'r, S>,
    /// The cost of the answer so far, and its limits.
    pub allowance: ReadAllowance<'r>,
}

impl<'r, S: Store> RowReader<'r, S> {
    /// A reader that has read nothing yet.
    pub const fn of(session: Session<'r, S>, densities: &'r Densities) -> Self {
        Self { session, allowance: ReadAllowance::of(MAX_ROW_UNITS, densities) }
    }

    /// Adds the rows of devices to the allowance.
    ///
    /// # Errors
    ///
    /// If the rows have too many values or cost too many read units; the message says what to ask instead.
    pub async fn check_and_charge(&mut self, rows: &[DeviceRows<'_>]) -> Result<(), SeriesError> {
        let Some(first) = rows.first() else { return Ok(()) };
        let (session, allowance) = (self.session, &mut self.allowance);
        let is_new =
            |rows: &&DeviceRows<'_>| allowance.devices.insert(rows.question.device.id().clone());
        let new = rows.iter().filter(is_new).count();
        allowance.values += rows.iter().map(DeviceRows::values).sum::<usize>();
        if allowance.values > MAX_ROW_VALUES {
            return Err(SeriesError::OutOfReach(allowance.too_many(&first.question)));
        }

        // `gather` limits the first read of a single device itself, so only further reads count here.
        let is_first_read_of_single_device = allowance.devices.len() == 1 && new == rows.len();
        if is_first_read_of_single_device {
            return Ok(());
        }

        let costs = rows.iter().map(|rows| allowance.densities.cost(session, &rows.question));
        let costs: Vec<Cost> = at_once(DEVICE_CONCURRENCY, costs).await?;
        let units = rows.iter().zip(costs).map(|(rows, cost)| cost.of(rows.question.coarsest));
        let spent = allowance.add_units(units.sum());
        spent.map_err(|why| SeriesError::OutOfReach(allowance.too_dear(&first.question, why)))
    }
}
