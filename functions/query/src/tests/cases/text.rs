//! Texts of cases: what is in a line, without what it does.

use std::path::{Path, PathBuf};

use chrono::TimeDelta;

use super::*;

/// A line, with its number.
pub(super) struct Line {
    pub number: usize,
    pub text: String,
}

/// What is done, and what its answer has.
pub(super) struct Step {
    pub line: Line,
    pub expected: Vec<Line>,
}

pub(super) struct Case {
    pub sentence: String,
    pub steps: Vec<Step>,
}

pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/cases")
}

pub(super) fn read(name: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(folder().join(format!("{name}.txt"))).expect(name);
    let mut cases: Vec<Case> = Vec::new();
    for (number, text) in (1..).zip(text.lines()) {
        if text.is_empty() || text.starts_with("//") {
            continue;
        }
        if let Some(sentence) = text.strip_prefix("# ") {
            cases.push(Case { sentence: sentence.to_owned(), steps: Vec::new() });
            continue;
        }

        let steps = &mut cases.last_mut().expect("a sentence is first").steps;
        let line = Line { number, text: with_times(text.trim_start()) };
        let indent = text.len() - text.trim_start().len();
        match (indent, steps.last_mut()) {
            (0, _) => steps.push(Step { line, expected: Vec::new() }),
            (4, Some(step)) => step.expected.push(line),
            (8, Some(step)) => {
                let above = step.expected.last_mut().unwrap_or(&mut step.line);
                above.text = format!("{} {}", above.text, line.text);
            }
            _ => panic!("{name}.txt:{number}: is indented by {indent}"),
        }
    }
    cases
}

/// A text with whole timestamps in the place of `@16:05`.
fn with_times(text: &str) -> String {
    let mut parts = text.split('@');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let length = part.find(|c: char| !matches!(c, '0'..='9' | ':' | 'T' | '.'));
        let time = part[..length.unwrap_or(part.len())].trim_end_matches([':', '.']);
        let rest = &part[time.len()..];
        if !time.contains(':') {
            whole.extend(["@", part]);
            continue;
        }
        let (day, time) = time.split_once('T').unwrap_or(("11", time));
        let seconds = if time.len() == 5 { ":00" } else { "" };
        let time = given::at(&format!("2026-01-{day}T{time}{seconds}Z"));
        whole.extend([&time.to_string(), rest]);
    }
    whole
}

/// The name and the value of the header with which a text begins, and the rest.
pub(super) fn header(text: &str) -> Option<(&str, &str, &str)> {
    let (header, rest) = text.strip_prefix('[')?.split_once(']')?;
    let (name, value) = header.split_once(": ")?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    is_name.then(|| (name, value, rest.trim_start()))
}

pub(super) fn duration(text: &str) -> TimeDelta {
    let (number, unit) = text.split_at(text.len() - 1);
    let number: i64 = number.parse().expect(text);
    match unit {
        "s" => TimeDelta::seconds(number),
        "m" => TimeDelta::minutes(number),
        "h" => TimeDelta::hours(number),
        "d" => TimeDelta::days(number),
        _ => panic!("{text} is no duration"),
    }
}

/// The readings of a line that has some.
pub(super) fn readings(text: &str) -> Option<Vec<Reading>> {
    let mut words = text.split(' ');
    let (devices, room) = (words.next()?, words.next()?);
    let at = Timestamp::parse_absolute(words.next()?).ok()?;
    let every = text.contains(" every ").then(|| words.nth(1).expect("a duration"));
    let every = every.map_or(TimeDelta::zero(), duration);

    let columns = words.map(|word| word.split_once('=').expect(text));
    let columns: Vec<(&str, Vec<String>)> =
        columns.map(|(metric, list)| (metric, values(list))).collect();
    let rows = columns.iter().map(|(_, values)| values.len()).max().expect("a metric");

    let mut readings = Vec::new();
    for device in ids(devices) {
        let mut at = at;
        for row in 0..rows {
            let cells = columns.iter().filter_map(|(metric, values)| {
                let value = if values.len() == 1 { values.first() } else { values.get(row) };
                Some((*metric, value.filter(|value| !value.is_empty())?.as_str()))
            });
            let cells: Vec<(&str, &str)> = cells.collect();
            if !cells.is_empty() {
                readings.push(given::reading(&device, at, (room != "-").then_some(room), &cells));
            }
            at = at.saturating_add(every);
        }
    }
    Some(readings)
}

/// The ids of `d00..99`, or the one that a text is.
fn ids(text: &str) -> Vec<String> {
    let Some((first, last)) = text.split_once("..") else { return vec![text.to_owned()] };
    let (name, number) = first.split_at(first.find(|c: char| c.is_ascii_digit()).expect(text));
    numbers(number, last).into_iter().map(|number| format!("{name}{number}")).collect()
}

/// The values of a list. Those that are missing are empty.
fn values(list: &str) -> Vec<String> {
    let mut values = Vec::new();
    for item in list.split(',') {
        if let Some((value, times)) = item.split_once('*') {
            values.extend(vec![value.to_owned(); times.parse().expect(item)]);
        } else if let Some((first, last)) = item.split_once("..") {
            values.extend(numbers(first, last));
        } else {
            values.push(item.to_owned());
        }
    }
    values
}

/// The numbers from one to another by their last digit, or by so much of it as is behind a slash.
fn numbers(first: &str, last: &str) -> Vec<String> {
    let (last, step) = last.split_once('/').unwrap_or((last, "1"));
    let decimals = first.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let digits = |text: &str| text.replace('.', "");
    let whole = |text: &str| digits(text).parse::<u64>().expect(text);
    let numbers = (whole(first)..=whole(last)).step_by(step.parse().expect(step));

    let shown = |number: u64| {
        let mut shown = format!("{number:0>0$}", digits(first).len());
        if decimals > 0 {
            shown.insert(shown.len() - decimals, '.');
        }
        shown
    };
    numbers.map(shown).collect()
}
