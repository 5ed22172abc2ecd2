//! What lists cost that memory does not hold. Measures no time.

use table::{ListDevices as _, PageRegistry as _, ReadShards as _};

use super::{Row, TwoTables, costs, device_name};
use crate::given::{device, room};

pub(super) async fn rows(tables: &TwoTables) -> Vec<Row> {
    let store = &tables.with_index;
    vec![
        costs(
            "2e",
            "a page of devices behind one, of each partition its share",
            async |invocation| {
                let after = device(&device_name(2));
                let page = store.device_page(Some(&after), 5, invocation).await.expect("read");
                assert!(page.listing.found.len() == 5 && page.has_more);
            },
        )
        .await,
        costs(
            "2f",
            "the 5 devices of a room, of a registry that memory does not hold",
            async |invocation| {
                let here = room("chiyoda1-a");
                let page = store.room_device_page(&here, None, 100, invocation).await;
                assert_eq!(page.expect("read").expect("an index").listing.found.len(), 5);
            },
        )
        .await,
        costs(
            "2g",
            "in how many partitions the devices are, once in a process",
            async |invocation| {
                let stored = store.stored_shards(invocation).await.expect("read");
                assert_eq!(stored.expect("devices").number(), 1);
            },
        )
        .await,
    ]
}
