//! The function on a table in memory that fails on demand. Sample events are run by the workspace's tests.

mod alerts;

use std::time::Duration;

use chrono::TimeDelta;
use domain::given::{always, at_minute, label, stay};
use domain::{
    About, AboutMetric, Device, DevicePatch, Edit, Label, MAX_INTRODUCED_ROOMS, Reading, Room,
    Stay, Timestamp,
};
use runtime::clock::TestClock;
use runtime::dead_letters::{DeadLetter, MemoryQueue};
use serde_json::{Value, json};
use table::given;
use table::memory_db::{MemoryDb, on};
use table::{
    Action, EditRegistry as _, LookUpRegistry as _, PutReadings as _, ReadRegistry as _,
    ReadStays as _, StayQuery, StoreError, Target, UpdateOutcome,
};

use super::*;
use table::RegisterDevices as _;

struct Bench {
    store: MemoryDb,
    registry: Registry<MemoryDb, MemoryQueue<DeadLetter>, TestClock>,
    queue: MemoryQueue<DeadLetter>,
    invocation: Invocation,
}

impl Bench {
    fn on(store: MemoryDb) -> Self {
        let clock = TestClock::at(at_minute(0));
        let queue = MemoryQueue::default();
        let (telemetry, queue_of_its) = (Telemetry::silent(), queue.clone());
        let permitted = store.for_role(<MemoryDb as Store>::PERMISSIONS);
        let registry = Registry::new(permitted, queue_of_its, clock, telemetry);
        let invocation = Invocation::until(Deadline::after(Duration::from_secs(5)));
        Self { store, registry, queue, invocation }
    }

    fn new() -> Self {
        Self::on(MemoryDb::default())
    }

    /// Stores the readings and delivers them as one batch; the sequence number that was reported.
    async fn write(&self, readings: &[Reading]) -> Option<String> {
        self.store.put_readings(readings, None, &self.invocation).await;
        self.deliver(readings).await
    }

    async fn deliver(&self, readings: &[Reading]) -> Option<String> {
        let records: Vec<Value> = readings.iter().enumerate().map(record).collect();
        let event = serde_json::from_value(json!({"Records": records})).expect("an event");
        let response = self.registry.handle(event, Deadline::after(Duration::from_secs(5))).await;
        assert!(response.batch_item_failures.len() <= 1, "at most the first is reported");
        response.batch_item_failures.into_iter().next().and_then(|failure| failure.item_identifier)
    }

    async fn device(&self) -> Device {
        let id = "d".parse().expect("an id");
        self.store.device(&id, &self.invocation).await.expect("memory").expect("registered")
    }

    async fn edit(&self, patch: DevicePatch, minute: i64) {
        let id = "d".parse().expect("an id");
        let edited = self.store.edit_device(&id, &patch, at_minute(minute), &self.invocation).await;
        assert!(matches!(edited, Ok(UpdateOutcome::Updated(_))), "{edited:?}");
    }

    /// The device is put into a room, or taken out of its own.
    async fn choose(&self, room: Option<&str>, minute: i64) {
        let room = room.map_or(Edit::Clear, |it| Edit::Set(it.parse().expect("an id")));
        self.edit(DevicePatch { room, ..DevicePatch::default() }, minute).await;
    }

    async fn rooms(&self) -> Vec<String> {
        let rooms = self.store.rooms(&self.invocation).await.expect("memory").found;
        rooms.iter().map(|room| room.id.to_string()).collect()
    }

    /// Asserts that one record was given up: its key, and a part of the reason.
    fn assert_one_letter(&self, (pk, sk): (&str, &str), reason: &str) {
        let letters = self.queue.messages();
        let [letter] = letters.as_slice() else { panic!("one letter: {letters:?}") };
        assert_eq!((letter.pk.as_str(), letter.sk.as_str()), (pk, sk));
        assert!(!letter.reason.is_empty() && letter.reason.contains(reason), "{letter:?}");
    }

    async fn room_of_device(&self) -> String {
        self.device().await.place().room().expect("a room").to_string()
    }
}

fn reading(device: &str, minute: i64, room: Option<&str>) -> Reading {
    given::reading(device, at_minute(minute), room, &[("temperature", "20")])
}

fn record((n, reading): (usize, &Reading)) -> Value {
    let sk = table::keys::reading_sk(reading.at);
    let mut image =
        json!({"pk": {"S": reading.device}, "sk": {"S": sk}, "temperature": {"N": "20"}});
    if let Some(room) = &reading.room {
        image["room"] = json!({"S": room});
        if reading.named_room.is_some() {
            image["_named"] = json!({"N": "1"});
        }
    }
    if let Some(about) = &reading.about {
        image["_about"] = json!({"S": json!(about).to_string()});
    }
    json!({
        "eventID": n.to_string(), "eventName": "INSERT", "awsRegion": "eu-west-1",
        "dynamodb": {
            "Keys": {"pk": image["pk"], "sk": image["sk"]}, "NewImage": image,
            "SequenceNumber": format!("{n}"), "SizeBytes": 1,
        },
    })
}

#[tokio::test]
async fn nothing_is_written_for_what_is_known() {
    let bench = Bench::new();
    bench.write(&[reading("d", 0, Some("a"))]).await;
    let before = bench.store.calls();
    for minute in 1..15 {
        bench.write(&[reading("d", minute, Some("a"))]).await;
    }
    assert_eq!(bench.store.calls().registry_writes, before.registry_writes);
    // The batch's device and its room.
    assert_eq!(bench.store.calls().reads, before.reads + 2 * 14);
}

fn named(name: &str) -> About {
    About { name: Some(label(name)), ..About::default() }
}

#[tokio::test]
async fn what_a_reading_says_is_learned_in_the_write_that_is_made_anyway() {
    let bench = Bench::new();
    bench.write(&[reading("d", 0, Some("a"))]).await;
    let unit = |unit: &str| AboutMetric { unit: unit.parse().ok(), ..AboutMetric::default() };
    let about = About {
        room_name: Some(label("Attic")),
        metrics: [("volts".parse().expect("a name"), unit("V"))].into(),
        introduced_by: Some("mqtt:plug".to_owned()),
        ..named("Meter")
    };
    let values = [("temperature", "20"), ("volts", "230")];
    let said = given::reading("d", at_minute(1), Some("a"), &values).with_about(about);
    bench.store.put_readings(std::slice::from_ref(&said), None, &bench.invocation).await;

    let before = bench.store.calls().registry_writes;
    for _ in 0..2 {
        let deadline = Deadline::after(Duration::from_secs(5));
        learn(bench.store.clone(), vec![said.clone()], deadline).await.expect("memory");
    }
    // The device and the name of its room, once each.
    assert_eq!(bench.store.calls().registry_writes, before + 2);
    let device = bench.device().await;
    assert_eq!(device.shown_name(), Some(&label("Meter")));
    assert_eq!(device.source().introduced_by.as_deref(), Some("mqtt:plug"));
    let info = &device.metrics()[&"volts".parse().expect("a name")];
    assert_eq!(info.unit.as_ref().map(ToString::to_string), Some("V".to_owned()));
    let rooms = bench.store.rooms(&bench.invocation).await.expect("memory").found;
    assert_eq!(rooms[0].name, Some(label("Attic")));
}

/// A person edits the device between the read and the write.
#[tokio::test]
async fn what_a_reading_says_is_learned_though_others_change_the_device_meanwhile() {
    let bench = Bench::new();
    bench.write(&[reading("d", 0, None)]).await;
    bench.store.fail(
        on(Action::UpdateItem, Target::Devices),
        0,
        StoreError::Throttled("now".into()),
    );
    let said = reading("d", 1, None).with_about(named("Meter"));
    assert_eq!(bench.write(std::slice::from_ref(&said)).await.as_deref(), Some("0"));
    bench.store.end_troubles();
    let name = Edit::Set(label("Cellar"));
    bench.edit(DevicePatch { name, ..DevicePatch::default() }, 2).await;
    assert_eq!(bench.deliver(&[said]).await, None);
    let device = bench.device().await;
    assert_eq!(device.source().name, Some(label("Meter")));
    assert_eq!(device.shown_name(), Some(&label("Cellar")));
}

/// The function ingest has put the room, and the device notes it: so the next ones are counted.
#[tokio::test]
async fn a_device_notes_the_rooms_that_its_readings_introduce_and_no_more_than_it_may() {
    let bench = Bench::new();
    bench.write(&[reading("d", 0, None)]).await;
    for n in 0..40 {
        let room = format!("r{n:02}");
        given::register_room(&bench.store, &room, at_minute(1)).await;
        let about = About { introduces_room: true, ..About::default() };
        bench.write(&[reading("d", n + 1, Some(&room)).with_about(about)]).await;
    }
    assert_eq!(bench.device().await.introduced_rooms().len(), MAX_INTRODUCED_ROOMS);
    assert_eq!(bench.room_of_device().await, "r39");
}

#[tokio::test]
async fn a_late_reading_never_moves_a_device_back() {
    let bench = Bench::new();
    bench.write(&[reading("d", 0, Some("a"))]).await;
    bench.write(&[reading("d", 30, Some("a"))]).await;
    // Newer than the reading that told the room, older than the newest one.
    bench.write(&[reading("d", 15, Some("b"))]).await;
    assert_eq!(bench.room_of_device().await, "a");
    bench.write(&[reading("d", 31, Some("b"))]).await;
    assert_eq!(bench.room_of_device().await, "b");
    bench.write(&[reading("d", 16, Some("a")), reading("d", 40, None)]).await;
    assert_eq!(bench.room_of_device().await, "b");
}

#[tokio::test]
async fn any_order_and_any_repetition_leave_the_same_registry() {
    let all: Vec<Reading> = [(0, "a"), (5, "b"), (9, "c"), (7, "b"), (3, "a")]
        .map(|(minute, room)| reading("d", minute, Some(room)))
        .into();
    let mut registries = Vec::new();
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]] {
        let bench = Bench::new();
        for n in order {
            bench.write(&[all[n].clone()]).await;
        }
        bench.deliver(&all).await;
        registries.push((
            bench.device().await,
            bench.store.rooms(&bench.invocation).await.expect("memory").found,
        ));
    }
    assert!(registries.iter().all(|registry| *registry == registries[0]), "{registries:#?}");
    assert_eq!(registries[0].0.place().room().expect("a room").as_str(), "c");
    assert_eq!(registries[0].0.first_seen(), at_minute(0));
}

#[tokio::test]
async fn what_a_person_set_stays() {
    let bench = Bench::new();
    bench.write(&[reading("d", 0, Some("a"))]).await;
    let patch = DevicePatch {
        name: Edit::Set(label("Kitchen")),
        room: Edit::Set(given::room("p")),
        ..DevicePatch::default()
    };
    bench.edit(patch, 0).await;
    // The function's own cache does not know of the edit.
    bench.write(&[reading("d", 10, Some("b")), reading("d", -10, Some("c"))]).await;
    let device = bench.device().await;
    assert_eq!(
        (device.name().map(Label::as_str), device.place().room().expect("a room").as_str()),
        (Some("Kitchen"), "p")
    );
    assert_eq!(device.first_seen(), at_minute(-10), "what nobody set is still learned");

    bench.choose(None, 0).await;
    bench.write(&[reading("d", 20, Some("b"))]).await;
    assert_eq!(bench.room_of_device().await, "b", "the readings decide again");
}

#[tokio::test]
async fn the_first_record_that_could_not_be_learned_is_reported() {
    let bench = Bench::new();
    let batch = [reading("z", 0, None), reading("d", 0, None), reading("d", 1, None)];
    // Devices are written in the order of their ids: d, which record 1 is the first to name, then z.
    bench.store.fail_registry_writes_with([StoreError::TimedOut]);
    assert_eq!(bench.deliver(&batch).await.as_deref(), Some("1"));
    assert_eq!(bench.deliver(&batch[1..]).await, None, "delivered again, it is learned");
    assert_eq!(bench.device().await.first_seen(), at_minute(0));
}

#[tokio::test]
async fn without_the_registry_the_first_reading_is_reported() {
    let bench = Bench::new();
    bench.store.fail_with([StoreError::TimedOut]);
    assert_eq!(bench.deliver(&[reading("d", 0, None)]).await.as_deref(), Some("0"));
    assert_eq!(bench.deliver(&[reading("d", 0, None)]).await, None);
}

#[tokio::test]
async fn two_instances_read_the_same_registry() {
    let one = Bench::new();
    let two = Bench::on(one.store.clone());
    one.write(&[reading("d", 5, Some("b"))]).await;
    two.write(&[reading("d", 0, Some("a"))]).await;
    assert_eq!(one.room_of_device().await, "b");
    assert_eq!(one.device().await.first_seen(), at_minute(0));
}

#[tokio::test]
async fn poison_is_given_up_and_comes_again_only_while_the_queue_fails() {
    let bench = Bench::new();
    let mut records: Vec<Value> =
        [reading("a", 0, None), reading("b", 0, None), reading("c", 0, None)]
            .iter()
            .enumerate()
            .map(record)
            .collect();
    records[1]["dynamodb"]["Keys"]["sk"] = json!({"S": "TS#yesterday"});
    records[1]["dynamodb"]["NewImage"]["sk"] = json!({"S": "TS#yesterday"});
    let deliver = async || {
        let event = serde_json::from_value(json!({"Records": records})).expect("an event");
        bench.registry.handle(event, Deadline::after(Duration::from_secs(5))).await
    };
    bench.queue.fail(true);
    let failures = deliver().await.batch_item_failures;
    assert_eq!(failures[0].item_identifier.as_deref(), Some("1"));
    assert!(bench.queue.messages().is_empty());
    let learned = bench.store.devices(&bench.invocation).await.expect("memory").found;
    assert_eq!(learned.len(), 2, "the others do not wait for it");

    bench.queue.fail(false);
    assert!(deliver().await.batch_item_failures.is_empty());
    bench.assert_one_letter(("b", "TS#yesterday"), "");
}

#[tokio::test]
async fn a_filled_in_room_moves_no_device_and_makes_no_room() {
    let bench = Bench::new();
    bench.write(&[reading("d", 0, Some("a"))]).await;
    let moved = [reading("d", 5, Some("b"))];
    bench.write(&moved).await;
    // An ingester whose cache is old still fills in the room before.
    let mut stale = reading("d", 6, Some("a"));
    stale.named_room = None;
    bench.write(&[stale.clone()]).await;
    assert_eq!(bench.room_of_device().await, "b");
    // Nor does it hide the newest reading that names one, when that comes again.
    bench.deliver(&moved).await;
    assert_eq!(bench.room_of_device().await, "b");

    bench.choose(None, 0).await;
    stale.at = at_minute(7);
    bench.write(&[stale]).await;
    assert_eq!(
        bench.device().await.place().room(),
        None,
        "a room that was cleared does not return"
    );
    let mut unknown = reading("d", 8, Some("cellar"));
    unknown.named_room = None;
    bench.write(&[unknown]).await;
    assert_eq!(bench.rooms().await, ["a", "b"]);
}

#[tokio::test]
async fn a_reading_sent_again_with_another_room_moves_the_device() {
    for batched in [true, false] {
        let bench = Bench::new();
        let versions = ["a", "c", "b"].map(|room| reading("d", 0, Some(room)));
        if batched {
            bench.store.put_readings(&versions[2..], None, &bench.invocation).await;
            bench.deliver(&versions).await;
        } else {
            for version in &versions {
                bench.write(std::slice::from_ref(version)).await;
            }
        }
        assert_eq!(bench.room_of_device().await, "b", "batched: {batched}");
        bench.deliver(&versions).await;
        assert_eq!(bench.room_of_device().await, "b", "the table knows which came last");
    }
}

#[tokio::test]
async fn a_device_introduces_a_bounded_number_of_rooms_however_its_records_come() {
    let bench = Bench::new();
    let all: Vec<Reading> = (0..50).map(|n| reading("d", n, Some(&format!("r{n:02}")))).collect();
    for part in all.chunks(20) {
        bench.write(part).await;
    }
    bench.deliver(&all).await;
    assert_eq!(bench.rooms().await.len(), 32);
    assert_eq!(bench.room_of_device().await, "r31", "it is in the newest room that there is");
    bench.write(&[reading("e", 60, Some("r49")), reading("d", 61, Some("r49"))]).await;
    assert_eq!(bench.room_of_device().await, "r49", "another device has introduced it");
}

#[tokio::test]
async fn an_empty_batch_is_nothing() {
    let bench = Bench::new();
    assert_eq!(bench.deliver(&[]).await, None);
    assert_eq!(bench.store.calls(), table::memory_db::Calls::default());
}

#[tokio::test]
async fn what_can_never_be_applied_is_given_up_once_and_blocks_nothing() {
    let bench = Bench::new();
    let batch = [reading("a", 0, None), reading("d", 0, None)];
    for n in 0..2 {
        // Devices are written in the order of their ids.
        let damaged = StoreError::Inapplicable("the item is damaged".into());
        bench.store.fail_registry_writes_with([damaged]);
        assert_eq!(bench.deliver(&batch).await, None, "delivery {n}");
    }
    assert_eq!(bench.device().await.first_seen(), at_minute(0));
    bench.assert_one_letter(("DEVICE", "a"), "is damaged");
}

#[tokio::test]
async fn late_readings_behind_many_without_a_room_cost_little() {
    let bench = Bench::new();
    bench.write(&[reading("d", 0, Some("a")), reading("d", 1, Some("b"))]).await;
    let unnamed: Vec<Reading> = (100..600).map(|minute| reading("d", minute, None)).collect();
    bench.store.put_readings(&unnamed, None, &bench.invocation).await;
    let mut reads = Vec::new();
    for minute in 2..6 {
        let before = bench.store.calls().reads;
        let room = if minute % 2 == 0 { "a" } else { "b" };
        bench.write(&[reading("d", minute, Some(room))]).await;
        reads.push(bench.store.calls().reads - before);
    }
    // Devices and rooms; and two pages of readings, once.
    assert_eq!(reads, [4, 2, 2, 2]);
    assert_eq!(bench.room_of_device().await, "b", "it stays where it was");
    bench.write(&[reading("d", 700, Some("a"))]).await;
    assert_eq!(bench.room_of_device().await, "a", "and moves when it says so");
}

#[tokio::test]
async fn a_room_that_nobody_may_introduce_hides_no_other() {
    let bench = Bench::new();
    let many: Vec<Reading> = (0..32).map(|n| reading("d", n, Some(&format!("r{n:02}")))).collect();
    bench.write(&many).await;
    bench.write(&[reading("d", 100, Some("r05"))]).await;
    bench.write(&[reading("d", 200, Some("r06")), reading("d", 300, Some("beyond"))]).await;
    assert_eq!(bench.room_of_device().await, "r06");
    bench.write(&[reading("d", 150, Some("r07"))]).await;
    assert_eq!(bench.room_of_device().await, "r06", "a late reading moves it nowhere");
}

#[tokio::test]
async fn a_record_that_makes_the_code_panic_is_given_up_like_other_poison() {
    let bench = Bench::new();
    bench.store.panic(|(action, _)| action == Action::PutItem, 0, "a mistake of ours");
    assert_eq!(bench.deliver(&[reading("a", 0, None), reading("d", 0, None)]).await, None);
    assert_eq!(bench.device().await.first_seen(), at_minute(0), "the other is learned");
    bench.assert_one_letter(("DEVICE", "a"), "panicked: a mistake of ours");
}

async fn stays(bench: &Bench) -> Vec<Stay> {
    let range = always();
    let query = StayQuery { range, after: None, limit: 100 };
    let id = "d".parse().expect("an id");
    let page = bench.store.stays_of(&id, &query, &bench.invocation).await.expect("memory");
    page.items.into_iter().map(|of| of.stay).collect()
}

#[tokio::test]
async fn a_room_that_holds_for_15_minutes_becomes_a_stay_once() {
    let bench = Bench::new();
    bench.write(&[reading("d", 0, Some("a"))]).await;
    bench.write(&[reading("d", 14, Some("a"))]).await;
    assert_eq!(stays(&bench).await, []);
    // A reading that names no room holds the room too.
    let settled = [reading("d", 15, None)];
    bench.write(&settled).await;
    assert_eq!(stays(&bench).await, [stay("a", 0, None)]);
    let before = bench.store.calls();
    bench.deliver(&settled).await;
    bench.write(&[reading("d", 100, Some("a"))]).await;
    assert_eq!(bench.store.calls().registry_writes, before.registry_writes);

    bench.write(&[reading("d", 101, Some("b"))]).await;
    bench.write(&[reading("d", 115, Some("b"))]).await;
    assert_eq!(stays(&bench).await, [stay("a", 0, None)], "it may flap");
    bench.write(&[reading("d", 116, Some("b"))]).await;
    assert_eq!(stays(&bench).await, [stay("a", 0, Some(101)), stay("b", 101, None)]);
}

/// Days in one batch, a reading a batch, and what lies between.
#[tokio::test]
async fn a_stay_begins_with_the_first_reading_in_the_room_whatever_the_batches_are() {
    let room = |minute: i64| match minute {
        ..1_000 => "a",
        1_000..2_500 => "b",
        _ => "c",
    };
    let minutes = (0..4_000).step_by(10);
    let readings: Vec<_> = minutes.map(|it| reading("d", it, Some(room(it)))).collect();
    for size in [1, 3, 7, 60, 130, 400] {
        let bench = Bench::new();
        for batch in readings.chunks(size) {
            bench.write(batch).await;
        }
        let all = stays(&bench).await;
        let last = stay("c", 2_500, None);
        assert_eq!(all.last(), Some(&last), "batches of {size}");
        if size < 100 {
            let former = [stay("a", 0, Some(1_000)), stay("b", 1_000, Some(2_500))];
            assert_eq!(all[..2], former, "batches of {size}");
        }
        let before = all.len();
        let mut again: Vec<_> = readings.chunks(size).collect();
        again.reverse();
        for batch in again {
            bench.deliver(batch).await;
        }
        assert_eq!(stays(&bench).await.len(), before, "delivered again in another order");
    }
}

/// As after an import: all is stored before the stream delivers the first.
#[tokio::test]
async fn the_last_stay_is_where_the_device_is_also_if_the_stream_is_behind() {
    for last in [5, 20, 190] {
        let room = |n: i64| match n {
            100..170 => "b",
            ..200 => "a",
            _ => "c",
        };
        for (step, size) in [(4, 1), (4, 7), (4, 130), (4, 1_000), (10, 1), (10, 23), (10, 130)] {
            let all = 0..200 + last;
            let readings: Vec<_> = all.map(|n| reading("d", n * step, Some(room(n)))).collect();
            let bench = Bench::new();
            bench.store.put_readings(&readings, None, &bench.invocation).await;
            for id in ["a", "b", "c"] {
                let room = Room::new(given::room(id), at_minute(0));
                bench.store.register_room(&room, &bench.invocation).await.expect("memory");
            }
            for batch in readings.chunks(size) {
                bench.deliver(batch).await;
            }
            assert_eq!(bench.room_of_device().await, "c");
            let stays = stays(&bench).await;
            let expected = stay("c", 200 * step, None);
            assert_eq!(stays.last(), Some(&expected), "{last} every {step}, batches of {size}");
        }
    }
}

#[tokio::test]
async fn a_device_that_flaps_and_a_late_reading_begin_no_stay() {
    let bench = Bench::new();
    bench.write(&[reading("d", 0, Some("a"))]).await;
    bench.write(&[reading("d", 20, Some("a"))]).await;
    for minute in 21..80 {
        let room = if minute % 2 == 0 { "a" } else { "b" };
        bench.write(&[reading("d", minute, Some(room))]).await;
    }
    assert_eq!(stays(&bench).await, [stay("a", 0, None)]);
    bench.write(&[reading("d", 80, Some("a"))]).await;
    for minute in 40..70 {
        bench.write(&[reading("d", minute, Some("b"))]).await;
    }
    assert_eq!(bench.room_of_device().await, "a");
    assert_eq!(stays(&bench).await, [stay("a", 0, None)]);
}

#[tokio::test]
async fn a_stay_is_learned_whichever_request_fails() {
    for failing in 0..9 {
        let bench = Bench::new();
        bench.write(&[reading("d", 0, Some("a"))]).await;
        bench.write(&[reading("d", 20, Some("a"))]).await;
        let moved = [reading("d", 30, Some("b")), reading("d", 50, None)];
        bench.store.put_readings(&moved, None, &bench.invocation).await;
        bench.store.fail_after(failing, [StoreError::TimedOut]);
        let mut deliveries = 0;
        while bench.deliver(&moved).await.is_some() {
            deliveries += 1;
        }
        bench.store.end_troubles();
        assert_eq!(deliveries, usize::from(failing < 7), "failing {failing}");
        let history = [stay("a", 0, Some(30)), stay("b", 30, None)];
        assert_eq!(stays(&bench).await, history, "failing {failing}");
        assert_eq!(bench.device().await.stay(), history.last());
    }
}

#[tokio::test]
async fn the_history_goes_on_after_a_persons_choice_was_taken_back() {
    let bench = Bench::new();
    bench.write(&[reading("d", 0, Some("a"))]).await;
    for (room, minute) in [(Some("p"), 5), (None, 60)] {
        bench.choose(room, minute).await;
        bench.write(&[reading("d", minute + 1, None)]).await;
    }
    assert_eq!(stays(&bench).await, [stay("p", 5, Some(60))]);
    // A device in no room is moved by any reading, also one from before.
    bench.write(&[reading("d", 30, Some("b"))]).await;
    assert_eq!(bench.room_of_device().await, "b");
    bench.write(&[reading("d", 74, None)]).await;
    assert_eq!(stays(&bench).await.len(), 1, "14 minutes after the stay before it");
    bench.write(&[reading("d", 75, None)]).await;
    assert_eq!(stays(&bench).await, [stay("p", 5, Some(60)), stay("b", 60, None)]);
}
