//! About how many bytes items have as `DynamoDB` counts them: names and texts by their length, a number by half its
//! digits ([AWS][sizes]). Reads no item.
//!
//! [sizes]: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html

use domain::{Decimal, Device, MAX_METRICS, Reading};

/// The names and numbers of a reading's key, and the name of its room.
const READING: usize = 39;
/// The same of a rollup, and what it has whatever its metrics.
const ROLLUP: usize = 100;
/// A value of a usual sensor.
const VALUE: usize = 4;
/// The longest value.
const LONGEST_VALUE: usize = 21;
/// The numbers that a rollup has of a metric.
const METRIC: usize = 50;

/// About how many bytes the items of a device have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemSizes {
    /// A reading.
    pub reading: usize,
    /// A rollup.
    pub rollup: usize,
}

impl ItemSizes {
    /// Those of items with so many of the device's metrics.
    #[must_use]
    pub fn of(device: &Device, metrics: usize) -> Self {
        let names: usize = device.metrics().keys().map(|name| name.as_str().len()).sum();
        let known = device.metrics().len().max(1);
        let metrics = metrics.clamp(1, known);
        let texts = device.id().as_str().len() + room_bytes(device) + names * metrics / known;
        Self {
            reading: READING + texts + VALUE * metrics,
            rollup: ROLLUP + texts + METRIC * metrics,
        }
    }
}

/// About how many bytes the item of a reading has.
#[must_use]
pub fn of_reading(reading: &Reading) -> usize {
    let number = |value: &Decimal| value.as_str().len() / 2 + 2;
    let metrics = reading.metrics().iter();
    let metrics: usize = metrics.map(|(name, value)| name.as_str().len() + number(value)).sum();
    let room = reading.room.as_ref().map_or(0, |room| room.as_str().len());
    READING + reading.device.as_str().len() + room + metrics
}

/// About how many bytes the item of a device's largest reading has: that of its longest metrics with the longest values.
#[must_use]
pub fn of_largest_reading(device: &Device) -> usize {
    let mut names: Vec<usize> = device.metrics().keys().map(|name| name.as_str().len()).collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    let metrics: usize = names.into_iter().take(MAX_METRICS).map(|name| name + LONGEST_VALUE).sum();
    READING + device.id().as_str().len() + room_bytes(device) + metrics
}

fn room_bytes(device: &Device) -> usize {
    device.place().room().map_or(0, |room| room.as_str().len())
}
