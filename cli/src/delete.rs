//! `roomtide delete`: deletes devices, readings, a room or a home, with requests to the API. Accesses no table.

use std::io::{self, BufRead, IsTerminal as _, Write as _};
use std::ops::Range;
use std::thread;
use std::time::Duration;

use anyhow::{bail, ensure};
use clap::{Args as ClapArgs, Subcommand};
use domain::{DeviceId, HomeId, RoomId, Timestamp};
use indicatif::ProgressBar;
use serde::Deserialize;

use crate::at::{SystemAt, Unnamed};
use crate::client::{Ask, Client};
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
    #[command(flatten)]
    at: SystemAt,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Delete a device with all its readings, rollups and stays, for ever
    ///
    /// The device leaves all lists at once, and its readings are refused until the deletion is over. An interrupted
    /// deletion goes on when the command is run again; until then the device stays hidden.
    Device {
        /// The device
        #[arg(allow_hyphen_values = true)]
        id: DeviceId,
        /// Keep a device with readings
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
        /// The time before which readings are deleted; now is the time at which the command begins
        #[arg(long, value_name = "TIMESTAMP", allow_hyphen_values = true, value_parser = from_now)]
        to: Timestamp,
    },
    /// Delete a room without devices
    Room {
        /// The room
        #[arg(allow_hyphen_values = true)]
        id: RoomId,
        /// Keep a room with devices
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

    /// The API path that must exist before the deletion.
    fn path(&self) -> Option<String> {
        match self {
            Self::Device { if_empty: true, .. } | Self::Room { if_empty: true, .. } => None,
            Self::Device { id, .. } | Self::Readings { id, .. } => Some(format!("/devices/{id}")),
            Self::Room { id, .. } => Some(format!("/rooms/{id}")),
            Self::Home { id } => Some(format!("/homes/{id}/rooms?limit=1")),
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
#[derive(Debug, Default, Deserialize)]
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
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.at.work(Unnamed::Server, |client| {
        if !args.yes {
            let find = || args.what.path().map_or(Ok(()), |path| ensure_there(&path, client));
            confirm(&args.what.question(), &args.what.id(), find)?;
        }
        delete(&args.what, client)
    })
}

fn delete(what: &What, client: &Client) -> anyhow::Result<()> {
    match what {
        What::Device { id, if_empty: true } => unused(&[id], &[], client),
        What::Device { id, if_empty: false } => {
            let refused = devices(&[id], &[], client, thread::sleep)?;
            refused.into_iter().try_for_each(|(_, why)| bail!(why))
        }
        What::Readings { id, from, to } => readings(id, &(*from..*to), client),
        What::Room { id, if_empty: true } => room_if_empty(id, client),
        What::Room { id, if_empty: false } => {
            let deleted = ApiDeletion::of(client, format!("/rooms/{id}")).run(thread::sleep)?;
            print(format_args!("{id} is deleted: {}", counted(deleted, "item")));
            Ok(())
        }
        What::Home { id } => {
            let deleted = ApiDeletion::of(client, format!("/homes/{id}")).run(thread::sleep)?;
            let rooms = counted(deleted, "room");
            print(format_args!("the home {id} is no more: {rooms} taken out of it"));
            Ok(())
        }
    }
}

/// Asks the person to type a word, which prevents a confirmation by habit. Fails before that if `find` does.
pub(crate) fn confirm(
    question: &str,
    word: &str,
    find: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    ensure!(
        io::stdin().is_terminal() && io::stdout().is_terminal(),
        "nothing is deleted: the question needs a terminal; --yes deletes without one"
    );
    find()?;
    print(format_args!("{question} Type {word} to go on:"));
    io::stdout().flush()?;
    ensure_typed(word, &mut io::stdin().lock())
}

fn ensure_typed(word: &str, input: &mut impl BufRead) -> anyhow::Result<()> {
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    ensure!(answer.trim() == word, "nothing is deleted");
    Ok(())
}

/// Deletes the readings of a device in a span, and says how many.
pub(crate) fn readings(
    id: &DeviceId,
    span: &Range<Timestamp>,
    client: &Client,
) -> anyhow::Result<()> {
    let path = format!("/devices/{id}/readings?from={}&to={}", span.start, span.end);
    let deleted = ApiDeletion::of(client, path).run(thread::sleep)?;
    print(format_args!("{} of {id} deleted", counted(deleted, "reading")));
    Ok(())
}

/// Deletes devices that have no readings, and rooms in which then no device is.
pub(crate) fn unused(
    of_devices: &[&DeviceId],
    rooms: &[&RoomId],
    client: &Client,
) -> anyhow::Result<()> {
    let mut unused = Vec::new();
    for id in of_devices {
        if is_unused(id, client)? {
            unused.push(*id);
        }
    }
    for (id, why) in devices(&unused, rooms, client, thread::sleep)? {
        print(format_args!("{id} stays: {why}"));
    }
    Ok(())
}

/// Deletes devices, and rooms in which then no device is. The final waits of all devices are one. Returns the devices
/// whose deletion is refused, because others are behind them, with the refusals.
fn devices<'a>(
    ids: &[&'a DeviceId],
    rooms: &[&RoomId],
    client: &Client,
    sleep: impl Fn(Duration) + Copy,
) -> anyhow::Result<Vec<(&'a DeviceId, String)>> {
    let mut deletions: Vec<_> =
        ids.iter().map(|id| (*id, ApiDeletion::of(client, format!("/devices/{id}")))).collect();
    let mut delete = || {
        delete_meters_last(deletions.iter_mut().map(|(_, deletion)| deletion).collect())?;
        // The devices are in no room any more, and their final waits may take minutes.
        rooms.iter().try_for_each(|id| room_if_empty(id, client))?;
        deletions.iter_mut().try_for_each(|(_, deletion)| deletion.resume(sleep))
    };
    let deleted = delete();

    let mut refused = Vec::new();
    for (id, ApiDeletion { state, deleted, .. }) in deletions {
        let items = counted(deleted, "item");
        match state {
            DeletionState::Over => print(format_args!("{id} is deleted: {items}")),
            DeletionState::Waits(_) => print(format_args!(
                "{id} is in no list any more: {items}; run the command again to end its deletion"
            )),
            DeletionState::Refused(why) => refused.push((id, why)),
            DeletionState::Deletes => {}
        }
    }

    deleted.map(|()| refused)
}

/// Deletes the items of devices. A meter is refused until the devices behind it are deleted, so the refused ones are
/// asked for again as long as others are deleted.
fn delete_meters_last(mut deletions: Vec<&mut ApiDeletion<'_>>) -> anyhow::Result<()> {
    loop {
        let before = deletions.len();
        for deletion in &mut deletions {
            deletion.delete_all(&deletion.bar()?)?;
        }

        deletions.retain(|deletion| matches!(deletion.state, DeletionState::Refused(_)));
        if deletions.is_empty() || deletions.len() == before {
            return Ok(());
        }
    }
}

/// Fails if the path does not exist.
fn ensure_there(path: &str, client: &Client) -> anyhow::Result<()> {
    let answer = client.get(path)?;
    match answer.status {
        // 410: the device is being deleted, and the deletion is to go on.
        200 | 410 => Ok(()),
        _ => Err(client.error(path, &answer).context("nothing is deleted")),
    }
}

/// Deletes a room if no device is in it. Only the server knows whether a device is in the room at this moment.
fn room_if_empty(id: &RoomId, client: &Client) -> anyhow::Result<()> {
    let path = format!("/rooms/{id}");
    let answer = client.send(Ask::without_body("DELETE", &path))?;
    match answer.status {
        200 => print(format_args!("{id} is deleted")),
        404 => print(format_args!("{id} is not there")),
        409 => print(format_args!("{id} stays: a device is in it")),
        _ => return Err(client.error(&path, &answer)),
    }
    Ok(())
}

/// Whether a device is there and has no readings, as one that is being deleted. Says so otherwise.
fn is_unused(id: &DeviceId, client: &Client) -> anyhow::Result<bool> {
    let path =
        format!("/devices/{id}/readings?from={}&to={}&limit=1", Timestamp::MIN, Timestamp::MAX);
    let answer = client.get(&path)?;
    match answer.status {
        404 => print(format_args!("{id} is not there")),
        410 => return Ok(true),
        _ => {
            let page = client.read(&path, &answer, "data")?;
            let has_none = page["data"].as_array().is_some_and(Vec::is_empty);
            // A page may be empty although more pages follow.
            if has_none && page["next_cursor"].is_null() {
                return Ok(true);
            }
            print(format_args!("{id} stays: it has readings"));
        }
    }

    Ok(false)
}

/// A deletion by the API, which takes several requests.
struct ApiDeletion<'a> {
    client: &'a Client,
    /// The path of the next request.
    path: String,
    deleted: u64,
    state: DeletionState,
}

#[derive(Debug, PartialEq, Eq)]
enum DeletionState {
    Deletes,
    /// Nothing is left to delete. After this number of seconds, one more request ends the deletion.
    Waits(u64),
    /// Something else has to be deleted before. Nothing is deleted.
    Refused(String),
    Over,
}

impl<'a> ApiDeletion<'a> {
    const fn of(client: &'a Client, path: String) -> Self {
        Self { client, path, deleted: 0, state: DeletionState::Deletes }
    }

    /// Deletes everything, and waits for the end. Returns the number of deleted items.
    fn run(mut self, sleep: impl Fn(Duration)) -> anyhow::Result<u64> {
        self.delete_all(&self.bar()?)?;
        if let DeletionState::Refused(why) = self.state {
            bail!(why);
        }
        self.end(sleep)?;
        Ok(self.deleted)
    }

    /// Makes the progress bar. The first answer may take some seconds.
    fn bar(&self) -> anyhow::Result<ProgressBar> {
        let bar = progress::bar(self.deleted, "  {bar:40} {pos} of {len} deleted  {msg}")?;
        bar.set_position(self.deleted);
        bar.set_message("finding what is to be deleted");
        Ok(bar)
    }

    /// Repeats the request until nothing is left to delete. Does not wait for the end.
    fn delete_all(&mut self, bar: &ProgressBar) -> anyhow::Result<()> {
        let mut in_vain = 0;
        self.state = DeletionState::Deletes;
        while self.state == DeletionState::Deletes {
            let before = self.deleted;
            self.ask(bar).inspect_err(|_| bar.abandon())?;
            in_vain = if self.deleted == before { in_vain + 1 } else { 0 };
            ensure!(
                in_vain <= MAX_IN_VAIN,
                "{} is answered with nothing deleted and more left, again and again",
                self.path
            );
        }

        bar.finish_and_clear();
        Ok(())
    }

    /// Ends a deletion that may have waited meanwhile: the next answer says how long the wait still is.
    fn resume(&mut self, sleep: impl Fn(Duration)) -> anyhow::Result<()> {
        if !matches!(self.state, DeletionState::Waits(_)) {
            return Ok(());
        }
        self.delete_all(&self.bar()?)?;
        self.end(sleep)
    }

    /// Waits, and sends the request again, until the deletion is over.
    fn end(&mut self, sleep: impl Fn(Duration)) -> anyhow::Result<()> {
        let mut in_vain = 0;
        while let DeletionState::Waits(seconds) = self.state {
            let bar = self.bar()?;
            for second in (0..seconds).rev() {
                bar.set_message(format!(
                    "waits until nothing under way can bring it back: over in {} min {:02} s",
                    (second + 1) / 60,
                    (second + 1) % 60
                ));
                sleep(Duration::from_secs(1));
            }

            let before = self.deleted;
            self.delete_all(&bar)?;
            in_vain = if self.deleted == before { in_vain + 1 } else { 0 };
            ensure!(
                in_vain <= MAX_IN_VAIN,
                "{} is answered with nothing deleted and a wait, again and again",
                self.path
            );
        }
        Ok(())
    }

    /// Sends a request, and shows how far the deletion is.
    fn ask(&mut self, bar: &ProgressBar) -> anyhow::Result<()> {
        let Self { client, path, .. } = &*self;
        let answer = client.send(Ask::without_body("DELETE", path))?;
        let Progress { deleted, has_more, left, left_at_least, wait_seconds, begun } =
            match answer.status {
                // Somebody else has ended the deletion that `path` names, even if the device was created again.
                404 | 409 if path.contains("?begun=") => Progress::default(),
                200 | 202 => client.parsed(path, &answer)?,
                409 => {
                    self.state = DeletionState::Refused(client.error(path, &answer).to_string());
                    return Ok(());
                }
                _ => return Err(client.error(path, &answer)),
            };

        self.deleted = self.deleted.saturating_add(deleted);
        let position = bar.position().saturating_add(deleted);
        // The length is set first, because a log prints each change of the bar.
        bar.set_length(position.saturating_add(left.or(left_at_least).unwrap_or_default()));
        bar.set_position(position);
        bar.set_message(if left_at_least.is_some() { "and more" } else { "" });

        // Names this deletion from now on. If somebody else ends it and the device is created again, the new device
        // stays.
        if let Some(begun) = begun.filter(|_| !self.path.contains('?')) {
            self.path = format!("{}?begun={begun}", self.path);
        }

        self.state = match wait_seconds {
            _ if !has_more => DeletionState::Over,
            None => DeletionState::Deletes,
            Some(seconds) => {
                ensure!(
                    seconds <= MAX_WAIT,
                    "{} is answered with a wait of {seconds} s; Roomtide asks for minutes",
                    self.path
                );
                DeletionState::Waits(seconds)
            }
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use domain::given::{at, device, room};

    use super::*;
    use crate::output::{OutputText, say_to};
    use crate::tests::fake_server::{self, Reply};

    fn end_of(path: &str, client: &Client, sleep: impl Fn(Duration)) -> anyhow::Result<u64> {
        ApiDeletion::of(client, path.to_owned()).run(sleep)
    }

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
            let error = end_of("/devices/d", &client, drop).unwrap_err().to_string();
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
        assert_eq!(end_of("/devices/d", &client, drop).unwrap(), u64::MAX);
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
        assert_eq!(end_of("/devices/d", &client, sleep).unwrap(), 10_007);
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
        let args: Args = crate::tests::parsed(words.into_iter().chain(range)).unwrap();
        run(&args).unwrap();
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
        let mut deletion = ApiDeletion::of(&client, path.to_owned());
        deletion.ask(&bar).and_then(|()| deletion.ask(&bar)).unwrap();
        assert_eq!((deletion.state, deletion.deleted), (DeletionState::Waits(3), 10_007));
        assert_eq!((bar.position(), bar.length()), (10_007, Some(10_010)));
    }

    #[test]
    fn a_deletion_that_is_forgotten_is_over() {
        for gone in [404, 409] {
            let begun = r#"{"begun": "2026-01-11T16:00:00.000Z", "deleted": 5, "has_more": true, "left": 3}"#;
            let forgotten = r#"{"detail": "No deletion of the device d is known."}"#;
            let client = fake_server::in_turn(&[(202, begun), (gone, forgotten)]).client();
            assert_eq!(end_of("/devices/d", &client, |_| {}).unwrap(), 5);
        }
    }

    #[test]
    fn a_refusal_is_told() {
        let detail = r#"{"detail": "The device d is in the room r."}"#;
        let client = fake_server::always(409, detail).client();
        let error = end_of("/rooms/r", &client, |_| {}).unwrap_err().to_string();
        assert!(error.contains("answers 409: The device d is in the room r."), "{error}");
    }

    #[test]
    fn a_deletion_that_has_begun_is_told_where_the_next_one_fails() {
        let server = fake_server::serve(|_, request| match &*request.path {
            "/devices/a" => Reply::of(
                202,
                r#"{"deleted": 2, "has_more": true, "left": 0, "wait_seconds": 360}"#,
            ),
            _ => Reply::of(404, "{}"),
        });
        let (client, said) = (server.client(), OutputText::default());
        say_to(&said);
        let ids = ["a", "wrong"].map(device);
        assert!(devices(&[&ids[0], &ids[1]], &[], &client, drop).is_err());
        let expected =
            "a is in no list any more: 2 items; run the command again to end its deletion\n";
        assert_eq!(said.text(), expected);
    }

    /// A server with these devices, each with the one behind it, if it is not deleted yet.
    fn meters(behind: &'static [(&str, &str)]) -> fake_server::FakeRoomtide {
        let deleted = Mutex::new(Vec::new());
        fake_server::serve(move |_, request| {
            let id = request.path.trim_start_matches("/devices/").split(['/', '?']).next().unwrap();
            if request.method == "GET" {
                return Reply::of(200, r#"{"data": []}"#);
            }
            let mut deleted = deleted.lock().unwrap();
            let is_there = |other: &str| !deleted.iter().any(|gone| gone == other);
            if behind.iter().any(|(meter, other)| *meter == id && is_there(other)) {
                return Reply::of(409, r#"{"detail": "A device is behind it."}"#);
            }
            deleted.push(id.to_owned());
            Reply::of(200, r#"{"deleted": 1, "has_more": false}"#)
        })
    }

    #[test]
    fn devices_behind_a_meter_are_deleted_before_it() {
        let server = meters(&[("grid", "main"), ("main", "sub"), ("other", "live")]);
        let (client, said) = (server.client(), OutputText::default());
        say_to(&said);
        let ids = ["grid", "main", "other", "sub"].map(device);
        unused(&ids.iter().collect::<Vec<_>>(), &[], &client).unwrap();
        assert_eq!(
            said.text(),
            format!(
                "grid is deleted: 1 item\nmain is deleted: 1 item\n\
                 sub is deleted: 1 item\n\
                 other stays: {}/devices/other answers 409: A device is behind it.\n",
                client.url()
            )
        );
        let error = delete(&What::Device { id: device("other"), if_empty: false }, &client);
        assert!(error.unwrap_err().to_string().contains("answers 409: A device is behind it."));
    }

    #[test]
    fn a_device_with_further_pages_is_not_empty() {
        let client = fake_server::always(200, r#"{"data": [], "next_cursor": "c"}"#).client();
        assert!(!is_unused(&device("d"), &client).unwrap());
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
        assert!(!is_unused(&device("full"), &client).unwrap());
        let ids = ["a", "gone", "b"].map(device);
        let [a, gone, b] = &ids;
        let sleep = |_| panic!("the server does not ask to wait");
        devices(&[a, gone, b], &[], &client, sleep).unwrap();
    }

    #[test]
    fn only_who_types_the_id_deletes() {
        assert!(ensure_typed("d", &mut &b"d\n"[..]).is_ok());
        for answer in ["", "\n", "y\n", "D\n"] {
            assert!(ensure_typed("d", &mut answer.as_bytes()).is_err(), "{answer:?}");
        }
    }

    #[test]
    fn nobody_is_asked_where_nothing_can_be_deleted() {
        let what = What::Room { id: room("d"), if_empty: false };
        let path = what.path().unwrap();
        assert_eq!(path, "/rooms/d");
        for status in [401, 404] {
            let error = ensure_there(&path, &fake_server::always(status, "{}").client());
            let error = format!("{:#}", error.unwrap_err());
            assert!(error.contains(&format!("answers {status}")), "{error}");
        }
        assert!(ensure_there(&path, &fake_server::always(200, "{}").client()).is_ok());
    }
}
