//! What all the work of one invocation by the schedule needs, and how large a home is.

use std::collections::BTreeSet;

use domain::{DeviceId, Timestamp};
use table::{RollupState, Session, StoreError};

use crate::bucket_folding::NotDone;
use crate::log::Done;
use crate::pace::Pace;

/// The part of an invocation by the schedule that all of its work needs.
pub(crate) struct Run<'a, S> {
    /// The table, without the last seconds of the invocation.
    pub(crate) session: Session<'a, S>,
    /// The table for the whole invocation, for noting what is done.
    pub(crate) noting: Session<'a, S>,
    pub(crate) pace: Pace,
    pub(crate) done: Done,
    /// The devices that were swept and not throttled.
    pub(crate) swept: BTreeSet<DeviceId>,
    /// The devices that the table has throttled.
    pub(crate) throttled: BTreeSet<DeviceId>,
    /// How far the sweeps came, once it is read.
    pub(crate) state: Option<RollupState>,
}

impl<S> Run<'_, S> {
    /// Whether no device was swept, and no group is sealed up to a time: then the table throttles all devices.
    pub(crate) fn nobody_reached(&self, time: Timestamp) -> bool {
        let mut sealed = self.state.iter().flat_map(|state| state.sealed);
        self.swept.is_empty() && !sealed.any(|sealed| sealed >= time)
    }

    /// Notes that a device failed. The log names it once.
    pub(crate) fn fail(&mut self, device: &DeviceId, error: &NotDone) {
        let is_throttled = matches!(error, NotDone::Store(StoreError::Throttled(_)));
        if is_throttled {
            self.swept.remove(device);
        }
        if !is_throttled || self.throttled.insert(device.clone()) {
            self.done.failed(device, error.cause());
        }
    }
}

/// The most devices of a home: they are swept at once, and listed each minute.
pub(crate) const MAX_HOME: usize = 100;
