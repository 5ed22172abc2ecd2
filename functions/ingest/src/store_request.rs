//! The readings of a request that are still to be stored, and the report on all others. Reads and writes no table.

use api::FieldError;
use domain::{DeviceId, Reading, Timestamp};
use runtime::telemetry::WideEvent;
use table::StoreError;

use crate::intake::submission::{StoreOptions, Submission};
use crate::limits::counted_sender::CountedSender;
use crate::readings::{Assembled, PlacedReadings};
use crate::replies::StoreReport;

/// The readings of a request that are still to be stored.
#[derive(Debug, Default)]
pub(crate) struct StoreRequest<'a> {
    /// Readings with a timestamp, and all points of line protocol.
    pub(crate) timed: PlacedReadings,
    /// Readings without a timestamp, dated at their arrival.
    pub(crate) arrivals: PlacedReadings,
    pub(crate) options: StoreOptions,
    /// An id that tells apart two arrivals of a device in one millisecond. A repeated event has the same id.
    pub(crate) arrival_id: &'a str,
    /// Whether this is a dry run: nothing is stored and no device is looked up. The report has the readings that would
    /// be stored.
    pub(crate) is_dry: bool,
    /// The sender whose new devices are counted.
    pub(crate) counted_sender: Option<&'a CountedSender>,
    /// The report on readings that are no longer part of this request.
    pub(crate) report: StoreReport,
}

impl<'a> StoreRequest<'a> {
    /// The readings of a submission.
    pub(crate) fn of(
        submission: &'a Submission<'_>,
        assembled: Assembled,
        counted_sender: Option<&'a CountedSender>,
    ) -> Self {
        let arrival_id = &submission.arrival_id;
        let is_dry = submission.fetched.is_some_and(|message| message.dry);
        Self { arrival_id, is_dry, counted_sender, ..Self::new(assembled, submission.options) }
    }

    /// The assembled readings of a request, to be stored with these options.
    pub(crate) fn new(assembled: Assembled, options: StoreOptions) -> Self {
        let Assembled { timed, arrivals, rejected, ignored, left_out, .. } = assembled;
        let report = StoreReport { rejected, ignored, left_out, ..StoreReport::default() };
        Self { timed, arrivals, options, report, ..Self::default() }
    }

    /// Whether no reading is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.timed.readings.is_empty() && self.arrivals.readings.is_empty()
    }

    /// All readings, those with a timestamp first.
    pub(crate) fn readings(&self) -> impl Iterator<Item = &Reading> + Clone {
        self.timed.readings.iter().chain(&self.arrivals.readings)
    }

    /// All readings, to be changed.
    pub(crate) fn readings_mut(&mut self) -> impl Iterator<Item = &mut Reading> {
        self.timed.readings.iter_mut().chain(&mut self.arrivals.readings)
    }

    /// Devices and timestamps of all readings.
    pub(crate) fn keys(&self) -> Vec<(DeviceId, Timestamp)> {
        self.readings().map(|reading| (reading.device.clone(), reading.at)).collect()
    }

    /// Refuses the readings for which `refusal` returns a reason.
    pub(crate) fn refuse(&mut self, mut refusal: impl FnMut(&Reading) -> Option<FieldError>) {
        self.refuse_timed(&mut refusal);
        self.report.rejected.extend(self.arrivals.refuse(refusal));
    }

    /// Refuses the readings in `timed` for which `refusal` returns a reason.
    pub(crate) fn refuse_timed(&mut self, refusal: impl FnMut(&Reading) -> Option<FieldError>) {
        self.report.rejected.extend(self.timed.refuse(refusal));
    }

    /// Whether anything was refused.
    pub(crate) const fn has_refusals(&self) -> bool {
        !self.report.rejected.is_empty()
    }

    /// Drops all readings, so that nothing of the request is stored.
    pub(crate) fn store_nothing(&mut self) {
        self.timed = PlacedReadings::default();
        self.arrivals = PlacedReadings::default();
    }

    /// The report of a dry run, with the readings as they would be stored. The log counts no reading as accepted.
    pub(crate) fn report_dry(self, log: &mut WideEvent) -> StoreReport {
        let mut report = self.report.finished(log);
        for placed in [self.timed, self.arrivals] {
            report.accepted += placed.origins.iter().map(Vec::len).sum::<usize>();
            report.stored.extend(placed.readings);
        }
        report
    }

    /// The report if the table fails before any reading is stored.
    pub(crate) fn report_none_stored(self, cause: StoreError, log: &mut WideEvent) -> StoreReport {
        let Self { timed, arrivals, mut report, .. } = self;
        report.not_stored.extend(timed.origins.into_iter().chain(arrivals.origins).flatten());
        report.cause = Some(cause);
        report.finished(log)
    }
}

/// A refusal without an index. The index is added when the reading is refused.
pub(crate) fn refusal(field: impl Into<String>, message: impl Into<String>) -> FieldError {
    FieldError { index: None, field: Some(field.into()), message: message.into() }
}
