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
    always, annotation, answer, at, device, device_of, into_room, invocation, label, metric, named,
    put_first, reading, reading_in, room, stored_quarter,
};

/// A deletion that began.
async fn begun(store: &impl Ports, id: &str, millis: i64) -> Option<Deletion> {
    match answer!(store.begin_deletion(&device(id), at(millis))) {
        BegunDeletion::Deletion(deletion) => Some(deletion),
        BegunDeletion::NoDevice => None,
        refused @ BegunDeletion::Meter(_) => panic!("{refused:?}"),
    }
}

/// A deletion that began and ended.
async fn ended(store: &impl Ports, id: &str) -> Deletion {
    let deletion = begun(store, id, 5).await.expect("a device");
    assert!(answer!(store.end_deletion(&device(id), &deletion, at(9))));
    answer!(store.deletion(&device(id))).expect("a tombstone")
}

pub(super) async fn a_deleted_device_is_in_no_list_and_nothing_writes_it(store: &impl Ports) {
    let before = registered(store, "d").await;
    registered(store, "other").await;
    assert_eq!(begun(store, "nobody", 5).await, None);
    let deletion = begun(store, "d", 5).await;
    assert_eq!(deletion, Some(Deletion::begin(at(5), 0)));
    assert_eq!(begun(store, "d", 7).await, deletion, "the first mark stays");

    let id = device("d");
    assert_eq!(answer!(store.device(&id)), None);
    assert_eq!(answer!(store.deletion(&id)), deletion);
    assert_eq!(answer!(store.deletion(&device("other"))), None);
    for listing in [
        answer!(store.devices()),
        answer!(store.all_devices()),
        answer!(store.find_devices(&[id.clone(), device("other")])),
    ] {
        let found: Vec<_> = listing.found.iter().map(|it| it.id().as_str()).collect();
        assert_eq!((found, listing.unreadable.len()), (vec!["other"], 0));
        let deleted: Vec<_> = listing.deleted.iter().map(|it| (&it.id, it.deletion)).collect();
        assert_eq!(deleted, [(&id, deletion.expect("it began"))]);
    }

    let registration = answer!(store.register_device(&before));
    assert_eq!(registration, Registration::Deleted(deletion.expect("it began")));
    let name = named("x");
    let into = into_room("attic");
    for patch in [&name, &into] {
        let edited = answer!(store.edit_device(&id, patch, at(9)));
        assert_eq!(edited, UpdateOutcome::ConditionFailed(None));
    }
    assert_eq!(answer!(store.room(&room("attic"))), None);
    let metrics = [metric("humidity")].into();
    let learned = DeviceUpdate { metrics, ..DeviceUpdate::default() };
    let updated = answer!(store.update_device(&before, &learned));
    assert_eq!(updated, UpdateOutcome::ConditionFailed(None));
    let stay = domain::Stay::begun(room("room-a"), at(0));
    assert_eq!(answer!(store.begin_stay(&before, &stay)), UpdateOutcome::ConditionFailed(None));
    let introduced = answer!(store.introduce_room(&id, &room("attic")));
    assert_eq!(introduced, UpdateOutcome::ConditionFailed(None));
    assert_eq!(answer!(store.deletion(&id)), deletion);
}

pub(super) async fn a_deletion_ends_only_where_nothing_was_found_since(store: &impl Ports) {
    registered(store, "d").await;
    let (id, known) = (device("d"), begun(store, "d", 5).await.expect("a device"));
    assert!(!known.may_end(at(5), DELETION_QUIET));
    assert!(known.may_end(at(5).saturating_add(DELETION_QUIET), DELETION_QUIET));
    let end = async |known: &Deletion| answer!(store.end_deletion(&id, known, at(20)));
    let found = answer!(store.note_found(&id, at(8)));
    assert_eq!(found, Some(Deletion { found: at(8), ..known }));
    assert!(!end(&known).await, "something was found since");
    assert!(end(&found.expect("it is under way")).await);
    let ended = Deletion { found: at(8), ended: Some(at(20)), ..known };
    assert_eq!(answer!(store.deletion(&id)), Some(ended));
    assert_eq!(answer!(store.note_found(&id, at(21))), None);
    assert!(!end(&ended).await, "it ended once");
    assert_eq!(begun(store, "d", 30).await, Some(ended), "a tombstone is not deleted again");
    assert_eq!(answer!(store.note_found(&device("nobody"), at(1))), None);
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
    answer!(store.edit_device(&device("d"), &counter, at(1)));
    let deletion = ended(store, "d").await;
    assert_eq!((deletion.ended, deletion.settings), (Some(at(9)), 1));
    let registration = answer!(store.register_device(&first));
    let now = device_now(store, "d").await;
    assert_eq!(registration, Registration::Exists(Box::new(now.clone())));
    assert_eq!(now.fold_settings().number, 2, "it counts on");
    assert_eq!(
        now.fold_settings().changed_since(1).map(|it| it.first),
        Some(domain::Timestamp::MAX)
    );
    assert_eq!((now.metrics(), now.version()), (first.metrics(), first.version()));
    assert_eq!(answer!(store.deletion(&device("d"))), None);
    assert_eq!(answer!(store.register_device(&first)), Registration::Exists(Box::new(now)));
}

pub(super) async fn all_that_belongs_to_a_device_is_found_and_removed(store: &impl Ports) {
    for (place, id) in [(0, "d"), (1, "d.other")] {
        registered(store, id).await;
        for minute in [0, 2] {
            let note = annotation(minute + place, id);
            answer!(store.put_annotation(&note));
        }
        let readings: Vec<_> = (0..7).map(|n| reading_in(id, n, "room-a")).collect();
        store.put_readings(&readings, None, &invocation()).await;
        let quarter = QuarterHour::of(at(0));
        let rollup = Rollup::fold(&readings, &FoldRules::default());
        put_first(store, &stored_quarter(&device(id), quarter, rollup)).await;
        let refold = Refold { settings: 2, under_way: None };
        answer!(store.set_refold(&device(id), &refold));
        for (n, into) in [(10, "room-a"), (20, "room-b")] {
            let patch = into_room(into);
            answer!(store.edit_device(&device(id), &patch, at(n)));
        }
    }
    let id = device("d");
    let found = async |limit: usize| answer!(store.belongings(&id, limit));
    let all = found(100).await;
    assert_eq!((all.found.len(), all.has_more), (13, false), "{all:?}");
    assert_eq!(found(13).await, all);
    let most = found(12).await;
    assert_eq!((most.found.len(), most.has_more), (12, true));
    let some = found(3).await;
    assert_eq!((some.found.len(), some.has_more), (3, true));
    assert!(some.found.iter().all(|it| it.0[0].sk.starts_with(keys::READING_PREFIX)));

    let others = answer!(store.belongings(&device("d.other"), 100));
    for _ in 0..2 {
        let removed = store.remove_belongings(&all.found, &invocation()).await;
        assert!(removed.cause.is_none() && removed.not_stored.is_empty(), "{removed:?}");
        assert_eq!(found(100).await.found, []);
    }
    let stays = StayQuery { range: always(), after: None, limit: 10 };
    for (of, expected) in [("room-a", 1), ("room-b", 1)] {
        let in_room = answer!(store.stays_in(&room(of), &stays)).items;
        assert_eq!(in_room.len(), expected, "the other device's");
        assert!(in_room.iter().all(|it| it.device == device("d.other")));
    }
    assert_eq!(answer!(store.refold(&id)), Refold::default());
    assert_eq!(answer!(store.belongings(&device("d.other"), 100)), others);
    let query = AnnotationQuery { range: always(), about: None, after: None, limit: 10 };
    let left = answer!(store.annotations(&query)).items;
    assert_eq!(left, [annotation(1, "d.other"), annotation(3, "d.other")]);
    let nothing = store.remove_belongings(&[], &invocation()).await;
    assert!(nothing.cause.is_none());
}

pub(super) async fn of_a_stay_both_sides_are_removed_together(store: &impl Ports) {
    registered(store, "d").await;
    let patch = into_room("room-a");
    answer!(store.edit_device(&device("d"), &patch, at(10)));
    let found = answer!(store.belongings(&device("d"), 10)).found;
    let [Belonging(keys)] = &found[..] else { panic!("{found:?}") };
    let partitions: Vec<_> = keys.iter().map(|ItemKey { pk, .. }| pk.as_str()).collect();
    assert_eq!(partitions, ["STAYS_IN#room-a", "STAYS_OF#d"]);
}

pub(super) async fn a_room_is_removed_and_put_back(store: &impl Ports) {
    let new = domain::Room::new(room("room-a"), at(0));
    answer!(store.register_room(&new));
    let now = async || answer!(store.room(&new.id));
    for _ in 0..2 {
        answer!(store.remove_room(&new.id));
        assert_eq!(now().await, None);
    }
    answer!(store.put_back_room(&new));
    assert_eq!(now().await, Some(new.clone()));
    let named = domain::Room { name: Some(label("Kitchen")), ..new.clone() };
    answer!(store.put_back_room(&named));
    assert_eq!(now().await, Some(new.clone()), "what is registered stays");
}

pub(super) async fn a_room_leaves_only_the_home_that_is_named(store: &impl Ports) {
    let new = domain::Room::new(room("room-a"), at(0));
    answer!(store.register_room(&new));
    let home = |id: &str| id.parse::<HomeId>().expect("an id");
    let patch = RoomPatch { home: Edit::Set(home("h")), ..RoomPatch::default() };
    answer!(store.edit_room(&new.id, &patch));
    let leave = async |id: &str| answer!(store.leave_home(&new.id, &home(id)));
    assert!(!leave("other").await);
    let now = answer!(store.room(&new.id)).expect("a room");
    assert_eq!(now.home, Some(home("h")));
    assert!(leave("h").await);
    assert!(!leave("h").await, "it left once");
    assert_eq!(answer!(store.room(&new.id)), Some(new.clone()));
    let nowhere = store.leave_home(&room("nowhere"), &home("h"), &invocation()).await;
    assert!(!nowhere.expect("asked"));
    assert_eq!(answer!(store.room(&room("nowhere"))), None);
}

pub(super) async fn a_deleted_device_that_has_readings_again_keeps_them(store: &impl Ports) {
    registered(store, "d").await;
    ended(store, "d").await;
    let new = reading("d", 60_000, &[("co2", "600")]);
    store.put_readings(std::slice::from_ref(&new), None, &invocation()).await;
    let observed = device_of([&new]);
    answer!(store.register_device(&observed));
    let now = device_now(store, "d").await;
    assert_eq!(now.first_seen(), at(0).saturating_add(TimeDelta::minutes(1)));
    assert_eq!(answer!(store.belongings(&device("d"), 10)).found.len(), 1);
}
