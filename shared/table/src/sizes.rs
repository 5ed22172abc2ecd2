//! The approximate bytes of items, as `DynamoDB` counts them: names and texts by their length, a number by half its
//! digits ([AWS][sizes]). Reads no item.
//!
//! [sizes]: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html

use domain::{Decimal, Device, MAX_METRICS, MetricRollup, OfKind, Reading, RoomId, Timestamp};

use crate::rollup::StoredRollup;

/// The bytes of a reading without its texts and metrics: its key, and the name of the attribute with the room.
const READING: usize = 39;
/// The bytes of a rollup without its texts and metrics.
const ROLLUP: usize = 100;
/// The bytes of a typical value of a sensor.
const VALUE: usize = 4;
const LONGEST_VALUE: usize = 21;
/// The bytes of a metric's numbers in a rollup.
const METRIC: usize = 50;
/// The bytes that only a daily rollup has: its zone, start and end.
const DAY: usize = 75;
/// The approximate bytes of a rollup's attributes for the conditions index: its month, its address, and the means of
/// the schema's metrics.
pub const INDEXED: usize = 80;
/// The bytes that a query reads for half a read unit.
const HALF: usize = 4_096;
/// The bytes of a list without its members, and the bytes of a member without its value.
const LIST: usize = 3;
const MEMBER: usize = 1;

/// The approximate bytes of a device's items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemSizes {
    /// A reading.
    pub reading: usize,
    /// A rollup.
    pub rollup: usize,
}

impl ItemSizes {
    /// The sizes of items that have this number of the device's metrics.
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

/// The approximate bytes of the item of a reading.
pub fn of_reading(reading: &Reading) -> usize {
    let number = |value: &Decimal| value.as_str().len() / 2 + 2;
    let metrics = reading.metrics().iter();
    let metrics: usize = metrics.map(|(name, value)| name.as_str().len() + number(value)).sum();
    let room = reading.room.as_ref().map_or(0, |room| room.as_str().len());
    READING + reading.device.as_str().len() + room + metrics
}

/// The cost of a query that reads this number of bytes, in halves of a read unit. A query costs at least one half.
pub fn read_halves(bytes: usize) -> usize {
    bytes.div_ceil(HALF).max(1)
}

/// Converts halves of a read unit to read units.
pub fn units_of(halves: usize) -> f64 {
    f64::from(u32::try_from(halves).unwrap_or(u32::MAX)) / 2.0
}

/// The approximate bytes of the item of a rollup.
pub fn of_rollup(stored: &StoredRollup) -> usize {
    let room = |room: &Option<RoomId>| MEMBER + room.as_ref().map_or(0, |room| room.as_str().len());
    let rooms: usize = stored.rollup.rooms.iter().map(room).sum();
    let (start, metrics) = (stored.range.from(), stored.rollup.metrics.iter());
    let metrics: usize =
        metrics.map(|(name, it)| name.as_str().len() + MEMBER + of_metric(it, start)).sum();
    let device = stored.key.device.as_str().len();
    let more =
        usize::from(stored.zone.is_some()) * DAY + usize::from(stored.indexed.is_some()) * INDEXED;
    ROLLUP + device + rooms + metrics + more
}

/// The bytes of a metric's numbers. A sum has about as many digits as the values and the count together.
fn of_metric(metric: &MetricRollup, start: Timestamp) -> usize {
    let values = [&metric.min, &metric.max, &metric.first.value, &metric.last.value];
    let values: usize = values.into_iter().map(number).sum();
    let times = [metric.first.at, metric.last.at];
    let times: usize =
        times.iter().map(|at| whole(at.since(start).num_milliseconds().unsigned_abs())).sum();
    let count = whole(metric.count);
    let sum = number(&metric.max) + (count - 1) * usize::from(metric.count > 1);

    let of_kind = match &metric.of_kind {
        OfKind::Gauge => 0,
        OfKind::Counter { flags, .. } => {
            let flags = usize::from(!flags.is_empty()) * (MEMBER + whole(flags.bits().into()));
            MEMBER + LIST + MEMBER + number(&metric.max) + flags
        }
        OfKind::Power { held, .. } => {
            let held = whole(held.num_milliseconds().unsigned_abs());
            MEMBER + number(&metric.max) + held + MEMBER + held
        }
    };

    LIST + 8 * MEMBER + count + sum + values + times + of_kind
}

/// The bytes of a number: one, and one more for each two digits. Zeros at either end do not count.
fn number(value: &Decimal) -> usize {
    let (mut digits, mut zeros) = (0_usize, 0);
    for byte in value.as_str().bytes().take_while(|byte| !matches!(byte, b'e' | b'E')) {
        match byte {
            b'0' if digits > 0 => zeros += 1,
            b'1'..=b'9' => {
                digits += zeros + 1;
                zeros = 0;
            }
            _ => {}
        }
    }
    1 + digits.div_ceil(2)
}

fn whole(number: u64) -> usize {
    1 + number.to_string().trim_end_matches('0').len().div_ceil(2)
}

/// The approximate bytes of a device's largest possible reading: as many metrics as allowed, with the longest names and
/// values.
pub fn of_largest_reading(device: &Device) -> usize {
    let mut names: Vec<usize> = device.metrics().keys().map(|name| name.as_str().len()).collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    let metrics: usize = names.into_iter().take(MAX_METRICS).map(|name| name + LONGEST_VALUE).sum();
    READING + device.id().as_str().len() + room_bytes(device) + metrics
}

fn room_bytes(device: &Device) -> usize {
    device.place().room().map_or(0, |room| room.as_str().len())
}
