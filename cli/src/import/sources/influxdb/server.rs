//! A running InfluxDB, and the query language that its version needs. Parses no other answer than the version.

use anyhow::{bail, ensure};

use super::flux::Flux;
use super::http::Http;
use super::influxql::InfluxQl;
use super::queries::Queries;

/// A server with its query language.
///
/// InfluxDB 3 also answers `InfluxQL` on `/query` with a token, but its retention policies are placeholders and parts
/// of the language are missing. Nobody has tried it, so InfluxDB 3 is refused:
/// <https://docs.influxdata.com/influxdb3/core/query-data/execute-queries/influxdb-v1-api/>,
/// <https://docs.influxdata.com/influxdb3/core/reference/influxql/show/>.
pub(in crate::import) struct Server {
    /// The address without user name and password.
    url: String,
    pub(super) queries: Box<dyn Queries>,
}

impl Server {
    /// Connects to an address such as `http://name:password@pi:8086`. The token is for InfluxDB 2.
    ///
    /// InfluxDB Cloud answers without a version: <https://docs.influxdata.com/influxdb/v2/api/ping/>.
    pub(in crate::import) fn connect(address: &str, token: Option<&str>) -> anyhow::Result<Self> {
        let http = Http::of(address)?;
        let url = http.url.clone();
        let version = http.version()?;
        let queries: Box<dyn Queries> = match (version.as_deref(), token) {
            (Some(version), token) if version.starts_with("1.") => {
                ensure!(
                    token.is_none(),
                    "--source-token: {url} is InfluxDB {version}, which takes name and password in the address, \
                     http://NAME:PASSWORD@HOST:8086"
                );
                Box::new(InfluxQl::new(http))
            }
            (Some(version), None) if version.starts_with("2.") => {
                bail!("{url} is InfluxDB {version}, which takes a token: --source-token @FILE")
            }
            (Some(version), Some(token)) if version.starts_with("2.") => {
                Box::new(Flux::new(http, token))
            }
            (None, Some(token)) => Box::new(Flux::new(http, token)),
            (Some(version), _) => {
                bail!(
                    "{url} is InfluxDB {version}, and only InfluxDB 1 and 2 are asked; its own command writes CSV, \
                     which is imported: influxdb3 query --format csv"
                )
            }
            (None, None) => bail!(
                "{url} is no InfluxDB: it answers /ping without a version; InfluxDB Cloud does too, and takes \
                 --source-token @FILE"
            ),
        };
        Ok(Self { url, queries })
    }

    /// Returns the address for messages.
    pub(in crate::import) fn shown(&self) -> &str {
        &self.url
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::fake_server::{self, Reply};

    /// It answers as InfluxDB 1.8 does.
    #[test]
    fn a_roomtide_is_refused_with_the_way_to_its_data() {
        let server = fake_server::serve(|_, request| match request.path.as_str() {
            "/ready" => Reply::of(200, r#"{"status":"ready","up":"0s"}"#),
            _ => Reply::with(204, "x-influxdb-version: 1.8.10\r\n", ""),
        });
        let error = Server::connect(&server.url, None).err().unwrap().to_string();
        assert!(
            error.contains("is a Roomtide: `roomtide export all.ndjson --url http://"),
            "{error}"
        );
    }

    #[test]
    fn the_version_tells_the_language_and_the_credentials() {
        for (headers, token, expected) in [
            ("x-influxdb-version: 1.8.10\r\n", None, ""),
            ("x-influxdb-version: 1.8.10\r\n", Some("t"), "which takes name and password"),
            ("x-influxdb-version: v2.7.1\r\nx-influxdb-build: OSS\r\n", Some("t"), ""),
            ("x-influxdb-version: v2.7.1\r\n", None, "is InfluxDB 2.7.1, which takes a token"),
            ("x-influxdb-version: 3.2.0\r\n", Some("t"), "is InfluxDB 3.2.0, and only"),
            ("", None, "is no InfluxDB"),
            ("", Some("t"), ""),
        ] {
            let server = fake_server::serve(move |_, _| Reply::with(204, headers, ""));
            let error = Server::connect(&server.url, token).err().map(|error| error.to_string());
            let error = error.unwrap_or_default();
            assert!(error.contains(expected) && error.is_empty() == expected.is_empty(), "{error}");
        }
    }
}
