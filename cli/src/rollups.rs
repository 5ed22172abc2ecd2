//! `roomtide rollups`: verifies and rebuilds the rollups of a table. Folds and compares nothing itself.

mod backup;
mod difference;
mod folds;
mod rebuild;
mod restore;
mod scope;
mod stays;
#[cfg(test)]
mod tests;
mod verify;
mod walk;
mod zone_change;

use std::process::ExitCode;

use clap::Subcommand;
use runtime::clock::SystemClock;

use crate::at::{TableParts, TablePlace};
use crate::interrupted::until_ctrl_c;
use crate::output::print;

pub(crate) use backup::export;
pub(crate) use restore::restore;

/// The command line of `roomtide rollups`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Command,
    #[command(flatten)]
    place: TablePlace,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare each rollup with a new fold of its readings
    ///
    /// Each rollup of 15 minutes is compared with the fold of its readings, each rollup of a day with the fold of its
    /// rollups of 15 minutes. A difference may be a change that is being folded, so it is compared again later. Rollups
    /// whose readings have begun to expire are counted, not compared.
    ///
    /// A watermark (the time up to which rollups are complete) ahead of the clock is named: it hides readings that were
    /// stored since.
    ///
    /// The exit code is 0 if no rollup differs, 1 if one does or a watermark lies ahead, and 3 if only rollups with
    /// older settings of their devices differ: the rollup function folds these again within minutes.
    Verify(verify::Verify),
    /// Fold all rollups again from the readings
    ///
    /// The functions and other commands may run meanwhile. Rollups whose readings have begun to expire
    /// stay as they are. A rebuild of everything also notes that the rollups are complete.
    Rebuild(rebuild::Rebuild),
}

/// Runs the subcommand. Ctrl-C ends it; then the same command continues.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { action, place } = args;
    let (command, kept) = match &action {
        Command::Verify(verify) => ("verify", &verify.scope.progress),
        Command::Rebuild(rebuild) => ("rebuild", &rebuild.scope.progress),
    };
    place.work(TableParts::Indexes, async |table| {
        let run = table.run_scope(&place, command, kept);
        let (store, bulk) = (&table.store, table.bulk());
        let work = async {
            match &action {
                Command::Verify(args) => verify::run(args, store, &run, SystemClock).await,
                Command::Rebuild(args) => {
                    print(rebuild::run(args, store, bulk, &run, SystemClock).await?);
                    Ok(ExitCode::SUCCESS)
                }
            }
        };
        until_ctrl_c(work).await
    })
}
