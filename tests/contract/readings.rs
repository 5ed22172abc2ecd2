//! Readings go in and come out. Ranges are next door.

use chrono::TimeDelta;
use domain::{MAX_METRICS, Order, Reading};
use futures_util::future::join_all;
use table::{Added, RangeQuery};

use super::Ports;
use crate::given::{always, answer, device, invocation, placed, reading, reading_in};
use crate::stored::{first_page, put};

/// All readings of a device, oldest first, whatever was acknowledged before.
pub(super) async fn all_of(store: &impl Ports, id: &str) -> Vec<Reading> {
    let page = first_page(always(), Order::Ascending, 10_000);
    let query = RangeQuery { consistent: true, ..page };
    let page = answer!(store.device_readings(&device(id), &query));
    assert!(!page.has_more);
    page.items
}

/// Numbers at the limits of what is stored exactly.
const EXTREMES: &str = "0 1E-130 -1E-130 9.99E125 -9.99E125 99999999999999999999999999999999999999 \
     9.9999999999999999999999999999999999999E125 -9.9999999999999999999999999999999999999E125 \
     1.2345678901234567890123456789012345678E-130 12345678901234567890.123456789012345678 \
     0.00000000000000000000000000000000000001 0.1 100000000000000000000000000000000000000000 \
     1E40 1E-40";

/// Words of `DynamoDB`'s expressions, and attributes that other items of the table have.
const RESERVED: &str = "count min max sum avg hour minute second state type zone unit name time temp \
     ttl data date day year percent status size level position range values select between kind \
     metrics tags modulus tolerance";

/// As many metrics as a reading may have, with the longest names and numbers.
fn largest(id: &str, millis: i64) -> Reading {
    let names: Vec<String> = (0..MAX_METRICS).map(|n| format!("{:x<60}_{n:03}", "m")).collect();
    let number = "-1.2345678901234567890123456789012345678E-130";
    let metrics: Vec<_> = names.iter().map(|name| (name.as_str(), number)).collect();
    placed(reading(id, millis, &metrics), &"r".repeat(128))
}

pub(super) async fn what_is_put_once_or_twice_comes_back_as_it_was(store: &impl Ports) {
    let long = "i".repeat(128);
    let of = |id: &str, count| (0..count).map(|n| reading_in(id, n, "room-a")).collect();
    let reserved: Vec<_> = RESERVED.split(' ').map(|name| (name, "1")).collect();
    let extremes = (0..).zip(EXTREMES.split(' '));
    for (id, readings) in [
        ("nothing", Vec::new()),
        ("in-a-room", of("in-a-room", 1)),
        ("elsewhere", vec![reading("elsewhere", 1, &[("current_w", "-512"), ("co2", "8048.1")])]),
        ("below-a-batch", of("below-a-batch", 24)),
        ("a-batch", of("a-batch", 25)),
        ("beyond-a-batch", of("beyond-a-batch", 26)),
        ("ten-batches", of("ten-batches", 226)),
        ("extremes", extremes.map(|(n, it)| reading("extremes", n, &[("co2", it)])).collect()),
        ("reserved", vec![reading("reserved", 0, &reserved)]),
        (long.as_str(), (0..25).map(|n| largest(&long, n)).collect()),
    ] {
        for times in ["once", "twice"] {
            put(store, &readings).await;
            assert_eq!(all_of(store, id).await, readings, "{id} {times}");
        }
    }
}

pub(super) async fn a_later_put_replaces_the_whole_reading(store: &impl Ports) {
    let first = placed(reading("d", 0, &[("temperature", "21.5"), ("humidity", "45")]), "room-a");
    put(store, &[first]).await;
    let second = reading("d", 0, &[("temperature", "22")]);
    put(store, std::slice::from_ref(&second)).await;
    assert_eq!(all_of(store, "d").await, [second]);
}

pub(super) async fn a_reading_that_will_expire_is_read_like_any_other(store: &impl Ports) {
    let reading = reading_in("d", 0, "room-a");
    // Long enough to be still there, whenever this runs.
    let retention = Some(TimeDelta::days(365 * 1_000));
    let put = store.put_readings(std::slice::from_ref(&reading), retention, &invocation()).await;
    assert!(put.not_stored.is_empty() && put.cause.is_none(), "{put:?}");
    assert_eq!(all_of(store, "d").await, [reading]);
}

async fn merge(store: &impl Ports, readings: &[Reading]) {
    let merged = store.merge_readings(readings, None, &invocation()).await;
    assert!(merged.not_stored.is_empty() && merged.cause.is_none(), "{merged:?}");
}

pub(super) async fn a_merge_keeps_what_it_does_not_name(store: &impl Ports) {
    put(store, &[placed(reading("d", 0, &[("a", "1"), ("b", "1")]), "room-a")]).await;
    for _ in 0..2 {
        merge(store, &[reading("d", 0, &[("b", "2"), ("c", "2")])]).await;
        let expected = placed(reading("d", 0, &[("a", "1"), ("b", "2"), ("c", "2")]), "room-a");
        assert_eq!(all_of(store, "d").await, [expected]);
    }
}

pub(super) async fn a_merge_of_nothing_is_a_put(store: &impl Ports) {
    // Words of DynamoDB's expressions are names of metrics here, too.
    let readings: Vec<_> = (0..60)
        .map(|n| placed(reading("d", n, &[("value", "1"), ("size", "2"), ("z", "3")]), "room-a"))
        .collect();
    merge(store, &readings).await;
    assert_eq!(all_of(store, "d").await, readings);
    merge(store, &[]).await;
}

pub(super) async fn merges_at_once_lose_nothing(store: &impl Ports) {
    let parts: Vec<_> = (0..20).map(|n| [reading("d", 0, &[(&format!("m{n}"), "1")])]).collect();
    join_all(parts.iter().map(|part| merge(store, part))).await;
    assert_eq!(all_of(store, "d").await[0].metrics().len(), 20);
}

pub(super) async fn a_merge_keeps_the_room_that_the_sender_named(store: &impl Ports) {
    let room = |id: &str| Some(id.parse().expect("an id"));
    for (named, filled_in, now_named, now) in [
        (None, "room-a", None, "room-a"),
        (None, "room-b", None, "room-a"),
        (Some("room-a"), "room-a", Some("room-a"), "room-a"),
        (None, "room-a", Some("room-a"), "room-a"),
        (Some("room-c"), "room-c", Some("room-c"), "room-c"),
        (None, "room-b", Some("room-c"), "room-c"),
        // A person has chosen another than the one that is named.
        (Some("room-c"), "room-d", Some("room-c"), "room-d"),
    ] {
        let mut merging = reading("d", 0, &[("a", "1")]);
        merging.room = room(filled_in);
        merging.named_room = named.and_then(room);
        merge(store, &[merging]).await;
        let stored = all_of(store, "d").await.remove(0);
        assert_eq!((stored.named_room, stored.room), (now_named.and_then(room), room(now)));
    }
}

pub(super) async fn a_merged_reading_may_have_any_number_of_metrics(store: &impl Ports) {
    for part in 0..3 {
        let names: Vec<String> = (0..MAX_METRICS).map(|n| format!("m{part}_{n}")).collect();
        let metrics: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
        merge(store, &[reading("d", 0, &metrics)]).await;
    }
    assert_eq!(all_of(store, "d").await[0].metrics().len(), 3 * MAX_METRICS);
}

pub(super) async fn an_arrival_takes_nobodys_place(store: &impl Ports) {
    let one = placed(reading("d", 0, &[("a", "1")]), "room-a");
    let add =
        async |reading: &Reading, arrival: &str| answer!(store.add_arrival(reading, arrival, None));
    for _ in 0..2 {
        assert_eq!(add(&one, "x").await, Added::Stored, "the same arrival, again");
        assert_eq!(add(&reading("d", 0, &[("b", "2")]), "y").await, Added::Taken);
        assert_eq!(all_of(store, "d").await, std::slice::from_ref(&one));
    }
    put(store, &[reading("d", 1, &[("a", "1")])]).await;
    assert_eq!(add(&reading("d", 1, &[("a", "2")]), "x").await, Added::Taken, "one that was put");
    assert_eq!(add(&reading("e", 0, &[("a", "2")]), "x").await, Added::Stored, "another device");
}

pub(super) async fn of_arrivals_at_once_one_is_stored(store: &impl Ports) {
    let one = reading("d", 0, &[("a", "1")]);
    let invocation = invocation();
    let arrivals: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    let adding = arrivals.iter().map(|arrival| store.add_arrival(&one, arrival, None, &invocation));
    let added = join_all(adding).await.into_iter().map(|added| added.expect("asked"));
    assert_eq!(added.filter(|added| *added == Added::Stored).count(), 1);
}

pub(super) async fn an_arrival_that_is_repeated_takes_no_merge_back(store: &impl Ports) {
    let arrival = reading("d", 0, &[("a", "1")]);
    let add = async || answer!(store.add_arrival(&arrival, "x", None));
    assert_eq!(add().await, Added::Stored);
    merge(store, &[reading("d", 0, &[("a", "2"), ("b", "2")])]).await;
    // The answer to the first request was lost, so it is sent again.
    assert_eq!(add().await, Added::Stored);
    assert_eq!(all_of(store, "d").await, [reading("d", 0, &[("a", "2"), ("b", "2")])]);
}
