//! HTTP requests to a running InfluxDB. Knows no query.

use std::io::{self, BufReader, Read};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;

use super::again::Lasting;
use crate::address::{READY, ensure_no_query, proxy_to, redirection, says_roomtide, split_login};

/// The maximum time until a server begins its answer, and then between parts of the answer.
const MAX_SILENCE: Duration = Duration::from_secs(300);

/// A server's address and HTTP client.
pub(super) struct Http {
    agent: ureq::Agent,
    max_silence: Duration,
    /// The address without user name and password.
    pub(super) url: String,
    /// The user name and password of the address, still percent-encoded.
    pub(super) login: Option<String>,
}

/// The reason in an error answer: InfluxDB 1 calls the member `error`, InfluxDB 2 `message`.
#[derive(Default, Deserialize)]
struct ServerError {
    error: Option<String>,
    message: Option<String>,
}

/// Returns the reason in an error answer, or the beginning of any other text.
fn said(text: &str) -> String {
    let refusal: ServerError = serde_json::from_str(text).unwrap_or_default();
    refusal.message.or(refusal.error).unwrap_or_else(|| domain::excerpt(text.trim()))
}

impl Http {
    /// Reads an address such as `http://name:password@pi:8086`.
    pub(super) fn of(address: &str) -> anyhow::Result<Self> {
        Self::within(address, MAX_SILENCE)
    }

    fn within(address: &str, max_silence: Duration) -> anyhow::Result<Self> {
        ensure!(address.contains("://"), "expected an address");
        ensure_no_query(address)?;
        let (login, url) = split_login(address);

        let config = ureq::Agent::config_builder()
            .proxy(proxy_to(&url))
            .timeout_connect(Some(Duration::from_secs(30)))
            .timeout_recv_response(Some(max_silence))
            .timeout_per_read(Some(max_silence))
            .http_status_as_error(false)
            .max_redirects(0)
            .build();

        let (login, url) = (login.map(str::to_owned), url.trim_end_matches('/').to_owned());
        Ok(Self { agent: config.into(), max_silence, url, login })
    }

    /// Whether the server is a Roomtide, which answers as InfluxDB does. An import of its points would make devices
    /// with other ids.
    fn is_roomtide(&self) -> bool {
        let answer = self.agent.get(format!("{}{READY}", self.url)).call();
        answer.is_ok_and(|mut answer| {
            let text = answer.body_mut().read_to_string().unwrap_or_default();
            says_roomtide(answer.status().as_u16(), &text)
        })
    }

    /// Asks the server for its version. `None` if the server does not tell it.
    pub(super) fn version(&self) -> anyhow::Result<Option<String>> {
        let answer = self.agent.get(format!("{}/ping", self.url)).call();
        let answer =
            answer.with_context(|| format!("cannot reach {}; is it running?", self.url))?;
        self.ensure_no_redirect(&answer)?;
        ensure!(
            !self.is_roomtide(),
            "{url} is a Roomtide: `roomtide export all.ndjson --url {url}` writes what it has, with the same devices, and \
             import takes the file",
            url = self.url
        );

        let version =
            answer.headers().get("x-influxdb-version").and_then(|version| version.to_str().ok());
        Ok(version.map(|version| version.trim_start_matches('v').to_owned()))
    }

    /// Sends a request, and returns the body of an answer with status 200. `advice` says how to give credentials, if
    /// the server refuses them.
    pub(super) fn ask(
        &self,
        path: &str,
        authorization: Option<&str>,
        advice: &str,
    ) -> anyhow::Result<impl Read + use<>> {
        let mut request = self.agent.get(format!("{}{path}", self.url));
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }

        let answer = request.call();
        let mut answer = answer.with_context(|| format!("{} does not answer", self.url))?;
        self.ensure_no_redirect(&answer)?;

        let status = answer.status();
        if status != 200 {
            let text = answer.body_mut().read_to_string().unwrap_or_default();
            let refusal = format!("{} answers {status}: {}", self.url, said(&text));
            match status.as_u16() {
                401 | 403 => bail!(Lasting(format!("{refusal}; {advice}"))),
                404 => bail!(Lasting(refusal)),
                _ => bail!(refusal),
            }
        }

        let reader = answer.into_body().into_reader();
        let stall = format!(
            "{} has sent nothing for {:?} in the middle of its answer",
            self.url, self.max_silence
        );
        Ok(BufReader::new(Body { reader, stall }))
    }

    fn ensure_no_redirect(&self, answer: &http::Response<ureq::Body>) -> anyhow::Result<()> {
        match redirection(answer) {
            Some(redirection) => bail!(Lasting(format!("{} {redirection}", self.url))),
            None => Ok(()),
        }
    }
}

/// A reader of an answer's body.
struct Body {
    reader: ureq::BodyReader<'static>,
    /// The error if the answer stalls.
    stall: String,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer).map_err(|error| match ureq::Error::from(error) {
            ureq::Error::Timeout(_) => io::Error::new(io::ErrorKind::TimedOut, self.stall.clone()),
            other => other.into_io(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_server::{self, Reply};

    #[test]
    fn an_answer_that_stalls_is_an_error_that_says_so() {
        let server = fake_server::serve(|_, _| Reply::stalled("{\"results\": ["));
        let http = Http::within(&server.url, Duration::from_millis(500)).unwrap();
        let error =
            io::read_to_string(http.ask("/query", None, "").unwrap()).unwrap_err().to_string();

        let expected = format!("{} has sent nothing for 500ms in the middle of", server.url);
        assert!(error.starts_with(&expected), "{error}");
    }

    #[test]
    fn an_address_with_a_query_is_refused_without_a_word_of_it() {
        for address in ["http://pi:8086?u=me&p=secret", "http://pi:8086/#secret"] {
            let error = Http::of(address).err().unwrap().to_string();
            assert!(error.starts_with("an address ends before a ?"), "{error}");
        }
    }

    #[test]
    fn no_redirect_is_followed() {
        let server = fake_server::serve(|_, request| match request.path.as_str() {
            "/elsewhere" => Reply::with(200, "x-influxdb-version: 1.8.10\r\n", "{}"),
            _ => Reply::with(302, "location: /elsewhere\r\n", ""),
        });
        let http = Http::of(&server.url).unwrap();
        let version = http.version().unwrap_err().to_string();
        let read = http.ask("/query", None, "").map(drop).unwrap_err().to_string();
        for error in [version, read] {
            assert!(error.contains("answers 302 and points to /elsewhere"), "{error}");
        }
    }
}
