//! Meters and the devices behind them: which device a sum leaves out, and why a device cannot be put behind a meter.
//! Reads and writes nothing.
//!
//! A meter also measures the energy of the devices behind it. A meter may be behind another meter.

use super::DeviceId;

/// The number of meters that may be above a device when it is put behind a meter. All these meters fit into one
/// transaction.
pub const MAX_METERS_ABOVE: usize = 16;

/// The number of devices that may be directly behind one meter. The item of the meter lists these devices.
pub const MAX_BEHIND: usize = 200;

/// The reasons for which a device cannot be put behind a meter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BehindError {
    /// The meter is the device.
    #[error("is the device itself")]
    Itself,
    /// The meter is not registered, or is being deleted.
    #[error("there is no device {0}")]
    NoMeter(DeviceId),
    /// The meter is behind the device.
    #[error("{meter} is itself behind {device}, directly or by way of others")]
    Circle {
        /// The meter.
        meter: DeviceId,
        /// The device that was to be put behind the meter.
        device: DeviceId,
    },
    /// More meters would be above the device than are allowed.
    #[error(
        "{0} is behind {MAX_METERS_ABOVE} meters or more, one behind the other; at most {MAX_METERS_ABOVE} may be above a device"
    )]
    TooDeep(DeviceId),
    /// The meter has as many devices behind it as allowed.
    #[error("{0} has {MAX_BEHIND} devices directly behind it, and may have no more")]
    Full(DeviceId),
}

/// The meters above a device, the nearest first. In a circle, each meter except the device itself is listed once.
pub fn meters_above<'a>(
    device: &'a DeviceId,
    behind: impl Fn(&DeviceId) -> Option<&'a DeviceId>,
) -> Vec<&'a DeviceId> {
    let mut above: Vec<&DeviceId> = Vec::new();
    let mut next = behind(device);
    while let Some(meter) = next.filter(|meter| *meter != device && !above.contains(meter)) {
        above.push(meter);
        next = behind(meter);
    }
    above
}

/// The nearest counted meter above `device`. Because of this meter, a sum leaves out `device`.
///
/// If devices are behind one another in a circle, the sum keeps the counted device with the smallest id. So the sum
/// contains each counted device or a meter above it.
pub fn meter_of<'a>(
    device: &'a DeviceId,
    behind: impl Fn(&DeviceId) -> Option<&'a DeviceId>,
    is_counted: impl Fn(&DeviceId) -> bool,
) -> Option<&'a DeviceId> {
    let above = meters_above(device, &behind);
    let is_in_circle = above.last().is_some_and(|last| behind(last) == Some(device));
    let counted: Vec<&DeviceId> = above.into_iter().filter(|meter| is_counted(meter)).collect();
    let is_kept = is_in_circle && counted.iter().all(|meter| device < meter);
    counted.first().copied().filter(|_| !is_kept)
}
