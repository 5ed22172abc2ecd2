//! Queries to a running InfluxDB 1. Knows no window.

use std::io::{BufReader, Read};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::answer::{self, Cell};
use crate::import::sources::{Point, Way, escaped, escaped_measurement};

/// The time in which a server has to begin its answer.
const MAX_SILENCE: Duration = Duration::from_secs(300);

/// A server, and how it is asked.
pub(in crate::import) struct Server {
    agent: ureq::Agent,
    /// Without a name and a password.
    url: String,
    authorization: Option<String>,
}

impl Server {
    /// Connects to an address such as `http://name:password@pi:8086`, which has to be an InfluxDB 1.
    pub(in crate::import) fn connect(address: &str) -> anyhow::Result<Self> {
        let (scheme, rest) = address.split_once("://").context("expected an address")?;
        let (login, host) =
            rest.rsplit_once('@').map_or((None, rest), |(login, host)| (Some(login), host));
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(Duration::from_secs(30)))
            .timeout_recv_response(Some(MAX_SILENCE))
            .http_status_as_error(false)
            .build();
        let decoded =
            |text| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
        let authorization = login.map(|login| format!("Basic {}", STANDARD.encode(decoded(login))));
        let url = format!("{scheme}://{}", host.trim_end_matches('/'));
        let server = Self { agent: config.into(), url, authorization };
        let answer = server.agent.get(format!("{}/ping", server.url)).call();
        let answer =
            answer.with_context(|| format!("cannot reach {}; is it running?", server.url))?;
        let version = answer.headers().get("x-influxdb-version").and_then(|it| it.to_str().ok());
        match version.map(|version| version.trim_start_matches('v')) {
            Some(version) if version.starts_with("1.") => Ok(server),
            Some(version) => bail!(
                "{} is InfluxDB {version}, and only InfluxDB 1 is asked; influxd inspect export-lp writes line protocol \
                 of a bucket, which import takes",
                server.url
            ),
            None => bail!("{} is no InfluxDB: it answers /ping without a version", server.url),
        }
    }

    /// Returns its address.
    pub(in crate::import) fn shown(&self) -> &str {
        &self.url
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
        let mut request = self.agent.get(format!("{}/query?{}", self.url, query.finish()));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let mut answer = request.call().with_context(|| format!("{} does not answer", self.url))?;
        if answer.status() != 200 {
            let text = answer.body_mut().read_to_string().unwrap_or_default();
            let text = domain::excerpt(text.trim());
            bail!(
                "{} answers {}: {text}; name and password stand in the address, http://NAME:PASSWORD@HOST:8086",
                self.url,
                answer.status()
            );
        }
        Ok(BufReader::new(answer.into_body().into_reader()))
    }

    /// Asks for rows by the names of their series.
    pub(super) fn series(
        &self,
        database: &str,
        statement: &str,
        policy: Option<&str>,
    ) -> anyhow::Result<Vec<(String, Vec<Vec<Cell>>)>> {
        let mut all: Vec<(String, Vec<Vec<Cell>>)> = Vec::new();
        answer::read(self.ask(database, policy, statement)?, |series| {
            let rows = series.rows();
            match all.iter_mut().find(|(name, _)| *name == series.name) {
                Some((_, known)) => known.extend(rows),
                None => all.push((series.name.clone(), rows.collect())),
            }
        })?;
        Ok(all)
    }

    /// Asks for rows.
    pub(super) fn rows(&self, database: &str, statement: &str) -> anyhow::Result<Vec<Vec<Cell>>> {
        Ok(self.series(database, statement, None)?.into_iter().flat_map(|(_, rows)| rows).collect())
    }

    /// Asks for the texts of a column.
    pub(super) fn texts(
        &self,
        database: &str,
        statement: &str,
        column: usize,
    ) -> anyhow::Result<Vec<String>> {
        let text = |row: Vec<Cell>| row.get(column).and_then(Cell::text).map(ToOwned::to_owned);
        Ok(self.rows(database, statement)?.into_iter().filter_map(text).collect())
    }

    /// Asks for the points of a measurement: the time, then these fields.
    pub(super) fn points(
        &self,
        database: &str,
        statement: &str,
        measurement: &str,
        fields: &[(String, String)],
    ) -> anyhow::Result<Vec<Point>> {
        let measurement = escaped_measurement(measurement);
        let keys: Vec<String> = fields.iter().map(|(name, _)| escaped(name)).collect();
        let (mut points, mut wrong) = (Vec::new(), 0);
        answer::read(self.ask(database, None, statement)?, |series| {
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
                    });
                }
            }
        })?;
        ensure!(wrong == 0, "InfluxDB answers {wrong} rows that are not what was asked");
        Ok(points)
    }
}

/// The value of a field in line protocol; a number keeps its text.
fn written(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Null => None,
        Cell::Boolean(is) => Some(if *is { "t" } else { "f" }.to_owned()),
        Cell::Number(text) => Some(text.clone()),
        Cell::Text(text) => {
            Some(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
        }
    }
}

/// Writes an identifier of InfluxQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
