//! The stays of a backup: those that a table has, and older ones from a file. Reads no file.

use anyhow::bail;
use domain::{Device, DeviceId, DeviceStay, Stay, TimeRange, Timestamp};
use table::{
    FindRegistry, MAX_RESTORED_STAYS, ReadStays, RestoreStays, StayKey, StayQuery, UpdateOutcome,
};

use crate::patience::patiently;

/// The number of stays that are read at once.
const PAGE: usize = 1_000;
/// The maximum number of times that a device is read again because it has changed meanwhile.
const MAX_CHANGES: usize = 5;

/// Returns the stays of a device that overlap a range.
pub(super) async fn of_device(
    store: &impl ReadStays,
    device: &DeviceId,
    range: TimeRange,
) -> anyhow::Result<Vec<DeviceStay>> {
    let mut query = StayQuery { range, after: None, limit: PAGE };
    let mut stays = Vec::new();
    loop {
        let page = patiently(async |invocation| store.stays_of(device, &query, invocation).await);
        let page = page.await?;
        query.after = page.items.last().map(StayKey::of);
        stays.extend(page.items);
        if !page.has_more {
            return Ok(stays);
        }
    }
}

/// Restores a device's stays that are older than those of the table. Returns their number. An interrupted restore can
/// be repeated, because the newest stays come first.
pub(super) async fn restore(
    store: &(impl ReadStays + RestoreStays + FindRegistry),
    id: &DeviceId,
    stays: &[Stay],
) -> anyhow::Result<usize> {
    let ids = [id.clone()];
    let always = TimeRange::new(Timestamp::MIN, Timestamp::MAX)?;
    let mut restored = 0;
    for _ in 0..MAX_CHANGES {
        let found = patiently(async |invocation| store.find_devices(&ids, invocation).await);
        let Some(mut device) = found.await?.found.pop() else { return Ok(restored) };
        let first = of_device(store, id, always).await?.first().map(|of| of.stay.since);
        let mut missing = missing(&device, stays, first);
        loop {
            if missing.is_empty() {
                return Ok(restored);
            }
            let some = missing.split_off(missing.len().saturating_sub(MAX_RESTORED_STAYS));
            let put =
                patiently(async |invocation| store.restore_stays(&device, &some, invocation).await);
            match put.await? {
                UpdateOutcome::Updated(now) => (device, restored) = (now, restored + some.len()),
                UpdateOutcome::ConditionFailed(_) => break,
            }
        }
    }

    bail!("the device {id} keeps changing; run the command again")
}

/// Returns the stays that are missing in the table. `first` is the start of the table's first stay; missing stays begin
/// earlier, and are cut off there. A stay without an end is missing only if the device is in that room now.
fn missing(device: &Device, stays: &[Stay], first: Option<Timestamp>) -> Vec<Stay> {
    let cut = |stay: &Stay| match first {
        Some(first) if stay.until.is_none_or(|until| until > first) => stay.ended(first),
        _ => stay.clone(),
    };
    let is_known = |stay: &Stay| first.is_some_and(|first| stay.since >= first);
    let is_there = |stay: &Stay| stay.until.is_some() || device.place().room() == Some(&stay.room);
    let mut missing: Vec<Stay> =
        stays.iter().filter(|stay| !is_known(stay)).map(cut).filter(is_there).collect();
    missing.sort_by_key(|stay| stay.since);
    missing
}

#[cfg(test)]
mod tests {
    use domain::given::{self, at_minute, metric, number, stay};
    use domain::{DeviceObservation, Reading};
    use table::given::invocation;
    use table::memory_db::MemoryDb;
    use table::{RegisterDevices as _, StoreError, UpdateRegistry as _};

    use super::*;

    async fn registered(room: &str) -> (MemoryDb, Device) {
        let store = MemoryDb::default();
        let metrics = [(metric("t"), number("1"))];
        let room = Some(room.parse().unwrap());
        let reading =
            Reading::new(given::device("d"), at_minute(500), room, metrics.into()).unwrap();
        let device = DeviceObservation::of(&reading).new_device(given::device("d"), |_| true);
        store.register_device(&device, &invocation()).await.unwrap();
        (store, device)
    }

    async fn history(store: &MemoryDb) -> Vec<Stay> {
        let always = given::always();
        let stays = of_device(store, &given::device("d"), always).await.unwrap();
        stays.into_iter().map(|of| of.stay).collect()
    }

    /// More than one transaction of it.
    fn backup() -> Vec<Stay> {
        let many = i64::try_from(MAX_RESTORED_STAYS).unwrap() + 10;
        let mut stays: Vec<_> = (0..many).map(|n| stay("a", n, Some(n + 1))).collect();
        stays.push(stay("b", many, None));
        stays
    }

    #[tokio::test]
    async fn history_comes_before_what_the_table_has_learned_since() {
        let (store, device) = registered("b").await;
        let learned = stay("b", 500, None);
        store.begin_stay(&device, &learned, &invocation()).await.unwrap();
        let mut expected = backup();
        let last = expected.len() - 1;
        expected[last] = expected[last].ended(at_minute(500));
        expected.push(learned);
        for restored in [last + 1, 0] {
            assert_eq!(restore(&store, device.id(), &backup()).await.unwrap(), restored);
            assert_eq!(history(&store).await, expected);
        }
    }

    #[tokio::test]
    async fn an_interrupted_restore_goes_on() {
        let (store, device) = registered("b").await;
        let failure = || StoreError::Refused("on demand".into());
        store.fail_registry_writes_with([failure()]);
        restore(&store, device.id(), &backup()).await.unwrap_err();
        store.fail_after(3, [failure()]);
        restore(&store, device.id(), &backup()).await.unwrap_err();
        assert_eq!(history(&store).await.len(), MAX_RESTORED_STAYS, "the newest");
        restore(&store, device.id(), &backup()).await.unwrap();
        assert_eq!(history(&store).await, backup());
    }

    #[tokio::test]
    async fn a_stay_that_lasts_is_that_of_a_device_in_its_room() {
        let (store, device) = registered("elsewhere").await;
        let ended = backup().len() - 1;
        assert_eq!(restore(&store, device.id(), &backup()).await.unwrap(), ended);
        assert_eq!(history(&store).await, backup()[..ended]);
        let unknown = "unknown".parse().unwrap();
        assert_eq!(restore(&store, &unknown, &backup()).await.unwrap(), 0);
    }
}
