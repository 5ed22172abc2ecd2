//! `roomtide import`: readings of a file through `POST /readings`. Never touches a table itself.

mod clock_change;
mod columns;
mod estimate;
#[cfg(test)]
mod fake;
mod number;
mod refusals;
mod registry;
mod resume;
mod round;
mod rows;
mod source;
mod timestamp;
mod upload;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, bail};
use clap::Args;
use domain::Timestamp;
use serde_json::Value;

use crate::client::{self, Ask, Client};
use crate::output::print;

pub(crate) use columns::{Columns, Shape, TimestampColumn};
pub(crate) use source::{Line, csv_lines};
pub(crate) use timestamp::Zone;

/// How many lines are read before what they hold is sent: enough to keep several requests under way.
const ROUND: usize = 16_000;
/// The exit code of an import that is complete but for what was refused.
const SOME_REFUSED: u8 = 3;

/// Part of the help: what is stored, and what happens when the command is given again.
const AFTER_HELP: &str = "\
Lines of one device and timestamp are one reading, whose last line wins. A reading that the table \
has already is replaced; with --merge its other metrics stay, for files that hold one metric each.

A line or a cell that cannot be read is refused and named, and the rest goes on. The exit code is 0 \
if everything is stored, 3 if something was refused, 2 if the command line is wrong, 1 if the import \
stopped.

Run an interrupted import again and it continues where it stopped: how far it came is kept beside \
the file, in FILE.roomtide-import, until it is complete. If the table does not have what was stored, \
the import starts over. Importing twice changes nothing: the same reading is stored once.";

/// What is imported, whereto and how.
///
/// NDJSON has one reading a line, as `POST /readings` takes it, and may describe devices and rooms, as
/// `roomtide export` writes them. CSV has a header row, which tells the separator, and by default the
/// columns that Roomtide itself writes: timestamp, device_id, room, and one a metric. Empty cells and
/// those that say unavailable, unknown, none, null or nan hold no value. gzip is told by its first
/// bytes. Every reading needs a timestamp. Importing twice changes nothing.
#[derive(Debug, Args)]
#[expect(clippy::doc_markdown, reason = "help is shown as it stands")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ImportArgs {
    /// CSV (.csv, .tsv) or NDJSON (.ndjson, .jsonl), gzip or not; - is standard input
    file: PathBuf,
    /// The server
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    url: String,
    /// An access token, if the server asks for one; @FILE reads it from a file, because every user of
    /// the machine sees a command line
    #[arg(long)]
    token: Option<String>,
    /// Read and check everything, tell what it would cost, send nothing
    #[arg(long)]
    dry_run: bool,
    /// Stop at the first line or cell that cannot be read, instead of naming it and going on
    #[arg(long)]
    strict: bool,
    /// Keep the metrics that the table has already of the same device and timestamp
    #[arg(long)]
    merge: bool,
    /// Begin at the first line even if an import of this file was interrupted
    #[arg(long)]
    again: bool,
    /// Where to keep how far the import came, instead of beside the file
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Readings a request, at most 10000
    #[arg(long, default_value = "500")]
    batch: NonZeroUsize,
    /// The file is NDJSON or CSV; without it that is told by its name, or by its first character
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
    /// The column of the timestamps
    #[arg(long, value_name = "COLUMN", default_value = "timestamp")]
    timestamp: String,
    /// How the timestamps are written, such as '%Y/%m/%d %H:%M'; RFC 3339 or epoch without it
    #[arg(long, value_name = "FORMAT")]
    timestamp_format: Option<String>,
    /// Where times without an offset are local, such as Europe/Berlin or +01:00. A date alone is its
    /// midnight. The hour that a clock shows twice is told by the order of a device's lines, if they
    /// increase; what does not tell is refused
    #[arg(long, value_name = "ZONE", alias = "offset", allow_hyphen_values = true)]
    time_zone: Option<Zone>,
    /// The comma is the decimal mark. Without it that is so only where the columns are parted by
    /// semicolons and the first number with a mark has a comma
    #[arg(long)]
    decimal_comma: bool,
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
            zone: self.time_zone,
        };
        let shape = if self.map.is_empty() {
            let room = self.room.as_deref();
            Shape::long(self.device_id.as_deref(), &self.device, room, &self.metric)?
        } else {
            Shape::wide(&self.map)?
        };
        Ok(Columns { timestamp, shape, decimal_comma: self.decimal_comma })
    }

    /// Whether anything was asked for that is not so anyway.
    fn says_something(&self) -> bool {
        let Self {
            timestamp,
            timestamp_format,
            time_zone,
            decimal_comma,
            device,
            device_id,
            room,
            metric,
            map,
        } = self;
        timestamp != "timestamp"
            || device != "device_id"
            || timestamp_format.is_some()
            || time_zone.is_some()
            || *decimal_comma
            || device_id.is_some()
            || room.is_some()
            || !metric.is_empty()
            || !map.is_empty()
    }
}

/// Imports, or tells what an import would be.
pub(crate) async fn run(args: ImportArgs, now: Timestamp) -> anyhow::Result<ExitCode> {
    if args.batch.get() > 10_000 {
        bail!("--batch {}: a request holds at most 10000 readings", args.batch);
    }
    // Files and the client block; the runtime's threads are for others.
    tokio::task::spawn_blocking(move || import(&args, now)).await?
}

fn import(args: &ImportArgs, now: Timestamp) -> anyhow::Result<ExitCode> {
    let columns = args.csv.columns()?;
    let source = source::open(&args.file, args.format)?;
    if source.format() == source::Format::Ndjson && args.csv.says_something() {
        bail!("{} is NDJSON; the options for CSV do not fit it", args.file.display());
    }
    let bar = source.progress_bar();
    let batch = args.batch.get();
    let size = ROUND.max(4 * batch);
    let rounds = round::Rounds::new(source.lines(&columns)?, now, size, args.merge);
    if args.dry_run {
        let estimate = estimate::of(rounds, batch);
        bar.finish_and_clear();
        let estimate = estimate?;
        print(&estimate);
        return Ok(exit_code(&estimate.refusals));
    }
    let token = args.token.as_deref().map(client::token).transpose()?;
    let client = Client::new(&args.url, token.as_deref())?;
    let asked = format!("{} {:?} {} {:?}", args.url, args.format, args.merge, args.csv);
    let mut resume = resume::Resume::of(&args.file, args.state.as_deref(), &asked, args.again)?;
    if resume.acknowledged() > 0 {
        match missing(resume.witness(), &client)? {
            None => {
                let text =
                    "lines are processed already; continuing after them (--again starts over)";
                print(format_args!("{} {text}", resume.acknowledged()));
            }
            Some(why) => {
                print(format_args!("{why}; starting over"));
                resume.restart();
            }
        }
    }
    let options = upload::UploadOptions { batch, strict: args.strict };
    let summary = upload::run(rounds, &client, options, resume, &bar);
    bar.finish_and_clear();
    let summary = summary?;
    print(&summary);
    Ok(exit_code(&summary.refusals))
}

fn exit_code(refusals: &refusals::Refusals) -> ExitCode {
    if refusals.count() == 0 { ExitCode::SUCCESS } else { SOME_REFUSED.into() }
}

/// Checks that the table has the last reading that the earlier import stored. Returns why it starts over,
/// if it does.
fn missing(
    witness: Option<&resume::Witness>,
    client: &Client,
) -> anyhow::Result<Option<&'static str>> {
    const GONE: &str = "the table does not have the last reading that was stored";
    let Some(resume::Witness { device, timestamp, metrics }) = witness else {
        return Ok(Some("nothing tells whether the earlier import is in this table"));
    };
    let at = Timestamp::parse(timestamp, Timestamp::MIN).context("how far the import came")?;
    let to = at.saturating_add(chrono::TimeDelta::milliseconds(1));
    let path = format!("/devices/{device}/readings?from={at}&to={to}&limit=1");
    let answer = client.send(Ask::get(&path), &AtomicBool::new(false))?;
    match answer.status {
        200 => {
            let page: Value = serde_json::from_str(&answer.text)
                .with_context(|| format!("{} answers, but not as Roomtide does", client.url()))?;
            let found = metrics.iter().all(|name| page["data"][0].get(name).is_some());
            Ok((!found).then_some(GONE))
        }
        404 => Ok(Some(GONE)),
        403 => Ok(Some("the token may not read, so nothing tells whether the table is the same")),
        _ => Err(client.error(&path, &answer)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use fake::Reply;

    #[test]
    fn another_table_is_noticed_before_an_import_goes_on() {
        let witness = resume::Witness {
            device: "d".to_owned(),
            timestamp: "2026-01-11T16:00:00.000Z".to_owned(),
            metrics: vec!["t".to_owned()],
        };
        let answered = |status, body: &'static str| {
            let server = fake::serve(move |_, request| {
                let asked = "/devices/d/readings?from=2026-01-11T16:00:00.000Z\
                             &to=2026-01-11T16:00:00.001Z&limit=1";
                assert_eq!((&*request.method, &*request.path), ("GET", asked));
                Reply::of(status, body)
            });
            missing(Some(&witness), &Client::impatient(&server.url, Duration::ZERO))
        };
        assert_eq!(
            answered(200, r#"{"data": [{"device_id": "d", "t": 1, "h": 2}]}"#).unwrap(),
            None
        );
        for (status, body) in
            [(200, r#"{"data": []}"#), (200, r#"{"data": [{"h": 2}]}"#), (404, "{}"), (403, "{}")]
        {
            assert!(answered(status, body).unwrap().is_some(), "{status} {body}");
        }
        assert!(answered(401, "{}").is_err());
        assert!(answered(200, "<html>").is_err());
    }

    #[test]
    fn the_exit_code_says_whether_something_was_refused() {
        let mut refusals = refusals::Refusals::default();
        assert_eq!(exit_code(&refusals), ExitCode::SUCCESS);
        refusals.extend([refusals::Refusal { line: 1, reason: String::new() }]);
        assert_eq!(exit_code(&refusals), ExitCode::from(SOME_REFUSED));
    }
}
