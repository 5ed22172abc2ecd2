//! `roomtide rollups`: verifies and rebuilds the rollups of a table. Folds and compares nothing itself.

mod backup;
mod difference;
mod progress;
mod rebuild;
mod stays;
#[cfg(test)]
mod tests;
mod verify;
mod walk;
mod zone_change;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;
use domain::{DeviceId, TimeRange, Timestamp};
use runtime::clock::SystemClock;

use crate::output::print;
use crate::place::Place;

pub(crate) use backup::{export, restore};
pub(crate) use walk::patiently;

/// The command line of `roomtide rollups`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Compare each rollup with the fold of what it sums up
    ///
    /// Each rollup of 15 minutes is compared with the fold of its readings, each rollup of a day with the
    /// fold of its rollups of 15 minutes. What differs may be a change that is being folded, so it is
    /// looked at again later. Rollups whose readings have begun to expire are counted, not compared.
    ///
    /// A mark of what is complete that lies ahead of the clock is told: it hides what was stored since.
    ///
    /// The exit code is 0 if no rollup differs, 1 if one does or a mark lies ahead, and 3 if only rollups with
    /// older settings of their devices differ: the rollup function folds these again within minutes.
    Verify(verify::Verify),
    /// Fold all rollups again from the readings
    ///
    /// The functions and other commands may run meanwhile. Rollups whose readings have begun to expire
    /// stay as they are. A rebuild of everything also notes that the rollups are complete.
    Rebuild(rebuild::Rebuild),
}

/// The rollups that are meant, and how an interrupted command continues.
#[derive(Debug, clap::Args)]
struct Scope {
    /// Only this device; repeat it for several
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    device: Vec<DeviceId>,
    /// The start of the range, such as 2026-01-01T00:00:00Z or -30d; the 15 minutes around it are included
    #[arg(long, value_name = "TIMESTAMP", allow_hyphen_values = true)]
    from: Option<String>,
    /// The end of the range; the 15 minutes around it are included
    #[arg(long, value_name = "TIMESTAMP", allow_hyphen_values = true)]
    to: Option<String>,
    /// The file that keeps the progress, instead of one in the data directory or, for a deployed table, in
    /// the current directory
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Start at the beginning even if the command was interrupted
    #[arg(long)]
    again: bool,
}

impl Scope {
    /// Returns whether it is all rollups.
    const fn is_everything(&self) -> bool {
        self.device.is_empty() && self.from.is_none() && self.to.is_none()
    }

    /// Parses the range.
    fn range(&self, now: Timestamp) -> anyhow::Result<TimeRange> {
        let parse = |text: &Option<String>, name, default| match text {
            Some(text) => Timestamp::parse(text, now).context(name),
            None => Ok(default),
        };
        let from = parse(&self.from, "--from", Timestamp::MIN)?;
        TimeRange::new(from, parse(&self.to, "--to", now)?).context("--from")
    }
}

/// Runs the subcommand. Ctrl-C ends it; then the same command continues.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { action, place } = args;
    let command = match &action {
        Action::Verify(_) => "verify",
        Action::Rebuild(_) => "rebuild",
    };
    let progress = place.progress_file(command);
    let table = place.open().await?.with_indexes().await?;
    let store = &table.store;
    let work = async {
        match action {
            Action::Verify(verify) => verify::run(&verify, store, &progress, SystemClock).await,
            Action::Rebuild(rebuild) => {
                let stored = rebuild::run(&rebuild, store, &progress, SystemClock).await?;
                print(stored);
                Ok(ExitCode::SUCCESS)
            }
        }
    };
    let result = tokio::select! {
        result = work => result,
        _ = tokio::signal::ctrl_c() => {
            Err(anyhow::anyhow!("interrupted; the same command continues where it stopped"))
        }
    };
    table.close().await?;
    result
}
