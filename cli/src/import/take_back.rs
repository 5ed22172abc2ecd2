//! `roomtide import --take-back`: deletes the readings, new devices and new rooms in an import's report. Sends no
//! reading.

use std::ops::Range;

use anyhow::{Context as _, bail, ensure};
use chrono::TimeDelta;
use domain::{DeviceId, RoomId, Timestamp};
use runtime::clock::{Clock as _, SystemClock};
use serde_json::Value;

use super::args::ImportArgs;
use super::beforehand::ensure_may_edit;
use super::described::Described;
use super::state::{ImportHead, ImportState};
use crate::at::{SystemAt, Unnamed};
use crate::client::Client;
use crate::delete;
use crate::output::{counted, print};

/// The remark about everything that stays, because no report records it.
const STAYS: &str = "\
what it taught of devices that were there before stays; so do its annotations, its tariffs, and rooms that only its \
descriptions name";

/// Takes back the import of a report, or of the progress of an import that stopped.
pub(super) fn run(args: &ImportArgs) -> anyhow::Result<()> {
    let file = args.file.display();
    let mut state = ImportState::open_file(&args.file).context("nothing is taken back")?;
    if let Some(at) = state.taken_back {
        bail!("{file} was taken back at {at}, and nothing more is deleted");
    }

    ensure!(
        !state.devices.is_empty(),
        "{file} does not tell what devices had before the import, so nothing is taken back"
    );

    let url = url_of(args.at.url.as_deref(), &state)?.to_owned();
    let at = SystemAt { url: Some(url.clone()), ..args.at.clone() };
    at.work(Unnamed::Server, |client| {
        ensure_may_edit(client).context("nothing is taken back")?;
        if !state.is_take_back_begun {
            Brought::of(&state).ensure_is_there(client)?;
        }
        if !args.yes {
            let devices = counted(Brought::of(&state).readings.len() as u64, "device");
            let question = format!(
                "Delete at {url} what the import stored of {devices} for ever, with what others have written in between?"
            );
            delete::confirm(&question, "yes", || Ok(()))?;
        }

        // Noted before anything is deleted, so that the same import does not continue after lines that are deleted.
        state.note_take_back(None)?;
        Brought::of(&state).take_back(client).with_context(|| {
            format!("not all is taken back; the same command continues, and --url names another address than {url}")
        })
    })?;
    state.note_take_back(Some(SystemClock.now()))?;
    print(STAYS);
    Ok(())
}

/// The address of the server that deletes. An import into a directory has no address, and none is guessed: the devices
/// of another table may have the same names.
fn url_of<'a>(named: Option<&'a str>, state: &'a ImportState) -> anyhow::Result<&'a str> {
    let ImportHead { of, url, .. } = &state.import;
    named.or(url.as_deref()).with_context(|| {
        format!("{of} had no server; start one with this --data-dir, and name it with --url")
    })
}

/// The readings, devices and rooms that an import added.
#[derive(Debug, Default)]
struct Brought<'a> {
    readings: Vec<(&'a DeviceId, Range<Timestamp>)>,
    /// The newest sent reading of each device, and the newest reading that was certainly stored.
    witnesses: Vec<(&'a DeviceId, Timestamp)>,
    /// The time from which a device's readings stay, because some were there before the import.
    kept: Vec<(&'a DeviceId, Timestamp)>,
    new_devices: Vec<&'a DeviceId>,
    new_rooms: Vec<&'a RoomId>,
}

impl<'a> Brought<'a> {
    fn of(state: &'a ImportState) -> Self {
        let mut brought = Self::default();
        for (device, before) in &state.devices {
            let Some(last) = state.sent.get(device) else { continue };
            let end = last.at.saturating_add(TimeDelta::milliseconds(1));
            let kept = before.until.filter(|until| *until < end);
            let to = kept.unwrap_or(end);
            if before.from < to {
                brought.readings.push((device, before.from..to));
                brought.witnesses.push((device, last.at));
            }
            brought.kept.extend(kept.map(|from| (device, from)));
            brought.new_devices.extend(before.is_new.then_some(device));
        }

        let witness = state.stored.witness.as_ref();
        brought.witnesses.extend(witness.map(|witness| (&witness.device, witness.timestamp)));
        let rooms = state.rooms.iter().filter(|(_, is_new)| **is_new);
        brought.new_rooms = rooms.map(|(room, _)| room).collect();
        brought
    }

    /// Fails if a server has no reading of the import: it is another server, which may have devices of the same names,
    /// or nothing is left to delete.
    fn ensure_is_there(&self, client: &Client) -> anyhow::Result<()> {
        for (device, at) in &self.witnesses {
            let to = at.saturating_add(TimeDelta::milliseconds(1));
            let path = format!("/devices/{device}/readings?from={at}&to={to}&limit=1");
            let page: Option<Value> = client.find(&path)?;
            if page.is_some_and(|page| !page["data"][0].is_null()) {
                return Ok(());
            }
        }

        ensure!(
            self.readings.is_empty(),
            "{} has no reading of this import, so nothing is taken back; --url names the server of the import",
            client.url()
        );
        Ok(())
    }

    fn take_back(&self, client: &Client) -> anyhow::Result<()> {
        for (device, from) in &self.kept {
            print(format_args!(
                "{device}: readings from {from} on stay, because some were there before"
            ));
        }

        for (device, span) in &self.readings {
            // The device is gone or being deleted, for example by a take-back that stopped.
            if Described::ask(client, device.as_str())?.is_none() {
                print(format_args!("{device} has no readings any more"));
                continue;
            }
            delete::readings(device, span, client)?;
        }

        delete::unused(&self.new_devices, &self.new_rooms, client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::state::{DeviceBefore, ImportName, LastSent};
    use crate::output::{OutputText, say_to};
    use crate::tests::fake_server::{self, Reply};
    use crate::tests::parsed;
    use domain::given::{at_second, device, room};

    #[test]
    fn what_was_there_before_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.roomtide-import");
        let (file, target) = (std::path::Path::new("-"), "here");
        let name =
            ImportName { file, state: Some(&path), target, url: Some("http://here"), options: "" };
        let mut state = ImportState::of(name, false).unwrap();
        let before = |is_new, until: Option<i64>| DeviceBefore {
            is_new,
            has_past: !is_new,
            from: at_second(10),
            until: until.map(at_second),
        };
        for (name, before) in [
            ("new", before(true, None)),
            ("old", before(false, None)),
            ("live", before(false, Some(15))),
            ("later", before(false, Some(30))),
            ("same", before(false, Some(10))),
        ] {
            state.note_device(&device(name), before).unwrap();
            let last = LastSent { at: at_second(20), first: None, usual_distance: None };
            state.note_sending([(device(name), last)]).unwrap();
        }
        state.note_device(&device("unsent"), before(false, None)).unwrap();
        state.note_room(&room("hall"), true).unwrap();
        state.note_room(&room("attic"), false).unwrap();
        drop(state);

        let state = ImportState::open_file(&path).unwrap();
        let brought = Brought::of(&state);
        let end = at_second(20).saturating_add(TimeDelta::milliseconds(1));
        let spans: Vec<_> =
            brought.readings.iter().map(|(id, span)| (id.as_str(), span.end)).collect();
        let expected = [("later", end), ("live", at_second(15)), ("new", end), ("old", end)];
        assert_eq!(spans, expected);
        let kept: Vec<&str> = brought.kept.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(kept, ["live", "same"]);
        assert_eq!(brought.new_devices, [&device("new")]);
        assert_eq!(brought.new_rooms, [&room("hall")]);
    }

    #[test]
    fn an_import_into_a_directory_is_taken_back_at_no_guessed_address() {
        let found = |named, url| {
            let (file, target) = (std::path::Path::new("-"), "/data");
            let name = ImportName { file, state: None, target, url, options: "" };
            let state = ImportState::of(name, false).unwrap();
            url_of(named, &state).map(str::to_owned).map_err(|error| error.to_string())
        };
        let error = found(None, None).unwrap_err();
        assert!(error.contains("into /data") && error.contains("--url"), "{error}");
        assert_eq!(found(Some("http://named"), None).unwrap(), "http://named");
        assert_eq!(found(None, Some("http://server")).unwrap(), "http://server");
    }

    #[test]
    fn only_a_report_is_taken_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        std::fs::write(&path, "timestamp,t\n").unwrap();
        let error = ImportState::open_file(&path).unwrap_err().to_string();
        assert!(
            error.ends_with("a.csv is neither the report of an import nor its progress"),
            "{error}"
        );
    }

    #[test]
    fn a_take_back_goes_on_where_a_device_is_gone_or_is_being_deleted() {
        let [over, going, there] = ["over", "going", "there"].map(device);
        let brought = Brought {
            readings: [&over, &going, &there].map(|id| (id, at_second(10)..at_second(20))).into(),
            ..Brought::default()
        };
        let server = fake_server::serve(|_, request| match &*request.path {
            path if path.starts_with("/devices/over") => Reply::of(404, "{}"),
            path if path.starts_with("/devices/going") => Reply::of(410, "{}"),
            "/devices/there" => Reply::of(200, r#"{"metrics": {}}"#),
            _ => Reply::of(200, r#"{"deleted": 11, "has_more": false}"#),
        });
        let (client, said) = (server.client(), OutputText::default());
        say_to(&said);
        brought.take_back(&client).unwrap();
        let expected = "over has no readings any more\ngoing has no readings any more\n\
                        11 readings of there deleted\n";
        assert_eq!(said.text(), expected);
    }

    #[test]
    fn a_server_without_any_reading_of_the_import_is_another_server() {
        let [unknown, other, there] = ["unknown", "other", "there"].map(device);
        let server = fake_server::serve(|_, request| match request.path.split_once('?').unwrap() {
            ("/devices/there/readings", query) => {
                assert!(query.starts_with("from=2026-01-11T16:00:20.000Z&to="), "{query}");
                Reply::of(200, r#"{"data": [{"t": 1}]}"#)
            }
            // A device of the same name with readings of its own.
            ("/devices/other/readings", _) => Reply::of(200, r#"{"data": []}"#),
            _ => Reply::of(404, "{}"),
        });
        let client = server.client();
        let ensured = |ids: &[&DeviceId]| {
            let readings = ids.iter().map(|id| (*id, at_second(10)..at_second(20))).collect();
            let witnesses = ids.iter().map(|id| (*id, at_second(20))).collect();
            Brought { readings, witnesses, ..Brought::default() }.ensure_is_there(&client)
        };
        let error = ensured(&[&unknown, &other]).unwrap_err().to_string();
        assert!(error.contains("has no reading of this import"), "{error}");
        ensured(&[&unknown, &other, &there]).unwrap();
        ensured(&[]).unwrap();
    }

    #[test]
    fn a_report_is_taken_back_once_by_who_may_delete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.roomtide-import");
        let state = Some(path.as_path());
        let (file, target) = (std::path::Path::new("-"), "here");
        let name = ImportName { file, state, target, url: None, options: "" };
        let mut state = ImportState::of(name, false).unwrap();
        let (from, until) = (at_second(10), None);
        let before = DeviceBefore { is_new: false, has_past: true, from, until };
        state.note_device(&device("d"), before).unwrap();
        let last = LastSent { at: at_second(20), first: None, usual_distance: None };
        state.note_sending([(device("d"), last)]).unwrap();
        drop(state);

        let answers = [
            (403, 200, 200, "answers 403"),
            (400, 404, 200, "has no reading of this import"),
            (400, 200, 403, "not all is"),
            (400, 200, 200, ""),
            (400, 200, 200, "was taken back at"),
        ];
        for (edit, known, delete, expected) in answers {
            let server =
                fake_server::serve(move |_, request| match (&*request.method, &*request.path) {
                    ("GET", path) if path.starts_with("/devices/d") => {
                        Reply::of(known, r#"{"metrics": {}, "data": [{"t": 1}]}"#)
                    }
                    ("GET", _) => Reply::of(200, r#"{"status":"ready","up":"0s"}"#),
                    ("PATCH", _) => Reply::of(edit, "{}"),
                    _ => Reply::of(delete, r#"{"deleted": 11, "has_more": false}"#),
                });
            let words =
                ["import", path.to_str().unwrap(), "--take-back", "--yes", "--url", &server.url];
            let said = run(&parsed(words).unwrap()).err().map(|error| format!("{error:#}"));
            let said = said.unwrap_or_default();
            assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{said}");
        }
    }
}
