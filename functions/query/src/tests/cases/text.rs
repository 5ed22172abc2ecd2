//! The readings of a line of a case.

use chrono::TimeDelta;

use super::*;

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
