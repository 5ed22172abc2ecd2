//! The deletion of a device: its progress, and when it may end. Deletes nothing.

use chrono::TimeDelta;

use super::{DeviceId, Timestamp};

/// A deletion may end after this time, if no data of the device was found in the meantime.
///
/// By then every instance has read the registry again and refuses the device's readings. Also, every invocation is over
/// that read a reading before the deletion and could still put a rollup of the reading. The longest invocation, of the
/// rollup function, takes 5 minutes.
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
    /// The number of the device's fold settings. A new device of the same id counts on from this number. Otherwise the
    /// numbers that functions remember for folds and rooms could mean another device.
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

/// A device that is being deleted, or was deleted and is not forgotten yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedDevice {
    /// The id.
    pub id: DeviceId,
    /// The progress of the deletion.
    pub deletion: Deletion,
}
