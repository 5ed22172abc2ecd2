//! Deletion: marks, what belongs to a device, rooms and homes.

use chrono::TimeDelta;
use domain::{
    DELETION_QUIET, Deletion, DevicePatch, DeviceUpdate, Edit, FoldRules, HomeId, QuarterHour,
};
use domain::{Rollup, RoomPatch};
use table::{
    AnnotationQuery, BegunDeletion, Belonging, ItemKey, Refold, Registration, StayQuery,
    UpdateOutcome, keys,
};

use super::Ports;
use super::registry::{device_now, registered};
use crate::given::{
    always, annotation, at, device, device_of, invocation, label, metric, put_first, reading,
    reading_in, room, stored_quarter,
};

/// A deletion that began.
async fn begun(store: &impl Ports, id: &str, millis: i64) -> Option<Deletion> {
    match store.begin_deletion(&device(id), at(millis), &invocation()).await.expect("asked") {
        BegunDeletion::Deletion(deletion) => Some(deletion),
        BegunDeletion::NoDevice => None,
        refused @ BegunDeletion::Meter(_) => panic!("{refused:?}"),
    }
}

/// A deletion that began and ended.
async fn ended(store: &impl Ports, id: &str) -> Deletion {
    let deletion = begun(store, id, 5).await.expect("a device");
    let done = store.end_deletion(&device(id), &deletion, at(9), &invocation()).await;
    assert!(done.expect("asked"));
    store.deletion(&device(id), &invocation()).await.expect("read").expect("a tombstone")
}

pub(super) async fn a_deleted_device_is_in_no_list_and_nothing_writes_it(store: &impl Ports) {
    let before = registered(store, "d").await;
    registered(store, "other").await;
    assert_eq!(begun(store, "nobody", 5).await, None);
    let deletion = begun(store, "d", 5).await;
    assert_eq!(deletion, Some(Deletion::begin(at(5), 0)));
    assert_eq!(begun(store, "d", 7).await, deletion, "the first mark stays");

    let id = device("d");
    assert_eq!(store.device(&id, &invocation()).await.expect("read"), None);
    assert_eq!(store.deletion(&id, &invocation()).await.expect("read"), deletion);
    assert_eq!(store.deletion(&device("other"), &invocation()).await.expect("read"), None);
    for listing in [
        store.devices(&invocation()).await.expect("read"),
        store.all_devices(&invocation()).await.expect("read"),
        store.find_devices(&[id.clone(), device("other")], &invocation()).await.expect("read"),
    ] {
        let found: Vec<_> = listing.found.iter().map(|it| it.id().as_str()).collect();
        assert_eq!((found, listing.unreadable.len()), (vec!["other"], 0));
        let deleted: Vec<_> = listing.deleted.iter().map(|it| (&it.id, it.deletion)).collect();
        assert_eq!(deleted, [(&id, deletion.expect("it began"))]);
    }

    let registration = store.register_device(&before, &invocation()).await.expect("asked");
    assert_eq!(registration, Registration::Deleted(deletion.expect("it began")));
    let name = DevicePatch { name: Edit::Set(label("x")), ..DevicePatch::default() };
    let into = DevicePatch { room: Edit::Set(room("attic")), ..DevicePatch::default() };
    for patch in [&name, &into] {
        let edited = store.edit_device(&id, patch, at(9), &invocation()).await.expect("asked");
        assert_eq!(edited, UpdateOutcome::ConditionFailed(None));
    }
    assert_eq!(store.room(&room("attic"), &invocation()).await.expect("read"), None);
    let metrics = [metric("humidity")].into();
    let learned = DeviceUpdate { metrics, ..DeviceUpdate::default() };
    let updated = store.update_device(&before, &learned, &invocation()).await.expect("asked");
    assert_eq!(updated, UpdateOutcome::ConditionFailed(None));
    let stay = domain::Stay::begun(room("room-a"), at(0));
    let stayed = store.begin_stay(&before, &stay, &invocation()).await.expect("asked");
    assert_eq!(stayed, UpdateOutcome::ConditionFailed(None));
    let introduced = store.introduce_room(&id, &room("attic"), &invocation()).await;
    assert_eq!(introduced.expect("asked"), UpdateOutcome::ConditionFailed(None));
    assert_eq!(store.deletion(&id, &invocation()).await.expect("read"), deletion);
}

pub(super) async fn a_deletion_ends_only_where_nothing_was_found_since(store: &impl Ports) {
    registered(store, "d").await;
    let (id, known) = (device("d"), begun(store, "d", 5).await.expect("a device"));
    assert!(!known.may_end(at(5), DELETION_QUIET));
    assert!(known.may_end(at(5).saturating_add(DELETION_QUIET), DELETION_QUIET));
    let end = async |known: &Deletion| {
        store.end_deletion(&id, known, at(20), &invocation()).await.expect("asked")
    };
    let found = store.note_found(&id, at(8), &invocation()).await.expect("asked");
    assert_eq!(found, Some(Deletion { found: at(8), ..known }));
    assert!(!end(&known).await, "something was found since");
    assert!(end(&found.expect("it is under way")).await);
    let ended = Deletion { found: at(8), ended: Some(at(20)), ..known };
    assert_eq!(store.deletion(&id, &invocation()).await.expect("read"), Some(ended));
    assert_eq!(store.note_found(&id, at(21), &invocation()).await.expect("asked"), None);
    assert!(!end(&ended).await, "it ended once");
    assert_eq!(begun(store, "d", 30).await, Some(ended), "a tombstone is not deleted again");
    assert_eq!(
        store.note_found(&device("nobody"), at(1), &invocation()).await.expect("asked"),
        None
    );
}

pub(super) async fn a_tombstone_gives_way_to_a_new_device(store: &impl Ports) {
    let first = registered(store, "d").await;
    let counter = DevicePatch {
        metrics: [(
            metric("temperature"),
            Some(domain::MetricPatch {
                kind: Edit::Set(domain::MetricKind::Counter),
                ..domain::MetricPatch::default()
            }),
        )]
        .into(),
        ..DevicePatch::default()
    };
    store.edit_device(&device("d"), &counter, at(1), &invocation()).await.expect("asked");
    let deletion = ended(store, "d").await;
    assert_eq!((deletion.ended, deletion.settings), (Some(at(9)), 1));
    let registration = store.register_device(&first, &invocation()).await.expect("asked");
    let now = device_now(store, "d").await;
    assert_eq!(registration, Registration::Exists(Box::new(now.clone())));
    assert_eq!(now.fold_settings().number, 2, "it counts on");
    assert_eq!(
        now.fold_settings().changed_since(1).map(|it| it.first),
        Some(domain::Timestamp::MAX)
    );
    assert_eq!((now.metrics(), now.version()), (first.metrics(), first.version()));
    assert_eq!(store.deletion(&device("d"), &invocation()).await.expect("read"), None);
    let again = store.register_device(&first, &invocation()).await.expect("asked");
    assert_eq!(again, Registration::Exists(Box::new(now)));
}

pub(super) async fn all_that_belongs_to_a_device_is_found_and_removed(store: &impl Ports) {
    for (place, id) in [(0, "d"), (1, "d.other")] {
        registered(store, id).await;
        for minute in [0, 2] {
            let note = annotation(minute + place, id);
            store.put_annotation(&note, &invocation()).await.expect("written");
        }
        let readings: Vec<_> = (0..7).map(|n| reading_in(id, n, "room-a")).collect();
        store.put_readings(&readings, None, &invocation()).await;
        let quarter = QuarterHour::of(at(0));
        let rollup = Rollup::fold(&readings, &FoldRules::default());
        put_first(store, &stored_quarter(&device(id), quarter, rollup)).await;
        let refold = Refold { settings: 2, under_way: None };
        store.set_refold(&device(id), &refold, &invocation()).await.expect("written");
        for (n, into) in [(10, "room-a"), (20, "room-b")] {
            let patch = DevicePatch { room: Edit::Set(room(into)), ..DevicePatch::default() };
            store.edit_device(&device(id), &patch, at(n), &invocation()).await.expect("asked");
        }
    }
    let id = device("d");
    let found =
        async |limit: usize| store.belongings(&id, limit, &invocation()).await.expect("read");
    let all = found(100).await;
    assert_eq!((all.found.len(), all.has_more), (13, false), "{all:?}");
    assert_eq!(found(13).await, all);
    let most = found(12).await;
    assert_eq!((most.found.len(), most.has_more), (12, true));
    let some = found(3).await;
    assert_eq!((some.found.len(), some.has_more), (3, true));
    assert!(some.found.iter().all(|it| it.0[0].sk.starts_with(keys::READING_PREFIX)));

    let others = store.belongings(&device("d.other"), 100, &invocation()).await.expect("read");
    for _ in 0..2 {
        let removed = store.remove_belongings(&all.found, &invocation()).await;
        assert!(removed.cause.is_none() && removed.not_stored.is_empty(), "{removed:?}");
        assert_eq!(found(100).await.found, []);
    }
    let stays = StayQuery { range: always(), after: None, limit: 10 };
    for (of, expected) in [("room-a", 1), ("room-b", 1)] {
        let in_room = store.stays_in(&room(of), &stays, &invocation()).await.expect("read").items;
        assert_eq!(in_room.len(), expected, "the other device's");
        assert!(in_room.iter().all(|it| it.device == device("d.other")));
    }
    assert_eq!(store.refold(&id, &invocation()).await.expect("read"), Refold::default());
    let now = store.belongings(&device("d.other"), 100, &invocation()).await.expect("read");
    assert_eq!(now, others);
    let query = AnnotationQuery { range: always(), about: None, after: None, limit: 10 };
    let left = store.annotations(&query, &invocation()).await.expect("read").items;
    assert_eq!(left, [annotation(1, "d.other"), annotation(3, "d.other")]);
    let nothing = store.remove_belongings(&[], &invocation()).await;
    assert!(nothing.cause.is_none());
}

pub(super) async fn of_a_stay_both_sides_are_removed_together(store: &impl Ports) {
    registered(store, "d").await;
    let patch = DevicePatch { room: Edit::Set(room("room-a")), ..DevicePatch::default() };
    store.edit_device(&device("d"), &patch, at(10), &invocation()).await.expect("asked");
    let found = store.belongings(&device("d"), 10, &invocation()).await.expect("read").found;
    let [Belonging(keys)] = &found[..] else { panic!("{found:?}") };
    let partitions: Vec<_> = keys.iter().map(|ItemKey { pk, .. }| pk.as_str()).collect();
    assert_eq!(partitions, ["STAYS_IN#room-a", "STAYS_OF#d"]);
}

pub(super) async fn a_room_is_removed_and_put_back(store: &impl Ports) {
    let new = domain::Room::new(room("room-a"), at(0));
    store.register_room(&new, &invocation()).await.expect("written");
    let now = async || store.room(&new.id, &invocation()).await.expect("read");
    for _ in 0..2 {
        store.remove_room(&new.id, &invocation()).await.expect("asked");
        assert_eq!(now().await, None);
    }
    store.put_back_room(&new, &invocation()).await.expect("asked");
    assert_eq!(now().await, Some(new.clone()));
    let named = domain::Room { name: Some(label("Kitchen")), ..new.clone() };
    store.put_back_room(&named, &invocation()).await.expect("asked");
    assert_eq!(now().await, Some(new.clone()), "what is registered stays");
}

pub(super) async fn a_room_leaves_only_the_home_that_is_named(store: &impl Ports) {
    let new = domain::Room::new(room("room-a"), at(0));
    store.register_room(&new, &invocation()).await.expect("written");
    let home = |id: &str| id.parse::<HomeId>().expect("an id");
    let patch = RoomPatch { home: Edit::Set(home("h")), ..RoomPatch::default() };
    store.edit_room(&new.id, &patch, &invocation()).await.expect("asked");
    let leave =
        async |id: &str| store.leave_home(&new.id, &home(id), &invocation()).await.expect("asked");
    assert!(!leave("other").await);
    let now = store.room(&new.id, &invocation()).await.expect("read").expect("a room");
    assert_eq!(now.home, Some(home("h")));
    assert!(leave("h").await);
    assert!(!leave("h").await, "it left once");
    assert_eq!(store.room(&new.id, &invocation()).await.expect("read"), Some(new.clone()));
    let nowhere = store.leave_home(&room("nowhere"), &home("h"), &invocation()).await;
    assert!(!nowhere.expect("asked"));
    assert_eq!(store.room(&room("nowhere"), &invocation()).await.expect("read"), None);
}

pub(super) async fn a_deleted_device_that_has_readings_again_keeps_them(store: &impl Ports) {
    registered(store, "d").await;
    ended(store, "d").await;
    let new = reading("d", 60_000, &[("co2", "600")]);
    store.put_readings(std::slice::from_ref(&new), None, &invocation()).await;
    let observed = device_of([&new]);
    store.register_device(&observed, &invocation()).await.expect("asked");
    let now = device_now(store, "d").await;
    assert_eq!(now.first_seen(), at(0).saturating_add(TimeDelta::minutes(1)));
    let left = store.belongings(&device("d"), 10, &invocation()).await.expect("read");
    assert_eq!(left.found.len(), 1);
}
