//! A person's edits: what is set, what is taken away, what stays.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use domain::{
    AttributeName, AttributeValue, AttributeValues, Device, DevicePatch, DevicePatchError,
    DeviceUpdate, Edit, Exchange, Extent, HomeId, MetricKind, MetricPatch, Place, Role, Room,
    RoomPatch, Stay, Tags, Unit, Verdict,
};
use futures_util::future::join_all;
use table::{Edited, UpdateOutcome};

use super::Ports;
use super::registry::{device_now, registered};
use super::stays::stays_of;
use crate::given::{
    answer, at, device, into_room, label, metric, named, number, patch_of, room, tags, unit,
};

async fn edit(store: &impl Ports, patch: &DevicePatch) -> UpdateOutcome<Edited, DevicePatchError> {
    edit_at(store, patch, 0).await
}

async fn edit_at(
    store: &impl Ports,
    patch: &DevicePatch,
    now: i64,
) -> UpdateOutcome<Edited, DevicePatchError> {
    answer!(store.edit_device(&device("d"), patch, at(now)))
}

async fn edited(store: &impl Ports, patch: &DevicePatch) -> Device {
    match edit(store, patch).await {
        UpdateOutcome::Updated(Edited { device: now, .. }) => {
            assert_eq!(device_now(store, "d").await, now, "what is answered is what is kept");
            now
        }
        refused @ UpdateOutcome::ConditionFailed(_) => panic!("{refused:?}"),
    }
}

fn exchange() -> Exchange {
    Exchange { old: number("812.3"), new: number("0.1") }
}

/// Attributes to be set or removed.
fn attributes(are_set: bool) -> BTreeMap<AttributeName, Option<AttributeValues>> {
    let text = |text| AttributeValue::Text(label(text));
    let values = vec![text("x-1"), AttributeValue::Number(number("1E-130"))];
    let values = AttributeValues::try_from(values).expect("values");
    [("model".parse().expect("a name"), are_set.then_some(values))].into()
}

fn everything() -> DevicePatch {
    DevicePatch {
        name: Edit::Set(label("Smart meter")),
        room: Edit::Set(room("room-b")),
        room_since: None,
        kind: Edit::Set(label("power")),
        tags: Edit::Set(tags(&["meter", "B-route"])),
        attributes: attributes(true),
        metrics: [(
            metric("temperature"),
            Some(MetricPatch {
                unit: Edit::Set(unit("kWh")),
                kind: Edit::Set(MetricKind::Counter),
                modulus: Edit::Set(number("100000")),
                max_w: Edit::Set(number("0.1")),
                tolerance: Edit::Set(number("1E-130")),
                hold: Edit::Keep,
                exchanges: Edit::Set([(at(5), exchange())].into()),
                verdicts: Edit::Set([(at(6), Verdict::Discard)].into()),
                in_room_means: Edit::Set(false),
                hourly_until: Edit::Set(at(7)),
                role: Edit::Set(Role::Storage),
                net: Edit::Set(true),
                cycle: Edit::Set(metric("attr_last_reset")),
            }),
        )]
        .into(),
        behind: Edit::Keep,
        in_room_means: Edit::Set(true),
        restores: false,
    }
}

pub(super) async fn what_is_not_registered_cannot_be_edited(store: &impl Ports) {
    for patch in [everything(), DevicePatch::default()] {
        assert_eq!(edit(store, &patch).await, UpdateOutcome::ConditionFailed(None));
    }
    let patch = RoomPatch { name: Edit::Set(label("Kitchen")), ..RoomPatch::default() };
    let asked = answer!(store.edit_room(&room("room-a"), &patch));
    assert_eq!(asked, UpdateOutcome::ConditionFailed(None));
    assert_eq!(answer!(store.devices()).found, []);
    assert_eq!(answer!(store.rooms()).found, []);
}

pub(super) async fn each_member_is_set_and_taken_away(store: &impl Ports) {
    let before = registered(store, "d").await;
    let power = MetricPatch {
        unit: Edit::Set(unit("W")),
        hold: Edit::Set(TimeDelta::minutes(5)),
        ..MetricPatch::default()
    };
    let of_metric = |settings: &MetricPatch| patch_of("temperature", settings.clone());
    edited(store, &of_metric(&power)).await;
    let now = edited(store, &everything()).await;
    assert_eq!(now.name().cloned(), Some(label("Smart meter")));
    assert_eq!(*now.place(), Place::Chosen(room("room-b")));
    assert_eq!(now.kind().cloned(), Some(label("power")));
    assert_eq!(*now.tags(), tags(&["meter", "B-route"]));
    let set = attributes(true).into_iter().filter_map(|(name, it)| Some((name, it?)));
    assert_eq!(*now.attributes(), set.collect());
    let info = &now.metrics()[&metric("temperature")];
    assert_eq!(info.unit, Some(unit("kWh")));
    assert_eq!(info.modulus, Some(number("100000")));
    assert_eq!(info.max_w, Some(number("0.1")));
    assert_eq!(info.tolerance, Some(number("1E-130")));
    assert_eq!(info.kind, MetricKind::Counter);
    assert_eq!(info.hold, Some(TimeDelta::minutes(5)));
    assert_eq!(info.exchanges, [(at(5), exchange())].into());
    assert_eq!(info.verdicts, [(at(6), Verdict::Discard)].into());
    assert_eq!((info.in_room_means, now.in_room_means()), (Some(false), Some(true)));
    assert_eq!(info.hourly_until, Some(at(7)));
    assert_eq!((info.role, info.is_net), (Some(Role::Storage), true));
    assert_eq!(info.cycle, Some(metric("attr_last_reset")));

    let nothing = MetricPatch {
        kind: Edit::Clear,
        unit: Edit::Clear,
        modulus: Edit::Clear,
        max_w: Edit::Clear,
        tolerance: Edit::Clear,
        hold: Edit::Clear,
        exchanges: Edit::Clear,
        verdicts: Edit::Clear,
        cycle: Edit::Clear,
        in_room_means: Edit::Clear,
        hourly_until: Edit::Clear,
        net: Edit::Clear,
        role: Edit::Clear,
    };
    let nothing = DevicePatch {
        name: Edit::Clear,
        room: Edit::Clear,
        room_since: None,
        kind: Edit::Clear,
        tags: Edit::Clear,
        attributes: attributes(false),
        metrics: [(metric("temperature"), Some(nothing))].into(),
        behind: Edit::Clear,
        in_room_means: Edit::Clear,
        restores: false,
    };
    let fold_settings = now.fold_settings().clone();
    assert_eq!(
        fold_settings.number, 2,
        "a power is folded otherwise than a gauge, and so is a counter"
    );
    let now = edited(store, &nothing).await;
    assert_eq!(now.fold_settings().number, 3);
    let expected = before.changed(|it| {
        it.place = Place::Unknown;
        it.fold_settings = now.fold_settings().clone();
        it.stay = Some(Stay::begun(room("room-b"), at(0)).ended(at(1)));
        it.version = 3;
        // What a person has taken away no sender brings back.
        it.metrics.values_mut().for_each(|info| (info.unit, info.is_described) = (None, true));
    });
    assert_eq!(Ok(now), expected);
}

pub(super) async fn edited_twice_is_edited_once(store: &impl Ports) {
    registered(store, "d").await;
    let once = edited(store, &everything()).await;
    assert_eq!(edited(store, &everything()).await, once);
    let empty = DevicePatch { tags: Edit::Set(Tags::default()), ..DevicePatch::default() };
    assert_eq!(*edited(store, &empty).await.tags(), Tags::default());
    assert_eq!(*edited(store, &empty).await.tags(), Tags::default());
}

pub(super) async fn what_is_not_named_stays(store: &impl Ports) {
    registered(store, "d").await;
    let before = edited(store, &everything()).await;
    let patch = named("Meter");
    let now = edited(store, &patch).await;
    let named = before.changed(|it| (it.name, it.version) = (Some(label("Meter")), 2));
    assert_eq!(named.as_ref(), Ok(&now));

    let settings = MetricPatch { tolerance: Edit::Clear, ..MetricPatch::default() };
    let patch = patch_of("temperature", settings);
    let before = now;
    let now = edited(store, &patch).await;
    let expected = before.changed(|it| {
        it.metrics.values_mut().for_each(|info| info.tolerance = None);
        it.fold_settings = now.fold_settings().clone();
        it.version = 3;
    });
    assert_eq!(Ok(now), expected);
}

pub(super) async fn each_change_of_what_is_folded_has_a_number(store: &impl Ports) {
    registered(store, "d").await;
    let change = |patch: MetricPatch| patch_of("temperature", patch);
    let counter = MetricPatch { kind: Edit::Set(MetricKind::Counter), ..MetricPatch::default() };
    assert_eq!(edited(store, &change(counter)).await.fold_settings().number, 1);
    let verdicts = Edit::Set([(at(6), Verdict::Accept)].into());
    let judged = change(MetricPatch { verdicts, ..MetricPatch::default() });
    let now = edited(store, &judged).await;
    assert_eq!(now.fold_settings().number, 2);
    let extent = Extent { first: at(6), last: at(6) };
    assert_eq!(now.fold_settings().changed_since(1), Some(extent), "of the others nothing changes");
    assert_eq!(now.fold_settings().changed_since(0), Some(Extent::ALL));
    let name = named("Meter");
    assert_eq!(*edited(store, &name).await.fold_settings(), *now.fold_settings());
    assert_eq!(
        *edited(store, &judged).await.fold_settings(),
        *now.fold_settings(),
        "set as it was"
    );
}

pub(super) async fn changes_at_once_have_numbers_of_their_own(store: &impl Ports) {
    registered(store, "d").await;
    let tolerances = ["1", "2", "3"];
    let change = |tolerance: &str| {
        let kind = Edit::Set(MetricKind::Counter);
        let tolerance = Edit::Set(number(tolerance));
        let patch = MetricPatch { kind, tolerance, ..MetricPatch::default() };
        patch_of("temperature", patch)
    };
    let patches = tolerances.map(change);
    join_all(patches.iter().map(|patch| edit(store, patch))).await;
    let now = device_now(store, "d").await;
    assert_eq!(now.fold_settings().number, 3);
    assert_eq!(now.fold_settings().changes.len(), 3);
}

pub(super) async fn settings_of_metrics_are_nested(store: &impl Ports) {
    registered(store, "d").await;
    learn(store, &["cumulative_kwh_p", "cumulative_kwh_n"]).await;
    let set = |modulus: &str| MetricPatch {
        modulus: Edit::Set(number(modulus)),
        ..MetricPatch::default()
    };
    let patch = DevicePatch {
        metrics: [
            (metric("cumulative_kwh_p"), Some(set("100000"))),
            (metric("cumulative_kwh_n"), Some(set("1000"))),
        ]
        .into(),
        ..DevicePatch::default()
    };
    let now = edited(store, &patch).await;
    assert_eq!(now.metrics()[&metric("cumulative_kwh_p")].modulus, Some(number("100000")));
    assert_eq!(now.metrics()[&metric("cumulative_kwh_n")].modulus, Some(number("1000")));
    assert_eq!(now.metrics()[&metric("temperature")].modulus, None);
    assert_eq!(
        now.metrics()[&metric("cumulative_kwh_n")].unit.as_ref().map(Unit::as_str),
        Some("kWh")
    );
}

pub(super) async fn metrics_may_be_called_like_anything(store: &impl Ports) {
    registered(store, "d").await;
    let names: Vec<&str> =
        "count min hour name unit kind metrics modulus size first_seen".split(' ').collect();
    learn(store, &names).await;
    let settings = MetricPatch {
        kind: Edit::Set(MetricKind::Counter),
        unit: Edit::Set(unit("x")),
        tolerance: Edit::Set(number("2")),
        modulus: Edit::Clear,
        ..MetricPatch::default()
    };
    let patch = DevicePatch {
        name: Edit::Set(label("still a name")),
        metrics: names.iter().map(|name| (metric(name), Some(settings.clone()))).collect(),
        ..DevicePatch::default()
    };
    let now = edited(store, &patch).await;
    assert_eq!(now.name().cloned(), Some(label("still a name")));
    assert_eq!(now.first_seen(), at(100));
    for name in names {
        let info = &now.metrics()[&metric(name)];
        assert_eq!(
            (info.unit.as_ref().map(Unit::as_str), info.tolerance.as_ref()),
            (Some("x"), Some(&number("2"))),
            "{name}"
        );
    }
}

pub(super) async fn many_metrics_are_edited_at_once(store: &impl Ports) {
    registered(store, "d").await;
    let names: Vec<String> = (0..12).map(|n| format!("m{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    learn(store, &names).await;
    let everything = everything().metrics[&metric("temperature")].clone();
    let patch = DevicePatch {
        metrics: names.iter().map(|name| (metric(name), everything.clone())).collect(),
        ..DevicePatch::default()
    };
    let now = edited(store, &patch).await;
    for name in names {
        assert_eq!(now.metrics()[&metric(name)].max_w, Some(number("0.1")), "{name}");
    }
}

/// The refusal of an edit of a metric that the device has not.
fn unknown(name: &str) -> UpdateOutcome<Edited, DevicePatchError> {
    UpdateOutcome::ConditionFailed(Some(DevicePatchError::UnknownMetric(metric(name))))
}

pub(super) async fn an_unknown_metric_changes_nothing(store: &impl Ports) {
    let before = registered(store, "d").await;
    let mut patch = everything();
    patch.metrics.insert(metric("humidity"), Some(MetricPatch::default()));
    assert_eq!(edit(store, &patch).await, unknown("humidity"));
    assert_eq!(device_now(store, "d").await, before);
}

pub(super) async fn a_dropped_metric_is_forgotten_until_it_is_learned_again(store: &impl Ports) {
    let before = registered(store, "d").await;
    learn(store, &["co2", "humidity"]).await;
    let mut patch = everything();
    patch.metrics.extend(["co2", "humidity", "never_sent"].map(|name| (metric(name), None)));
    let once = edited(store, &patch).await;
    assert_eq!(
        once.metrics().keys().collect::<Vec<_>>(),
        before.metrics().keys().collect::<Vec<_>>()
    );
    assert_eq!(edited(store, &patch).await, once);
    let settings = MetricPatch { tolerance: Edit::Clear, ..MetricPatch::default() };
    let metrics = [(metric("co2"), Some(settings))].into();
    let set = DevicePatch { metrics, ..DevicePatch::default() };
    assert_eq!(edit(store, &set).await, unknown("co2"));
    learn(store, &["co2"]).await;
    assert!(device_now(store, "d").await.metrics().contains_key(&metric("co2")));
}

pub(super) async fn a_device_and_its_new_room_are_written_together_or_not_at_all(
    store: &impl Ports,
) {
    let new = Room::new(room("room-b"), at(5));
    let patch = everything();
    assert_eq!(edit_at(store, &patch, 5).await, UpdateOutcome::ConditionFailed(None));
    registered(store, "d").await;
    let mut other = patch.clone();
    other.metrics.insert(metric("humidity"), Some(MetricPatch::default()));
    assert_eq!(edit_at(store, &other, 5).await, unknown("humidity"));
    assert_eq!(answer!(store.room(&new.id)), None);

    let UpdateOutcome::Updated(edited) = edit_at(store, &patch, 5).await else { panic!("written") };
    let Edited { device: now, room: registered } = edited;
    assert_eq!((now.place().room(), registered), (Some(&new.id), Some(new.clone())));
    assert_eq!(device_now(store, "d").await, now, "what is answered is what is kept");
    assert_eq!(answer!(store.room(&new.id)), Some(new.clone()));

    // Into another room and back: the room is there.
    let into = |id| into_room(id);
    edit_at(store, &into("room-c"), 7).await;
    let UpdateOutcome::Updated(edited) = edit_at(store, &into("room-b"), 9).await else {
        panic!("written")
    };
    assert_eq!(edited.room, Some(new.clone()));
    assert_eq!(answer!(store.room(&new.id)), Some(new));
    other.name = Edit::Set(label("not this"));
    assert_eq!(edit_at(store, &other, 9).await, unknown("humidity"));
}

/// Of edits of one device at once, each is made of what the one before it left.
pub(super) async fn rooms_chosen_at_once_are_one_after_the_other(store: &impl Ports) {
    registered(store, "d").await;
    let into = |n: i64| {
        let room = Edit::Set(room(&format!("room-{n}")));
        DevicePatch { room, ..DevicePatch::default() }
    };
    let patches: Vec<_> = (0..3).map(into).collect();
    let edits = patches.iter().map(|patch| edit_at(store, patch, 5));
    join_all(edits).await;
    assert_eq!(device_now(store, "d").await.version(), 3);
    let mut stays = stays_of(store, "d").await;
    let open = stays.pop().expect("three");
    assert_eq!(device_now(store, "d").await.stay().cloned(), Some(open.clone()));
    assert_eq!((open.since, open.until), (at(7), None));
    let spans: Vec<_> = stays.iter().map(|stay| (stay.since, stay.until)).collect();
    assert_eq!(spans, [(at(5), Some(at(6))), (at(6), Some(at(7)))]);
    assert_eq!(answer!(store.rooms()).found.len(), 3);
}

/// Below each member: an edit of it, and the room as it is then.
pub(super) async fn each_member_of_a_room_is_set_and_taken_away(store: &impl Ports) {
    let plain = Room::new(room("room-a"), at(0));
    answer!(store.register_room(&plain));
    let home: HomeId = "home-a".parse().expect("an id");
    let named = Room { name: Some(label("Kitchen")), ..plain.clone() };
    let housed = Room { home: Some(home.clone()), ..named.clone() };
    let said = |outside| Room { outside, ..named.clone() };

    let name = |name| RoomPatch { name, ..RoomPatch::default() };
    let in_home = |home| RoomPatch { home, ..RoomPatch::default() };
    let outside = |outside| RoomPatch { outside, ..RoomPatch::default() };
    for (patch, expected) in [
        (name(Edit::Set(label("Kitchen"))), &named),
        (name(Edit::Set(label("Kitchen"))), &named),
        (name(Edit::Keep), &named),
        (name(Edit::Clear), &plain),
        (name(Edit::Clear), &plain),
        (name(Edit::Set(label("Kitchen"))), &named),
        (in_home(Edit::Set(home)), &housed),
        (in_home(Edit::Keep), &housed),
        (in_home(Edit::Clear), &named),
        (in_home(Edit::Clear), &named),
        (outside(Edit::Set(true)), &said(Some(true))),
        (outside(Edit::Keep), &said(Some(true))),
        (outside(Edit::Set(false)), &said(Some(false))),
        (outside(Edit::Clear), &named),
    ] {
        let asked = answer!(store.edit_room(&plain.id, &patch));
        assert_eq!(asked, UpdateOutcome::Updated(expected.clone()), "{patch:?}");
        assert_eq!(answer!(store.room(&plain.id)).as_ref(), Some(expected), "{patch:?}");
        assert_eq!(answer!(store.rooms()).found, std::slice::from_ref(expected), "{patch:?}");
    }
}

pub(super) async fn nothing_edited_is_nothing_changed(store: &impl Ports) {
    let before = registered(store, "d").await;
    assert_eq!(edited(store, &DevicePatch::default()).await, before);
}

async fn learn(store: &impl Ports, names: &[&str]) {
    let metrics: BTreeSet<_> = names.iter().map(|name| metric(name)).collect();
    let learned = DeviceUpdate { metrics, ..DeviceUpdate::default() };
    answer!(store.update_device(&device_now(store, "d").await, &learned));
}
