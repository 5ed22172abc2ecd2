//! Tests of what is sent, against a server that keeps the requests.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::import::fake_server::{self, Reply, Server};
use crate::import::imported::Imported;
use crate::import::sources::Way;
use crate::import::state::{ImportName, ImportState, OrderChanged};

const OPTIONS: UploadOptions =
    UploadOptions { batch: 2, strict: false, pace: None, precision: Precision::NANOSECONDS };

fn line(n: i64) -> SentLine {
    let millis = 1_768_147_200_000 + n * 1_000;
    SentLine {
        line: n.unsigned_abs() + 1,
        series: "m,host=a".to_owned(),
        millis,
        text: format!("m,host=a s=\"two\nlines\",v={n} {millis}000000"),
        way: Way::Plain,
        hour: None,
    }
}

fn state_of(file: &Path) -> anyhow::Result<ImportState> {
    let name = ImportName { file, state: None, target: "", url: "", options: "x" };
    ImportState::of(name, false)
}

fn send_to(
    server: &Server,
    lines: i64,
    file: &Path,
    options: UploadOptions,
) -> anyhow::Result<Sent> {
    send_lines_to(server, 0..lines, file, options)
}

fn send_lines_to(
    server: &Server,
    lines: Range<i64>,
    file: &Path,
    options: UploadOptions,
) -> anyhow::Result<Sent> {
    let client = Client::impatient(&server.url, Duration::from_millis(30));
    let imported = Imported::without_table(state_of(file)?);
    let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
    let groups = lines.map(|n| Ok(vec![line(n)]));
    let options = PointOptions { upload: options, now };
    send(groups, &client, options, &imported, &ProgressBar::hidden())
}

#[test]
fn the_unit_of_times_is_an_option_of_line_protocol_only() {
    let message = "1735689600000 is 1970-01-01T00:28:55.689Z in ns; add precision=ms";
    let why = "1735689600000 is 1970-01-01T00:28:55.689Z in ns";
    for (number, expected) in [
        (7, "1735689600 is 1970-01-01T00:28:55.689Z in us; --precision s fits"),
        (0, &format!("m,host=a at 2026-01-11T16:00:00.000Z: {why}")),
    ] {
        let line = SentLine { line: number, ..line(0) };
        let datum = Datum { error_message: message.to_owned(), line_number: Some(1) };
        let batch: Batch<'_> = vec![&line];
        let refused = refused(&batch, &body(&batch), PartialWrite { data: vec![datum] });
        let reason = &refused.lines[0].refusal.reason;
        assert_eq!(advised(&line, reason, "us".parse().unwrap()), expected);
    }
}

/// A run that is killed may have stored lines and acknowledged none. The next one counts relative times as it did.
#[test]
fn the_progress_is_there_before_the_first_line_is_sent() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("points.lp");
    std::fs::write(&file, "a").unwrap();
    let progress = directory.path().join("points.lp.roomtide-import");
    let server = fake_server::serve(move |_, request| {
        assert!(progress.exists(), "{request:?}");
        Reply::of(204, "")
    });
    assert_eq!(send_to(&server, 1, &file, OPTIONS).unwrap().stored, 1);
}

#[test]
fn all_lines_are_written_with_nanoseconds() {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&bodies);
    let server = fake_server::serve(move |_, request| {
        assert_eq!((&*request.method, &*request.path), ("POST", WRITE));
        seen.lock().unwrap().push(request.body);
        Reply::of(204, "")
    });
    let sent = send_to(&server, 61, Path::new("-"), OPTIONS).unwrap();
    assert_eq!((sent.stored, sent.refusals.count()), (61, 0));
    let mut all: Vec<String> =
        bodies.lock().unwrap().concat().split_inclusive("000000\n").map(str::to_owned).collect();
    all.sort();
    let mut expected: Vec<String> = (0..61).map(|n| format!("{}\n", line(n).text)).collect();
    expected.sort();
    assert_eq!(all, expected);
}

#[test]
fn refused_lines_are_named_by_their_place_in_the_file() {
    let server = fake_server::in_turn(&[
        (
            400,
            r#"{"error": "partial write of line protocol occurred",
                "data": [{"error_message": "no", "line_number": 3, "original_line": "m"}]}"#,
        ),
        (204, ""),
    ]);
    let sent = send_to(&server, 4, Path::new("-"), OPTIONS).unwrap();
    assert_eq!((sent.stored, sent.refusals.count()), (3, 1));
    assert_eq!(sent.refusals.shown(), ["line 2: no"], "it begins in the body's third line");
    let strict = UploadOptions { strict: true, ..OPTIONS };
    let server =
        fake_server::always(400, r#"{"data": [{"error_message": "no", "line_number": 1}]}"#);
    let error = format!("{:#}", send_to(&server, 1, Path::new("-"), strict).unwrap_err());
    assert_eq!(error, "stopped; 0 points stored: line 1: no");
}

/// The server names few of the lines that it refuses in one answer.
#[test]
fn all_refused_lines_are_named_however_few_an_answer_names() {
    for most in [0, 1, 3] {
        let stored = Arc::new(Mutex::new(std::collections::BTreeSet::new()));
        let seen = Arc::clone(&stored);
        let server = fake_server::serve(move |_, request| {
            let mut refused = Vec::new();
            for (number, line) in (1..).zip(request.body.split_inclusive("000000\n")) {
                let value: i64 = line.split(&['=', ' '][..]).nth(4).unwrap().parse().unwrap();
                if value % 3 == 0 || (20..40).contains(&value) {
                    refused.push(2 * number - 1);
                } else {
                    seen.lock().unwrap().insert(value);
                }
            }
            if refused.is_empty() {
                return Reply::of(204, "");
            }
            let datum = |number| format!(r#"{{"error_message": "no", "line_number": {number}}}"#);
            let mut data: Vec<String> = refused.iter().take(most).map(datum).collect();
            if refused.len() > most {
                data.push(format!(r#"{{"error_message": "and {} more"}}"#, refused.len() - most));
            }
            Reply::of(400, &format!(r#"{{"data": [{}]}}"#, data.join(",")))
        });
        let options = UploadOptions { batch: 50, ..OPTIONS };
        let sent = send_to(&server, 60, Path::new("-"), options).unwrap();
        let is_refused = |n: &i64| n % 3 == 0 || (20..40).contains(n);
        let (refused, kept): (Vec<i64>, Vec<i64>) = (0..60).partition(is_refused);
        let counts = (sent.stored, sent.refusals.count());
        assert_eq!(counts, (kept.len() as u64, refused.len() as u64), "{most} are named");
        assert_eq!(stored.lock().unwrap().iter().copied().collect::<Vec<_>>(), kept);
    }
}

#[test]
fn an_answer_that_is_no_roomtide_s_ends_the_import() {
    for (status, body) in [(200, "<html>"), (400, "{\"detail\": \"why\"}"), (401, "{}")] {
        let server = fake_server::always(status, body);
        let error = format!("{:#}", send_to(&server, 1, Path::new("-"), OPTIONS).unwrap_err());
        assert!(error.contains(&format!("answers {status}")), "{error}");
    }
}

#[test]
fn an_interrupted_import_goes_on_behind_the_last_round() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.lp");
    std::fs::write(&file, "any").unwrap();
    let total = i64::try_from(ROUND).unwrap() + 10;
    let batch = UploadOptions { batch: 4_000, ..OPTIONS };
    let server = fake_server::serve(|_, request| {
        let is_second_round = request.body.contains(&format!("v={ROUND} "));
        if is_second_round { Reply::of(401, "{}") } else { Reply::of(204, "") }
    });
    let error = format!("{:#}", send_to(&server, total, &file, batch).unwrap_err());
    let expected = "stopped; 16000 points stored, the same command continues after 16000 lines";
    assert!(error.starts_with(expected), "{error}");
    let state = state_of(&file).unwrap();
    assert_eq!(state.witness().map(|witness| &*witness.device), Some("a::m"));
    drop(state);
    let server = fake_server::always(204, "");
    let progress = directory.path().join("export.lp.roomtide-import");
    let kept = std::fs::read(&progress).unwrap();
    // A line that came since sorts before the place that was reached, or lines of it are gone.
    for lines in [-1..total, 1..total, 0..total - 11] {
        let error = send_lines_to(&server, lines.clone(), &file, batch).unwrap_err();
        assert!(error.is::<OrderChanged>(), "{lines:?}: {error:#}");
        assert_eq!(state_of(&file).unwrap().acknowledged(), 0, "{lines:?}");
        std::fs::write(&progress, &kept).unwrap();
    }
    assert_eq!(send_to(&server, total, &file, batch).unwrap().stored, 10);
}

#[test]
fn lines_of_one_device_and_time_stay_together() {
    let groups = [vec![line(0), line(0)], vec![line(1), line(1)], vec![line(2)]];
    let sizes = |size| batches(&groups, size).iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(sizes(1), [2, 2, 1]);
    assert_eq!(sizes(4), [4, 1]);
    assert_eq!(sizes(100), [5]);
    let entity = vec![SentLine { way: Way::Entity, ..line(3) }];
    let groups = [groups[0].clone(), entity];
    let paths: Vec<_> = batches(&groups, 100).iter().map(path).collect();
    assert_eq!(
        paths,
        [WRITE.to_owned(), format!("{WRITE}&device_tags=domain,entity_id&room_tag=area")]
    );
}
