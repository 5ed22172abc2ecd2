//! How often a question asks the table, and for how much. A store that answers right may still ask once
//! a reading.

use shared::domain::{DeviceId, Order};
use shared::store::dynamodb::DynamoStore;
use shared::store::{Position, PutReadings as _, QueryReadings as _, RangeQuery};

use super::proxy::Proxy;
use crate::engine::Engine;
use crate::given::{always, at, budget, device, reading_in, room};

#[tokio::test]
async fn a_room_without_its_index_does_not_ask_once_a_reading() {
    let table = Engine::embedded().await.table(false).await;
    // The device was elsewhere for a long time.
    let mut readings: Vec<_> = (1..1_000).map(|n| reading_in("d", n, "room-b")).collect();
    readings.extend([0, 1_000].map(|n| reading_in("d", n, "room-a")));
    assert!(table.store().put_readings(&readings, None, &budget()).await.unstored.is_empty());

    let proxy = Proxy::start(table.endpoint(), |_| None).await;
    let store = DynamoStore::connect(&table.config_by_way_of(proxy.url()));
    for limit in [1, 2, 100] {
        let query = RangeQuery {
            range: always(),
            order: Order::Ascending,
            after: None,
            limit,
            consistent: false,
        };
        let page = store.room_readings(&room("room-a"), &[device("d")], &query, &budget()).await;
        assert_eq!(page.expect("read").readings.len(), limit.min(2));
        let asked = proxy.take_operations().len();
        assert!(asked <= 12, "{asked} requests for {limit} readings");
    }
}

/// Twenty devices with 400 readings each: a page that held them all in memory would cost as much as 20
/// pages.
#[tokio::test]
async fn a_room_without_its_index_reads_little_more_than_its_page() {
    let table = Engine::embedded().await.table(false).await;
    let ids: Vec<DeviceId> = (0..20).map(|n| device(&format!("d{n:02}"))).collect();
    let mut readings = Vec::new();
    for (n, id) in (0..).zip(&ids) {
        // Some measure ten times as often as others.
        let every = if n < 5 { 100 } else { 1_000 };
        readings.extend((0..400).map(|i| reading_in(id.as_str(), i * every + n, "room-a")));
    }
    assert!(table.store().put_readings(&readings, None, &budget()).await.unstored.is_empty());
    readings.sort_by_key(Position::of);

    let proxy = Proxy::start(table.endpoint(), |_| None).await;
    let store = DynamoStore::connect(&table.config_by_way_of(proxy.url()));
    let after = Position { at: at(20_000), device: device("d07") };
    for (order, after) in [
        (Order::Ascending, None),
        (Order::Descending, None),
        (Order::Ascending, Some(after.clone())),
        (Order::Descending, Some(after)),
    ] {
        let mut left = readings.clone();
        if order == Order::Descending {
            left.reverse();
        }
        if let Some(after) = &after {
            left.retain(|reading| (Position::of(reading) > *after) == (order == Order::Ascending));
            left.retain(|reading| Position::of(reading) != *after);
        }
        let query = RangeQuery { range: always(), order, after, limit: 200, consistent: false };
        let budget = budget();
        let page = store.room_readings(&room("room-a"), &ids, &query, &budget).await.expect("read");
        assert_eq!((&page.readings[..], page.has_more), (&left[..200], true), "{order:?}");
        let asked = proxy.take_operations().len();
        // One page of 200 readings would be 2 units; each device costs half a unit at the least.
        assert!(budget.read_units() <= 15.0, "{order:?}: {} units", budget.read_units());
        assert!(asked <= 30, "{order:?}: {asked} requests");
    }
}
