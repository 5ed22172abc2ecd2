//! Deletions under faults: killed between any two requests, by two people at once, with an instance that does
//! not know of them, and with a stream that is late. In the end nothing of the device is left but its tombstone.

use std::time::Duration;

use domain::Reading;
use dynamodb::DynamoStore;
use fastrand::Rng;
use futures_util::{StreamExt as _, future, stream};
use runtime::clock::Deadline;
use serde_json::{Value, json};
use table::keys::ALERT_RECHECKS;
use table::{PutReadings as _, StoredRollup};

use super::proxy::{Effect, Fault, Proxy};
use super::seeded;
use crate::engine::{Engine, Table};
use crate::given::{
    Answer, at, device, invocation, placed, put_first, reading, request, stored_quarter,
};
use crate::home::{Home, Options};
use crate::records;

/// Instances of the functions on one table: two that delete behind a proxy, and two that store, with caches of their own.
struct Bench {
    table: Table,
    proxy: Proxy,
    deleters: [Home<DynamoStore>; 2],
    /// The second one reads the registry no more, as long as its clock stands.
    writers: [Home<DynamoStore>; 2],
    /// What the stream holds.
    records: Vec<Value>,
}

const QUIET: u64 = 6 * 60;

impl Bench {
    async fn new(engine: &Engine) -> Self {
        let table = engine.table(true).await;
        let proxy = Proxy::start(table.endpoint(), |_| None).await;
        let [now, stale] = [0, 1].map(|_| Options::at(at(86_400_000)));
        let deleters = [0, 1].map(|_| Home::with(table.store_by_way_of(proxy.url()), now.clone()));
        let writers = [now, stale].map(|options| Home::with(table.store(), options));
        let mut bench = Self { table, proxy, deleters, writers, records: Vec::new() };
        bench.schedule().await;
        bench.live().await;
        bench
    }

    /// Two devices with readings of a day, rollups, stays in two rooms, and settings that are folded again.
    async fn live(&mut self) {
        for id in ["d", "other"] {
            let readings: Vec<Reading> = (0..40)
                .map(|n| {
                    let value = n.to_string();
                    let metrics = [("temperature", value.as_str()), ("energy", value.as_str())];
                    placed(reading(id, n * 600_000, &metrics), "room-a")
                })
                .collect();
            assert_eq!(self.post(0, &readings).await.status, 201);
            for body in [
                json!({
                    "room": "room-b",
                    "name": "A name",
                    "kind": "plug",
                    "tags": ["x"],
                    "attributes": {"model": ["x 1"]},
                    "in_room_means": false,
                }),
                json!({"room": "room-a"}),
                json!({"metrics": {"energy": {"kind": "counter", "unit": "kWh"}}}),
            ] {
                assert_eq!(self.ask(0, "PATCH", id, Some(&body)).await.status, 200);
                self.pass(Duration::from_secs(60));
            }
        }
        self.deliver_all().await;
        for _ in 0..20 {
            self.pass(Duration::from_secs(60));
            self.schedule().await;
        }
        let kinds = self.kinds("d").await;
        for kind in [
            "TS#",
            "M15#",
            "DAY#",
            "REFOLD",
            "SEEN_IN#room-a d",
            "STAYS_IN#",
            "STAYS_OF#",
            "DEVICE",
        ] {
            assert!(kinds.iter().any(|it| it.contains(kind)), "{kind} is missing: {kinds:?}");
        }
    }

    async fn ask(&self, instance: usize, method: &str, id: &str, body: Option<&Value>) -> Answer {
        self.deleters[instance].ask(method, &format!("/devices/{id}"), "", body).await
    }

    /// Posts readings to an instance; what is stored is in the stream from then on.
    async fn post(&mut self, instance: usize, readings: &[Reading]) -> Answer {
        let answer = self.writers[instance].post(readings).await;
        if answer.status == 201 {
            self.records.extend(records::all_stored(self.records.len(), readings));
        }
        answer
    }

    fn pass(&self, time: Duration) {
        self.writers[0].clock.advance(time);
    }

    async fn schedule(&self) {
        self.writers[0].schedule().await.expect("nothing fails");
    }

    /// Delivers records to both consumers of the stream; these leave nothing to their queues.
    async fn deliver(&self, records: &[Value]) {
        let home = &self.writers[0];
        home.deliver(records).await;
        assert!(home.work.take().is_empty() && home.letters.messages().is_empty());
    }

    async fn deliver_all(&self) {
        self.deliver(&self.records).await;
    }

    /// Delivers every record once more, and its deletion: as late as the stream may be.
    async fn deliver_late(&self) {
        let is_own = |record: &&Value| record["dynamodb"]["Keys"]["pk"]["S"] == "d";
        let mut all: Vec<Value> = self.records.iter().filter(is_own).cloned().collect();
        all.extend(all.clone().iter().map(records::removal));
        for (n, record) in all.iter_mut().enumerate() {
            record["dynamodb"]["SequenceNumber"] = n.to_string().into();
        }
        self.deliver(&all).await;
    }

    /// The keys of all items of a device in the whole table. The function alerting, which does not run here, takes a
    /// recheck away within a minute.
    async fn kinds(&self, id: &str) -> Vec<String> {
        let all = self.table.scan().await.into_iter();
        let keys = all.map(|it| format!("{} {}", it["pk"]["S"], it["sk"]["S"]).replace('"', ""));
        let keys = keys.filter(|key| !key.starts_with(ALERT_RECHECKS));
        keys.filter(|key| key.split([' ', '#']).any(|part| part == id)).collect()
    }

    /// Repeats the deletion until it is over; returns how many requests it took.
    async fn delete_to_the_end(&self, mut instance: impl FnMut() -> usize) -> usize {
        for n in 1..300 {
            let answer = self.ask(instance(), "DELETE", "d", None).await;
            match answer.status {
                200 => return n,
                202 if answer.body["wait_seconds"].is_u64() => {
                    self.pass(Duration::from_secs(60));
                }
                202 | 500 | 503 => {}
                status => panic!("{status}: {}", answer.body),
            }
        }
        panic!("300 requests were not enough");
    }

    async fn assert_only_tombstone(&self) {
        assert_eq!(self.kinds("d").await, ["DEVICE d"]);
        let items = self.table.items("DEVICE").await;
        let item = items.iter().find(|it| it["sk"]["S"] == "d").expect("a tombstone");
        let mut names: Vec<&str> =
            item.as_object().expect("an item").keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["_deleted", "_ended", "_found", "_version", "exp", "pk", "settings", "sk"]
        );
    }
}

fn late(n: i64) -> Reading {
    placed(reading("d", 86_400_000 + n, &[("temperature", "1")]), "room-c")
}

#[tokio::test]
async fn a_deletion_that_is_killed_anywhere_leaves_nothing_in_the_end() {
    let engine = Engine::embedded().await;
    let runs = (0..12_u64).map(|seed| {
        let engine = engine.clone();
        async move {
            let mut rng = Rng::with_seed(seed);
            let mut bench = Bench::new(&engine).await;
            let others = bench.kinds("other").await;
            // Every request may fail, done or not; a killed invocation is one whose next request fails.
            bench.proxy.replan(seeded(seed, 15));
            for n in 0..10 {
                let (one, other) =
                    (bench.ask(0, "DELETE", "d", None), bench.ask(1, "DELETE", "d", None));
                let together = future::join(one, other).await;
                drop(together);
                // An instance that read the registry before goes on storing, and the stream delivers it.
                if rng.bool() {
                    let status = bench.post(1, &[late(n)]).await.status;
                    assert!([201, 410].contains(&status), "{status}");
                }
                if rng.bool() {
                    bench.deliver_late().await;
                }
                bench.schedule().await;
                bench.pass(Duration::from_secs(5));
            }
            // From here on its cache is older than it may be.
            bench.writers[1].clock.advance(Duration::from_secs(61));
            assert_eq!(bench.post(1, &[late(99)]).await.status, 410);
            bench.delete_to_the_end(|| rng.usize(..2)).await;
            bench.proxy.replan(|_| None);
            bench.assert_only_tombstone().await;
            bench.deliver_late().await;
            bench.schedule().await;
            bench.assert_only_tombstone().await;
            assert_eq!(bench.kinds("other").await, others, "seed {seed}: nobody else's");
        }
    });
    stream::iter(runs).buffer_unordered(4).collect::<Vec<()>>().await;
}

#[tokio::test]
async fn after_the_end_a_new_reading_makes_a_new_device() {
    let engine = Engine::embedded().await;
    let mut bench = Bench::new(&engine).await;
    bench.delete_to_the_end(|| 0).await;
    assert_eq!(bench.ask(0, "GET", "d", None).await.status, 404);
    bench.pass(Duration::from_secs(61));
    bench.deliver_late().await;
    let new = placed(reading("d", 90_000_000, &[("co2", "600")]), "room-c");
    assert_eq!(bench.post(0, std::slice::from_ref(&new)).await.status, 201);
    bench.pass(Duration::from_secs(61));
    let shown = bench.ask(0, "GET", "d", None).await;
    assert_eq!(shown.status, 200, "{}", shown.body);
    assert_eq!((&shown.body["room"], &shown.body["name"]), (&json!("room-c"), &Value::Null));
    assert_eq!(shown.body["first_seen"], new.at.to_string());
    assert_eq!(shown.body["metrics"].as_object().map(serde_json::Map::len), Some(1));
    let kinds = bench.kinds("d").await;
    assert_eq!(kinds.len(), 2, "the device and its reading: {kinds:?}");
}

#[tokio::test]
async fn a_device_that_only_the_stream_knows_anew_is_registered_by_it() {
    let engine = Engine::embedded().await;
    let mut bench = Bench::new(&engine).await;
    bench.delete_to_the_end(|| 0).await;
    // Stored where registering fails: the stream function does it.
    let new = placed(reading("d", 90_000_000, &[("co2", "600")]), "room-c");
    let store = bench.table.store();
    store.put_readings(std::slice::from_ref(&new), None, &invocation()).await;
    bench.records.push(records::stored(bench.records.len(), &new));
    bench.deliver_all().await;
    bench.pass(Duration::from_secs(61));
    assert_eq!(bench.ask(0, "GET", "d", None).await.body["room"], "room-c");
}

/// A rollup that was folded from readings before they were deleted may be put until its invocation is over.
#[tokio::test]
async fn a_late_fold_is_found_before_the_deletion_ends() {
    let engine = Engine::embedded().await;
    let bench = Bench::new(&engine).await;
    let quarter = domain::QuarterHour::of(at(3_600_000));
    let fold = domain::Rollup::fold([&late(0)], &domain::FoldRules::default());
    let stale = StoredRollup { settings: 9, ..stored_quarter(&device("d"), quarter, fold) };
    assert_eq!(bench.ask(0, "DELETE", "d", None).await.status, 202);
    // The longest invocation of the rollup function, and then some.
    bench.pass(Duration::from_secs(QUIET - 30));
    put_first(&bench.table.store(), &stale).await;
    bench.pass(Duration::from_secs(60));
    let answer = bench.ask(0, "DELETE", "d", None).await;
    assert_eq!((answer.status, &answer.body["deleted"]), (202, &json!(1)));
    bench.delete_to_the_end(|| 1).await;
    bench.assert_only_tombstone().await;
}

#[tokio::test]
async fn a_deletion_without_time_answers_with_what_is_left() {
    let engine = Engine::embedded().await;
    let bench = Bench::new(&engine).await;
    let delete = async |millis: u64| {
        let event = request("DELETE", "/devices/d", "", None);
        let short = Deadline::after(Duration::from_millis(millis));
        bench.deleters[0].ask_until(event, short).await
    };
    let answer = delete(2_900).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    bench.proxy.replan(|_| Some(Fault::Reset(Effect::None)));
    assert_eq!(delete(2_000).await.status, 503);
}
