//! Homes as a client sees them: rooms that name one, and what their devices measured. Deletes none.

use table::UpdateRegistry as _;

use super::series::numbers;
use super::*;

impl Bench {
    /// Two devices in the rooms r1 and r2 of the home h, one in a room of another home, one that was in r1
    /// and is now in a room without a home.
    async fn of_homes() -> Self {
        let bench = Self::empty();
        for (device, minute, room) in
            [("a", 0, "r1"), ("b", 0, "r2"), ("c", 0, "s"), ("gone", 0, "r1"), ("gone", 5, "attic")]
        {
            let reading = reading(device, minute, room);
            bench.store.put_readings(std::slice::from_ref(&reading), None, &invocation()).await;
            bench.note_room(&reading).await;
            let mut device = given::device_of([&reading]);
            let known = bench.store.register_device(&device, &invocation()).await.expect("memory");
            if let table::Registration::Exists(known) = known {
                let learned = known.diff(&DeviceObservation::of(&reading), |_| true);
                device = *known;
                bench.store.update_device(&device, &learned, &invocation()).await.expect("memory");
            }
            given::register_room(&bench.store, room, at_minute(minute)).await;
        }
        for (room, home) in [("r1", "h"), ("r2", "h"), ("s", "summer")] {
            let (url, body) = (format!("/rooms/{room}"), json!({"home": home}).to_string());
            assert_eq!(bench.patch(&url, &body).await.json()["home"], home);
        }
        bench
    }

    /// The ids in a list.
    async fn ids(&self, url: &str, member: &str) -> Vec<String> {
        let answer = self.get(url).await;
        assert_eq!(answer.status, 200, "{url}: {}", answer.text);
        let answer = answer.json();
        let rows = answer["data"].as_array().expect("a list").iter();
        rows.map(|row| row[member].as_str().expect("an id").to_owned()).collect()
    }
}

#[tokio::test]
async fn a_home_is_the_rooms_that_name_it() {
    let bench = Bench::of_homes().await;
    let (first_seen, later) = (at_minute(0).to_string(), at_minute(5).to_string());
    let home = json!({"home_id": "h", "rooms": 2, "first_seen": first_seen});
    let summer = json!({"home_id": "summer", "rooms": 1, "first_seen": first_seen});
    assert_eq!(bench.get("/homes").await.json()["data"], json!([home, summer]));
    assert_eq!(bench.get("/homes/h").await.json(), home);
    let csv = bench.get("/homes?format=csv").await.text;
    assert_eq!(
        csv.lines().take(2).collect::<Vec<_>>(),
        ["home_id,rooms,first_seen", &format!("h,2,{first_seen}")]
    );
    assert_eq!(bench.ids("/homes/h/rooms", "room_id").await, ["r1", "r2"]);
    assert_eq!(bench.ids("/homes/h/devices", "device_id").await, ["a", "b"]);
    let newest = bench.get("/homes/h/devices?latest=1").await.json()["data"].clone();
    for (row, id) in newest.as_array().expect("rows").iter().zip(["a", "b"]) {
        let alone = bench.get(&format!("/devices/{id}/latest")).await.json();
        assert_eq!(
            (&row["device_id"], &row["latest"]["metrics"]),
            (&alone["device_id"], &alone["metrics"])
        );
    }
    let page = bench.get("/homes?limit=1").await.json();
    let next = format!("/homes?limit=1&cursor={}", page["next_cursor"].as_str().expect("more"));
    assert_eq!(bench.ids(&next, "home_id").await, ["summer"]);

    let room = bench.patch("/rooms/s", r#"{"home": null}"#).await.json();
    assert_eq!(
        room,
        json!({"room_id": "s", "name": null, "home": null, "outside": null, "first_seen": first_seen})
    );
    bench.patch("/rooms/attic", r#"{"home": "h"}"#).await;
    assert_eq!(bench.ids("/homes", "home_id").await, ["h"]);
    assert_eq!(bench.ids("/homes/h/devices", "device_id").await, ["a", "b", "gone"]);
    assert_eq!(bench.get("/rooms/attic").await.json()["first_seen"], later);
}

#[tokio::test]
async fn an_unknown_home_is_not_found_and_one_that_another_instance_knows_is() {
    let bench = Bench::of_homes().await;
    let of_a_home = [
        "",
        "/rooms",
        "/devices",
        "/devices?latest=1",
        "/series",
        "/energy",
        "/conditions?temperature=1..",
    ];
    for path in of_a_home {
        let answer = bench.get(&format!("/homes/x{path}")).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text);
        assert_eq!(answer.json()["detail"], "There is no home \"x\".");
    }
    assert_eq!(bench.get("/homes/a%20b").await.status, 400);
    let patch = domain::RoomPatch {
        home: domain::Edit::Set(given::home("new")),
        ..domain::RoomPatch::default()
    };
    let room = "attic".parse().expect("an id");
    bench.store.edit_room(&room, &patch, &invocation()).await.expect("memory");
    assert_eq!(bench.ids("/homes/new/rooms", "room_id").await, ["attic"]);
}

#[tokio::test]
async fn the_series_of_a_home_has_every_reading_of_its_rooms_and_no_other() {
    let bench = Bench::of_homes().await;
    let range = format!("from={}&to={}", at_minute(0), at_minute(15));
    let count = async |path: &str| {
        let url = format!("{path}/series?{range}&fn=count&metric=temperature&devices=1");
        let answer = bench.get(&url).await.json();
        let rows = answer["data"].as_array().expect("rows").clone();
        rows.iter()
            .map(|row| {
                (row["device_id"].as_str().expect("an id").to_owned(), row["value"].as_i64())
            })
            .collect::<Vec<_>>()
    };
    let is = |rows: &[&str]| rows.iter().map(|id| ((*id).to_owned(), Some(1))).collect::<Vec<_>>();
    assert_eq!(count("/homes/h").await, is(&["a", "b", "gone"]));
    assert_eq!(count("/rooms/r1").await, is(&["a", "gone"]));
    assert_eq!(count("/homes/summer").await, is(&["c"]));
    // A device that moves within the home is one stay there, not two.
    bench.patch("/rooms/attic", r#"{"home": "h"}"#).await;
    let all = count("/homes/h").await;
    assert_eq!(all.last(), Some(&("gone".to_owned(), Some(2))));
}

#[tokio::test]
async fn the_conditions_of_a_home_are_those_of_its_devices() {
    let bench = Bench::of_homes().await;
    let range = format!("from={}&to={}", at_minute(0), at_minute(15));
    let url = |path: &str| format!("{path}/conditions?{range}&temperature=0..");
    assert_eq!(bench.ids(&url("/homes/h"), "device_id").await, ["a", "b", "gone"]);
    assert_eq!(bench.ids(&url("/rooms/r2"), "device_id").await, ["b"]);
    assert_eq!(bench.ids(&url("/homes/summer"), "device_id").await, ["c"]);
}

#[tokio::test]
async fn what_is_behind_a_meter_is_left_out_of_the_sum_of_a_home_that_has_both() {
    let bench = Bench::empty();
    for (device, room) in [("meter", "hall"), ("plug", "loft")] {
        let watts = |minute| numbers(device, minute, room, &[("current_w", "60")]);
        bench.store(&(0..15).map(watts).collect::<Vec<_>>()).await;
    }
    bench.patch("/devices/plug", r#"{"behind": "meter"}"#).await;
    bench.patch("/rooms/loft", r#"{"home": "h"}"#).await;
    let range = format!("from={}&to={}", at_minute(0), at_minute(15));
    let url = format!("/homes/h/energy?{range}");
    let alone = bench.get(&url).await.json();
    assert_eq!(alone["data"][0]["kwh"].to_string(), "0.015", "the plug alone: {alone}");
    bench.patch("/rooms/hall", r#"{"home": "h"}"#).await;
    let both = bench.get(&url).await.json();
    assert_eq!(both["data"][0]["kwh"].to_string(), "0.015", "the meter alone: {both}");
    let left_out = json!([{"device_id": "plug", "reason": "behind", "behind": "meter"}]);
    assert_eq!(both["left_out"], left_out, "{both}");
}

/// What a busy table does not answer, no dearer question asks again.
#[tokio::test]
async fn a_throttled_question_about_a_few_devices_reads_no_large_registry() {
    let bench = Bench::empty();
    let devices: Vec<String> = (0..150).map(|n| format!("d{n:03}")).collect();
    let readings: Vec<Reading> = devices.iter().map(|device| reading(device, 0, "r")).collect();
    bench.store(&readings).await;
    assert_eq!(bench.get("/devices/d001").await.status, 200);

    bench.clock.advance(Duration::from_secs(120));
    let before = bench.store.calls().reads;
    bench.store.fail_after(1, [StoreError::Throttled("busy".into())]);
    let answer = bench.get("/rooms/r/devices").await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, "2"), "{}", answer.text);
    assert_eq!(bench.store.calls().reads - before, 2, "the room and a page of its devices");

    // One device is still in memory.
    bench.store.fail_with([StoreError::Throttled("busy".into())]);
    let before = bench.store.calls().reads;
    assert_eq!(bench.get("/devices/d002").await.json()["device_id"], "d002");
    bench.store.fail_with([StoreError::Throttled("busy".into())]);
    assert_eq!(bench.get("/devices/unknown").await.status, 503);
    assert_eq!(bench.store.calls().reads - before, 2, "the device, twice");
    assert!(bench.log().contains(r#""registry.error""#), "{}", bench.log());
}

/// The item of one device is not what its key says: whoever asks for the device hears of it, whatever memory has, and
/// nobody else.
#[tokio::test]
async fn a_device_whose_item_cannot_be_read_is_not_hidden_by_memory() {
    let bench = Bench::empty();
    let readings: Vec<Reading> = (0..150).map(|n| reading(&format!("d{n:03}"), 0, "r")).collect();
    bench.store(&readings).await;
    assert_eq!(bench.get("/devices/d001").await.status, 200);

    bench.clock.advance(Duration::from_secs(120));
    let why = table::item::ItemError::Missing("first_seen");
    let item = table::UnreadableItem { pk: "DEVICE".to_owned(), sk: "d001".to_owned(), why };
    bench.store.fail_with([StoreError::Unreadable(item)]);
    let answer = bench.get("/devices/d001").await;
    assert_eq!(answer.status, 500, "{}", answer.text);
    assert!(answer.text.contains("An item of the table cannot be read."), "{}", answer.text);
    assert!(bench.log().contains("the item DEVICE d001"), "{}", bench.log());
    assert_eq!(bench.get("/devices/d002").await.status, 200);
}
