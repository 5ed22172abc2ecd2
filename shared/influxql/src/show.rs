//! `SHOW`: measurements, fields, tags, their values and series, as the registry has them. Reads no reading.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Device, Timestamp};

use crate::answer::OutSeries;
use crate::ast::{Cast, Expression, Show, ShowKind};
use crate::condition;
use crate::error::QueryError;
use crate::group::may_hold;
use crate::room_tag::RoomTexts;
use crate::series::{TaggedSeries, series_of_all};
use crate::value::Value;

/// Runs `SHOW DATABASES`, which lists a single database.
pub fn show_databases(name: &str) -> OutSeries {
    list(Some("databases"), &["name"], vec![vec![name.to_owned()]])
}

/// Runs `SHOW RETENTION POLICIES`, which lists a single policy.
pub fn show_retention_policies() -> OutSeries {
    let columns = ["name", "duration", "shardGroupDuration", "replicaN", "default"];
    let [name, duration, shard] =
        ["autogen", "0s", "168h0m0s"].map(|text| Value::Text(text.into()));
    let row = [name, duration, shard, Value::Integer(1), Value::Boolean(true)];
    OutSeries {
        columns: columns.map(ToOwned::to_owned).to_vec(),
        values: vec![row.map(Some).to_vec()],
        ..OutSeries::default()
    }
}

/// Runs a `SHOW` on all devices.
pub fn show<'a>(
    show: &Show,
    devices: impl Iterator<Item = &'a Device>,
    rooms: &'a RoomTexts<'a>,
    now: Timestamp,
) -> Result<Vec<OutSeries>, QueryError> {
    let (_, condition) = condition::split(show.condition.as_ref(), None, now)?;
    let mut series = series_of_all(devices, &show.sources, rooms);
    series.retain(|series| is_listed(series, condition.as_ref()));

    let by_measurement = |rows: &dyn Fn(&[TaggedSeries<'_>]) -> BTreeSet<Vec<String>>,
                          columns: &[&str]| {
        let parts = series.chunk_by(|a, b| a.measurement == b.measurement);
        let listed = parts.map(|part| {
            let rows: Vec<_> = show.page.of(rows(part).into_iter().collect());
            list(Some(&part[0].measurement), columns, rows)
        });
        listed.filter(|series| !series.values.is_empty()).collect::<Vec<_>>()
    };

    Ok(match &show.listed {
        ShowKind::Measurements => {
            let names: BTreeSet<_> =
                series.iter().map(|series| vec![series.measurement.clone()]).collect();
            let rows = show.page.of(names.into_iter().collect());
            some(list(Some("measurements"), &["name"], rows))
        }
        ShowKind::Series => {
            let keys: BTreeSet<_> = series.iter().map(|series| vec![key(series)]).collect();
            some(list(None, &["key"], show.page.of(keys.into_iter().collect())))
        }
        ShowKind::FieldKeys => {
            let rows = |part: &[TaggedSeries<'_>]| {
                let fields = part.iter().flat_map(|series| series.fields.keys());
                fields.map(|field| vec![field.clone(), "float".to_owned()]).collect()
            };
            by_measurement(&rows, &["fieldKey", "fieldType"])
        }
        ShowKind::TagKeys => {
            let rows = |part: &[TaggedSeries<'_>]| {
                part.iter().flat_map(tags).map(|(key, _)| vec![key]).collect()
            };
            by_measurement(&rows, &["tagKey"])
        }
        ShowKind::TagValues(keys) => {
            let rows = |part: &[TaggedSeries<'_>]| {
                let pairs = part
                    .iter()
                    .flat_map(tags)
                    .filter(|(key, _)| keys.iter().any(|name| name.is_of(key)));
                pairs.map(|(key, value)| vec![key, value]).collect()
            };
            by_measurement(&rows, &["key", "value"])
        }
    })
}

/// Whether a series is listed. A condition that names a field of the series is ignored.
fn is_listed(series: &TaggedSeries<'_>, condition: Option<&Expression>) -> bool {
    let is_of_tags = condition.is_none_or(|condition| {
        condition::names(condition)
            .iter()
            .all(|(name, cast)| *cast == Some(Cast::Tag) || series.field(name).is_none())
    });
    !is_of_tags || may_hold(series, series.room_now(), true, condition)
}

/// The tags of a series, with the room in which the device is now.
fn tags(series: &TaggedSeries<'_>) -> BTreeMap<String, String> {
    let value = |key: &str| series.tag(key, series.room_now()).to_owned();
    let tags = series.keys().map(|key| (key.to_owned(), value(key)));
    tags.filter(|(_, value)| !value.is_empty()).collect()
}

/// The key of a series, as line protocol writes it.
fn key(series: &TaggedSeries<'_>) -> String {
    let escaped = |text: &str, escaped: &[char]| {
        let mut key = String::new();
        for c in text.chars() {
            if escaped.contains(&c) {
                key.push('\\');
            }
            key.push(c);
        }
        key
    };

    let mut key = escaped(&series.measurement, &[',', ' ']);
    for (name, value) in tags(series) {
        let [name, value] = [&name, &value].map(|text| escaped(text, &[',', ' ', '=']));
        key.push_str(&format!(",{name}={value}"));
    }
    key
}

fn list(name: Option<&str>, columns: &[&str], rows: Vec<Vec<String>>) -> OutSeries {
    let cells = |row: Vec<String>| row.into_iter().map(|text| Some(Value::Text(text))).collect();
    OutSeries {
        name: name.map(ToOwned::to_owned),
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        values: rows.into_iter().map(cells).collect(),
        ..OutSeries::default()
    }
}

fn some(series: OutSeries) -> Vec<OutSeries> {
    if series.values.is_empty() { Vec::new() } else { vec![series] }
}
