//! `roomtide devices set`: edits many devices, one PATCH for each line of a CSV file. Accesses no table itself.

mod edits;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use thiserror::Error;

use crate::at::{SystemAt, Unnamed};
use crate::client::{Ask, Client};
use crate::concurrent::concurrently;
use crate::interrupted::stop_on_ctrl_c;
use crate::objects::SOME_REFUSED;
use crate::output::{counted, print, print_error};
use crate::{progress, settings_file};
use edits::DeviceEdit;
use history::refusals::Refusal;

/// The command line of `roomtide devices`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Command,
    #[command(flatten)]
    at: SystemAt,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Set names, kinds, rooms, tags and attributes of many devices
    ///
    /// The column `device_id` names the device. The columns `name`, `kind`, `room` and `tags` are set, and every
    /// other column is an attribute of that name. An empty cell changes nothing, and null removes. Several tags,
    /// or values of an attribute, are a JSON array such as `["a", "b"]`.
    ///
    /// If any line is wrong, nothing is sent. The exit code is 3 if the server refuses some lines.
    Set(Set),
}

#[derive(Debug, clap::Args)]
struct Set {
    /// The CSV file; - is standard input
    file: PathBuf,
    /// Only read the file and say what would be edited
    #[arg(long)]
    dry_run: bool,
}

/// The number of requests that are under way at once.
const CONCURRENCY: usize = 8;
/// The maximum number of lines that an error report shows.
const MAX_SHOWN: usize = 20;

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Command::Set(set) = &args.action;
    let (file, name) = settings_file::open(&set.file)?;
    let (edits, wrong) = edits::read(file).with_context(|| name.clone())?;
    if !wrong.is_empty() {
        show(&wrong);
        bail!("{name} has {}; nothing is sent", counted(number(wrong.len()), "error"));
    }

    if set.dry_run {
        let cells = edits.iter().map(|edit| edit.members).sum();
        let (devices, cells) =
            (counted(number(edits.len()), "device"), counted(number(cells), "value"));
        print(format_args!("{devices} would be edited, {cells} set or removed"));
        return Ok(ExitCode::SUCCESS);
    }

    let refused = args.at.work(Unnamed::Server, |client| {
        stop_on_ctrl_c(client.interrupted());
        send(&edits, client)
    })?;
    let edited = counted(number(edits.len() - refused.len()), "device");
    print(format_args!("{edited} edited, {} refused", refused.len()));
    show(&refused);
    Ok(if refused.is_empty() { ExitCode::SUCCESS } else { SOME_REFUSED.into() })
}

fn show(refusals: &[Refusal]) {
    refusals.iter().take(MAX_SHOWN).for_each(print_error);
    if refusals.len() > MAX_SHOWN {
        print_error(format_args!("and {} more", refusals.len() - MAX_SHOWN));
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Why the token may not edit: then no edit with it succeeded.
#[derive(Debug, Error)]
#[error("{0}")]
struct Forbidden(String);

/// Sends the edits, several at once. Returns the refusals by line.
fn send(edits: &[DeviceEdit], client: &Client) -> anyhow::Result<Vec<Refusal>> {
    let style = "  {bar:40} {percent:>3} %  {pos} of {len} devices  {left}";
    let bar = progress::bar(number(edits.len()), style)?;
    let (mut edited, mut refused) = (0, Vec::new());
    let work = |edit: &DeviceEdit, stop: &AtomicBool| send_one(edit, client, stop);

    let sent = concurrently(CONCURRENCY, edits, work, |_, refusal| {
        match refusal {
            Some(refusal) => refused.push(refusal),
            None => edited += 1,
        }
        bar.inc(1);
    });

    bar.finish_and_clear();
    sent.map_err(|error| {
        if edited == 0 && error.is::<Forbidden>() { error } else { error.context(how_far(edited)) }
    })?;
    refused.sort_by_key(|refusal: &Refusal| refusal.line);
    Ok(refused)
}

/// Says how many edits were made before a failure. The edits in flight have no known result.
fn how_far(edited: u64) -> String {
    let edited = counted(edited, "device");
    format!(
        "{edited} edited, and perhaps some that were on their way; the same command sets the others"
    )
}

/// Sends an edit. Returns why the server refused it, if it did.
fn send_one(
    edit: &DeviceEdit,
    client: &Client,
    stop: &AtomicBool,
) -> anyhow::Result<Option<Refusal>> {
    let path = format!("/devices/{}", edit.device);
    let answer = client.send_unless(Ask::json("PATCH", &path, &edit.body), stop)?;
    match answer.status {
        200 => client.read(&path, &answer, "device_id").map(|_| None),
        401 | 403 => bail!(Forbidden(client.error(&path, &answer).to_string())),
        400 | 404 | 422 => {
            let detail = answer.reason();
            let reason = match column(&detail) {
                Some((column, why)) => format!("column {column}: {why}"),
                None => detail,
            };
            Ok(Some(Refusal { line: edit.line, reason }))
        }
        _ => Err(client.error(&path, &answer)),
    }
}

/// The column of the member that a problem names, and the reason.
fn column(detail: &str) -> Option<(&str, &str)> {
    let (field, why) = detail.split_once(": ")?;
    Some((field.strip_prefix("attributes.").unwrap_or(field), why))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::tests::fake_server::{self, Reply};

    const DEVICE: &str = r#"{"device_id": "a"}"#;

    #[test]
    fn what_is_no_device_is_no_answer_to_an_edit() {
        for body in ["{}", "", "<html>", r#"{"detail": "ok"}"#] {
            let server = fake_server::always(200, body);
            let (edits, _) = edits::read(&b"device_id,name\na,A\n"[..]).unwrap();
            let error = send(&edits, &server.client()).unwrap_err();
            let error = format!("{error:#}");
            let expected = format!("{}/devices/a answers 200, but not as Roomtide", server.url);
            assert!(error.contains(&expected), "{error}");
        }
    }

    #[test]
    fn each_line_is_one_edit_and_a_refused_one_is_named() {
        let server = fake_server::serve(|_, request| match request.path.as_str() {
            "/devices/none" => Reply::of(404, r#"{"detail": "There is no device \"none\"."}"#),
            "/devices/metric" => Reply::of(
                400,
                r#"{"detail": "attributes.t: is a metric that the device has sent"}"#,
            ),
            "/devices/a" if request.body == r#"{"name":"A"}"# => Reply::of(200, DEVICE),
            "/devices/b" if request.body == r#"{"attributes":{"t":"1"}}"# => Reply::of(200, DEVICE),
            other => panic!("{other} {}", request.body),
        });
        let file = "device_id,name,t\nnone,,1\na,A,\nmetric,,1\nb,,1\n";
        let (edits, wrong) = edits::read(file.as_bytes()).unwrap();
        assert!(wrong.is_empty());
        let refused = send(&edits, &server.client()).unwrap();
        let refused: Vec<String> = refused.iter().map(Refusal::to_string).collect();
        assert_eq!(
            refused,
            [
                "line 2: There is no device \"none\".",
                "line 4: column t: is a metric that the device has sent",
            ]
        );
    }

    #[test]
    fn a_server_that_fails_ends_the_command() {
        let server = fake_server::always(403, r#"{"detail": "no"}"#);
        let (edits, _) = edits::read(&b"device_id,name\na,A\nb,B\n"[..]).unwrap();
        let error = send(&edits, &server.client()).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("answers 403") && !error.contains("on their way"), "{error}");
    }

    #[test]
    fn a_command_that_stops_says_how_many_it_edited() {
        let server = fake_server::serve(|_, request| match &*request.path {
            "/devices/z" => Reply::of(500, r#"{"detail": "no"}"#),
            _ => Reply::of(200, DEVICE),
        });
        let client = server.client();
        let (edits, _) = edits::read(&b"device_id,name\na,A\nb,B\nz,Z\n"[..]).unwrap();
        let error = format!("{:#}", send(&edits, &client).unwrap_err());
        assert!(error.starts_with("2 devices edited"), "{error}");

        client.interrupted().store(true, Ordering::Release);
        let error = send(&edits, &client).unwrap_err();
        let said = format!("{error:#}");
        assert!(said.starts_with("0 devices edited") && said.ends_with("interrupted"), "{said}");
        let code = format!("{:?}", crate::interrupted::exit_code(&error));
        assert_eq!(code, format!("{:?}", ExitCode::from(crate::interrupted::EXIT_CODE)));
    }
}
