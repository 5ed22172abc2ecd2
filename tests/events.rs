//! Every sample event, run through its handler: folder and cases name the same files. Starts no engine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::{Device, Reading, Room, Timestamp, TokenHash};
use serde_json::{Value, json};
use table::memory_db::{Calls, MemoryDb};
use table::{FindToken as _, ReadRegistry as _};

use crate::fetching;
use crate::given::answer;
use crate::home::{Home, Options};

/// An event, the events before it, and what must come of it, said once and said again.
struct Case {
    line: usize,
    file: &'static str,
    before: Vec<&'static str>,
    statements: Vec<Line>,
}

/// A line of `events/cases.txt`, without its indentation.
struct Line {
    number: usize,
    text: &'static str,
}

/// The cases of the file, which says their grammar.
fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (number, line) in (1..).zip(include_str!("events/cases.txt").lines()) {
        let text = line.trim_start();
        if text.is_empty() || text.starts_with("//") {
            continue;
        }
        if line.starts_with(' ') {
            let case = cases.last_mut().expect("a statement follows a case");
            case.statements.push(Line { number, text });
            continue;
        }
        let (file, before) = text.split_once(" after ").unwrap_or((text, ""));
        let before = before.split_whitespace().collect();
        cases.push(Case { line: number, file, before, statements: Vec::new() });
    }
    cases
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../events")
}

/// A home at 16:05 of the day of the events. Nothing is cached: the functions share the table.
fn home() -> Home<MemoryDb> {
    let now = Timestamp::parse("2026-01-11T16:05:00Z", Timestamp::MIN).expect("a timestamp");
    let options = Options { registry_max_age: Duration::ZERO, ..Options::at(now) };
    Home::with(MemoryDb::with_conditions_index(), options)
}

/// What the handler of the event's folder answers.
async fn run(home: &Home<MemoryDb>, file: &str) -> Value {
    let text = std::fs::read_to_string(folder().join(format!("{file}.json"))).expect(file);
    let function = file.split('/').next().expect("a folder");
    let answer = match function {
        // A source and what its maker answers, and not an event.
        "answers" => fetching::play(home, &text).await,
        "fetching" => fetching::schedule(home, &text).await,
        _ => home.invoke(function, &text).await,
    };
    match answer.get("statusCode") {
        Some(_) => of_http(&answer),
        None => answer,
    }
}

fn of_http(response: &Value) -> Value {
    let text = response["body"].as_str().unwrap_or_default();
    let body = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    json!({"status": response["statusCode"], "headers": response["headers"], "body": body})
}

/// What the table has of the readings and the registry. What readings say of their devices is in the registry then, and
/// a repeated one does not say it again.
async fn state(home: &Home<MemoryDb>) -> (Vec<Reading>, Vec<Device>, Vec<Room>) {
    let devices = answer!(home.store.devices()).found;
    let rooms = answer!(home.store.rooms()).found;
    let mut readings = home.store.readings();
    readings.iter_mut().for_each(|reading| reading.about = None);
    (readings, devices, rooms)
}

/// Every stored reading, as a line.
fn stored(home: &Home<MemoryDb>) -> Vec<String> {
    let line = |reading: &Reading| {
        let values = reading.metrics().iter().map(|(name, value)| format!(" {name}={value}"));
        format!("{} {}{}", reading.device.as_str(), reading.at, values.collect::<String>())
    };
    home.store.readings().iter().map(line).collect()
}

// ---- Statements --------------------------------------------------------------------------------

/// What is wrong of what a case says, each with its line.
async fn wrong(case: &Case, home: &Home<MemoryDb>, answer: &Value) -> Vec<String> {
    assert!(!case.statements.is_empty(), "line {} says nothing of {}", case.line, case.file);
    let readings = case.statements.iter().filter_map(|line| line.text.strip_prefix("stores "));
    let readings: Vec<&str> = readings.collect();

    let mut wrong = Vec::new();
    for Line { number, text } in &case.statements {
        let difference = match text.split_once(' ').expect("a statement has words") {
            ("stores", _) => stores(home, &readings),
            ("sends", part) => sends(home, part),
            ("by", "code") => check_by_code(case.file, home, answer).await,
            ("GET", asked) => {
                let (url, statement) = asked.split_once(' ').expect("a statement");
                let (path, parameters) = url.split_once('?').unwrap_or((url, ""));
                let answer = home.get(path, parameters).await;
                let answer = json!({"status": answer.status, "body": answer.body});
                differs(&answer, statement)
            }
            ("then", asked) => {
                let (file, statement) = asked.split_once(' ').expect("a statement");
                differs(&run(home, file).await, statement)
            }
            _ => differs(answer, text),
        };
        let context = format!("tests/events/cases.txt:{number}: {}: {text}", case.file);
        wrong.extend(difference.map(|difference| format!("{context}\n    but {difference}")));
    }
    wrong
}

/// What is there instead of what a statement says of an answer.
pub(crate) fn differs(answer: &Value, statement: &str) -> Option<String> {
    let (place, said) = statement.split_once(' ').expect("a place and what is there");
    let (verb, text) = said.split_once(' ').expect("a verb and a value");
    let value = || -> Value { serde_json::from_str(text).expect("JSON") };

    let found = answer.pointer(place.strip_prefix('.').unwrap_or(place));
    let is_so = match verb {
        "=" => found == Some(&value()),
        "!=" => found.is_some_and(|found| *found != value()),
        "in" => found.is_some_and(|found| value().as_array().expect("a list").contains(found)),
        "is" => text == "nothing" && found.is_none(),
        "has" => found.and_then(length) == Some(text.parse().expect("a number")),
        "~" => found.and_then(Value::as_str).is_some_and(|found| found.contains(text)),
        other => panic!("{other} is no verb"),
    };
    let shown = || found.map_or_else(|| format!("nothing, in {answer}"), Value::to_string);
    (!is_so).then(shown)
}

fn length(value: &Value) -> Option<usize> {
    value.as_array().map(Vec::len).or_else(|| value.as_object().map(serde_json::Map::len))
}

fn stores(home: &Home<MemoryDb>, expected: &[&str]) -> Option<String> {
    let found = stored(home);
    let is_so = match expected {
        ["nothing"] => found.is_empty(),
        [one] if !one.contains(' ') => one.parse() == Ok(found.len()),
        lines => found == lines,
    };
    (!is_so).then(|| format!("{found:#?}"))
}

fn sends(home: &Home<MemoryDb>, part: &str) -> Option<String> {
    let messages = home.receiver.messages();
    let is_so = matches!(&messages[..], [one] if one.contains(part));
    (!is_so).then(|| format!("{messages:?}"))
}

/// What is wrong where a case's statement needs more than its answer.
async fn check_by_code(file: &str, home: &Home<MemoryDb>, answer: &Value) -> Option<String> {
    let is_so = match file {
        "query/room-readings" => {
            let cursor = answer["body"]["next_cursor"].as_str().expect("a cursor");
            answer["headers"]["link"].as_str().is_some_and(|link| link.contains(cursor))
        }
        // Whoever deletes it again is told that it is gone.
        "query/delete-alert" => {
            let is_deleted = answer["status"] == 200 && answer["body"]["deleted"] == 1;
            is_deleted || answer["status"] == 404
        }
        "query/issue-token" => {
            let (shown, token) = (&answer["body"], answer["body"]["token"].as_str());
            let hash = TokenHash::of(token.expect("a token"));
            let kept = answer!(home.store.token(&hash));
            let kept = kept.expect("it is kept");
            shown["id"] == kept.hash.short()
                && shown["device"] == "remo-e"
                && shown["expires"] == json!(kept.expires)
        }
        // It asks the table for nothing.
        "registry/own-writes" => home.store.calls() == Calls::default(),
        "registry/poison" => {
            let letters = home.letters.messages();
            let keys = letters.iter().map(|letter| (letter.pk.as_str(), letter.sk.as_str()));
            let poison = BTreeSet::from([
                ("ROOM", "TS#2026-01-11T16:00:00.000Z"),
                ("remo-3", "TS#2026-01-11T16:05:00.000Z"),
                ("remo-3", "TS#2026-01-11T16:06:00.000Z"),
                ("remo-3", "TS#yesterday"),
            ]);
            keys.collect::<BTreeSet<_>>() == poison
        }
        other => panic!("there is no code for {other}"),
    };
    let shown = || format!("{answer}, {:?}, {:?}", home.letters.messages(), home.store.calls());
    (!is_so).then(shown)
}

#[tokio::test]
async fn every_event_is_answered_as_it_should_be_and_again_when_it_is_repeated() {
    let mut failures = Vec::new();
    for case in cases() {
        let home = home();
        for file in &case.before {
            run(&home, file).await;
        }
        let answer = run(&home, case.file).await;
        failures.extend(wrong(&case, &home, &answer).await);

        let before = state(&home).await;
        if case.file == "registry/own-writes" {
            continue; // Its code counts every call.
        }
        let answer = run(&home, case.file).await;
        let again = wrong(&case, &home, &answer).await;
        failures.extend(again.into_iter().map(|failure| format!("said again: {failure}")));
        assert_eq!(state(&home).await, before, "line {}: {} twice", case.line, case.file);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn folder_and_cases_name_the_same_files() {
    let mut found = BTreeSet::new();
    for function in std::fs::read_dir(folder()).expect("the folder") {
        let function = function.expect("an entry").path();
        for file in std::fs::read_dir(&function).expect("one folder a function") {
            let file = file.expect("an entry").path();
            let name = file.strip_prefix(folder()).expect("below the folder");
            let name = name.with_extension("");
            found.insert(name.to_str().expect("UTF-8").to_owned());
        }
    }
    let tested: BTreeSet<String> = cases().iter().map(|case| case.file.to_owned()).collect();
    assert_eq!(found, tested, "left: files, right: cases");
}
