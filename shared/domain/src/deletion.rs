//! The deletion of a device: its progress, and when it may end. Deletes nothing.

use chrono::TimeDelta;

use super::{DeviceId, Timestamp};

/// The time after which a deletion may end, if no data of the device was found during this time.
///
/// By then every instance has read the registry again and refuses the device's readings. Invocations that read a
/// reading before the deletion, and could still store its rollup, have ended too: the longest, of the rollup function,
/// takes 5 minutes.
pub const DELETION_QUIET: TimeDelta = TimeDelta::minutes(6);

/// The progress of the deletion of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    /// The begin of the deletion.
    pub begun: Timestamp,
    /// When something of the device was last found; the begin of the deletion if nothing was found.
    pub found: Timestamp,
    /// The end of the deletion: nothing of the device is left.
    pub ended: Option<Timestamp>,
    /// The number of the device's fold settings. If a new device gets the same id, the new device's numbers continue
    /// from this number. Otherwise functions that remember a number for folds and rooms could take the new device for
    /// the deleted one.
    pub settings: u64,
}

impl Deletion {
    /// A deletion that begins.
    pub const fn begin(at: Timestamp, settings: u64) -> Self {
        Self { begun: at, found: at, ended: None, settings }
    }

    /// Whether the deletion may end, if nothing of the device is left now.
    pub fn may_end(&self, now: Timestamp, quiet: TimeDelta) -> bool {
        now >= self.found.saturating_add(quiet)
    }
}

/// A device whose deletion is under way, or has ended and is still remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedDevice {
    /// The id.
    pub id: DeviceId,
    /// The progress of the deletion.
    pub deletion: Deletion,
}
