//! Two instances of each function on one table, their caches of different ages, writes between deliveries:
//! what is accepted is there, and the registry says what the readings say.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::Timestamp;
use dynamodb::DynamoStore;
use fastrand::Rng;
use futures_util::{StreamExt as _, stream};
use runtime::dead_letters::MemoryQueue;
use serde_json::{Value, json};
use table::LookUpRegistry as _;

use super::proxy::Proxy;
use super::seeded;
use crate::engine::{Engine, Table};
use crate::given::{Answer, START, answer, at, device, request};
use crate::home::{Consumer, Home, Options};
use crate::records;

/// One table and two instances of each function, whose clocks and caches a test moves apart.
struct Fleet {
    table: Table,
    homes: [Home<DynamoStore>; 2],
    /// What the stream holds, in the order of the writes, and how much of it was delivered.
    records: Vec<Value>,
    delivered: usize,
    items: BTreeMap<String, Value>,
    requests: usize,
}

const DEVICES: [&str; 2] = ["d0", "d1"];

impl Fleet {
    async fn on(table: Table, store: impl Fn() -> DynamoStore) -> Self {
        let letters = MemoryQueue::default();
        let homes = [0, 1].map(|_| {
            Home::with(store(), Options { letters: letters.clone(), ..Options::at(at(0)) })
        });
        for home in &homes {
            home.load().await;
        }
        Self {
            table,
            homes,
            records: Vec::new(),
            delivered: 0,
            items: BTreeMap::new(),
            requests: 0,
        }
    }

    /// Posts readings to an instance at a timestamp of the gateway.
    async fn post(&mut self, instance: usize, millis: i64, query: &str, body: &Value) -> Answer {
        self.requests += 1;
        let mut event = request("POST", "/readings", query, Some(body));
        event.request_context.time_epoch = START + millis;
        event.request_context.request_id = Some(format!("request-{}", self.requests));
        let answer = self.homes[instance].send(ingest::Event::Http(Box::new(event))).await;
        self.follow().await;
        answer
    }

    async fn patch(&self, instance: usize, id: &str, body: &Value) -> Answer {
        self.homes[instance].ask("PATCH", &format!("/devices/{id}"), "", Some(body)).await
    }

    /// Adds to the stream what has changed in the table.
    async fn follow(&mut self) {
        for id in DEVICES {
            for item in self.table.items(id).await {
                let key = format!("{id} {}", item["sk"]);
                if self.items.get(&key) != Some(&item) {
                    let number = self.records.len();
                    self.records.push(records::of_item(number, "MODIFY", &item));
                    self.items.insert(key, item);
                }
            }
        }
    }

    /// Delivers records to an instance until it reports none.
    async fn deliver(&self, instance: usize, records: &[Value]) {
        self.homes[instance].hand_all(Consumer::Registry, records).await;
    }

    /// Delivers what is new; some of what was delivered before comes along again.
    async fn deliver_some(&mut self, rng: &mut Rng) {
        let from = self.delivered - rng.usize(..=self.delivered.min(5));
        let to = rng.usize(self.delivered..=self.records.len());
        self.deliver(rng.usize(..2), &self.records[from..to]).await;
        self.delivered = to;
    }

    /// The room of a device.
    async fn room(&self, id: &str) -> Option<String> {
        let store = self.table.store();
        let found = answer!(store.device(&device(id)));
        found.and_then(|device| device.place().room().cloned()).map(String::from)
    }

    /// The rooms in which a device may be: that of the newest reading whose sender named one, and those
    /// that a newer one named before it was replaced, for what it taught stays.
    async fn rooms_by_readings(&self, id: &str) -> Vec<String> {
        let named = |item: &Value| {
            let room = if item["_named"].is_null() { &item["_named_room"] } else { &item["room"] };
            let key = || item["sk"]["S"].as_str().expect("a key").to_owned();
            room["S"].as_str().map(|room| (key(), room.to_owned()))
        };
        let items = self.table.items(id).await;
        let newest = items.iter().filter_map(named).max().map(|(sk, _)| sk).unwrap_or_default();
        let images = self.records.iter().map(|record| &record["dynamodb"]["NewImage"]);
        let ever = images.filter(|image| image["pk"]["S"] == id).filter_map(named);
        ever.filter(|(sk, _)| *sk >= newest).map(|(_, room)| room).collect()
    }
}

/// One run: random requests to either instance, edits, deliveries, and time that passes for one of them.
async fn run(seed: u64, engine: Engine) {
    let mut rng = Rng::with_seed(seed);
    let table = engine.table(seed.is_multiple_of(2)).await;
    let proxy = Proxy::start(table.endpoint(), |_| None).await;
    let mut fleet = Fleet::on(table.clone(), || table.store_by_way_of(proxy.url())).await;
    proxy.replan(seeded(seed, 5));
    let mut chosen: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    let mut accepted: BTreeMap<(&str, String), Value> = BTreeMap::new();
    let mut arrivals = BTreeMap::<&str, usize>::new();
    for step in 0..60_i64 {
        let (instance, id) = (rng.usize(..2), DEVICES[rng.usize(..2)]);
        let room = ["kitchen", "bath", "study"][rng.usize(..3)];
        match rng.usize(..10) {
            0 => fleet.homes[instance].clock.advance(Duration::from_secs(90)),
            1 if !fleet.items.is_empty() => {
                let room = rng.bool().then_some(room);
                // A person sends an edit again until it is done.
                loop {
                    match fleet.patch(instance, id, &json!({"room": room})).await.status {
                        200 => {
                            chosen.insert(id, room);
                            break;
                        }
                        404 => break,
                        _ => {}
                    }
                }
            }
            2 | 3 => fleet.deliver_some(&mut rng).await,
            4 => {
                let body = json!({"device_id": id, "value": step});
                // Several arrive in one millisecond.
                let millis = 1_000_000 + step / 4;
                if fleet.post(instance, millis, "", &body).await.status == 201 {
                    *arrivals.entry(id).or_default() += 1;
                }
            }
            kind => {
                let millis = rng.i64(0..40);
                let metric = ["a", "z", "attr"][rng.usize(..3)];
                let mut body =
                    json!({"device_id": id, "timestamp": at(millis).to_string(), metric: step});
                if rng.bool() {
                    body["room"] = room.into();
                }
                let merge = kind < 7;
                let query = if merge { "merge=true" } else { "" };
                let answer = fleet.post(instance, 2_000_000, query, &body).await;
                let key = (id, at(millis).to_string());
                if answer.status == 201 {
                    let before = accepted.remove(&key).filter(|_| merge);
                    let mut metrics = before.unwrap_or_else(|| json!({}));
                    metrics[metric] = step.into();
                    accepted.insert(key, metrics);
                } else {
                    // It may be there or not: what it held is no longer known.
                    accepted.remove(&key);
                }
            }
        }
    }
    proxy.replan(|_| None);
    fleet.deliver(0, &fleet.records[fleet.delivered..]).await;
    fleet.deliver(1, &fleet.records).await;

    for ((id, sk), metrics) in &accepted {
        let items = fleet.table.items(id).await;
        let item = items.iter().find(|item| item["sk"]["S"] == format!("TS#{sk}").as_str());
        let item = item.unwrap_or_else(|| panic!("seed {seed}: {id} {sk} is lost"));
        for (name, value) in metrics.as_object().expect("an object") {
            assert_eq!(
                item[name]["N"],
                value.to_string().as_str(),
                "seed {seed}: {id} {sk} {item}"
            );
        }
    }
    for id in DEVICES {
        let arrived =
            fleet.table.items(id).await.iter().filter(|it| !it["_arrival"].is_null()).count();
        let told = arrivals.get(id).copied().unwrap_or(0);
        assert!(arrived >= told, "seed {seed}: of {told} arrivals of {id} {arrived} are there");
        let expected = match chosen.get(id).copied().flatten() {
            Some(room) => vec![room.to_owned()],
            None => fleet.rooms_by_readings(id).await,
        };
        match fleet.room(id).await {
            Some(room) => {
                assert!(expected.contains(&room), "seed {seed}: {id} {room} {expected:?}");
            }
            None => assert!(expected.is_empty(), "seed {seed}: {id} {expected:?}"),
        }
    }
    assert!(fleet.homes[0].letters.messages().is_empty());
}

#[tokio::test]
async fn two_instances_of_each_lose_nothing_and_agree_about_rooms() {
    let engine = Engine::embedded().await;
    let runs = (0..24_u64).map(|seed| Box::pin(run(seed, engine.clone())));
    stream::iter(runs).buffer_unordered(10).collect::<Vec<()>>().await;
}

#[tokio::test]
async fn a_moved_device_is_not_moved_back_by_a_cache_that_is_old() {
    let table = Engine::embedded().await.table(true).await;
    let store = table.store();
    let mut fleet = Fleet::on(table, || store.clone()).await;
    let named = |room: &str, n: i64| json!({"device_id": "d0", "timestamp": at(n).to_string(), "room": room, "a": 1});
    assert_eq!(fleet.post(0, 0, "", &named("kitchen", 0)).await.status, 201);
    fleet.deliver(0, &fleet.records).await;
    fleet.homes[0].clock.advance(Duration::from_secs(90));
    fleet.post(0, 0, "", &json!({"device_id": "d0", "timestamp": at(1).to_string(), "a": 1})).await;
    // The device moves by way of one instance; the other still knows it in the kitchen.
    fleet.post(1, 0, "", &named("bath", 2)).await;
    for n in 3..15 {
        let unnamed = json!({"device_id": "d0", "timestamp": at(n).to_string(), "a": 1});
        assert_eq!(fleet.post(0, 0, "", &unnamed).await.status, 201);
        let instance = usize::from(n % 2 == 0);
        fleet.deliver(instance, &fleet.records).await;
        assert_eq!(fleet.room("d0").await.as_deref(), Some("bath"), "after {n}");
    }
}

#[tokio::test]
async fn instances_with_old_caches_close_no_circle_and_delete_no_meter() {
    let table = Engine::embedded().await.table_of(&[("DeviceShards", "4")]).await;
    let store = table.store();
    let mut fleet = Fleet::on(table, || store.clone()).await;
    let reading = |id: &str| json!({"device_id": id, "timestamp": at(0).to_string(), "a": 1});
    let ids = ["d0", "d1", "d2", "d3"];
    assert_eq!(fleet.post(0, 0, "", &ids.map(reading).into()).await.status, 201);
    // Both know the devices, and from then on nothing that the other does.
    for n in [0, 1] {
        fleet.homes[n].clock.advance(Duration::from_secs(90));
        assert_eq!(fleet.patch(n, "d0", &json!({"name": format!("{n}")})).await.status, 200);
        fleet.homes[n].found("/devices", "").await;
    }
    for (n, device, meter, status) in [
        (0, "d0", "d1", 200),
        (1, "d2", "d3", 200),
        (1, "d1", "d2", 200),
        (0, "d3", "d0", 400),
        (0, "d3", "d1", 400),
        (1, "d1", "d0", 400),
    ] {
        let answer = fleet.patch(n, device, &json!({"behind": meter})).await;
        assert_eq!(answer.status, status, "{device} behind {meter}: {:?}", answer.body);
    }
    for (n, meter, status) in [(0, "d3", 409), (1, "d1", 409), (0, "d2", 409), (1, "d0", 202)] {
        let answer = fleet.homes[n].ask("DELETE", &format!("/devices/{meter}"), "", None).await;
        assert_eq!(answer.status, status, "{meter}: {:?}", answer.body);
    }
    // d0 is gone, so nobody is behind d1; the other instance need not know.
    assert_eq!(fleet.homes[0].ask("DELETE", "/devices/d1", "", None).await.status, 202);
    assert_eq!(fleet.patch(1, "d3", &json!({"behind": "d1"})).await.status, 400);
}

#[tokio::test]
async fn a_question_about_what_an_old_cache_lacks_is_answered() {
    let engine = Engine::embedded().await;
    let metric = "cumulative_kwh_p";
    let of_metric = |path: &str| (path.to_owned(), format!("metric={metric}"));
    let range = |query: &str| format!("from={}&to={}&{query}", at(0), at(3_600_000));
    for is_known in [false, true] {
        let table = engine.table(true).await;
        let store = table.store();
        let mut fleet = Fleet::on(table, || store.clone()).await;
        let reading = |n: i64, name: &str| json!({"device_id": "d0", "timestamp": at(n).to_string(), "room": "bath", name: n});
        let mut questions =
            vec![("/energy".to_owned(), String::new()), of_metric("/energy"), of_metric("/series")];
        if is_known {
            assert_eq!(fleet.post(0, 0, "", &reading(0, "a")).await.status, 201);
            fleet.deliver(0, &fleet.records).await;
            let home = json!({"home": "h"});
            let answer = fleet.homes[0].ask("PATCH", "/rooms/bath", "", Some(&home)).await;
            assert_eq!(answer.status, 200);
            for of in ["/devices/d0", "/rooms/bath", "/homes/h"] {
                questions.push((format!("{of}/energy"), String::new()));
                questions.push(of_metric(&format!("{of}/series")));
                questions.push((format!("{of}/conditions"), format!("{metric}=0..")));
            }
            questions.push(of_metric("/devices/d0/events"));
        } else {
            questions.push(("/series".to_owned(), String::new()));
        }
        let mut old = Vec::new();
        for _ in &questions {
            let home = Home::at(store.clone(), at(0));
            home.query().load().await;
            old.push(home);
        }
        for n in [1_000, 2_000] {
            assert_eq!(fleet.post(0, 0, "", &reading(n, metric)).await.status, 201);
        }
        fleet.deliver(0, &fleet.records).await;
        for ((path, asked), home) in questions.iter().zip(&old) {
            let answer = home.found(path, &range(asked)).await;
            let told = path.ends_with("energy") || answer.body.to_string().contains(metric);
            assert!(told || path.ends_with("events"), "{path}?{asked}: {:?}", answer.body);
        }
        assert_eq!(old[0].get("/series", &range("metric=b")).await.status, 400);
    }
}

#[tokio::test]
async fn a_damaged_device_or_room_is_put_aside_and_blocks_nobody() {
    let table = Engine::embedded().await.table(true).await;
    let store = table.store();
    let mut fleet = Fleet::on(table, || store.clone()).await;
    // A person has changed types in the console.
    for item in [
        json!({"pk": {"S": "DEVICE"}, "sk": {"S": "d0"}, "first_seen": {"N": "5"}}),
        json!({"pk": {"S": "ROOM"}, "sk": {"S": "kitchen"}, "first_seen": {"S": "long ago"}}),
    ] {
        fleet.table.put_item(item).await;
    }
    for n in 0..3 {
        let reading = |id: &str, room: &str| json!({"device_id": id, "timestamp": at(n).to_string(), "room": room, "a": 1});
        let body =
            json!([reading("d0", "bath"), reading("d1", "kitchen"), reading("d1", "kitchen")]);
        assert_eq!(fleet.post(0, 0, "", &body).await.status, 201);
        fleet.deliver(0, &fleet.records).await;
    }
    assert_eq!(fleet.room("d1").await.as_deref(), Some("kitchen"));
    let letters = fleet.homes[0].letters.messages();
    let keys: Vec<_> = letters.iter().map(|it| (it.pk.as_str(), it.sk.as_str())).collect();
    assert_eq!(keys, [("DEVICE", "d0"), ("ROOM", "kitchen")], "each once");

    // One that is read well and written badly.
    fleet
        .table
        .put_item(json!({
            "pk": {"S": "DEVICE"}, "sk": {"S": "d0"}, "first_seen": {"S": Timestamp::MIN.to_string()},
            "metrics": {"S": "none"},
        }))
        .await;
    fleet.deliver(1, &fleet.records).await;
    let letters = fleet.homes[0].letters.messages();
    let metrics = letters.iter().find(|it| it.sk == "d0" && it.reason.contains("cannot apply"));
    assert!(metrics.is_some(), "{letters:?}");
}

#[tokio::test]
async fn a_damaged_device_takes_no_other_with_a_long_id_down() {
    let table = Engine::embedded().await.table(true).await;
    let store = table.store();
    let mut fleet = Fleet::on(table, || store.clone()).await;
    let ids = ["a", "b"].map(|end| format!("{}{end}", "long-".repeat(20)));
    fleet.table.put_item(json!({"pk": {"S": "DEVICE"}, "sk": {"S": ids[0]}})).await;
    let body: Value = ids
        .iter()
        .map(|id| json!({"device_id": id, "timestamp": at(0).to_string(), "room": "bath", "a": 1}))
        .collect();
    assert_eq!(fleet.post(0, 0, "", &body).await.status, 201);
    let mut records = Vec::new();
    for id in &ids {
        let mut item = fleet.table.items(id).await.remove(0);
        item["new_metric"] = json!({"N": "1"});
        records.push(records::of_item(records.len(), "MODIFY", &item));
    }
    fleet.deliver(0, &records).await;
    let healthy = answer!(store.device(&device(&ids[1]))).expect("there");
    assert_eq!(healthy.metrics().len(), 2);
    let letters = fleet.homes[0].letters.messages();
    assert_eq!(letters.iter().map(|it| it.sk.as_str()).collect::<Vec<_>>(), [ids[0].as_str()]);
}

#[tokio::test]
async fn an_empty_batch_asks_nothing() {
    let table = Engine::embedded().await.table(true).await;
    let proxy = Proxy::start(table.endpoint(), |_| None).await;
    let fleet = Fleet::on(table.clone(), || table.store_by_way_of(proxy.url())).await;
    proxy.take_operations();
    fleet.deliver(0, &[]).await;
    assert_eq!(proxy.take_operations(), [""; 0]);
}

#[tokio::test]
async fn parallel_arrivals_are_all_there_or_named() {
    let table = Engine::embedded().await.table(true).await;
    let store = table.store();
    let fleet = Fleet::on(table, || store.clone()).await;
    // Two instances, 200 requests, two of each of ten devices in one millisecond.
    let sending = (0..200_i64).map(|n| {
        let body = json!({"device_id": format!("d{}", n % 10), "t": n});
        let mut event = request("POST", "/readings", "", Some(&body));
        event.request_context.time_epoch = START + n / 20;
        event.request_context.request_id = Some(format!("parallel-{n}"));
        let home = &fleet.homes[usize::from(n % 2 == 0)];
        async move { home.send(ingest::Event::Http(Box::new(event))).await.status }
    });
    let answers: Vec<i64> = stream::iter(sending).buffer_unordered(100).collect().await;
    assert!(answers.iter().all(|status| matches!(status, 201 | 503)), "{answers:?}");
    let accepted = answers.iter().filter(|status| **status == 201).count();
    let mut stored = Vec::new();
    for n in 0..10 {
        stored.extend(fleet.table.items(&format!("d{n}")).await);
    }
    assert_eq!(stored.len(), accepted);
    for item in stored {
        let n: i64 = item["t"]["N"].as_str().expect("a number").parse().expect("a number");
        let sk = item["sk"]["S"].as_str().expect("a key");
        let (arrived, latest) = (at(n / 20).to_string(), at(n / 20 + 9).to_string());
        let stamped = &sk[sk.len() - arrived.len()..];
        assert!(
            (arrived.as_str()..=latest.as_str()).contains(&stamped),
            "{n} is stamped {stamped}"
        );
    }
}
