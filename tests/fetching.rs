//! A home that asks: what a played maker answers, through fetching, ingest, the stream and registry, to what people ask.

mod alerts;
mod prices;
mod secrets;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fetching::{Event, Fetching, Outside};
use outgoing::{Fetched, Reach, Request};
use polling::{PolledSource, SecretTexts};
use runtime::clock::{Clock as _, Deadline, TestClock};
use runtime::invoke::{InvokeFunction, Invoking, NotInvoked};
use sending::{FetchAnswer, Unanswered};
use serde::Deserialize;
use serde_json::{Value, json};
use table::given::minute;
use table::memory_db::MemoryDb;
use table::{EditSources as _, ReadSources as _, SourceSecrets, StoredSource};

use crate::given::{at, invocation};
use crate::home::{Home, Options};

/// A maker that tells Remo's devices and a meter whose counter moves each three minutes.
#[derive(Clone)]
struct Remo {
    clock: TestClock,
    /// What the meter has told: by time its counter, in tenths of a kWh.
    told: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl FetchAnswer for Remo {
    fn fetch(&self, request: &Request) -> Result<Fetched, Unanswered> {
        let now = self.clock.now();
        let minutes = now.as_millis() / 60_000;
        let counted = u64::try_from(minutes / 3 - 9_820_000).expect("it counts up");
        let changed = domain::Timestamp::from_millis(minutes / 3 * 180_000).expect("a time");
        let body = if request.uri().path() == "/1/devices" {
            json!([{"id": "a1", "name": "リビング", "newest_events": {"te": {"val": 22.5, "created_at": changed}}}])
        } else {
            self.told.lock().expect("no panic").insert(changed.to_string(), counted);
            json!([{"id": "i1"}, {"id": "b2", "nickname": "メーター", "smart_meter": {"echonetlite_properties": [
                {"epc": 211, "val": "1", "updated_at": changed},
                {"epc": 215, "val": "7", "updated_at": changed},
                {"epc": 224, "val": counted.to_string(), "updated_at": changed},
                {"epc": 225, "val": "1", "updated_at": changed},
                {"epc": 231, "val": "2000", "updated_at": changed},
            ]}}])
        };
        Ok(Fetched { status: 200, headers: Vec::new(), body: body.to_string().into_bytes() })
    }
}

/// A source, and what its maker answers to each path, as `events/answers` has them.
#[derive(Deserialize)]
struct Documented {
    source: Value,
    secrets: BTreeMap<String, String>,
    answers: BTreeMap<String, Value>,
}

/// A maker that answers what is documented.
struct DocumentedMaker(BTreeMap<String, Value>);

impl FetchAnswer for DocumentedMaker {
    fn fetch(&self, request: &Request) -> Result<Fetched, Unanswered> {
        let body = &self.0[request.uri().path()];
        Ok(Fetched { status: 200, headers: Vec::new(), body: body.to_string().into_bytes() })
    }
}

/// Asks a source until its maker has told everything, and forgets it. Returns its state.
pub(crate) async fn play(home: &Home<MemoryDb>, text: &str) -> Value {
    let Documented { source, secrets, answers } = serde_json::from_str(text).expect("a source");
    let (began, fetching) = (home.clock.now(), asking(home, Arc::new(DocumentedMaker(answers))));
    save(home, "asked", source, secrets).await;
    for _ in 0..2 {
        Box::pin(fetching.handle(Event::Schedule, minute())).await.expect("done");
        home.clock.advance(Duration::from_secs(60));
    }

    let asked = home.store.sources(&invocation()).await.expect("read").found.remove(0);
    let state = asked.status.state(home.clock.now());
    home.store.delete_source(&asked.id, &invocation()).await.expect("deleted");
    home.clock.set(began);
    json!({"state": state, "error": asked.status.error})
}

/// The function fetching is invoked by its schedule, where there is no source.
pub(crate) async fn schedule(home: &Home<MemoryDb>, event: &str) -> Value {
    let fetching = asking(home, Arc::new(DocumentedMaker(BTreeMap::new())));
    let event = serde_json::from_str(event).expect("an event");
    let done = Box::pin(fetching.handle(event, minute())).await;
    json!(done.expect("the table does not fail"))
}

/// The function fetching of a home.
fn asking(home: &Home<MemoryDb>, http: Arc<dyn FetchAnswer>) -> Fetching<MemoryDb, TestClock> {
    let options = Options {
        clock: home.clock.clone(),
        log: home.log.clone(),
        registry_max_age: Duration::ZERO,
        ..Options::at(home.clock.now())
    };
    let ingest = Arc::new(OfHome(Home::with(home.store.clone(), options)));
    let outside = Outside { http, ingest, reach: Reach::Public };
    let permitted = home.store.for_role(<MemoryDb as fetching::Store>::PERMISSIONS);
    Fetching::new(permitted, outside, home.clock.clone(), home.log.telemetry())
}

/// The function ingest of a home, as fetching invokes it.
struct OfHome(Home<MemoryDb>);

impl InvokeFunction for OfHome {
    fn invoke(&self, event: String, deadline: Deadline) -> Invoking<'_> {
        Box::pin(async move {
            let event = serde_json::from_str(&event).map_err(|why| NotInvoked(why.to_string()))?;
            let reply = Box::pin(self.0.ingest().handle(event, deadline)).await;
            let reply = reply.map_err(|why| NotInvoked(why.to_string()))?;
            serde_json::to_string(&reply).map_err(|why| NotInvoked(why.to_string()))
        })
    }
}

async fn save(home: &Home<MemoryDb>, id: &str, settings: Value, secrets: BTreeMap<String, String>) {
    let settings = settings.as_object().expect("an object").clone();
    let source = PolledSource::read(settings, Reach::Public).expect("a source");
    let stored = StoredSource::new(id.parse().expect("an id"), None, &source, home.clock.now());
    let secrets = SourceSecrets::given_for(&source, SecretTexts::of(secrets));
    assert!(home.store.save_source(&stored, Some(&secrets), &invocation()).await.expect("saved"));
}

#[tokio::test(start_paused = true)]
async fn a_day_of_a_maker_is_there_once_in_named_rooms_and_its_energy_is_what_the_meter_counted() {
    let home = Home::at(MemoryDb::default(), at(0));
    let remo = Remo { clock: home.clock.clone(), told: Arc::default() };
    let fetching = asking(&home, Arc::new(remo.clone()));
    let settings = json!({"kind": "remo", "rooms": {"a1": {"room": "living", "name": "リビング"}}});
    let secrets = [("token".to_owned(), "geheim".to_owned())];
    save(&home, "remo", settings, secrets.into()).await;

    for _ in 0..1_440 {
        home.clock.advance(Duration::from_secs(60));
        Box::pin(fetching.handle(Event::Schedule, minute())).await.expect("done");
    }

    home.clock.advance(Duration::from_secs(1));
    let rooms = home.found("/rooms", "").await.body;
    assert!(rooms.to_string().contains("リビング"), "{rooms}");
    let devices = home.found("/devices", "").await.body;
    let names: BTreeMap<_, _> = devices["data"]
        .as_array()
        .expect("devices")
        .iter()
        .map(|device| {
            (device["device_id"].to_string(), (device["name"].clone(), device["room"].clone()))
        })
        .collect();
    assert_eq!(names["\"a1\""], (json!("リビング"), json!("living")));
    assert_eq!(names["\"b2\""], (json!("メーター"), json!("remo")));

    let told = remo.told.lock().expect("no panic").clone();
    let readings = home.found("/devices/b2/readings", "from=-25h&limit=1000").await.body;
    let stored: BTreeMap<String, Value> = readings["data"]
        .as_array()
        .expect("readings")
        .iter()
        .map(|reading| {
            let time = reading["timestamp"].as_str().expect("a time").to_owned();
            (time, reading["cumulative_kwh_p"].clone())
        })
        .collect();
    let expected: BTreeMap<_, _> = told
        .iter()
        .map(|(time, tenths)| {
            (time.clone(), json!(f64::from(u32::try_from(*tenths).expect("few")) / 10.0))
        })
        .collect();
    assert_eq!(stored.len(), expected.len());
    for (time, value) in &expected {
        assert_eq!(stored[time].as_f64(), value.as_f64(), "{time}");
    }

    let (first, last) = (expected.values().next(), expected.values().last());
    let counted = last.and_then(Value::as_f64).zip(first.and_then(Value::as_f64));
    let counted = counted.map(|(last, first)| last - first).expect("values");
    let energy = home.found("/devices/b2/energy", "from=-25h&every=1d").await.body;
    let total = energy["total_kwh"].as_f64().expect("a sum");
    assert!((total - counted).abs() < 1e-9, "{total} of {counted}: {energy}");
}
