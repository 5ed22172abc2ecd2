//! `roomtide import`: readings of a file through `POST /readings`. Never touches a table itself.

mod columns;
mod estimate;
mod resume;
mod source;
mod upload;

use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use chrono::FixedOffset;
use clap::Args;
use shared::domain::Instant;

use crate::terminal::say;

pub(crate) use columns::{Columns, Shape, TimestampColumn};
pub(crate) use source::{Record, csv_records};

/// Part of the help: what happens when the command is given again.
const RESUMING: &str = "\
An import that was interrupted goes on where it stopped when the same command is given again: how \
far it came is kept beside the file, in FILE.roomtide-import, until it is complete. A complete \
import begins anew. Importing twice changes nothing: the same reading is stored once.";

/// What is imported, whereto and how.
///
/// NDJSON has one reading a line, as `POST /readings` takes it. CSV has a header row and by default
/// the columns that Roomtide itself writes: timestamp, device_id, room, and one a metric. gzip is told
/// by its first bytes. Importing twice changes nothing.
#[derive(Debug, Args)]
#[expect(clippy::doc_markdown, reason = "help is shown as it stands")]
#[command(after_help = RESUMING)]
pub struct ImportArgs {
    /// CSV or NDJSON, gzip or not; - is standard input
    file: PathBuf,
    /// The server
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    url: String,
    /// An access token, where the server asks for one; @FILE reads it from a file, for a command
    /// line is seen by every user of the machine
    #[arg(long)]
    token: Option<String>,
    /// Read and check everything, tell what it would cost, send nothing
    #[arg(long)]
    dry_run: bool,
    /// Begin at the first reading even if an import of this file was interrupted
    #[arg(long)]
    again: bool,
    /// Where to keep how far the import came, instead of beside the file
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Readings a request, at most 10000
    #[arg(long, default_value = "500")]
    batch: NonZeroUsize,
    /// The file is NDJSON or CSV; without it that is told by its first character
    #[arg(long, value_enum)]
    format: Option<source::Format>,
    #[command(flatten)]
    csv: CsvArgs,
}

/// Which columns of a CSV are what.
#[derive(Debug, Args)]
#[expect(clippy::doc_markdown, reason = "help is shown as it stands")]
#[command(next_help_heading = "CSV")]
struct CsvArgs {
    /// The column of the instants
    #[arg(long, value_name = "COLUMN", default_value = "timestamp")]
    timestamp: String,
    /// How the instants are written, such as '%Y/%m/%d %H:%M'; RFC 3339 or epoch without it
    #[arg(long, value_name = "FORMAT")]
    timestamp_format: Option<String>,
    /// The offset from UTC of instants that have none themselves, such as +01:00
    #[arg(long, requires = "timestamp_format", allow_hyphen_values = true)]
    offset: Option<FixedOffset>,
    /// The column of the device ids
    #[arg(long, value_name = "COLUMN", default_value = "device_id")]
    device: String,
    /// The one device of the whole file, instead of a column
    #[arg(long, value_name = "ID", conflicts_with = "device")]
    device_id: Option<String>,
    /// The column of the room ids; without it `room`, if the file has that
    #[arg(long, value_name = "COLUMN")]
    room: Option<String>,
    /// A metric and its column; without any, every other column is a metric of its own name
    #[arg(long, value_name = "NAME=COLUMN")]
    metric: Vec<String>,
    /// A device of a wide file, whose rows hold several:
    /// 'DEVICE@ROOM:temperature=T1,power_w=A+B*6,energy_kwh=total(A+B)*0.001'.
    /// Columns are added up, then multiplied; total() adds up the rows so far
    #[arg(long, value_name = "MAP", conflicts_with_all = ["device", "device_id", "room", "metric"])]
    map: Vec<String>,
}

impl CsvArgs {
    fn columns(&self) -> anyhow::Result<Columns> {
        let timestamp = TimestampColumn {
            name: self.timestamp.clone(),
            format: self.timestamp_format.clone(),
            offset: self.offset,
        };
        let shape = if self.map.is_empty() {
            let room = self.room.as_deref();
            Shape::long(self.device_id.as_deref(), &self.device, room, &self.metric)?
        } else {
            Shape::wide(&self.map)?
        };
        Ok(Columns { timestamp, shape })
    }

    /// Whether anything was asked for that is not so anyway.
    fn says_something(&self) -> bool {
        let Self { timestamp, timestamp_format, offset, device, device_id, room, metric, map } =
            self;
        timestamp != "timestamp"
            || device != "device_id"
            || timestamp_format.is_some()
            || offset.is_some()
            || device_id.is_some()
            || room.is_some()
            || !metric.is_empty()
            || !map.is_empty()
    }
}

/// Imports, or tells what an import would be.
pub async fn run(args: ImportArgs, now: Instant) -> anyhow::Result<()> {
    if args.batch.get() > 10_000 {
        bail!("--batch {}: a request holds at most 10000 readings", args.batch);
    }
    // Files and the client block; the runtime's threads are for others.
    tokio::task::spawn_blocking(move || import(&args, now)).await?
}

fn import(args: &ImportArgs, now: Instant) -> anyhow::Result<()> {
    let columns = args.csv.columns()?;
    let source = source::open(&args.file, args.format)?;
    if source.format() == source::Format::Ndjson && args.csv.says_something() {
        bail!("{} is NDJSON; the options for CSV do not fit it", args.file.display());
    }
    let bar = source.progress_bar();
    let records = source.records(&columns)?;
    if args.dry_run {
        let estimate = estimate::of(records, args.batch.get(), now);
        bar.finish_and_clear();
        let estimate = estimate?;
        say(&estimate);
        if estimate.refused > 0 {
            bail!("{} readings would be refused", estimate.refused);
        }
        return Ok(());
    }
    let asked = format!("{} {:?} {:?}", args.url, args.format, args.csv);
    let resume = resume::Resume::of(&args.file, args.state.as_deref(), &asked, args.again)?;
    if resume.acknowledged() > 0 {
        let text = "readings are stored already; going on behind them (--again begins anew)";
        say(format_args!("{} {text}", resume.acknowledged()));
    }
    let token = args.token.as_deref().map(token).transpose()?;
    let target = upload::Target::new(&args.url, token.as_deref())?;
    let done = upload::run(records, &target, args.batch.get(), resume, &bar);
    bar.finish_and_clear();
    let done = done?;
    say(&done);
    if done.refused > 0 {
        bail!("{} readings were refused; all others are stored", done.refused);
    }
    Ok(())
}

/// The token, or the one in the file that it names.
fn token(text: &str) -> anyhow::Result<String> {
    let Some(file) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read the token in {file}"))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_may_be_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        fs::write(&file, "rt_a\n").unwrap();
        assert_eq!(token(&format!("@{}", file.display())).unwrap(), "rt_a");
        assert_eq!(token("rt_b").unwrap(), "rt_b");
        let missing = format!("{:#}", token("@no/such/file").unwrap_err());
        assert!(missing.contains("no/such/file"), "{missing}");
    }
}
