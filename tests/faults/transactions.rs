//! Transactions that the table is too busy for: each is repeated as any other request is, and says in the end what it met.

use std::time::Duration;

use dynamodb::DynamoStore;
use runtime::clock::Deadline;
use serde_json::json;
use table::{
    Belonging, Expected, IndexDevices as _, Invocation, LookUpRegistry as _, NoteSeen as _,
    RemoveBelongings as _, Seen, StoreError, StoreResult,
};

use super::proxy::{Fault, Proxy};
use crate::engine::{Engine, Table};
use crate::given::{at, device, room};

/// More often than the SDK repeats a request by itself.
const BUSY_TIMES: usize = 6;

/// A table with a device whose value is in no index, and a proxy that spoils the first transactions.
async fn busy(fault: Fault, mut times: usize) -> (Table, Proxy) {
    let table = Engine::embedded().await.table(true).await;
    table
        .put_item(json!({
            "pk": {"S": table.layout().device_key(&device("d")).pk()}, "sk": {"S": "d"},
            "first_seen": {"S": at(0).to_string()}, "name": {"S": "A name"}, "metrics": {"M": {}},
        }))
        .await;
    let proxy = Proxy::start(table.endpoint(), move |call| {
        if call.operation != "TransactWriteItems" || times == 0 {
            return None;
        }
        times -= 1;
        Some(fault)
    })
    .await;
    (table, proxy)
}

async fn index(store: &DynamoStore, invocation: &Invocation) -> StoreResult<usize> {
    let found = store.device(&device("d"), invocation).await?.expect("a device");
    store.index_device(&found, invocation).await
}

#[tokio::test]
async fn each_transaction_is_repeated_while_there_is_patience() {
    for fault in [
        Fault::Throttled,
        Fault::Cancelled("ThrottlingError"),
        Fault::Cancelled("ProvisionedThroughputExceeded"),
        Fault::Cancelled("TransactionConflict"),
    ] {
        let seen = Seen::begun(room("room-a"), device("d"), "2026-03".parse().expect("a month"));
        let seen_of_d = [Belonging::of_seen(&device("d"), &room("room-a"))];
        let invocation = Invocation::until(Deadline::after(Duration::from_secs(30)));

        let (table, proxy) = busy(fault, BUSY_TIMES).await;
        let store = table.store_by_way_of(proxy.url());
        assert_eq!(index(&store, &invocation).await.expect("stored"), 1, "{fault:?}");

        let (table, proxy) = busy(fault, BUSY_TIMES).await;
        let store = table.store_by_way_of(proxy.url());
        let noted = store.put_seen(&seen, Expected::Absent, &invocation).await;
        assert!(noted.expect("stored"), "{fault:?}");

        let (table, proxy) = busy(fault, BUSY_TIMES).await;
        let direct = table.store();
        assert!(direct.put_seen(&seen, Expected::Absent, &invocation).await.expect("stored"));
        let store = table.store_by_way_of(proxy.url());
        let removed = store.remove_belongings(&seen_of_d, &invocation).await;
        assert!(removed.not_stored.is_empty(), "{fault:?}: {removed:?}");
        let left = direct.seen(&room("room-a"), &device("d"), &invocation).await;
        assert_eq!(left.expect("read"), None, "{fault:?}");
    }
}

#[tokio::test]
async fn a_transaction_says_whether_the_table_was_busy_or_an_edit_was_faster() {
    let soon = || Invocation::until(Deadline::after(Duration::from_secs(2)));

    let (table, proxy) = busy(Fault::Cancelled("ThrottlingError"), usize::MAX).await;
    let invocation = soon();
    let outcome = index(&table.store_by_way_of(proxy.url()), &invocation).await;
    assert!(matches!(outcome, Err(StoreError::Throttled(_))), "{outcome:?}");
    assert!(invocation.write_units() > 0.0, "a cancelled transaction costs its units");

    let (table, proxy) = busy(Fault::Cancelled("ConditionalCheckFailed"), usize::MAX).await;
    let outcome = index(&table.store_by_way_of(proxy.url()), &soon()).await;
    assert!(matches!(outcome, Err(StoreError::Contended(_))), "{outcome:?}");
}
