//! `roomtide export`: writes readings and the registry to a file, through the API. Knows no item of the table.

mod bytes;
mod file;
mod format;
pub(crate) mod lines;
mod long_form;
mod parquet;
mod row;
mod unfinished;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use domain::{DeviceId, RoomId, TimeRange, Timestamp};
use indicatif::ProgressBar;
use runtime::clock::{Clock as _, SystemClock};
use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) use self::file::ExportFile;
use self::format::{FileFormat, Kind};
use self::row::Row;
use crate::at::{SystemAt, TableParts, Unnamed};
use crate::client::Client;
use crate::import::{RUN, Sortable, sorted};
use crate::interrupted;
use crate::moment::from_now;
use crate::output::{counted, print, print_error};
use crate::pages::{ListPages, NotThere, Page};
use crate::progress;
use crate::rollups;

/// The part of the help after the options: the content of the file.
const AFTER_HELP: &str = "\
NDJSON has one reading a line, as `POST /readings` takes it, and then a line for each device and \
room, {\"device\": {...}} and {\"room\": {...}}: names, kinds, tags, settings of metrics, and rooms \
that a person chose. An annotation is {\"annotation\": {...}}, a tariff {\"tariff\": {...}}. Line protocol \
(.lp) has a line for each reading, with the measurement readings, the tags device_id and room and a field for each \
metric, and these settings as comments. CSV has the readings only, with a \
column for each metric. `roomtide import` reads the three, with every digit.

Parquet has the readings only, for DuckDB, pandas and the like, and is not imported: a row is one value, with the \
columns device, time (UTC), room, metric and value, sorted by device and time. Values are DOUBLE; values with more \
digits than a DOUBLE has are counted.

An import of NDJSON or line protocol into an empty table restores all of it except devices and rooms without readings, \
metrics that no \
reading has any more, the time at which a person registered a room, the times at which devices came into \
their rooms (--rollups keeps these), and access tokens. A metric or room that a person removed with null is \
restored if readings still have it. A file is either complete or absent, and only its owner can read it.";

/// Write readings and the registry to a file.
///
/// Readings of all devices and all time, or of some; and the descriptions of the devices and rooms.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ExportArgs {
    /// A name that ends in .ndjson, .jsonl, .lp or .csv, each with or without .gz, or in .parquet; - is standard
    /// output, NDJSON without --format
    file: PathBuf,
    /// The format, if the name does not end in it
    #[arg(long, value_enum)]
    format: Option<Kind>,
    /// Only this device; repeat it for several
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    device: Vec<DeviceId>,
    /// Only readings in this room; repeat it for several
    #[arg(long, value_name = "ID", allow_hyphen_values = true, conflicts_with = "device")]
    room: Vec<RoomId>,
    /// The start of the range, such as 2026-01-01T00:00:00Z or -30d
    #[arg(
        long,
        value_name = "TIMESTAMP",
        allow_hyphen_values = true,
        default_value = "1970-01-01T00:00:00Z",
        value_parser = from_now
    )]
    from: Timestamp,
    /// The end of the range, exclusive
    #[arg(
        long,
        value_name = "TIMESTAMP",
        allow_hyphen_values = true,
        default_value = "9999-12-31T23:59:59.999Z",
        value_parser = from_now
    )]
    to: Timestamp,
    /// Write the rollups of 15 minutes and of days instead, and the stays of devices in rooms, which `import
    /// --rollups` restores: where readings have expired, they are the only copy
    #[arg(long, conflicts_with_all = ["url", "token", "room"])]
    rollups: bool,
    #[command(flatten)]
    at: SystemAt,
}

/// A device or a room of the registry, and its JSON.
struct Described {
    entry: Entry,
    json: Box<RawValue>,
}

/// The id of a device or a room, and the room of a device.
#[derive(Deserialize)]
struct Entry {
    #[serde(alias = "device_id", alias = "room_id")]
    id: String,
    room: Option<RoomId>,
}

/// The subject of an annotation. An export of some devices or rooms leaves other annotations out.
#[derive(Deserialize)]
struct AnnotationPlace {
    device: Option<DeviceId>,
    room: Option<RoomId>,
}

/// Exports to a file.
pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let format = FileFormat::of(&args.file, args.format)?;
    let range = TimeRange::new(args.from, args.to).context("--from, --to")?;
    if args.rollups {
        return export_rollups(args, range, format);
    }

    let exported =
        args.at.work(Unnamed::Data, |client| Export::open(args, client)?.write(format))?;
    let Exported { readings, devices, gone, inexact } = exported;
    if !gone.is_empty() {
        let devices = gone.into_iter().collect::<Vec<_>>().join(", ");
        print_error(format_args!(
            "deleted meanwhile, so that readings that were there may lack: {devices}"
        ));
    }

    let file = args.file.display();
    let (readings, devices) = (counted(readings, "reading"), counted(devices, "device"));
    let said = format!("{readings} of {devices} written to {file}{inexact}");
    if format.is_stdout {
        inexact.lines().skip(1).for_each(print_error);
    } else {
        print(said);
    }
    Ok(())
}

/// The result of an export.
#[derive(Default)]
struct Exported {
    readings: u64,
    /// The number of devices with exported readings.
    devices: u64,
    /// The devices that were deleted before all their readings were read.
    gone: BTreeSet<String>,
    /// Says which values the format cannot represent exactly.
    inexact: String,
}

/// Exports the rollups and stays to a file.
fn export_rollups(args: &ExportArgs, range: TimeRange, format: FileFormat) -> anyhow::Result<()> {
    let path = &args.file;
    if format.kind != Kind::Ndjson {
        bail!(
            "{}: rollups are written as NDJSON; expected a name that ends in .ndjson",
            path.display()
        );
    }

    let now = SystemClock.now();
    let count = args.at.place.work(TableParts::Devices, async |table| {
        let mut file = create(path, format)?;
        let count = rollups::export(&table.store, &args.device, range, now, &mut file).await?;
        file.finish()?;
        Ok(count)
    })?;
    if !format.is_stdout {
        print(format_args!("{count} written to {}", path.display()));
    }
    Ok(())
}

/// Creates the file. A signal that ends the export removes the file.
fn create(path: &Path, format: FileFormat) -> anyhow::Result<ExportFile> {
    let file = ExportFile::create(path, format)?;
    if let Some(unfinished) = file.unfinished() {
        interrupted::remove_if_stopped(unfinished)?;
    }
    Ok(file)
}

/// An export: what a person asks for, and the registry of the system.
struct Export<'a> {
    args: &'a ExportArgs,
    client: &'a Client,
    devices: Vec<Described>,
    rooms: Vec<Described>,
}

impl<'a> Export<'a> {
    /// Reads the registry; an error if it lacks a device or a room that the command line names.
    fn open(args: &'a ExportArgs, client: &'a Client) -> anyhow::Result<Self> {
        let (devices, rooms) = (list(client, "/devices")?, list(client, "/rooms")?);
        ensure_known(&args.device, &devices, "device")?;
        ensure_known(&args.room, &rooms, "room")?;
        Ok(Self { args, client, devices, rooms })
    }

    /// Writes all requested entries to the file.
    fn write(&self, format: FileFormat) -> anyhow::Result<Exported> {
        let mut file = create(&self.args.file, format)?;
        let mut exported = self.write_readings(format, &mut file)?;

        let devices = self.devices.iter().filter(|device| {
            self.is_wanted(&device.entry) && !exported.gone.contains(&device.entry.id)
        });
        let devices: Vec<_> = devices.collect();
        self.write_registry(&devices, &mut file)?;
        self.write_annotations(&devices, &mut file)?;
        if self.is_of_everything() {
            self.write_tariffs(&mut file)?;
        }

        exported.inexact = file.finish()?.to_string();
        Ok(exported)
    }

    const fn is_of_everything(&self) -> bool {
        self.args.device.is_empty() && self.args.room.is_empty()
    }

    /// Whether a device is exported: all are, or it is named, or its room is.
    fn is_wanted(&self, device: &Entry) -> bool {
        let is_in_room = device.room.as_ref().is_some_and(|room| self.args.room.contains(room));
        let is_named = || self.args.device.iter().any(|id| id.as_str() == device.id);
        self.is_of_everything() || is_in_room || is_named()
    }

    /// The lists of the wanted readings, one for each device, or one for each room that is named.
    fn reading_lists(&self) -> Vec<ReadingList<'_>> {
        if self.args.room.is_empty() {
            // A set: each device once and in order, even if the command line repeats one.
            let wanted = self.devices.iter().map(|device| &device.entry);
            let wanted = wanted.filter(|device| self.is_wanted(device)).map(|device| &*device.id);
            let wanted: BTreeSet<&str> = wanted.collect();
            let list = |id| self.list(Some(id), &format!("/devices/{id}"));
            return wanted.into_iter().map(list).collect();
        }
        let rooms: BTreeSet<&RoomId> = self.args.room.iter().collect();
        rooms.into_iter().map(|id| self.list(None, &format!("/rooms/{id}"))).collect()
    }

    fn list<'b>(&self, device: Option<&'b str>, path: &str) -> ReadingList<'b> {
        let (from, to) = (self.args.from, self.args.to);
        ReadingList { device, path: format!("{path}/readings?from={from}&to={to}") }
    }

    /// Writes the readings. Those of a room come sorted by time, but Parquet needs them sorted by device.
    fn write_readings(
        &self,
        format: FileFormat,
        file: &mut ExportFile,
    ) -> anyhow::Result<Exported> {
        let is_by_device = format.kind != Kind::Parquet || self.args.room.is_empty();
        let lists = self.reading_lists();
        let bar = progress::bar(lists.len() as u64, "  {bar:40} {pos} of {len}  {msg}  {left}")?;
        let (gone, mut read) = (RefCell::default(), 0_u64);
        let rows = lists.iter().flat_map(|list| {
            bar.inc(1);
            list.rows(self.client, &gone)
        });
        let mut rows = rows.inspect(|_| {
            read += 1;
            bar.set_message(format!("{read} readings"));
        });

        let (mut exported, mut seen) = (Exported::default(), BTreeSet::new());
        let mut write = |row: anyhow::Result<Box<RawValue>>| {
            #[derive(Deserialize)]
            struct Row {
                device_id: DeviceId,
            }
            let row = row?;
            let Row { device_id } = serde_json::from_str(row.get())?;
            seen.insert(device_id);
            exported.readings += 1;
            file.reading(&row)
        };
        if is_by_device {
            rows.try_for_each(&mut write)?;
        } else {
            sorted(rows, RUN, &ProgressBar::hidden())?.try_for_each(&mut write)?;
        }
        bar.finish_and_clear();

        (exported.devices, exported.gone) = (seen.len() as u64, gone.take());
        Ok(exported)
    }

    /// Writes the wanted devices, and the rooms that are wanted or that these devices are in.
    fn write_registry(&self, devices: &[&Described], file: &mut ExportFile) -> anyhow::Result<()> {
        for device in devices {
            file.describe("device", &device.json)?;
        }
        let rooms_of_devices = devices.iter().filter_map(|device| device.entry.room.as_ref());
        let rooms = rooms_of_devices.chain(&self.args.room).map(RoomId::as_str);
        let rooms: BTreeSet<&str> = rooms.collect();
        for room in &self.rooms {
            if self.is_of_everything() || rooms.contains(&*room.entry.id) {
                file.describe("room", &room.json)?;
            }
        }
        Ok(())
    }

    /// Writes the annotations: all, or those about the wanted devices and the named rooms.
    fn write_annotations(
        &self,
        devices: &[&Described],
        file: &mut ExportFile,
    ) -> anyhow::Result<()> {
        let annotations = ListPages::of(self.client, "/annotations", 1_000);
        let written = annotations.each(|json: Box<RawValue>| {
            let AnnotationPlace { device, room } = serde_json::from_str(json.get())?;
            let is_of_device = device
                .is_some_and(|id| devices.iter().any(|device| device.entry.id == id.as_str()));
            let is_wanted = is_of_device || room.is_some_and(|id| self.args.room.contains(&id));
            if self.is_of_everything() || is_wanted {
                file.describe("annotation", &json)?;
            }
            Ok(())
        });
        // A server of an earlier version has no annotations.
        written.or_else(|error| if error.is::<NotThere>() { Ok(()) } else { Err(error) })
    }

    fn write_tariffs(&self, file: &mut ExportFile) -> anyhow::Result<()> {
        // A server of an earlier version has no tariffs.
        let tariffs: Page<Box<RawValue>> = self.client.find("/tariffs")?.unwrap_or_default();
        tariffs.data.iter().try_for_each(|json| file.describe("tariff", json))
    }
}

/// A list of readings.
struct ReadingList<'a> {
    /// The device, if the list is one of a device.
    device: Option<&'a str>,
    /// The path with the range.
    path: String,
}

impl ReadingList<'_> {
    /// The readings. If a device is deleted meanwhile, they end and the export goes on.
    fn rows<'b>(
        &'b self,
        client: &'b Client,
        gone: &'b RefCell<BTreeSet<String>>,
    ) -> impl Iterator<Item = anyhow::Result<Box<RawValue>>> + 'b {
        ListPages::of(client, &self.path, 10_000).flat_map(|page| match (page, self.device) {
            (Ok(rows), _) => rows.into_iter().map(Ok).collect(),
            (Err(error), Some(device)) if error.is::<NotThere>() => {
                gone.borrow_mut().insert(device.to_owned());
                Vec::new()
            }
            (Err(error), _) => vec![Err(error)],
        })
    }
}

impl Sortable for Box<RawValue> {
    fn place(&self) -> (String, Option<i64>) {
        let row = Row::of(self).ok();
        row.map_or_else(Default::default, |row| (row.device.to_string(), Some(row.at.as_millis())))
    }

    fn bytes(&self) -> usize {
        self.get().len()
    }
}

/// Returns all entries of a list of the registry.
fn list(client: &Client, path: &str) -> anyhow::Result<Vec<Described>> {
    let mut all = Vec::new();
    ListPages::of(client, path, 1_000).each(|json: Box<RawValue>| {
        let entry = serde_json::from_str(json.get()).context("an entry of the registry")?;
        all.push(Described { entry, json });
        Ok(())
    })?;
    Ok(all)
}

/// Fails if the registry lacks an id that the command line names.
fn ensure_known(named: &[impl Display], known: &[Described], what: &str) -> anyhow::Result<()> {
    for id in named.iter().map(ToString::to_string) {
        ensure!(known.iter().any(|known| known.entry.id == id), "there is no {what} {id:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::tests::fake_server::{self, Reply};
    use crate::tests::parsed;

    #[tokio::test]
    async fn a_relative_time_is_the_same_in_every_page_of_every_device() {
        let paths = Arc::new(Mutex::new(Vec::new()));
        let asked = Arc::clone(&paths);
        let server = fake_server::serve(move |_, request| {
            if request.path == "/ready" {
                return Reply::of(200, r#"{"status":"ready","up":"0s"}"#);
            }
            let path = request.path;
            if path.starts_with("/devices?") {
                return Reply::of(200, r#"{"data": [{"device_id": "a"}, {"device_id": "b"}]}"#);
            }
            let is_first = !path.contains("cursor=");
            if !path.contains("/readings?") || !is_first {
                asked.lock().unwrap().push(path);
                return Reply::of(200, r#"{"data": []}"#);
            }
            asked.lock().unwrap().push(path);
            Reply::of(200, r#"{"data": [], "next_cursor": "c"}"#)
        });
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.ndjson");
        let words = ["export", file.to_str().unwrap(), "--url", &server.url, "--from", "-30d"];
        run(&parsed(words).unwrap()).unwrap();
        let paths = paths.lock().unwrap();
        let from = |path: &String| Some(path.split_once("from=")?.1.split_once('&')?.0.to_owned());
        let from: Vec<String> = paths.iter().filter_map(from).collect();
        assert_eq!(from.len(), 4, "{paths:?}");
        assert!(from.iter().all(|text| *text == from[0]), "{from:?}");
        assert!(Timestamp::parse_absolute(&from[0]).is_ok(), "{from:?}");
    }

    #[tokio::test]
    async fn a_list_whose_pages_never_end_ends_the_export() {
        for (endless, path) in [("/devices?", "/devices?"), ("/devices/a/", "/devices/a/readings")]
        {
            let server = fake_server::serve(move |n, request| {
                assert!(n < 20, "for ever");
                if request.path == "/ready" {
                    return Reply::of(200, r#"{"status":"ready","up":"0s"}"#);
                }
                if request.path.starts_with(endless) {
                    let page = r#"{"data": [{"device_id": "a"}], "next_cursor": "c"}"#;
                    return Reply::of(200, page);
                }
                let member =
                    if request.path == "/rooms?limit=1000" { "room_id" } else { "device_id" };
                Reply::of(200, &format!(r#"{{"data": [{{"{member}": "a"}}]}}"#))
            });
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("a.ndjson");
            let words = ["export", file.to_str().unwrap(), "--url", &server.url];
            let error = format!("{:#}", run(&parsed(words).unwrap()).unwrap_err());
            assert!(error.contains(path) && error.contains("would never end"), "{error}");
            assert!(!file.exists(), "half an export");
        }
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        let [early, late] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"];
        let nobody = "http://127.0.0.1:1";
        for (options, named) in [
            (["--from", late, "--to", early], "--from, --to"),
            (["--url", nobody, "--table", "never"], "--table"),
            (["--data-dir", "never", "--token", "t"], "--token"),
            (["--table", "never", "--token", "t"], "--token"),
        ] {
            let words = ["export", "never.ndjson"].into_iter().chain(options);
            // Words are refused as they are read, times by the command.
            let refused = match parsed(words) {
                Ok(args) => run(&args).unwrap_err(),
                Err(error) => error.into(),
            };
            assert!(format!("{refused:#}").contains(named), "{refused:#}");
        }
    }
}
