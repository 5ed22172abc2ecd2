//! Which devices were seen in which rooms: noted before a rollup, and with the stream.

use domain::{MAX_ROLLUP_ROOMS, Month};
use table::{LookUpRegistry as _, MarkDeletions as _, RemoveBelongings as _, StoreError};

use super::*;

fn in_room(device: &str, at: Timestamp, room: &str) -> Reading {
    given::reading(device, at, Some(room), &[("cumulative_kwh_p", "1")])
}

impl Bench {
    /// Stores a reading that names a room; its record.
    async fn write_in(&self, device: &str, minute: i64, room: &str) -> Value {
        let reading = in_room(device, at_minute(minute), room);
        self.store.put_readings(&[reading], None, &self.invocation).await;
        let mut record = record("INSERT", device, minute);
        record["dynamodb"]["NewImage"]["room"] = json!({"S": room});
        record
    }

    /// Device, room, first and last month of all that is noted.
    fn noted(&self) -> Vec<(String, String, String)> {
        let seen = self.store.all_seen().into_iter();
        let months = |first: Month, last: Month| format!("{first} to {last}");
        seen.map(|it| (it.device.to_string(), it.room.to_string(), months(it.first, it.last)))
            .collect()
    }

    /// Deletes a device with all that it has.
    async fn delete_device(&self, device: &str, minute: i64) {
        let (id, now) = (given::device(device), at_minute(minute));
        self.store.begin_deletion(&id, now, &self.invocation).await.expect("memory");
        let all = self.store.belongings(&id, 1_000, &self.invocation).await.expect("memory");
        self.store.remove_belongings(&all.found, &self.invocation).await;
        let deletion = self.store.deletion(&id, &self.invocation).await.expect("memory");
        let deletion = deletion.expect("it is marked");
        let ended = self.store.end_deletion(&id, &deletion, now, &self.invocation).await;
        assert!(ended.expect("memory"));
    }
}

fn row(device: &str, room: &str, months: &str) -> (String, String, String) {
    (device.to_owned(), room.to_owned(), months.to_owned())
}

#[tokio::test]
async fn a_room_is_noted_before_the_rollup_and_once_in_a_month() {
    let bench = Bench::new().await;
    let record = bench.write_in("d", -30, "hall").await;
    // State, devices, the rollup, its readings, what is noted: then the put of it fails.
    bench.store.fail_registry_writes_with([StoreError::Unavailable("busy".into())]);
    assert_eq!(bench.deliver(std::slice::from_ref(&record)).await, Some(0));
    assert_eq!((bench.quarter("d", -30), bench.noted()), (None, Vec::new()));
    bench.deliver(&[record]).await;
    assert_eq!(bench.noted(), [row("d", "hall", "2026-01 to 2026-01")]);
    assert!(bench.quarter("d", -30).is_some());

    let writes = || bench.store.calls().registry_writes;
    let before = writes();
    let same = bench.write_in("d", -29, "hall").await;
    bench.deliver(&[same]).await;
    assert_eq!(writes() - before, 1, "the rollup alone");
    let months = [(-60_000, "2025-12 to 2026-01"), (-200_000, "2025-08 to 2026-01")];
    for (minute, months) in months {
        let other = bench.write_in("d", minute, "hall").await;
        bench.deliver(&[other]).await;
        assert_eq!(bench.noted(), [row("d", "hall", months)]);
    }
}

#[tokio::test]
async fn a_reading_that_is_left_to_the_sweep_is_noted_with_the_stream() {
    let bench = Bench::new().await;
    let records = [bench.write_in("d", 0, "hall").await, bench.write_in("d", 1, "attic").await];
    bench.deliver(&records).await;
    assert_eq!(bench.quarter("d", 0), None);
    let both = [row("d", "attic", "2026-01 to 2026-01"), row("d", "hall", "2026-01 to 2026-01")];
    assert_eq!(bench.noted(), both);
    let before = bench.store.calls();
    bench.deliver(&records).await;
    let state_read = table::memory_db::Calls { reads: before.reads + 1, ..before };
    assert_eq!(bench.store.calls(), state_read, "an instance asks once who was in which room");

    // What is remembered of a device that was deleted counts for six hours, until the sweep notes its rooms.
    let all = bench.store.belongings(&device("d"), 100, &bench.invocation).await.expect("memory");
    bench.store.remove_belongings(&all.found, &bench.invocation).await;
    assert_eq!(bench.noted(), []);
    bench.clock.set(at_minute(361));
    let again = bench.write_in("d", 360, "hall").await;
    bench.deliver(&[again]).await;
    assert_eq!(bench.noted(), [row("d", "hall", "2026-01 to 2026-01")]);
}

#[tokio::test]
async fn the_rooms_of_a_device_that_was_deleted_and_has_come_again_are_noted_again() {
    let bench = Bench::new().await;
    for life in 1..=3 {
        bench.register("d").await;
        let record = bench.write_in("d", -30, "hall").await;
        bench.deliver(&[record]).await;
        assert!(bench.quarter("d", -30).is_some(), "{life}");
        assert_eq!(bench.noted(), [row("d", "hall", "2026-01 to 2026-01")], "{life}");
        bench.delete_device("d", life).await;
        assert_eq!((bench.quarter("d", -30), bench.noted()), (None, Vec::new()), "{life}");
    }
}

#[tokio::test]
async fn all_rooms_of_a_quarter_are_noted_however_many_a_rollup_names() {
    let bench = Bench::new().await;
    let many = i64::try_from(MAX_ROLLUP_ROOMS).expect("small") + 9;
    let second = |n| at_minute(-30).saturating_add(TimeDelta::seconds(n));
    let readings: Vec<Reading> =
        (0..many).map(|n| in_room("d", second(n), &format!("room-{n:02}"))).collect();
    bench.store.put_readings(&readings, None, &bench.invocation).await;
    bench.deliver(&[record("INSERT", "d", -30)]).await;
    assert_eq!(bench.quarter("d", -30).expect("folded").rollup.rooms.len(), MAX_ROLLUP_ROOMS);
    assert_eq!(bench.noted().len(), readings.len());
}
