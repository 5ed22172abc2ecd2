//! Stores readings, with the rooms that the registry has. Parses no request.

use std::mem;

use chrono::TimeDelta;
use domain::{DeviceId, Reading, Timestamp};
use futures_util::future::join_all;
use runtime::clock::Clock;
use runtime::registry::{DeviceDetail, FoundDevices};
use runtime::telemetry::WideEvent;
use table::{Added, PutOutcome, Session, StoreError, StoreResult};

use crate::completion::{fill_in_rooms, keep_only_news};
use crate::intake::submission::StoreOptions;
use crate::pipeline::{Pipeline, Store};
use crate::readings::PlacedReadings;
use crate::replies::StoreReport;
use crate::retry_memory::RequestHash;
use crate::store_request::{StoreRequest, refusal};

/// The number of readings without a timestamp that are stored at once.
const ARRIVAL_CONCURRENCY: usize = 16;
/// The number of milliseconds that are tried for a reading without a timestamp: other readings of the device may have
/// taken the first ones.
const ARRIVAL_SLOTS: i64 = 10;

/// The result of preparing a request: the devices and rooms of the registry, and the late mark. A late mark announces
/// in the table that readings of past time are about to change.
struct Prepared {
    found: FoundDevices,
    /// All keys of the request. The late mark is for keys of the past only.
    keys: Vec<(DeviceId, Timestamp)>,
    /// The end of the mark; `None` if no key is of the past.
    mark_end: Option<Timestamp>,
}

impl<C: Clock> Pipeline<C> {
    /// Stores the readings of a request and reports what became of each. A request without readings reads no table.
    pub(crate) async fn store(
        &self,
        session: Session<'_, impl Store>,
        mut request: StoreRequest<'_>,
        log: &mut WideEvent,
    ) -> StoreReport {
        // All readings may have been refused: nothing is left to store.
        if request.is_empty() {
            return request.report.finished(log);
        }
        if request.is_dry {
            return request.report_dry(log);
        }

        // Under this hash, the memory has the keys that an earlier attempt stored. The hash is made before `prepare`
        // fills in rooms, so that a repeated request has the same hash.
        let request_hash = self.retries.hash_of(&request.timed.readings, request.options);

        let prepared = match self.prepare(session, &mut request, request_hash, log).await {
            Ok(prepared) => prepared,
            Err(error) => return request.report_none_stored(error, log),
        };
        // If all readings were refused, or no device was looked up, no reading is left and the next steps do nothing.
        let stored = self.write(session, &mut request, request_hash).await;
        self.renew_late_mark(session, &prepared, log).await;

        // The registry function registers as well, so a failure here is logged and loses nothing.
        let registry = &self.registry;
        registry.register_new(&stored, &prepared.found, session, log).await;
        registry.remember(&stored, &prepared.found);
        request.report.stored = stored;
        request.report.finished(log)
    }

    /// Prepares a request for writing: looks up devices and rooms, removes refused readings, fills in rooms, and writes
    /// the late mark. Also removes readings whose device was not looked up.
    ///
    /// If the registry cannot be read, the new devices cannot be counted or the late mark cannot be written, nothing is
    /// stored. Otherwise rooms would be wrong for ever, limits exceeded, or answers about the past silently too low.
    async fn prepare(
        &self,
        session: Session<'_, impl Store>,
        request: &mut StoreRequest<'_>,
        request_hash: RequestHash,
        log: &mut WideEvent,
    ) -> StoreResult<Prepared> {
        let options = request.options;
        // A merging write may add metrics to a device, and their number is limited.
        let need = if options.merge { DeviceDetail::Items } else { DeviceDetail::Places };
        let found = self.registry.find(request.readings(), need, session, log).await?;
        if found.is_incomplete() {
            if options.all_or_nothing {
                return Err(look_up_throttled());
            }
            self.take_out_not_looked_up(request, &found, request_hash);
        }

        refuse_deleted(request, &found);
        let mut new_metrics = Vec::new();
        if options.merge {
            new_metrics = self.metric_limit.refuse_beyond_limit(request, &found, session.now);
        }
        // Last of the refusals, because a request that is refused as a whole introduces no device.
        let introduced = self.introductions.introduce(session, request, &found).await?;

        // All or nothing: one refusal drops every reading, and the next steps then do nothing.
        if options.all_or_nothing && request.has_refusals() {
            self.metric_limit.forget(&new_metrics, session.now);
            request.store_nothing();
        }

        if !options.keeps_rooms {
            fill_in_rooms(request, &found);
        }

        keep_only_news(request, &found, &introduced, &self.room_limit, session.now);

        // The late mark comes before the write: answers about the past then say that rollups lack readings.
        let keys = request.keys();
        let mark_end = self.mark_late(session, &keys).await?;
        Ok(Prepared { found, keys, mark_end })
    }

    /// Removes the readings of devices whose look-up was throttled: their rooms are unknown.
    fn take_out_not_looked_up(
        &self,
        request: &mut StoreRequest<'_>,
        found: &FoundDevices,
        request_hash: RequestHash,
    ) {
        let is_unknown = |reading: &Reading| found.was_not_looked_up(&reading.device);
        // An earlier attempt of the same request may have stored some of the readings. It has registered their devices,
        // so these readings are only counted.
        let mut timed = request.timed.split_off(is_unknown);
        let before = self.retries.split_off_stored(request_hash, &mut timed, self.clock.now());
        request.report.count_stored_before(&before);

        let arrivals = request.arrivals.split_off(is_unknown);
        let not_stored = timed.origins.into_iter().chain(arrivals.origins).flatten();
        request.report.not_stored.extend(not_stored);
        if !request.report.not_stored.is_empty() {
            request.report.cause = Some(look_up_throttled());
        }
    }

    /// Writes the readings and reports on each. Returns the stored readings.
    async fn write(
        &self,
        session: Session<'_, impl Store>,
        request: &mut StoreRequest<'_>,
        request_hash: RequestHash,
    ) -> Vec<Reading> {
        let mut timed = mem::take(&mut request.timed);
        // Readings that an earlier attempt stored. `prepare` has taken out those whose device was not looked up.
        let before = self.retries.split_off_stored(request_hash, &mut timed, self.clock.now());
        request.report.count_stored_before(&before);
        let mut stored = before.readings;

        let put = self.put(session, &timed.readings, request.options).await;
        // The write may have replaced values of other requests. Their repetitions have to write these again.
        self.retries.forget_in_other_requests(request_hash, &timed.readings);
        let written = request.report.add(timed, put);

        // Readings without a timestamp come last: a timestamp in the request may be the same as their time of arrival.
        let arrived = self.add_arrivals(session, request).await;

        // The sender repeats a request that is not stored as a whole. The repetition skips what is stored.
        if request.report.cause.is_some() {
            self.retries.keep(request_hash, &written, self.clock.now());
        } else {
            self.retries.forget(request_hash);
        }

        stored.extend(written);
        stored.extend(arrived);
        stored
    }

    /// Puts or merges readings.
    async fn put(
        &self,
        session: Session<'_, impl Store>,
        readings: &[Reading],
        options: StoreOptions,
    ) -> PutOutcome {
        let retention = self.retention();
        if options.merge {
            session.merge_readings(readings, retention).await
        } else {
            session.put_readings(readings, retention).await
        }
    }

    /// Writes the late mark for keys whose quarter of an hour ended about ten minutes ago or earlier: a sweep may have
    /// folded it already. Returns the end of the mark; `None` if there is no such key.
    async fn mark_late(
        &self,
        session: Session<'_, impl Store>,
        keys: &[(DeviceId, Timestamp)],
    ) -> StoreResult<Option<Timestamp>> {
        let changed = keys.iter().map(|(device, at)| (device, *at));
        // The clock is read again, because earlier requests to the table may have taken seconds.
        self.late.mark(session.at(self.clock.now()), changed).await
    }

    /// Renews the late mark if it expired while the readings were written.
    async fn renew_late_mark(
        &self,
        session: Session<'_, impl Store>,
        prepared: &Prepared,
        log: &mut WideEvent,
    ) {
        if prepared.mark_end.is_some_and(|end| end <= self.clock.now())
            && let Err(error) = self.mark_late(session, &prepared.keys).await
        {
            // The readings are stored. For some seconds, answers do not say that rollups are incomplete.
            log.warn("late.error", &error);
        }
    }

    /// Stores readings at their time of arrival and overwrites no reading. If a device sends twice within a
    /// millisecond, the second reading is stored a millisecond later. Returns the stored readings.
    async fn add_arrivals(
        &self,
        session: Session<'_, impl Store>,
        request: &mut StoreRequest<'_>,
    ) -> Vec<Reading> {
        let PlacedReadings { readings, origins } = mem::take(&mut request.arrivals);
        let mut outcomes = Vec::with_capacity(readings.len());
        // A request under way takes some 13 KB of memory, so only a few are made at a time.
        for some in readings.chunks(ARRIVAL_CONCURRENCY) {
            let adding = some
                .iter()
                .map(|reading| self.add_arrival(session, reading.clone(), request.arrival_id));
            outcomes.extend(join_all(adding).await);
        }

        let (report, mut stored) = (&mut request.report, Vec::new());
        for (outcome, origins) in outcomes.into_iter().zip(origins) {
            match outcome {
                Ok(Some(reading)) => {
                    report.accepted += origins.len();
                    stored.push(reading);
                }
                // All milliseconds that were tried are taken. A repeated request arrives later and finds a free
                // millisecond.
                Ok(None) => {
                    report.not_stored.extend(origins);
                    report.cause.get_or_insert(StoreError::Throttled("arrivals".into()));
                }
                Err(error) => {
                    report.not_stored.extend(origins);
                    report.cause.get_or_insert(error);
                }
            }
        }
        stored
    }

    /// Stores a reading at the first free millisecond. Returns the reading as stored; `None` if no millisecond is free.
    async fn add_arrival(
        &self,
        session: Session<'_, impl Store>,
        mut reading: Reading,
        arrival_id: &str,
    ) -> StoreResult<Option<Reading>> {
        let arrived = reading.at;
        for slot in 0..ARRIVAL_SLOTS {
            reading.at = arrived.saturating_add(TimeDelta::milliseconds(slot));
            let added = session.add_arrival(&reading, arrival_id, self.retention()).await?;
            if added == Added::Stored {
                return Ok(Some(reading));
            }
        }
        Ok(None)
    }

    fn retention(&self) -> Option<TimeDelta> {
        self.settings.retention_days.map(|days| TimeDelta::days(days.into()))
    }
}

/// Refuses the readings of devices that are being deleted.
fn refuse_deleted(request: &mut StoreRequest<'_>, found: &FoundDevices) {
    let before = request.report.rejected.len();
    request.refuse(|reading| {
        let message = "is of a device that is being deleted; a reading is taken again when the \
                       deletion is over";
        found.is_being_deleted(&reading.device).then(|| refusal("device_id", message))
    });
    request.report.of_deleted += request.report.rejected.len() - before;
}

fn look_up_throttled() -> StoreError {
    StoreError::Throttled("devices are not looked up".into())
}
