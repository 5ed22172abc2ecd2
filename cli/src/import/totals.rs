//! Adds up the amounts in a CSV's rows to counters, in order of time. Reads no file and sorts nothing.
//!
//! A row has the amount in the place of the counter, or `null` without an amount. If several rows have the same device
//! and time, the last amount counts.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use anyhow::bail;
use domain::Timestamp;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::Value;

use super::columns::Columns;
use super::line::{Line, Lines, Record};
use super::order::owner;
use super::refusals::Refusal;
use super::rows;
use super::sources::Notes;
use super::stored_counter;
use super::timestamp::Interval;
use crate::client::Client;

/// The start value of a total whose first amount has a start time. Not 0, because a counter at 0 takes no part in
/// energy.
pub(super) const BASE: Decimal = Decimal::ONE;
/// The remark if the start of the first amount is unknown.
const NO_BEGINNING: &str = "\
total()      without --interval nothing tells when the first row began, so its amount is in no energy; --interval 15m
             says that each row's time is the beginning of a quarter of an hour";

/// The remark if the table's counters cannot be read.
const UNASKED: &str = "\
total()      the token may not read, so the counters begin at 1 whatever the table has; of several files the energy
             at each seam is wrong";

/// The totals of a file, with the remarks about them.
#[derive(Debug, Clone, Default)]
pub(super) struct Totals {
    devices: BTreeMap<String, Device>,
    rules: Rules,
}

/// The rules for adding up amounts.
#[derive(Debug, Clone, Default)]
struct Rules {
    interval: Interval,
    notes: Notes,
    /// The server whose counters are continued; `None` in a dry run.
    table: Option<Arc<Client>>,
}

/// The total of a metric, at the end of its newest amount.
#[derive(Debug, Clone)]
struct Total {
    at: Timestamp,
    value: Decimal,
}

/// The start value of a total.
struct Base {
    value: Decimal,
    /// Whether the table's value at the start is the end of an earlier amount, for example of the previous file.
    is_stored: bool,
}

/// The totals of a device, and its waiting rows.
#[derive(Debug, Clone, Default)]
struct Device {
    id: String,
    /// The total of each metric; `None` before its first amount.
    totals: BTreeMap<String, Option<Total>>,
    /// The time of the waiting rows, and the time of the rows before. Rows wait because another one may have the same
    /// time.
    at: Option<Timestamp>,
    before: Option<Timestamp>,
    waiting: Vec<Record>,
}

impl Totals {
    /// Makes the totals that the columns ask for.
    pub(super) fn of(columns: &Columns) -> Self {
        let rules = Rules { interval: columns.timestamp.interval, ..Rules::default() };
        let mut totals = Self { rules, ..Self::default() };
        for (id, metric) in columns.shape.totals() {
            let device = totals.devices.entry(id.to_string()).or_default();
            device.id = id.to_string();
            device.totals.insert(metric.to_string(), None);
        }
        totals
    }

    /// Returns whether the start of the first amounts is known.
    pub(super) fn have_beginnings(&self) -> bool {
        !self.is_empty() && self.rules.interval != Interval::default()
    }

    /// Makes the totals continue the table's counters, so that amounts of a month follow those of the month before.
    pub(super) fn continuing(self, client: Arc<Client>) -> anyhow::Result<Self> {
        if !stored_counter::may_read(&client)? {
            self.rules.notes.say(UNASKED.to_owned());
            return Ok(self);
        }
        let rules = Rules { table: Some(client), ..self.rules };
        Ok(Self { rules, ..self })
    }

    /// Fails if the counters of these lines do not fit those of the table. A pipe can be read only once, so there this
    /// check happens at its end.
    pub(super) fn ensure_fit(&self, lines: Lines) -> anyhow::Result<()> {
        let rules = Rules { notes: Notes::default(), ..self.rules.clone() };
        let unheard = Self { devices: self.devices.clone(), rules };
        unheard.add_up(lines).try_for_each(|line| line.map(drop))
    }

    /// Returns whether no metric is a total.
    pub(super) fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// The remarks about the added lines.
    pub(super) const fn notes(&self) -> &Notes {
        &self.rules.notes
    }

    /// Adds up the amounts of lines. The lines of each device must be in order of time.
    pub(super) fn add_up(&self, lines: Lines) -> Lines {
        if self.is_empty() {
            return lines;
        }
        let (mut devices, rules) = (self.devices.clone(), self.rules.clone());
        if rules.interval == Interval::default() {
            rules.notes.say(NO_BEGINNING.to_owned());
        }
        // `None` marks the end, after which no row waits.
        let lines = lines.map(Some).chain([None]);
        Box::new(lines.flat_map(move |line| {
            let mut out = Vec::new();
            let failed = match line {
                None => devices.values_mut().find_map(|device| device.end(&rules, &mut out).err()),
                Some(Ok(line)) => take(line, &mut devices, &rules, &mut out).err(),
                Some(Err(error)) => Some(error),
            };
            out.into_iter().map(Ok).chain(failed.map(Err)).collect::<Vec<_>>()
        }))
    }
}

/// Adds up a line. A line without a total is passed on at once.
fn take(
    line: Line,
    devices: &mut BTreeMap<String, Device>,
    rules: &Rules,
    out: &mut Vec<Line>,
) -> anyhow::Result<()> {
    match (owner(&line), line) {
        ((id, Some(millis)), Line::Reading(record)) if devices.contains_key(&id) => {
            let device = devices.get_mut(&id).expect("it is there");
            let at = Timestamp::from_millis(millis).ok();
            if device.at != at {
                device.add(rules, out)?;
                device.at = at;
            }
            device.waiting.push(record);
        }
        (_, line) => out.push(line),
    }
    Ok(())
}

impl Rules {
    /// Returns the start value of a total. If the table has the counter at `begin` or before, its value is taken, so
    /// that no energy is lost between two files.
    fn base(&self, device: &str, metric: &str, begin: Timestamp) -> anyhow::Result<Base> {
        let new = Base { value: BASE, is_stored: false };
        let Some(table) = &self.table else { return Ok(new) };
        let begin = begin.as_millis();
        let found = stored_counter::last_before(table, device, metric, begin + 1)?;
        let Some((at, value)) = found else { return Ok(new) };
        if at < begin {
            return Ok(Base { value, is_stored: false });
        }

        // A value that is alone, or equal to the one before, is the start of these same amounts, stored by an
        // interrupted import of the same lines.
        let before = stored_counter::last_before(table, device, metric, begin)?;
        let is_stored = before.is_some_and(|(_, before)| before != value);
        Ok(Base { value, is_stored })
    }

    /// Fails if the table has later values of the counter that do not continue from the end of this total.
    fn ensure_continued(&self, device: &str, metric: &str, total: &Total) -> anyhow::Result<()> {
        let Some(table) = &self.table else { return Ok(()) };
        let end = total.at.as_millis();
        let Some((_, later)) = stored_counter::first_from(table, device, metric, end + 1)? else {
            return Ok(());
        };
        let stored =
            stored_counter::first_from(table, device, metric, end)?.filter(|(at, _)| *at == end);
        let fits = match stored {
            Some((_, value)) => value == total.value,
            None => total.value <= later,
        };
        if fits {
            return Ok(());
        }

        let Total { at, value } = total;
        bail!(
            "{metric} of {device} ends at {at} with {value}, and the table has later values, as of a later file, that do \
             not go on from there: the energy at the seam would be wrong. Import files in the order of their time; \
             `roomtide delete readings {device} --from {at} --to now` deletes the later ones, whose files are imported after this one"
        )
    }
}

impl Device {
    /// Adds the last rows.
    fn end(&mut self, rules: &Rules, out: &mut Vec<Line>) -> anyhow::Result<()> {
        self.add(rules, out)?;
        for (metric, total) in &self.totals {
            let Some(total) = total else { continue };
            rules.ensure_continued(&self.id, metric, total)?;
        }
        Ok(())
    }

    /// Adds the amounts of the waiting rows, and passes these rows on.
    fn add(&mut self, rules: &Rules, out: &mut Vec<Line>) -> anyhow::Result<()> {
        let Rules { interval, notes, .. } = rules;
        let mut rows = mem::take(&mut self.waiting);
        let Some((at, last)) = self.at.zip(rows.last()) else { return Ok(()) };
        let begin = interval.begin(at).max(self.before.unwrap_or(Timestamp::MIN));
        let has_beginning = *interval != Interval::default();
        let (line, last) = (last.line, last.json.clone());
        let mut firsts = Vec::new();
        let mut refused = Vec::new();
        for (name, total) in &mut self.totals {
            let amounts: Vec<&str> = rows.iter().filter_map(|row| value(&row.json, name)).collect();
            let empty = amounts.iter().filter(|amount| **amount == rows::NO_AMOUNT).count();
            notes.leave_out_many(&format!("rows without an amount of {name}"), empty as u64);
            let replaced = (amounts.len() - empty).saturating_sub(1);
            notes.leave_out_many("rows of a time that a later line has too", replaced as u64);
            let amount = amounts.iter().rev().find_map(|amount| amount.parse::<Decimal>().ok());
            let before = match total {
                Some(total) => Base { value: total.value, is_stored: true },
                None if has_beginning && amount.is_some() => rules.base(&self.id, name, begin)?,
                None => Base { value: Decimal::ZERO, is_stored: true },
            };
            let after = match amount.map(|amount| before.value.checked_add(amount)) {
                Some(Some(value)) => {
                    if !before.is_stored {
                        firsts.push((name.clone(), before.value.normalize().to_string()));
                    }
                    *total = Some(Total { at, value });
                    Some(value.normalize().to_string())
                }
                Some(None) => {
                    let reason = format!("{name}: the total is too large, over 28 digits");
                    refused.push(Line::Refused(Refusal { line, reason }));
                    None
                }
                None => None,
            };
            rows.iter_mut().for_each(|row| set(&mut row.json, name, after.as_deref()));
        }
        // Without this reading, the first interval's amount would have no start.
        if let (false, Ok(Place { device_id, room })) =
            (firsts.is_empty(), serde_json::from_str(&last))
        {
            let json = rows::json(begin, &device_id, &room, &firsts);
            out.push(Line::Reading(Record { line, json }));
        }
        out.extend(refused);
        let rows = rows.into_iter().filter(|row| has_metric(&row.json));
        out.extend(rows.map(Line::Reading));
        self.before = Some(at);
        Ok(())
    }
}

/// The device and the room of a reading.
#[derive(Deserialize)]
struct Place {
    device_id: String,
    #[serde(default)]
    room: String,
}

/// The position of a metric's value in a row's JSON. Within a string, the quotes of the name would be escaped.
fn place(json: &str, name: &str) -> Option<(usize, usize, usize)> {
    let member = format!(",\"{name}\":");
    let begin = json.find(&member)?;
    let value = begin + member.len();
    let end = value + json[value..].find([',', '}'])?;
    Some((begin, value, end))
}

fn value<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    place(json, name).map(|(_, value, end)| &json[value..end])
}

/// Replaces the value of a metric, or removes the metric.
fn set(json: &mut String, name: &str, new: Option<&str>) {
    match (place(json, name), new) {
        (Some((_, value, end)), Some(new)) => json.replace_range(value..end, new),
        (Some((begin, _, end)), None) => json.replace_range(begin..end, ""),
        (None, _) => {}
    }
}

fn has_metric(json: &str) -> bool {
    let members: serde_json::Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
    members.keys().any(|name| !["timestamp", "device_id", "room"].contains(&&**name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::columns::{Shape, TimestampColumn};
    use crate::import::text_lines::TextLines;
    use crate::import::{csv_lines, order, source};

    use indicatif::ProgressBar;
    use std::io::Cursor;
    use std::path::Path;

    /// Imports rows in any order, with the metrics of a device `m`. Returns its readings as times and members, what is
    /// refused, and what is said.
    fn read(interval: &str, metrics: &[&str], rows: &[&str]) -> (Vec<String>, String) {
        let timestamp = TimestampColumn {
            name: "at".to_owned(),
            interval: interval.parse().unwrap_or_default(),
            ..TimestampColumn::default()
        };
        let metrics: Vec<String> = metrics.iter().map(|it| (*it).to_owned()).collect();
        let shape = Shape::long(Some("m"), "", None, &metrics).unwrap();
        let columns = Columns { timestamp, shape, decimal_comma: false };
        let text = format!("at,A,B\n{}\n", rows.join("\n"));
        let totals = Totals::of(&columns);
        let open = || {
            let lines = TextLines::new(Cursor::new(text.clone().into_bytes()));
            let lines = source::rows(lines, &columns)?;
            Ok((lines, ProgressBar::hidden()))
        };
        let (lines, _) = order::lines(Path::new("-"), !totals.is_empty(), open).unwrap();
        let shown = totals.add_up(lines).map(|line| match line.unwrap() {
            Line::Reading(record) => {
                let (_, rest) = record.json.split_once("2026-01-11T").unwrap();
                rest.replace(":00.000Z\",\"device_id\":\"m\",", " ").replace(['"', '}'], "")
            }
            Line::Refused(refusal) => refusal.to_string(),
        });
        let readings = shown.collect();
        (readings, totals.notes().to_string())
    }

    const ROWS: [&str; 3] =
        ["2026-01-11T10:00:00Z,1,0.5", "2026-01-11T10:15:00Z,2,", "2026-01-11T10:30:00Z,4,8"];

    #[test]
    fn amounts_are_added_in_the_order_of_time_whatever_that_of_the_file() {
        let expected = ["10:00 k:1", "10:15 k:2,t:1", "10:30 k:4,t:2", "10:45 k:8,t:4"];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let rows = order.map(|n| ROWS[n]);
            assert_eq!(
                read("15m", &["k=total(A)", "t=A"], &rows),
                (expected.map(str::to_owned).to_vec(), String::new())
            );
        }
    }

    #[test]
    fn of_rows_of_one_time_the_last_amount_counts() {
        let rows = [ROWS[0], "2026-01-11T10:15:00Z,7,", ROWS[1], "2026-01-11T10:15:00Z,,", ROWS[2]];
        let (readings, said) = read("15m", &["k=total(A)"], &rows);
        assert_eq!(
            readings,
            ["10:00 k:1", "10:15 k:2", "10:30 k:4", "10:30 k:4", "10:30 k:4", "10:45 k:8"]
        );
        assert_eq!(
            said,
            "left out     1 rows of a time that a later line has too\nleft out     1 rows without an amount of k"
        );
    }

    #[test]
    fn an_empty_part_is_nothing_and_a_row_without_a_part_is_counted() {
        let rows = [ROWS[0], ROWS[1], "2026-01-11T10:20:00Z,,", ROWS[2]];
        let (readings, said) = read("", &["k=total(A+B)*2", "both=A+B"], &rows);
        assert_eq!(readings, ["10:00 k:3,both:1.5", "10:15 k:7", "10:30 k:31,both:12"]);
        assert!(
            said.contains("without --interval")
                && said.ends_with("left out     1 rows without an amount of k"),
            "{said}"
        );
    }

    #[test]
    fn a_counter_begins_with_its_own_first_amount() {
        let (readings, _) = read(
            "10m",
            &["a=total(A)", "b=total(B)"],
            &["2026-01-11T10:00:00Z,1,", "2026-01-11T10:30:00Z,1,1", "2026-01-11T10:35:00Z,,1"],
        );
        assert_eq!(readings, ["10:00 a:1", "10:10 a:2", "10:30 b:1", "10:40 a:3,b:2", "10:45 b:3"]);
    }

    #[test]
    fn a_total_that_is_too_large_is_refused_by_its_line() {
        let largest = Decimal::MAX;
        let rows = [
            &format!("2026-01-11T10:00:00Z,{largest},"),
            &format!("2026-01-11T10:15:00Z,{largest},"),
            "2026-01-11T10:30:00Z,-1,",
        ];
        let (readings, _) = read("", &["k=total(A)"], &rows);
        let expected = [
            "10:00 k:79228162514264337593543950335",
            "line 3: k: the total is too large, over 28 digits",
            "10:30 k:79228162514264337593543950334",
        ];
        assert_eq!(readings, expected);
    }

    #[test]
    fn both_hours_that_the_clock_shows_twice_may_have_the_same_amount() {
        let columns = Columns {
            timestamp: TimestampColumn {
                zone: Some("Europe/Berlin".parse().unwrap()),
                ..TimestampColumn::default()
            },
            shape: Shape::wide(&["m:k=total(A)"]).unwrap(),
            decimal_comma: false,
        };
        let text = "timestamp,A\n2026-10-25 01:00,1\n2026-10-25 02:00,1\n2026-10-25 02:00,1\n2026-10-25 03:00,1\n";
        let lines = csv_lines(text.as_bytes(), &columns).unwrap();
        let readings: Vec<_> = lines
            .map(|line| line.unwrap())
            .filter(|line| matches!(line, Line::Reading(_)))
            .collect();
        assert_eq!(readings.len(), 4, "{readings:?}");
    }
}
