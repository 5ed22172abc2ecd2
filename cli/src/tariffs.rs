//! `roomtide tariffs`: lists, shows, saves and deletes the tariffs of a server. Bills nothing.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::answer_text::{columns, list, text};
use crate::at::Unnamed;
use crate::client::{Ask, Client};
use crate::objects::{self, ObjectArgs, encoded};
use crate::output::counted;
use crate::settings_file;

/// The part of the help after the options.
const AFTER_HELP: &str = "\
docs/guide/cost.md says how a tariff is written. Examples:

    roomtide tariffs set home home.json
    roomtide tariffs show home > home.json";

/// The command line of `roomtide tariffs`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TariffsArgs {
    #[command(subcommand)]
    action: TariffsAction,
    #[command(flatten)]
    objects: ObjectArgs,
}

#[derive(Debug, Subcommand)]
enum TariffsAction {
    /// List the tariffs
    List,
    /// Print a tariff as JSON, which set takes again
    Show {
        /// The tariff
        tariff: String,
    },
    /// Save a tariff from a file
    ///
    /// If the file has a version, it must be the stored version, so that no edit is lost.
    Set {
        /// The tariff, which need not exist
        tariff: String,
        /// The file with the tariff in JSON; - is standard input
        file: PathBuf,
    },
    /// Delete a tariff
    Delete {
        /// The tariff
        tariff: String,
    },
}

/// Runs the subcommand.
pub(crate) fn run(args: &TariffsArgs) -> anyhow::Result<()> {
    args.objects.at.work(Unnamed::Server, |client| act(args, client))
}

fn act(args: &TariffsArgs, client: &Client) -> anyhow::Result<()> {
    let show = |answer: &Value, text: &dyn Fn(&Value) -> String| args.objects.show(answer, text);
    match &args.action {
        TariffsAction::List => show(&client.value(Ask::get("/tariffs"), "data")?, &all),
        TariffsAction::Show { tariff } => {
            let answer = client.value(Ask::get(&of_tariff(tariff)), "id")?;
            show(&answer, &|tariff| format!("{tariff:#}"));
        }
        TariffsAction::Set { tariff, file } => {
            let wanted: Box<RawValue> = settings_file::json(file)?;
            let answer = objects::change(client, "PUT", &of_tariff(tariff), &wanted, "id")?;
            show(&answer, &|saved| columns(&[row(saved)]));
        }
        TariffsAction::Delete { tariff } => {
            let answer = objects::delete(client, &of_tariff(tariff))?;
            show(&answer, &|_| format!("{tariff} is deleted"));
        }
    }

    Ok(())
}

fn of_tariff(id: &str) -> String {
    format!("/tariffs/{}", encoded(id))
}

/// All tariffs, a line each.
fn all(answer: &Value) -> String {
    let rows: Vec<_> = list(answer).iter().map(row).collect();
    if rows.is_empty() {
        return "no tariffs; roomtide tariffs set --help says how to make one".to_owned();
    }
    columns(&rows)
}

/// A tariff in a line.
fn row(tariff: &Value) -> [String; 5] {
    let count = |name: &str| tariff[name].as_array().map_or(0, Vec::len) as u64;
    let meters = match count("meters") {
        0 => "an offer, without meters".to_owned(),
        meters => counted(meters, "meter"),
    };
    let edited = format!("saved {}", text(tariff, "edited"));
    let name = format!("{} ({})", text(tariff, "name"), text(tariff, "currency"));
    [text(tariff, "id").to_owned(), name, counted(count("lines"), "line"), meters, edited]
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use super::*;
    use crate::tests::others_refused::ensure_others_are_refused;
    use crate::tests::parsed;

    #[test]
    fn what_something_else_answers_is_neither_a_tariff_nor_done() {
        let cases = [
            (&["list"][..], "/tariffs"),
            (&["show", "a"], "/tariffs/a"),
            (&["delete", "a"], "/tariffs/a"),
        ];
        ensure_others_are_refused("tariffs", &cases, |words| {
            run(&parsed(words).unwrap()).map(|()| ExitCode::SUCCESS)
        });
    }
}
