//! Stores readings of past days together with their rollups, bypassing the stream: for an import by the process that
//! has the data open. Parses no reading and has no rule of a fold.
//!
//! A request passes the ingest function as usual, but on a table that holds readings back. [`Loader::store`] registers
//! the devices and rooms of these readings. Readings of past days are folded together with those of the table, and go
//! into one transaction with their rollups. The stream gets no record of them, because no work is left for it. Readings
//! of days that are not over go the ordinary way.
//!
//! After a kill at any moment, all stored days have their rollups. The registry may know of readings that are not
//! stored.

mod holding;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, anyhow, bail};
use api::endpoints::Function;
use aws_lambda_events::event::apigw::ApiGatewayV2httpResponse;
use chrono::TimeDelta;
use domain::{DeviceId, LocalDate, QuarterHour, TimeRange, Timestamp, Zone};
use dynamodb::DynamoStore;
use http::{Request, Response};
use rollups::{
    Assumed, DeviceFolds, DeviceRules, Folded, LateMarking, Retention, SeenRooms, Snapshot,
    is_over, over_until,
};
use runtime::auth::Auth;
use runtime::clock::{Clock as _, Deadline, SystemClock};
use table::item::{expires, from_reading};
use table::{
    FindRegistry as _, Indexing, Invocation, MergeReadings as _, PutReadings as _,
    ReadConditionsSchema as _, Session, StoredReading,
};

use crate::engine::NewItem;
use crate::functions::{self, Functions};
use crate::gateway;
use crate::{Bulk, Options};
use holding::{HeldReading, Holding};

/// The longest time whose stored readings are read at once, so that they fit into memory.
const WINDOW: TimeDelta = TimeDelta::days(31);
/// The time limit for one window.
const TIMEOUT: std::time::Duration = std::time::Duration::from_mins(1);
/// The largest number of attempts at a window, each after somebody else has changed its data.
const MAX_ATTEMPTS: usize = 5;

/// Stores the readings of an import. Readings of past days are stored with their rollups, bypassing the stream.
pub struct Loader {
    functions: Functions,
    ingest: ingest::Ingest<Holding, SystemClock>,
    table: DynamoStore,
    holding: Holding,
    bulk: Bulk,
    zone: Zone,
    retention: Retention,
    seen: SeenRooms,
    late: LateMarking,
    stored: AtomicU64,
}

/// The held readings of some days of a device.
type Readings = BTreeMap<Timestamp, HeldReading>;

/// The result of one attempt to store a window.
enum LoadAttempt {
    Stored,
    /// Somebody else has changed the data that this attempt had read.
    Changed,
}

impl Loader {
    pub(crate) async fn new(
        functions: Functions,
        table: DynamoStore,
        bulk: Bulk,
        zone: Zone,
        options: &Options,
    ) -> Self {
        let holding = Holding::of(table.clone());
        let settings = functions::ingest_settings(options, Auth::Owner);
        let telemetry = options.telemetry.clone();
        let ingest = ingest::Ingest::new(holding.clone(), SystemClock, telemetry, settings);
        Box::pin(ingest.load()).await;
        let (retention, seen) = (functions::retention(options), SeenRooms::default());
        let late = LateMarking::new(functions::LATE_AHEAD);
        let stored = AtomicU64::new(0);
        Self { functions, ingest, table, holding, bulk, zone, retention, seen, late, stored }
    }

    /// Sends a request to the API. Readings are held until [`store`](Self::store).
    pub async fn send(&self, request: Request<Vec<u8>>) -> anyhow::Result<Response<Vec<u8>>> {
        let event = gateway::event_of(request)?;
        let answer: ApiGatewayV2httpResponse = match gateway::function_of(&event) {
            Function::Query => Box::pin(gateway::invoke(&self.functions, event, None)).await?,
            Function::Ingest => {
                let event = ingest::Event::Http(Box::new(event));
                let reply = Box::pin(self.ingest.handle(event, Deadline::after(TIMEOUT))).await?;
                gateway::http_answer(reply)?
            }
        };
        gateway::response_of(answer).await
    }

    /// The number of stored readings.
    pub fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// Stores the held readings. An error means that some may not be stored.
    pub async fn store(&self) -> anyhow::Result<()> {
        let holding = self.holding.split_off();
        // The registry comes first: a fold uses the metrics that the registry knows.
        let deadline = Deadline::after(TIMEOUT);
        let learned = registry::learn(holding.clone(), holding.readings(), deadline).await;
        learned.map_err(|why| anyhow!("the registry is not written: {why}"))?;

        let now = SystemClock.now();
        for (device, readings) in holding.take_learned() {
            let is_over = |at: &Timestamp, _: &mut HeldReading| {
                self.day_of(*at).is_some_and(|day| is_over(day.to(), now))
            };
            let mut others = readings;
            let of_past = others.extract_if(.., is_over).collect();

            for window in self.windows(of_past) {
                let count = window.len() as u64;
                self.store_window(&device, window).await.with_context(|| device.to_string())?;
                self.stored.fetch_add(count, Ordering::Relaxed);
            }

            let invocation = Invocation::until(Deadline::after(TIMEOUT));
            let stored = self.store_ordinarily(others.values(), &invocation).await;
            stored.with_context(|| device.to_string())?;
            self.stored.fetch_add(others.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Splits readings into windows of whole local days, each short enough to be read at once.
    fn windows(&self, readings: Readings) -> Vec<Readings> {
        let mut windows: Vec<(Timestamp, Readings)> = Vec::new();
        for (at, reading) in readings {
            let begins = self.day_of(at).map_or(at, TimeRange::from);
            match windows.last_mut() {
                Some((first, window)) if begins.since(*first) < WINDOW => {
                    window.insert(at, reading);
                }
                _ => windows.push((begins, BTreeMap::from([(at, reading)]))),
            }
        }
        windows.into_iter().map(|(_, window)| window).collect()
    }

    fn day_of(&self, at: Timestamp) -> Option<TimeRange> {
        self.zone.day(self.zone.date(at))
    }

    async fn store_window(&self, device: &DeviceId, readings: Readings) -> anyhow::Result<()> {
        for _ in 0..MAX_ATTEMPTS {
            let invocation = Invocation::until(Deadline::after(TIMEOUT));
            match self.attempt(device, &readings, &invocation).await? {
                LoadAttempt::Stored => return Ok(()),
                LoadAttempt::Changed => {}
            }
        }
        bail!("others keep changing its rollups")
    }

    /// Stores readings together with the rollups that they change, unless somebody else changes the data meanwhile.
    async fn attempt(
        &self,
        device: &DeviceId,
        readings: &Readings,
        invocation: &Invocation,
    ) -> anyhow::Result<LoadAttempt> {
        let Some(rules) = self.rules(device, invocation).await? else {
            self.store_ordinarily(readings.values(), invocation).await?;
            return Ok(LoadAttempt::Stored);
        };

        let (Some(first), Some(last)) = (readings.keys().next(), readings.keys().next_back())
        else {
            return Ok(LoadAttempt::Stored);
        };
        let dates = self.zone.date(*first)..=self.zone.date(*last);
        let (Some(begin), Some(end)) = (self.day_of(*first), self.day_of(*last)) else {
            bail!("{first} is on no local day")
        };
        let range = TimeRange::new(begin.from(), end.to())?;

        let mut snapshot = Snapshot::read(&self.table, device, range, dates, invocation).await?;
        let changed = self.change(snapshot.readings(), readings);
        if !self.fold(&rules, &snapshot, &changed, invocation).await? {
            return Ok(LoadAttempt::Changed);
        }

        let items = changed.into_values().collect();
        let (folded, _) = snapshot.into_rollups();
        let is_put = self.bulk.put(items, folded).await?;
        Ok(if is_put { LoadAttempt::Stored } else { LoadAttempt::Changed })
    }

    /// Puts readings among those of the table. Returns the items that this changes.
    fn change(
        &self,
        stored: &mut BTreeMap<Timestamp, StoredReading>,
        readings: &Readings,
    ) -> BTreeMap<Timestamp, NewItem> {
        let retention = self.retention.readings;
        let mut changed = BTreeMap::new();
        for (at, held) in readings {
            let known = stored.get(at);
            let reading = match known {
                Some(known) if held.is_merged => known.reading.as_after_merging(&held.reading),
                _ => held.reading.clone(),
            };

            let attributes = from_reading(&reading, retention);
            let item = attributes.map(|(name, value)| (name.to_owned(), value)).collect();
            let expires = retention.map(|retention| expires(*at, retention));
            let new = StoredReading { reading, expires };
            if known != Some(&new) {
                stored.insert(*at, new);
                changed.insert(*at, NewItem { item, keeps_others: held.is_merged });
            }
        }
        changed
    }

    /// Folds the quarters and days of readings. Returns `false` if the device's settings have changed meanwhile.
    async fn fold(
        &self,
        device: &DeviceRules,
        snapshot: &Snapshot<'_, DynamoStore>,
        changed: &BTreeMap<Timestamp, NewItem>,
        invocation: &Invocation,
    ) -> anyhow::Result<bool> {
        let now = SystemClock.now();
        let session = Session::new(snapshot, invocation, now);
        let fold = DeviceFolds { session, device, seen: &self.seen, retention: &self.retention };

        let mut dates: BTreeMap<LocalDate, BTreeSet<QuarterHour>> = BTreeMap::new();
        for at in changed.keys() {
            let quarter = QuarterHour::of(*at);
            dates.entry(self.zone.date(quarter.start())).or_default().insert(quarter);
        }

        for (date, quarters) in dates {
            if fold.these_quarters(&quarters).await?.is_outdated
                || fold.day(self.zone, date, over_until(now), Assumed::Nothing).await?
                    == Folded::Outdated
            {
                return Ok(false);
            }
        }

        Ok(true)
    }

    /// The rules of a device; `None` if the registry does not have the device.
    async fn rules(
        &self,
        device: &DeviceId,
        invocation: &Invocation,
    ) -> anyhow::Result<Option<DeviceRules>> {
        let listing = self.table.find_devices(std::slice::from_ref(device), invocation).await?;
        let indexing: Indexing = self.table.indexing(invocation).await?;
        Ok(listing.found.first().map(|device| DeviceRules::of(device).indexed(&indexing)))
    }

    /// Stores readings the ordinary way; the stream folds them. Late changes are marked first, because until the fold
    /// the rollups lack these readings.
    async fn store_ordinarily(
        &self,
        readings: impl Iterator<Item = &HeldReading> + Clone,
        invocation: &Invocation,
    ) -> anyhow::Result<()> {
        let changed = readings.clone().map(|stored| (&stored.reading.device, stored.reading.at));
        let session = || Session::new(&self.table, invocation, SystemClock.now());
        let mark = || self.late.mark(session(), changed.clone());
        let marked = mark().await?;

        let (merged, put): (Vec<_>, Vec<_>) = readings.partition(|stored| stored.is_merged);
        let all = |them: Vec<&HeldReading>| -> Vec<_> {
            them.into_iter().map(|stored| stored.reading.clone()).collect()
        };
        let retention = self.retention.readings;
        let merged = self.table.merge_readings(&all(merged), retention, invocation).await;
        let put = self.table.put_readings(&all(put), retention, invocation).await;

        // The writes may have gone on after the end of the mark.
        if marked.is_some_and(|until| until <= SystemClock.now()) {
            mark().await?;
        }

        merged.cause.or(put.cause).map_or(Ok(()), |cause| Err(cause.into()))
    }
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader").field("zone", &self.zone).finish_non_exhaustive()
    }
}
