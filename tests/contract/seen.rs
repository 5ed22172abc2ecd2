//! Which devices were seen in a room: noted by compare-and-swap, found by months, removed with the device.

use std::ops::RangeInclusive;

use domain::Month;
use table::{Belonging, Expected, RoomVisit};

use super::Ports;
use crate::given::{answer, device, invocation, room};

fn month(text: &str) -> Month {
    text.parse().expect("a month")
}

fn months(first: &str, last: &str) -> RangeInclusive<Month> {
    month(first)..=month(last)
}

async fn put(store: &impl Ports, seen: &RoomVisit, expected: Expected) -> bool {
    answer!(store.put_seen(seen, expected))
}

async fn noted(store: &impl Ports, place: &str, id: &str) -> Option<RoomVisit> {
    answer!(store.seen(&room(place), &device(id)))
}

async fn found(store: &impl Ports, place: &str, first: &str, last: &str) -> Vec<String> {
    let months = months(first, last);
    let found = answer!(store.seen_in(&room(place), months.clone(), 100));
    assert!(found.iter().all(|seen| seen.room == room(place) && seen.overlaps(&months)));
    found.into_iter().map(|seen| seen.device.to_string()).collect()
}

pub(super) async fn what_is_noted_of_a_room_widens_by_compare_and_swap(store: &impl Ports) {
    assert_eq!(noted(store, "room-a", "d").await, None);
    let begun = RoomVisit::begun(room("room-a"), device("d"), month("2026-03"));
    assert!(!put(store, &begun, Expected::Version(1)).await, "there is none");
    assert!(put(store, &begun, Expected::Absent).await);
    assert!(!put(store, &begun, Expected::Absent).await, "done twice");
    assert_eq!(noted(store, "room-a", "d").await, Some(begun.clone()));

    let earlier = begun.widened(&months("2025-11", "2025-12"));
    let later = begun.widened(&months("2026-05", "2026-05"));
    assert!(put(store, &earlier, Expected::Version(1)).await);
    assert!(!put(store, &later, Expected::Version(1)).await, "it has been widened meanwhile");
    let both = earlier.widened(&months("2026-05", "2026-05"));
    assert!(put(store, &both, Expected::Version(2)).await);
    let expected =
        RoomVisit { first: month("2025-11"), last: month("2026-05"), version: 3, ..begun };
    assert_eq!(noted(store, "room-a", "d").await, Some(expected));
    assert_eq!(noted(store, "room-b", "d").await, None);
}

pub(super) async fn devices_seen_in_a_room_in_some_months_are_found(store: &impl Ports) {
    for (place, id, first, last) in [
        ("room-a", "d", "2025-11", "2026-02"),
        ("room-a", "D:1", "2026-02", "2026-02"),
        ("room-a", "e", "2026-04", "2026-04"),
        ("room-a.b", "f", "2026-02", "2026-02"),
    ] {
        let begun = RoomVisit::begun(room(place), device(id), month(first));
        let seen = RoomVisit { last: month(last), ..begun };
        assert!(put(store, &seen, Expected::Absent).await);
    }
    assert_eq!(found(store, "room-a", "2025-01", "2027-01").await, ["D:1", "d", "e"]);
    assert_eq!(found(store, "room-a", "2026-01", "2026-01").await, ["d"], "the months between");
    assert_eq!(found(store, "room-a", "2026-02", "2026-03").await, ["D:1", "d"]);
    assert_eq!(found(store, "room-a", "2026-03", "2026-03").await, [""; 0]);
    assert_eq!(found(store, "room-a.b", "2026-02", "2026-02").await, ["f"]);
    let months = months("2025-01", "2027-01");
    let some = answer!(store.seen_in(&room("room-a"), months, 2));
    assert_eq!(some.len(), 2, "at most as many as were asked for");
}

pub(super) async fn what_is_noted_goes_with_the_device(store: &impl Ports) {
    for (place, id) in [("room-a", "d"), ("room-b", "d"), ("room-a", "e")] {
        let begun = RoomVisit::begun(room(place), device(id), month("2026-03"));
        assert!(put(store, &begun, Expected::Absent).await);
    }
    let all = answer!(store.belongings(&device("d"), 10)).found;
    let expected = ["room-a", "room-b"].map(|it| Belonging::of_seen(&device("d"), &room(it)));
    assert_eq!(all, expected);
    for _ in 0..2 {
        let outcome = store.remove_belongings(&all, &invocation()).await;
        assert!(outcome.not_stored.is_empty(), "{outcome:?}");
    }
    assert_eq!(answer!(store.belongings(&device("d"), 10)).found, []);
    assert_eq!(found(store, "room-a", "2026-03", "2026-03").await, ["e"]);
    // A fold that is still at work begins anew, with both sides.
    let begun = RoomVisit::begun(room("room-a"), device("d"), month("2026-03"));
    assert!(!put(store, &begun.widened(&months("2026-04", "2026-04")), Expected::Version(1)).await);
    assert!(put(store, &begun, Expected::Absent).await);
    let again = answer!(store.belongings(&device("d"), 10)).found;
    assert_eq!(again, [Belonging::of_seen(&device("d"), &room("room-a"))]);
}
