//! What became of a request's readings. Each kind of client has a file that writes the reply.

pub(crate) mod influxdb;
pub(crate) mod native;

use std::collections::BTreeSet;

use api::{FieldError, Problem};
use domain::Timestamp;
use runtime::telemetry::WideEvent;
use table::{PutOutcome, StoreError};

use crate::readings::{PlacedReadings, StoredReadings, Untaught};

/// What became of the readings of one request.
#[derive(Debug, Default)]
pub(crate) struct StoreReport {
    pub(crate) accepted: usize,
    /// Indices in the request of readings that only an earlier attempt has stored.
    pub(crate) accepted_before: Vec<usize>,
    /// The readings that are refused, in the order of the request.
    pub(crate) rejected: Vec<FieldError>,
    /// How many of them are refused because their device is being deleted.
    pub(crate) of_deleted: usize,
    /// The sender that may introduce no further device, if it tried.
    pub(crate) refused_sender: Option<String>,
    /// The names of what devices sent and is not stored because it is no number.
    pub(crate) ignored: Vec<String>,
    /// The indices in the request of readings that are perhaps not stored, ascending.
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

    /// The report in the order of the request, noted in the log.
    pub(crate) fn finished(mut self, log: &mut WideEvent) -> Self {
        self.not_stored.sort_unstable();
        self.rejected.sort_by_key(|refusal| refusal.index);
        log.count("readings.accepted", self.accepted);
        if !self.accepted_before.is_empty() {
            log.set("readings.accepted_before", self.accepted_before.len());
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

    /// Adds what became of readings that were written. `left` are the indices of those that no earlier attempt has
    /// stored. Returns the readings that are stored. Readings at `arrived` have no timestamp of their own: sent again, they
    /// would be others.
    pub(crate) fn add(
        &mut self,
        written: PlacedReadings,
        arrived: Option<Timestamp>,
        left: &[usize],
        result: PutOutcome,
    ) -> StoredReadings {
        let mut left = left.iter().peekable();
        let mut not_stored = result.not_stored.into_iter().peekable();
        let mut stored = StoredReadings::default();
        let PlacedReadings { readings, origins, hints } = written;

        let written = readings.into_iter().zip(origins).zip(hints).enumerate();
        for (index, ((reading, origins), hints)) in written {
            let is_left = left.next_if_eq(&&index).is_some();
            if not_stored.next_if_eq(&index).is_some() {
                self.not_stored.extend(origins);
                continue;
            }

            if is_left {
                self.accepted += origins.len();
            } else {
                self.accepted_before.extend(&origins);
            }
            if !hints.is_empty() && Some(reading.at) != arrived {
                stored.teaching.entry(reading.device.clone()).or_default().extend(origins);
            }
            stored.add(reading, hints);
        }

        self.cause = result.cause.or(self.cause.take());
        stored
    }

    /// Asks for the stored readings of devices once more that could not be taught. Returns whether there are any.
    pub(crate) fn send_again(&mut self, untaught: Untaught, stored: &StoredReadings) -> bool {
        let again = untaught.devices.iter().filter_map(|id| stored.teaching.get(id)).flatten();
        // A line may have several readings, and counts as often.
        let all: Vec<usize> = again.copied().collect();
        if all.is_empty() {
            return false;
        }
        let again: BTreeSet<usize> = all.iter().copied().collect();
        let before = self.accepted_before.len();
        self.accepted_before.retain(|index| !again.contains(index));
        let of_before = before - self.accepted_before.len();
        self.accepted = self.accepted.saturating_sub(all.len().saturating_sub(of_before));
        self.not_stored.extend(again);
        self.cause.get_or_insert(untaught.cause);
        true
    }
}
