//! Objects that a person saves by the API, as rules of alerts and sources are: read, changed, and saved from a file.
//! Knows no endpoint.

use std::fmt::Display;
use std::process::ExitCode;

use anyhow::bail;
use serde_json::{Map, Value};

use crate::answer_text::texts;
use crate::at::SystemAt;
use crate::client::{Answer, Ask, Client};
use crate::output::{print, print_error};

/// The exit code if the server refused parts of a file.
pub(crate) const SOME_REFUSED: u8 = 3;

/// The system of a command that shows objects, and how it shows them.
#[derive(Debug, clap::Args)]
pub(crate) struct ObjectArgs {
    #[command(flatten)]
    pub(crate) at: SystemAt,
    /// Print the server's answer in JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

impl ObjectArgs {
    /// Prints an answer, or its text for people.
    pub(crate) fn show(&self, answer: &Value, text: impl FnOnce(&Value) -> String) {
        if self.json { print(answer) } else { print(text(answer).trim_end()) }
    }
}

/// A part of a file that is saved with its own request: a rule, a channel or a source.
pub(crate) struct FilePart<'a> {
    /// The API path of the part.
    pub(crate) path: String,
    pub(crate) members: &'a Map<String, Value>,
}

/// Reads an object; empty if it does not exist.
pub(crate) fn known(client: &Client, path: &str) -> anyhow::Result<Map<String, Value>> {
    let answer = client.get(path)?;
    if answer.status == 404 {
        return Ok(Map::new());
    }
    match client.read(path, &answer, "id")? {
        Value::Object(members) => Ok(members),
        _ => bail!("{path} is not an object"),
    }
}

/// Sends a change, and prints the warnings about it. The answer must have this member.
pub(crate) fn change(
    client: &Client,
    method: &str,
    path: &str,
    body: &impl Display,
    member: &str,
) -> anyhow::Result<Value> {
    let answer = client.value(Ask::json(method, path, &body.to_string()), member)?;
    warn(path, &answer);
    Ok(answer)
}

/// Deletes an object.
pub(crate) fn delete(client: &Client, path: &str) -> anyhow::Result<Value> {
    client.value(Ask::without_body("DELETE", path), "deleted")
}

impl FilePart<'_> {
    /// Saves the part, and prints the server's warnings. Returns `false` if the server refused the part.
    pub(crate) fn save(&self, client: &Client) -> anyhow::Result<bool> {
        self.is_saved(client, &self.put(client)?)
    }

    /// Sends the part.
    pub(crate) fn put(&self, client: &Client) -> anyhow::Result<Answer> {
        let body = serde_json::to_string(self.members)?;
        client.send(Ask::json("PUT", &self.path, &body))
    }

    /// Prints the warnings about the part, or the reason of its refusal. Returns whether it is saved.
    pub(crate) fn is_saved(&self, client: &Client, answer: &Answer) -> anyhow::Result<bool> {
        let path = &*self.path;
        match answer.status {
            200 => {
                warn(path, &client.read(path, answer, "id")?);
                Ok(true)
            }
            400 | 409 => {
                print_error(format_args!("{}: {}", &path[1..], answer.reason()));
                Ok(false)
            }
            _ => Err(client.error(path, answer)),
        }
    }
}

/// Saves the parts of a file one after the other, and prints their number. Returns the exit code.
pub(crate) fn save_all<'a>(
    parts: impl IntoIterator<Item = FilePart<'a>>,
    save: impl Fn(&FilePart<'a>) -> anyhow::Result<bool>,
) -> anyhow::Result<ExitCode> {
    let (mut saved, mut refused) = (0, 0);
    for part in parts {
        match save(&part) {
            Ok(true) => saved += 1,
            Ok(false) => refused += 1,
            Err(error) => {
                let how_far = format!(
                    "{saved} saved and {refused} refused before it; the same command saves the others"
                );
                return Err(error.context(how_far));
            }
        }
    }

    print(format_args!("{saved} saved, {refused} refused"));
    Ok(if refused == 0 { ExitCode::SUCCESS } else { SOME_REFUSED.into() })
}

/// Prints what an export leaves out because the server cannot read it.
pub(crate) fn say_damaged(answer: &Value) {
    for damaged in texts(answer, "damaged") {
        print_error(format_args!("not exported: {damaged}"));
    }
}

/// Prints the warnings about a saved part.
fn warn(path: &str, answer: &Value) {
    for warning in texts(answer, "warnings") {
        print_error(format_args!("{}: {warning}", &path[1..]));
    }
}

/// Percent-encodes a segment of a path.
pub(crate) fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}
