//! Registration and updates of the registry: what is first, what is newer, and what a person has decided.

use std::collections::BTreeSet;

use domain::{
    About, AboutMetric, Device, DeviceObservation, DevicePatch, DeviceUpdate, Edit, MAX_FIELDS,
    MAX_INTRODUCED_ROOMS, MAX_METRICS, MetricKind, MetricName, MetricPatch, Place, Room,
};
use futures_util::future::join_all;
use table::{Counting, InsertOutcome, Registration, UpdateOutcome};

use super::Ports;
use crate::given::{
    answer, at, device, device_of, invocation, label, metric, number, reading_in, room, tags, unit,
};

/// A device as its first reading registers it: in `room-a`, seen at 100, with a temperature.
pub(super) fn new_device(id: &str) -> Device {
    device_of([&reading_in(id, 100, "room-a")])
}

fn new_room(id: &str) -> Room {
    Room::new(room(id), at(100))
}

fn metrics(names: &[&str]) -> BTreeSet<MetricName> {
    names.iter().map(|name| metric(name)).collect()
}

pub(super) async fn registered(store: &impl Ports, id: &str) -> Device {
    let device = new_device(id);
    assert_eq!(answer!(store.register_device(&device)), Registration::Inserted);
    device
}

pub(super) async fn device_now(store: &impl Ports, id: &str) -> Device {
    answer!(store.device(&device(id))).expect("registered")
}

/// Learns of the device as it is now.
async fn learn(store: &impl Ports, learned: &DeviceUpdate) -> UpdateOutcome<Device> {
    let now = answer!(store.device(&device("d")));
    learn_of(store, &now.unwrap_or_else(|| new_device("d")), learned).await
}

async fn learn_of(
    store: &impl Ports,
    known: &Device,
    learned: &DeviceUpdate,
) -> UpdateOutcome<Device> {
    answer!(store.update_device(known, learned))
}

#[track_caller]
fn written<T: std::fmt::Debug>(learning: UpdateOutcome<T>) -> T {
    match learning {
        UpdateOutcome::Updated(now) => now,
        UpdateOutcome::ConditionFailed(now) => panic!("refused: {now:?}"),
    }
}

pub(super) async fn an_empty_registry_is_empty(store: &impl Ports) {
    assert_eq!(answer!(store.devices()).found, []);
    assert_eq!(answer!(store.rooms()).found, []);
    assert_eq!(answer!(store.device(&device("d"))), None);
    assert_eq!(answer!(store.room(&room("room-a"))), None);
}

pub(super) async fn registered_twice_the_first_stays(store: &impl Ports) {
    let first = registered(store, "d").await;
    let later = device_of([&reading_in("d", 5, "room-b")]);
    for again in [&first, &later] {
        let registration = answer!(store.register_device(again));
        assert_eq!(registration, Registration::Exists(Box::new(first.clone())));
    }
    assert_eq!(device_now(store, "d").await, first);
}

pub(super) async fn registered_by_many_at_once_one_is_first(store: &impl Ports) {
    let claims: Vec<_> = (0..10)
        .map(|n| {
            let observation = DeviceObservation::of(&reading_in("d", n, &format!("room-{n}")));
            observation.new_device(device("d"), |_| true)
        })
        .collect();
    let invocation = invocation();
    let results =
        join_all(claims.iter().map(|claim| store.register_device(claim, &invocation))).await;
    let now = device_now(store, "d").await;
    let mut first = 0;
    for (claim, result) in claims.iter().zip(results) {
        match result.expect("asked") {
            Registration::Inserted => {
                first += 1;
                assert_eq!(*claim, now);
            }
            Registration::Exists(known) => assert_eq!(*known, now),
            Registration::Deleted(deletion) => panic!("{deletion:?}"),
        }
    }
    assert_eq!(first, 1);
}

pub(super) async fn devices_and_rooms_are_apart_and_listed_by_id(store: &impl Ports) {
    let ids = ["same", "b", "a", "B", "a.b", "a-b", "a:b", "0"];
    for id in ids {
        registered(store, id).await;
    }
    for id in &ids[..3] {
        assert_eq!(answer!(store.register_room(&new_room(id))), InsertOutcome::Inserted);
    }
    let devices = answer!(store.devices()).found;
    let listed: Vec<_> = devices.iter().map(|device| device.id().as_str()).collect();
    assert_eq!(listed, ["0", "B", "a", "a-b", "a.b", "a:b", "b", "same"]);
    assert!(devices.iter().all(|device| *device == new_device(device.id().as_str())));
    assert_eq!(answer!(store.rooms()).found, ["a", "b", "same"].map(new_room));
}

pub(super) async fn a_room_is_registered_once(store: &impl Ports) {
    let first = new_room("room-a");
    assert_eq!(answer!(store.register_room(&first)), InsertOutcome::Inserted);
    let later = Room { name: Some(label("Kitchen")), ..new_room("room-a") };
    assert_eq!(answer!(store.register_room(&later)), InsertOutcome::Exists(first.clone()));
    assert_eq!(answer!(store.room(&first.id)), Some(first));
}

pub(super) async fn what_is_not_registered_learns_nothing(store: &impl Ports) {
    let learned = DeviceUpdate { metrics: metrics(&["co2"]), ..DeviceUpdate::default() };
    assert_eq!(learn(store, &learned).await, UpdateOutcome::ConditionFailed(None));
    let asked = answer!(store.update_room(&room("room-a"), at(0)));
    assert_eq!(asked, UpdateOutcome::ConditionFailed(None));
    assert_eq!(answer!(store.devices()).found, []);
    assert_eq!(answer!(store.rooms()).found, []);
}

pub(super) async fn learned_twice_changes_nothing(store: &impl Ports) {
    registered(store, "d").await;
    let learned = DeviceUpdate {
        about: None,
        first_seen: Some(at(50)),
        room: Some((at(200), room("room-b"))),
        metrics: metrics(&["co2", "count"]),
    };
    let now = written(learn(store, &learned).await);
    assert_eq!(now.first_seen(), at(50));
    assert_eq!(*now.place(), Place::Learned(room("room-b"), at(200)));
    let names: Vec<_> = now.metrics().keys().map(MetricName::as_str).collect();
    assert_eq!(names, ["co2", "count", "temperature"]);
    assert_eq!(now.metrics()[&metric("co2")].unit, Some(unit("ppm")));
    assert_eq!(learn(store, &learned).await, UpdateOutcome::ConditionFailed(Some(now.clone())));
    // What is learned of metrics alone is written where it is not, so nothing is to be refused.
    let only = DeviceUpdate { metrics: learned.metrics, ..DeviceUpdate::default() };
    assert_eq!(written(learn(store, &only).await), now);
    assert_eq!(device_now(store, "d").await, now);
}

pub(super) async fn an_earlier_first_reading_is_learned_a_later_refused(store: &impl Ports) {
    let before = registered(store, "d").await;
    let seen = |millis| DeviceUpdate { first_seen: Some(at(millis)), ..DeviceUpdate::default() };
    for later in [100, 101] {
        assert_eq!(
            learn(store, &seen(later)).await,
            UpdateOutcome::ConditionFailed(Some(before.clone()))
        );
    }
    let expected = before.changed(|it| it.first_seen = at(99));
    assert_eq!(Ok(written(learn(store, &seen(99)).await)), expected);
}

pub(super) async fn a_room_is_learned_only_where_the_known_one_still_is(store: &impl Ports) {
    let before = registered(store, "d").await;
    let moved =
        |millis, to| DeviceUpdate { room: Some((at(millis), room(to))), ..DeviceUpdate::default() };
    let now = written(learn_of(store, &before, &moved(100, "room-b")).await);
    let expected = before.changed(|it| it.place = Place::Learned(room("room-b"), at(100)));
    assert_eq!(expected.as_ref(), Ok(&now));
    // Whoever asked the readings while it was in room-a has to ask again.
    let late = learn_of(store, &before, &moved(101, "room-c")).await;
    assert_eq!(late, UpdateOutcome::ConditionFailed(Some(now.clone())));
    let nowhere = before.changed(|it| it.place = Place::Unknown).expect("a device");
    let late = learn_of(store, &nowhere, &moved(101, "room-c")).await;
    assert_eq!(late, UpdateOutcome::ConditionFailed(Some(now.clone())));
    assert_eq!(
        *written(learn_of(store, &now, &moved(101, "room-c")).await).place(),
        Place::Learned(room("room-c"), at(101))
    );
}

pub(super) async fn a_refusal_refuses_the_whole(store: &impl Ports) {
    let before = registered(store, "d").await;
    let learned = DeviceUpdate {
        about: None,
        first_seen: Some(at(100)),
        room: Some((at(101), room("room-b"))),
        metrics: metrics(&["co2"]),
    };
    assert_eq!(learn(store, &learned).await, UpdateOutcome::ConditionFailed(Some(before.clone())));
    assert_eq!(device_now(store, "d").await, before);
}

pub(super) async fn a_persons_room_is_never_moved(store: &impl Ports) {
    let before = registered(store, "d").await;
    let into = |edit| DevicePatch { room: edit, ..DevicePatch::default() };
    let patch = into(Edit::Set(room("room-c")));
    let edited = answer!(store.edit_device(&device("d"), &patch, at(0)));
    assert!(matches!(edited, UpdateOutcome::Updated(_)));
    let learned = DeviceUpdate { room: Some((at(101), room("room-b"))), ..DeviceUpdate::default() };
    assert!(matches!(
        learn_of(store, &before, &learned).await,
        UpdateOutcome::ConditionFailed(Some(_))
    ));
    let now = device_now(store, "d").await;
    assert_eq!(*now.place(), Place::Chosen(room("room-c")));

    // Taken back, the readings decide again.
    answer!(store.edit_device(&device("d"), &into(Edit::Clear), at(0)));
    let learned = DeviceUpdate { room: Some((at(1), room("room-b"))), ..DeviceUpdate::default() };
    assert_eq!(written(learn(store, &learned).await).place().room(), Some(&room("room-b")));
}

pub(super) async fn a_persons_settings_are_never_overwritten(store: &impl Ports) {
    registered(store, "d").await;
    let settings = MetricPatch {
        unit: Edit::Set(unit("°F")),
        max_w: Edit::Set(number("6000")),
        ..MetricPatch::default()
    };
    let patch = DevicePatch {
        name: Edit::Set(label("Sensor")),
        tags: Edit::Set(tags(&["b", "a"])),
        metrics: [(metric("temperature"), Some(settings))].into(),
        ..DevicePatch::default()
    };
    answer!(store.edit_device(&device("d"), &patch, at(0)));
    let edited = device_now(store, "d").await;
    let learned = DeviceUpdate {
        about: None,
        first_seen: Some(at(1)),
        metrics: metrics(&["temperature", "humidity"]),
        ..DeviceUpdate::default()
    };
    let now = written(learn(store, &learned).await);
    let expected = edited.changed(|it| {
        it.first_seen = at(1);
        let name = metric("humidity");
        it.metrics.insert(name.clone(), (&name).into());
    });
    assert_eq!(Ok(now), expected);
}

pub(super) async fn metrics_are_learned_however_long_and_many_they_are(store: &impl Ports) {
    let long = (0..MAX_METRICS).map(|n| format!("{:x<60}_{n:03}", "m"));
    let many = (1..4 * MAX_METRICS).map(|n| format!("m{n}"));
    for (id, names) in [("long", long.collect::<Vec<String>>()), ("many", many.collect())] {
        let before = registered(store, id).await;
        let metrics = names.iter().map(|name| metric(name)).collect();
        let learned = DeviceUpdate { metrics, ..DeviceUpdate::default() };
        let now = written(learn_of(store, &before, &learned).await);
        assert_eq!(now.metrics().len(), names.len() + 1, "{id}");
        assert_eq!(device_now(store, id).await, now, "{id}");
    }
}

/// Each has a unit, so the whole description is longer than one expression.
pub(super) async fn as_many_metrics_as_a_reading_has_are_described(store: &impl Ports) {
    registered(store, "d").await;
    let known = device_now(store, "d").await;
    let volts = AboutMetric { unit: Some(unit("V")), ..AboutMetric::default() };
    let mut about = About { name: Some(label("Meter")), ..About::default() };
    about.metrics =
        (1..MAX_FIELDS).map(|n| (metric(&format!("{:x<60}_{n:03}", "m")), volts.clone())).collect();

    let now = written(answer!(store.update_device(&known, &said(&about))));
    assert_eq!(now.metrics().len(), MAX_FIELDS);
    let described = known.with_about(&about).expect("news");
    assert_eq!((now.metrics(), now.source()), (described.metrics(), described.source()));
    assert_eq!(device_now(store, "d").await, now);
}

pub(super) async fn a_room_learns_its_first_reading(store: &impl Ports) {
    let before = new_room("room-a");
    answer!(store.register_room(&before));
    let learn = async |millis| answer!(store.update_room(&before.id, at(millis)));
    for later in [100, 200] {
        assert_eq!(learn(later).await, UpdateOutcome::ConditionFailed(Some(before.clone())));
    }
    let now = Room { first_seen: at(99), ..before.clone() };
    assert_eq!(learn(99).await, UpdateOutcome::Updated(now.clone()));
    assert_eq!(learn(99).await, UpdateOutcome::ConditionFailed(Some(now)));
}

pub(super) async fn learned_by_many_at_once_all_is_there(store: &impl Ports) {
    registered(store, "d").await;
    let all: Vec<_> = (0..10)
        .map(|n| DeviceUpdate {
            metrics: metrics(&[&format!("m{n}"), "co2"]),
            ..DeviceUpdate::default()
        })
        .collect();
    let (known, invocation) = (new_device("d"), invocation());
    let results =
        join_all(all.iter().map(|learned| store.update_device(&known, learned, &invocation))).await;
    results.into_iter().for_each(|result| drop(written(result.expect("asked"))));
    assert_eq!(device_now(store, "d").await.metrics().len(), 12);
}

pub(super) async fn several_are_found_at_once(store: &impl Ports) {
    let ids: Vec<String> = (0..250).map(|n| format!("d{n}")).collect();
    for id in ids.iter().step_by(2) {
        registered(store, id).await;
    }
    answer!(store.register_room(&new_room("d1")));
    let asked: Vec<_> = ids.iter().map(|id| device(id)).collect();
    let mut found = answer!(store.find_devices(&asked)).found;
    found.sort_by(|a, b| a.id().cmp(b.id()));
    let mut expected: Vec<_> = ids.iter().step_by(2).map(|id| new_device(id)).collect();
    expected.sort_by(|a, b| a.id().cmp(b.id()));
    assert_eq!(found, expected);
    let asked = ["d0", "d1"].map(room);
    assert_eq!(answer!(store.find_rooms(&asked)).found, [new_room("d1")]);
    assert_eq!(answer!(store.find_rooms(&[])).found, []);
}

pub(super) async fn a_device_introduces_so_many_rooms(store: &impl Ports) {
    registered(store, "d").await;
    let introduce = async |n: usize| {
        let room = room(&format!("{:x<120}-{n}", "r"));
        answer!(store.introduce_room(&device("d"), &room))
    };
    for n in 0..MAX_INTRODUCED_ROOMS {
        assert_eq!(written(introduce(n).await).introduced_rooms().len(), n + 1);
    }
    let full = device_now(store, "d").await;
    assert_eq!(introduce(99).await, UpdateOutcome::ConditionFailed(Some(full.clone())));
    assert_eq!(written(introduce(5).await), full, "done twice, it is noted once");
    let nobody = answer!(store.introduce_room(&device("e"), &room("r")));
    assert_eq!(nobody, UpdateOutcome::ConditionFailed(None));
}

pub(super) async fn rooms_introduced_at_once_are_counted(store: &impl Ports) {
    registered(store, "d").await;
    let rooms: Vec<_> = (0..50).map(|n| room(&format!("r{n}"))).collect();
    let (device, invocation) = (device("d"), invocation());
    let asked = rooms.iter().map(|room| store.introduce_room(&device, room, &invocation));
    let results = join_all(asked).await.into_iter().map(|result| result.expect("asked"));
    let written = results.filter(|result| matches!(result, UpdateOutcome::Updated(_))).count();
    assert_eq!(written, MAX_INTRODUCED_ROOMS);
    assert_eq!(device_now(store, "d").await.introduced_rooms().len(), MAX_INTRODUCED_ROOMS);
}

pub(super) async fn devices_introduced_at_once_are_counted(store: &impl Ports) {
    let invocation = invocation();
    let count = |sender, more| store.count_introduced(sender, more, 32, &invocation);
    let many = join_all((0..20).map(|_| count("mqtt:plug", 2))).await;
    let many = many.into_iter().map(|result| result.expect("asked"));
    let counted = many.filter(|counting| *counting == Counting::Counted).count();
    assert_eq!(counted, 16, "twice 16 is the limit");
    let count = async |sender, more| count(sender, more).await.expect("asked");
    assert_eq!(count("mqtt:plug", 1).await, Counting::BeyondLimit { stored: 32 });
    assert_eq!(count("0123456789ab", 31).await, Counting::Counted, "each sender by itself");
    assert_eq!(count("0123456789ab", 2).await, Counting::BeyondLimit { stored: 31 });
    assert_eq!(count("0123456789ab", 1).await, Counting::Counted);
}

pub(super) async fn a_device_learns_what_no_person_has_said(store: &impl Ports) {
    registered(store, "d").await;
    let invocation = invocation();
    let known = device_now(store, "d").await;
    let metric = known.metrics().keys().next().expect("one").clone();
    let counter = AboutMetric { kind: Some(MetricKind::Counter), ..AboutMetric::default() };
    let new = AboutMetric { unit: Some("V".parse().expect("a unit")), ..AboutMetric::default() };
    let mut about = About {
        name: Some(label("Meter")),
        tags: [("host".to_owned(), "pi".to_owned())].into(),
        metrics: [(metric.clone(), counter), ("volts".parse().expect("a name"), new)].into(),
        ..About::default()
    };
    let taught = store.update_device(&known, &said(&about), &invocation).await.expect("asked");
    assert_eq!(taught, UpdateOutcome::Updated(known.with_about(&about).expect("news")));
    assert_eq!(Some(device_now(store, "d").await), known.with_about(&about));

    let now = written(taught);
    let again = store.update_device(&now, &said(&about), &invocation).await.expect("asked");
    assert_eq!(again, UpdateOutcome::Updated(now.clone()), "done twice, nothing changes");
    let gauge = MetricPatch { kind: Edit::Set(MetricKind::Gauge), ..MetricPatch::default() };
    let patch = DevicePatch { metrics: [(metric, Some(gauge))].into(), ..DevicePatch::default() };
    store.edit_device(now.id(), &patch, at(9), &invocation).await.expect("edited");
    let edited = device_now(store, "d").await;
    about.tags.insert("rack".to_owned(), "1".to_owned());
    let late = store.update_device(&now, &said(&about), &invocation).await.expect("asked");
    assert_eq!(late, UpdateOutcome::ConditionFailed(Some(edited.clone())));
    let taught =
        written(store.update_device(&edited, &said(&about), &invocation).await.expect("asked"));
    assert_eq!(taught.metrics(), edited.metrics());
    let nobody = now.changed(|it| it.id = device("e")).expect("a device");
    let nobody = store.update_device(&nobody, &said(&about), &invocation).await.expect("asked");
    assert_eq!(nobody, UpdateOutcome::ConditionFailed(None));
}

pub(super) async fn a_room_without_a_name_is_named_once(store: &impl Ports) {
    let id = room("attic");
    let asked = async |name: &str| answer!(store.name_room(&id, &label(name)));
    assert_eq!(asked("Attic").await, UpdateOutcome::ConditionFailed(None), "nothing is made");
    let new = Room::new(id.clone(), at(5));
    answer!(store.register_room(&new));
    let named = Room { name: Some(label("Attic")), ..new };
    assert_eq!(asked("Attic").await, UpdateOutcome::Updated(named.clone()));
    assert_eq!(asked("Loft").await, UpdateOutcome::ConditionFailed(Some(named)));
}

fn said(about: &About) -> DeviceUpdate {
    DeviceUpdate { about: Some(about.clone()), ..DeviceUpdate::default() }
}
