//! Writes rollups and stays to a file. Folds nothing.
//!
//! Each line is an item in the form of AWS's own exports of a table, `{"Item": {"pk": {"S": ...}, ...}}`.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::bail;
use chrono::TimeDelta;
use domain::{Device, DeviceId, Order, TimeRange, Timestamp, Zone};
use dynamodb::{DynamoStore, ItemJson};
use serde_json::value::to_raw_value;
use table::item::{self, Kind as _};
use table::{ReadRollups as _, StoredRollup};

use super::stays;
use crate::export::ExportFile;
use crate::output::counted;
use crate::patience::{all_devices, patiently};
use crate::progress;

/// The time whose rollups of 15 minutes are read at once.
const WINDOW: TimeDelta = TimeDelta::days(64);

/// The number of rollups and of stays.
#[derive(Debug, Default)]
pub(crate) struct Count {
    pub(super) rollups: u64,
    pub(super) stays: u64,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and {}", counted(self.rollups, "rollup"), counted(self.stays, "stay"))
    }
}

/// Writes the rollups and stays of devices in a range; of all devices if none is named. Returns their numbers.
pub(crate) async fn export(
    store: &DynamoStore,
    only: &[DeviceId],
    range: TimeRange,
    now: Timestamp,
    file: &mut ExportFile,
) -> anyhow::Result<Count> {
    let devices = devices(store).await?;
    if let Some(unknown) = only.iter().find(|id| !devices.contains_key(id)) {
        bail!("there is no device {:?}", unknown.to_string());
    }

    let meant = |id: &&DeviceId| only.is_empty() || only.contains(id);
    let meant: Vec<&DeviceId> = devices.keys().filter(meant).collect();
    let bar = progress::bar(meant.len() as u64, "  {bar:40} {pos} of {len}  {msg}  {left}")?;
    let mut count = Count::default();

    for id in meant {
        for stay in stays::of_device(store, id, range).await? {
            let [of_device, _] = item::from_stay(&stay);
            file.describe("Item", &to_raw_value(&ItemJson(of_device))?)?;
            count.stays += 1;
        }

        let mut write = |rollups: Vec<StoredRollup>| {
            for mut rollup in rollups.into_iter().filter(|rollup| !rollup.is_expired(now)) {
                // The file's target may have another schema, or no index.
                rollup.indexed = None;
                file.describe("Item", &to_raw_value(&ItemJson(rollup.item()))?)?;
                count.rollups += 1;
            }
            bar.set_message(count.to_string());
            anyhow::Ok(())
        };

        // The days of the rollups may be in another time zone, so the range may include a day too much, which does no
        // harm.
        let dates = Zone::UTC.dates(range);
        let days = patiently(async |invocation| {
            store.days(id, dates.clone(), Order::Ascending, usize::MAX - 1, invocation).await
        });
        let days = days.await?;

        // Quarters before the oldest day and the first reading are read at once: there are some only after a part of a
        // file was restored.
        let begin = days.iter().map(|day| day.range.from()).chain([devices[id].first_seen()]).min();
        let begin = begin.map_or(range.from(), |begin| begin.saturating_add(-TimeDelta::days(1)));
        let (mut at, end) = (range.from(), range.to().min(now));
        let mut until = if begin > at { begin } else { at.saturating_add(WINDOW) };
        while let Ok(window) = TimeRange::new(at, until.min(end)) {
            let quarters =
                async |invocation: &_| store.quarters(id, window, true, invocation).await;
            write(patiently(quarters).await?)?;
            (at, until) = (until, until.saturating_add(WINDOW));
        }
        write(days)?;
        bar.inc(1);
    }

    bar.finish_and_clear();
    Ok(count)
}

/// All devices of the table, by id.
pub(super) async fn devices(store: &DynamoStore) -> anyhow::Result<BTreeMap<DeviceId, Device>> {
    let devices = all_devices(store).await?;
    Ok(devices.into_iter().map(|device| (device.id().clone(), device)).collect())
}
