//! The counts and warnings of one invocation, for its log event. Does no work itself.

use domain::DeviceId;
use runtime::telemetry::{WideEvent, chain};
use runtime::work_queue::{FoldRequest, NotSent};
use table::StoreError;

/// The work that one invocation has done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Quarters whose rollups were stored.
    pub(crate) quarters: usize,
    /// Days whose rollups were stored.
    pub(crate) days: usize,
    /// Devices that were swept.
    pub(crate) devices: usize,
    /// Devices whose alerts are to be judged again.
    pub(crate) rechecks: usize,
    /// Why the table refused to read the rules of alerts, to read the devices of rechecks, or to store rechecks.
    pub(crate) rechecks_refused: Option<StoreError>,
    /// The number of buckets that are left to the queue.
    pub(crate) queued: u64,
    /// Why a backlog could not be stored.
    pub(crate) backlog_error: Option<StoreError>,
    /// Why the queue gave no number of messages.
    pub(crate) queue_error: Option<NotSent>,
    /// The first buckets that are left to the queue, with the reasons.
    reasons: Vec<String>,
    /// The first devices that failed, with the reasons.
    failed: Vec<String>,
}

/// How many buckets, and how many failed devices, a log event names. All buckets are counted.
const MAX_NAMED: usize = 10;

impl Done {
    /// Counts a bucket that is left to the queue.
    pub(crate) fn left_to_queue(&mut self, request: &FoldRequest, reason: &str) {
        self.queued += 1;
        if self.reasons.len() < MAX_NAMED {
            let FoldRequest { device, quarter } = request;
            self.reasons.push(format!("{device} {}: {reason}", quarter.start()));
        }
    }

    /// Names a device that failed in this invocation.
    pub(crate) fn failed(&mut self, device: &DeviceId, error: &(dyn std::error::Error + 'static)) {
        if self.failed.len() < MAX_NAMED {
            self.failed.push(format!("{device}: {}", chain(error)));
        }
    }

    /// Writes the counts into the log event.
    pub(crate) fn note(self, log: &mut WideEvent) {
        log.set("rollup.quarters", self.quarters);
        log.set("rollup.days", self.days);
        log.set("rollup.queued", self.queued);
        if self.rechecks > 0 {
            log.set("rollup.looks", self.rechecks);
        }

        if let Some(error) = &self.rechecks_refused {
            log.warn("rollup.looks_refused", error);
        }

        if let Some(error) = &self.backlog_error {
            log.warn("rollup.backlog_error", error);
        }
        if let Some(error) = &self.queue_error {
            log.warn("rollup.queue_error", error);
        }

        log.warn_all("rollup.failed_devices", self.failed);
        if !self.reasons.is_empty() {
            log.set("rollup.queued_buckets", self.reasons);
        }
    }
}
