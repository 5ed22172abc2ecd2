//! Long-term statistics, imported for hours in which a series has no state. Reads no state.
//!
//! A counter is imported from `state` at the end of the hour. `sum` is not used, because it contains Home Assistant's
//! own treatment of outages and resets. Any other series is its `mean` at half past. A power has its mean at each
//! quarter of the hour, so that the energy is that of the hour. An angle's mean is already circular, so it is taken as
//! it is. External statistics (`tibber:consumption`) have no states and mostly no meter. If their `state` is the amount
//! of an hour, the counter is the running total of these amounts, from the first hour on.

use std::collections::HashMap;

use anyhow::Context as _;
use rusqlite::{Connection, Row};
use rust_decimal::Decimal;

use super::entity::{line, quoted};
use super::moment::nanos;
use super::schema::Schema;
use super::states::{Entities, Entity, HOUR, text};
use super::storage::Storage;
use super::units::Conversion;
use crate::csv::totals::BASE;
use crate::point::{Point, StatisticHour, number};
use crate::sqlite::PointOutput;

/// The units of power, from which energy is computed.
pub const POWERS: [&str; 5] = ["mW", "W", "kW", "MW", "GW"];

/// A series of long-term statistics.
struct Series {
    id: String,
    /// Whether the series comes from an integration and has no entity.
    is_external: bool,
    unit: Option<String>,
    name: Option<String>,
    is_counter: bool,
    /// Whether `state` of a counter is the amount of the hour.
    is_amount: bool,
}

/// The numbers of an hour; its times in nanoseconds.
struct HourRow {
    start: Option<i64>,
    value: Option<f64>,
    last_reset: Option<i64>,
    sum: Option<f64>,
}

/// Reads the hours in which `entities` have no state, and hands out their points.
pub(super) fn read(
    connection: &Connection,
    schema: &Schema,
    storage: &Storage,
    entities: &Entities,
    output: &PointOutput,
) -> anyhow::Result<()> {
    if !schema.has_table("statistics_meta") || !schema.has_table("statistics") {
        return Ok(());
    }
    if schema.has_table("statistics_short_term") {
        let count =
            connection
                .query_row("SELECT count(*) FROM statistics_short_term", [], |row| row.get(0))?;
        output.notes.leave_out_many("statistics of five minutes; states have them", count);
    }
    for (meta, series) in all(connection, schema, output)? {
        let known = entities.get(&series.id);
        hours(connection, schema, (meta, &series), storage, known, output)
            .with_context(|| series.id.clone())?;
    }
    Ok(())
}

fn all(
    connection: &Connection,
    schema: &Schema,
    output: &PointOutput,
) -> anyhow::Result<Vec<(i64, Series)>> {
    let column = |name| schema.column("statistics_meta", "s", name);
    let query = format!(
        "SELECT s.id, s.statistic_id, {}, {}, {}, {}, {}, {} FROM statistics_meta s ORDER BY s.id",
        column("source"),
        column("unit_of_measurement"),
        column("name"),
        column("has_sum"),
        column("has_mean"),
        column("mean_type"),
    );
    let mut statement = connection.prepare(&query)?;
    let mut rows = statement.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let Some(id) = text(row, 1)? else {
            output.notes.leave_out("statistics without an id");
            continue;
        };
        let is = |column| row.get::<_, Option<i64>>(column).map(|flag| flag.unwrap_or(0) != 0);
        let (is_counter, has_mean) = match (is(5), is(6), is(7)) {
            (Ok(has_sum), Ok(has_mean), Ok(has_type)) => (has_sum, has_mean || has_type),
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
                output.refuse_row(&format!("the description of the statistics {id}"), error)?;
                continue;
            }
        };
        if !is_counter && !has_mean {
            output.notes.leave_out(&format!("statistics without state and mean: {id}"));
            continue;
        }
        let is_external =
            id.contains(':') || text(row, 2)?.is_some_and(|source| source != "recorder");
        let filled =
            |column| Ok::<_, rusqlite::Error>(text(row, column)?.filter(|text| !text.is_empty()));
        let (unit, name) = (filled(3)?, filled(4)?);
        let meta = row.get(0)?;
        let mut series = Series { id, is_external, unit, name, is_counter, is_amount: false };
        series.is_amount = is_counter && is_external && is_amount(connection, schema, meta)?;
        all.push((meta, series));
    }
    Ok(all)
}

/// Whether `state` is mostly equal to the steps of `sum`, and so is an amount, not a counter.
fn is_amount(connection: &Connection, schema: &Schema, meta: i64) -> anyhow::Result<bool> {
    let time = order(schema);
    let query = format!(
        "SELECT total(abs(sum - before - state) < 1e-6 * (1 + abs(state))), \
                total(abs(sum - before - (state - earlier)) < 1e-6 * (1 + abs(state))) \
         FROM (SELECT s.sum AS sum, s.state AS state, lag(s.sum) OVER (ORDER BY {time}) AS before, \
                      lag(s.state) OVER (ORDER BY {time}) AS earlier \
               FROM statistics s WHERE s.metadata_id = ?1)"
    );
    let (amounts, readings): (f64, f64) =
        connection.query_row(&query, [meta], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(amounts > readings)
}

/// The SQL expression for a row's time, for sorting.
fn order(schema: &Schema) -> String {
    let column = |name| schema.column("statistics", "s", name);
    format!("coalesce({}, unixepoch({}))", column("start_ts"), column("start"))
}

fn query_of_hours(schema: &Schema) -> String {
    let column = |name| schema.column("statistics", "s", name);
    format!(
        "SELECT {}, {}, {}, {}, {}, {}, {}, {} FROM statistics s WHERE s.metadata_id = ?1 ORDER BY {}",
        column("start_ts"),
        column("start"),
        column("state"),
        column("mean"),
        column("last_reset_ts"),
        column("last_reset"),
        column("sum"),
        column("id"),
        order(schema),
    )
}

fn hours(
    connection: &Connection,
    schema: &Schema,
    (meta, series): (i64, &Series),
    storage: &Storage,
    known: Option<&Entity>,
    output: &PointOutput,
) -> anyhow::Result<()> {
    let described = storage.entity(&series.id);
    let attributes =
        known.and_then(|state| state.newest.as_ref()).map(|(_, attributes)| attributes);
    // States and statistics form one series only in the same unit.
    let unit = attributes.map_or_else(|| series.unit.clone(), |attributes| attributes.unit.clone());
    let Some(conversion) = Conversion::between(series.unit.as_deref(), unit.as_deref()) else {
        let count = connection.query_row(
            "SELECT count(*) FROM statistics WHERE metadata_id = ?1",
            [meta],
            |row| row.get(0),
        )?;
        let shown = |unit: &Option<String>| unit.clone().unwrap_or_else(|| "no unit".to_owned());
        let (from, to) = (shown(&series.unit), shown(&unit));
        let why =
            format!("hours of {} in {from}, which is not converted exactly to {to}", series.id);
        output.notes.leave_out_many(&why, count);
        return Ok(());
    };
    let texts = texts(series, attributes.is_some(), described, |key| {
        attributes.and_then(|attributes| attributes.text(key)).map(ToOwned::to_owned)
    });
    let mut statement = connection.prepare(&query_of_hours(schema))?;
    let mut rows = statement.query([meta])?;
    let mut total = BASE;
    let mut taken = 0;
    while let Some(row) = rows.next()? {
        let HourRow { start, value, last_reset, sum } = match HourRow::read(row, series) {
            Ok(hour) => hour,
            Err(error) => {
                let hour_id = text(row, 7)?.unwrap_or_default();
                output.refuse_row(&format!("hour {hour_id} of {}", series.id), error)?;
                continue;
            }
        };
        let Some(start) = start else {
            output.notes.leave_out("hours without a time");
            continue;
        };
        let end = start.saturating_add(HOUR);
        note_sum(series, (start, end), sum, value.filter(|_| taken == 0), output);
        let Some(value) = value.filter(|value| value.is_finite()) else {
            output.notes.leave_out("hours without a value");
            continue;
        };
        let Some(mut value) = conversion.of(value) else {
            output.notes.leave_out("hours whose value is not converted exactly");
            continue;
        };
        let before = (series.is_amount && taken == 0).then(|| total.to_string());
        if series.is_amount {
            // A fall of the counter would count as a reset.
            let amount = value.parse().ok().filter(|amount: &Decimal| *amount >= Decimal::ZERO);
            let Some(sum) = amount.and_then(|amount| total.checked_add(amount)) else {
                output.notes.leave_out(&format!(
                    "hours of {} whose amount is below zero or has more than 28 digits",
                    series.id
                ));
                continue;
            };
            total = sum;
            value = sum.normalize().to_string();
        }
        let hour = start.div_euclid(HOUR);
        if known.is_some_and(|entity| entity.hours.contains(&hour)) {
            output.notes.leave_out("hours that have states");
            continue;
        }
        let has_means_only =
            !series.is_counter && known.is_none_or(|entity| entity.is_long_before_states(hour));
        let statistic_hour = StatisticHour { start, has_means_only };
        let of_start = before.map(|before| {
            let value = vec![("value".to_owned(), before)];
            [value, texts.clone()].concat()
        });
        let mut fields = vec![("value".to_owned(), value)];
        if let Some(reset) = last_reset.filter(|_| !series.is_external) {
            let known = known.map(|state| &state.last_resets);
            fields.push(("last_reset".to_owned(), number(reset_number(reset, known))));
        }
        fields.extend(texts.iter().cloned());
        // Without this value, the first hour's amount would have no start.
        if let Some(fields) = of_start {
            let point = line(&series.id, unit.as_deref(), fields, start, described);
            output.send(Point { hour: Some(statistic_hour), ..point })?;
        }
        for at in times_of(series, unit.as_deref(), start) {
            let point = line(&series.id, unit.as_deref(), fields.clone(), at, described);
            output.send(Point { hour: Some(statistic_hour), ..point })?;
        }
        taken += 1;
    }
    if !series.is_counter {
        output.notes.leave_out_many("pairs of min and max of hours", taken);
    }
    Ok(())
}

impl HourRow {
    fn read(row: &Row<'_>, series: &Series) -> rusqlite::Result<Self> {
        let start = nanos(row.get(0)?, text(row, 1)?.as_deref());
        let value = row.get(if series.is_counter { 2 } else { 3 })?;
        let last_reset = nanos(row.get(4)?, text(row, 5)?.as_deref());
        Ok(Self { start, value, last_reset, sum: row.get(6)? })
    }
}

/// The times at which the value of an hour is stored: of a counter its end.
fn times_of(series: &Series, unit: Option<&str>, start: i64) -> Vec<i64> {
    if series.is_counter {
        vec![start.saturating_add(HOUR)]
    } else if unit.is_some_and(|unit| POWERS.contains(&unit)) {
        // A power value holds for at most 15 minutes, so one per quarter gives the hour's energy.
        (0..4).map(|quarter| start.saturating_add(quarter * HOUR / 4)).collect()
    } else {
        vec![start.saturating_add(HOUR / 2)]
    }
}

/// Notes Home Assistant's own sum at the end of an hour. If `first` is the first amount, also notes the sum at the
/// start.
fn note_sum(
    series: &Series,
    (start, end): (i64, i64),
    sum: Option<f64>,
    first: Option<f64>,
    output: &PointOutput,
) {
    let Some(sum) = sum.filter(|sum| series.is_counter && sum.is_finite()) else { return };
    let note = |at, sum| output.notes.sum(&series.id, series.unit.as_deref(), at, &number(sum));
    if let Some(first) = first.filter(|first| series.is_amount && first.is_finite()) {
        note(start, sum - first);
    }
    note(end, sum);
}

/// The text fields from which the server learns what a series is.
fn texts(
    series: &Series,
    has_states: bool,
    described: Option<&super::storage::EntityEntry>,
    of_states: impl Fn(&str) -> Option<String>,
) -> Vec<(String, String)> {
    let state_class = if series.is_counter { "total_increasing" } else { "measurement" };
    let registry = |key| match key {
        "friendly_name" => {
            described.and_then(|entity| entity.name.clone()).or_else(|| series.name.clone())
        }
        "device_class" => described.and_then(|entity| entity.device_class.clone()),
        _ => described
            .and_then(|entity| entity.state_class.clone())
            .or_else(|| Some(state_class.to_owned())),
    };
    let texts = ["device_class", "friendly_name", "state_class"].map(|key| {
        let text = if has_states { of_states(key) } else { registry(key) };
        text.map(|text| (format!("{key}_str"), quoted(&text)))
    });
    texts.into_iter().flatten().collect()
}

/// The number that the states have of the same reset, or the digits of its time in UTC.
fn reset_number(nanos: i64, known: Option<&HashMap<i64, f64>>) -> f64 {
    let seconds = nanos.div_euclid(1_000_000_000);
    if let Some(number) = known.and_then(|known| known.get(&seconds)) {
        return *number;
    }
    let at = domain::Timestamp::from_millis(seconds * 1_000).map(|at| at.to_string());
    let text = at.map(|at| format!("{}+00:00", at.split('.').next().unwrap_or_default()));
    text.ok().and_then(|text| super::attributes::digits(&text)).unwrap_or_default()
}
