//! Ranges of devices and rooms: bounds, order, limits and walks from page to page.

use domain::{DeviceId, Order, Reading, Timestamp};
use table::{Page, RangeQuery, ReadingKey};

use super::Ports;
use crate::given::{always, answer, at, device, range, reading, reading_in, room};
use crate::stored::{first_page, put};

const ORDERS: [Order; 2] = [Order::Ascending, Order::Descending];

async fn of_device(store: &impl Ports, id: &str, query: &RangeQuery) -> Page<Reading> {
    answer!(store.device_readings(&device(id), query))
}

/// The pages of `d` and of `room-a`, where it is.
pub(super) async fn pages(store: &impl Ports, query: &RangeQuery) -> [Page<Reading>; 2] {
    let devices = [device("d")];
    let of_room = answer!(store.room_readings(&room("room-a"), &devices, query));
    [of_device(store, "d", query).await, of_room]
}

/// The offsets of all readings of a device in a range.
async fn offsets(store: &impl Ports, id: &str, from: i64, to: i64) -> Vec<i64> {
    let page = of_device(store, id, &first_page(range(from, to), Order::Ascending, 100)).await;
    page.items.iter().map(|r| r.at.as_millis() - at(0).as_millis()).collect()
}

/// All pages of a room, each behind the last.
async fn walk_room(
    store: &impl Ports,
    id: &str,
    devices: &[DeviceId],
    mut query: RangeQuery,
) -> Vec<Reading> {
    let mut all = Vec::new();
    // More pages than any walk here has: one that goes round in circles must end, too.
    for _ in 0..1_000 {
        let page = answer!(store.room_readings(&room(id), devices, &query));
        assert!(page.items.len() <= query.limit);
        assert!(page.items.len() == query.limit || !page.has_more, "only the last page is short");
        query.after = page.items.last().map(ReadingKey::of).or(query.after);
        all.extend(page.items);
        if !page.has_more {
            return all;
        }
    }
    panic!("the walk does not end: {query:?}");
}

/// Readings of a room hold to the order in time; how those of one timestamp follow is the store's affair.
#[track_caller]
fn assert_walked(order: Order, mut walked: Vec<Reading>, expected: &[Reading]) {
    let in_order = |pair: &[Reading]| match order {
        Order::Ascending => pair[0].at <= pair[1].at,
        Order::Descending => pair[0].at >= pair[1].at,
    };
    assert!(walked.windows(2).all(in_order), "{order:?}: {walked:?}");
    walked.sort_by_key(ReadingKey::of);
    let mut expected = expected.to_vec();
    expected.sort_by_key(ReadingKey::of);
    assert_eq!(walked, expected);
}

pub(super) async fn a_range_is_half_open(store: &impl Ports) {
    let readings: Vec<_> =
        [0, 1, 999, 1_000, 1_001].iter().map(|n| reading_in("d", *n, "room-a")).collect();
    put(store, &readings).await;
    for (from, to, expected) in [
        (0, 1, &[0][..]),
        (0, 1_000, &[0, 1, 999]),
        (1, 1_001, &[1, 999, 1_000]),
        (-5, 0, &[]),
        (-5, 2_000, &[0, 1, 999, 1_000, 1_001]),
        (2, 999, &[]),
        (1_001, 1_002, &[1_001]),
    ] {
        assert_eq!(offsets(store, "d", from, to).await, expected, "from {from} to {to}");
        let devices = [device("d")];
        for order in ORDERS {
            let walked =
                walk_room(store, "room-a", &devices, first_page(range(from, to), order, 2)).await;
            assert_eq!(walked.len(), expected.len(), "from {from} to {to}");
        }
    }
}

pub(super) async fn the_first_and_last_instants_have_their_place(store: &impl Ports) {
    let put_at = [Timestamp::MIN, at(0), Timestamp::MAX];
    let readings = put_at.map(|timestamp| {
        let mut reading = reading_in("d", 0, "room-a");
        reading.at = timestamp;
        reading
    });
    put(store, &readings).await;
    let page = of_device(store, "d", &first_page(always(), Order::Ascending, 10)).await;
    assert_eq!(page.items, readings[..2], "the end of a range is outside, even the last of all");
    let page = of_device(store, "d", &first_page(always(), Order::Descending, 1)).await;
    assert_eq!((page.items, page.has_more), (vec![readings[1].clone()], true));
}

pub(super) async fn a_device_sees_only_its_own(store: &impl Ports) {
    for id in ["a", "a-b", "a1", "A", "aa", "a:b"] {
        put(store, &[reading(id, 0, &[("co2", "1")])]).await;
    }
    for id in ["a", "a-b", "a1", "A", "aa", "a:b"] {
        let page = of_device(store, id, &first_page(always(), Order::Ascending, 10)).await;
        let found: Vec<_> = page.items.iter().map(|r| r.device.as_str()).collect();
        assert_eq!(found, [id]);
    }
}

pub(super) async fn a_limit_says_whether_there_is_more(store: &impl Ports) {
    let readings: Vec<_> = (0..5).map(|n| reading_in("d", n, "room-a")).collect();
    put(store, &readings).await;
    for order in ORDERS {
        let mut expected = readings.clone();
        if order == Order::Descending {
            expected.reverse();
        }
        for limit in 1..=6 {
            let query = first_page(range(0, 5), order, limit);
            for page in pages(store, &query).await {
                assert_eq!(page.items, expected[..limit.min(5)], "{order:?} {limit}");
                assert_eq!(page.has_more, limit < 5, "{order:?} {limit}");
            }
        }
    }
}

pub(super) async fn a_walk_meets_each_reading_once(store: &impl Ports) {
    let readings: Vec<_> = (0..40).map(|n| reading("d", n * 7, &[("co2", "400")])).collect();
    put(store, &readings).await;
    let inside = &readings[2..38];
    for order in ORDERS {
        for limit in [1, 2, 5, 36, 37] {
            let mut query = first_page(range(10, 260), order, limit);
            let mut walked = Vec::new();
            while walked.len() <= inside.len() {
                let page = of_device(store, "d", &query).await;
                query.after = page.items.last().map(ReadingKey::of);
                walked.extend(page.items);
                if !page.has_more {
                    break;
                }
            }
            if order == Order::Descending {
                walked.reverse();
            }
            assert_eq!(walked, inside, "{order:?} {limit}");
        }
    }
}

pub(super) async fn a_walk_goes_on_behind_what_is_gone(store: &impl Ports) {
    let readings: Vec<_> = [0, 10, 20, 30].iter().map(|n| reading_in("d", *n, "room-a")).collect();
    put(store, &readings).await;
    // Nothing is at 15, as if it had expired since the page before.
    let after = Some(ReadingKey { at: at(15), device: device("d") });
    for (order, expected) in [(Order::Ascending, vec![20, 30]), (Order::Descending, vec![10, 0])] {
        let query = RangeQuery { after: after.clone(), ..first_page(range(0, 40), order, 10) };
        for page in pages(store, &query).await {
            let found: Vec<_> = page.items.iter().map(|r| r.at).collect();
            assert_eq!(found, expected.iter().map(|n| at(*n)).collect::<Vec<_>>(), "{order:?}");
        }
    }
}

pub(super) async fn a_room_is_the_rooms_of_its_readings(store: &impl Ports) {
    let readings = [
        reading_in("a", 0, "room-a"),
        reading_in("a", 1, "room-b"),
        reading("a", 2, &[("co2", "1")]),
        reading_in("b", 3, "room-a"),
        reading_in("b", 4, "room-a1"),
    ];
    put(store, &readings).await;
    let devices = [device("a"), device("b")];
    for order in ORDERS {
        for limit in [1, 10] {
            let walked =
                walk_room(store, "room-a", &devices, first_page(always(), order, limit)).await;
            assert_walked(order, walked, &[readings[0].clone(), readings[3].clone()]);
        }
    }
}

pub(super) async fn the_same_instant_on_several_devices_is_walked_once(store: &impl Ports) {
    let ids = ["c", "a", "d", "b"];
    let mut readings = Vec::new();
    for millis in 0..6 {
        // Not every device measures at every timestamp.
        let measuring = (1..).zip(ids).filter(|(n, _)| (millis + 1) % n == 0);
        readings.extend(measuring.map(|(_, id)| reading_in(id, millis, "room-a")));
    }
    put(store, &readings).await;
    let devices: Vec<_> = ids.iter().map(|id| device(id)).collect();
    for order in ORDERS {
        for limit in [1, 2, 3, 5, 100] {
            let walked =
                walk_room(store, "room-a", &devices, first_page(range(0, 6), order, limit)).await;
            assert_walked(order, walked, &readings);
        }
    }
}

pub(super) async fn nothing_is_found_where_nothing_is(store: &impl Ports) {
    put(store, &[reading_in("d", 0, "room-a")]).await;
    for order in ORDERS {
        let query = first_page(always(), order, 10);
        let page = of_device(store, "e", &query).await;
        assert!(page.items.is_empty() && !page.has_more);
        for devices in [&[][..], &[device("e")]] {
            let page = answer!(store.room_readings(&room("room-b"), devices, &query));
            assert!(page.items.is_empty());
        }
    }
}
