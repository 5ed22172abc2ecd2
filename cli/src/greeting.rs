//! The example requests that a server shows at its start. Changes nothing.

use std::fmt::Write as _;
use std::path::Path;

use local::System;
use runtime::config::called_as;
use serde_json::Value;

use crate::request::request;

/// A request that sends the token in the variable of a shell.
const CURL_WITH_TOKEN: &str = "curl -H \"authorization: Bearer $TOKEN\"";

/// The token of the example requests.
#[derive(Debug)]
pub(crate) enum ExampleToken<'a> {
    /// The server asks for no token.
    NotNeeded,
    /// A command makes the token in this data directory.
    OfCommand(&'a Path),
    /// This start made the token with this secret.
    Made(&'a str),
}

/// Writes example requests to the server at `url` that work when they are pasted, with a device and a room of the table.
pub(crate) async fn what_to_try(
    system: &System,
    url: &str,
    token: ExampleToken<'_>,
) -> anyhow::Result<String> {
    let mut text = format!("\nOpen {url}/ in a browser. Try, in another terminal:\n\n");
    let ingest = system.ingest_url().unwrap_or(url);
    let curl = match token {
        ExampleToken::NotNeeded => "curl",
        ExampleToken::Made(secret) => {
            writeln!(text, "  TOKEN={secret}")?;
            CURL_WITH_TOKEN
        }
        ExampleToken::OfCommand(directory) => {
            let (own, directory) = (own_name(), quoted(&directory.display().to_string()));
            writeln!(
                text,
                "  TOKEN=$({own} token create --scope admin --quiet --data-dir {directory})"
            )?;
            CURL_WITH_TOKEN
        }
    };

    write!(text, "  {curl} {url}/devices\n  {curl} {url}/rooms\n")?;
    // Without an example device the other requests are still shown.
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
        "\n  {curl} {ingest}/readings --json '{reading}'\n  {curl} {url}/devices/my-sensor/latest\n\n\
         {url}/openapi.json lists everything. Ctrl-C stops.\n"
    )?;
    Ok(text)
}

/// The command as a person calls it, quoted for a shell: `roomtide`, its path, or `cargo run --` in the folder of the
/// source.
pub(crate) fn own_name() -> String {
    name_of(called_as().as_deref())
}

fn name_of(called_as: Option<&str>) -> String {
    let name = called_as.filter(|name| !name.is_empty()).unwrap_or("roomtide");
    if Path::new(name).with_extension("").ends_with("target/debug/roomtide") {
        return "cargo run --".to_owned();
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if name.chars().all(is_plain) {
        return name.to_owned();
    }
    quoted(name)
}

/// A text in quotes for a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns a device, its room and the timestamp of its newest reading.
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
    request(async |request| system.send(request).await, "GET", path, "application/json", Vec::new())
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_named_as_it_was_called() {
        for (called, named) in [
            (Some("roomtide"), "roomtide"),
            (Some("target/debug/roomtide"), "cargo run --"),
            (Some("/home/a b/roomtide/target/debug/roomtide"), "cargo run --"),
            (Some("bin/roomtide-linux-x86_64"), "bin/roomtide-linux-x86_64"),
            (Some("target/release/roomtide"), "target/release/roomtide"),
            (Some("/home/a b/roomtide"), "'/home/a b/roomtide'"),
            (Some("it's"), r"'it'\''s'"),
            (Some(""), "roomtide"),
            (None, "roomtide"),
        ] {
            assert_eq!(name_of(called), named);
        }
    }
}
