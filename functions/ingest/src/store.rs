//! Stores readings, with the rooms that the registry has. Parses no request.

use std::collections::HashSet;
use std::mem;

use chrono::TimeDelta;
use domain::{DeviceId, Reading, Timestamp};
use futures_util::future::join_all;
use runtime::clock::Clock;
use runtime::telemetry::WideEvent;
use table::{Added, Invocation, PutOutcome, StoreError, StoreResult};

use crate::intake::options::StoreOptions;
use crate::pipeline::{Pipeline, Store};
use crate::readings::PlacedReadings;
use crate::registry::found::FoundDevices;
use crate::replies::{StoreReport, WriteAttempt};
use crate::retry_memory::RequestHash;
use crate::store_request::StoreRequest;

/// The number of readings without a timestamp that are stored at once.
const ARRIVAL_CONCURRENCY: usize = 16;
/// The number of milliseconds that are tried for an arrival whose first one is taken.
const ARRIVAL_SLOTS: i64 = 10;

/// What is known before readings are written.
struct Prepared {
    found: FoundDevices,
    late: LateReadings,
}

/// The keys that a request changes, and the end of the late mark that announces them.
struct LateReadings {
    /// All keys of the request; only keys of the past are marked.
    keys: Vec<(DeviceId, Timestamp)>,
    /// The end of the mark; `None` if no key is of the past.
    until: Option<Timestamp>,
}

impl<S: Store, C: Clock> Pipeline<S, C> {
    /// Stores the readings of a request and reports what became of each. A request without readings asks no table.
    pub(crate) async fn store(
        &self,
        mut request: StoreRequest<'_>,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> StoreReport {
        if request.is_empty() {
            return request.report.finished(log);
        }

        let retry = self.retries.request(&request.timed.readings, request.options);
        let prepared = match self.prepare(&mut request, retry, invocation, log).await {
            Ok(prepared) => prepared,
            Err(error) => return request.report_none_stored(error, log),
        };
        if request.is_empty() {
            return request.report.finished(log);
        }

        let stored = self.write(&mut request, retry, invocation).await;
        self.renew_late_mark(&prepared.late, invocation, log).await;

        // The registry function registers as well, so a failure here is logged and loses nothing.
        let Self { store, registry, .. } = self;
        registry.register_new(store, &stored, &prepared.found, invocation, log).await;
        registry.remember(&stored, &prepared.found);
        request.report.finished(log)
    }

    /// Looks up, refuses, completes, announces. An error means that nothing may be stored: without the registry the room
    /// of a reading is not known, and nobody would correct a stored reading later.
    async fn prepare(
        &self,
        request: &mut StoreRequest<'_>,
        retry: RequestHash,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> StoreResult<Prepared> {
        let options = request.options;
        let found = self.registry.find(&self.store, request, invocation, log).await?;
        if found.lacks_some() {
            if options.all_or_nothing {
                return Err(not_looked_up());
            }
            self.postpone_not_looked_up(request, &found, retry);
        }

        found.refuse_deleted(request);
        let introductions = &self.introductions;
        let introduced =
            introductions.refuse_beyond_limit(request, &found, &self.store, invocation).await?;
        if options.merge {
            self.metric_limit.refuse_beyond_limit(request, &found, self.clock.now());
        }
        if options.all_or_nothing && request.has_refusals() {
            request.store_nothing();
        }

        if !options.keeps_rooms {
            found.fill_in_rooms(request);
        }
        found.attach_about(request, &introduced, &self.room_limit, self.clock.now());

        // Before anything of the past is stored: an answer about that time then says that its rollups lack readings.
        let keys = request.keys();
        let until = self.mark_late(&keys, invocation).await?;
        Ok(Prepared { found, late: LateReadings { keys, until } })
    }

    /// Takes out the readings of devices that the table was too busy to look up: their rooms are not known.
    fn postpone_not_looked_up(
        &self,
        request: &mut StoreRequest<'_>,
        found: &FoundDevices,
        retry: RequestHash,
    ) {
        let timed = request.timed.split_off(|reading| found.lacks(&reading.device));
        let left = self.retries.left(retry, &timed.readings, self.clock.now());
        let postponed = PutOutcome { not_stored: left.clone(), cause: None };
        let attempt = WriteAttempt::of(timed.readings.len(), &left, postponed);
        request.report.add(timed, attempt);

        let arrivals = request.arrivals.split_off(|reading| found.lacks(&reading.device));
        request.report.not_stored.extend(arrivals.origins.into_iter().flatten());
        if !request.report.not_stored.is_empty() {
            request.report.cause = Some(not_looked_up());
        }
    }

    /// Writes the readings. Those that the table does not take are named in the report.
    async fn write(
        &self,
        request: &mut StoreRequest<'_>,
        retry: RequestHash,
        invocation: &Invocation,
    ) -> Vec<Reading> {
        let timed = mem::take(&mut request.timed);
        let left = self.retries.left(retry, &timed.readings, self.clock.now());
        let put = self.put(&timed.readings, &left, request.options, invocation).await;
        self.note_attempt(retry, &timed.readings, &left, &put);
        let attempt = WriteAttempt::of(timed.readings.len(), &left, put);
        let mut stored = request.report.add(timed, attempt);

        // After the others, because one of them may have the very timestamp of the arrival.
        self.add_arrivals(request, &mut stored, invocation).await;
        stored
    }

    /// Puts or merges the readings at the indices `left`: an earlier attempt of the same request has stored the others.
    async fn put(
        &self,
        readings: &[Reading],
        left: &[usize],
        options: StoreOptions,
        invocation: &Invocation,
    ) -> PutOutcome {
        let some: Vec<Reading>;
        let unwritten = if left.len() == readings.len() {
            readings
        } else {
            some = left.iter().map(|index| readings[*index].clone()).collect();
            &some
        };

        let retention = self.retention();
        let mut outcome = if options.merge {
            self.store.merge_readings(unwritten, retention, invocation).await
        } else {
            self.store.put_readings(unwritten, retention, invocation).await
        };

        for index in &mut outcome.not_stored {
            *index = left[*index];
        }
        outcome
    }

    /// Remembers the readings that a throttled write has stored. Removes the written keys from the memory of other requests:
    /// their values are overwritten.
    fn note_attempt(
        &self,
        retry: RequestHash,
        readings: &[Reading],
        left: &[usize],
        put: &PutOutcome,
    ) {
        self.retries.overwrite(retry, left.iter().map(|index| &readings[*index]));

        if let Some(StoreError::Throttled(_)) = put.cause {
            let not_stored: HashSet<_> = put.not_stored.iter().collect();
            let stored = readings.iter().enumerate().filter(|(n, _)| !not_stored.contains(n));
            self.retries.keep(retry, stored.map(|(_, reading)| reading), self.clock.now());
        }
    }

    /// Writes the late mark for the keys of the past. Returns until when the mark holds; `None` if no key is of the past.
    async fn mark_late(
        &self,
        keys: &[(DeviceId, Timestamp)],
        invocation: &Invocation,
    ) -> StoreResult<Option<Timestamp>> {
        let changed = keys.iter().map(|(device, at)| (device, *at));
        self.late.mark(&self.store, changed, self.clock.now(), invocation).await
    }

    /// Renews the late mark if it expired while the readings were written.
    async fn renew_late_mark(
        &self,
        late: &LateReadings,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) {
        if late.until.is_some_and(|until| until <= self.clock.now())
            && let Err(error) = self.mark_late(&late.keys, invocation).await
        {
            // The readings are stored: for some seconds answers do not tell that rollups lack them.
            log.warn("late.error", &error);
        }
    }

    /// Stores readings at the timestamp of their arrival, each where no other reading is. Two requests of
    /// one device within a millisecond are two readings: the second is stored a millisecond later.
    async fn add_arrivals(
        &self,
        request: &mut StoreRequest<'_>,
        stored: &mut Vec<Reading>,
        invocation: &Invocation,
    ) {
        let PlacedReadings { readings, origins } = mem::take(&mut request.arrivals);
        let mut added = Vec::with_capacity(readings.len());
        // A request under way takes some 13 KB: only so many are made at a time.
        for some in readings.chunks(ARRIVAL_CONCURRENCY) {
            let adding = some
                .iter()
                .map(|reading| self.add_arrival(reading.clone(), request.arrival_id, invocation));
            added.extend(join_all(adding).await);
        }

        let report = &mut request.report;
        for (added, origins) in added.into_iter().zip(origins) {
            match added {
                Ok(Some(reading)) => {
                    report.accepted += origins.len();
                    stored.push(reading);
                }
                // All its milliseconds are taken. A repeated request arrives later and finds a free one.
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
    }

    /// Stores a reading at the first free millisecond. Returns the reading as stored; `None` if no millisecond is free.
    async fn add_arrival(
        &self,
        mut reading: Reading,
        arrival_id: &str,
        invocation: &Invocation,
    ) -> StoreResult<Option<Reading>> {
        let arrived = reading.at;
        for slot in 0..ARRIVAL_SLOTS {
            reading.at = arrived.saturating_add(TimeDelta::milliseconds(slot));
            let added =
                self.store.add_arrival(&reading, arrival_id, self.retention(), invocation).await?;
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

fn not_looked_up() -> StoreError {
    StoreError::Throttled("devices are not looked up".into())
}
