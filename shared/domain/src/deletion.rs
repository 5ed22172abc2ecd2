//! The deletion of a device: how far it is and when it may end. Deletes nothing.

use chrono::TimeDelta;

use super::{DeviceId, Timestamp};

/// The time without anything of the device after which its deletion may end.
///
/// By then every instance has read the registry again and refuses the device's readings, and every
/// invocation is over that read a reading before it was deleted and may still have put a rollup of it: the
/// longest, the rollup function's, takes 5 minutes.
pub const DELETION_QUIET: TimeDelta = TimeDelta::minutes(6);

/// How far the deletion of a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    /// When it began.
    pub begun: Timestamp,
    /// When something of the device was found last; when it began, if nothing was.
    pub found: Timestamp,
    /// When it ended: nothing of the device was left.
    pub ended: Option<Timestamp>,
    /// The number of the device's fold settings. A device of the same id that comes again counts on from this
    /// number: functions may remember numbers that are folded, and the rooms of the device at a number.
    pub settings: u64,
}

impl Deletion {
    /// A deletion that begins.
    pub const fn begin(at: Timestamp, settings: u64) -> Self {
        Self { begun: at, found: at, ended: None, settings }
    }

    /// Whether it may end, if nothing of the device is left now.
    pub fn may_end(&self, now: Timestamp, quiet: TimeDelta) -> bool {
        now >= self.found.saturating_add(quiet)
    }
}

/// A device that is being deleted, or is deleted and not forgotten yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedDevice {
    /// The id.
    pub id: DeviceId,
    /// How far the deletion is.
    pub deletion: Deletion,
}
