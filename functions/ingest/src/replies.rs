//! The outcome of a request's readings. Each kind of client has a file that writes the reply.

pub(crate) mod influxdb;
pub(crate) mod native;

use std::collections::BTreeSet;

use api::{FieldError, Problem};
use domain::{DeviceId, Timestamp};
use runtime::telemetry::WideEvent;
use table::{PutOutcome, StoreError};

use crate::readings::Readings;
use crate::registry::registration::Stored;

/// The outcome of the readings of one request.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) accepted: usize,
    /// Indices in the request of readings that only an earlier attempt has stored.
    pub(crate) accepted_before: Vec<usize>,
    /// The readings that are refused, in the order of the request.
    pub(crate) rejected: Vec<FieldError>,
    /// How many of them are refused because their device is being deleted.
    pub(crate) of_deleted: usize,
    /// The names of what devices sent and is not stored because it is no number.
    pub(crate) ignored: Vec<String>,
    /// The places in the request of the readings that may not be stored, ascending.
    pub(crate) not_stored: Vec<usize>,
    /// The cause, if any reading is not stored.
    pub(crate) cause: Option<StoreError>,
}

impl Outcome {
    /// The outcome of a message that is refused as a whole.
    pub(crate) fn refused(problem: Problem, log: &mut WideEvent) -> Self {
        let whole = FieldError { index: None, field: None, message: problem.detail };
        let rejected = if problem.errors.is_empty() { vec![whole] } else { problem.errors };
        log.count("readings.rejected", 1);
        Self { rejected, ..Self::default() }
    }

    /// The outcome where the table failed before any of the readings was stored.
    pub(crate) fn of_none_stored(
        mut self,
        readings: [Readings; 2],
        cause: StoreError,
        log: &mut WideEvent,
    ) -> Self {
        self.not_stored.extend(readings.into_iter().flat_map(|it| it.origins).flatten());
        self.cause = Some(cause);
        self.finished(log)
    }

    /// The outcome in the order of the request, counted in the log.
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
        self
    }

    /// Adds the outcome of writing readings. `left` are the places that no earlier attempt has stored. Returns the
    /// readings that are stored. Those of `arrived` have no timestamp of their own: sent again, they would be others.
    pub(crate) fn add(
        &mut self,
        put: Readings,
        arrived: Option<Timestamp>,
        left: &[usize],
        result: PutOutcome,
    ) -> Stored {
        let mut left = left.iter().peekable();
        let mut not_stored = result.not_stored.into_iter().peekable();
        let mut stored = Stored::default();
        let Readings { readings, origins, hints } = put;
        let put = readings.into_iter().zip(origins).zip(hints).enumerate();
        for (n, ((reading, origins), hints)) in put {
            let is_left = left.next_if_eq(&&n).is_some();
            if not_stored.next_if_eq(&n).is_some() {
                self.not_stored.extend(origins);
            } else {
                if is_left {
                    self.accepted += origins.len();
                } else {
                    self.accepted_before.extend(&origins);
                }
                if !hints.is_empty() && Some(reading.at) != arrived {
                    let teaching = stored.teaching.entry(reading.device.clone()).or_default();
                    teaching.extend(origins);
                }
                stored.add(reading, hints);
            }
        }
        self.cause = result.cause.or(self.cause.take());
        stored
    }

    /// Lets those of the stored readings be sent again that teach devices which are not taught; tells whether there are
    /// any.
    pub(crate) fn send_again(
        &mut self,
        (untaught, cause): (BTreeSet<DeviceId>, StoreError),
        stored: &Stored,
    ) -> bool {
        let again = untaught.iter().filter_map(|id| stored.teaching.get(id));
        let again: BTreeSet<usize> = again.flatten().copied().collect();
        if again.is_empty() {
            return false;
        }
        let before = self.accepted_before.len();
        self.accepted_before.retain(|place| !again.contains(place));
        self.accepted -= again.len() - (before - self.accepted_before.len());
        self.not_stored.extend(again);
        self.cause.get_or_insert(cause);
        true
    }
}
