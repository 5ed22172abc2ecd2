//! Sends rounds of readings to `POST /readings`, several requests at once. Reads no file.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::AtomicBool;

use anyhow::bail;
use indicatif::ProgressBar;
use runtime::clock::Stopwatch;

use super::concurrent::concurrently;
use super::noted::Noted;
use super::refusals::{Refusal, Refusals};
use super::registry;
use super::resume::Resume;
use super::round::{self, Entry, Round, Rounds};
use super::sender::{Refused, Sender};
use super::sources::line_protocol::Precision;
use super::storing::{SentRound, Storing};
use crate::client::Client;
use crate::output::{counted, print};
use crate::pace::{HALF, Pace};

/// The number of readings in the first request, whose answer tells the table's capacity.
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
    /// Whether the first refusal ends the upload.
    pub(super) strict: bool,
    /// The write units per second that the person chose.
    pub(super) pace: Option<f64>,
    /// The unit of the times of line protocol.
    pub(super) precision: Precision,
}

/// The result of an upload.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) stored: u64,
    folded: u64,
    /// The number of readings that were merged without --merge.
    merged: u64,
    updated: usize,
    /// The devices and rooms of the file without settings.
    unset: usize,
    pub(super) refusals: Refusals,
    /// The number of readings that the server refused in earlier runs of the import.
    pub(super) refused_before: u64,
    /// The seconds for the readings, without the registry.
    seconds: f64,
}

impl Summary {
    fn new() -> Self {
        Self {
            stored: 0,
            folded: 0,
            merged: 0,
            updated: 0,
            unset: 0,
            refusals: Refusals::default(),
            refused_before: 0,
            seconds: 0.0,
        }
    }
}

/// The remark why readings of a stream are merged, and the consequence.
const MERGED: &str = "the stream goes back in time, so what the table had at their times keeps its metrics that the \
                      stream lacks; a file is sorted first, and replaces";

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
        if self.merged > 0 {
            let merged = counted(self.merged, "reading");
            write!(f, "\n{merged} merged: {MERGED}")?;
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

/// Sends all readings after those that `resume` records as processed, then updates devices and rooms.
///
/// Rounds are sent one after the other: see [`round`].
pub(super) fn run(
    mut rounds: Rounds,
    client: &Client,
    options: UploadOptions,
    mut resume: Resume,
    bar: &ProgressBar,
    noted: &mut Noted<'_>,
) -> anyhow::Result<Summary> {
    let mut summary = Summary::new();
    let mut storing = Storing::after(&mut resume);
    let pace = Pace::chosen_or(options.pace, SHARE);
    let sender = Sender::new(client, pace, options.batch, bar);
    let result =
        send_rounds(&mut rounds, &sender, options, &mut storing, bar, (noted, &mut summary));
    summary.stored = sender.stored();
    // After a failure, a round that was sent before may still be being stored.
    let result = result.and(storing.end());
    if client.holds_back() {
        summary.stored = storing.stored();
    }
    if let Err(error) = result {
        summary.stored = client.stored_here().unwrap_or(summary.stored);
        let stored = (summary.stored, "reading");
        return Err(resume.stopped(error, stored, options.strict));
    }
    resume.remove();
    Ok(summary)
}

fn send_rounds(
    rounds: &mut Rounds,
    sender: &Sender<'_>,
    options: UploadOptions,
    storing: &mut Storing<'_>,
    bar: &ProgressBar,
    (noted, summary): (&mut Noted<'_>, &mut Summary),
) -> anyhow::Result<()> {
    let watch = Stopwatch::start();
    summary.refused_before = storing.resume.refused();
    let mut registry = Vec::new();
    let done = storing.resume.acknowledged();
    while let Some(round) = rounds.next_stored(done)? {
        noted.note(&round)?;
        refuse(round.refusals, options, summary)?;
        registry.extend(round.registry);
    }
    if done > 0 {
        let (lines, passed) = rounds.passed();
        storing.resume.ensure_same(lines, passed)?;
        bar.set_position(done);
    }
    for round in rounds {
        let round = round?;
        refuse(round.refusals.clone(), options, summary)?;
        noted.note(&round)?;
        let (refusals, refused): (Vec<_>, Vec<_>) =
            send(&round, sender, options)?.into_iter().unzip();
        // A line may have readings of several devices.
        let name = |it: &Entry| (it.line, it.reading.device.clone());
        let refused: HashSet<_> = refused.into_iter().flatten().map(name).collect();
        let is_stored = |entry: &&Entry| !refused.contains(&name(entry));
        let entries = || round.puts.iter().chain(&round.merges);
        let witness = entries().rev().find(is_stored);
        for entry in entries().filter(|entry| !is_stored(entry)) {
            noted.take_back(&entry.reading)?;
        }
        // Lines that are only a part of a reading, or none, count as well.
        bar.set_position(round.end);
        let sent = SentRound {
            readings: sender.stored(),
            // Refused lines count as processed, unless the first refusal ends the import.
            end: if options.strict && !refusals.is_empty() { 0 } else { round.end },
            passed: round.passed.digest(),
            witness: witness.map(|entry| entry.reading.clone()),
            refused: refusals.len() as u64,
        };
        storing.begin(sender.client, sent)?;
        refuse(refusals, options, summary)?;
        summary.folded += round.folded;
        summary.merged += round.uncertain;
        registry.extend(round.registry);
    }
    storing.end()?;
    summary.seconds = watch.elapsed().as_secs_f64();
    let lines = registry.len();
    summary.unset = registry.iter().filter(|line| line.is_empty()).count();
    let refusals = registry::apply(&registry, sender.client, |text| bar.suspend(|| print(text)))?;
    let refused: HashSet<u64> = refusals.iter().map(|refusal| refusal.line).collect();
    summary.updated = lines - summary.unset - refused.len();
    refuse(refusals, options, summary)
}

fn refuse(
    refusals: Vec<Refusal>,
    options: UploadOptions,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    if let (true, Some(first)) = (options.strict, refusals.first()) {
        bail!("{first}");
    }
    summary.refusals.extend(refusals);
    Ok(())
}

// A file's rooms are history: they are stored whatever the registry has now.
const PUT: &str = "/readings?rooms=given";
const MERGE: &str = "/readings?merge=true&rooms=given";

/// Sends a round. Returns the refusals of the server.
fn send<'a>(
    round: &'a Round,
    sender: &Sender<'_>,
    options: UploadOptions,
) -> anyhow::Result<Vec<Refused<'a>>> {
    let mut refusals = Vec::new();
    let first = round.puts.len().min(if sender.pace.is_told() { 0 } else { FIRST_BATCH });
    let (first, puts) = round.puts.split_at(first);
    for batch in round::batches(first, options.batch) {
        refusals.extend(sender.send(PUT, batch, &AtomicBool::new(false))?);
    }

    let size = sender.pace.units_within(SECONDS_A_BATCH).map_or(options.batch, |units| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is small")]
        let bearable = units as usize;
        bearable.min(options.batch)
    });
    let batches = |entries| round::batches(entries, size).into_iter();
    let put = batches(puts).map(|batch| (PUT, batch));
    let merged = batches(&round.merges).map(|batch| (MERGE, batch));
    let all: Vec<(&str, &[Entry])> = put.chain(merged).collect();
    let outcome = concurrently(
        &all,
        |(path, batch), stop| sender.send(path, batch, stop),
        |_, refused| refusals.extend(refused),
    );

    refusals.sort_by_key(|(refusal, _)| refusal.line);
    outcome.map(|()| refusals)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::TcpListener;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::thread;
    use std::time::Duration;

    use domain::Timestamp;
    use domain::given::at_second;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::import::fake_server::{self, Reply, Request, Server};
    use crate::import::line::{Line, Record};
    use crate::import::resume::OrderChanged;

    const OPTIONS: UploadOptions =
        UploadOptions { batch: 2, strict: false, pace: None, precision: Precision::NANOSECONDS };

    fn client(server: &Server) -> Client {
        Client::impatient(&server.url, Duration::from_millis(150))
    }

    fn rounds(lines: &[String], size: usize) -> Rounds {
        let lines: Vec<_> = (1..)
            .zip(lines)
            .map(|(line, json)| Ok(Line::Reading(Record { line, json: json.clone() })))
            .collect();
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        Rounds::new(Box::new(lines.into_iter()), now, size, false)
    }

    fn import(client: &Client, readings: u64, options: UploadOptions) -> anyhow::Result<Summary> {
        let line = |n| format!(r#"{{"device_id":"d","timestamp":{},"t":1}}"#, 1_768_147_200 + n);
        let lines: Vec<String> = (0..readings).map(line).collect();
        send(rounds(&lines, 1_000), client, options)
    }

    fn send(rounds: Rounds, client: &Client, options: UploadOptions) -> anyhow::Result<Summary> {
        let resume = Resume::of(Path::new("-"), None, "", false)?;
        run(rounds, client, options, resume, &ProgressBar::hidden(), &mut Noted::default())
    }

    /// Why an import of these readings ends.
    fn error_of(server: &Server, readings: u64, options: UploadOptions) -> String {
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
    fn waiting_for_the_registry_is_not_part_of_the_rate() {
        let server = fake_server::serve(|n, request| match (n, &*request.method) {
            (_, "POST") => Reply::of(201, r#"{"accepted": 1}"#),
            (1, _) => Reply::of(404, r#"{"detail": "There is no such device."}"#),
            _ => Reply::of(200, "{}"),
        });
        let lines = [
            r#"{"device_id":"d","timestamp":1768147200,"t":1}"#,
            r#"{"device":{"device_id":"d","name":"x"}}"#,
        ];
        let rounds = rounds(&lines.map(str::to_owned), 1_000);
        let watch = Stopwatch::start();
        let summary = send(rounds, &client(&server), OPTIONS).unwrap();
        let waited = watch.elapsed().as_secs_f64() - summary.seconds;
        assert!(summary.updated == 1 && waited >= 0.1, "{summary} and {waited} s");
    }

    #[test]
    fn one_reading_is_no_plural() {
        let (folded, merged) = (1, 1);
        let summary =
            Summary { stored: 1, folded, merged, updated: 1, seconds: 1.0, ..Summary::new() };
        let lines = [
            "1 reading stored in 1.0 s (1 a second)",
            "1 line joined another of the same device and timestamp",
            "1 reading merged: the stream goes back in time, so what the table had at their times keeps its metrics that \
             the stream lacks; a file is sorted first, and replaces",
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
        let server = fake_server::serve(move |_, _| {
            positions.lock().unwrap().push(shown.position());
            Reply::of(201, r#"{"accepted": 2}"#)
        });
        let line = |n| format!(r#"{{"device_id":"d","timestamp":{},"t":1}}"#, 1_768_147_200 + n);
        let mut lines: Vec<String> = (0..12).map(line).collect();
        lines.insert(5, "no reading".to_owned());
        let resume = Resume::of(Path::new("-"), None, "", false).unwrap();
        let client = client(&server);
        run(rounds(&lines, 6), &client, OPTIONS, resume, &bar, &mut Noted::default()).unwrap();
        assert_eq!(seen.lock().unwrap()[..4], [0, 2, 4, 6]);
        assert_eq!(bar.position(), 13);
    }

    /// The answer of a server that has stored a request but for the readings at these places.
    fn answer(not_stored: &[usize]) -> Reply {
        if not_stored.is_empty() {
            return Reply::of(201, r#"{"accepted": 1}"#);
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
            answer(&not_stored)
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
                _ => Reply::of(201, r#"{"accepted": 1}"#),
            }
        });
        let options = UploadOptions { batch: 4, ..OPTIONS };
        let summary = import(&client(&server), 12, options).unwrap();
        assert_eq!((summary.stored, summary.refusals.count()), (11, 1));
        assert_eq!(summary.refusals.shown(), ["line 2: t: no number"]);
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
            answer(&not_stored)
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
        let server = fake_server::serve(|_, _| answer(&[2]));
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
            assert!(summary.refusals.shown().iter().any(|it| it.starts_with("line 2: the server")));
        }
    }

    #[test]
    fn refusals_are_named_by_their_lines_and_strict_stops_at_the_first() {
        let refusing = || {
            fake_server::in_turn(&[
                (
                    207,
                    r#"{"accepted": 1, "rejected": [{"index": 1, "field": "t", "message": "no number"}]}"#,
                ),
                (400, r#"{"errors": [{"index": 0, "message": "no device"}]}"#),
            ])
        };
        let server = refusing();
        let summary = import(&client(&server), 2, OPTIONS).unwrap();
        assert_eq!((summary.stored, summary.refusals.count()), (1, 1));
        assert_eq!(summary.refusals.shown(), ["line 2: t: no number"]);
        let summary = import(&client(&server), 1, OPTIONS).unwrap();
        assert_eq!(summary.refusals.shown(), ["line 1: no device"]);
        let strict = UploadOptions { strict: true, ..OPTIONS };
        let error = error_of(&refusing(), 2, strict);
        assert_eq!(error, "stopped; 1 reading stored: line 2: t: no number");
        let none =
            fake_server::always(400, r#"{"errors": [{"index": 0, "message": "no device"}]}"#);
        let error = error_of(&none, 1, strict);
        assert_eq!(error, "stopped; 0 readings stored: line 1: no device");
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
        let import = || {
            let resume = Resume::of(&file, None, "x", false).unwrap();
            run(
                rounds(&lines, 2),
                &client(&server),
                OPTIONS,
                resume,
                &ProgressBar::hidden(),
                &mut Noted::default(),
            )
        };
        let error = format!("{:#}", import().unwrap_err());
        let expected = "stopped; 2 readings stored, the same command continues after 2 lines";
        assert!(error.starts_with(expected), "{error}");
        let witness = Resume::of(&file, None, "x", false).unwrap().witness().cloned().unwrap();
        assert_eq!((&*witness.device, &*witness.timestamp), ("d", "2026-01-11T16:00:01.000Z"));
        let resume = || Resume::of(&file, None, "x", false).unwrap();
        let progress =
            std::fs::read(directory.path().join("readings.ndjson.roomtide-import")).unwrap();
        let mut moved = lines.clone();
        moved.swap(1, 3);
        let (hidden, mut noted) = (ProgressBar::hidden(), Noted::default());
        let moved = rounds(&moved, 2);
        let error =
            run(moved, &client(&server), OPTIONS, resume(), &hidden, &mut noted).unwrap_err();
        assert!(error.is::<OrderChanged>(), "{error:#}");
        assert_eq!(resume().acknowledged(), 0, "it starts over");
        std::fs::write(directory.path().join("readings.ndjson.roomtide-import"), progress).unwrap();
        assert_eq!(import().unwrap().stored, 4);
        let values: Vec<String> =
            asked.lock().unwrap().iter().map(|line| line[line.len() - 2..].to_owned()).collect();
        assert_eq!(values, ["0}", "1}", "2}", "3}", "2}", "3}", "4}", "5}"]);
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
    fn unreliable(plan: Vec<u8>) -> (Server, Arc<Mutex<Table>>) {
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
