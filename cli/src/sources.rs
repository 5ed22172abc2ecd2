//! `roomtide sources`: manages the sources of a server, one request for each action. Asks no maker and prints no
//! secret.

mod file;
mod members;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure};
use clap::Subcommand;
use serde_json::{Map, Value};

use crate::answer_text::list;
use crate::client::FieldError;
use crate::json_server::{self, FilePart, JsonServer, encoded};
use crate::output::{counted, print, print_error};
use crate::settings_file;

/// The part of the help after the options.
const AFTER_HELP: &str = "\
roomtide sources kinds
roomtide sources test remo kind=remo token=@remo-token
roomtide sources set remo kind=remo room=home token=@remo-token
roomtide sources set remo room.a1=living on=false
roomtide sources export sources.json";

/// The command line of `roomtide sources`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct SourcesArgs {
    #[command(subcommand)]
    action: SourcesAction,
    /// The address of the server, which it prints at its start; another --port there needs --url here
    #[arg(long, global = true, default_value = "http://127.0.0.1:8080")]
    url: String,
    /// An admin token, or @FILE with one; a read token suffices for list, and to show without settings
    #[arg(long, global = true)]
    token: Option<String>,
    /// Print what the server answers, in JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum SourcesAction {
    /// List the sources: their states, when they are asked next, and their errors
    List,
    /// List the kinds of sources: their members, and where a person finds the secret
    Kinds,
    /// Show a source and its settings
    Show {
        /// The source
        source: String,
    },
    /// Make a source, or change members of one
    ///
    /// A member is NAME=VALUE, as docs/connect/sources.md names them; NAME= removes one, and a value that is true or
    /// false or begins with { or [ is JSON. NAME=@FILE gives the secret NAME from a file, in which @- is standard input.
    /// room.DEVICE=ROOM says where a device is. A secret that is not given stays as it is. A secret for a
    /// saved address is typed with the request and with what is read of its answer: url=, metrics= and the like.
    Set {
        /// The source
        source: String,
        #[command(flatten)]
        wanted: WantedSource,
    },
    /// Delete a source and its secrets; its readings stay
    Delete {
        /// The source
        source: String,
    },
    /// Ask a source once: devices, values, proposed rooms; stores nothing
    ///
    /// A saved source is asked with its secrets, changed by the members that are given.
    Test {
        /// The source, which need not be saved
        source: String,
        #[command(flatten)]
        wanted: WantedSource,
    },
    /// Write the sources, without their secrets, as JSON
    Export {
        /// The file; standard output without it
        file: Option<PathBuf>,
    },
    /// Save the sources of a file that export wrote
    ///
    /// A new source whose secret is not in the file is saved, is off, and is named: set gives it the secret. The exit
    /// code is 3 if the server refuses some.
    Import {
        /// The file; - is standard input
        file: PathBuf,
        /// Only read the file and say what would be saved
        #[arg(long)]
        dry_run: bool,
    },
}

/// A source in the arguments of a command line.
#[derive(Debug, clap::Args)]
struct WantedSource {
    /// Its members, or those that differ
    members: Vec<String>,
    /// A file with the source in JSON, in the place of what is saved; - is standard input
    #[arg(long)]
    file: Option<PathBuf>,
}

/// Runs the subcommand.
pub(crate) async fn run(args: SourcesArgs) -> anyhow::Result<ExitCode> {
    // Reading files and waiting for the server block the thread.
    tokio::task::spawn_blocking(move || act(&args)).await?
}

fn act(args: &SourcesArgs) -> anyhow::Result<ExitCode> {
    let is_file =
        matches!(args.action, SourcesAction::Export { .. } | SourcesAction::Import { .. });
    if args.json && is_file {
        bail!("--json: what sources export writes and sources import reads is JSON anyway");
    }
    let server = JsonServer::new(&args.url, args.token.as_deref())?;
    let show = |answer: &Value, text: String| {
        if args.json { print(answer) } else { print(text.trim_end()) }
    };

    match &args.action {
        SourcesAction::List => {
            let answer = server.get("/sources", "kinds")?;
            show(&answer, text::sources(&answer));
        }
        SourcesAction::Kinds => {
            let answer = server.get("/sources", "kinds")?;
            show(&answer["kinds"], text::kinds(&answer));
        }
        SourcesAction::Show { source } => {
            let answer = server.get(&of_source(source), "id")?;
            show(&answer, text::source(&answer));
        }
        SourcesAction::Set { source, wanted } => {
            let wanted = wanted.read(source, &server)?;
            let answer = server.send("PUT", &of_source(source), &wanted.into(), "id")?;
            show(&answer, text::source(&answer));
        }
        SourcesAction::Delete { source } => {
            let answer = server.send("DELETE", &of_source(source), &Value::Null, "deleted")?;
            show(&answer, format!("{source} is deleted; its readings stay"));
        }
        SourcesAction::Test { source, wanted } => {
            let mut wanted = wanted.read(source, &server)?;
            wanted.insert("id".to_owned(), source.as_str().into());
            let answer = server.send("POST", "/sources/test", &wanted.into(), "readings")?;
            show(&answer, text::test(&answer));
        }
        SourcesAction::Export { file } => {
            let answer = server.get("/sources", "kinds")?;
            let text = file::text(list(&answer))?;
            json_server::say_damaged(&answer);
            return settings_file::export(file.as_deref(), &text);
        }
        SourcesAction::Import { file, dry_run } => return import(&server, file, *dry_run),
    }
    Ok(ExitCode::SUCCESS)
}

fn import(server: &JsonServer, from: &Path, dry_run: bool) -> anyhow::Result<ExitCode> {
    let sources = file::read(from)?;
    if dry_run {
        let count = counted(sources.len() as u64, "source");
        print(format_args!("{count} would be saved"));
        return Ok(ExitCode::SUCCESS);
    }

    let parts = sources.iter().map(|(id, members)| FilePart { path: of_source(id), members });
    json_server::save_all(parts, |part| restore(server, part))
}

/// Saves a source from a file; switched off if the server has no secret for it. Returns `false` if the server refused
/// it.
fn restore(server: &JsonServer, part: &FilePart<'_>) -> anyhow::Result<bool> {
    let mut answer = server.put(part)?;
    let lacks_secret = |error: &FieldError| error.field.as_deref() == Some("secrets");
    if answer.status == 400 && answer.problem().errors.iter().any(lacks_secret) {
        let mut members = part.members.clone();
        members.insert("on".to_owned(), false.into());
        answer = server.put(&FilePart { path: part.path.clone(), members: &members })?;
    }

    let is_saved = server.is_saved(part, &answer)?;
    let saved = answer.json_with("state").unwrap_or_default();
    if saved["on"] == false
        && let Some(why) = saved["state"]["error"].as_str()
    {
        print_error(format_args!("{}: {why}", &part.path[1..]));
    }
    Ok(is_saved)
}

fn of_source(id: &str) -> String {
    format!("/sources/{}", encoded(id))
}

impl WantedSource {
    /// The source from the file, or else the saved one with the typed members.
    fn read(&self, source: &str, server: &JsonServer) -> anyhow::Result<Map<String, Value>> {
        let before = match &self.file {
            Some(file) => of_file(file)?,
            None => server.known(&of_source(source))?,
        };
        ensure!(
            !before.is_empty() || !self.members.is_empty(),
            "there is no source {source}; its members or --file make one"
        );
        if self.file.is_none() {
            members::ensure_request_is_typed(source, &before, &self.members)?;
        }
        members::over(before, &self.members)
    }
}

fn of_file(file: &Path) -> anyhow::Result<Map<String, Value>> {
    match settings_file::json(file)? {
        Value::Object(members) => Ok(members),
        _ => bail!(
            "{} is no source: expected an object such as {{\"kind\": \"remo\"}}",
            file.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_server::given::ensure_others_are_refused;
    use crate::tests::parsed;

    #[test]
    fn what_something_else_answers_is_neither_a_source_nor_done() {
        let cases = [
            (&["list"][..], "/sources"),
            (&["export"], "/sources"),
            (&["kinds"], "/sources"),
            (&["show", "a"], "/sources/a"),
            (&["set", "a", "room=b"], "/sources/a"),
            (&["delete", "a"], "/sources/a"),
            (&["test", "a", "room=b"], "/sources/a"),
        ];
        ensure_others_are_refused("sources", &cases, |words| act(&parsed(words).unwrap()));
    }
}
