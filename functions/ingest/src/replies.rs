//! The report on a request's readings: stored, refused, or to be sent again. Each kind of client has a file that makes
//! its reply.

pub(crate) mod fetched;
pub(crate) mod influxdb;
pub(crate) mod native;

use std::collections::{BTreeMap, HashSet};

use api::{FieldError, Problem};
use domain::{DeviceId, Reading};
use runtime::telemetry::WideEvent;
use table::{PutOutcome, StoreError};

use crate::readings::PlacedReadings;

/// The result of storing the readings of one request.
#[derive(Debug, Default)]
pub(crate) struct StoreReport {
    /// The number of entries of the request that are stored. Several entries may form one reading.
    pub(crate) accepted: usize,
    /// The stored readings, also those of an earlier attempt. For a dry run, the readings that would be stored.
    pub(crate) stored: Vec<Reading>,
    /// The number of entries that only an earlier attempt has stored. They were not tried again.
    pub(crate) accepted_before: usize,
    /// The readings that are refused, in the order of the request.
    pub(crate) rejected: Vec<FieldError>,
    /// The number of readings that are refused because their device is being deleted.
    pub(crate) of_deleted: usize,
    /// The sender, if it tried to introduce more devices than it may.
    pub(crate) refused_sender: Option<String>,
    /// The names of members that are not stored because they are not numbers.
    pub(crate) ignored: Vec<String>,
    /// The devices that a source leaves out, with the number of their readings.
    pub(crate) left_out: BTreeMap<DeviceId, usize>,
    /// The indices of the readings to send again, ascending. If the table's answer was lost, some of them are stored
    /// nevertheless.
    pub(crate) not_stored: Vec<usize>,
    /// The cause, if any reading is not stored.
    pub(crate) cause: Option<StoreError>,
}

impl StoreReport {
    /// The report of a message that is refused as a whole.
    pub(crate) fn refused(problem: Problem, log: &mut WideEvent) -> Self {
        let whole = FieldError { index: None, field: None, message: problem.detail };
        let rejected = if problem.errors.is_empty() { vec![whole] } else { problem.errors };
        log.count("readings.rejected", 1);
        Self { rejected, ..Self::default() }
    }

    /// Sorts the report in the order of the request, and writes it to the log.
    pub(crate) fn finished(mut self, log: &mut WideEvent) -> Self {
        self.not_stored.sort_unstable();
        self.rejected.sort_by_key(|refusal| refusal.index);
        log.count("readings.accepted", self.accepted);
        if self.accepted_before > 0 {
            log.set("readings.accepted_before", self.accepted_before);
        }

        log.count("readings.rejected", self.rejected.len());
        log.count("readings.not_stored", self.not_stored.len());
        if !self.ignored.is_empty() {
            log.set("values.ignored", self.ignored.clone());
        }

        if let Some(sender) = &self.refused_sender {
            log.set("devices.refused_of", sender.as_str());
        }
        if let Some(cause) = &self.cause {
            log.error("table.error", cause);
        }
        self
    }

    /// Counts readings that an earlier attempt of the request has stored.
    pub(crate) fn count_stored_before(&mut self, readings: &PlacedReadings) {
        self.accepted_before += readings.origins.iter().map(Vec::len).sum::<usize>();
    }

    /// Adds the outcome of a write. Returns the stored readings.
    pub(crate) fn add(&mut self, readings: PlacedReadings, put: PutOutcome) -> Vec<Reading> {
        let PlacedReadings { readings, origins } = readings;
        let not_stored: HashSet<usize> = put.not_stored.into_iter().collect();
        let mut stored = Vec::with_capacity(readings.len());

        for (index, (reading, origins)) in readings.into_iter().zip(origins).enumerate() {
            if not_stored.contains(&index) {
                self.not_stored.extend(origins);
            } else {
                self.accepted += origins.len();
                stored.push(reading);
            }
        }

        // The error of the write says more than the error of a throttled look-up before the write.
        self.cause = put.cause.or(self.cause.take());
        stored
    }
}
