//! Pages of the registry over one partition or several, and tables whose number of partitions is another.

use std::collections::BTreeSet;
use std::error::Error as _;

use domain::{Device, DeviceObservation, Room};
use futures_util::future::join_all;
use table::{
    FindRegistry as _, ListDevices as _, LookUpRegistry as _, ReadRegistry as _, ReadShards as _,
    RegisterDevices as _, StoreError, StoreResult,
};

use super::Ports;
use super::registry::registered;
use crate::engine::Table;
use crate::given::{answer, at, device, device_of, invocation, reading_in, room};

/// Ids of several kinds, in no order.
fn ids(number: u32) -> impl Iterator<Item = String> {
    (0..number).map(|n| match n % 3 {
        0 => format!("sensor-{:04}", n * 7_919 % 10_000),
        1 => format!("A4:CF:12:{:02X}:{:02X}:00", n / 256, n % 256),
        _ => n.to_string(),
    })
}

pub(super) async fn pages_hold_every_device_once_and_in_order(store: &impl Ports) {
    let mut known: BTreeSet<String> = BTreeSet::new();
    for id in ids(90) {
        registered(store, &id).await;
        known.insert(id);
    }
    for (round, limit) in [1, 7, 30, 89, 90, 500].into_iter().enumerate() {
        let mut found: Vec<String> = Vec::new();
        let mut after = None;
        loop {
            let page = answer!(store.device_page(after.as_ref(), limit));
            assert!(page.listing.found.len() <= limit && page.listing.unreadable.is_empty());
            found.extend(page.listing.found.iter().map(|device| device.id().to_string()));
            if !page.has_more {
                break;
            }
            assert_eq!(page.listing.found.len(), limit, "a page is full unless it is the last");
            after = page.listing.found.last().map(|device| device.id().clone());
            if found.len() / limit == 2 {
                // A device that is registered during the walk is met if it sorts behind the page.
                let new = ["0-new-", "z-new-"].map(|prefix| format!("{prefix}{round}"));
                for new in &new {
                    registered(store, new).await;
                }
                known.insert(new[1].clone());
            }
        }
        assert_eq!(found, known.iter().cloned().collect::<Vec<_>>(), "{limit}");
        let all = answer!(store.devices()).found;
        known = all.iter().map(|device| device.id().to_string()).collect();
        assert_eq!(all, answer!(store.all_devices()).found);
    }
    let past = answer!(store.device_page(Some(&device("zz")), 5));
    assert!(past.listing.found.is_empty() && !past.has_more);
}

pub(super) async fn pages_hold_every_room_once_and_in_order(store: &impl Ports) {
    let mut known: BTreeSet<String> = BTreeSet::new();
    for id in ids(20) {
        let new = Room::new(room(&id), at(0));
        answer!(store.register_room(&new));
        known.insert(id);
    }
    for limit in [1, 7, 19, 20, 21] {
        let mut found: Vec<String> = Vec::new();
        let mut after = None;
        loop {
            let page = answer!(store.room_page(after.as_ref(), limit));
            found.extend(page.listing.found.iter().map(|room| room.id.to_string()));
            if !page.has_more {
                break;
            }
            after = page.listing.found.last().map(|room| room.id.clone());
        }
        assert_eq!(found, known.iter().cloned().collect::<Vec<_>>(), "{limit}");
    }
}

/// Without the index by room the list does not exist.
pub(super) async fn a_rooms_devices_are_a_list_of_their_own(store: &impl Ports) {
    let mut here: BTreeSet<String> = BTreeSet::new();
    // Ids on both sides of the keys of readings, which begin with TS#.
    for (n, id) in ["A", "TR", "TS", "TS-1", "TS.2", "TT", "a", "b"].into_iter().enumerate() {
        let named = if n % 4 == 3 { "room-b" } else { "room-a" };
        let reading = reading_in(id, 0, named);
        store.put_readings(std::slice::from_ref(&reading), None, &invocation()).await;
        let new = device_of([&reading]);
        answer!(store.register_device(&new));
        if named == "room-a" {
            here.insert(id.to_owned());
        }
    }
    for limit in [1, 2, 5, 6, 7] {
        let mut found: Vec<Device> = Vec::new();
        loop {
            let after = found.last().map(Device::id);
            let page = store.room_device_page(&room("room-a"), after, limit, &invocation()).await;
            let Some(page) = page.expect("read") else { return };
            found.extend(page.listing.found);
            if !page.has_more {
                break;
            }
        }
        let ids: Vec<_> = found.iter().map(|device| device.id().to_string()).collect();
        assert_eq!(ids, here.iter().cloned().collect::<Vec<_>>(), "{limit}");
    }
}

fn refused<T: std::fmt::Debug>(result: StoreResult<T>, [made, set]: [u64; 2]) {
    let error = result.expect_err("another number");
    assert!(matches!(error, StoreError::Refused(_)), "{error:?}");
    let why = error.source().expect("a cause").to_string();
    assert!(why.contains(&format!("is {set}, ")) && why.contains(&format!(" in {made} ")), "{why}");
}

pub(super) async fn another_number_of_shards_is_refused(table: &Table) {
    // The table that is asked has one partition, which needs no item that says so.
    registered(&table.store(), "d").await;
    for (made, table) in [(1, table), (4, &table.another().await)] {
        if made > 1 {
            registered(&table.store_with_shards(made), "d").await;
        }
        for set in [1, 2, 4].into_iter().filter(|set| *set != made) {
            let store = || table.store_with_shards(set);
            let (one, new) = (device("d"), DeviceObservation::of(&reading_in("e", 0, "room-a")));
            let new = new.new_device(device("e"), |_| true);
            let (ids, invocation) = ([one.clone()], &invocation());
            refused(store().devices(invocation).await.map(drop), [made, set]);
            refused(store().all_devices(invocation).await.map(drop), [made, set]);
            refused(store().device_page(Some(&one), 9, invocation).await.map(drop), [made, set]);
            refused(store().device(&one, invocation).await, [made, set]);
            refused(store().find_devices(&ids, invocation).await.map(drop), [made, set]);
            if set > 1 {
                refused(store().register_device(&new, invocation).await.map(drop), [made, set]);
            }
            refused(store().check_shards(invocation).await, [made, set]);
        }
        let store = table.store_with_shards(made);
        assert_eq!(answer!(store.devices()).found.len(), 1);
        let stored = answer!(store.stored_shards()).expect("a number");
        assert_eq!(u64::from(stored.number()), made);
    }
}

pub(super) async fn of_numbers_at_once_one_is_first(table: &Table) {
    let opened = [2, 3, 4, 5, 2, 3].map(|number| (number, table.store_with_shards(number)));
    assert_eq!(opened[0].1.stored_shards(&invocation()).await.expect("read"), None);
    let registering = opened.iter().map(|(number, store)| async move {
        let reading = reading_in("d", 0, "room-a");
        let new = device_of([&reading]);
        (*number, store.register_device(&new, &invocation()).await)
    });
    let results = join_all(registering).await;
    let stored = opened[0].1.stored_shards(&invocation()).await.expect("read").expect("a number");
    for (number, result) in results {
        assert_eq!(result.is_ok(), number == u64::from(stored.number()), "{result:?}");
    }
}
