//! `roomtide tariffs`: lists, shows, saves and deletes the tariffs of a server. Bills nothing.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::Value;

use crate::answer_text::{columns, list, text};
use crate::json_server::{JsonServer, encoded};
use crate::output::{counted, print};
use crate::settings_file;

/// The part of the help after the options.
const AFTER_HELP: &str = "\
roomtide tariffs set home home.json
roomtide tariffs show home > home.json
docs/guide/cost.md says how a tariff is written.";

/// The command line of `roomtide tariffs`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TariffsArgs {
    #[command(subcommand)]
    action: TariffsAction,
    /// The address of the server, which it prints at its start; another --port there needs --url here
    #[arg(long, global = true, default_value = "http://127.0.0.1:8080")]
    url: String,
    /// An admin token, or @FILE with one; a read token suffices to list and to show
    #[arg(long, global = true)]
    token: Option<String>,
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
    /// If the file has a version, it must be the stored one: so nobody's edit is lost.
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
pub(crate) async fn run(args: TariffsArgs) -> anyhow::Result<ExitCode> {
    // Reading files and waiting for the server block the thread.
    tokio::task::spawn_blocking(move || act(&args)).await?
}

fn act(args: &TariffsArgs) -> anyhow::Result<ExitCode> {
    let server = JsonServer::new(&args.url, args.token.as_deref())?;
    let of = |id: &str| format!("/tariffs/{}", encoded(id));

    match &args.action {
        TariffsAction::List => {
            let answer = server.get("/tariffs", "data")?;
            let rows: Vec<_> = list(&answer).iter().map(row).collect();
            let none = "no tariffs; roomtide tariffs set --help says how to make one".to_owned();
            print(if rows.is_empty() { none } else { columns(&rows) }.trim_end());
        }

        TariffsAction::Show { tariff } => {
            let answer = server.get(&of(tariff), "id")?;
            print(serde_json::to_string_pretty(&answer)?);
        }
        TariffsAction::Set { tariff, file } => {
            let wanted = settings_file::json(file)?;
            let answer = server.send("PUT", &of(tariff), &wanted, "id")?;
            print(columns(&[row(&answer)]).trim_end());
        }
        TariffsAction::Delete { tariff } => {
            server.send("DELETE", &of(tariff), &Value::Null, "deleted")?;
            print(format_args!("{tariff} is deleted"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A tariff in a line.
fn row(tariff: &Value) -> [String; 5] {
    let count = |name: &str| tariff[name].as_array().map_or(0, Vec::len) as u64;
    let meters = match count("meters") {
        0 => "an offer, without meters".to_owned(),
        meters => counted(meters, "meter"),
    };
    let edited = format!("version {}, {}", tariff["version"], text(tariff, "edited"));
    let name = format!("{} ({})", text(tariff, "name"), text(tariff, "currency"));
    [text(tariff, "id").to_owned(), name, counted(count("lines"), "line"), meters, edited]
}
