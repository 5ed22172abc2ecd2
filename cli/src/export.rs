//! `roomtide export`: writes readings and the registry to a file, through the API. Knows no item of the table.

mod bytes;
mod file;
mod format;
pub(crate) mod lines;
mod long_form;
mod parquet;
mod row;
mod unfinished;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use domain::{DeviceId, RoomId, TimeRange, Timestamp};
use indicatif::ProgressBar;
use runtime::clock::{Clock as _, SystemClock};
use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) use self::file::ExportFile;
use self::file::TEMPORARY;
use self::format::{Format, Kind, Output};
use crate::import::{Line, RUN, Record, sorted};
use crate::interrupted;
use crate::moment::from_now;
use crate::output::{counted, print, print_error};
use crate::place::Place;
use crate::progress;
use crate::rollups;
use crate::source_api::SourceApi;

/// The part of the help after the options: the content of the file.
const AFTER_HELP: &str = "\
NDJSON has one reading a line, as `POST /readings` takes it, and then a line for each device and \
room, {\"device\": {...}} and {\"room\": {...}}: names, kinds, tags, settings of metrics, and rooms \
that a person chose. What was noted of times is {\"annotation\": {...}}, a tariff {\"tariff\": {...}}. Line protocol (.lp) has a line for each reading, with the measurement readings, the tags \
device_id and room and a field for each metric, and these settings as comments. CSV has the readings only, with a \
column for each metric. `roomtide import` reads the three, with every digit.

Parquet has the readings only, for DuckDB, pandas and the like, and is not imported: a row is one value, with the \
columns device, time (UTC), room, metric and value, sorted by device and time. Values are DOUBLE; those with more digits \
than it gives back are counted. With the name of a directory, readings-2026-01.parquet and so on are files of a month \
each.

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
    /// Ends in .ndjson, .jsonl, .lp or .csv, with .gz after it or not, or in .parquet; a directory gets a file of
    /// Parquet a month; - is standard output, NDJSON without --format
    file: PathBuf,
    /// The format, where the name does not tell it
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
    /// The end of the range, which is not part of it
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
    #[arg(long, conflicts_with_all = ["url", "room"])]
    rollups: bool,
    #[command(flatten)]
    place: Place,
    /// A server, instead of the local data
    #[arg(long, conflicts_with_all = ["data_dir", "table"])]
    url: Option<String>,
    /// An access token for that server; @FILE reads it from a file, because every user of
    /// the machine sees a command line
    // A conflict declared on `url` itself would cancel this requirement.
    #[arg(long, requires = "url", conflicts_with_all = ["data_dir", "table", "rollups"])]
    token: Option<String>,
}

/// The id and the room of a device.
#[derive(Deserialize)]
struct Device {
    #[serde(rename = "device_id")]
    id: DeviceId,
    room: Option<RoomId>,
}

#[derive(Deserialize)]
struct Room {
    #[serde(rename = "room_id")]
    id: RoomId,
}

/// The subject of an annotation. An export of some devices or rooms leaves other annotations out.
#[derive(Deserialize)]
struct Annotation {
    device: Option<DeviceId>,
    room: Option<RoomId>,
}

/// A parsed entry of the registry, and its JSON.
type Described<T> = (T, Box<RawValue>);

/// Exports to a file.
pub(crate) async fn run(args: ExportArgs) -> anyhow::Result<()> {
    let format = Format::of(&args.file, args.format)?;
    let range = TimeRange::new(args.from, args.to).context("--from, --to")?;
    if args.rollups {
        return export_rollups(args, range, format).await;
    }
    let api = SourceApi::of(args.url.as_deref(), args.token.as_deref(), &args.place).await?;
    let exported = export(&args, format, &api).await;
    let closed = api.close().await;
    let Exported { readings, devices, gone, inexact } = exported?;
    closed?;
    if !gone.is_empty() {
        let devices = gone.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        print_error(format_args!(
            "deleted meanwhile, so that readings that were there may lack: {devices}"
        ));
    }
    let file = args.file.display();
    let (readings, devices) = (counted(readings, "reading"), counted(devices, "device"));
    let said = format!("{readings} of {devices} written to {file}{inexact}");
    match format.output {
        Output::Stdout => inexact.lines().skip(1).for_each(print_error),
        _ => print(said),
    }
    Ok(())
}

/// The result of an export.
struct Exported {
    readings: u64,
    /// The number of devices with exported readings.
    devices: u64,
    /// The devices that were deleted before all their readings were read.
    gone: BTreeSet<DeviceId>,
    /// Says which values the format cannot represent exactly.
    inexact: String,
}

/// Exports the rollups and stays to a file.
async fn export_rollups(args: ExportArgs, range: TimeRange, format: Format) -> anyhow::Result<()> {
    let ExportArgs { file: path, device, place, .. } = args;
    if format.kind != Kind::Ndjson {
        bail!(
            "{}: rollups are written as NDJSON; expected a name that ends in .ndjson",
            path.display()
        );
    }
    let now = SystemClock.now();
    let table = place.open().await?.with_devices().await?;
    let mut file = create(&path, format)?;
    let exported = rollups::export(&table.store, &device, range, now, &mut file).await;
    let count = table.end(exported).await?;
    file.finish()?;
    if format.output != Output::Stdout {
        print(format_args!("{count} written to {}", path.display()));
    }
    Ok(())
}

/// Creates the file. A signal that ends the export removes the file.
fn create(path: &Path, format: Format) -> anyhow::Result<ExportFile> {
    let file = ExportFile::create(path, format)?;
    if let Some(unfinished) = file.unfinished() {
        interrupted::remove_if_stopped(unfinished)?;
    }
    Ok(file)
}

/// Writes all requested entries to the file.
async fn export(args: &ExportArgs, format: Format, api: &SourceApi) -> anyhow::Result<Exported> {
    let devices: Vec<Described<Device>> = list(api, "/devices").await?;
    let rooms: Vec<Described<Room>> = list(api, "/rooms").await?;
    let device_ids: BTreeSet<&DeviceId> = devices.iter().map(|(it, _)| &it.id).collect();
    let room_ids: BTreeSet<&RoomId> = rooms.iter().map(|(it, _)| &it.id).collect();
    all_known(&args.device, &device_ids, "device")?;
    all_known(&args.room, &room_ids, "room")?;

    // A set: each device once and in order, even if the command line repeats one.
    let asked: BTreeSet<&DeviceId> = args.device.iter().collect();
    let of_devices = if asked.is_empty() { &device_ids } else { &asked };
    let of_rooms: BTreeSet<&RoomId> = args.room.iter().collect();
    let sources: Vec<(Option<&DeviceId>, String)> = if of_rooms.is_empty() {
        of_devices.iter().map(|id| (Some(*id), format!("/devices/{id}/readings"))).collect()
    } else {
        of_rooms.iter().map(|id| (None, format!("/rooms/{id}/readings"))).collect()
    };
    let mut file = create(&args.file, format)?;
    // The readings of a room come sorted by time, but Parquet needs them sorted by device.
    let is_sorted = format.kind == Kind::Parquet && !of_rooms.is_empty();
    let unsorted = is_sorted.then(|| tempfile::tempfile().map(BufWriter::new)).transpose();
    let mut unsorted = unsorted.context(TEMPORARY)?;

    let bar = progress::bar(sources.len() as u64, "  {bar:40} {pos} of {len}  {msg}  {left}")?;
    let (mut readings, mut seen, mut gone) = (0, BTreeSet::new(), BTreeSet::new());
    for (of, source) in sources {
        let path = format!("{source}?from={}&to={}&limit=10000", args.from, args.to);
        let each = |row: &RawValue| {
            #[derive(Deserialize)]
            struct Row {
                device_id: DeviceId,
            }
            let Row { device_id } = serde_json::from_str(row.get())?;
            seen.insert(device_id);
            readings += 1;
            bar.set_message(format!("{readings} readings"));
            match &mut unsorted {
                Some(rows) => writeln!(rows, "{row}").context(TEMPORARY),
                None => file.reading(row),
            }
        };
        // An export goes on if a device is deleted meanwhile.
        match (api.pages_while_there(&path, each).await?, of) {
            (None, _) => {}
            (Some(_), Some(device)) => drop(gone.insert(device.clone())),
            (Some(why), None) => bail!("{why}"),
        }
        bar.inc(1);
    }
    if let Some(rows) = unsorted {
        let rows = rows.into_inner().map_err(std::io::IntoInnerError::into_error);
        let rows = rows.context(TEMPORARY)?;
        write_by_device(rows, &mut file).context("the readings cannot be sorted")?;
    }
    let everything = args.device.is_empty() && args.room.is_empty();
    let is_meant = |it: &Device| {
        let in_room = it.room.as_ref().is_some_and(|room| args.room.contains(room));
        !gone.contains(&it.id) && (everything || in_room || args.device.contains(&it.id))
    };
    let meant: Vec<_> = devices.iter().filter(|(device, _)| is_meant(device)).collect();
    let theirs: BTreeSet<_> = meant.iter().filter_map(|(device, _)| device.room.as_ref()).collect();
    for (_, json) in &meant {
        file.describe("device", json)?;
    }
    for (room, json) in &rooms {
        if everything || args.room.contains(&room.id) || theirs.contains(&room.id) {
            file.describe("room", json)?;
        }
    }
    // A server of an earlier version has no annotations.
    api.pages_while_there("/annotations?limit=1000", |json| {
        let Annotation { device, room } = serde_json::from_str(json.get())?;
        let is_theirs = device.is_some_and(|it| meant.iter().any(|(of, _)| of.id == it))
            || room.is_some_and(|it| args.room.contains(&it));
        if everything || is_theirs { file.describe("annotation", json) } else { Ok(()) }
    })
    .await?;
    if everything {
        // Nor has it tariffs.
        api.pages_while_there("/tariffs?", |json| file.describe("tariff", json)).await?;
    }
    let inexact = file.finish()?.to_string();
    bar.finish_and_clear();
    Ok(Exported { readings, devices: seen.len() as u64, gone, inexact })
}

/// Sorts rows by device and time, and writes them to the file.
fn write_by_device(mut rows: File, file: &mut ExportFile) -> anyhow::Result<()> {
    rows.rewind()?;
    let lines = BufReader::new(rows).lines().zip(1..);
    let lines = lines.map(|(json, line)| Ok(Line::Reading(Record { line, json: json? })));
    for line in sorted(lines, RUN, &ProgressBar::hidden())? {
        if let Line::Reading(record) = line? {
            file.reading(&RawValue::from_string(record.json)?)?;
        }
    }
    Ok(())
}

/// Returns all entries of a list of the registry.
async fn list<T: for<'a> Deserialize<'a>>(
    api: &SourceApi,
    path: &str,
) -> anyhow::Result<Vec<Described<T>>> {
    let mut all = Vec::new();
    api.pages(&format!("{path}?limit=1000"), |row| {
        all.push((
            serde_json::from_str(row.get()).context("an entry of the registry")?,
            row.to_owned(),
        ));
        Ok(())
    })
    .await?;
    Ok(all)
}

fn all_known<T: Ord + Display>(
    asked: &[T],
    known: &BTreeSet<&T>,
    what: &str,
) -> anyhow::Result<()> {
    match asked.iter().find(|id| !known.contains(id)) {
        Some(id) => bail!("there is no {what} {:?}", id.to_string()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::import::fake_server::{self, Reply};
    use crate::tests::parsed;

    #[tokio::test(flavor = "multi_thread")]
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
        run(parsed(words).unwrap()).await.unwrap();
        let paths = paths.lock().unwrap();
        let from = |path: &String| Some(path.split_once("from=")?.1.split_once('&')?.0.to_owned());
        let from: Vec<String> = paths.iter().filter_map(from).collect();
        assert_eq!(from.len(), 4, "{paths:?}");
        assert!(from.iter().all(|text| *text == from[0]), "{from:?}");
        assert!(Timestamp::parse_absolute(&from[0]).is_ok(), "{from:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
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
                Reply::of(200, r#"{"data": [{"device_id": "a", "room_id": "r"}]}"#)
            });
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("a.ndjson");
            let words = ["export", file.to_str().unwrap(), "--url", &server.url];
            let error = format!("{:#}", run(parsed(words).unwrap()).await.unwrap_err());
            assert!(error.contains(path) && error.contains("would never end"), "{error}");
            assert!(!file.exists(), "half an export");
        }
    }

    #[tokio::test]
    async fn options_that_contradict_each_other_are_refused() {
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
                Ok(args) => run(args).await.unwrap_err(),
                Err(error) => error.into(),
            };
            assert!(format!("{refused:#}").contains(named), "{refused:#}");
        }
    }
}
