//! The registry where memory and the table differ. All else of homes is in `tests/cases/homes.txt`.

use super::*;

#[tokio::test]
async fn a_home_that_another_instance_knows_is_found() {
    let bench = Bench::house("of two homes").await;
    assert_eq!(bench.get("/homes/new/rooms").await.status, 404);
    let body = r#"{"home": "new"}"#;
    assert_eq!(bench.again().patch("/rooms/attic", body).await.status, 200);
    assert_eq!(bench.get("/homes/new/rooms").await.rows()[0]["room_id"], "attic");
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
