//! Restores the rollups and stays of a file that `backup` wrote, as far as the table does not have
//! them. Folds nothing.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail, ensure};
use chrono::TimeDelta;
use domain::{
    Device, DeviceId, DeviceStay, Exact, MetricRollup, OfKind, Stay, TimeRange, Timestamp,
};
use dynamodb::{DynamoStore, ItemJson};
use futures_util::future::try_join_all;
use history::input::decompressed;
use history::text_lines::TextLines;
use indicatif::ProgressBar;
use rollups::{Registered, SeenRooms, named_by_rollup};
use serde::Deserialize;
use table::item;
use table::{
    Expected, Indexing, ReadConditionsSchema as _, ReadRollupState as _, Session, StoredRollup,
};

use super::backup::{Count, devices};
use super::stays;
use crate::import::open_bytes;
use crate::output::{counted, print};
use crate::patience::patiently;

/// The number of rollups that are put at once.
const CONCURRENCY: usize = 16;
/// The maximum version of a rollup: no rollup is folded more often.
const MAX_VERSION: u64 = 1 << 53;

/// An item of the backup file.
enum Saved {
    Rollup(Box<StoredRollup>),
    Stay(DeviceStay),
}

/// Restores the rollups of a file that the table does not have, and the stays before the table's first. A repetition
/// changes nothing.
pub(crate) async fn restore(
    store: &DynamoStore,
    path: &Path,
    now: Timestamp,
) -> anyhow::Result<()> {
    let state = patiently(async |invocation| store.rollup_state(invocation).await).await?;
    let mut restore = Restore {
        store,
        now,
        devices: devices(store).await?,
        indexing: patiently(async |invocation| store.indexing(invocation).await).await?,
        zone: state.map(|state| state.zone),
        seen: SeenRooms::default(),
        stays: BTreeMap::new(),
        report: RestoreReport::default(),
    };

    let (reader, bar) = open(path)?;
    let mut lines = TextLines::new(reader);
    loop {
        let batch = restore.next_batch(&mut lines, path)?;
        if batch.is_empty() {
            break;
        }
        restore.put(&batch).await?;
        bar.set_message(counted(restore.report.restored.rollups, "rollup"));
    }

    restore.restore_stays().await?;
    bar.finish_and_clear();
    restore.report.print(restore.zone.as_deref().unwrap_or_default());
    Ok(())
}

/// A restore under way.
struct Restore<'a> {
    store: &'a DynamoStore,
    now: Timestamp,
    devices: BTreeMap<DeviceId, Device>,
    indexing: Indexing,
    /// The time zone of the table's days; `None` if the table has no days yet.
    zone: Option<String>,
    seen: SeenRooms,
    /// The stays of the file, which are restored after all rollups.
    stays: BTreeMap<DeviceId, Vec<Stay>>,
    report: RestoreReport,
}

impl Restore<'_> {
    /// The next rollups of the file, as the table is to have them. Empty at the end of the file.
    fn next_batch(
        &mut self,
        lines: &mut TextLines<impl BufRead>,
        path: &Path,
    ) -> anyhow::Result<Vec<StoredRollup>> {
        let mut batch = Vec::with_capacity(CONCURRENCY);
        while batch.len() < CONCURRENCY
            && let Some(saved) = next(lines, path)?
        {
            match saved {
                Saved::Stay(of) => self.stays.entry(of.device).or_default().push(of.stay),
                Saved::Rollup(rollup) if rollup.is_expired(self.now) => self.report.expired += 1,
                Saved::Rollup(rollup) => batch.push(self.adapted(*rollup)),
            }
        }
        Ok(batch)
    }

    /// A rollup with the settings and the index of this table.
    fn adapted(&mut self, mut rollup: StoredRollup) -> StoredRollup {
        let device = self.devices.get(&rollup.key.device);
        self.report.deviceless += u64::from(device.is_none());
        self.report.of_other_zone += u64::from(is_of_other_zone(&rollup, self.zone.as_deref()));

        // `settings` counts the changes of settings in the table that folded the rollup. It is lowered here, so that a
        // later fold with the settings of this table can replace the rollup.
        let settings = device.map_or(0, |device| device.fold_settings().number);
        rollup.settings = rollup.settings.min(settings);
        rollup.indexed = self.indexing.of(rollup.key.bucket, &rollup.rollup);
        rollup
    }

    /// Puts the rollups that the table does not have.
    async fn put(&mut self, batch: &[StoredRollup]) -> anyhow::Result<()> {
        let Self { store, now, seen, .. } = self;
        let put = async |rollup: &StoredRollup| {
            patiently(async |invocation| {
                let named = named_by_rollup(rollup);
                let device = Registered { device: &rollup.key.device, settings: rollup.settings };
                let session = Session::new(*store, invocation, *now);
                seen.note(session, device, &named).await?;
                session.put_rollup(rollup, Expected::Absent).await
            })
            .await
        };

        for is_restored in try_join_all(batch.iter().map(put)).await? {
            let Self { report: RestoreReport { restored, known, .. }, .. } = self;
            *(if is_restored { &mut restored.rollups } else { known }) += 1;
        }
        Ok(())
    }

    async fn restore_stays(&mut self) -> anyhow::Result<()> {
        for (id, stays) in &self.stays {
            let restored = stays::restore(self.store, id, stays).await?;
            self.report.restored.stays += u64::try_from(restored)?;
            if !self.devices.contains_key(id) {
                self.report.homeless_stays += stays.len() as u64;
            }
        }
        Ok(())
    }
}

/// The numbers of what was restored, and of what was not or shows in no answer.
#[derive(Default)]
struct RestoreReport {
    restored: Count,
    /// The rollups that the table had.
    known: u64,
    expired: u64,
    of_other_zone: u64,
    /// The rollups of devices that the table does not have.
    deviceless: u64,
    /// The stays of devices that the table does not have.
    homeless_stays: u64,
}

impl RestoreReport {
    fn print(&self, zone: &str) {
        let Self { restored, known, expired, of_other_zone, deviceless, homeless_stays } = self;
        print(format_args!("{restored} restored"));

        let days = counted(*of_other_zone, "day");
        let rollups = counted(*deviceless, "rollup");
        let stays = counted(*homeless_stays, "stay");
        for (count, text) in [
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
                homeless_stays,
                format!(
                    "{stays} left out: the table has no such device; the same command restores them when it has"
                ),
            ),
        ] {
            if *count > 0 {
                print(text);
            }
        }
    }
}

/// Whether a rollup is a day in another time zone than the table's, if the table has one.
fn is_of_other_zone(rollup: &StoredRollup, zone: Option<&str>) -> bool {
    zone.is_some() && rollup.zone.is_some() && rollup.zone.as_deref() != zone
}

/// The next rollup or stay of a file; `None` at the end.
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
    for (name, metric) in &rollup.rollup.metrics {
        if let Some(flaw) = flaw(metric, rollup.range) {
            bail!("m/{name}: {flaw}");
        }
    }
    Ok(Saved::Rollup(Box::new(rollup)))
}

/// Why no fold of readings in a range makes this rollup of a metric.
fn flaw(metric: &MetricRollup, range: TimeRange) -> Option<&'static str> {
    let MetricRollup { count, min, max, first, last, of_kind, .. } = metric;
    let held = match of_kind {
        OfKind::Power { held, .. } => *held,
        OfKind::Gauge | OfKind::Counter { .. } => TimeDelta::zero(),
    };

    if *count == 0 {
        Some("it has no value")
    } else if Exact::from(min) > Exact::from(max) {
        Some("its smallest value is above its largest")
    } else if first.at > last.at || !range.contains(first.at) || !range.contains(last.at) {
        Some("its first or last value is not in the time of the rollup")
    } else if held > range.length() {
        Some("its values hold longer than the time of the rollup")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use serde_json::{Value, json};
    use table::item::Kind as _;

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
    fn a_rollup_that_no_fold_makes_is_refused() {
        let list = r#"{"L":[{"N":"1"},{"S":"1.0000000000000000000000000000000000000001e20"},{"N":"1"},{"N":"2"},{"N":"1"},{"N":"0"},{"N":"2"},{"N":"60000"}]}"#;
        let power = |held: i64| {
            format!(
                r#"{{"L":[{{"N":"1"}},{{"N":"1"}},{{"N":"1"}},{{"N":"2"}},{{"N":"1"}},{{"N":"0"}},{{"N":"2"}},{{"N":"60000"}},{{"N":"0"}},{{"N":"{held}"}}]}}"#
            )
        };
        for (metric, why) in [
            (list.replacen(r#""N":"1""#, r#""N":"0""#, 1), "m/t: it has no value"),
            (
                list.replacen(r#""N":"1"},{"N":"2""#, r#""N":"3"},{"N":"2""#, 1),
                "m/t: its smallest value is above its largest",
            ),
            (
                list.replace("60000", "900000"),
                "m/t: its first or last value is not in the time of the rollup",
            ),
            (power(900_001), "m/t: its values hold longer than the time of the rollup"),
        ] {
            let error = parse(QUARTER.replace(list, &metric).as_bytes()).err().expect("refused");
            assert_eq!(error.to_string(), why);
        }
        assert!(parse(QUARTER.replace(list, &power(900_000)).as_bytes()).is_ok());
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
