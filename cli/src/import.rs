//! `roomtide import`: sends the readings of a file, or the points of a source as readings, to `POST /readings`. Opens a
//! table only to restore rollups.

mod anchors;
mod args;
mod beforehand;
mod decoded;
mod described;
mod energy;
mod estimate;
mod hourly;
mod imported;
mod listed;
mod of_server;
mod of_source;
mod patterns;
mod points;
mod reading_pages;
mod registry;
mod rolled_up;
mod rollup_estimate;
mod round;
mod sender;
mod session;
mod several_meters;
mod sort;
mod source;
mod span;
mod spool;
mod state;
mod stored_counter;
mod storing;
mod take_back;
mod upload;
mod write_units;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use domain::{MetricRule, Timestamp};
use tempfile::TempDir;

use crate::at::TableParts;
use crate::client::Client;
use crate::interrupted::remove_if_stopped;
use crate::output::print;
use crate::{progress, rollups};

pub(crate) use args::ImportArgs;
use history::csv::totals::Totals;
use history::growing::Growing;
use history::home_assistant;
use history::input::InputFile;
use history::kind::Format;
use history::line_protocol::LineFile;
use history::notes::Notes;
use history::shelly::{Anchors, Log};
use history::source::HistorySource;
use history::sqlite::Database;
use history::temporary::with_room;
use points::Selection;
pub(crate) use sort::{RUN, Sortable, sorted};
pub(crate) use source::open_bytes;
use state::OrderChanged;

/// The advice when nothing tells the earlier totals of a meter.
const BEFORE_THE_METER: &str = "\
counters     begin at 1, because the meter itself has not sent yet; import again when it has, and they end where its
             own begin";

/// Imports a file, or estimates an import. Returns the exit code.
pub(crate) fn run(mut args: ImportArgs, now: Timestamp) -> anyhow::Result<ExitCode> {
    if args.batch.get() > 10_000 {
        bail!("--batch {}: a request holds at most 10000 readings", args.batch);
    }

    if args.rollups {
        return args.at.place.work(TableParts::Indexes, async |table| {
            rollups::restore(&table.store, &args.file, now).await.map(|()| ExitCode::SUCCESS)
        });
    }
    if args.take_back {
        return take_back::run(&args).map(|()| ExitCode::SUCCESS);
    }

    if args.dry_run {
        return import(&args, now);
    }

    let client = Arc::new(args.at.open_to_import()?);
    args.client = Some(Arc::clone(&client));
    let checked = beforehand::check(&args);
    let imported = checked.and_then(|()| match import(&args, now) {
        // The state has no stored lines any more, so the second attempt begins at the first line.
        Err(error) if error.is::<OrderChanged>() => {
            print(format_args!("{OrderChanged}; starting over"));
            import(&args, now)
        }
        imported => imported,
    });

    drop(args);
    let closed = Arc::into_inner(client).map_or(Ok(()), Client::close);
    imported.and_then(|code| closed.map(|()| code))
}

fn import(args: &ImportArgs, now: Timestamp) -> anyhow::Result<ExitCode> {
    if let Some(address) = args.address() {
        args.ensure_fit(Format::InfluxDb)?;
        return of_server::import(args, address, now);
    }

    let (input, bar) = source::open(&args.file, args.format)?;
    let growing = Growing::of(&args.file);
    let format = args.read_as(input.format);
    args.ensure_fit(format)?;
    if input.is_empty {
        return Ok(of_source::say_empty(args));
    }

    let source = match format {
        Format::InfluxDb => bail!("a running InfluxDB is an address, http://HOST:8086"),
        Format::Shelly => shelly(args, input, growing, now)?,
        Format::Csv | Format::Ndjson | Format::ExportedLines => lines(args, input, growing, now)?,
        Format::HomeAssistant => {
            let directory = directory()?;
            let database = if input.is_plain {
                Database::open(&args.file, directory)?
            } else {
                Database::unpack(input.reader, &args.file, directory)?
            };
            let storage = home_assistant::read_storage(args.storage.as_deref())?;
            home_assistant::source(database, storage)?
        }
        Format::HomeAssistantBackup => {
            let reader = input.reader;
            let (database, storage) =
                home_assistant::open_backup(reader, &args.file, directory()?)?;
            home_assistant::source(database, storage)?
        }
        Format::LineProtocol => {
            let notes = Notes::default();
            let lines = input.into_lines(growing);
            let databases = args.database.clone();
            let points = LineFile::new(lines, args.precision, databases, notes.clone());
            HistorySource::of_points(Box::new(points), notes)
        }
    };
    let bar = if format.is_read_in_order() { bar } else { progress::spinner() };
    of_source::import(args, source, &bar, now)
}

/// Opens the log of a meter. The log has amounts, so counters are made that end where the counters of the meter's own
/// readings begin.
fn shelly(
    args: &ImportArgs,
    input: InputFile,
    growing: Growing,
    now: Timestamp,
) -> anyhow::Result<HistorySource> {
    let Some(device) = &args.csv.device_id else {
        bail!(
            "{} is the log of a Shelly meter; --device-id names it, as its own readings do, such as \
             shellypro3em-0123456789ab",
            args.file.display()
        );
    };
    let device = device.parse().map_err(|why| anyhow::anyhow!("--device-id {why}"))?;
    let log = Log::read(input.into_lines(growing.clone()), device)?;
    let anchors = if args.dry_run {
        Anchors::default()
    } else {
        let (from, _) = Selection::of(args, now)?.span();
        anchors::of(args.client()?, &log, from.div_euclid(1_000_000))?
    };

    let source = log.source(&anchors)?;
    if !args.dry_run && anchors.counters.is_empty() {
        source.notes.say(BEFORE_THE_METER.to_owned());
    }
    Ok(HistorySource { growing: Some(growing), ..source })
}

/// Opens a file of readings. Totals continue the counters of the table.
fn lines(
    args: &ImportArgs,
    input: InputFile,
    growing: Growing,
    now: Timestamp,
) -> anyhow::Result<HistorySource> {
    let columns = args.csv.columns()?;
    // The other formats show by themselves whether a line is complete.
    let is_csv = args.read_as(input.format) == Format::Csv;
    let lines = input.lines(&columns, growing.clone(), now)?;

    let mut totals = Totals::of(&columns);
    for (device, metric) in columns.shape.totals() {
        if !matches!(MetricRule::of_unknown(metric), MetricRule::Counter(_)) {
            totals.notes().say(format!(
                "total()      {metric} of {device} is no counter by its name, so no energy is counted unless a PATCH of the \
                 device makes it one with a unit; a name such as cumulative_kwh_p is one"
            ));
        }
    }
    // After the first line was read, so that an unreadable source creates no directory.
    if !args.dry_run && !totals.is_empty() {
        totals = totals.continuing(args.client()?.clone())?;
        // Standard input cannot be opened a second time.
        if args.file.is_file() {
            let (input, checked) = source::open(&args.file, args.format)?;
            let lines = input.lines(&columns, growing.clone(), now)?;
            of_source::ensure_fit(&totals, lines, &checked, now)?;
            checked.finish_and_clear();
        }
    }

    Ok(HistorySource {
        growing: Some(growing).filter(|_| is_csv),
        ..HistorySource::of_lines(lines, totals)
    })
}

/// Makes a directory for copies. It is removed when it is dropped, or when a signal ends the process.
fn directory() -> anyhow::Result<TempDir> {
    let directory = tempfile::tempdir().map_err(Into::into);
    let directory = with_room(directory, || "no directory can be made".to_owned())?;
    remove_if_stopped(directory.path())?;
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fake_server::{self, Reply};
    use crate::tests::parsed;

    /// Why an import of these lines fails, from a server that answers an edit so and takes no reading.
    fn error_of(lines: &str, status: u16, body: &'static str) -> String {
        let server = fake_server::serve(move |_, request| match &*request.method {
            "GET" if request.path == "/ready" => Reply::of(200, r#"{"status":"ready","up":"0s"}"#),
            "GET" => Reply::of(404, "{}"),
            "PATCH" => {
                assert_eq!(request.body, "[]", "nothing is edited");
                Reply::of(status, body)
            }
            _ => Reply::of(401, r#"{"detail": "readings were sent"}"#),
        });
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.ndjson");
        std::fs::write(&file, lines).unwrap();
        let mut args: ImportArgs = parsed(["import", file.to_str().unwrap()]).unwrap();
        args.client = Some(Arc::new(Client::new(&server.url, None).unwrap()));
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        // Ctrl-C is listened to.
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _entered = runtime.enter();
        format!("{:#}", import(&args, now).unwrap_err())
    }

    /// A restore of hours would end with it.
    #[test]
    fn a_token_that_may_only_write_is_told_so_before_a_backup_is_sent() {
        const READING: &str = "{\"device_id\":\"d\",\"timestamp\":1768147200,\"t\":1}\n";
        const DEVICE: &str = "{\"device\":{\"device_id\":\"d\",\"name\":\"x\"}}\n";
        const ELSEWHERE: &str =
            r#"{"type": "urn:roomtide:problem:elsewhere", "detail": "not here"}"#;
        let backup = [READING, DEVICE].concat();
        for (status, body) in [(403, r#"{"detail": "no"}"#), (404, ELSEWHERE)] {
            let error = error_of(&backup, status, body);
            assert!(error.starts_with("the file describes devices"), "{error}");
            assert!(error.contains(&format!("answers {status}")), "{error}");
            assert!(error.contains("a token of scope admin"), "{error}");
        }
        for (lines, status) in [(&*backup, 400), (READING, 403)] {
            let error = error_of(lines, status, "{}");
            assert!(error.contains("readings were sent"), "{error}");
        }
    }
}
