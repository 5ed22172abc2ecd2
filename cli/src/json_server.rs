//! A client of a server for commands that send one request per action and get JSON. Knows no endpoint.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::bail;
use serde_json::{Map, Value};

use crate::answer_text::texts;
use crate::client::{self, Answer, Ask, Client};
use crate::output::{print, print_error};

/// The exit code if the server refused parts of a file.
const SOME_REFUSED: u8 = 3;

/// A part of a file that is saved with its own request: a rule, a channel or a source.
pub(crate) struct FilePart<'a> {
    /// The API path of the part.
    pub(crate) path: String,
    pub(crate) members: &'a Map<String, Value>,
}

/// A client whose answers are JSON.
pub(crate) struct JsonServer {
    client: Client,
}

impl JsonServer {
    /// Makes a client of the server at an address. The token is given directly, or as `@FILE`.
    pub(crate) fn new(url: &str, token: Option<&str>) -> anyhow::Result<Self> {
        let token = token.map(client::token).transpose()?;
        Ok(Self { client: Client::new(url, token.as_deref())? })
    }

    /// Sends a GET request. The answer must have this member.
    pub(crate) fn get(&self, path: &str, member: &str) -> anyhow::Result<Value> {
        self.client.read(path, &self.ask("GET", path, None)?, member)
    }

    /// Reads an object; empty if it does not exist.
    pub(crate) fn known(&self, path: &str) -> anyhow::Result<Map<String, Value>> {
        let answer = self.ask("GET", path, None)?;
        if answer.status == 404 {
            return Ok(Map::new());
        }
        match self.client.read(path, &answer, "id")? {
            Value::Object(members) => Ok(members),
            _ => bail!("{path} is not an object"),
        }
    }

    /// Sends a change. The answer must have this member.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        body: &Value,
        member: &str,
    ) -> anyhow::Result<Value> {
        let body = (!body.is_null()).then_some(body);
        let answer = self.client.read(path, &self.ask(method, path, body)?, member)?;
        warn(path, &answer);
        Ok(answer)
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Answer> {
        let text = body.map(Value::to_string);
        let body = text.as_deref().map(|text| ("application/json", text));
        self.client.send(Ask { method, path, body, headers: &[] }, &AtomicBool::new(false))
    }

    /// Saves a part of a file, and prints the server's warnings. Returns `false` if the server refused the part.
    pub(crate) fn save(&self, part: &FilePart<'_>) -> anyhow::Result<bool> {
        let answer = self.put(part)?;
        self.is_saved(part, &answer)
    }

    /// Sends a part of a file with PUT.
    pub(crate) fn put(&self, part: &FilePart<'_>) -> anyhow::Result<Answer> {
        self.ask("PUT", &part.path, Some(&Value::Object(part.members.clone())))
    }

    /// Prints the warnings about a part, or the reason of its refusal. Returns whether the part is saved.
    pub(crate) fn is_saved(&self, part: &FilePart<'_>, answer: &Answer) -> anyhow::Result<bool> {
        let path = &*part.path;
        match answer.status {
            200 => {
                warn(path, &self.client.read(path, answer, "id")?);
                Ok(true)
            }
            400 | 409 => {
                print_error(format_args!("{}: {}", &path[1..], answer.reason()));
                Ok(false)
            }
            _ => Err(self.client.error(path, answer)),
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

/// A test for all commands that use this client.
#[cfg(test)]
pub(crate) mod given {
    use std::process::ExitCode;

    use crate::fake_server::{self, Reply};

    /// Checks that a command rejects answers of another program, and does not report success for them. A case is the
    /// words of an action and the requested path.
    pub(crate) fn ensure_others_are_refused(
        command: &str,
        cases: &[(&[&str], &str)],
        act: impl Fn(&[&str]) -> anyhow::Result<ExitCode>,
    ) {
        for body in ["{}", "[]", "", "<html>"] {
            let server = fake_server::serve(move |_, request| match request.path.as_str() {
                "/ready" => Reply::of(200, r#"{"status":"ready","up":"0s"}"#),
                _ => Reply::of(200, body),
            });
            for (words, path) in cases {
                let words = [&[command, "--url", &server.url], *words].concat();
                let error = act(&words).unwrap_err().to_string();
                let expected =
                    format!("{}{path} answers 200, but not as Roomtide does", server.url);
                assert!(error.starts_with(&expected), "{words:?}: {error}");
            }
        }
    }
}
