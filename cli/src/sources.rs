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
use crate::at::Unnamed;
use crate::client::{Ask, Client, FieldError};
use crate::objects::{self, FilePart, ObjectArgs, encoded};
use crate::output::{counted, print, print_error};
use crate::settings_file;

/// The part of the help after the options.
const AFTER_HELP: &str = "\
Examples:

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
    #[command(flatten)]
    objects: ObjectArgs,
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
    /// A member is NAME=VALUE, as docs/connect/sources.md names them. NAME= removes a member. A value that is true or
    /// false, or begins with { or [, is JSON. NAME=@FILE reads the secret NAME from a file; @- is standard input.
    /// room.DEVICE=ROOM is the room of a device. A secret that is not given stays as it is. Give a secret for a saved
    /// address together with the request and the reader of its answer: url=, metrics= and the like.
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
    /// Ask a source once, and show devices, values and proposed rooms; stores nothing
    ///
    /// A saved source is asked with its secrets and with the given members changed.
    Test {
        /// The source, which need not be saved
        source: String,
        #[command(flatten)]
        wanted: WantedSource,
    },
    /// Write the sources, without their secrets, as JSON
    Export {
        /// The file; by default standard output
        file: Option<PathBuf>,
    },
    /// Save the sources of a file that export wrote
    ///
    /// A new source without its secret in the file is saved as off, and named; set gives it the secret. The exit code
    /// is 3 if the server refuses some sources.
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
    /// Its members, or the members to change
    members: Vec<String>,
    /// A file with the source in JSON, which replaces the saved source; - is standard input
    #[arg(long)]
    file: Option<PathBuf>,
}

/// Runs the subcommand.
pub(crate) fn run(args: &SourcesArgs) -> anyhow::Result<ExitCode> {
    let is_file =
        matches!(args.action, SourcesAction::Export { .. } | SourcesAction::Import { .. });
    if args.objects.json && is_file {
        bail!("--json: what sources export writes and sources import reads is JSON anyway");
    }
    args.objects.at.work(Unnamed::Server, |client| act(args, client))
}

fn act(args: &SourcesArgs, client: &Client) -> anyhow::Result<ExitCode> {
    let show = |answer: &Value, text: &dyn Fn(&Value) -> String| args.objects.show(answer, text);
    let all = || client.value(Ask::get("/sources"), "kinds");
    match &args.action {
        SourcesAction::List => show(&all()?, &text::sources),
        SourcesAction::Kinds => {
            let answer = all()?;
            show(&answer["kinds"], &|_| text::kinds(&answer));
        }
        SourcesAction::Show { source } => {
            show(&client.value(Ask::get(&of_source(source)), "id")?, &text::source);
        }
        SourcesAction::Set { source, wanted } => {
            let wanted = Value::from(wanted.read(source, client)?);
            let answer = objects::change(client, "PUT", &of_source(source), &wanted, "id")?;
            show(&answer, &text::source);
        }
        SourcesAction::Delete { source } => {
            let answer = objects::delete(client, &of_source(source))?;
            show(&answer, &|_| format!("{source} is deleted; its readings stay"));
        }
        SourcesAction::Test { source, wanted } => {
            let mut wanted = wanted.read(source, client)?;
            wanted.insert("id".to_owned(), source.as_str().into());
            let wanted = Value::from(wanted);
            let answer = objects::change(client, "POST", "/sources/test", &wanted, "readings")?;
            show(&answer, &text::test);
        }
        SourcesAction::Export { file } => {
            let answer = all()?;
            let text = file::text(list(&answer))?;
            objects::say_damaged(&answer);
            return settings_file::export(file.as_deref(), &text);
        }
        SourcesAction::Import { file, dry_run } => return import(client, file, *dry_run),
    }

    Ok(ExitCode::SUCCESS)
}

fn import(client: &Client, from: &Path, dry_run: bool) -> anyhow::Result<ExitCode> {
    let sources = file::read(from)?;
    if dry_run {
        let count = counted(sources.len() as u64, "source");
        print(format_args!("{count} would be saved"));
        return Ok(ExitCode::SUCCESS);
    }

    let parts = sources.iter().map(|(id, members)| FilePart { path: of_source(id), members });
    objects::save_all(parts, |part| restore(client, part))
}

/// Saves a source from a file; switched off if the server has no secret for it. Returns `false` if the server refused
/// it.
fn restore(client: &Client, part: &FilePart<'_>) -> anyhow::Result<bool> {
    let mut answer = part.put(client)?;
    let lacks_secret = |error: &FieldError| error.field.as_deref() == Some("secrets");
    if answer.status == 400 && answer.problem().errors.iter().any(lacks_secret) {
        let mut members = part.members.clone();
        members.insert("on".to_owned(), false.into());
        answer = FilePart { path: part.path.clone(), members: &members }.put(client)?;
    }

    let is_saved = part.is_saved(client, &answer)?;
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
    fn read(&self, source: &str, client: &Client) -> anyhow::Result<Map<String, Value>> {
        let before = match &self.file {
            Some(file) => of_file(file)?,
            None => objects::known(client, &of_source(source))?,
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
    match settings_file::json::<Value>(file)? {
        Value::Object(members) => Ok(members),
        _ => bail!(
            "{} is not a source: expected an object such as {{\"kind\": \"remo\"}}",
            file.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::others_refused::ensure_others_are_refused;
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
        ensure_others_are_refused("sources", &cases, |words| run(&parsed(words).unwrap()));
    }
}
