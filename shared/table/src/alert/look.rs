//! That the readings of a device are to be looked at again. Looks at none.

use domain::{DeviceId, Timestamp};

/// That readings of a device were stored, changed or deleted which no judgement has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The device.
    pub device: DeviceId,
    /// The earliest instant that was touched.
    pub since: Timestamp,
    /// Changes whenever something is touched, also where the earliest instant stays: who has looked removes the look
    /// that was read, and no later one.
    pub touch: u64,
}
