//! Long-term statistics, imported for hours in which a series has no state. Reads no state.
//!
//! A counter is imported from `state` at the end of the hour. `sum` is not used, because it contains Home Assistant's
//! own treatment of outages and resets. Any other series is imported from its `mean`, at half past. A power gets its
//! mean at each quarter of the hour, so that the energy is that of the hour. The mean of an angle is already circular,
//! and stays as it is. External statistics (`tibber:consumption`) have no states and mostly no meter. If their `state`
//! is the amount of an hour, the counter is the running total of these amounts, from the first hour on.

use std::collections::HashMap;

use anyhow::Context as _;
use rusqlite::{Connection, Row};
use rust_decimal::Decimal;

use super::entity::line;
use super::moment::nanos;
use super::schema::Schema;
use super::states::{Entities, Entity, HOUR, text};
use super::storage::{EntityEntry, Storage};
use super::units::Conversion;
use crate::csv::totals::BASE;
use crate::point::{Point, StatisticHour, number, text_field};
use crate::sqlite::PointOutput;

/// The units of power, from which energy is computed.
pub const POWERS: [&str; 5] = ["mW", "W", "kW", "MW", "GW"];

/// A series of long-term statistics.
struct StatisticSeries {
    /// The key of its rows in the table of hours.
    metadata_id: i64,
    id: String,
    /// Whether the series comes from an integration and has no entity.
    is_external: bool,
    unit: Option<String>,
    name: Option<String>,
    is_counter: bool,
    /// Whether `state` of a counter is the amount of the hour.
    is_amount: bool,
}

/// The row of an hour; times are in nanoseconds.
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

    for series in all(connection, schema, output)? {
        let hours = StatisticHours::of(&series, storage, entities.get(&series.id), output);
        hours.read(connection, schema).with_context(|| series.id.clone())?;
    }
    Ok(())
}

fn all(
    connection: &Connection,
    schema: &Schema,
    output: &PointOutput,
) -> anyhow::Result<Vec<StatisticSeries>> {
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
        let metadata_id = row.get(0)?;
        let is_amount = is_counter && is_external && is_amount(connection, schema, metadata_id)?;

        all.push(StatisticSeries {
            metadata_id,
            id,
            is_external,
            unit,
            name,
            is_counter,
            is_amount,
        });
    }

    Ok(all)
}

/// Whether `state` is the amount of an hour, not a counter: the steps of `sum` equal `state` more often than they equal
/// the steps of `state`.
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

/// The hours of a series while they are read.
struct StatisticHours<'a> {
    series: &'a StatisticSeries,
    /// The states of the series.
    known: Option<&'a Entity>,
    described: Option<&'a EntityEntry>,
    /// The unit in which values are stored. States and statistics form one series only in the same unit.
    unit: Option<String>,
    texts: Vec<(String, String)>,
    output: &'a PointOutput,
    /// The sum of the amounts so far.
    total: Decimal,
    /// The number of hours that were sent.
    taken: u64,
}

impl<'a> StatisticHours<'a> {
    fn of(
        series: &'a StatisticSeries,
        storage: &'a Storage,
        known: Option<&'a Entity>,
        output: &'a PointOutput,
    ) -> Self {
        let described = storage.entity(&series.id);
        let attributes =
            known.and_then(|state| state.newest.as_ref()).map(|(_, attributes)| attributes);
        let unit =
            attributes.map_or_else(|| series.unit.clone(), |attributes| attributes.unit.clone());
        let texts = texts(series, attributes.is_some(), described, |key| {
            attributes.and_then(|attributes| attributes.text(key)).map(ToOwned::to_owned)
        });
        Self { series, known, described, unit, texts, output, total: BASE, taken: 0 }
    }

    /// Reads the hours, and sends their points.
    fn read(mut self, connection: &Connection, schema: &Schema) -> anyhow::Result<()> {
        let series = self.series;
        let conversion = Conversion::between(series.unit.as_deref(), self.unit.as_deref());
        let Some(conversion) = conversion else { return self.leave_out_all(connection) };

        let mut statement = connection.prepare(&query_of_hours(schema))?;
        let mut rows = statement.query([series.metadata_id])?;
        while let Some(row) = rows.next()? {
            match HourRow::read(row, series) {
                Ok(hour) => self.add(&hour, &conversion)?,
                Err(error) => {
                    let hour_id = text(row, 7)?.unwrap_or_default();
                    let hour = format!("hour {hour_id} of {}", series.id);
                    self.output.refuse_row(&hour, error)?;
                }
            }
        }

        if !series.is_counter {
            self.output.notes.leave_out_many("pairs of min and max of hours", self.taken);
        }
        Ok(())
    }

    /// Counts all hours of a series whose unit is not converted.
    fn leave_out_all(&self, connection: &Connection) -> anyhow::Result<()> {
        let query = "SELECT count(*) FROM statistics WHERE metadata_id = ?1";
        let count = connection.query_row(query, [self.series.metadata_id], |row| row.get(0))?;
        let shown = |unit: &Option<String>| unit.clone().unwrap_or_else(|| "no unit".to_owned());
        let (id, from, to) = (&self.series.id, shown(&self.series.unit), shown(&self.unit));
        let why = format!("hours of {id} in {from}, which is not converted exactly to {to}");
        self.output.notes.leave_out_many(&why, count);
        Ok(())
    }

    /// Sends the points of an hour, if it has a value and no states.
    fn add(&mut self, row: &HourRow, conversion: &Conversion) -> anyhow::Result<()> {
        let notes = &self.output.notes;
        let Some(start) = row.start else {
            notes.leave_out("hours without a time");
            return Ok(());
        };
        let first = row.value.filter(|_| self.taken == 0);
        note_sum(self.series, start, row.sum, first, self.output);

        let total_before = self.total;
        let value = match self.value_of(row.value, conversion) {
            Ok(value) => value,
            Err(why) => {
                notes.leave_out(&why);
                return Ok(());
            }
        };

        let hour = start.div_euclid(HOUR);
        if self.known.is_some_and(|entity| entity.hours.contains(&hour)) {
            notes.leave_out("hours that have states");
            return Ok(());
        }

        let is_before_states = |entity: &Entity| entity.is_long_before_states(hour);
        let has_means_only = !self.series.is_counter && self.known.is_none_or(is_before_states);
        let hour = StatisticHour { start, has_means_only };

        // Without this value, the first hour's amount would have no start.
        if self.series.is_amount && self.taken == 0 {
            self.send(hour, start, total_before.to_string(), None)?;
        }

        for at in times_of(self.series, self.unit.as_deref(), start) {
            self.send(hour, at, value.clone(), row.last_reset)?;
        }
        self.taken += 1;
        Ok(())
    }

    /// The value of an hour as it is stored: the converted value, or the sum of the amounts so far. An error says why
    /// the hour has no value.
    fn value_of(&mut self, value: Option<f64>, conversion: &Conversion) -> Result<String, String> {
        let value = value.filter(|value| value.is_finite()).ok_or("hours without a value")?;
        let value = conversion.of(value).ok_or("hours whose value is not converted exactly")?;
        if !self.series.is_amount {
            return Ok(value);
        }

        // A fall of the counter would count as a reset.
        let amount = value.parse().ok().filter(|amount: &Decimal| *amount >= Decimal::ZERO);
        let sum = amount.and_then(|amount| self.total.checked_add(amount)).ok_or_else(|| {
            format!(
                "hours of {} whose amount is below zero or has more than 28 digits",
                self.series.id
            )
        })?;
        self.total = sum;
        Ok(sum.normalize().to_string())
    }

    /// Sends a point of an hour.
    fn send(
        &self,
        hour: StatisticHour,
        at: i64,
        value: String,
        last_reset: Option<i64>,
    ) -> anyhow::Result<()> {
        let mut fields = vec![("value".to_owned(), value)];
        if let Some(reset) = last_reset.filter(|_| !self.series.is_external) {
            let known = self.known.map(|state| &state.last_resets);
            fields.push(("last_reset".to_owned(), number(reset_number(reset, known))));
        }
        fields.extend(self.texts.iter().cloned());
        let point = line(&self.series.id, self.unit.as_deref(), fields, at, self.described);
        self.output.send(Point { hour: Some(hour), ..point })
    }
}

impl HourRow {
    fn read(row: &Row<'_>, series: &StatisticSeries) -> rusqlite::Result<Self> {
        let start = nanos(row.get(0)?, text(row, 1)?.as_deref());
        let value = row.get(if series.is_counter { 2 } else { 3 })?;
        let last_reset = nanos(row.get(4)?, text(row, 5)?.as_deref());
        Ok(Self { start, value, last_reset, sum: row.get(6)? })
    }
}

/// The times at which the value of an hour is stored: the end of the hour for a counter, each quarter for a power, else
/// the middle.
fn times_of(series: &StatisticSeries, unit: Option<&str>, start: i64) -> Vec<i64> {
    if series.is_counter {
        vec![start.saturating_add(HOUR)]
    } else if unit.is_some_and(|unit| POWERS.contains(&unit)) {
        // A power value holds for at most 15 minutes, so one per quarter gives the hour's energy.
        (0..4).map(|quarter| start.saturating_add(quarter * HOUR / 4)).collect()
    } else {
        vec![start.saturating_add(HOUR / 2)]
    }
}

/// Notes Home Assistant's own sum at the end of the hour from `start` on. If `first` is the first amount, also notes
/// the sum at the start.
fn note_sum(
    series: &StatisticSeries,
    start: i64,
    sum: Option<f64>,
    first: Option<f64>,
    output: &PointOutput,
) {
    let Some(sum) = sum.filter(|sum| series.is_counter && sum.is_finite()) else { return };
    let note = |at, sum| output.notes.sum(&series.id, series.unit.as_deref(), at, &number(sum));
    if let Some(first) = first.filter(|first| series.is_amount && first.is_finite()) {
        note(start, sum - first);
    }
    note(start.saturating_add(HOUR), sum);
}

/// The text fields from which the server learns what a series is.
fn texts(
    series: &StatisticSeries,
    has_states: bool,
    described: Option<&EntityEntry>,
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
        text.map(|text| (format!("{key}_str"), text_field(&text)))
    });
    texts.into_iter().flatten().collect()
}

/// The number for a reset: the one that the states have for the same time, else the digits of the time in UTC.
fn reset_number(nanos: i64, known: Option<&HashMap<i64, f64>>) -> f64 {
    let seconds = nanos.div_euclid(1_000_000_000);
    if let Some(number) = known.and_then(|known| known.get(&seconds)) {
        return *number;
    }
    let at = domain::Timestamp::from_millis(seconds * 1_000).map(|at| at.to_string());
    let text = at.map(|at| format!("{}+00:00", at.split('.').next().unwrap_or_default()));
    text.ok().and_then(|text| super::attributes::digits(&text)).unwrap_or_default()
}
