//! What meets a person at the first start: the sample home, and what to try with it. Goes through the API only.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::terminal::say;
use crate::{System, sample_home};

/// Whether the sample home is wanted: the table is empty, or the last start left it half filled.
pub(super) fn is_wanted(system: &System, directory: Option<&Path>) -> anyhow::Result<bool> {
    Ok(system.is_empty()? || unfinished(directory).is_some_and(|mark| mark.exists()))
}

/// Present for as long as the sample home is not all there. To store it again changes nothing.
fn unfinished(directory: Option<&Path>) -> Option<PathBuf> {
    directory.map(|directory| directory.join("sample-home.unfinished"))
}

/// Stores the sample home.
pub(super) async fn fill(api: &Api<'_>, directory: Option<&Path>) -> anyhow::Result<()> {
    let unfinished = unfinished(directory);
    if let Some(mark) = &unfinished {
        File::create(mark).with_context(|| format!("cannot write {}", mark.display()))?;
    }
    let requests: Vec<_> = sample_home::requests()?.collect();
    say("The table is empty: storing the sample home.");
    let style = ProgressStyle::with_template("  {bar:40} {percent:>3} %  {eta} left")?;
    let bar = ProgressBar::new(requests.len() as u64).with_style(style);
    for body in &requests {
        api.expect_success("POST", "/readings", "application/x-ndjson", body).await?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    api.system.settle().await?;
    for (path, body) in sample_home::names() {
        api.expect_success("PATCH", &path, "application/json", &body).await?;
    }
    if let Some(mark) = unfinished {
        fs::remove_file(&mark).with_context(|| format!("cannot remove {}", mark.display()))?;
    }
    Ok(())
}

/// Requests that work as pasted, made from what the table holds.
pub(super) async fn what_to_try(api: &Api<'_>) -> anyhow::Result<String> {
    let url = api.system.url();
    let mut text = "\nTry, in another terminal:\n\n".to_owned();
    let curl = if api.token.is_some() {
        text.push_str("  roomtide token create --scope admin --name me\n  export TOKEN=...\n");
        "curl -H \"authorization: Bearer $TOKEN\""
    } else {
        "curl"
    };
    write!(text, "  {curl} {url}/devices\n  {curl} {url}/rooms\n")?;
    // A table that has no example to offer is still worth serving.
    if let Some((device, room, newest)) = example(api).await.unwrap_or_default() {
        let day = newest.get(..10).unwrap_or_default();
        let range = format!("from={day}T00:00:00Z&to={day}T23:59:59Z");
        write!(
            text,
            "  {curl} {url}/devices/{device}/latest\n  {curl} '{url}/devices/{device}/readings?{range}'\n"
        )?;
        if let Some(room) = room {
            writeln!(text, "  {curl} -H 'accept: text/csv' '{url}/rooms/{room}/readings?{range}'")?;
        }
    }
    let reading = r#"{"device_id": "my-sensor", "room": "study", "temperature": 21.5}"#;
    write!(
        text,
        "\n  {curl} {url}/readings --json '{reading}'\n  {curl} {url}/devices/my-sensor/latest\n\n\
         {url}/openapi.json lists everything. Ctrl-C stops.\n"
    )?;
    Ok(text)
}

/// A device, its room and the instant of its newest reading.
async fn example(api: &Api<'_>) -> anyhow::Result<Option<(String, Option<String>, String)>> {
    let devices: Value = serde_json::from_slice(&get(api, "/devices?limit=1").await?)?;
    let device = &devices["data"][0];
    let Some(id) = device["device_id"].as_str() else { return Ok(None) };
    let latest: Value = serde_json::from_slice(&get(api, &format!("/devices/{id}/latest")).await?)?;
    let room = device["room"].as_str().map(str::to_owned);
    Ok(latest["timestamp"].as_str().map(|newest| (id.to_owned(), room, newest.to_owned())))
}

async fn get(api: &Api<'_>, path: &str) -> anyhow::Result<Vec<u8>> {
    api.expect_success("GET", path, "application/json", b"").await
}

/// Our own API, and the token for it where it asks for one.
pub(super) struct Api<'a> {
    /// Whose API it is.
    pub(super) system: &'a System,
    /// The secret.
    pub(super) token: Option<&'a str>,
}

impl Api<'_> {
    /// Sends a request; gives the answer's body when all went well.
    async fn expect_success(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> anyhow::Result<Vec<u8>> {
        let bearer = self.token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        let headers = format!("{}Content-Type: {content_type}\r\n", bearer.unwrap_or_default());
        let (status, answer) = send(self.system.url(), method, path, &headers, body).await?;
        // 207 says that some readings were refused.
        if !matches!(status, 200 | 201 | 204) {
            bail!("{method} {path} answers {status}: {}", String::from_utf8_lossy(&answer));
        }
        Ok(answer)
    }
}

/// One request on a connection of its own: all that is needed to reach a server in this process.
async fn send(
    url: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> anyhow::Result<(u16, Vec<u8>)> {
    let host = url.strip_prefix("http://").context("our own server speaks plain HTTP")?;
    let mut connection = TcpStream::connect(host).await?;
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: {host}\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes()).await?;
    connection.write_all(body).await?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await?;
    parse(&answer).context("our own server's answer is no HTTP")
}

/// The status and the body of an answer in HTTP/1.0, which ends with its connection.
fn parse(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some((status, answer[end + 4..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_status_and_a_body() {
        let answer = b"HTTP/1.0 201 Created\r\ncontent-type: a/b\r\n\r\n{}\r\n\r\n";
        assert_eq!(parse(answer), Some((201, b"{}\r\n\r\n".to_vec())));
        assert_eq!(parse(b"HTTP/1.0 201 Created\r\n"), None);
        assert_eq!(parse(b"nonsense\r\n\r\n"), None);
    }
}
