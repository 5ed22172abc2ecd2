//! What meets a person at the first start: the sample home, and what to try with it. Goes through the API only.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use http::header::CONTENT_TYPE;
use indicatif::{ProgressBar, ProgressStyle};
use local::{System, private};
use serde_json::Value;

use crate::output::print;
use crate::sample_home;

/// Whether the sample home is wanted: the table is empty, or the last start left it half filled.
pub(super) fn is_wanted(system: &System, directory: Option<&Path>) -> anyhow::Result<bool> {
    Ok(system.is_empty()? || unfinished(directory).is_some_and(|mark| mark.exists()))
}

/// Present for as long as the sample home is not all there. To store it again changes nothing.
fn unfinished(directory: Option<&Path>) -> Option<PathBuf> {
    directory.map(|directory| directory.join("roomtide.sample-unfinished"))
}

/// Stores the sample home.
pub(super) async fn fill(system: &System, directory: Option<&Path>) -> anyhow::Result<()> {
    let unfinished = unfinished(directory);
    if let Some(mark) = &unfinished {
        let marked = private::options().create(true).truncate(true).open(mark);
        marked.with_context(|| format!("cannot write {}", mark.display()))?;
    }
    let requests: Vec<_> = sample_home::requests()?.collect();
    print("The table is empty: storing the sample home.");
    let style = ProgressStyle::with_template("  {bar:40} {percent:>3} %  {eta} left")?;
    let bar = ProgressBar::new(requests.len() as u64).with_style(style);
    for body in requests {
        expect_success(system, "POST", "/readings", "application/x-ndjson", body).await?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    system.settle().await?;
    for (path, body) in sample_home::names() {
        expect_success(system, "PATCH", &path, "application/json", body).await?;
    }
    if let Some(mark) = unfinished {
        fs::remove_file(&mark).with_context(|| format!("cannot remove {}", mark.display()))?;
    }
    Ok(())
}

/// Requests that work as pasted, made from what the table holds.
///
/// Where tokens are asked for, the first one is made in `guarded`, the directory of the data.
pub(super) async fn what_to_try(system: &System, guarded: Option<&Path>) -> anyhow::Result<String> {
    let url = system.url();
    let mut text = "\nTry, in another terminal:\n\n".to_owned();
    let curl = if let Some(directory) = guarded {
        let directory = directory.display();
        writeln!(
            text,
            "  TOKEN=$(cargo run -q -- token create --scope admin --quiet --data-dir '{directory}')"
        )?;
        "curl -H \"authorization: Bearer $TOKEN\""
    } else {
        "curl"
    };
    write!(text, "  {curl} {url}/devices\n  {curl} {url}/rooms\n")?;
    // A table that has no example to offer is still worth serving.
    if let Some((device, room, newest)) = example(system).await.unwrap_or_default() {
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

/// A device, its room and the timestamp of its newest reading.
async fn example(system: &System) -> anyhow::Result<Option<(String, Option<String>, String)>> {
    let devices: Value = serde_json::from_slice(&get(system, "/devices?limit=1").await?)?;
    let device = &devices["data"][0];
    let Some(id) = device["device_id"].as_str() else { return Ok(None) };
    let latest: Value =
        serde_json::from_slice(&get(system, &format!("/devices/{id}/latest")).await?)?;
    let room = device["room"].as_str().map(str::to_owned);
    Ok(latest["timestamp"].as_str().map(|newest| (id.to_owned(), room, newest.to_owned())))
}

async fn get(system: &System, path: &str) -> anyhow::Result<Vec<u8>> {
    expect_success(system, "GET", path, "application/json", Vec::new()).await
}

/// Asks our own API; gives the answer's body when all went well.
async fn expect_success(
    system: &System,
    method: &str,
    path: &str,
    content_type: &str,
    body: Vec<u8>,
) -> anyhow::Result<Vec<u8>> {
    let request = http::Request::builder().method(method).uri(path);
    let request = request.header(CONTENT_TYPE, content_type).body(body)?;
    let (status, answer) = system.send(request).await?;
    // 207 says that some readings were refused.
    if !matches!(status.as_u16(), 200 | 201 | 204) {
        bail!("{method} {path} answers {status}: {}", String::from_utf8_lossy(&answer));
    }
    Ok(answer)
}
