//! The context that the work of one scheduled invocation shares, and the size of a home.

use std::collections::BTreeSet;

use domain::{DeviceId, Timestamp};
use table::{RollupState, Session, StoreError};

use crate::bucket_folding::NotDone;
use crate::log::Done;
use crate::pace::Pace;

/// The context that the work of one scheduled invocation shares.
pub(crate) struct Run<'a, S> {
    /// The session for the work, which ends some seconds before the invocation.
    pub(crate) session: Session<'a, S>,
    /// The session for noting results, which lasts as long as the invocation.
    pub(crate) noting: Session<'a, S>,
    pub(crate) pace: Pace,
    pub(crate) done: Done,
    /// The devices that were swept and not throttled.
    pub(crate) swept: BTreeSet<DeviceId>,
    /// The devices that the table has throttled.
    pub(crate) throttled: BTreeSet<DeviceId>,
    /// The state with the watermarks, once it is read.
    pub(crate) state: Option<RollupState>,
}

impl<S> Run<'_, S> {
    /// Whether no device was swept, and no group is sealed up to `time`. Then the table throttles all devices.
    pub(crate) fn nobody_reached(&self, time: Timestamp) -> bool {
        let mut sealed = self.state.iter().flat_map(|state| state.sealed);
        self.swept.is_empty() && !sealed.any(|sealed| sealed >= time)
    }

    /// Notes that a device failed. The log names a throttled device only once.
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

/// The most devices of a home. The devices of a home are swept together, and listed each minute.
pub(crate) const MAX_HOME: usize = 100;
