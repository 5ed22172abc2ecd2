//! `roomtide import`: sends the readings of a file to `POST /readings`. Accesses no table itself.

mod args;
mod clock_change;
mod columns;
mod estimate;
#[cfg(test)]
pub(crate) mod fake_server;
mod line;
mod number;
mod order;
mod refusals;
mod registry;
mod resume;
mod rolled_up;
mod rollup_estimate;
mod round;
mod rows;
mod source;
mod timestamp;
mod upload;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use domain::Timestamp;
use indicatif::ProgressBar;
use serde_json::Value;

use crate::client::{self, Ask, Client};
use crate::interrupted;
use crate::output::print;
use crate::rollups;

pub(crate) use args::ImportArgs;
pub(crate) use columns::{Columns, Shape, TimestampColumn};
pub(crate) use line::Line;
pub(crate) use refusals::Refusal;
use rolled_up::Waited;
pub(crate) use source::csv_lines;

pub(crate) use timestamp::Zone;

/// The lines of a round: enough to keep several requests under way.
const ROUND: usize = 16_000;
/// The end of a report if the server does not tell whether everything is rolled up.
const UNTOLD: &str = "\
the server does not tell whether all of it is rolled up: series and energy may lack some for minutes; when all is
there, `roomtide rollups verify --again-after 0s` (with the server's --data-dir or --table) says \"none differs\"";
/// The end of a report if nobody waited for all of it.
const BEHIND: &str = "\
series and energy lack what is not rolled up yet, and say so (rollups_lack); GET /health?details=1 tells how far
the rollups are (folded_until)";
/// The end of a report if it did.
const ROLLED_UP: &str = "rolled up: series and energy have all of it";
/// The exit code of an import that is complete but for what was refused.
const SOME_REFUSED: u8 = 3;

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
    let columns = args.csv.columns()?;
    let open = || {
        let source = source::open(&args.file, args.format)?;
        if source.format() == source::Format::Ndjson && args.csv.is_given() {
            bail!("{} is NDJSON; the options for CSV do not fit it", args.file.display());
        }
        let bar = source.progress_bar();
        Ok((source.lines(&columns)?, bar))
    };
    let batch = args.batch.get();
    let rounds_of = |lines| round::Rounds::new(lines, now, ROUND.max(4 * batch), args.merge);
    if args.dry_run {
        let (lines, bar) = order::lines(&args.file, open)?;
        let estimate = estimate::of(rounds_of(lines), batch);
        bar.finish_and_clear();
        let estimate = estimate?;
        print(&estimate);
        return Ok(exit_code(&estimate.refusals));
    }
    let token = args.token.as_deref().map(client::token).transpose()?;
    let client = Client::new(&args.url, token.as_deref())?;
    // The lines that are processed are counted in the order in which they are sent.
    let asked = format!("by time {} {:?} {} {:?}", args.url, args.format, args.merge, args.csv);
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
    let (lines, bar) = order::lines(&args.file, open)?;
    stop_on_ctrl_c(client.interrupted());
    let rounds = rounds_of(lines);
    let options = upload::UploadOptions { batch, strict: args.strict };
    let summary = upload::run(rounds, &client, options, resume, &bar);
    bar.finish_and_clear();
    let summary = summary?;
    print(&summary);
    let code = match summary.refused_before {
        0 => exit_code(&summary.refusals),
        _ => SOME_REFUSED.into(),
    };
    if summary.stored > 0 {
        let bar = ProgressBar::new_spinner();
        let waited = rolled_up::wait(&client, &bar);
        bar.finish_and_clear();
        print(match waited? {
            Waited::RolledUp => ROLLED_UP,
            Waited::Untold => UNTOLD,
            Waited::Behind => BEHIND,
        });
    }
    Ok(code)
}

/// Sets the flag on Ctrl-C, so that the import stops and says how to continue. Exits on a second Ctrl-C.
fn stop_on_ctrl_c(interrupted: Arc<AtomicBool>) {
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupted.store(true, Ordering::Release);
            drop(tokio::signal::ctrl_c().await);
            std::process::exit(interrupted::EXIT_CODE.into());
        }
    });
}

fn exit_code(refusals: &refusals::Refusals) -> ExitCode {
    if refusals.count() == 0 { ExitCode::SUCCESS } else { SOME_REFUSED.into() }
}

/// Checks that the table has the last reading that the interrupted import stored. Returns the reason to
/// start over if it does not.
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
    use fake_server::Reply;

    #[test]
    fn another_table_is_noticed_before_an_import_goes_on() {
        let witness = resume::Witness {
            device: "d".to_owned(),
            timestamp: "2026-01-11T16:00:00.000Z".to_owned(),
            metrics: vec!["t".to_owned()],
        };
        let answered = |status, body: &'static str| {
            let server = fake_server::serve(move |_, request| {
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
        refusals.extend([Refusal { line: 1, reason: String::new() }]);
        assert_eq!(exit_code(&refusals), ExitCode::from(SOME_REFUSED));
    }
}
