//! `roomtide import`: sends the readings of a file to `POST /readings`, or the points of a source to the write endpoint.
//! Accesses no table itself.

mod args;
mod clock_change;
mod columns;
mod comparison;
mod concurrent;
mod estimate;
#[cfg(test)]
pub(crate) mod fake_server;
mod hourly;
mod kind;
mod line;
mod number;
mod of_server;
mod of_source;
mod order;
mod points;
mod refusals;
mod registry;
mod resume;
mod rolled_up;
mod rollup_estimate;
mod round;
mod rows;
mod session;
mod sort;
mod source;
mod sources;
mod text_lines;
mod timestamp;
mod upload;
mod write_units;

use std::cell::RefCell;
use std::process::ExitCode;

use anyhow::bail;
use domain::Timestamp;
use indicatif::ProgressBar;

use crate::output::print;
use crate::rollups;

pub(crate) use args::ImportArgs;
pub(crate) use columns::{Columns, Shape, TimestampColumn};
use kind::Format;
pub(crate) use line::Line;
pub(crate) use refusals::Refusal;
use session::{after_upload, connect, exit_code, stop_on_ctrl_c};
pub(crate) use source::csv_lines;
use sources::home_assistant::{self, Database};
use sources::line_protocol::LineFile;
use sources::{Notes, Source};

pub(crate) use timestamp::Zone;

/// The lines of a round: enough to keep several requests under way.
const ROUND: usize = 16_000;
/// Imports a file, or estimates an import. Returns the exit code.
pub(crate) async fn run(args: ImportArgs, now: Timestamp) -> anyhow::Result<ExitCode> {
    if args.batch.get() > 10_000 {
        bail!("--batch {}: a request holds at most 10000 readings", args.batch);
    }
    if args.rollups {
        if args.csv.is_given() {
            bail!("--rollups: the options for CSV do not fit it");
        }
        let table = args.place.open().await?.with_indexes().await?;
        let restored = rollups::restore(&table.store, &args.file, now).await;
        table.close().await?;
        return restored.map(|()| ExitCode::SUCCESS);
    }
    if args.place.table.is_some() {
        bail!("--table: readings are imported with --url; only --rollups go into a table");
    }
    // Files and the client block the thread.
    tokio::task::spawn_blocking(move || import(&args, now)).await?
}

fn import(args: &ImportArgs, now: Timestamp) -> anyhow::Result<ExitCode> {
    if let Some(address) = args.address() {
        args.ensure_fit(Format::InfluxDb)?;
        return of_server::import(args, address, now);
    }
    let input = source::open(&args.file, args.format)?;
    args.ensure_fit(input.format())?;
    match input.format() {
        Format::Csv | Format::Ndjson => import_readings(args, input, now),
        Format::InfluxDb => bail!("a running InfluxDB is an address, http://HOST:8086"),
        Format::HomeAssistant => {
            let bar = ProgressBar::new_spinner();
            let database = if input.is_plain() {
                Database::open(&args.file)?
            } else {
                Database::unpack(input.into_reader())?
            };
            let storage = home_assistant::read_storage(args.storage.as_deref())?;
            let source = home_assistant::source(database, storage)?;
            of_source::import(args, source, &bar, now)
        }
        Format::HomeAssistantBackup => {
            let bar = ProgressBar::new_spinner();
            let (database, storage) = home_assistant::open_backup(input.into_reader(), &args.file)?;
            let source = home_assistant::source(database, storage)?;
            of_source::import(args, source, &bar, now)
        }
        Format::LineProtocol => {
            let notes = Notes::default();
            let bar = input.progress_bar();
            let points = LineFile::new(
                input.into_reader(),
                args.precision,
                args.database.clone(),
                notes.clone(),
            );
            of_source::import(args, Source { points: Box::new(points), notes }, &bar, now)
        }
    }
}

/// Imports a file of readings.
fn import_readings(
    args: &ImportArgs,
    input: source::InputFile,
    now: Timestamp,
) -> anyhow::Result<ExitCode> {
    let columns = args.csv.columns()?;
    // Standard input cannot be opened again.
    let first = RefCell::new(Some(input));
    let open = || {
        let opened = first.borrow_mut().take();
        let source = match opened {
            Some(source) => source,
            None => source::open(&args.file, args.format)?,
        };
        let bar = source.progress_bar();
        Ok((source.lines(&columns)?, bar))
    };
    let batch = args.batch.get();
    let rounds_of = |lines| round::Rounds::new(lines, now, ROUND.max(4 * batch), args.merge);
    if args.dry_run {
        let (lines, bar) = order::lines(&args.file, open)?;
        let estimate = estimate::of(rounds_of(lines), batch);
        bar.finish_and_clear();
        let mut estimate = estimate?;
        estimate.pace = args.upload_options().pace;
        print(&estimate);
        return Ok(exit_code(&estimate.refusals, 0));
    }
    // The lines that are processed are counted in the order in which they are sent.
    let asked = format!("by time {} {:?} {} {:?}", args.url, args.format, args.merge, args.csv);
    let (client, resume) = connect(args, &asked)?;
    let (lines, bar) = order::lines(&args.file, open)?;
    stop_on_ctrl_c(client.interrupted());
    let rounds = rounds_of(lines);
    let options = args.upload_options();
    let summary = upload::run(rounds, &client, options, resume, &bar);
    bar.finish_and_clear();
    let summary = summary?;
    print(&summary);
    let code = exit_code(&summary.refusals, summary.refused_before);
    after_upload(&client, summary.stored)?;
    Ok(code)
}
