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
mod order;
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
mod thin_estimate;
mod upload;
mod write_units;

use std::cell::RefCell;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use domain::Timestamp;
use indicatif::ProgressBar;
use tempfile::TempDir;

use crate::at::TableParts;
use crate::client::Client;
use crate::interrupted::{remove_if_stopped, stop_on_ctrl_c};
use crate::output::print;
use crate::{progress, rollups};

pub(crate) use args::ImportArgs;
use estimate::Estimate;
use history::csv::totals::Totals;
use history::growing::Growing;
use history::home_assistant::{self, Database};
use history::input::InputFile;
use history::kind::Format;
use history::line::Lines;
use history::line_protocol::LineFile;
use history::notes::Notes;
use history::shelly::{Anchors, Log};
use history::source::Source;
use history::temporary::with_room;
use history::units::SeriesUnits;
use patterns::Patterns;
use session::{after_upload, exit_code, state_of};
pub(crate) use sort::{RUN, sorted};
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
    let format = args.read_as(input.format());
    args.ensure_fit(format)?;
    if input.is_empty() {
        return Ok(say_empty(args));
    }

    match format {
        Format::Shelly => {
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
                let (from, _) = of_source::Wanted::of(args, now)?.span();
                anchors::of(args.client()?, &log, from.div_euclid(1_000_000))?
            };
            let source = log.source(&anchors);
            growing.said().into_iter().for_each(|said| source.notes.say(said));
            if !args.dry_run && anchors == Anchors::default() {
                source.notes.say(BEFORE_THE_METER.to_owned());
            }
            of_source::import(args, source, &progress::spinner(), now)
        }
        Format::Csv | Format::Ndjson | Format::ExportedLines => {
            import_readings(args, input, bar, &growing, now)
        }
        Format::InfluxDb => bail!("a running InfluxDB is an address, http://HOST:8086"),
        Format::HomeAssistant => {
            let bar = progress::spinner();
            let directory = directory()?;
            let database = if input.is_plain() {
                Database::open(&args.file, directory)?
            } else {
                Database::unpack(input.into_reader(), directory)?
            };
            let storage = home_assistant::read_storage(args.storage.as_deref())?;
            let source = home_assistant::source(database, storage)?;
            of_source::import(args, source, &bar, now)
        }
        Format::HomeAssistantBackup => {
            let bar = progress::spinner();
            let directory = directory()?;
            let (database, storage) =
                home_assistant::open_backup(input.into_reader(), &args.file, directory)?;
            let source = home_assistant::source(database, storage)?;
            of_source::import(args, source, &bar, now)
        }
        Format::LineProtocol => {
            let notes = Notes::default();
            let points = LineFile::new(
                input.into_lines(growing),
                args.precision,
                args.database.clone(),
                notes.clone(),
            );
            let source = Source { points: Box::new(points), notes, units: SeriesUnits::default() };
            of_source::import(args, source, &bar, now)
        }
    }
}

/// Makes a directory for copies. It is removed when it is dropped, or when a signal ends the process.
fn directory() -> anyhow::Result<TempDir> {
    let directory = tempfile::tempdir().map_err(Into::into);
    let directory = with_room(directory, || "no directory can be made".to_owned())?;
    remove_if_stopped(directory.path())?;
    Ok(directory)
}

/// Imports a file of readings.
fn import_readings(
    args: &ImportArgs,
    input: InputFile,
    bar: ProgressBar,
    growing: &Growing,
    now: Timestamp,
) -> anyhow::Result<ExitCode> {
    let columns = args.csv.columns()?;
    // The other formats show by themselves whether a line is complete.
    let is_csv = args.read_as(input.format()) == Format::Csv;
    let totals = Totals::of(&columns);

    // Standard input cannot be opened a second time.
    let first = RefCell::new(Some((input, bar)));
    let describes = Arc::new(AtomicBool::new(false));
    let open = || {
        let opened = first.borrow_mut().take();
        let (source, bar) = match opened {
            Some(opened) => opened,
            None => source::open(&args.file, args.format)?,
        };
        let (lines, describes) = (source.lines(&columns, growing.clone())?, describes.clone());
        let lines = lines.inspect(move |line| {
            if line.as_ref().is_ok_and(decoded::is_of_registry) {
                describes.store(true, Ordering::Relaxed);
            }
        });
        Ok((Box::new(lines) as Lines, bar))
    };
    let ordered = || order::lines(&args.file, !totals.is_empty(), open);
    let (lines, bar) = ordered()?;
    let Some(lines) = unless_empty(lines) else { return Ok(say_empty(args)) };

    if !args.dry_run && args.client()?.is_server() {
        let is_described = describes.load(Ordering::Relaxed);
        ensure_may_restore(args, is_described, !is_csv && !args.file.is_file())?;
    }

    // After the first line was read, so that an unreadable source creates no directory.
    let is_continued = !args.dry_run && totals.have_beginnings();
    let totals = if is_continued {
        totals.clone().continuing(args.client()?.clone())?
    } else {
        totals.clone()
    };
    if is_continued && args.file.is_file() {
        let (lines, bar) = ordered()?;
        totals.ensure_fit(lines)?;
        bar.finish_and_clear();
    }
    let lines = totals.add_up(lines);

    let say_of_end = || {
        let notes = Some(totals.notes().to_string()).filter(|notes| !notes.is_empty());
        let said = growing.said().filter(|_| is_csv);
        notes.into_iter().chain(said).for_each(print);
    };
    let options = args.upload_options(true);
    let rounds_of = |lines| {
        let round = args.round.get().max(upload::REQUESTS * options.batch);
        let lines = decoded::rows(lines, now, Patterns::of(&args.except));
        round::Rounds::new(lines, round, args.merge)
    };

    if args.dry_run {
        let lines: Lines = Box::new(bar.wrap_iter(lines));
        let mut estimate = Estimate::of_readings(options);
        let added = estimate.add_all(rounds_of(lines), options.batch);
        bar.finish_and_clear();
        added?;
        print(&estimate);
        say_of_end();
        return Ok(exit_code(&estimate.refusals, 0));
    }

    // The progress counts lines in the order of sending, so that order is part of the import's identity.
    let ImportArgs { format, merge, csv, except, .. } = args;
    let client = args.client()?;
    let target = client.identity();
    let identity = format!("by time {target} {format:?} {merge} {csv:?} {except:?}");
    let state = state_of(args, &identity)?;

    let goes_on = state.acknowledged() > 0;
    stop_on_ctrl_c(client.interrupted());
    let imported = session::begin(args, client, state)?;

    let summary = upload::run(rounds_of(lines), client, options, &imported, &bar);
    bar.finish_and_clear();
    let summary = summary.inspect_err(|_| session::forget_unused(&imported, client))?;
    print(&summary);
    say_of_end();
    after_upload(client, summary.stored, goes_on);
    session::end(imported, &summary.refusals, summary.refused_before)
}

/// Fails if the file describes devices and the token may not restore them. A stream describes devices only at its end,
/// so there the missing permission is only reported.
fn ensure_may_restore(
    args: &ImportArgs,
    is_described: bool,
    may_be_described: bool,
) -> anyhow::Result<()> {
    if is_described {
        let needs = "the file describes devices, rooms or annotations, and nothing of it is sent";
        beforehand::ensure_may_edit(args.client()?).context(needs)?;
    } else if may_be_described {
        let may_edit = beforehand::ensure_may_edit(args.client()?);
        may_edit.unwrap_or_else(|error| print(format_args!("readings only: {error:#}")));
    }
    Ok(())
}

/// Returns the lines; `None` if there are none.
fn unless_empty(lines: Lines) -> Option<Lines> {
    let mut lines = lines.peekable();
    lines.peek().is_some().then(|| Box::new(lines) as Lines)
}

/// Says that there is nothing to import, for example in an export of an empty table.
fn say_empty(args: &ImportArgs) -> ExitCode {
    print(format_args!("{} has nothing in it", args.file.display()));
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_server::{self, Reply};
    use crate::output::{self, Said};
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

    /// What a stream describes is at its end, behind readings that the token may send.
    #[test]
    fn of_a_stream_it_is_said_that_a_token_restores_readings_only() {
        for (status, expected) in [(403, "readings only: "), (400, "")] {
            let server = fake_server::serve(move |_, request| match &*request.path {
                "/ready" => Reply::of(200, r#"{"status":"ready","up":"0s"}"#),
                _ => Reply::of(status, "{}"),
            });
            let mut args: ImportArgs = parsed(["import", "-"]).unwrap();
            args.client = Some(Arc::new(Client::new(&server.url, None).unwrap()));
            let said = Said::default();
            output::say_to(&said);
            ensure_may_restore(&args, false, true).unwrap();
            let said = said.text();
            assert!(said.starts_with(expected) && said.is_empty() == expected.is_empty(), "{said}");
        }
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
