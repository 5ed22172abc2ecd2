//! Stores readings, with the rooms that the registry has. Parses no request.

use std::collections::{BTreeSet, HashSet};

use chrono::TimeDelta;
use domain::{DeviceId, Reading, Timestamp};
use futures_util::future::join_all;
use runtime::clock::Clock;
use runtime::telemetry::WideEvent;
use table::{Added, Invocation, PutOutcome, StoreError, StoreResult};

use crate::intake::mode::Mode;
use crate::intake::submission::Submission;
use crate::pipeline::{Pipeline, Store};
use crate::readings::{Assembled, Readings};
use crate::registry::introduced::Introducer;
use crate::registry::known::{fill_in_rooms, look_up, refuse_deleted};
use crate::registry::registration::{Stored, keep_learned, register, teach};
use crate::replies::Outcome;
use crate::retry_memory::RequestHash;

/// The number of readings without a timestamp that are stored at once.
const ARRIVAL_CONCURRENCY: usize = 16;
/// The number of milliseconds that are tried for an arrival whose first one is taken.
const ARRIVAL_SLOTS: i64 = 10;

/// How the readings of a request are stored.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Storing<'a> {
    pub(crate) mode: Mode,
    /// The identity of the request among all; see [`Submission`].
    pub(crate) arrival_id: &'a str,
    /// Whose new devices are counted.
    pub(crate) introducer: Option<&'a Introducer>,
}

impl<'a> Storing<'a> {
    pub(crate) fn of(submission: &'a Submission<'_>, introducer: Option<&'a Introducer>) -> Self {
        let (mode, arrival_id) = (submission.mode, &submission.arrival_id);
        Self { mode, arrival_id, introducer }
    }
}

impl<S: Store, C: Clock> Pipeline<S, C> {
    /// Completes readings by what the registry knows, stores them, and registers what is new.
    pub(crate) async fn store(
        &self,
        assembled: Assembled,
        Storing { mode, arrival_id, introducer }: Storing<'_>,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> Outcome {
        let Assembled { mut timed, mut arrivals, arrived, rejected, ignored, .. } = assembled;
        let mut outcome = Outcome { rejected, ignored, ..Outcome::default() };
        if timed.readings.is_empty() && arrivals.readings.is_empty() {
            return outcome.finished(log);
        }
        let request = self.retries.request(&timed.readings, mode);
        let all = || timed.readings.iter().chain(&arrivals.readings);
        let memory = (&self.registry, &self.places);
        let known = match look_up(memory, &self.store, all(), mode, invocation, log).await {
            Ok(known) => known,
            // Without the registry a reading's room is not known, and a reading is written once.
            Err(error) => {
                log.error("registry.error", &error);
                return outcome.of_none_stored([timed, arrivals], error, log);
            }
        };
        if known.has_unknown() {
            let cause = StoreError::Throttled("devices are not looked up".into());
            if mode.is_whole {
                return outcome.of_none_stored([timed, arrivals], cause, log);
            }
            let unknown = known.leave_unknown(&mut timed);
            let left = self.retries.left(request, &unknown.readings, self.clock.now());
            let put = PutOutcome { not_stored: left.clone(), cause: Some(cause) };
            outcome.add(unknown, arrived, &left, put);
            let unknown = known.leave_unknown(&mut arrivals);
            outcome.not_stored.extend(unknown.origins.into_iter().flatten());
        }
        for readings in [&mut timed, &mut arrivals] {
            outcome.of_deleted += refuse_deleted(readings, &known, &mut outcome.rejected);
        }
        let mut new = BTreeSet::new();
        if let Some(introducer) = introducer {
            let (batches, before) = ([&mut timed, &mut arrivals], outcome.rejected.len());
            let table = (&self.store, invocation);
            let counting =
                self.counted.refuse_more(introducer, batches, &known, &mut outcome.rejected, table);
            match counting.await {
                Ok(introduced) => new = introduced,
                Err(error) => {
                    log.error("table.error", &error);
                    return outcome.of_none_stored([timed, arrivals], error, log);
                }
            }
            if outcome.rejected.len() > before {
                log.set("devices.refused_of", introducer.name.as_str());
            }
        }
        if !mode.rooms_given {
            let mut all: Vec<_> = timed.readings.iter_mut().chain(&mut arrivals.readings).collect();
            fill_in_rooms(&mut all, &known);
        }
        if mode.merge {
            let now = self.clock.now();
            self.metric_limit.refuse_more(&mut timed, &known, now, &mut outcome.rejected);
        }
        if mode.is_whole && !outcome.rejected.is_empty() {
            return outcome.finished(log);
        }

        // Before anything of the past is stored, so that no answer about that time is silent.
        let all = || timed.readings.iter().chain(&arrivals.readings);
        let changed: Vec<_> = all().map(|it| (it.device.clone(), it.at)).collect();
        let marked = match self.mark_late(&changed, invocation).await {
            Ok(marked) => marked,
            Err(error) => {
                log.error("table.error", &error);
                return outcome.of_none_stored([timed, arrivals], error, log);
            }
        };

        let left = self.retries.left(request, &timed.readings, self.clock.now());
        let put = self.put(&timed.readings, &left, mode, invocation).await;
        self.remember(request, &timed.readings, &left, &put);
        let mut stored = outcome.add(timed, arrived, &left, put);
        // After the others, because one of them may have the very timestamp of the arrival.
        self.add_arrivals(arrivals, arrival_id, (&mut outcome, &mut stored), invocation).await;
        if marked.is_some_and(|until| until <= self.clock.now())
            && let Err(error) = self.mark_late(&changed, invocation).await
        {
            // The readings are stored: for some seconds answers do not tell that rollups lack them.
            log.warn("late.error", &error);
        }
        for id in new {
            stored.hints.entry(id).or_default().introduced_by =
                introducer.map(|introducer| introducer.name.clone());
        }
        let registering = register(memory, &self.store, &known, &stored, invocation, log).await;
        keep_learned(memory, &known, &stored.readings);
        let known = (&known, registering);
        let untaught = teach(memory, &self.store, known, &stored, invocation, log).await;
        if let Some(untaught) = untaught
            && outcome.send_again(untaught, &stored)
        {
            // The repetition stores none of them once more: somebody may have deleted or replaced them meanwhile.
            self.retries.keep(request, stored.readings.iter(), self.clock.now());
        }
        if let Some(cause) = &outcome.cause {
            log.error("table.error", cause);
        }
        outcome.finished(log)
    }

    /// Stores those of the readings with a timestamp that no earlier attempt of the same request has stored.
    async fn put(
        &self,
        readings: &[Reading],
        left: &[usize],
        mode: Mode,
        invocation: &Invocation,
    ) -> PutOutcome {
        let some: Vec<Reading>;
        let unwritten = if left.len() == readings.len() {
            readings
        } else {
            some = left.iter().map(|place| readings[*place].clone()).collect();
            &some
        };

        let retention = self.retention();
        let mut outcome = if mode.merge {
            self.store.merge_readings(unwritten, retention, invocation).await
        } else {
            self.store.put_readings(unwritten, retention, invocation).await
        };

        for place in &mut outcome.not_stored {
            *place = left[*place];
        }
        outcome
    }

    /// Remembers what a throttled request has stored so far, and forgets what others have stored in the same places.
    fn remember(
        &self,
        request: RequestHash,
        readings: &[Reading],
        left: &[usize],
        put: &PutOutcome,
    ) {
        self.retries.overwrite(request, left.iter().map(|place| &readings[*place]));

        if let Some(StoreError::Throttled(_)) = put.cause {
            let not_stored: HashSet<_> = put.not_stored.iter().collect();
            let stored = readings.iter().enumerate().filter(|(n, _)| !not_stored.contains(n));
            self.retries.keep(request, stored.map(|(_, reading)| reading), self.clock.now());
        }
    }

    /// Marks those of the readings that are of the past; returns up to when the mark holds.
    async fn mark_late(
        &self,
        changed: &[(DeviceId, Timestamp)],
        invocation: &Invocation,
    ) -> StoreResult<Option<Timestamp>> {
        let changed = changed.iter().map(|(device, at)| (device, *at));
        self.late.mark(&self.store, changed, self.clock.now(), invocation).await
    }

    /// Stores readings at the timestamp of their arrival, each where no other reading is. Two requests of
    /// one device within a millisecond are two readings: the second is stored a millisecond later.
    async fn add_arrivals(
        &self,
        arrivals: Readings,
        arrival_id: &str,
        (outcome, stored): (&mut Outcome, &mut Stored),
        invocation: &Invocation,
    ) {
        let mut added = Vec::with_capacity(arrivals.readings.len());
        // A request under way takes some 13 KB: only so many are made at a time.
        for some in arrivals.readings.chunks(ARRIVAL_CONCURRENCY) {
            let adding = some.iter().map(|it| self.add_arrival(it.clone(), arrival_id, invocation));
            added.extend(join_all(adding).await);
        }
        for ((added, origins), hints) in added.into_iter().zip(arrivals.origins).zip(arrivals.hints)
        {
            match added {
                Ok(Some(reading)) => {
                    outcome.accepted += origins.len();
                    stored.add(reading, hints);
                }
                // Every timestamp that it may have is taken; sent again it has others.
                Ok(None) => {
                    outcome.not_stored.extend(origins);
                    outcome.cause.get_or_insert(StoreError::Throttled("arrivals".into()));
                }
                Err(error) => {
                    outcome.not_stored.extend(origins);
                    outcome.cause.get_or_insert(error);
                }
            }
        }
    }

    /// The reading as it is stored, or none where every timestamp that it may have is taken.
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
