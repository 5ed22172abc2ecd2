//! The function on a table in memory, with played makers, a played ingest, and a clock that a test moves.

mod days;
mod faults;
mod servers;
mod tries;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta};
use domain::Timestamp;
use domain::given::at;
use outgoing::{Fetched, Reach, Request};
use polling::{PolledSource, SecretTexts, SourceState};
use runtime::clock::{Clock as _, Deadline, TestClock};
use runtime::invoke::{InvokeFunction, Invoking, NotInvoked};
use runtime::telemetry::Telemetry;
use sending::{FetchAnswer, Unanswered};
use serde_json::{Value, json};
use table::given::invocation;
use table::memory_db::MemoryDb;
use table::{EditSources as _, ReadSources as _, SourceSecrets, StoredSource};

use crate::{Event, Fetching, Outside, SourceTest, TestReply};

const START: &str = "2026-03-10T12:00:00Z";
/// A secret that no answer, event, status or line of the log may have.
const SECRET: &str = "geheim-0123456789";

/// What a maker answers to the path and the query of a request.
type Answering = Box<dyn FnMut(&AskedMaker) -> Fetched + Send>;

/// A request as a maker gets it.
pub(crate) struct AskedMaker {
    pub(crate) at: Timestamp,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
}

/// The makers, by their hosts.
#[derive(Clone)]
pub(crate) struct Makers {
    clock: TestClock,
    by_host: Arc<Mutex<BTreeMap<String, Answering>>>,
    asked: Arc<Mutex<Vec<(String, Timestamp, String)>>>,
}

impl FetchAnswer for Makers {
    fn fetch(&self, request: &Request) -> Result<Fetched, Unanswered> {
        let uri = request.uri();
        let host = uri.host().expect("a host").to_owned();
        let path = uri.path_and_query().expect("a path").to_string();
        let headers =
            request.headers().iter().map(|(name, value)| (name.to_string(), value.clone()));
        let asked = AskedMaker { at: self.clock.now(), path, headers: headers.collect() };
        let noted = (host.clone(), asked.at, asked.path.clone());
        self.asked.lock().expect("no panic").push(noted);
        let mut by_host = self.by_host.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let answering = by_host.get_mut(&host).unwrap_or_else(|| panic!("nobody plays {host}"));
        Ok(answering(&asked))
    }
}

/// The function ingest: what it was sent, and what it keeps.
#[derive(Clone, Default)]
pub(crate) struct PlayedIngest(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    events: Vec<String>,
    /// The values by device, time and metric.
    values: BTreeMap<(String, String, String), String>,
    /// How the next invocations fail.
    failures: VecDeque<bool>,
}

impl InvokeFunction for PlayedIngest {
    /// `true` of a failure says that the readings are stored though.
    fn invoke(&self, event: String, _: Deadline) -> Invoking<'_> {
        let mut kept = self.0.lock().expect("no panic");
        let failure = kept.failures.pop_front();
        let read: Value = serde_json::from_str(&event).expect("JSON");
        kept.events.push(event);
        if failure == Some(false) {
            return Box::pin(async { Err(NotInvoked("Lambda answers 429".to_owned())) });
        }

        let body = STANDARD.decode(read["data"].as_str().expect("data")).expect("Base64");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let rows = body.as_array().cloned().unwrap_or_else(|| vec![body]);
        let asked =
            Timestamp::from_millis(read["timestamp"].as_i64().expect("a time")).expect("a time");
        let mut devices = BTreeSet::new();
        for row in &rows {
            let device = ["device_id", "id"].iter().find_map(|name| row[*name].as_str());
            let device = device.or_else(|| row["body"]["deviceId"].as_str()).expect("a device");
            devices.insert(device.to_owned());
            let time = row["timestamp"].as_str().map_or_else(|| asked.to_string(), str::to_owned);
            let numbers =
                row.as_object().into_iter().flatten().filter(|(_, value)| value.is_number());
            for (metric, value) in numbers {
                let key = (device.to_owned(), time.clone(), metric.clone());
                if read["dry"] == false {
                    kept.values.insert(key, value.to_string());
                }
            }
        }
        let is_hub = rows.iter().any(|row| row["body"]["deviceType"] == "Hub Mini");
        let accepted = if is_hub { 0 } else { rows.len() };
        let answer = json!({"accepted": accepted, "devices": devices, "readings": rows});
        let answer = if failure == Some(true) {
            Err(NotInvoked("the answer is lost".to_owned()))
        } else {
            Ok(answer.to_string())
        };
        Box::pin(async move { answer })
    }
}

/// The function, its table, its clock, the makers and ingest.
pub(crate) struct World {
    pub(crate) store: MemoryDb,
    pub(crate) clock: TestClock,
    pub(crate) makers: Makers,
    pub(crate) ingest: PlayedIngest,
    pub(crate) fetching: Fetching<MemoryDb, TestClock>,
    lines: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = TestClock::at(at(START));
        let (by_host, asked) = (Arc::default(), Arc::default());
        let makers = Makers { clock: clock.clone(), by_host, asked };
        Self::of(MemoryDb::default(), clock, makers, PlayedIngest::default())
    }

    /// Another instance on the same table, with a clock of its own.
    pub(crate) fn another(&self) -> Self {
        let clock = TestClock::at(self.clock.now());
        Self::of(self.store.clone(), clock, self.makers.clone(), self.ingest.clone())
    }

    fn of(store: MemoryDb, clock: TestClock, makers: Makers, ingest: PlayedIngest) -> Self {
        let http: Arc<dyn FetchAnswer> = Arc::new(makers.clone());
        Self::asking(store, clock, makers, ingest, http)
    }

    pub(crate) fn asking(
        store: MemoryDb,
        clock: TestClock,
        makers: Makers,
        ingest: PlayedIngest,
        http: Arc<dyn FetchAnswer>,
    ) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let telemetry = Telemetry::to(Arc::new(move |line| {
            sink.lock().expect("no panic").push(line.to_owned());
        }));
        let outside = Outside { http, ingest: Arc::new(ingest.clone()), reach: Reach::Local };
        let permitted = store.for_role(<MemoryDb as crate::Store>::PERMISSIONS);
        let fetching = Fetching::new(permitted, outside, clock.clone(), telemetry);
        Self { store, clock, makers, ingest, fetching, lines }
    }

    /// Plays a maker.
    pub(crate) fn play(
        &self,
        host: &str,
        answering: impl FnMut(&AskedMaker) -> Fetched + Send + 'static,
    ) {
        let mut by_host = self.makers.by_host.lock().expect("no panic");
        by_host.insert(host.to_owned(), Box::new(answering));
    }

    /// Saves a source, as a person does.
    pub(crate) async fn save(&self, id: &str, settings: Value, secrets: &[(&str, &str)]) {
        let source = source(settings);
        let secrets = secrets.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let secrets = SourceSecrets::given_for(&source, SecretTexts::of(secrets.collect()));
        let before = self.find(id).await;
        let id = id.parse().expect("an id");
        let stored = StoredSource::new(id, before.as_ref(), &source, self.clock.now());
        let saved = self.store.save_source(&stored, Some(&secrets), &invocation()).await;
        assert!(saved.expect("saved"));
    }

    pub(crate) async fn find(&self, id: &str) -> Option<StoredSource> {
        let listing = self.store.sources(&invocation()).await.expect("read");
        listing.found.into_iter().find(|stored| stored.id.as_str() == id)
    }

    pub(crate) async fn stored(&self, id: &str) -> StoredSource {
        self.find(id).await.expect("a source")
    }

    pub(crate) async fn state(&self, id: &str) -> SourceState {
        self.stored(id).await.status.state(self.clock.now())
    }

    /// The schedule invokes the function.
    pub(crate) async fn minute(&self) {
        let deadline = Deadline::after(Duration::from_secs(55));
        Box::pin(self.fetching.handle(Event::Schedule, deadline)).await.expect("done");
    }

    /// The schedule invokes the function at the start of each minute of a time.
    pub(crate) async fn minutes(&self, minutes: i64) {
        for _ in 0..minutes {
            self.clock.advance(Duration::from_secs(60));
            self.minute().await;
        }
    }

    /// A person tries a source.
    pub(crate) async fn try_source(
        &self,
        id: &str,
        settings: Value,
        secrets: Option<&[(&str, &str)]>,
    ) -> TestReply {
        let secrets = secrets.map(|secrets| {
            let texts = secrets.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
            SecretTexts::of(texts.collect())
        });
        let id = id.parse().expect("an id");
        let test = SourceTest { id, settings: object(settings), secrets };
        let deadline = Deadline::after(Duration::from_secs(20));
        let reply = self.fetching.handle(Event::Test(Box::new(test)), deadline).await;
        reply.expect("done").expect("a reply")
    }

    /// The requests so far: host, time, path and query.
    pub(crate) fn asked(&self) -> Vec<(String, Timestamp, String)> {
        self.makers.asked.lock().expect("no panic").clone()
    }

    /// The values that ingest has, without those of sources themselves.
    pub(crate) fn values(&self) -> BTreeMap<(String, String, String), String> {
        let kept = self.ingest.0.lock().expect("no panic");
        let of_devices =
            kept.values.iter().filter(|((device, ..), _)| !device.starts_with("source:"));
        of_devices.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The values of the metric `failing` of a source, in their order.
    pub(crate) fn told(&self, id: &str) -> Vec<String> {
        let kept = self.ingest.0.lock().expect("no panic");
        let device = format!("source:{id}");
        let own = kept.values.iter().filter(|((of, ..), _)| *of == device);
        own.map(|(_, value)| value.clone()).collect()
    }

    pub(crate) fn events(&self) -> Vec<String> {
        self.ingest.0.lock().expect("no panic").events.clone()
    }

    /// How the next invocations of ingest fail: `true` if the readings are stored though.
    pub(crate) fn fail_ingest(&self, failures: &[bool]) {
        self.ingest.0.lock().expect("no panic").failures.extend(failures);
    }

    pub(crate) fn lines(&self) -> String {
        self.lines.lock().expect("no panic").join("\n")
    }
}

pub(crate) fn source(settings: Value) -> PolledSource {
    PolledSource::read(object(settings), Reach::Local).expect("a source")
}

pub(crate) fn object(value: Value) -> serde_json::Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("{other} is no object"),
    }
}

/// An answer by a maker whose clock is right.
pub(crate) fn answer(at: Timestamp, status: u16, body: &Value) -> Fetched {
    let headers = vec![("date", http_date(at))];
    Fetched { status, headers, body: body.to_string().into_bytes() }
}

/// A date as servers write it, in whole seconds.
pub(crate) fn http_date(at: Timestamp) -> String {
    let date = DateTime::from_timestamp_millis(at.as_millis()).expect("a date");
    date.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// The largest number of requests in any window of a time.
pub(crate) fn most_within(times: &[Timestamp], window: TimeDelta) -> usize {
    let within = |from: &Timestamp| {
        times.iter().filter(|at| **at >= *from && at.since(*from) < window).count()
    };
    times.iter().map(within).max().unwrap_or(0)
}
