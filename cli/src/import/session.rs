//! The common part of all imports: where an interrupted one continues, Ctrl-C, the wait for rollups, the exit code.
//! Sends no reading.

use std::process::ExitCode;
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::args::ImportArgs;
use super::described::Described;
use super::imported::Imported;
use super::rolled_up::{self, Waited};
use super::state::{ImportName, ImportState, Witness};
use crate::client::Client;
use crate::interrupted::Interrupted;
use crate::objects::SOME_REFUSED;
use crate::output::{print, print_error};
use crate::{progress, sample_home};
use history::refusals::Refusals;

/// The end of the output if the server does not tell whether everything is rolled up.
const UNTOLD: &str = "\
the server does not tell whether all of it is rolled up: series and energy may lack some for minutes; when all is
there, `roomtide rollups verify --again-after 0s` (with the server's --data-dir or --table) says \"none differs\"";
/// The end of the output if the wait for rollups ended early.
const BEHIND: &str = "\
series and energy lack what is not rolled up yet, and say so (rollups_lack); GET /health?details=1 tells how far
the rollups are (folded_until)";
/// The end of the output if everything is rolled up.
const ROLLED_UP: &str = "rolled up: series and energy have all of it";
/// The exit code of an import after which the table lacks some of its readings.
const SOME_MISSING: u8 = 4;

/// Reads the state of the import. The state of another import in the same file is an error.
pub(super) fn state_of(args: &ImportArgs, options: &str) -> anyhow::Result<ImportState> {
    let client = args.client()?;
    let name = ImportName {
        file: &args.file,
        state: args.state.as_deref(),
        target: &client.identity(),
        url: client.is_server().then(|| client.url()),
        options,
    };
    ImportState::of(name, args.again)
}

/// Begins an import, or continues an interrupted one.
pub(super) fn begin<'a>(
    args: &ImportArgs,
    client: &'a Client,
    mut state: ImportState,
) -> anyhow::Result<Imported<'a>> {
    if state.has_changed {
        let file = args.file.display();
        print(format_args!(
            "{file}, or an option, has changed since the interrupted import; starting over"
        ));
    }

    if state.stored.lines > 0 {
        match look_for(state.stored.witness.as_ref(), client)? {
            Earlier::Found => {
                let text =
                    "lines are processed already; continuing after them (--again starts over)";
                print(format_args!("{} {text}", state.stored.lines));
            }
            Earlier::Gone => {
                print(format_args!("{GONE}; starting over"));
                state.restart();
            }
            Earlier::Unknown(why) => {
                print(format_args!(
                    "{why}, so nothing tells whether the table is the same; starting over"
                ));
                state.start_over();
            }
        }
    }

    if state.stored.lines == 0 {
        tell_of_sample_home(client);
    }

    let imported = Imported::begin(client, state)?;
    if let Some(why) = imported.why_unknown() {
        print(format_args!(
            "{why}: the import is not compared with the table, and cannot be taken back"
        ));
    }
    Ok(imported)
}

/// Waits until series and energy include the stored readings, and reports the result. A failure is only reported,
/// because the import is complete without the wait. Ctrl-C ends only the wait.
///
/// An import that continues waits even if it stores nothing, because the run before may have been killed a moment ago.
/// If no run has stored anything, there is no wait.
pub(super) fn after_upload(client: &Client, stored: u64, goes_on: bool) {
    if stored == 0 && !goes_on {
        return;
    }

    let bar = progress::spinner();
    let waited = rolled_up::wait(client, &bar);
    bar.finish_and_clear();

    let waited = waited.unwrap_or_else(|error| {
        if error.is::<Interrupted>() {
            client.interrupted().store(false, Ordering::Release);
        } else {
            print_error(format_args!("{error:#}"));
        }
        Waited::Behind
    });

    let said = match waited {
        Waited::RolledUp => ROLLED_UP,
        Waited::Untold => UNTOLD,
        Waited::Behind => BEHIND,
    };
    if stored > 0 {
        print(said);
    }
}

/// Says which devices belong to the sample home, if the table has any and the token may read.
pub(super) fn tell_of_sample_home(client: &Client) {
    let name_of = |id: &str| Described::ask(client, id).ok().flatten()?.name;
    sample_home::said_of(name_of).into_iter().for_each(print);
}

/// Returns the exit code of a complete import with refused readings.
pub(super) fn some_refused() -> ExitCode {
    SOME_REFUSED.into()
}

/// Returns the exit code of an import. `refused_before` counts refusals of earlier runs.
pub(super) fn exit_code(refusals: &Refusals, refused_before: u64) -> ExitCode {
    if refusals.count() + refused_before == 0 { ExitCode::SUCCESS } else { SOME_REFUSED.into() }
}

/// Gives up the state of an import that stopped and stored nothing.
pub(super) fn forget_unused(imported: &Imported<'_>, client: &Client) {
    let mut state = imported.state();
    if let Some(here) = client.here().filter(|here| here.is_unused()) {
        // The state is removed after the directory: if the process ends in between, the next import still knows that
        // the devices there are its own.
        state.give_up().into_iter().for_each(|file| here.remove_at_close(file));
    }
    state.remove_if_unused();
}

/// Ends a complete import: prints the comparison with the table, and the counters that do not fit it. Returns the exit
/// code.
pub(super) fn end(
    imported: Imported<'_>,
    misfits: &[String],
    refusals: &Refusals,
    refused_before: u64,
) -> anyhow::Result<ExitCode> {
    let ended = imported.end()?;
    misfits.iter().for_each(print);
    print(&ended.text);
    let code = exit_code(refusals, refused_before);
    Ok(if ended.is_lossy || !misfits.is_empty() { SOME_MISSING.into() } else { code })
}

/// Whether the table has the readings that an interrupted import stored.
#[derive(Debug, PartialEq, Eq)]
enum Earlier {
    Found,
    Gone,
    /// The table cannot be asked, for this reason.
    Unknown(&'static str),
}

/// The reason to start over: the table is another one.
const GONE: &str = "the table does not have the last reading that was stored";

/// Looks for the last reading that an interrupted import stored.
fn look_for(witness: Option<&Witness>, client: &Client) -> anyhow::Result<Earlier> {
    let Some(Witness { device, timestamp, metrics }) = witness else {
        return Ok(Earlier::Unknown("no reading was stored"));
    };

    let to = timestamp.saturating_add(chrono::TimeDelta::milliseconds(1));
    let path = format!("/devices/{device}/readings?from={timestamp}&to={to}&limit=1");
    let answer = client.get(&path)?;
    match answer.status {
        200 => {
            let page: Value = client.parsed(&path, &answer)?;
            let is_found = metrics.iter().all(|name| page["data"][0].get(name.as_str()).is_some());
            Ok(if is_found { Earlier::Found } else { Earlier::Gone })
        }
        404 if answer.problem().is_elsewhere() => {
            Ok(Earlier::Unknown("the address answers no queries"))
        }
        404 => Ok(Earlier::Gone),
        410 => Ok(Earlier::Unknown("the device of the last stored reading is being deleted")),
        403 => Ok(Earlier::Unknown("the token may not read")),
        _ => Err(client.error(&path, &answer)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use domain::given::{at, device, metric};

    use super::*;
    use crate::output::{self, OutputText};
    use crate::tests::fake_server::{self, Reply};
    use history::refusals::Refusal;

    const ELSEWHERE: &str = r#"{"type": "urn:roomtide:problem:elsewhere", "detail": "no"}"#;

    #[test]
    fn another_table_is_noticed_before_an_import_goes_on() {
        let witness = Witness {
            device: device("d"),
            timestamp: at("2026-01-11T16:00:00.000Z"),
            metrics: vec![metric("t")],
        };
        let answered = |status, body: &'static str| {
            let server = fake_server::serve(move |_, request| {
                let asked = "/devices/d/readings?from=2026-01-11T16:00:00.000Z\
                             &to=2026-01-11T16:00:00.001Z&limit=1";
                assert_eq!((&*request.method, &*request.path), ("GET", asked));
                Reply::of(status, body)
            });
            look_for(Some(&witness), &server.client())
        };
        assert_eq!(
            answered(200, r#"{"data": [{"device_id": "d", "t": 1, "h": 2}]}"#).unwrap(),
            Earlier::Found
        );
        for (status, body) in
            [(200, r#"{"data": []}"#), (200, r#"{"data": [{"h": 2}]}"#), (404, "{}")]
        {
            assert_eq!(answered(status, body).unwrap(), Earlier::Gone, "{status} {body}");
        }
        for (status, body) in [(403, "{}"), (404, ELSEWHERE), (410, "{}")] {
            let unknown = answered(status, body).unwrap();
            assert!(
                matches!(unknown, Earlier::Unknown(_)),
                "{status}: what was before stays known"
            );
        }
        assert!(answered(401, "{}").is_err());
        assert!(answered(200, "<html>").is_err());
    }

    fn said_after_upload(client: &Client) -> String {
        let said = OutputText::default();
        output::say_to(&said);
        after_upload(client, 1, false);
        said.text()
    }

    #[test]
    fn an_import_that_stores_nothing_waits_for_what_a_killed_one_stored() {
        const BEHIND: &str =
            r#"{"rollups":{"folded_until":"2026-01-11T16:00:00Z","at":"2026-01-11T16:00:09Z"}}"#;
        const FOLDED: &str =
            r#"{"rollups":{"folded_until":"2026-01-11T16:00:10Z","at":"2026-01-11T16:00:10Z"}}"#;
        let (looked, looks) = std::sync::mpsc::channel();
        let server = fake_server::serve(move |n, _| {
            looked.send(n).unwrap();
            Reply::of(200, if n == 0 { BEHIND } else { FOLDED })
        });
        let client = server.client();
        after_upload(&client, 0, true);
        assert_eq!(looks.try_iter().count(), 2, "it is behind at first");
    }

    #[test]
    fn where_nothing_was_stored_no_rollup_is_waited_for() {
        let server = fake_server::serve(|_, request| panic!("{request:?}"));
        let client = server.client();
        after_upload(&client, 0, false);
    }

    #[test]
    fn ctrl_c_ends_the_wait_for_rollups_and_nothing_behind_it() {
        let client = fake_server::always(200, "{}").client();
        client.interrupted().store(true, Ordering::Release);
        assert_eq!(said_after_upload(&client), format!("{BEHIND}\n"));
        assert_eq!(client.get("/").unwrap().status, 200);
    }

    #[test]
    fn a_server_that_is_away_in_the_wait_for_rollups_leaves_the_report() {
        let server = fake_server::serve(|_, _| Reply::NONE);
        let client = server.client();
        assert!(said_after_upload(&client).contains(BEHIND));
    }

    #[test]
    fn a_counter_that_does_not_fit_the_table_is_told_and_ends_with_4() {
        let said = OutputText::default();
        output::say_to(&said);
        let client = fake_server::always(403, "{}").client();
        let (file, target) = (Path::new("-"), "here");
        let name = ImportName { file, state: None, target, url: None, options: "" };
        for (misfits, code) in [(vec![], 0), (vec!["it does not fit".to_owned()], SOME_MISSING)] {
            let state = ImportState::of(name, false).unwrap();
            let imported = Imported::begin(&client, state).unwrap();
            let ended = end(imported, &misfits, &Refusals::default(), 0).unwrap();
            assert_eq!(ended, ExitCode::from(code));
        }
        assert_eq!(said.text().matches("it does not fit").count(), 1);
    }

    #[test]
    fn the_exit_code_says_whether_something_was_refused() {
        let mut refusals = Refusals::default();
        assert_eq!(exit_code(&refusals, 0), ExitCode::SUCCESS);
        assert_eq!(exit_code(&refusals, 1), ExitCode::from(SOME_REFUSED));
        refusals.extend([Refusal { line: 1, reason: String::new() }]);
        assert_eq!(exit_code(&refusals, 0), ExitCode::from(SOME_REFUSED));
    }
}
