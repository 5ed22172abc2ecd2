//! Writes rollups to a file, and restores them where the table has none. Folds nothing.
//!
//! A line is an item as AWS's own exports of a table write it, `{"Item": {"pk": {"S": ...}, ...}}`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use chrono::TimeDelta;
use domain::{Device, DeviceId, Order, TimeRange, Timestamp, Zone};
use dynamodb::DynamoStore;
use flate2::bufread::MultiGzDecoder;
use futures_util::future::try_join_all;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use table::item::{self, Attribute, Item};
use table::{
    Expected, ListDevices as _, PutRollups as _, ReadConditionsSchema as _, ReadRollups as _,
    StoredRollup,
};

use super::walk::patiently;
use crate::export::ExportFile;
use crate::output::{counted, print};

/// The rollups of 15 minutes that are read at once.
const WINDOW: TimeDelta = TimeDelta::days(64);
/// The number of rollups that are put at once.
const CONCURRENCY: usize = 16;

/// Writes the rollups of a range of devices, of all if none is named. Returns their number.
pub(crate) async fn export(
    store: &DynamoStore,
    only: &[DeviceId],
    range: TimeRange,
    now: Timestamp,
    file: &mut ExportFile,
) -> anyhow::Result<u64> {
    let devices = devices(store).await?;
    if let Some(unknown) = only.iter().find(|id| !devices.contains_key(id)) {
        bail!("there is no device {:?}", unknown.to_string());
    }
    let meant = |id: &&DeviceId| only.is_empty() || only.contains(id);
    let meant: Vec<&DeviceId> = devices.keys().filter(meant).collect();
    let style = ProgressStyle::with_template("  {bar:40} {pos} of {len}  {msg}  {eta} left")?;
    let bar = ProgressBar::new(meant.len() as u64).with_style(style);
    let mut count = 0;
    for id in meant {
        let mut write = |rollups: Vec<StoredRollup>| {
            for mut rollup in rollups.into_iter().filter(|rollup| !rollup.is_expired(now)) {
                // Another table has another schema, or no index.
                rollup.indexed = None;
                let json = serde_json::value::to_raw_value(&to_json(item::from_rollup(&rollup)))?;
                file.describe("Item", &json)?;
                count += 1;
            }
            bar.set_message(counted(count, "rollup"));
            anyhow::Ok(())
        };
        // Their zone may have been another; what is a day too much is restored all the same.
        let dates = (Zone::UTC.date(range.from()), Zone::UTC.date(range.last()));
        let days = patiently(async |invocation| {
            store.days(id, dates, Order::Ascending, usize::MAX - 1, invocation).await
        });
        let days = days.await?;
        // No quarter is older than the oldest day and than the first reading.
        let begin = days.iter().map(|day| day.range.from()).chain([devices[id].first_seen]).min();
        let begin = begin.map_or(range.from(), |it| it.saturating_add(-TimeDelta::days(1)));
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

/// Restores the rollups of a file where the table has none. Restoring twice changes nothing.
pub(crate) async fn restore(
    store: &DynamoStore,
    path: &Path,
    now: Timestamp,
) -> anyhow::Result<()> {
    let devices = devices(store).await?;
    let indexing = patiently(async |invocation| store.indexing(invocation).await).await?;
    let (mut reader, bar) = open(path)?;
    let (mut restored, mut known, mut expired, mut line) = (0, 0, 0, 0);
    let mut is_over = false;
    while !is_over {
        let mut batch = Vec::with_capacity(CONCURRENCY);
        while batch.len() < CONCURRENCY {
            let mut text = String::new();
            let context = || format!("line {} of {}", line + 1, path.display());
            if reader.read_line(&mut text).with_context(context)? == 0 {
                is_over = true;
                break;
            }
            let mut rollup = parse(&text).with_context(context)?;
            line += 1;
            if rollup.is_expired(now) {
                expired += 1;
                continue;
            }
            // The number counts the changes of settings in the table where the rollup was folded. A later
            // fold with the settings of this table has to be able to replace it.
            let settings = devices.get(&rollup.key.device).map_or(0, |it| it.fold_settings.number);
            rollup.settings = rollup.settings.min(settings);
            rollup.indexed = indexing.of(rollup.key.bucket, &rollup.rollup);
            batch.push(rollup);
        }
        let put = async |rollup: &StoredRollup| {
            patiently(async |invocation| {
                store.put_rollup(rollup, Expected::Absent, invocation).await
            })
            .await
        };
        for is_restored in try_join_all(batch.iter().map(put)).await? {
            *(if is_restored { &mut restored } else { &mut known }) += 1;
        }
        bar.set_message(counted(restored, "rollup"));
    }
    bar.finish_and_clear();
    print(format_args!("{} restored", counted(restored, "rollup")));
    if known > 0 {
        print(format_args!("{known} left as the table has them"));
    }
    if expired > 0 {
        print(format_args!("{expired} have expired since"));
    }
    Ok(())
}

async fn devices(store: &DynamoStore) -> anyhow::Result<BTreeMap<DeviceId, Device>> {
    let listing = patiently(async |invocation| store.all_devices(invocation).await).await?;
    if let Some(unreadable) = listing.unreadable.first() {
        bail!("a device of the registry cannot be read: {unreadable}");
    }
    Ok(listing.found.into_iter().map(|device| (device.id.clone(), device)).collect())
}

fn open(path: &Path) -> anyhow::Result<(Box<dyn BufRead>, ProgressBar)> {
    let cannot_read = || format!("cannot read {}", path.display());
    let file = std::fs::File::open(path).with_context(cannot_read)?;
    let bytes = file.metadata().with_context(cannot_read)?.len();
    let style = ProgressStyle::with_template("  {bar:40} {percent:>3} %  {msg}  {eta} left")?;
    let bar = ProgressBar::new(bytes).with_style(style);
    let mut raw = BufReader::new(bar.wrap_read(file));
    let gzip = raw.fill_buf().with_context(cannot_read)?.starts_with(&[0x1f, 0x8b]);
    let reader: Box<dyn BufRead> =
        if gzip { Box::new(BufReader::new(MultiGzDecoder::new(raw))) } else { Box::new(raw) };
    Ok((reader, bar))
}

/// A line of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(rename = "Item")]
    item: Map<String, Value>,
}

fn parse(text: &str) -> anyhow::Result<StoredRollup> {
    let line: Line = serde_json::from_str(text).context("is not an item of rollups")?;
    Ok(item::read(from_json(line.item)?)?)
}

/// Writes attributes as the table's service does.
fn to_json(item: Item) -> Value {
    fn of(attribute: Attribute) -> Value {
        match attribute {
            Attribute::S(text) => json!({"S": text}),
            Attribute::N(number) => json!({"N": number}),
            Attribute::L(list) => json!({"L": list.into_iter().map(of).collect::<Vec<_>>()}),
            Attribute::M(members) => json!({"M": to_json(members)}),
            Attribute::Ss(texts) => json!({"SS": texts}),
            Attribute::B(_) | Attribute::Other => Value::Null,
        }
    }
    item.into_iter().map(|(name, it)| (name, of(it))).collect()
}

fn from_json(item: Map<String, Value>) -> anyhow::Result<Item> {
    fn of(value: Value) -> anyhow::Result<Attribute> {
        let Value::Object(typed) = value else { bail!("an attribute has no type") };
        ensure!(typed.len() == 1, "an attribute has several types");
        let (kind, value) = typed.into_iter().next().context("an attribute has no type")?;
        Ok(match (kind.as_str(), value) {
            ("S", Value::String(text)) => Attribute::S(text),
            ("N", Value::String(number)) => Attribute::N(number),
            ("L", Value::Array(list)) => {
                Attribute::L(list.into_iter().map(of).collect::<anyhow::Result<_>>()?)
            }
            ("M", Value::Object(members)) => Attribute::M(from_json(members)?),
            _ => bail!("an attribute has the type {kind:?}, which no rollup has"),
        })
    }
    item.into_iter().map(|(name, value)| Ok((name, of(value)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_item_and_back() {
        let text = r#"{"Item":{"exp":{"N":"1893456000"},"m":{"M":{"t":{"L":[{"N":"1"},{"S":"1.0000000000000000000000000000000000000001e20"},{"N":"1"},{"N":"2"},{"N":"1"},{"N":"0"},{"N":"2"},{"N":"60000"}]}}},"pk":{"S":"ROLLUP#d"},"rooms":{"L":[{"S":""},{"S":"r"}]},"settings":{"N":"2"},"sk":{"S":"M15#2026-01-11T16:00:00.000Z"},"ver":{"N":"3"}}}"#;
        let rollup = parse(text).unwrap();
        assert_eq!((rollup.version, rollup.settings), (3, 2));
        assert_eq!(json!({"Item": to_json(item::from_rollup(&rollup))}).to_string(), text);
    }

    #[test]
    fn anything_else_is_refused_with_the_reason() {
        for (text, why) in [
            ("{", "is not an item of rollups"),
            (r#"{"device_id": "d"}"#, "is not an item of rollups"),
            (r#"{"Item": {"pk": 1}}"#, "no type"),
            (r#"{"Item": {"pk": {"B": "AA=="}}}"#, "\"B\""),
            (r#"{"Item": {"pk": {"S": "d"}, "sk": {"S": "TS#2026-01-11T16:00:00.000Z"}}}"#, "TS#"),
        ] {
            let error = format!("{:#}", parse(text).err().unwrap());
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
