//! Stays: each is kept with its device and in its room, and history is only continued.

use domain::{
    DevicePatch, DevicePatchError, DeviceStay, DeviceUpdate, Edit, Order, Place, Stay, TimeRange,
};
use table::{Edited, StayKey, StayQuery, UpdateOutcome};

use super::Ports;
use super::registry::{device_now, registered};
use crate::given::{always, answer, at, device, into_room, range, reading_in, room};
use crate::stored::{first_page, put};

fn query(range: TimeRange) -> StayQuery {
    StayQuery { range, after: None, limit: 100 }
}

pub(super) async fn stays_of(store: &impl Ports, id: &str) -> Vec<Stay> {
    let page = answer!(store.stays_of(&device(id), &query(always())));
    assert!(page.items.iter().all(|of| of.device == device(id)));
    page.items.into_iter().map(|of| of.stay).collect()
}

async fn stays_in(store: &impl Ports, id: &str) -> Vec<DeviceStay> {
    let page = answer!(store.stays_in(&room(id), &query(always())));
    assert!(page.items.iter().all(|of| of.stay.room == room(id)));
    page.items
}

fn stay(id: &str, since: i64, until: Option<i64>) -> Stay {
    Stay { room: room(id), since: at(since), until: until.map(at) }
}

fn of(id: &str, stay: Stay) -> DeviceStay {
    DeviceStay { device: device(id), stay }
}

fn into(id: &str) -> DevicePatch {
    into_room(id)
}

async fn edit(
    store: &impl Ports,
    id: &str,
    patch: &DevicePatch,
    now: i64,
) -> UpdateOutcome<Edited, DevicePatchError> {
    answer!(store.edit_device(&device(id), patch, at(now)))
}

async fn edited(store: &impl Ports, id: &str, patch: &DevicePatch, now: i64) {
    let outcome = edit(store, id, patch, now).await;
    assert!(matches!(outcome, UpdateOutcome::Updated(_)), "{outcome:?}");
}

pub(super) async fn a_chosen_room_is_a_stay_of_the_device_and_in_the_room(store: &impl Ports) {
    registered(store, "d").await;
    registered(store, "e").await;
    assert_eq!(stays_of(store, "d").await, [], "a room that a reading names is none yet");
    for _ in 0..2 {
        edited(store, "d", &into("room-a"), 200).await;
        edited(store, "e", &into("room-a"), 300).await;
    }
    let (d, e) = (stay("room-a", 200, None), stay("room-a", 300, None));
    assert_eq!(stays_of(store, "d").await, std::slice::from_ref(&d));
    assert_eq!(device_now(store, "d").await.stay().cloned(), Some(d.clone()));
    assert_eq!(stays_in(store, "room-a").await, [of("d", d), of("e", e.clone())]);

    edited(store, "d", &into("room-b"), 400).await;
    let ended = stay("room-a", 200, Some(400));
    assert_eq!(stays_of(store, "d").await, [ended.clone(), stay("room-b", 400, None)]);
    assert_eq!(stays_in(store, "room-a").await, [of("d", ended), of("e", e)]);
    assert_eq!(stays_in(store, "room-b").await, [of("d", stay("room-b", 400, None))]);

    let nowhere = DevicePatch { room: Edit::Clear, ..DevicePatch::default() };
    for now in [500, 600] {
        edited(store, "d", &nowhere, now).await;
    }
    let last = stay("room-b", 400, Some(500));
    assert_eq!(device_now(store, "d").await.stay().cloned(), Some(last.clone()));
    assert_eq!(stays_in(store, "room-b").await, [of("d", last)]);
}

pub(super) async fn a_stay_begins_when_the_patch_says(store: &impl Ports) {
    registered(store, "d").await;
    let since = |id, millis| DevicePatch { room_since: Some(at(millis)), ..into(id) };
    edited(store, "d", &since("room-a", 200), 900).await;
    edited(store, "d", &since("room-a", 200), 900).await;
    let refused = async |patch: &DevicePatch| match edit(store, "d", patch, 900).await {
        UpdateOutcome::ConditionFailed(Some(why)) => why,
        other => panic!("{other:?}"),
    };
    let early = DevicePatchError::BeforeStay(room("room-a"), at(200), at(201));
    assert_eq!(refused(&since("room-b", 200)).await, early);
    let out = DevicePatch { room: Edit::Clear, ..since("room-b", 100) };
    assert_eq!(refused(&out).await, early);
    let is_there = DevicePatchError::InRoom(room("room-a"), at(200));
    assert_eq!(refused(&since("room-a", 300)).await, is_there);
    edited(store, "d", &since("room-b", 201), 900).await;
    edited(store, "d", &DevicePatch { room_since: Some(at(300)), ..out }, 900).await;
    let history = [stay("room-a", 200, Some(201)), stay("room-b", 201, Some(300))];
    assert_eq!(stays_of(store, "d").await, history);
    let early = DevicePatchError::BeforeStay(room("room-b"), at(201), at(300));
    assert_eq!(refused(&since("room-a", 299)).await, early);
    edited(store, "d", &since("room-a", 300), 900).await;
    assert_eq!(stays_of(store, "d").await[2], stay("room-a", 300, None));
}

pub(super) async fn a_stay_that_was_learned_needs_the_place_and_the_version_that_were_read(
    store: &impl Ports,
) {
    let known = registered(store, "d").await;
    let begin = async |known: &domain::Device, stay: &Stay| answer!(store.begin_stay(known, stay));
    let first = stay("room-a", 100, None);
    let UpdateOutcome::Updated(now) = begin(&known, &first).await else { panic!("written") };
    assert_eq!((&now, now.version()), (&known.with_stay(Some(first.clone())), 1));
    assert_eq!(device_now(store, "d").await, now);
    let lost = UpdateOutcome::ConditionFailed(Some(now.clone()));
    assert_eq!(begin(&known, &stay("room-a", 200, None)).await, lost, "another version");
    assert_eq!(stays_of(store, "d").await, std::slice::from_ref(&first));

    let moved = DeviceUpdate { room: Some((at(300), room("room-b"))), ..DeviceUpdate::default() };
    let updated = answer!(store.update_device(&now, &moved));
    let UpdateOutcome::Updated(there) = updated else { panic!("written") };
    assert_eq!(*there.place(), Place::Learned(room("room-b"), at(300)));
    let lost = UpdateOutcome::ConditionFailed(Some(there.clone()));
    assert_eq!(begin(&now, &stay("room-a", 400, None)).await, lost, "another place");
    let second = stay("room-b", 300, None);
    assert!(matches!(begin(&there, &second).await, UpdateOutcome::Updated(_)));
    let history = [first.ended(at(300)), second];
    assert_eq!(stays_of(store, "d").await, history);
    assert_eq!(stays_in(store, "room-a").await, [of("d", history[0].clone())]);
    let nobody = there.changed(|it| it.id = device("e")).expect("a device");
    let outcome = begin(&nobody, &history[1]).await;
    assert_eq!(outcome, UpdateOutcome::ConditionFailed(None));
    assert_eq!(stays_of(store, "e").await, []);
}

/// A device in rooms r0, r1 ..., for 100 ms each.
async fn with_history(store: &impl Ports, id: &str, stays: i64) {
    registered(store, id).await;
    for n in 0..stays {
        let patch = DevicePatch { room_since: Some(at(n * 100)), ..into(&format!("r{}", n % 3)) };
        edited(store, id, &patch, 10_000).await;
    }
}

pub(super) async fn stays_that_overlap_a_range_are_found(store: &impl Ports) {
    with_history(store, "d", 4).await;
    let found = async |from, to| -> Vec<i64> {
        let query = query(range(from, to));
        let page = answer!(store.stays_of(&device("d"), &query));
        assert!(!page.has_more);
        let since = page.items.iter().map(|of| of.stay.since.since(at(0)).num_milliseconds());
        since.collect()
    };
    assert_eq!(found(0, 1_000).await, [0, 100, 200, 300]);
    assert_eq!(found(100, 101).await, [100], "a stay ends before its last timestamp");
    assert_eq!(found(99, 100).await, [0]);
    assert_eq!(found(99, 101).await, [0, 100]);
    assert_eq!(found(900, 901).await, [300], "one that lasts has no end");
    assert_eq!(found(-100, 0).await, [0_i64; 0]);
}

pub(super) async fn a_walk_over_stays_meets_each_once(store: &impl Ports) {
    with_history(store, "d", 7).await;
    with_history(store, "e", 7).await;
    let room = room("r0");
    for limit in [1, 2, 5, 6, 7] {
        let mut query = StayQuery { limit, ..query(always()) };
        let mut walked = Vec::new();
        loop {
            let page = answer!(store.stays_in(&room, &query));
            assert!(page.items.len() <= limit);
            query.after = page.items.last().map(StayKey::of);
            walked.extend(page.items.iter().map(StayKey::of));
            if !page.has_more {
                break;
            }
        }
        let expected = [0, 300, 600].into_iter().flat_map(|since| {
            ["d", "e"].map(|id| StayKey { since: at(since), device: device(id) })
        });
        assert_eq!(walked, expected.collect::<Vec<_>>(), "limit {limit}");
    }
    let mut query = StayQuery { limit: 4, ..query(always()) };
    let first = answer!(store.stays_of(&device("d"), &query));
    assert!(first.has_more);
    query.after = first.items.last().map(StayKey::of);
    let rest = answer!(store.stays_of(&device("d"), &query));
    assert_eq!((rest.items.len(), rest.has_more), (3, false));
}

pub(super) async fn a_device_that_is_named_is_in_a_rooms_ranges_though_it_has_moved(
    store: &impl Ports,
) {
    registered(store, "d").await;
    edited(store, "d", &into("room-a"), 0).await;
    let readings = [reading_in("d", 10, "room-a"), reading_in("d", 20, "room-b")];
    put(store, &readings).await;
    edited(store, "d", &into("room-b"), 15).await;
    let query = first_page(range(0, 100), Order::Ascending, 10);
    let page = answer!(store.room_readings(&room("room-a"), &[device("d")], &query));
    assert_eq!(page.items, readings[..1]);
}

pub(super) async fn stays_are_restored_for_the_device_that_was_read(store: &impl Ports) {
    registered(store, "d").await;
    let known = device_now(store, "d").await;
    let newest = [stay("room-b", 200, Some(300)), stay("room-c", 300, None)];
    for is_first in [true, false] {
        let restored = answer!(store.restore_stays(&known, &newest));
        assert_eq!(matches!(restored, UpdateOutcome::Updated(_)), is_first, "{restored:?}");
        let now = device_now(store, "d").await;
        assert_eq!((now.stay(), now.version()), (newest.last(), known.version() + 1));
    }
    let known = device_now(store, "d").await;
    let many: Vec<_> = (0..table::MAX_RESTORED_STAYS)
        .map(|n| i64::try_from(n).expect("small"))
        .map(|n| stay("room-a", n * 2, Some(n * 2 + 1)))
        .collect();
    let restored = answer!(store.restore_stays(&known, &many));
    assert!(matches!(restored, UpdateOutcome::Updated(_)), "{restored:?}");
    assert_eq!(stays_of(store, "d").await, [&many[..], &newest].concat());
    assert_eq!(stays_in(store, "room-a").await.len(), many.len());
    assert_eq!(device_now(store, "d").await.stay(), newest.last(), "the newest is the same");
}
