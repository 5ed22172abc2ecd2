//! `roomtide delete`: deletes devices, readings, a room or a home, with requests to the API. Accesses no table.

use std::collections::VecDeque;
use std::io::{self, BufRead, IsTerminal as _, Write as _};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::{Args as ClapArgs, Subcommand};
use domain::{DeviceId, HomeId, RoomId, Timestamp};
use indicatif::ProgressBar;
use serde::Deserialize;

use crate::client::{self, Ask, Client};
use crate::moment::from_now;
use crate::output::{counted, print};
use crate::progress;

/// The maximum number of successive answers that delete nothing although more is left. Roomtide deletes something with
/// each answer.
const MAX_IN_VAIN: u32 = 100;
/// The maximum wait that an answer may ask for, in seconds: ten times as long as Roomtide's.
const MAX_WAIT: u64 = 3_600;

/// The command line of `roomtide delete`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    /// Do not ask whether to delete
    #[arg(long, global = true)]
    yes: bool,
    /// The address of the server, which it prints at its start; another --port there needs --url here
    #[arg(long, global = true, default_value = "http://127.0.0.1:8080")]
    url: String,
    /// An admin token; @FILE reads it from a file, because every user of the machine sees a command line
    #[arg(long, global = true)]
    token: Option<String>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Delete a device with all its readings, rollups and stays, for ever
    ///
    /// A device is in no list at once, and its readings are refused until the deletion is over. An interrupted
    /// deletion goes on when the command is run again; until then the device stays hidden.
    Device {
        /// The device
        #[arg(allow_hyphen_values = true)]
        id: DeviceId,
        /// Leave a device that has readings
        #[arg(long)]
        if_empty: bool,
    },
    /// Delete a device's readings in a range of time, for ever; the device stays
    Readings {
        /// The device
        #[arg(allow_hyphen_values = true)]
        id: DeviceId,
        /// The time from which readings are deleted, such as 2026-01-11T16:00:00Z or -1d
        #[arg(long, value_name = "TIMESTAMP", allow_hyphen_values = true, value_parser = from_now)]
        from: Timestamp,
        /// The time before which they are deleted, such as now: that at which the command begins
        #[arg(long, value_name = "TIMESTAMP", allow_hyphen_values = true, value_parser = from_now)]
        to: Timestamp,
    },
    /// Delete a room in which no device is
    Room {
        /// The room
        #[arg(allow_hyphen_values = true)]
        id: RoomId,
        /// Leave a room in which a device is
        #[arg(long)]
        if_empty: bool,
    },
    /// Take all rooms out of a home, which ends it; the rooms stay
    Home {
        /// The home
        #[arg(allow_hyphen_values = true)]
        id: HomeId,
    },
}

impl What {
    /// The id that a person types to confirm the deletion.
    fn id(&self) -> String {
        match self {
            Self::Device { id, .. } | Self::Readings { id, .. } => id.to_string(),
            Self::Room { id, .. } => id.to_string(),
            Self::Home { id } => id.to_string(),
        }
    }

    /// The API paths that must exist before the deletion.
    fn paths(&self) -> Vec<String> {
        match self {
            Self::Device { if_empty: true, .. } | Self::Room { if_empty: true, .. } => Vec::new(),
            Self::Device { id, .. } | Self::Readings { id, .. } => vec![format!("/devices/{id}")],
            Self::Room { id, .. } => vec![format!("/rooms/{id}")],
            Self::Home { id } => vec![format!("/homes/{id}/rooms?limit=1")],
        }
    }

    fn question(&self) -> String {
        match self {
            Self::Device { id, .. } => {
                format!("Delete the device {id} with all its readings for ever?")
            }
            Self::Readings { id, from, to } => {
                format!("Delete the readings of {id} from {from} to {to} for ever?")
            }
            Self::Room { id, .. } => format!("Delete the room {id}?"),
            Self::Home { id } => format!("Take all rooms out of the home {id}?"),
        }
    }
}

/// The progress of a deletion, as the server answers it.
#[derive(Debug, Deserialize)]
struct Progress {
    deleted: u64,
    has_more: bool,
    left: Option<u64>,
    left_at_least: Option<u64>,
    wait_seconds: Option<u64>,
    /// Identifies the deletion, so that a later one of the same device is not confused with it.
    begun: Option<String>,
}

/// Runs the subcommand.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    // Waiting for the server and the terminal blocks the thread.
    tokio::task::spawn_blocking(move || delete(&args)).await?
}

fn delete(args: &Args) -> anyhow::Result<()> {
    let token = args.token.as_deref().map(client::token).transpose()?;
    let client = Client::new(&args.url, token.as_deref())?;
    if !args.yes {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            bail!("nothing is deleted: the question needs a terminal; --yes deletes without one");
        }
        confirm(&args.what, &client, &mut io::stdin().lock())?;
    }
    match &args.what {
        What::Device { id, if_empty: true } => unused(&[id], &[], &client)?,
        What::Device { id, if_empty: false } => {
            let mut begun = VecDeque::new();
            let begins = begin(&[id], |_| Ok(true), &client, &mut begun);
            let ends = begins.and_then(|()| end(&mut begun, &client, thread::sleep));
            begun.iter().for_each(tell_begun);
            ends?;
        }
        What::Readings { id, from, to } => readings(id, &(*from..*to), &client)?,
        What::Room { id, if_empty: true } => room_if_empty(id, &client)?,
        What::Room { id, if_empty: false } => {
            let deleted = to_the_end(&format!("/rooms/{id}"), &client, thread::sleep)?;
            print(format_args!("{id} is deleted: {}", counted(deleted, "item")));
        }
        What::Home { id } => {
            let deleted = to_the_end(&format!("/homes/{id}"), &client, thread::sleep)?;
            let rooms = counted(deleted, "room");
            print(format_args!("the home {id} is no more: {rooms} taken out of it"));
        }
    }
    Ok(())
}

/// Deletes the readings of a device in a span, and says how many.
pub(crate) fn readings(
    id: &DeviceId,
    span: &Range<Timestamp>,
    client: &Client,
) -> anyhow::Result<()> {
    let path = format!("/devices/{id}/readings?from={}&to={}", span.start, span.end);
    let deleted = to_the_end(&path, client, thread::sleep)?;
    print(format_args!("{} of {id} deleted", counted(deleted, "reading")));
    Ok(())
}

/// Deletes devices that have no readings, and rooms in which then no device is.
pub(crate) fn unused(
    devices: &[&DeviceId],
    rooms: &[&RoomId],
    client: &Client,
) -> anyhow::Result<()> {
    unused_with(devices, rooms, client, thread::sleep)
}

fn unused_with(
    devices: &[&DeviceId],
    rooms: &[&RoomId],
    client: &Client,
    sleep: impl Fn(Duration) + Copy,
) -> anyhow::Result<()> {
    let mut begun = VecDeque::new();
    let begins = begin(devices, |id| is_unused(id, client), client, &mut begun);
    // The devices are in no room any more, and their final waits may take minutes.
    let left = begins.and_then(|()| rooms.iter().try_for_each(|id| room_if_empty(id, client)));
    let ends = left.and_then(|()| end(&mut begun, client, sleep));
    begun.iter().for_each(tell_begun);
    ends
}

/// Deletes the devices that may be deleted until only their final waits are left, and collects these deletions in
/// `begun`.
fn begin<'a>(
    ids: &[&'a DeviceId],
    may_be_deleted: impl Fn(&DeviceId) -> anyhow::Result<bool>,
    client: &Client,
    begun: &mut VecDeque<Begun<'a>>,
) -> anyhow::Result<()> {
    for id in ids {
        if !may_be_deleted(id)? {
            continue;
        }
        let path = format!("/devices/{id}");
        let bar = bar()?;
        let waits = to_the_wait(&path, client, &bar)?;
        bar.finish_and_clear();
        match waits {
            Waits { again: Some((path, _)), deleted } => {
                begun.push_back(Begun { id, path, deleted });
            }
            Waits { again: None, deleted } => deleted_is(id, deleted),
        }
    }
    Ok(())
}

/// Ends deletions, and removes each ended one from `begun`.
fn end(
    begun: &mut VecDeque<Begun<'_>>,
    client: &Client,
    sleep: impl Fn(Duration) + Copy,
) -> anyhow::Result<()> {
    while let Some(Begun { id, path, deleted }) = begun.front() {
        deleted_is(id, on_to_the_end(path, *deleted, client, sleep)?);
        begun.pop_front();
    }
    Ok(())
}

/// A deletion of a device with nothing left to delete. A wait and one more request end it.
struct Begun<'a> {
    id: &'a DeviceId,
    /// The path of the request that ends the deletion.
    path: String,
    deleted: u64,
}

fn tell_begun(begun: &Begun<'_>) {
    let Begun { id, deleted, .. } = begun;
    let items = counted(*deleted, "item");
    print(format_args!(
        "{id} is in no list any more: {items}; run the command again to end its deletion"
    ));
}

/// Fails if the path does not exist. Of several devices, none is deleted before all have been checked.
fn ensure_there(path: &str, client: &Client) -> anyhow::Result<()> {
    let answer = client.send(Ask::get(path), &AtomicBool::new(false))?;
    match answer.status {
        // 410: the device is being deleted, and the deletion is to go on.
        200 | 410 => Ok(()),
        _ => Err(client.error(path, &answer).context("nothing is deleted")),
    }
}

fn deleted_is(id: &DeviceId, deleted: u64) {
    print(format_args!("{id} is deleted: {}", counted(deleted, "item")));
}

/// Deletes a room if no device is in it. Only the server knows whether a device is in the room at this moment.
fn room_if_empty(id: &RoomId, client: &Client) -> anyhow::Result<()> {
    let path = format!("/rooms/{id}");
    let request = Ask { method: "DELETE", path: &path, body: None, headers: &[] };
    let answer = client.send(request, &AtomicBool::new(false))?;
    match answer.status {
        200 => print(format_args!("{id} is deleted")),
        404 => print(format_args!("{id} is not there")),
        409 => print(format_args!("{id} stays: a device is in it")),
        _ => return Err(client.error(&path, &answer)),
    }
    Ok(())
}

/// Whether a device is there and has no readings. Says so otherwise.
fn is_unused(id: &DeviceId, client: &Client) -> anyhow::Result<bool> {
    let is_empty = is_empty(id, client)?;
    match is_empty {
        Some(true) => {}
        Some(false) => print(format_args!("{id} stays: it has readings")),
        None => print(format_args!("{id} is not there")),
    }
    Ok(is_empty == Some(true))
}

/// Whether a device has no readings, which is also true during its deletion; `None` if the device does not exist.
fn is_empty(id: &DeviceId, client: &Client) -> anyhow::Result<Option<bool>> {
    let path =
        format!("/devices/{id}/readings?from={}&to={}&limit=1", Timestamp::MIN, Timestamp::MAX);
    let answer = client.send(Ask::get(&path), &AtomicBool::new(false))?;
    match answer.status {
        404 => Ok(None),
        410 => Ok(Some(true)),
        _ => {
            let page = client.read(&path, &answer, "data")?;
            let has_none = page["data"].as_array().is_some_and(Vec::is_empty);
            // A page may be empty although more pages follow.
            Ok(Some(has_none && page["next_cursor"].is_null()))
        }
    }
}

/// A deletion that has nothing left to delete.
struct Waits {
    /// The path of the request that ends the deletion, and the seconds to wait before; `None` if the deletion has
    /// ended.
    again: Option<(String, u64)>,
    deleted: u64,
}

/// Makes the progress bar of a deletion. The first answer may take some seconds.
fn bar() -> anyhow::Result<ProgressBar> {
    let bar = progress::bar(0, "  {bar:40} {pos} of {len} deleted  {msg}")?;
    bar.set_message("finding what is to be deleted");
    Ok(bar)
}

/// Repeats the request until nothing is left to delete. Does not wait for the deletion's end.
fn to_the_wait(path: &str, client: &Client, bar: &ProgressBar) -> anyhow::Result<Waits> {
    let (mut path, mut deleted) = (path.to_owned(), 0_u64);
    let mut in_vain = 0;
    loop {
        let Some(progress) = ask(&path, client).inspect_err(|_| bar.abandon())? else {
            return Ok(Waits { again: None, deleted });
        };
        // Names this deletion from now on. If somebody else ends it and the device is created again, the new device
        // stays.
        if let Some(begun) = progress.begun.filter(|_| !path.contains('?')) {
            path = format!("{path}?begun={begun}");
        }
        deleted = deleted.saturating_add(progress.deleted);
        if !progress.has_more {
            return Ok(Waits { again: None, deleted });
        }
        let left = progress.left.or(progress.left_at_least).unwrap_or_default();
        let position = bar.position().saturating_add(progress.deleted);
        // The length is set first, because a log prints each change of the bar.
        bar.set_length(position.saturating_add(left));
        bar.set_position(position);
        bar.set_message(if progress.left_at_least.is_some() { "and more" } else { "" });
        in_vain = if progress.deleted == 0 { in_vain + 1 } else { 0 };
        ensure!(
            in_vain <= MAX_IN_VAIN,
            "{path} is answered with nothing deleted and more left, again and again"
        );
        if let Some(seconds) = progress.wait_seconds {
            ensure!(
                seconds <= MAX_WAIT,
                "{path} is answered with a wait of {seconds} s; Roomtide asks for minutes"
            );
            return Ok(Waits { again: Some((path, seconds)), deleted });
        }
    }
}

/// Asks the person to type the id, which prevents a confirmation by habit. Fails before that if nothing exists or the
/// token is wrong.
fn confirm(what: &What, client: &Client, input: &mut impl BufRead) -> anyhow::Result<()> {
    what.paths().iter().try_for_each(|path| ensure_there(path, client))?;
    print(format_args!("{} Type {} to go on:", what.question(), what.id()));
    io::stdout().flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    if answer.trim() != what.id() {
        bail!("nothing is deleted");
    }
    Ok(())
}

/// Repeats the request until the deletion has ended. Returns the number of deleted items.
fn to_the_end(path: &str, client: &Client, sleep: impl Fn(Duration)) -> anyhow::Result<u64> {
    on_to_the_end(path, 0, client, sleep)
}

/// Continues a deletion that has already deleted `deleted` items. Returns the final number.
fn on_to_the_end(
    path: &str,
    deleted: u64,
    client: &Client,
    sleep: impl Fn(Duration),
) -> anyhow::Result<u64> {
    let bar = bar()?;
    bar.set_length(deleted);
    bar.set_position(deleted);
    let (mut path, mut all) = (path.to_owned(), deleted);
    let mut in_vain = 0;
    loop {
        let Waits { again, deleted } = to_the_wait(&path, client, &bar)?;
        all = all.saturating_add(deleted);
        let Some((next, seconds)) = again else {
            bar.finish_and_clear();
            return Ok(all);
        };

        in_vain = if deleted == 0 { in_vain + 1 } else { 0 };
        ensure!(
            in_vain <= MAX_IN_VAIN,
            "{path} is answered with nothing deleted and a wait, again and again"
        );
        for second in (0..seconds).rev() {
            bar.set_message(format!(
                "waits until nothing under way can bring it back: over in {} min {:02} s",
                (second + 1) / 60,
                (second + 1) % 60
            ));
            sleep(Duration::from_secs(1));
        }
        path = next;
    }
}

/// Sends a deletion request and returns the progress. Returns `None` if somebody else has ended the deletion that
/// `path` names, even if the device was created again.
fn ask(path: &str, client: &Client) -> anyhow::Result<Option<Progress>> {
    let request = Ask { method: "DELETE", path, body: None, headers: &[] };
    let answer = client.send(request, &AtomicBool::new(false))?;
    match answer.status {
        404 | 409 if path.contains("?begun=") => Ok(None),
        200 | 202 => serde_json::from_str(&answer.text)
            .map(Some)
            .with_context(|| format!("{path} is answered, but not as Roomtide does")),
        _ => Err(client.error(path, &answer)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use domain::given::{at, device, room};

    use super::*;
    use crate::fake_server::{self, Reply};

    #[test]
    fn a_room_that_has_a_device_or_is_gone_stays_so_where_only_an_empty_one_is_meant() {
        for (status, is_right) in [(200, true), (404, true), (409, true), (403, false)] {
            let server = fake_server::serve(move |_, request| {
                assert_eq!((&*request.method, &*request.path), ("DELETE", "/rooms/hall"));
                Reply::of(status, r#"{"deleted": 1, "has_more": false}"#)
            });
            let client = server.client();
            let deleted = room_if_empty(&room("hall"), &client);
            assert_eq!(deleted.is_ok(), is_right, "{status}: {deleted:?}");
        }
    }

    #[test]
    fn a_server_that_deletes_nothing_for_ever_is_left() {
        for (answer, why) in [
            (r#"{"deleted": 0, "has_more": true}"#, "nothing deleted and more left"),
            (
                r#"{"deleted": 0, "has_more": true, "wait_seconds": 0}"#,
                "nothing deleted and a wait",
            ),
            (
                r#"{"deleted": 18446744073709551615, "left": 18446744073709551615, "has_more": true, "wait_seconds": 9999}"#,
                "a wait of 9999 s",
            ),
        ] {
            let client = fake_server::always(200, answer).client();
            let error = to_the_end("/devices/d", &client, drop).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_number_that_no_table_has_is_no_overflow() {
        let most = r#"{"deleted": 18446744073709551615, "has_more": true, "wait_seconds": 0}"#;
        let server = fake_server::serve(move |n, _| match n {
            0 | 1 => Reply::of(202, most),
            _ => Reply::of(200, r#"{"deleted": 1, "has_more": false}"#),
        });
        let client = server.client();
        assert_eq!(to_the_end("/devices/d", &client, drop).unwrap(), u64::MAX);
    }

    #[test]
    fn a_deletion_is_repeated_and_waited_for_until_it_is_over() {
        let server = fake_server::serve(|n, request| {
            let begun = if n == 0 { "" } else { "?begun=2026-01-11T16:00:00.000Z" };
            assert_eq!(
                (request.method, request.path),
                ("DELETE".to_owned(), format!("/devices/d{begun}"))
            );
            let (status, text) = match n {
                0 => (
                    202,
                    r#"{"begun": "2026-01-11T16:00:00.000Z", "deleted": 10000, "has_more": true, "left_at_least": 10000}"#,
                ),
                1 => (429, r#"{"detail": "slower"}"#),
                2 => (202, r#"{"deleted": 7, "has_more": true, "left": 0, "wait_seconds": 3}"#),
                _ => (200, r#"{"deleted": 0, "has_more": false, "left": 0}"#),
            };
            Reply::of(status, text)
        });
        let client = Client::impatient(&server.url, Duration::from_millis(1));
        let slept = Mutex::new(0);
        let sleep = |time: Duration| *slept.lock().unwrap() += time.as_secs();
        assert_eq!(to_the_end("/devices/d", &client, sleep).unwrap(), 10_007);
        assert_eq!(*slept.lock().unwrap(), 3);
    }

    #[test]
    fn a_relative_time_is_the_same_in_every_request_of_a_deletion() {
        let paths = Arc::new(Mutex::new(Vec::new()));
        let asked = Arc::clone(&paths);
        let server = fake_server::serve(move |n, request| {
            if n == 0 {
                return Reply::of(200, r#"{"status":"ready","up":"0s"}"#);
            }
            asked.lock().unwrap().push(request.path);
            let has_more = n < 3;
            Reply::of(200, &format!(r#"{{"deleted": 1, "has_more": {has_more}, "left": 1}}"#))
        });
        let words = ["delete", "--yes", "--url", &server.url, "readings", "d"];
        let range = ["--from", "-1d", "--to", "now"];
        let args = crate::tests::parsed(words.into_iter().chain(range)).unwrap();
        delete(&args).unwrap();
        let paths = paths.lock().unwrap();
        assert!(paths.len() == 3 && paths.iter().all(|path| *path == paths[0]), "{paths:?}");
        let (_, range) = paths[0].split_once("?from=").unwrap();
        let (from, to) = range.split_once("&to=").unwrap();
        let [from, to] = [from, to].map(at);
        assert_eq!(to.since(from).num_hours(), 24);
        assert!(args.what.question().contains(&format!("from {from} to {to} ")));
    }

    #[test]
    fn a_deletion_tells_how_far_it_is() {
        let server = fake_server::serve(|n, _| {
            let text = match n {
                0 => r#"{"deleted": 10000, "has_more": true, "left_at_least": 10000}"#,
                _ => r#"{"deleted": 7, "has_more": true, "left": 3, "wait_seconds": 3}"#,
            };
            Reply::of(202, text)
        });
        let (client, bar) = (server.client(), ProgressBar::hidden());
        let path = "/devices/d/readings?from=a&to=b";
        let Waits { again, deleted } = to_the_wait(path, &client, &bar).unwrap();
        assert_eq!((again, deleted), (Some((path.to_owned(), 3)), 10_007));
        assert_eq!((bar.position(), bar.length()), (10_007, Some(10_010)));
    }

    #[test]
    fn a_deletion_that_is_forgotten_is_over() {
        for gone in [404, 409] {
            let begun = r#"{"begun": "2026-01-11T16:00:00.000Z", "deleted": 5, "has_more": true, "left": 3}"#;
            let forgotten = r#"{"detail": "No deletion of the device d is known."}"#;
            let client = fake_server::in_turn(&[(202, begun), (gone, forgotten)]).client();
            assert_eq!(to_the_end("/devices/d", &client, |_| {}).unwrap(), 5);
        }
    }

    #[test]
    fn a_refusal_is_told() {
        let detail = r#"{"detail": "The device d is in the room r."}"#;
        let client = fake_server::always(409, detail).client();
        let error = to_the_end("/rooms/r", &client, |_| {}).unwrap_err().to_string();
        assert!(error.contains("answers 409: The device d is in the room r."), "{error}");
    }

    #[test]
    fn a_deletion_that_has_begun_is_kept_where_the_next_one_fails() {
        let server = fake_server::serve(|_, request| match &*request.path {
            "/devices/a" => Reply::of(
                202,
                r#"{"deleted": 2, "has_more": true, "left": 0, "wait_seconds": 360}"#,
            ),
            _ => Reply::of(404, "{}"),
        });
        let client = server.client();
        let ids: [DeviceId; 2] = ["a", "wrong"].map(|id| id.parse().unwrap());
        let mut begun = VecDeque::new();
        assert!(begin(&[&ids[0], &ids[1]], |_| Ok(true), &client, &mut begun).is_err());
        let told: Vec<_> = begun.iter().map(|begun| (begun.id.as_str(), begun.deleted)).collect();
        assert_eq!(told, [("a", 2)]);
    }

    #[test]
    fn a_device_with_further_pages_is_not_empty() {
        let client = fake_server::always(200, r#"{"data": [], "next_cursor": "c"}"#).client();
        assert_eq!(is_empty(&device("d"), &client).unwrap(), Some(false));
    }

    #[test]
    fn several_devices_wait_once_and_those_with_readings_stay() {
        let server = fake_server::serve(|_, request| match &*request.path {
            path if path.starts_with("/devices/full/readings?from=1970-") => {
                Reply::of(200, r#"{"data": [{"t": 1}]}"#)
            }
            path if path.contains("/readings?") => Reply::of(200, r#"{"data": []}"#),
            path if path.starts_with("/devices/gone") => {
                Reply::of(200, r#"{"deleted": 1, "has_more": false}"#)
            }
            path if path.contains("?begun=2026") => {
                Reply::of(200, r#"{"deleted": 0, "has_more": false, "left": 0}"#)
            }
            path => {
                assert!(path == "/devices/a" || path == "/devices/b", "{path}");
                Reply::of(
                    202,
                    r#"{"begun": "2026-01-11T16:00:00.000Z", "deleted": 2, "has_more": true, "left": 0, "wait_seconds": 360}"#,
                )
            }
        });
        let client = server.client();
        let ids: Vec<DeviceId> = ["a", "full", "gone", "b"].iter().map(|id| device(id)).collect();
        let ids: Vec<&DeviceId> = ids.iter().collect();
        unused_with(&ids, &[], &client, |_| panic!("the server does not ask to wait")).unwrap();
    }

    #[test]
    fn only_who_types_the_id_deletes() {
        let server = fake_server::serve(|_, request| {
            assert_eq!((&*request.method, &*request.path), ("GET", "/rooms/d"));
            Reply::of(200, "{}")
        });
        let client = server.client();
        let what = What::Room { id: room("d"), if_empty: false };
        assert!(confirm(&what, &client, &mut &b"d\n"[..]).is_ok());
        for answer in ["", "\n", "y\n", "D\n"] {
            assert!(confirm(&what, &client, &mut answer.as_bytes()).is_err(), "{answer:?}");
        }
    }

    #[test]
    fn nobody_is_asked_where_nothing_can_be_deleted() {
        for status in [401, 404] {
            let client = fake_server::always(status, "{}").client();
            let what = What::Room { id: room("d"), if_empty: false };
            let mut input = &b"d\n"[..];
            let error = confirm(&what, &client, &mut input).unwrap_err();
            assert!(format!("{error:#}").contains(&format!("answers {status}")), "{error:#}");
            assert_eq!(input, b"d\n", "nobody was asked");
        }
    }
}
