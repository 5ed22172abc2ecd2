//! The number of readings of a device in a day, estimated from its newest daily rollup and remembered. Reads no
//! reading.

use std::ops::RangeInclusive;

use chrono::TimeDelta;
use domain::{Bucket, Device, DeviceId, LocalDate, Order};
use table::sizes::ItemSizes;
use table::{BoundedMemory, Session, StoreResult};

use crate::gather::{DeviceQuestion, Level};
use crate::ports::Store;

/// The number of bytes that one read unit covers.
const UNIT: f64 = 8_192.0;
/// The approximate number of read units that one daily rollup costs.
const DAY_UNITS: f64 = 0.05;
/// For ranges up to this length, the usual density is assumed.
const SHORT: TimeDelta = TimeDelta::days(2);
/// The assumed number of readings a day, if the number is not known: one reading a minute.
const USUAL_READINGS: f64 = 1_440.0;
/// The largest number of remembered pairs of device and date; beyond this number all are forgotten.
const MAX_REMEMBERED: usize = 10_000;

/// The estimated read units of a range of one device, for each kind of items that may be read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// The read units to read the device's readings.
    pub readings: f64,
    /// The read units to read rollups of quarters of an hour.
    pub quarters: f64,
    /// The read units to read daily rollups.
    pub days: f64,
}

impl Cost {
    /// The cost of the items of a level.
    pub const fn of(self, level: Level) -> f64 {
        match level {
            Level::Readings => self.readings,
            Level::QuarterHours => self.quarters,
            Level::Days => self.days,
        }
    }
}

/// The number of a device's readings in a day, and the bytes of its items.
#[derive(Debug, Clone, Copy)]
struct Density {
    readings: f64,
    sizes: ItemSizes,
}

impl Density {
    /// The assumed density of a device whose density is not known.
    fn usual(device: &Device) -> Self {
        Self::of(device, usize::MAX, USUAL_READINGS)
    }

    /// The density of a device with `readings` readings a day and this number of metrics.
    fn of(device: &Device, metrics: usize, readings: f64) -> Self {
        Self { readings, sizes: ItemSizes::of(device, metrics) }
    }

    /// The read units of this number of days.
    fn cost(self, days: f64) -> Cost {
        Cost {
            readings: self.readings * as_float(self.sizes.reading) * days / UNIT,
            quarters: self.readings.min(96.0) * as_float(self.sizes.rollup) * days / UNIT,
            days: 1.0 + days * DAY_UNITS,
        }
    }
}

fn as_float(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

fn days_of(length: TimeDelta) -> f64 {
    length.as_seconds_f64() / 86_400.0
}

/// The densities of devices, remembered by device and date, so that a repeated question costs no extra read. An old
/// density only makes an estimate less exact.
#[derive(Debug)]
pub struct Densities(BoundedMemory<(DeviceId, LocalDate), NewestDay>);

impl Default for Densities {
    fn default() -> Self {
        Self(BoundedMemory::new(MAX_REMEMBERED, TimeDelta::MAX))
    }
}

#[derive(Debug, Clone, Copy)]
struct NewestDay {
    date: LocalDate,
    metrics: usize,
    readings: f64,
}

impl Densities {
    /// Estimates the read units of a question about one device. Time before its first reading and after now does not
    /// count.
    pub async fn cost(
        &self,
        session: Session<'_, impl Store>,
        question: &DeviceQuestion<'_>,
    ) -> StoreResult<Cost> {
        let DeviceQuestion { device, horizon, now, .. } = *question;
        let range = question.grid.range();
        // Time after now does not count: it may have forecasts, but only a few.
        let (from, to) = (range.from().max(device.first_seen()), range.to().min(now));
        let lived = to.since(from).max(TimeDelta::zero());
        if lived <= SHORT || question.coarsest == Level::Days {
            return Ok(Density::usual(device).cost(days_of(lived)));
        }

        let zone = horizon.zone();
        let dates = zone.dates(range);
        Ok(self.of(session, device, dates).await?.cost(days_of(lived)))
    }

    /// The density of a device, by its newest daily rollup between two dates (both inclusive).
    async fn of(
        &self,
        session: Session<'_, impl Store>,
        device: &Device,
        dates: RangeInclusive<LocalDate>,
    ) -> StoreResult<Density> {
        let key = (device.id().clone(), *dates.end());
        let density = |day: NewestDay| Density::of(device, day.metrics, day.readings);
        let known = self.0.get(&key, session.now);
        if let Some(day) = known.filter(|day| day.date >= *dates.start()) {
            return Ok(density(day));
        }

        let Some(day) = newest_day(session, device, dates).await? else {
            return Ok(Density::usual(device));
        };
        self.0.keep(key, day, session.now);
        Ok(density(day))
    }
}

async fn newest_day(
    session: Session<'_, impl Store>,
    device: &Device,
    dates: RangeInclusive<LocalDate>,
) -> StoreResult<Option<NewestDay>> {
    let days = session.days(device.id(), dates, Order::Descending, 1).await?;
    let Some(day) = days.first() else { return Ok(None) };
    let Bucket::Day(date) = day.key.bucket else { return Ok(None) };
    let count = f64::from(u32::try_from(day.rollup.most_values()).unwrap_or(u32::MAX));
    let readings = count / days_of(day.range.length()).max(0.04);
    Ok(Some(NewestDay { date, metrics: day.rollup.metrics.len(), readings }))
}
