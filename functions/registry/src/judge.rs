//! Judges the rules of alerts by the readings in a batch of the stream. Never updates or delays the registry.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::{DeviceId, Reading, Timestamp};
use judging::{BatchReport, LostMessages, ReadingsByTime, SeriesError};
use runtime::clock::{Clock, Deadline};
use runtime::dead_letters::DeadLetterQueue;
use runtime::hint::Hint;
use runtime::stream::{BatchResult, Recorded};
use runtime::telemetry::WideEvent;
use table::keys::ALERT_RECHECKS;
use table::panic::catching;
use table::{Invocation, ItemKey, Session};

use crate::Registry;
use crate::ports::Store;

/// The longest time for judging a batch.
const MAX_JUDGING: Duration = Duration::from_secs(20);
/// The longest time for storing which devices are to be judged again later.
const MAX_NOTING: Duration = Duration::from_secs(10);
/// The longest time for the hint to the alerting function.
const MAX_HINT: Duration = Duration::from_secs(2);
/// The number of rechecks that are noted at once.
const PAGE: usize = 100;

impl<S: Store, Q: DeadLetterQueue, C: Clock, H: Hint> Registry<S, Q, C, H> {
    /// Judges the rules. If a judgement fails, stores a recheck, which is a note to judge again later. A record is
    /// delivered again only if its recheck cannot be stored.
    pub(crate) async fn judge_alerts(
        &self,
        readings: &[Recorded<Reading>],
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> BatchResult {
        let ReadingsByDevice { written, first_records } = ReadingsByDevice::of(readings);
        let report = self.judge_in_time(&written, invocation, log).await;
        log_report(log, &report);

        let result = self.store_rechecks(&report.rechecks, &first_records, invocation, log).await;
        if report.judgements.messages > 0 {
            let deadline = Deadline::after(MAX_HINT.min(invocation.remaining()));
            if let Err(why) = self.hint.give(deadline).await {
                log.set("alerts.not_hinted", why);
            }
        }
        result
    }

    /// Judges the rules in at most half of the remaining time. After a panic, all devices are to be judged again.
    async fn judge_in_time(
        &self,
        written: &BTreeMap<DeviceId, ReadingsByTime>,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> BatchReport {
        let part = invocation.shortened_to(MAX_JUDGING.min(invocation.remaining() / 2));
        let session = self.judging.session(Session::new(&self.store, &part, self.clock.now()));
        match catching(Box::pin(session.judge_batch(written))).await {
            Ok(report) => report,
            Err(panic) => {
                log.error("alerts.panic", &panic);
                BatchReport { rechecks: first_written(written), ..BatchReport::default() }
            }
        }
    }

    /// Stores rechecks. If a recheck cannot be stored, the first record of its device is delivered again; after a
    /// permanent error this record goes to the dead letters. The first error of a page counts for all its rechecks.
    async fn store_rechecks(
        &self,
        rechecks: &BTreeMap<DeviceId, Timestamp>,
        first_records: &BTreeMap<DeviceId, usize>,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> BatchResult {
        let mut result = BatchResult::default();
        if rechecks.is_empty() {
            return result;
        }

        // Rechecks are called `looks` in the log.
        log.set("alerts.looks", rechecks.len());
        let part = invocation.shortened_to(MAX_NOTING);
        let devices: Vec<_> = rechecks.keys().collect();
        let rechecks: Vec<_> =
            rechecks.iter().map(|(id, since)| (id.clone().into(), *since)).collect();

        for (devices, page) in devices.chunks(PAGE).zip(rechecks.chunks(PAGE)) {
            let noted = self.store.note_rechecks(page, &part).await;
            if let Some(error) = &noted.cause {
                log.error("alerts.looks_error", error);
            }
            for device in noted.not_stored.into_iter().map(|index| devices[index]) {
                let record = first_records[device];
                match &noted.cause {
                    Some(error) if error.is_permanent() => {
                        let key = ItemKey::new(ALERT_RECHECKS, device.as_str());
                        result.give_up(record, key, runtime::telemetry::chain(error));
                    }
                    _ => result.retry_from(record),
                }
            }
        }

        result
    }
}

/// The readings of a batch, by device.
struct ReadingsByDevice {
    written: BTreeMap<DeviceId, ReadingsByTime>,
    /// The first record of each device.
    first_records: BTreeMap<DeviceId, usize>,
}

impl ReadingsByDevice {
    fn of(readings: &[Recorded<Reading>]) -> Self {
        let mut batch = Self { written: BTreeMap::new(), first_records: BTreeMap::new() };
        for Recorded { record, change: reading } in readings {
            let written = batch.written.entry(reading.device.clone()).or_default();
            written.insert(reading.at, reading.clone());
            batch.first_records.entry(reading.device.clone()).or_insert(*record);
        }
        batch
    }
}

/// The devices of a batch, each with its first reading.
fn first_written(written: &BTreeMap<DeviceId, ReadingsByTime>) -> BTreeMap<DeviceId, Timestamp> {
    let first =
        |(id, written): (&DeviceId, &ReadingsByTime)| Some((id.clone(), *written.keys().next()?));
    written.iter().filter_map(first).collect()
}

fn log_report(log: &mut WideEvent, report: &BatchReport) {
    let BatchReport { judgements, cause, .. } = report;
    if judgements.judged > 0 {
        log.set("alerts.judged", judgements.judged);
    }

    if judgements.messages > 0 {
        log.set("alerts.messages", judgements.messages);
    }
    if let Some(left_out) = LostMessages::of(judgements.lost_messages) {
        log.warn("alerts.left_out", &left_out);
    }

    let mut failures = judgements.failures.iter().map(|(_, failure)| failure).chain(cause);
    match failures.next() {
        Some(SeriesError::Store(error)) => log.error("alerts.error", error),
        Some(SeriesError::OutOfReach(why)) => log.set("alerts.out_of_reach", why.as_str()),
        None => {}
    }

    if let Some((_, panic)) = judgements.panics.first() {
        log.error("alerts.panic", panic);
    }
}
