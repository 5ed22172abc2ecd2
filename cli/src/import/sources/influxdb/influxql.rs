//! Queries to a running InfluxDB 1, in InfluxQL. Chooses no window of time.
//!
//! Source: <https://docs.influxdata.com/influxdb/v1/tools/api/#query-http-endpoint>

mod answer;

use std::collections::BTreeMap;
use std::io::Read;

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::again::again;
use super::http::{Ask, Http};
use super::queries::{Context, Measurement, Queries};
use crate::import::sources::line_protocol::Database;
use crate::import::sources::{Point, Way, escaped, escaped_measurement, text_field};
use answer::Cell;

/// InfluxDB's internal database.
const MONITORING: &str = "_internal";

/// Sends InfluxQL queries to a server, with its user name and password.
pub(super) struct InfluxQl {
    http: Http,
    authorization: Option<String>,
}

impl InfluxQl {
    pub(super) fn new(http: Http) -> Self {
        let authorization = http.login.as_deref().map(|login| {
            let login = percent_encoding::percent_decode_str(login).decode_utf8_lossy();
            format!("Basic {}", STANDARD.encode(login.as_bytes()))
        });
        Self { http, authorization }
    }

    fn ask(
        &self,
        database: &str,
        policy: Option<&str>,
        statement: &str,
    ) -> anyhow::Result<impl Read + use<>> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs([
            ("q", statement),
            ("db", database),
            ("epoch", "ns"),
            ("chunked", "true"),
            ("chunk_size", "10000"),
        ]);
        query.extend_pairs(policy.map(|policy| ("rp", policy)));
        self.http.ask(Ask {
            path: &format!("/query?{}", query.finish()),
            body: None,
            authorization: self.authorization.as_deref(),
            advice: "name and password stand in the address, http://NAME:PASSWORD@HOST:8086",
        })
    }

    /// Sends a query and returns its rows by series name. Repeats the query if it fails.
    fn series(
        &self,
        database: &str,
        statement: &str,
        policy: Option<&str>,
    ) -> anyhow::Result<Vec<(String, Vec<Vec<Cell>>)>> {
        again(|| {
            let mut all: Vec<(String, Vec<Vec<Cell>>)> = Vec::new();
            answer::read(self.ask(database, policy, statement)?, |series| {
                let rows = series.rows();
                match all.iter_mut().find(|(name, _)| *name == series.name) {
                    Some((_, known)) => known.extend(rows),
                    None => all.push((series.name.clone(), rows.collect())),
                }
            })?;
            Ok(all)
        })
    }

    /// Sends a query and returns its rows.
    fn rows(&self, database: &str, statement: &str) -> anyhow::Result<Vec<Vec<Cell>>> {
        Ok(self.series(database, statement, None)?.into_iter().flat_map(|(_, rows)| rows).collect())
    }
}

impl Queries for InfluxQl {
    fn contexts(
        &self,
        wanted: &[Database],
        say: &mut dyn FnMut(String),
    ) -> anyhow::Result<Vec<Context>> {
        let url = &self.http.url;
        let first = |row: &Vec<Cell>| row.first().and_then(Cell::text).map(ToOwned::to_owned);
        let all = self.rows("", "SHOW DATABASES")?;
        let all: Vec<String> =
            all.iter().filter_map(first).filter(|name| name != MONITORING).collect();
        let chosen: Vec<Database> = match (wanted, &all[..]) {
            ([], [only]) => vec![Database::named(only)],
            ([], []) => bail!("{url} has no database"),
            ([], _) => bail!("{url} has {}; choose with --database", all.join(", ")),
            (wanted, _) => wanted.to_vec(),
        };
        let mut contexts = Vec::new();
        for it in chosen {
            // A database's name may contain a point.
            let (database, policy) = it.among(&all);
            ensure!(
                all.contains(&database),
                "{url} has no database {database:?}; it has {}",
                all.join(", ")
            );
            let statement = format!("SHOW RETENTION POLICIES ON {}", quoted(&database));
            let policies = self.rows(&database, &statement)?;
            let names: Vec<String> = policies.iter().filter_map(first).collect();
            let is_default =
                |row: &&Vec<Cell>| row.last().is_some_and(|cell| *cell == Cell::Boolean(true));
            let policy = match policy {
                Some(policy) => policy,
                None => policies
                    .iter()
                    .find(is_default)
                    .and_then(first)
                    .context("no retention policy is the default one")?,
            };
            ensure!(
                names.contains(&policy),
                "{database} has no retention policy {policy:?}; it has {}",
                names.join(", ")
            );
            say(format!("database     {database}, retention policy {policy}"));
            for other in names.iter().filter(|name| **name != policy) {
                say(format!(
                    "left out     {database}.{other}; --database {database}.{other} imports it"
                ));
            }
            contexts.push(Context { database, policy });
        }
        Ok(contexts)
    }

    fn measurements(&self, context: &Context) -> anyhow::Result<Vec<Measurement>> {
        let fields = self.series(&context.database, "SHOW FIELD KEYS", Some(&context.policy))?;
        let measurement = |(name, rows): (String, Vec<Vec<Cell>>)| {
            let field = |row: &Vec<Cell>| {
                Some((row.first()?.text()?.to_owned(), row.get(1)?.text()?.to_owned()))
            };
            Measurement { name, columns: columns(rows.iter().filter_map(field)) }
        };
        Ok(fields.into_iter().map(measurement).collect())
    }

    fn edges(
        &self,
        context: &Context,
        measurement: &Measurement,
    ) -> anyhow::Result<Option<(i64, i64)>> {
        let from = select_from(context, measurement);
        let edge = |order: &str| {
            let statement = format!("{from} ORDER BY time {order} LIMIT 1");
            let rows = self.rows(&context.database, &statement)?;
            anyhow::Ok(rows.first().and_then(|row| row.first()?.number()?.parse().ok()))
        };
        Ok(edge("ASC")?.zip(edge("DESC")?))
    }

    fn points(
        &self,
        context: &Context,
        measurement: &Measurement,
        (begin, until): (i64, i64),
    ) -> anyhow::Result<Vec<Point>> {
        let Measurement { name, columns } = measurement;
        let from = select_from(context, measurement);
        let statement = format!("{from} WHERE time >= {begin} AND time < {until} GROUP BY *");
        let measurement = escaped_measurement(name);
        let keys: Vec<String> = columns.iter().map(|(name, _)| escaped(name)).collect();
        let (mut points, mut wrong) = (Vec::new(), 0);
        answer::read(self.ask(&context.database, None, &statement)?, |series| {
            let tags = series.tags.iter().filter(|(_, value)| !value.is_empty());
            let tags: Vec<String> =
                tags.map(|(key, value)| format!("{}={}", escaped(key), escaped(value))).collect();
            let tags = tags.join(",");
            for row in series.rows() {
                let nanos = row.first().and_then(|cell| cell.number()?.parse().ok());
                let Some(nanos) = nanos.filter(|_| row.len() == keys.len() + 1) else {
                    wrong += 1;
                    continue;
                };
                let fields: Vec<_> = keys
                    .iter()
                    .zip(&row[1..])
                    .filter_map(|(key, cell)| Some((key.clone(), written(cell)?)))
                    .collect();
                if !fields.is_empty() {
                    let (measurement, tags) = (measurement.clone(), tags.clone());
                    points.push(Point {
                        measurement,
                        tags,
                        fields,
                        nanos,
                        line: 0,
                        way: Way::Plain,
                        hour: None,
                    });
                }
            }
        })?;
        ensure!(wrong == 0, "InfluxDB answers {wrong} rows that are not what was asked");
        Ok(points)
    }
}

/// The columns to select, so that every value is returned although a field may have changed its type. A column of type
/// float also returns integers.
fn columns(fields: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, kind) in fields {
        by_name.entry(name).or_default().push(kind);
    }
    let mut columns = Vec::new();
    for (name, kinds) in by_name {
        let has_float = kinds.iter().any(|kind| kind == "float");
        let kept = kinds.into_iter().filter(|kind| kind != "integer" || !has_float);
        columns.extend(kept.map(|kind| (name.clone(), kind)));
    }
    columns
}

/// Selects each field once for each of its types: `SELECT *` chooses one type and leaves out values of another.
fn select_from(context: &Context, Measurement { name, columns }: &Measurement) -> String {
    let select = columns.iter().map(|(name, kind)| format!("{}::{kind}", quoted(name)));
    let select = select.collect::<Vec<_>>().join(", ");
    format!("SELECT {select} FROM {}.{}", quoted(&context.policy), quoted(name))
}

/// The value of a field in line protocol; a number keeps its digits.
fn written(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Null => None,
        Cell::Boolean(is) => Some(if *is { "t" } else { "f" }.to_owned()),
        Cell::Number(text) => Some(text.clone()),
        Cell::Text(text) => Some(text_field(text)),
    }
}

/// Writes a quoted identifier of InfluxQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests;
