//! `roomtide import --take-back`: deletes what an import brought, as its report says. Sends no reading.

use std::ops::Range;

use anyhow::{Context as _, ensure};
use chrono::TimeDelta;
use domain::{DeviceId, RoomId, Timestamp};

use super::args::ImportArgs;
use super::state::ImportState;
use crate::at::{SystemAt, Unnamed};
use crate::client::Client;
use crate::delete;
use crate::output::{counted, print};

/// Takes back the import of a report, or of the progress of an import that stopped.
pub(super) fn run(args: &ImportArgs) -> anyhow::Result<()> {
    let state = ImportState::read(&args.file)?;
    let brought = Brought::of(&state);
    ensure!(
        !state.devices().is_empty(),
        "{} does not tell what devices had before the import, so nothing is taken back",
        args.file.display()
    );

    let url = url_of(args.at.url.as_deref(), &state)?;
    let at = SystemAt { url: Some(url.to_owned()), ..args.at.clone() };
    if !args.yes {
        let devices = counted(brought.readings.len() as u64, "device");
        let question = format!(
            "Delete at {url} what the import stored of {devices} for ever, with what others have written in between?"
        );
        delete::confirm(&question, "yes", || Ok(()))?;
    }
    at.work(Unnamed::Server, |client| brought.take_back(client)).with_context(|| {
        format!("not all is taken back; the same command continues, and --url names another address than {url}")
    })
}

/// The address at which is deleted. A directory has no address of its own: at a guessed one the devices of another table
/// may have the same names.
fn url_of<'a>(named: Option<&'a str>, state: &'a ImportState) -> anyhow::Result<&'a str> {
    let (of, url) = state.of_and_url();
    named.or(url).with_context(|| {
        format!("{of} had no server; start one with this --data-dir, and name it with --url")
    })
}

/// What an import brought.
#[derive(Debug, Default)]
struct Brought<'a> {
    readings: Vec<(&'a DeviceId, Range<Timestamp>)>,
    /// For each device the time from which it had readings before the import: these stay.
    kept: Vec<(&'a DeviceId, Timestamp)>,
    new_devices: Vec<&'a DeviceId>,
    new_rooms: Vec<&'a RoomId>,
}

impl<'a> Brought<'a> {
    fn of(state: &'a ImportState) -> Self {
        let mut brought = Self::default();
        for (device, before) in state.devices() {
            let Some(last) = state.sent().get(device) else { continue };
            let end = last.at.saturating_add(TimeDelta::milliseconds(1));
            let kept = before.until.filter(|until| *until < end);
            let to = kept.unwrap_or(end);
            if before.from < to {
                brought.readings.push((device, before.from..to));
            }
            brought.kept.extend(kept.map(|from| (device, from)));
            brought.new_devices.extend(before.is_new.then_some(device));
        }
        let rooms = state.rooms().iter().filter(|(_, is_new)| **is_new);
        brought.new_rooms = rooms.map(|(room, _)| room).collect();
        brought
    }

    fn take_back(&self, client: &Client) -> anyhow::Result<()> {
        for (device, from) in &self.kept {
            print(format_args!(
                "{device}: readings from {from} on stay, because some were there before"
            ));
        }
        for (device, span) in &self.readings {
            delete::readings(device, span, client)?;
        }
        delete::unused(&self.new_devices, &self.new_rooms, client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::state::{DeviceBefore, ImportName, LastSent};
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
            let last = LastSent { at: at_second(20), usual_distance: None };
            state.note_sending([(device(name), last)]).unwrap();
        }
        state.note_device(&device("unsent"), before(false, None)).unwrap();
        state.note_room(&room("hall"), true).unwrap();
        state.note_room(&room("attic"), false).unwrap();
        drop(state);

        let state = ImportState::read(&path).unwrap();
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
        let error = ImportState::read(&path).unwrap_err().to_string();
        assert!(error.ends_with("a.csv is no report of an import, nor its progress"), "{error}");
    }
}
