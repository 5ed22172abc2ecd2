//! A running InfluxDB 1 or 2, and the queries of an import, in InfluxQL. Chooses no window of time.
//!
//! Sources: <https://docs.influxdata.com/influxdb/v1/tools/api/#query-http-endpoint>,
//! <https://docs.influxdata.com/influxdb/v2/api-guide/influxdb-1x/query/>. InfluxDB 2 answers for a bucket by its mapping
//! to a database and a retention policy: <https://docs.influxdata.com/influxdb/v2/query-data/influxql/dbrp/>. No running
//! InfluxDB 2 was tried.

mod answer;

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::again::again;
use super::http::Http;
use super::span::NanosecondRange;
use crate::line_protocol::Database;
use crate::point::{Point, Way, escaped, escaped_measurement, text_field};
use answer::Cell;

/// The databases and buckets of InfluxDB's own data.
const INTERNAL: [&str; 3] = ["_internal", "_monitoring", "_tasks"];
/// How to give credentials, for the error if the server refuses them.
const LOGIN_ADVICE: &str = "name and password stand in the address, http://NAME:PASSWORD@HOST:8086";
const TOKEN_ADVICE: &str = "--source-token names a token that may read the bucket";
/// How a bucket gets a name in InfluxQL:
/// <https://docs.influxdata.com/influxdb/v2/reference/cli/influx/v1/dbrp/create/>.
const MAPPING_ADVICE: &str = "a bucket of InfluxDB 2 is read by its mapping, which `influx v1 dbrp create --bucket-id ID \
                              --db NAME --rp autogen --default` makes";

/// A running InfluxDB, with its user name and password or its token.
///
/// InfluxDB 3 also answers InfluxQL on `/query` with a token, but its retention policies are placeholders and parts of
/// the language are missing. Nobody has tried it, so InfluxDB 3 is refused:
/// <https://docs.influxdata.com/influxdb3/core/query-data/execute-queries/influxdb-v1-api/>,
/// <https://docs.influxdata.com/influxdb3/core/reference/influxql/show/>.
pub struct Server {
    http: Http,
    authorization: Option<String>,
    advice: &'static str,
}

/// The location of points: a database and one of its retention policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The database.
    pub database: String,
    /// The retention policy.
    pub policy: String,
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.policy)
    }
}

/// A measurement and its fields, each with a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Measurement {
    pub(super) name: String,
    columns: Vec<(String, String)>,
}

impl Server {
    /// Connects to an address such as `http://name:password@pi:8086`. InfluxDB 2 takes a token.
    ///
    /// InfluxDB Cloud answers without a version: <https://docs.influxdata.com/influxdb/v2/api/ping/>.
    pub fn connect(address: &str, token: Option<&str>) -> anyhow::Result<Self> {
        let http = Http::of(address)?;
        let url = &http.url;
        match (http.version()?.as_deref(), token) {
            (Some(version), None) if version.starts_with("2.") && http.login.is_none() => {
                bail!("{url} is InfluxDB {version}, which takes a token: --source-token @FILE")
            }
            (Some(version), _) if version.starts_with("1.") || version.starts_with("2.") => {}
            (Some(version), _) => bail!(
                "{url} is InfluxDB {version}, and only InfluxDB 1 and 2 are asked; its own command writes CSV, which is \
                 imported: influxdb3 query --format csv"
            ),
            (None, Some(_)) => {}
            (None, None) => bail!(
                "{url} is not InfluxDB: it answers /ping without a version; InfluxDB Cloud does too, and takes \
                 --source-token @FILE"
            ),
        }

        let basic = http.login.as_deref().map(|login| {
            let login = percent_encoding::percent_decode_str(login).decode_utf8_lossy();
            format!("Basic {}", STANDARD.encode(login.as_bytes()))
        });
        let authorization = token.map(|token| format!("Token {token}")).or(basic);
        let advice = if token.is_some() { TOKEN_ADVICE } else { LOGIN_ADVICE };
        Ok(Self { http, authorization, advice })
    }

    /// Returns the address without user name and password.
    pub fn shown(&self) -> &str {
        &self.http.url
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
        let path = format!("/query?{}", query.finish());
        self.http.ask(&path, self.authorization.as_deref(), self.advice)
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

    /// Returns the databases to import: the requested ones, or the only one. Reports through `say` which retention
    /// policies are imported and which are left out.
    pub fn contexts(
        &self,
        wanted: &[Database],
        mut say: impl FnMut(String),
    ) -> anyhow::Result<Vec<Context>> {
        let url = &self.http.url;
        let all: Vec<String> = first_texts(&self.rows("", "SHOW DATABASES")?)
            .filter(|name| !INTERNAL.contains(&name.as_str()))
            .collect();

        let chosen: Vec<Database> = match (wanted, &all[..]) {
            (_, []) => bail!("{url} shows no database; {MAPPING_ADVICE}"),
            ([], [only]) => vec![Database::named(only)],
            ([], _) => bail!("{url} has {}; choose with --database", all.join(", ")),
            (wanted, _) => wanted.to_vec(),
        };

        chosen.iter().map(|wanted| self.context(wanted, &all, &mut say)).collect()
    }

    /// Finds the retention policy of a database: the requested one, else the default one, else the only one.
    fn context(
        &self,
        wanted: &Database,
        all: &[String],
        say: &mut impl FnMut(String),
    ) -> anyhow::Result<Context> {
        // A database's name may contain a point.
        let (database, policy) = wanted.among(all);
        ensure!(
            all.contains(&database),
            "{url} has no database {database:?}; it has {}; {MAPPING_ADVICE}",
            all.join(", "),
            url = self.http.url
        );

        let statement = format!("SHOW RETENTION POLICIES ON {}", quoted(&database));
        let policies = self.rows(&database, &statement)?;
        let names: Vec<String> = first_texts(&policies).collect();

        let is_default = |row: &&Vec<Cell>| row.last() == Some(&Cell::Boolean(true));
        let default = || policies.iter().find(is_default)?.first()?.text().map(ToOwned::to_owned);
        let only = || names.first().filter(|_| names.len() == 1).cloned();
        let policy = policy.or_else(default).or_else(only).with_context(|| {
            format!(
                "{database} has the retention policies {}, none of them the default; choose with --database \
                 {database}.POLICY",
                names.join(", ")
            )
        })?;

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
        Ok(Context { database, policy })
    }

    /// Returns the measurements, in any order.
    pub(super) fn measurements(&self, context: &Context) -> anyhow::Result<Vec<Measurement>> {
        let fields = self.series(&context.database, "SHOW FIELD KEYS", Some(&context.policy))?;
        let measurement = |(name, rows): (String, Vec<Vec<Cell>>)| {
            let field = |row: &Vec<Cell>| {
                Some((row.first()?.text()?.to_owned(), row.get(1)?.text()?.to_owned()))
            };
            Measurement { name, columns: columns(rows.iter().filter_map(field)) }
        };
        Ok(fields.into_iter().map(measurement).collect())
    }

    /// Returns the times of the first and the last point, in nanoseconds.
    pub(super) fn edges(
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

    /// Returns the points of a window in nanoseconds; its end is exclusive.
    pub(super) fn points(
        &self,
        context: &Context,
        measurement: &Measurement,
        span: NanosecondRange,
    ) -> anyhow::Result<Vec<Point>> {
        let Measurement { name, columns } = measurement;
        let NanosecondRange { from: begin, to: until } = span;
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

/// The texts in the first column of rows.
fn first_texts(rows: &[Vec<Cell>]) -> impl Iterator<Item = String> {
    rows.iter().filter_map(|row| row.first()?.text().map(ToOwned::to_owned))
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
