//! Writes rollups and stays to a file, and restores those that the table does not have. Folds nothing.
//!
//! Each line is an item in the form of AWS's own exports of a table, `{"Item": {"pk": {"S": ...}, ...}}`.

use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail, ensure};
use chrono::TimeDelta;
use domain::{Device, DeviceId, DeviceStay, Order, Stay, TimeRange, Timestamp, Zone};
use dynamodb::{DynamoStore, ItemJson};
use futures_util::future::try_join_all;
use indicatif::ProgressBar;
use rollups::{Registered, SeenRooms, named_by_rollup};
use serde::Deserialize;
use serde_json::value::to_raw_value;
use table::item::{self, Kind as _};
use table::{
    Expected, ReadConditionsSchema as _, ReadRollupState as _, ReadRollups as _, Session,
    StoredRollup,
};

use super::stays;
use crate::export::ExportFile;
use history::input::decompressed;
use history::text_lines::TextLines;

use crate::import::open_bytes;
use crate::output::{counted, print};
use crate::patience::{all_devices, patiently};
use crate::progress;

/// The time whose rollups of 15 minutes are read at once.
const WINDOW: TimeDelta = TimeDelta::days(64);
/// The number of rollups that are put at once.
const CONCURRENCY: usize = 16;
/// The maximum version of a rollup: no rollup is folded more often.
const MAX_VERSION: u64 = 1 << 53;

/// An item of the backup file.
enum Saved {
    Rollup(Box<StoredRollup>),
    Stay(DeviceStay),
}

/// The number of rollups and of stays.
#[derive(Debug, Default)]
pub(crate) struct Count {
    rollups: u64,
    stays: u64,
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

        // No quarter is older than both the oldest day and the first reading.
        let begin = days.iter().map(|day| day.range.from()).chain([devices[id].first_seen()]).min();
        let begin = begin.map_or(range.from(), |begin| begin.saturating_add(-TimeDelta::days(1)));
        let (mut at, end) = (range.from().max(begin), range.to().min(now));

        while let Ok(window) = TimeRange::new(at, at.saturating_add(WINDOW).min(end)) {
            let quarters =
                async |invocation: &_| store.quarters(id, window, true, invocation).await;
            write(patiently(quarters).await?)?;
            at = window.to();
        }
        write(days)?;
        bar.inc(1);
    }

    bar.finish_and_clear();
    Ok(count)
}

/// Restores the rollups of a file that the table does not have, and the stays before the table's first. A repetition
/// changes nothing.
pub(crate) async fn restore(
    store: &DynamoStore,
    path: &Path,
    now: Timestamp,
) -> anyhow::Result<()> {
    let devices = devices(store).await?;
    let indexing = patiently(async |invocation| store.indexing(invocation).await).await?;
    let (reader, bar) = open(path)?;
    let mut lines = TextLines::new(reader);

    let state = patiently(async |invocation| store.rollup_state(invocation).await).await?;
    let zone = state.map(|state| state.zone);

    let (mut restored, mut known, mut expired, mut of_other_zone) = (0, 0, 0, 0);
    let mut deviceless = 0;
    let mut stays_of: BTreeMap<DeviceId, Vec<Stay>> = BTreeMap::new();
    let seen = SeenRooms::default();
    let mut is_over = false;

    while !is_over {
        let mut batch = Vec::with_capacity(CONCURRENCY);
        while batch.len() < CONCURRENCY {
            let Some(saved) = next(&mut lines, path)? else {
                is_over = true;
                break;
            };
            let mut rollup = match saved {
                Saved::Rollup(rollup) => *rollup,
                Saved::Stay(of) => {
                    stays_of.entry(of.device).or_default().push(of.stay);
                    continue;
                }
            };
            if rollup.is_expired(now) {
                expired += 1;
                continue;
            }
            deviceless += u64::from(!devices.contains_key(&rollup.key.device));
            of_other_zone += u64::from(is_of_other_zone(&rollup, zone.as_deref()));
            // `settings` counts the changes of settings in the table that folded the rollup. It is lowered here, so
            // that a later fold with the settings of this table can replace the rollup.
            let settings =
                devices.get(&rollup.key.device).map_or(0, |device| device.fold_settings().number);
            rollup.settings = rollup.settings.min(settings);
            rollup.indexed = indexing.of(rollup.key.bucket, &rollup.rollup);
            batch.push(rollup);
        }

        let put = async |rollup: &StoredRollup| {
            patiently(async |invocation| {
                let named = named_by_rollup(rollup);
                let device = Registered { device: &rollup.key.device, settings: rollup.settings };
                let session = Session::new(store, invocation, now);
                seen.note(session, device, &named).await?;
                session.put_rollup(rollup, Expected::Absent).await
            })
            .await
        };

        for is_restored in try_join_all(batch.iter().map(put)).await? {
            *(if is_restored { &mut restored } else { &mut known }) += 1;
        }
        bar.set_message(counted(restored, "rollup"));
    }

    let (mut stays_restored, mut homeless) = (0, 0);
    for (id, stays) in &stays_of {
        stays_restored += stays::restore(store, id, stays).await?;
        homeless += if devices.contains_key(id) { 0 } else { stays.len() as u64 };
    }
    bar.finish_and_clear();
    let count = Count { rollups: restored, stays: u64::try_from(stays_restored)? };
    print(format_args!("{count} restored"));

    let zone = zone.unwrap_or_default();
    let days = counted(of_other_zone, "day");
    let (rollups, stays) = (counted(deviceless, "rollup"), counted(homeless, "stay"));
    for (count, said) in [
        (known, format!("{known} left as the table has them")),
        (expired, format!("{expired} have expired since")),
        (
            of_other_zone,
            format!(
                "{days} of the file are of another time zone than the table's, {zone}: no answer has them"
            ),
        ),
        (
            deviceless,
            format!(
                "{rollups} of devices that the table does not have: no answer has them until it has the devices"
            ),
        ),
        (
            homeless,
            format!(
                "{stays} left out: the table has no such device; the same command restores them when it has"
            ),
        ),
    ] {
        if count > 0 {
            print(said);
        }
    }

    Ok(())
}

/// Whether a rollup is a day in another time zone than the table's, if the table has one.
fn is_of_other_zone(rollup: &StoredRollup, zone: Option<&str>) -> bool {
    zone.is_some() && rollup.zone.is_some() && rollup.zone.as_deref() != zone
}

async fn devices(store: &DynamoStore) -> anyhow::Result<BTreeMap<DeviceId, Device>> {
    let devices = all_devices(store).await?;
    Ok(devices.into_iter().map(|device| (device.id().clone(), device)).collect())
}

/// Returns the next rollup or stay of a file; `None` at the end.
fn next(lines: &mut TextLines<impl BufRead>, path: &Path) -> anyhow::Result<Option<Saved>> {
    while let Some(read) = lines.read().with_context(|| path.display().to_string())? {
        let context = || format!("line {} of {}", lines.line, path.display());
        if let Err(refusal) = read {
            return Err(anyhow!(refusal.reason)).with_context(context);
        }
        if !lines.text.trim_ascii().is_empty() {
            return parse(&lines.text).with_context(context).map(Some);
        }
    }
    Ok(None)
}

fn open(path: &Path) -> anyhow::Result<(Box<dyn BufRead>, ProgressBar)> {
    let (raw, bar) = open_bytes(path)?;
    let reader = decompressed(raw).with_context(|| format!("cannot read {}", path.display()))?;
    Ok((reader, bar))
}

/// A line of the backup file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BackupLine {
    #[serde(rename = "Item")]
    item: ItemJson,
}

fn parse(text: &[u8]) -> anyhow::Result<Saved> {
    let BackupLine { item: ItemJson(item) } =
        serde_json::from_slice(text).context("is not an item of rollups or stays")?;
    if let Ok(of) = item::read(item.clone()) {
        return Ok(Saved::Stay(of));
    }

    let rollup: StoredRollup = item::read(item)?;
    // Later folds increment the version.
    ensure!(rollup.version < MAX_VERSION, "ver: is {}, at most {MAX_VERSION}", rollup.version);
    Ok(Saved::Rollup(Box::new(rollup)))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use serde_json::{Value, json};

    use super::*;

    const QUARTER: &str = r#"{"Item":{"exp":{"N":"1893456000"},"m":{"M":{"t":{"L":[{"N":"1"},{"S":"1.0000000000000000000000000000000000000001e20"},{"N":"1"},{"N":"2"},{"N":"1"},{"N":"0"},{"N":"2"},{"N":"60000"}]}}},"pk":{"S":"ROLLUP#d"},"rooms":{"L":[{"S":""},{"S":"r"}]},"settings":{"N":"2"},"sk":{"S":"M15#2026-01-11T16:00:00.000Z"},"ver":{"N":"3"}}}"#;

    #[test]
    fn a_line_without_an_end_is_refused() {
        let mut lines =
            TextLines::new(std::io::BufReader::new(std::io::repeat(b'a').take(9 << 20)));
        let error = next(&mut lines, Path::new("r.ndjson")).err().expect("refused");
        assert_eq!(format!("{error:#}"), "line 1 of r.ndjson: is longer than 8388608 bytes");
    }

    #[test]
    fn a_version_from_which_no_fold_can_count_on_is_refused() {
        let last = QUARTER.replace(r#""ver":{"N":"3"}"#, r#""ver":{"N":"18446744073709551615"}"#);
        let error = parse(last.as_bytes()).err().expect("refused");
        assert_eq!(error.to_string(), "ver: is 18446744073709551615, at most 9007199254740992");
    }

    #[test]
    fn a_line_is_the_item_and_back() {
        let Saved::Rollup(rollup) = parse(QUARTER.as_bytes()).unwrap() else { panic!("a rollup") };
        assert_eq!((rollup.version, rollup.settings), (3, 2));
        assert_eq!(json!({"Item": ItemJson(rollup.item())}).to_string(), QUARTER);
        assert!(!is_of_other_zone(&rollup, Some("UTC")), "15 minutes are of no zone");
    }

    #[test]
    fn a_day_of_another_time_zone_is_noticed() {
        let Saved::Rollup(mut rollup) = parse(QUARTER.as_bytes()).unwrap() else {
            panic!("a rollup")
        };
        rollup.zone = Some("Europe/Berlin".to_owned());
        assert!(is_of_other_zone(&rollup, Some("UTC")));
        assert!(!is_of_other_zone(&rollup, Some("Europe/Berlin")));
        assert!(!is_of_other_zone(&rollup, None), "the table has no days yet");
    }

    #[test]
    fn a_stay_is_the_item_of_its_device() {
        let text = r#"{"Item":{"pk":{"S":"STAYS_OF#d"},"room":{"S":"r"},"sk":{"S":"2026-01-11T16:00:00.000Z"}}}"#;
        let text = text.replace("\"room\"", &format!("{:?}", item::attribute::STAY_ROOM));
        let Saved::Stay(of) = parse(text.as_bytes()).unwrap() else { panic!("a stay") };
        assert_eq!((of.device.as_str(), of.stay.room.as_str(), of.stay.until), ("d", "r", None));
        let item = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let [written, _] = item::from_stay(&of);
        assert_eq!(json!({"Item": ItemJson(written)}), item(&text));
    }

    #[test]
    fn anything_else_is_refused_with_the_reason() {
        for (text, why) in [
            ("{", "is not an item of rollups or stays"),
            (r#"{"device_id": "d"}"#, "is not an item of rollups or stays"),
            (r#"{"Item": {"pk": 1}}"#, "expected an attribute's value"),
            (r#"{"Item": {"pk": {"B": "AA=="}}}"#, "pk"),
            (r#"{"Item": {"pk": {"S": "d"}, "sk": {"S": "TS#2026-01-11T16:00:00.000Z"}}}"#, "TS#"),
        ] {
            let error = format!("{:#}", parse(text.as_bytes()).err().unwrap());
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
