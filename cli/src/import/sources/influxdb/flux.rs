//! Queries to a running InfluxDB 2, in Flux. Chooses no window of time.
//!
//! The form of the answers is taken from the documentation and the sources; no running InfluxDB 2 was tried.
//!
//! Sources: <https://docs.influxdata.com/influxdb/v2/api/query/>, <https://docs.influxdata.com/influxdb/v2/api/buckets/>,
//! <https://docs.influxdata.com/flux/v0/stdlib/universe/range/>,
//! <https://docs.influxdata.com/flux/v0/spec/lexical-elements/#string-literals>

mod annotated_csv;

use anyhow::{Context as _, bail, ensure};
use chrono::{DateTime, SecondsFormat};
use serde::Deserialize;

use super::again::again;
use super::http::{Ask, Http};
use super::queries::{Context, Measurement, Queries};
use crate::import::sources::line_protocol::Database;
use crate::import::sources::{Point, Way, escaped, escaped_measurement, text_field};
use annotated_csv::Row;

/// The number of buckets in a page; the server allows at most 100.
const PAGE: usize = 100;
/// The first time that InfluxDB can store, and the time after the last:
/// <https://docs.influxdata.com/influxdb/v2/reference/faq/#what-are-the-minimum-and-maximum-timestamps-that-influxdb-can-store>.
const TIMES: (&str, &str) = ("1677-09-21T00:12:43.145224194Z", "2262-04-11T23:47:16.854775807Z");

/// Sends Flux queries to a server, with its token.
pub(super) struct Flux {
    http: Http,
    authorization: String,
}

/// A page of `/api/v2/buckets`.
#[derive(Deserialize)]
struct Page {
    buckets: Vec<Bucket>,
}

#[derive(Clone, PartialEq, Eq, Deserialize)]
struct Bucket {
    name: String,
    #[serde(rename = "orgID")]
    organization: String,
    /// `user`, or `system` for InfluxDB's own data.
    #[serde(rename = "type", default)]
    kind: String,
}

impl Flux {
    pub(super) fn new(http: Http, token: &str) -> Self {
        Self { http, authorization: format!("Token {token}") }
    }

    fn ask(&self, path: &str, body: Option<String>) -> anyhow::Result<impl std::io::Read + use<>> {
        self.http.ask(Ask {
            path,
            body,
            authorization: Some(&self.authorization),
            advice: "--source-token names a token that may read the bucket",
        })
    }

    fn buckets(&self) -> anyhow::Result<Vec<Bucket>> {
        let mut all: Vec<Bucket> = Vec::new();
        loop {
            let path = format!("/api/v2/buckets?limit={PAGE}&offset={}", all.len());
            let page: Page = again(|| {
                serde_json::from_reader(self.ask(&path, None)?)
                    .context("the list of buckets cannot be read")
            })?;

            let (before, count) = (all.len(), page.buckets.len());
            for bucket in page.buckets {
                if !all.contains(&bucket) {
                    all.push(bucket);
                }
            }

            // A server that ignores the offset would return the same page for ever.
            if count < PAGE || all.len() == before {
                return Ok(all);
            }
        }
    }

    fn query(
        &self,
        context: &Context,
        query: &str,
        each: impl FnMut(&Row<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut parameters = form_urlencoded::Serializer::new(String::new());
        parameters.append_pair("orgID", &context.policy);
        let path = format!("/api/v2/query?{}", parameters.finish());
        let body = serde_json::json!({
            "query": query,
            "type": "flux",
            "dialect": {"header": true, "delimiter": ",", "annotations": ["datatype", "group", "default"]},
        });
        annotated_csv::read(self.ask(&path, Some(body.to_string()))?, each)
    }
}

impl Queries for Flux {
    fn contexts(
        &self,
        wanted: &[Database],
        say: &mut dyn FnMut(String),
    ) -> anyhow::Result<Vec<Context>> {
        let url = &self.http.url;
        let all = self.buckets()?;
        let names: Vec<&str> =
            all.iter().filter(|it| it.kind != "system").map(|it| &*it.name).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let chosen: Vec<String> = match (wanted, &names[..]) {
            ([], [only]) => vec![(*only).to_owned()],
            ([], []) => bail!("{url} shows no bucket to this token"),
            ([], _) => bail!("{url} has the buckets {known}; choose with --database"),
            (wanted, _) => wanted.iter().map(Database::to_string).collect(),
        };
        let mut contexts = Vec::new();
        for name in chosen {
            let of_name: Vec<&Bucket> = all.iter().filter(|it| it.name == name).collect();
            let [bucket] = of_name[..] else {
                ensure!(
                    of_name.is_empty(),
                    "{url} has several buckets {name:?}, in different organizations; take a token of one organization"
                );
                bail!("{url} has no bucket {name:?}; it has {known}");
            };
            say(format!("bucket       {name}"));
            contexts.push(Context { database: name, policy: bucket.organization.clone() });
        }
        for other in names.iter().filter(|name| !contexts.iter().any(|it| it.database == **name)) {
            say(format!("left out     bucket {other}; --database {other} imports it"));
        }
        Ok(contexts)
    }

    fn measurements(&self, context: &Context) -> anyhow::Result<Vec<Measurement>> {
        let query = format!(
            "{} |> keep(columns: [\"_measurement\"]) |> group() |> distinct(column: \"_measurement\")",
            from(context, TIMES),
        );
        let mut names = again(|| {
            let mut names = Vec::new();
            self.query(context, &query, |row| {
                names.extend(row.get("_value").map(ToOwned::to_owned));
                Ok(())
            })?;
            Ok(names)
        })?;
        names.sort_unstable();
        names.dedup();
        Ok(names.into_iter().map(|name| Measurement { name, columns: Vec::new() }).collect())
    }

    fn edges(
        &self,
        context: &Context,
        measurement: &Measurement,
    ) -> anyhow::Result<Option<(i64, i64)>> {
        // The query returns a row for each series; they are compared here, because Flux cannot group series of
        // different types.
        let edge = |selector: &str| {
            let query = format!(
                "{} |> {} |> {selector}() |> keep(columns: [\"_time\"])",
                from(context, TIMES),
                only(measurement)
            );
            again(|| {
                let mut times = Vec::new();
                self.query(context, &query, |row| {
                    times.push(time(row)?);
                    Ok(())
                })?;
                Ok(times)
            })
        };
        let Some(first) = edge("first")?.into_iter().min() else { return Ok(None) };
        Ok(edge("last")?.into_iter().max().map(|last| (first, last)))
    }

    fn points(
        &self,
        context: &Context,
        measurement: &Measurement,
        (begin, until): (i64, i64),
    ) -> anyhow::Result<Vec<Point>> {
        let [begin, until] = [begin, until].map(|nanos| {
            DateTime::from_timestamp_nanos(nanos).to_rfc3339_opts(SecondsFormat::Nanos, true)
        });
        let query = format!(
            "{} |> {} |> drop(columns: [\"_start\", \"_stop\"])",
            from(context, (&begin, &until)),
            only(measurement)
        );
        let mut points = Vec::new();
        self.query(context, &query, |row| {
            points.extend(point(row)?);
            Ok(())
        })?;
        Ok(points)
    }
}

/// The query for the points of a span; `start` and `stop` are in Flux's form.
fn from(context: &Context, (start, stop): (&str, &str)) -> String {
    format!("from(bucket: {}) |> range(start: {start}, stop: {stop})", quoted(&context.database))
}

fn only(measurement: &Measurement) -> String {
    format!("filter(fn: (r) => r._measurement == {})", quoted(&measurement.name))
}

fn time(row: &Row<'_>) -> anyhow::Result<i64> {
    let text = row.get("_time").context("InfluxDB answers a row without a time")?;
    let at = DateTime::parse_from_rfc3339(text).ok().and_then(|at| at.timestamp_nanos_opt());
    at.with_context(|| format!("InfluxDB answers the time {text:?}, which cannot be read"))
}

/// The point of a row, which has one field; `None` if the row has no value.
fn point(row: &Row<'_>) -> anyhow::Result<Option<Point>> {
    let Some(value) = row.get("_value") else { return Ok(None) };
    let value = match row.kind("_value") {
        "double" => value.to_owned(),
        "long" => format!("{value}i"),
        "unsignedLong" => format!("{value}u"),
        "boolean" => (if value == "true" { "t" } else { "f" }).to_owned(),
        "string" => text_field(value),
        other => bail!("InfluxDB answers values of the type {other:?}, which no field has"),
    };
    let column = |name| {
        row.get(name).with_context(|| format!("InfluxDB answers a row without the column {name}"))
    };
    let mut tags: Vec<(&str, &str)> =
        row.keys().filter(|(name, _)| !["_measurement", "_field"].contains(name)).collect();
    tags.sort_unstable();
    let tags: Vec<String> =
        tags.iter().map(|(key, value)| format!("{}={}", escaped(key), escaped(value))).collect();
    Ok(Some(Point {
        measurement: escaped_measurement(column("_measurement")?),
        tags: tags.join(","),
        fields: vec![(escaped(column("_field")?), value)],
        nanos: time(row)?,
        line: 0,
        way: Way::Plain,
        hour: None,
    }))
}

/// Writes a string literal of Flux. Escapes `${`, which would begin an expression.
fn quoted(text: &str) -> String {
    const ESCAPES: [(&str, &str); 6] = [
        ("\\", "\\\\"),
        ("\"", "\\\""),
        ("\n", "\\n"),
        ("\r", "\\r"),
        ("\t", "\\t"),
        ("${", "\\${"),
    ];
    let escaped =
        ESCAPES.iter().fold(text.to_owned(), |text, (plain, written)| text.replace(plain, written));
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests;
