//! How often a question asks the table. A store that answers right may still ask once a reading.

use shared::domain::Order;
use shared::store::dynamodb::DynamoStore;
use shared::store::{PutReadings as _, QueryReadings as _, RangeQuery};

use super::proxy::Proxy;
use crate::engine::Engine;
use crate::given::{always, budget, device, reading_in, room};

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
