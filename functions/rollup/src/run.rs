//! The state that the steps of one scheduled invocation share, and the largest size of a home.

use std::collections::BTreeSet;

use domain::{DeviceId, Timestamp};
use table::{RollupState, Session, StoreError};

use crate::bucket_folding::NotDone;
use crate::log::Done;
use crate::pace::BackgroundPace;

/// The state that the steps of one scheduled invocation share.
pub(crate) struct ScheduledRun<'a, S> {
    /// The session for the work, which ends some seconds before the invocation.
    pub(crate) session: Session<'a, S>,
    /// The session for storing results, which lasts as long as the invocation.
    pub(crate) noting: Session<'a, S>,
    pub(crate) pace: BackgroundPace,
    pub(crate) done: Done,
    /// The devices that were swept and not throttled.
    pub(crate) swept: BTreeSet<DeviceId>,
    /// The devices that the table has throttled.
    pub(crate) throttled: BTreeSet<DeviceId>,
    /// The stored state, once it is read. It says up to which time each group is swept, also in this invocation.
    pub(crate) state: Option<RollupState>,
}

impl<S> ScheduledRun<'_, S> {
    /// Whether the table seems to throttle all devices: no device was swept, and no group is swept up to `time`.
    pub(crate) fn nobody_reached(&self, time: Timestamp) -> bool {
        let mut sealed = self.state.iter().flat_map(|state| state.sealed);
        self.swept.is_empty() && !sealed.any(|sealed| sealed >= time)
    }

    /// Notes that it is stored up to which time groups are swept.
    pub(crate) fn advance_sealed(&mut self, groups: &BTreeSet<usize>, sealed_until: Timestamp) {
        if let Some(state) = &mut self.state {
            groups.iter().for_each(|group| state.sealed[*group] = sealed_until);
        }
    }

    /// Adds a failed device to the log. The log names a throttled device only once.
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

/// The largest number of devices of a home; more are a fleet. A home's devices are swept together, and listed each
/// minute.
pub(crate) const MAX_HOME: usize = 100;
