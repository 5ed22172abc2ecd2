//! The command line: what there is to say, and who does it. Does nothing itself.

mod greeting;
mod replay;
mod serve;
mod token;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use runtime::clock::{Clock as _, SystemClock};

use crate::progress::complain;
use crate::{export, import};

/// Time series of homes and their devices: the whole system on this machine.
///
/// Without a command it serves the API, and on the first start fills the empty table with a sample home.
#[derive(Debug, Parser)]
#[command(name = "roomtide", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the API (what happens without a command)
    Serve(serve::Args),
    /// Hand sample events to the functions that take them, and show the answers
    Replay(replay::Args),
    /// Create, list and revoke access tokens
    Token(token::Args),
    /// Post readings from a file to a running server
    Import(Box<import::ImportArgs>),
    /// Write readings and the registry to a file
    Export(Box<export::ExportArgs>),
}

/// Runs what the command line asks for.
pub async fn run() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        None => serve::run(cli.serve).await,
        Some(Command::Serve(args)) => serve::run(args).await,
        Some(Command::Replay(args)) => replay::run(args).await,
        Some(Command::Token(args)) => token::run(args).await,
        Some(Command::Import(args)) => return exit(import::run(*args, SystemClock.now()).await),
        Some(Command::Export(args)) => export::run(*args).await,
    };
    exit(done.map(|()| ExitCode::SUCCESS))
}

/// The exit code of a command, which says itself why it failed.
fn exit(done: anyhow::Result<ExitCode>) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(error) => {
            complain(format_args!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serving_needs_no_word() {
        let cli = Cli::try_parse_from(["roomtide", "--port", "9000", "--memory"]).unwrap();
        assert!(cli.command.is_none() && cli.serve.port == 9_000 && cli.serve.memory);
        let cli = Cli::try_parse_from(["roomtide", "serve", "--empty"]).unwrap();
        assert!(matches!(cli.command, Some(Command::Serve(serve::Args { empty: true, .. }))));
        assert!(Cli::try_parse_from(["roomtide", "--memory", "--data-dir", "d"]).is_err());
        assert!(Cli::try_parse_from(["roomtide", "replay"]).is_err());
    }
}
