//! Sends rounds of readings to `POST /readings`, several requests at once. Reads no file.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::AtomicBool;

use api::{AboutBody, MAX_ABOUT};
use domain::{About, DeviceId, Timestamp};
use indicatif::ProgressBar;
use runtime::clock::Stopwatch;

use super::imported::{Imported, SentRound};
use super::registry::{self, RegistryLine};
use super::round::{self, Round, Rounds, key};
use super::sender::{Refused, Sender};
use super::storing::Storing;
use crate::client::Client;
use crate::concurrent::concurrently;
use crate::output::{counted, print};
use crate::pace::{HALF, Pace};
use history::reading::HistoryReading;
use history::refusals::Refusals;

/// The minimum number of requests in a round: enough to keep several under way.
pub(super) const REQUESTS: usize = 4;
/// The number of requests under way at once.
const UPLOAD_CONCURRENCY: usize = 4;
/// The number of readings in the first request, whose answer names the table's capacity.
pub(super) const FIRST_BATCH: usize = 25;
/// The share of the table's capacity units that an import uses, including its rollups.
pub(super) const SHARE: f64 = HALF;
/// The seconds in which a table with limited capacity is to store a request: well below the server's time-out.
pub(super) const SECONDS_A_BATCH: f64 = 3.0;

/// The options of an upload.
#[derive(Debug, Clone, Copy)]
pub(super) struct UploadOptions {
    /// The maximum number of readings in a request.
    pub(super) batch: usize,
    /// The write units per second that the person chose.
    pub(super) pace: Option<f64>,
    /// Whether readings are stored with the rooms that the source names. The registry decides the rooms of points.
    pub(super) keeps_rooms: bool,
    /// Whether readings keep the other metrics that the table has of them.
    pub(super) merge: bool,
}

impl UploadOptions {
    /// Returns the path of requests.
    const fn path(self) -> &'static str {
        match (self.merge, self.keeps_rooms) {
            (false, false) => "/readings",
            (false, true) => "/readings?rooms=given",
            (true, false) => "/readings?merge=true",
            (true, true) => "/readings?merge=true&rooms=given",
        }
    }
}

/// The result of an upload.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) stored: u64,
    folded: u64,
    updated: usize,
    /// The devices and rooms of the file without settings.
    unset: usize,
    pub(super) refusals: Refusals,
    /// The number of readings that the server refused in earlier runs of the import.
    pub(super) refused_before: u64,
    /// The seconds for the readings, without the registry.
    seconds: f64,
}

impl fmt::Display for Summary {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.stored as f64 / self.seconds.max(0.001);
        let stored = counted(self.stored, "reading");
        write!(f, "{stored} stored in {:.1} s ({rate:.0} a second)", self.seconds)?;

        if self.folded > 0 {
            let text = "joined another of the same device and timestamp";
            write!(f, "\n{} {text}", counted(self.folded, "line"))?;
        }

        if self.updated > 0 {
            let what = if self.updated == 1 { "device or room" } else { "devices and rooms" };
            write!(f, "\n{} {what} updated", self.updated)?;
        }

        if self.unset > 0 {
            let what =
                if self.unset == 1 { "device or room has" } else { "devices and rooms have" };
            write!(f, "\n{} {what} no settings to restore", self.unset)?;
        }

        if self.refused_before > 0 {
            let text = "refused by the server before the import was interrupted (--again sends all once more)";
            write!(f, "\n{} {text}", counted(self.refused_before, "reading"))?;
        }

        write!(f, "{}", self.refusals)
    }
}

/// Sends all readings after those that are stored already, then updates devices and rooms.
///
/// Rounds are sent one after the other: see [`round`].
pub(super) fn run(
    mut rounds: Rounds<'_>,
    registry: &[RegistryLine],
    client: &Client,
    options: UploadOptions,
    imported: &Imported<'_>,
    bar: &ProgressBar,
) -> anyhow::Result<Summary> {
    let mut summary = Summary::default();
    let mut storing = Storing::of(imported);
    let pace = Pace::chosen_or(options.pace, SHARE);
    let sender = Sender::new(client, pace, options.batch, bar);
    let unsaid = UnsaidAbouts::default();
    let mut upload =
        Upload { sender: &sender, imported, options, bar, summary: &mut summary, unsaid };

    let result = upload.send_rounds(&mut rounds, &mut storing);
    let result = result.and_then(|()| upload.restore(registry));

    summary.stored = sender.stored();
    // Waits after a failure too, because an earlier round may not be stored yet.
    let result = result.and(storing.end());

    // Answered readings that are only in memory do not count.
    if client.here().is_some() {
        summary.stored = storing.stored();
    }

    if let Err(error) = result {
        summary.stored = client.here().map_or(summary.stored, |here| here.stored());
        if sender.is_refused() {
            imported.state().forget_refused();
        }
        return Err(imported.state().stopped(error, summary.stored));
    }

    Ok(summary)
}

/// An upload under way.
struct Upload<'a> {
    sender: &'a Sender<'a>,
    imported: &'a Imported<'a>,
    options: UploadOptions,
    bar: &'a ProgressBar,
    summary: &'a mut Summary,
    unsaid: UnsaidAbouts,
}

/// The descriptions of devices that this run has not sent yet. The registry learns a description once.
///
/// A description that is longer than that of a reading may be is sent in parts, with the readings that follow.
#[derive(Debug, Default)]
struct UnsaidAbouts {
    hasher: RandomState,
    /// By the hash of a device and a description, the parts by number that no stored reading has carried yet.
    unsaid: HashMap<u64, BTreeMap<usize, About>>,
}

/// A part of a description.
struct SaidPart {
    of: u64,
    part: usize,
}

/// By the device and time of a reading, the part of a description that it says.
type Saying = HashMap<(DeviceId, Timestamp), SaidPart>;

impl UnsaidAbouts {
    /// Keeps the descriptions that no stored reading has said, each in one reading, and removes all others. Returns
    /// which reading says which part.
    fn keep_unsaid(&mut self, round: &mut Round) -> Saying {
        let (mut saying, mut given) = (Saying::new(), HashMap::<u64, usize>::new());
        for read in &mut round.readings {
            let Some(about) = read.reading.about.take() else { continue };
            let of = self.hasher.hash_one((&read.reading.device, &about));
            let unsaid = self.unsaid.entry(of).or_insert_with(|| parts_of(*about));
            let given = given.entry(of).or_default();
            let Some((part, about)) = unsaid.iter().nth(*given) else { continue };

            *given += 1;
            read.reading.about = Some(Box::new(about.clone()));
            saying.insert(key(read), SaidPart { of, part: *part });
        }
        saying
    }

    /// Notes that a stored reading has said a part of a description.
    fn note_said(&mut self, said: &SaidPart) {
        if let Some(unsaid) = self.unsaid.get_mut(&said.of) {
            unsaid.remove(&said.part);
        }
    }
}

/// Splits a description into parts of at most [`MAX_ABOUT`] bytes. Each part has everything that is not about a metric.
/// A metric whose description makes a part too long is left out.
fn parts_of(about: About) -> BTreeMap<usize, About> {
    let is_short = |about: &About| {
        let json = serde_json::to_string(&AboutBody::from(about.clone()));
        json.is_ok_and(|json| json.len() <= MAX_ABOUT)
    };
    if is_short(&about) {
        return [(0, about)].into();
    }

    let whole = About { metrics: BTreeMap::new(), ..about.clone() };
    let (mut parts, mut part) = (Vec::new(), whole.clone());
    for (name, metric) in about.metrics {
        let longer = About {
            metrics: part
                .metrics
                .clone()
                .into_iter()
                .chain([(name.clone(), metric.clone())])
                .collect(),
            ..whole.clone()
        };
        if is_short(&longer) {
            part = longer;
        } else {
            let next = About { metrics: [(name, metric)].into(), ..whole.clone() };
            parts.push(std::mem::replace(&mut part, next));
        }
    }

    parts.push(part);
    parts.into_iter().filter(is_short).enumerate().collect()
}

impl Upload<'_> {
    fn send_rounds(
        &mut self,
        rounds: &mut Rounds<'_>,
        storing: &mut Storing<'_>,
    ) -> anyhow::Result<()> {
        let watch = Stopwatch::start();
        self.pass_stored(rounds)?;
        for round in rounds {
            let mut round = round?;
            self.imported.note_sending(round.readings.iter().map(|read| &read.reading))?;

            let sent = self.send_round(&mut round)?;
            storing.begin(self.sender.client, sent)?;
            self.summary.refusals.extend(round.refusals);
            self.summary.folded += round.folded;
        }

        storing.end()?;
        self.summary.seconds = watch.elapsed().as_secs_f64();
        Ok(())
    }

    /// Passes over the rounds that are stored already.
    fn pass_stored(&mut self, rounds: &mut Rounds<'_>) -> anyhow::Result<()> {
        let done = {
            let state = self.imported.state();
            self.summary.refused_before = state.stored.refused;
            state.stored.lines
        };

        while let Some(round) = rounds.next_stored(done)? {
            self.summary.refusals.extend(round.refusals);
        }

        if done > 0 {
            let (lines, passed) = rounds.passed();
            self.imported.state().ensure_same(lines, passed)?;
            self.bar.set_position(done);
        }
        Ok(())
    }

    /// Sends a round, and adds the refusals of the server. Returns the round as it is to be stored.
    fn send_round(&mut self, round: &mut Round) -> anyhow::Result<SentRound> {
        let saying = self.unsaid.keep_unsaid(round);
        let refusals = send(&round.readings, self.sender, self.options)?;
        let refused: HashSet<_> = refusals.iter().filter_map(|(_, read)| read.map(key)).collect();

        // The registry decides the room of other readings.
        let keeps_room = self.options.keeps_rooms && !self.options.merge;
        let stored = round.readings.iter().filter(|read| !refused.contains(&key(read)));
        let stored = stored.map(|HistoryReading { reading, .. }| {
            let mut stored = reading.clone();
            stored.room.take_if(|_| !keeps_room);
            stored
        });

        let said = saying.iter().filter(|(key, _)| !refused.contains(*key));
        said.for_each(|(_, part)| self.unsaid.note_said(part));

        // Lines that became no reading of their own count as well.
        self.bar.set_position(round.end);
        let sent = SentRound {
            readings: self.sender.stored(),
            end: round.end,
            passed: round.passed.digest(),
            stored: stored.collect(),
            refused: refusals.len() as u64,
        };
        self.summary.refusals.extend(refusals.into_iter().map(|(refusal, _)| refusal));
        Ok(sent)
    }

    /// Restores the entries of the registry that the file has.
    fn restore(&mut self, registry: &[RegistryLine]) -> anyhow::Result<()> {
        self.summary.unset = registry.iter().filter(|line| line.is_empty()).count();
        let say = |text| self.bar.suspend(|| print(text));
        let refusals = registry::apply(registry, self.sender.client, say)?;
        let refused: HashSet<u64> = refusals.iter().map(|refusal| refusal.line).collect();
        self.summary.updated = registry.len() - self.summary.unset - refused.len();
        self.summary.refusals.extend(refusals);
        Ok(())
    }
}

/// Sends the readings of a round. Returns the refusals of the server.
fn send<'a>(
    readings: &'a [HistoryReading],
    sender: &Sender<'_>,
    options: UploadOptions,
) -> anyhow::Result<Vec<Refused<'a>>> {
    let path = options.path();
    let mut refusals = Vec::new();

    // The answer to a small first request names the capacity of the table, which limits the size of the others.
    let first = if sender.pace.is_told() { 0 } else { FIRST_BATCH.min(readings.len()) };
    let (first, others) = readings.split_at(first);
    for batch in round::batches(first, options.batch) {
        refusals.extend(sender.send(path, batch, &AtomicBool::new(false))?);
    }

    let size = sender.pace.units_within(SECONDS_A_BATCH).map_or(options.batch, |units| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is small")]
        let units = units as usize;
        units.min(options.batch)
    });
    let outcome = concurrently(
        UPLOAD_CONCURRENCY,
        &round::batches(others, size),
        |batch, stop| sender.send(path, batch, stop),
        |_, refused| refusals.extend(refused),
    );

    refusals.sort_by_key(|(refusal, _)| refusal.line);
    outcome.map(|()| refusals)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::thread;
    use std::time::Duration;

    use domain::given::at_second;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::import::decoded::{self, PointRules};
    use crate::import::patterns::NamePatterns;
    use crate::import::state::{ImportName, ImportState, OrderChanged};
    use crate::tests::fake_server::{self, FakeRoomtide, Reply, Request};
    use history::line::{JsonRecord, Line};
    use history::line_protocol::TimePrecision;
    use history::notes::Notes;
    use history::point::Way;
    use history::points::line_reader::LineReader;
    use history::points::unite::SentLine;
    use history::taught::Taught;

    const OPTIONS: UploadOptions =
        UploadOptions { batch: 2, pace: None, keeps_rooms: true, merge: false };

    fn client(server: &FakeRoomtide) -> Client {
        Client::impatient(&server.url, Duration::from_millis(150))
    }

    fn rounds(lines: &[String], size: usize) -> Rounds<'static> {
        let lines = (1..).zip(lines).map(|(line, json)| JsonRecord { line, json: json.clone() });
        let mut lines: Vec<Line> =
            lines.map(|record| Line::decode(record, Timestamp::MAX)).collect();
        lines.sort_by_key(Line::owner);
        Rounds::new(
            decoded::lines(lines.into_iter().map(Ok), NamePatterns::default(), Notes::default()),
            size,
        )
    }

    fn import(client: &Client, readings: u64, options: UploadOptions) -> anyhow::Result<Summary> {
        let line = |n| format!(r#"{{"device_id":"d","timestamp":{},"t":1}}"#, 1_768_147_200 + n);
        let lines: Vec<String> = (0..readings).map(line).collect();
        send(rounds(&lines, 1_000), client, options)
    }

    fn state_of(file: &Path) -> anyhow::Result<ImportState> {
        let name = ImportName { file, state: None, target: "", url: None, options: "" };
        ImportState::of(name, false)
    }

    fn send(
        rounds: Rounds<'_>,
        client: &Client,
        options: UploadOptions,
    ) -> anyhow::Result<Summary> {
        let imported = Imported::without_table(state_of(Path::new("-"))?);
        run(rounds, &[], client, options, &imported, &ProgressBar::hidden())
    }

    /// Why an import of these readings ends.
    fn error_of(server: &FakeRoomtide, readings: u64, options: UploadOptions) -> String {
        format!("{:#}", import(&client(server), readings, options).unwrap_err())
    }

    #[test]
    fn an_import_whose_requests_all_fail_ends_with_the_reason() {
        let server = fake_server::serve(|_, _| {
            thread::sleep(Duration::from_millis(200));
            Reply::of(401, r#"{"detail": "no token"}"#)
        });
        let error = error_of(&server, 1_000, OPTIONS);
        assert!(error.contains("401") && error.contains("--token"), "{error}");
    }

    #[test]
    fn a_device_that_the_token_does_not_permit_is_named_with_its_line() {
        let server = fake_server::always(
            403,
            r#"{"detail": "Not every device.", "errors": [{"index": 1, "field": "device_id", "message": "no"}]}"#,
        );
        let error = error_of(&server, 2, OPTIONS);
        assert!(error.starts_with("line 2: the device \"d\": http"), "{error}");
        assert!(error.contains("Not every device."), "{error}");
    }

    #[test]
    fn an_import_whose_first_request_is_refused_as_a_whole_leaves_no_progress() {
        let refusal = (403, r#"{"detail": "Not every device."}"#);
        let stored = (201, r#"{"accepted": 2}"#);
        for (answers, is_kept) in [(&[refusal][..], false), (&[stored, refusal], true)] {
            let directory = tempfile::tempdir().unwrap();
            let state = directory.path().join("state");
            let (file, options) = (Path::new("-"), "");
            let name = ImportName { file, state: Some(&state), target: "", url: None, options };
            let imported = Imported::without_table(ImportState::of(name, false).unwrap());
            let lines: Vec<String> = (0..4)
                .map(|n| format!(r#"{{"device_id":"d","timestamp":{},"t":1}}"#, 1_768_147_200 + n))
                .collect();
            let (client, bar) = (fake_server::in_turn(answers).client(), ProgressBar::hidden());
            run(rounds(&lines, 9), &[], &client, OPTIONS, &imported, &bar).unwrap_err();
            imported.state().remove_if_unused();
            assert_eq!(state.exists(), is_kept);
        }
    }

    #[test]
    fn waiting_for_the_registry_is_not_part_of_the_rate() {
        let server = fake_server::serve(|n, request| match (n, &*request.method) {
            (_, "POST") => Reply::of(201, r#"{"accepted": 1}"#),
            (1, _) => Reply::of(404, r#"{"detail": "There is no such device."}"#),
            _ => Reply::of(200, "{}"),
        });
        let lines = [r#"{"device_id":"d","timestamp":1768147200,"t":1}"#.to_owned()];
        let json = r#"{"device":{"device_id":"d","name":"x"}}"#.to_owned();
        let registry = [RegistryLine::read(&JsonRecord { line: 2, json }).unwrap()];
        let imported = Imported::without_table(state_of(Path::new("-")).unwrap());
        let (rounds, bar) = (rounds(&lines, 1_000), ProgressBar::hidden());
        let watch = Stopwatch::start();
        let summary = run(rounds, &registry, &client(&server), OPTIONS, &imported, &bar).unwrap();
        let waited = watch.elapsed().as_secs_f64() - summary.seconds;
        assert!(summary.updated == 1 && waited >= 0.1, "{summary} and {waited} s");
    }

    #[test]
    fn one_reading_is_no_plural() {
        let summary =
            Summary { stored: 1, folded: 1, updated: 1, seconds: 1.0, ..Summary::default() };
        let lines = [
            "1 reading stored in 1.0 s (1 a second)",
            "1 line joined another of the same device and timestamp",
            "1 device or room updated",
        ];
        assert_eq!(summary.to_string(), lines.join("\n"));
    }

    #[test]
    fn a_server_that_is_not_there_is_not_waited_for() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let client = Client::new(&format!("http://{address}"), None).unwrap();
        let error = format!("{:#}", import(&client, 1_000, OPTIONS).unwrap_err());
        assert!(error.contains("cannot reach") && error.ends_with("is it running?"), "{error}");
    }

    #[test]
    fn a_busy_server_is_asked_again_when_it_says_so() {
        let server = fake_server::serve(|n, _| match n {
            0 => Reply::with(503, "retry-after: 1\r\n", r#"{"detail": "busy"}"#),
            _ => Reply::of(201, r#"{"accepted": 2}"#),
        });
        let summary = import(&client(&server), 2, OPTIONS).unwrap();
        assert_eq!((summary.stored, summary.refusals.count()), (2, 0));
        assert!(summary.seconds >= 1.0, "{summary}");
    }

    #[test]
    fn the_share_is_that_of_the_lines_that_are_sent() {
        let (bar, seen) = (ProgressBar::hidden(), Arc::new(Mutex::new(Vec::new())));
        let (shown, positions) = (bar.clone(), Arc::clone(&seen));
        let server = fake_server::serve(move |_, request| {
            positions.lock().unwrap().push(shown.position());
            Reply::stored(&request)
        });
        let line = |n| format!(r#"{{"device_id":"d","timestamp":{},"t":1}}"#, 1_768_147_200 + n);
        let mut lines: Vec<String> = (0..12).map(line).collect();
        lines.insert(5, "no reading".to_owned());
        let imported = Imported::without_table(state_of(Path::new("-")).unwrap());
        run(rounds(&lines, 6), &[], &client(&server), OPTIONS, &imported, &bar).unwrap();
        assert_eq!(seen.lock().unwrap()[..4], [0, 2, 4, 6]);
        assert_eq!(bar.position(), 13);
    }

    /// The answer of a server that has stored a request but for the readings at these places.
    fn answer(request: &Request, not_stored: &[usize]) -> Reply {
        if not_stored.is_empty() {
            return Reply::stored(request);
        }
        let body = format!(r#"{{"detail": "busy", "not_stored": {not_stored:?}}}"#);
        Reply::with(503, "retry-after: 0\r\n", &body)
    }

    #[test]
    fn a_server_that_does_not_keep_up_gets_what_is_left_in_smaller_requests_one_after_the_other() {
        const BEARABLE: usize = 3;
        let seen = Arc::new(Mutex::new((Vec::new(), BTreeMap::<String, u32>::new())));
        let (kept, under_way) = (Arc::clone(&seen), AtomicUsize::new(0));
        let server = fake_server::serve(move |_, request| {
            let at_once = under_way.fetch_add(1, Ordering::SeqCst) + 1;
            thread::sleep(Duration::from_millis(2));
            let lines: Vec<&str> = request.body.lines().collect();
            {
                let (requests, stored) = &mut *kept.lock().unwrap();
                requests.push((at_once, lines.len()));
                for line in lines.iter().take(BEARABLE) {
                    *stored.entry((*line).to_owned()).or_default() += 1;
                }
            }
            under_way.fetch_sub(1, Ordering::SeqCst);
            let not_stored: Vec<usize> = (BEARABLE..lines.len()).collect();
            answer(&request, &not_stored)
        });

        let options = UploadOptions { batch: 100, ..OPTIONS };
        let summary = import(&client(&server), 325, options).unwrap();
        assert_eq!((summary.stored, summary.refusals.count()), (325, 0));
        let (requests, stored) = &*seen.lock().unwrap();
        assert!(stored.len() == 325 && stored.values().all(|times| *times == 1), "{stored:?}");
        assert_eq!(requests[0], (1, FIRST_BATCH));
        let is_small =
            |(at_once, readings): &(usize, usize)| *at_once == 1 && *readings < FIRST_BATCH;
        assert!(requests[1..].iter().all(is_small), "{requests:?}");
    }

    #[test]
    fn a_server_that_keeps_up_again_gets_whole_requests_and_what_it_refuses_is_not_sent_again() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sizes = Arc::clone(&seen);
        let server = fake_server::serve(move |n, request| {
            sizes.lock().unwrap().push(request.body.lines().count());
            match n {
                0 => Reply::with(
                    503,
                    "retry-after: 0\r\n",
                    r#"{"not_stored": [3], "errors": [{"index": 1, "field": "t", "message": "no number"}]}"#,
                ),
                _ => Reply::stored(&request),
            }
        });
        let options = UploadOptions { batch: 4, ..OPTIONS };
        let summary = import(&client(&server), 12, options).unwrap();
        assert_eq!((summary.stored, summary.refusals.count()), (11, 1));
        assert_eq!(summary.refusals.first().unwrap().to_string(), "line 2: t: no number");
        assert_eq!(*seen.lock().unwrap(), [4, 1, 4, 4]);
    }

    #[test]
    fn a_part_that_was_stored_is_counted_where_the_import_stops_and_is_no_attempt_in_vain() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let server = fake_server::serve(move |n, request| {
            let lines = request.body.lines().count();
            seen.lock().unwrap().push(lines);
            let not_stored: Vec<usize> = (usize::from(n < 20)..lines).collect();
            answer(&request, &not_stored)
        });
        let options = UploadOptions { batch: 25, ..OPTIONS };
        let error = error_of(&server, 25, options);
        let asked = asked.lock().unwrap();
        // Each of the first attempts stores one reading; then as many are in vain as with any request.
        assert!(error.starts_with("stopped; 20 readings stored: "), "{error} {asked:?}");
        assert!(error.ends_with("answers 503: busy"), "{error}");
        assert_eq!(asked.len(), 28, "{asked:?}");
    }

    #[test]
    fn an_answer_whose_places_are_no_readings_of_the_request_stores_nothing() {
        let server = fake_server::serve(|_, request| answer(&request, &[2]));
        let error = error_of(&server, 2, OPTIONS);
        assert!(
            error.ends_with("/readings answers 503: busy") && !error.contains("stored"),
            "{error}"
        );
    }

    #[test]
    fn refusals_that_an_answer_has_no_room_for_are_counted() {
        let server = fake_server::in_turn(&[
            (207, r#"{"accepted": 1, "more_rejected": [1]}"#),
            (410, r#"{"errors": [{"index": 0, "message": "no device"}], "more_errors": [1]}"#),
        ]);
        for (stored, refused) in [(1, 1), (0, 2)] {
            let summary = import(&client(&server), 2, OPTIONS).unwrap();
            assert_eq!((summary.stored, summary.refusals.count()), (stored, refused));
            assert!(summary.refusals.to_string().contains("line 2: the server"));
        }
    }

    #[test]
    fn refusals_are_named_by_their_lines() {
        let server = fake_server::in_turn(&[
            (
                207,
                r#"{"accepted": 1, "rejected": [{"index": 1, "field": "t", "message": "no number"}]}"#,
            ),
            (400, r#"{"errors": [{"index": 0, "message": "no device"}]}"#),
        ]);
        let summary = import(&client(&server), 2, OPTIONS).unwrap();
        assert_eq!((summary.stored, summary.refusals.count()), (1, 1));
        assert_eq!(summary.refusals.first().unwrap().to_string(), "line 2: t: no number");
        let summary = import(&client(&server), 1, OPTIONS).unwrap();
        assert_eq!(summary.refusals.first().unwrap().to_string(), "line 1: no device");
    }

    #[test]
    fn an_interrupted_import_goes_on_behind_what_is_stored() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("readings.ndjson");
        std::fs::write(&file, "any").unwrap();
        let line = |n| format!(r#"{{"device_id":"d","timestamp":{},"t":{n}}}"#, 1_768_147_200 + n);
        let lines: Vec<String> = (0..6).map(line).collect();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let server = fake_server::serve(move |n, request| {
            seen.lock().unwrap().extend(request.body.lines().map(str::to_owned));
            if n == 1 { Reply::of(401, "{}") } else { Reply::of(201, r#"{"accepted": 2}"#) }
        });
        let import = |lines: &[String]| {
            let imported = Imported::without_table(state_of(&file).unwrap());
            run(rounds(lines, 2), &[], &client(&server), OPTIONS, &imported, &ProgressBar::hidden())
        };
        let error = format!("{:#}", import(&lines).unwrap_err());
        let expected = "stopped; 2 readings stored, the same command continues after 2 lines";
        assert!(error.starts_with(expected), "{error}");
        let witness = state_of(&file).unwrap().stored.witness.clone().unwrap();
        let stored = (witness.device.to_string(), witness.timestamp.to_string());
        assert_eq!(stored, ("d".to_owned(), "2026-01-11T16:00:01.000Z".to_owned()));
        let progress =
            std::fs::read(directory.path().join("readings.ndjson.roomtide-import")).unwrap();
        let mut moved = lines.clone();
        moved[1] = moved[1].replace("\"t\":1", "\"t\":8");
        let error = import(&moved).unwrap_err();
        assert!(error.is::<OrderChanged>(), "{error:#}");
        assert_eq!(state_of(&file).unwrap().stored.lines, 0, "it starts over");
        std::fs::write(directory.path().join("readings.ndjson.roomtide-import"), progress).unwrap();
        assert_eq!(import(&lines).unwrap().stored, 4);
        let values: Vec<String> =
            asked.lock().unwrap().iter().map(|line| line[line.len() - 2..].to_owned()).collect();
        assert_eq!(values, ["0}", "1}", "2}", "3}", "2}", "3}", "4}", "5}"]);
    }

    #[test]
    fn readings_of_which_a_server_says_nothing_end_the_import() {
        for (receipt, expected) in [
            (r#"{"accepted": 1}"#, "of 2 readings the server accepts 1 and refuses 0"),
            (r#"{"accepted": 1, "accepted_before": 1}"#, ""),
            (r#"{"accepted": 1, "more_rejected": [1, 1]}"#, ""),
            (r#"{"accepted": 2, "more_rejected": [1]}"#, "accepts 2 and refuses 1"),
        ] {
            let server = fake_server::always(207, receipt);
            let sent = import(&client(&server), 2, OPTIONS).err();
            let error = sent.map(|error| format!("{error:#}")).unwrap_or_default();
            assert!(error.contains(expected) && error.is_empty() == expected.is_empty(), "{error}");
        }
    }

    /// It is as long as a reading.
    #[test]
    fn what_a_device_is_is_said_once_and_again_where_it_was_refused() {
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&bodies);
        let server = fake_server::serve(move |n, request| {
            let lines = request.body.lines().map(|line| line.contains("about"));
            seen.lock().unwrap().push(lines.collect::<Vec<_>>());
            match n {
                0 => Reply::of(
                    207,
                    r#"{"accepted": 1, "rejected": [{"index": 0, "message": "no"}]}"#,
                ),
                _ => Reply::stored(&request),
            }
        });
        let line = |n| {
            let at = 1_768_147_200 + n;
            format!(
                r#"{{"device_id":"d","timestamp":{at},"t":1,"about":{{"metrics":{{"t":{{"unit":"°C"}}}}}}}}"#
            )
        };
        let lines: Vec<String> = (0..6).map(line).collect();
        send(rounds(&lines, 2), &client(&server), OPTIONS).unwrap();
        let expected = [[true, false], [true, false], [false, false]];
        assert_eq!(*bodies.lock().unwrap(), expected);
    }

    /// A line of a computer has hundreds of fields.
    #[test]
    fn a_long_description_is_said_in_parts_by_the_readings_that_follow() {
        let fields: Vec<String> = (0..200).map(|n| format!("a_long_name_of_{n}=1")).collect();
        let group = |n: i64| {
            let (millis, fields) = (1_768_147_200_000 + n, fields.join(","));
            vec![SentLine {
                line: 1,
                device: "a".to_owned(),
                series: "m,host=a".to_owned(),
                millis,
                text: format!("m,host=a {fields} {millis}000000"),
                way: Way::Plain,
                hour: None,
            }]
        };
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&bodies);
        let server = fake_server::serve(move |_, request| {
            seen.lock().unwrap().extend(request.body.lines().map(str::to_owned));
            Reply::stored(&request)
        });
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        let reader = LineReader { now, rules: history::LineRules::default() };
        let rules =
            PointRules { reader, precision: TimePrecision::NANOSECONDS, taught: Taught::default() };
        let lines = decoded::points((0..5).map(|n| Ok(group(n))), rules);
        send(Rounds::new(lines, 2), &client(&server), OPTIONS).unwrap();

        let mut said = Vec::new();
        for body in &*bodies.lock().unwrap() {
            let reading: Value = serde_json::from_str(body).unwrap();
            let about = &reading["about"];
            assert!(about.to_string().len() <= MAX_ABOUT);
            said.extend(about["metrics"].as_object().into_iter().flat_map(|it| it.keys().cloned()));
        }
        said.sort();
        said.dedup();
        assert_eq!((said.len(), bodies.lock().unwrap().len()), (200, 5));
    }

    #[test]
    fn a_server_that_does_not_know_what_a_reading_is_about_is_to_be_updated() {
        let body = r#"{"errors": [{"index": 0, "field": "about", "message": "is not a number"}]}"#;
        let error = error_of(&fake_server::always(400, body), 2, OPTIONS);
        assert!(error.contains("of an earlier version") && error.contains("update it"), "{error}");
    }

    #[test]
    fn another_server_s_yes_is_no_receipt() {
        let server = fake_server::always(201, "<html>");
        let error = error_of(&server, 1, OPTIONS);
        assert!(error.contains("not as Roomtide does"), "{error}");
    }

    /// Device and timestamp to the values of its metrics.
    type Table = BTreeMap<(String, String), BTreeMap<String, Value>>;

    /// What a put or a merge does to a table.
    fn apply(table: &mut Table, line: &str, merge: bool) {
        let mut members: BTreeMap<String, Value> = serde_json::from_str(line).unwrap();
        let mut text = |name| members.remove(name).unwrap().to_string();
        let key = (text("device_id"), text("timestamp"));
        let item = table.entry(key).or_default();
        if !merge {
            item.clear();
        }
        item.extend(members);
    }

    /// A server that is slow and fails as `plan` says, and keeps what it stores.
    fn unreliable(plan: Vec<u8>) -> (FakeRoomtide, Arc<Mutex<Table>>) {
        let table = Arc::new(Mutex::new(Table::new()));
        let kept = Arc::clone(&table);
        let server = fake_server::serve(move |n, Request { path, body, .. }| {
            let step = plan.get(n % plan.len()).copied().unwrap_or_default();
            let store = {
                let kept = Arc::clone(&kept);
                move |lines: &mut dyn Iterator<Item = &str>| {
                    let mut table = kept.lock().unwrap();
                    lines.for_each(|line| apply(&mut table, line, path.contains("merge=true")));
                }
            };
            thread::sleep(Duration::from_millis(u64::from(step % 4)));
            // The plan goes on beyond the attempts of any one request, so each gets through.
            match step / 4 % 8 {
                0 => Reply::of(503, "{}"),
                1 => {
                    // Some are stored, some are not.
                    store(&mut body.lines().step_by(2));
                    Reply::of(429, "{}")
                }
                2 => {
                    store(&mut body.lines());
                    Reply::NONE
                }
                3 => {
                    // The connection is lost, the function goes on.
                    thread::spawn(move || {
                        thread::sleep(Duration::from_millis(15));
                        store(&mut body.lines());
                    });
                    Reply::NONE
                }
                _ => {
                    store(&mut body.lines());
                    Reply::of(201, r#"{"accepted": 0}"#)
                }
            }
        });
        (server, table)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        #[test]
        fn no_line_takes_anothers_metrics_and_the_last_wins(
            lines in prop::collection::vec((0..2_u8, 0..6_i64, 0..3_u8), 1..60),
            plan in prop::collection::vec(any::<u8>(), 1..40),
            batch in 1..5_usize,
            size in 1..12_usize,
        ) {
            let mut expected = Table::new();
            let lines: Vec<String> = (0..)
                .zip(lines)
                .map(|(n, (device, second, metric)): (u32, _)| {
                    let at = at_second(second);
                    let line = format!(
                        r#"{{"device_id":"d{device}","timestamp":"{at}","m{metric}":{n}}}"#
                    );
                    apply(&mut expected, &line, true);
                    line
                })
                .collect();
            // At least one step of the plan succeeds.
            let plan = plan.into_iter().chain([16]).collect();
            let (server, table) = unreliable(plan);
            let options = UploadOptions { batch, ..OPTIONS };
            // A server may fail for longer than the client has patience; then nothing is promised.
            if send(rounds(&lines, size), &client(&server), options).is_ok() {
                // A request whose answer was lost may still be under way, on a busy machine for long.
                for _ in 0..100 {
                    thread::sleep(Duration::from_millis(20));
                    if *table.lock().unwrap() == expected {
                        break;
                    }
                }
                prop_assert_eq!(&*table.lock().unwrap(), &expected);
            }
        }
    }
}
