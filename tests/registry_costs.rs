//! What questions about one room, device or home cost beside a registry of 100 and of 2,000 devices that is in
//! memory, in the engine's read units. Measures no time.

use std::time::Duration;

use dynamodb::DynamoStore;
use futures_util::{StreamExt as _, stream};

use crate::engine::Engine;
use crate::given::{at, reading_in, register_devices_of, register_room};
use crate::home::Home;
use crate::stored::put;

/// The number of devices in a room.
const ROOM: usize = 10;
/// The age at which the registry is read again.
const MAX_AGE: Duration = Duration::from_secs(60);

/// A house, and an instance of the function that has read its registry.
struct House {
    _engine: Engine,
    home: Home<DynamoStore>,
}

impl House {
    async fn of(devices: usize, room_index: &str) -> Self {
        let engine = Engine::embedded().await;
        let parameters = [("RoomIndex", room_index)];
        let store = engine.table_without_stream(&parameters).await.store();
        let house = Self { _engine: engine, home: Home::at(store, at(3_600_000)) };
        for n in 0..devices / ROOM {
            house.add_room(&format!("room-{n}")).await;
        }
        house.home.query().load().await;
        house
    }

    /// Another instance registers a room and its devices, and stores a reading of each.
    async fn add_room(&self, id: &str) {
        register_room(&self.home.store, id, at(0)).await;
        let readings: Vec<_> =
            (0..ROOM).map(|n| reading_in(&format!("{id}-{n}"), 3_600_000, id)).collect();
        let registered = stream::iter(&readings).for_each_concurrent(8, async |reading| {
            register_devices_of(&self.home.store, std::slice::from_ref(reading)).await;
        });
        registered.await;
        put(&self.home.store, &readings).await;
    }

    /// The status, the number of rows and the read units.
    async fn ask(&self, path: &str) -> (i64, usize, f64) {
        self.ask_with(path, "").await
    }

    async fn ask_with(&self, path: &str, query: &str) -> (i64, usize, f64) {
        let answer = self.home.get(path, query).await;
        let units = answer.headers["x-consumed-read-units"].as_str().unwrap_or("0");
        let rows = answer.body["data"].as_array().map_or(0, Vec::len);
        (answer.status, rows, units.parse().expect("a number"))
    }
}

#[tokio::test]
async fn a_question_about_one_room_device_or_home_does_not_cost_more_in_a_larger_house() {
    let mut whole = Vec::new();
    for devices in [100, 2_000] {
        let house = House::of(devices, "on").await;
        let newest = (200, ROOM, 5.0);
        assert_eq!(house.ask_with("/rooms/room-1/devices", "latest=1").await, newest);
        // What there is not: the item of the room; those of the device and of its deletion.
        for _ in 0..3 {
            assert_eq!(house.ask("/homes/nothere").await, (404, 0, 0.0), "read a moment ago");
            assert_eq!(house.ask_with("/rooms/nothere/devices", "latest=1").await, (404, 0, 1.0));
            assert_eq!(house.ask("/devices/nothere").await, (404, 0, 2.0));
        }
        // What another instance has just registered is found, by its item, and is then in memory.
        house.add_room("attic").await;
        assert_eq!(house.ask("/devices/attic-3").await, (200, 0, 1.0));
        assert_eq!(house.ask("/devices/attic-3").await, (200, 0, 0.0));
        assert_eq!(house.ask("/rooms/attic").await, (200, 0, 1.0));
        // Its other devices are there after a second for each hundred, by one read of the registry.
        house.home.clock.advance(Duration::from_secs(devices as u64 / 90 + 1));
        let (status, rows, units) = house.ask_with("/rooms/attic/devices", "latest=1").await;
        assert_eq!((status, rows), (200, ROOM));
        whole.push(units - 6.0);
        assert_eq!(house.ask_with("/rooms/attic/devices", "latest=1").await, newest);
        assert_eq!(house.ask_with("/rooms/room-1/devices", "latest=1").await, newest);
        // Once it is as old as it may be, a room's devices come from its item and from the index by room.
        house.home.clock.advance(MAX_AGE);
        assert_eq!(
            house.ask_with("/rooms/room-1/devices", "latest=1").await,
            (200, ROOM, newest.2 + 2.0)
        );
        assert_eq!(house.ask("/rooms/room-1/devices").await, (200, ROOM, 2.0));
        assert_eq!(house.ask_with("/rooms/nothere/devices", "latest=1").await, (404, 0, 1.0));
        // A device is read alone, also for what it has measured: with the state of the rollups, what they may lack, and
        // its readings.
        if devices > 100 {
            assert_eq!(house.ask("/devices/attic-3").await, (200, 0, 1.0));
            assert_eq!(house.ask("/devices/nothere").await, (404, 0, 2.0));
            for missing in ["temperature", "nothing"] {
                let path = "/devices/attic-3/series";
                let query = format!("metric={missing}&from=-1h&every=15m");
                let (.., units) = house.ask_with(path, &query).await;
                assert!(units <= 4.0, "{missing}: {units}");
            }
        }
        // What needs the registry reads it again, for all.
        let (.., units) = house.ask("/devices").await;
        assert!((units - whole.last().expect("measured")).abs() <= 1.0, "{units}");
        assert_eq!(house.ask_with("/rooms/room-1/devices", "latest=1").await, newest);
    }
    // Some 30 devices a unit: that is what must not be paid for each question.
    assert!(whole[0] <= 6.0 && whole[1] >= 50.0, "{whole:?}");
}

/// Units come in halves.
#[expect(clippy::cast_possible_truncation, reason = "units are few")]
fn halves(units: f64) -> i64 {
    (units * 2.0).round() as i64
}

/// A page that stays open asks for its lists again and again: a home pays two units for each time, a large house none
/// before the registry is as old as it may be.
#[tokio::test]
async fn a_list_is_read_anew_where_that_costs_little() {
    for (devices, units_of_a_list) in [(20, 2.0), (1_000, 0.0)] {
        let house = House::of(devices, "on").await;
        house.ask("/devices").await;
        for _ in 0..5 {
            house.home.clock.advance(Duration::from_secs(10));
            let (.., units) = house.ask("/devices").await;
            assert_eq!(halves(units), halves(units_of_a_list), "{devices} devices");
            let (.., units) = house.ask("/rooms").await;
            assert_eq!(halves(units), 0, "{devices} devices: of the moment before");
        }
        if units_of_a_list > 0.0 {
            house.add_room("attic").await;
            house.home.clock.advance(Duration::from_secs(2));
            assert_eq!(house.ask("/rooms").await.1, devices / ROOM + 1);
            assert_eq!(house.ask("/devices").await.1, devices + ROOM);
        }
    }
}

#[tokio::test]
async fn a_query_of_influxql_finds_a_device_that_is_new() {
    let house = House::of(20, "on").await;
    let select = "db=home&q=SELECT%20*%20FROM%20%22newest%22";
    let now = at(3_600_000);
    let empty = house.home.get("/query", select).await;
    assert_eq!(empty.body["results"][0].get("series"), None, "{}", empty.body);

    let reading = table::given::reading("attic-1", now, None, &[("newest", "1")]);
    register_devices_of(&house.home.store, std::slice::from_ref(&reading)).await;
    put(&house.home.store, std::slice::from_ref(&reading)).await;
    let found = house.home.get("/query", select).await;
    assert!(found.body["results"][0].get("series").is_some(), "{}", found.body);
    let shown = house.home.get("/query", "db=home&q=SHOW%20MEASUREMENTS").await;
    assert!(shown.body.to_string().contains("newest"), "{}", shown.body);
}

#[tokio::test]
async fn without_the_index_by_room_an_old_registry_is_read_again() {
    let house = House::of(200, "off").await;
    house.home.clock.advance(MAX_AGE);
    let (status, rows, units) = house.ask_with("/rooms/room-1/devices", "latest=1").await;
    assert_eq!((status, rows), (200, ROOM));
    assert!(units > 10.0, "{units}");
    assert_eq!(house.ask_with("/rooms/room-1/devices", "latest=1").await, (200, ROOM, 5.0));
}
