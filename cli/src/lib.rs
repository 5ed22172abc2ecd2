//! The command `roomtide`: its subcommands, and the exit code of each. The work of each subcommand is in its own
//! module.

mod alerts;
mod answer_text;
mod ask;
mod at;
mod bill;
mod client;
mod completions;
mod concurrent;
mod defaults;
mod delete;
mod devices;
mod export;
mod failures;
mod greeting;
mod health;
mod here;
mod import;
mod interrupted;
mod kept_progress;
mod mcp;
mod moment;
mod objects;
mod open;
mod output;
mod pace;
mod pages;
mod patience;
mod progress;
mod progress_file;
mod qr;
mod reindex;
mod replay;
mod request;
mod rollups;
mod sample_home;
mod serve;
mod settings_file;
mod sources;
mod status;
mod tariffs;
#[cfg(test)]
mod tests;
mod token;
mod typed_members;

use std::ffi::OsString;
use std::process::ExitCode;
use std::thread;

use clap::{CommandFactory as _, Parser, Subcommand};
use runtime::clock::{Clock as _, SystemClock};
use tokio::runtime::Builder;

use crate::output::{OutputText, print_error};

/// The stack size of a command that runs in a thread: as large as that of a process.
const STACK: usize = 8 << 20;

/// Time series of homes and their devices: the whole system on this machine.
///
/// Without a command it serves the API, and on the first start fills the empty table with a sample home.
#[derive(Debug, Parser)]
#[command(name = "roomtide", version = env!("ROOMTIDE_VERSION"), args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the API (the default command)
    Serve(serve::Args),
    /// Pass sample events to the functions, and show the answers
    Replay(replay::Args),
    /// Verify or rebuild the rollups of 15 minutes and of days
    Rollups(rollups::Args),
    /// Edit many devices at once
    Devices(devices::Args),
    /// Set, try and show rules of alerts, and the channels that send their messages
    Alerts(alerts::Args),
    /// Set, try and show the sources that a server asks
    Sources(sources::SourcesArgs),
    /// Print what energy cost, line by line
    Bill(bill::BillArgs),
    /// List, show, save and delete tariffs
    Tariffs(tariffs::TariffsArgs),
    /// Put every device into the index of attributes, after the index is switched on
    Reindex(reindex::Args),
    /// Create, list and revoke access tokens
    Token(token::Args),
    /// Import files, databases and backups, with or without a server
    Import(Box<import::ImportArgs>),
    /// Answer a language model's tools on standard input and output
    Mcp(mcp::Args),
    /// Delete devices, readings, a room or a home
    Delete(delete::Args),
    /// Write readings and the registry to a file
    Export(Box<export::ExportArgs>),
    /// List, replay and drop the messages that a deployed system could not process
    Failures(failures::Args),
    /// Show whether a system answers, its devices, and how far its rollups are complete
    Status(status::Args),
    /// Tell by the exit code, 0 or 1, whether a server answers; for containers
    #[command(hide = true)]
    Health(health::HealthArgs),
    /// Open the page of a server in the browser
    Open(open::Args),
    /// Print the completions of a shell
    Completions(completions::Args),
    /// Draw the text on standard input as a QR code
    Qr,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    run_in(Builder::new_multi_thread(), Cli::parse())
}

/// Runs a command line within this process, and returns its exit code and its output. Only for commands that end by
/// themselves; a signal ends the whole process.
pub fn run_here(
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> (ExitCode, String) {
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => return (ExitCode::from(2), error.to_string()),
    };

    let said = OutputText::default();
    let heard = said.clone();
    let command = move || {
        output::say_to(&said);
        let mut runtime = Builder::new_multi_thread();
        runtime.on_thread_start(move || output::say_to(&said));
        run_in(runtime, cli)
    };
    let command = thread::Builder::new().stack_size(STACK).spawn(command);
    let code = command.expect("a thread").join().expect("the command does not panic");
    (code, heard.text())
}

fn run_in(mut runtime: Builder, cli: Cli) -> ExitCode {
    let runtime = runtime.enable_all().build().expect("a runtime");
    // Commands block, so they run on this thread, which is outside of the runtime.
    let _entered = runtime.enter();
    let result = match cli.command {
        None => succeeded(runtime.block_on(Box::pin(serve::run(cli.serve)))),
        Some(Command::Serve(args)) => succeeded(runtime.block_on(Box::pin(serve::run(args)))),
        Some(Command::Replay(args)) => succeeded(runtime.block_on(Box::pin(replay::run(args)))),
        Some(Command::Failures(args)) => runtime.block_on(Box::pin(failures::run(args))),
        Some(Command::Rollups(args)) => rollups::run(args),
        Some(Command::Reindex(args)) => succeeded(reindex::run(&args)),
        Some(Command::Token(args)) => succeeded(token::run(args)),
        Some(Command::Devices(args)) => devices::run(&args),
        Some(Command::Alerts(args)) => alerts::run(&args),
        Some(Command::Sources(args)) => sources::run(&args),
        Some(Command::Bill(args)) => succeeded(bill::run(&args)),
        Some(Command::Tariffs(args)) => succeeded(tariffs::run(&args)),
        Some(Command::Import(args)) => import::run(*args, SystemClock.now()),
        Some(Command::Mcp(args)) => succeeded(mcp::run(&args)),
        Some(Command::Delete(args)) => succeeded(delete::run(&args)),
        Some(Command::Export(args)) => succeeded(export::run(&args)),
        Some(Command::Status(args)) => succeeded(status::run(&args)),
        Some(Command::Health(args)) => succeeded(health::run(&args)),
        Some(Command::Open(args)) => succeeded(open::run(&args)),
        Some(Command::Completions(args)) => {
            completions::run(&args, &mut Cli::command());
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Qr) => succeeded(qr::run()),
    };

    match (result, output::lost()) {
        (Err(error), _) => {
            print_error(format_args!("{error:#}"));
            interrupted::exit_code(&error)
        }
        // The command's effect stays, even if its output was lost: a token that nobody has seen is in the list, and can
        // be revoked.
        (Ok(_), Some(why)) => {
            print_error(format_args!("standard output could not be written: {why}"));
            ExitCode::FAILURE
        }
        (Ok(code), None) => code,
    }
}

/// The exit code of a command that knows one success.
fn succeeded(result: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    result.map(|()| ExitCode::SUCCESS)
}
