//! Adds up the amounts in a CSV's rows to counters, in order of time. Reads no file and sorts nothing.
//!
//! A row has the amount in the place of the counter, or `null` without an amount. If several rows have the same device
//! and time, the last amount counts.

use std::collections::{BTreeMap, VecDeque};
use std::iter::Peekable;
use std::sync::Arc;

use anyhow::bail;
use domain::Timestamp;
use rust_decimal::Decimal;

use super::columns::Columns;
use super::rows::{self, CsvRow};
use super::timestamp::RowInterval;
use crate::csv;
use crate::line::Line;
use crate::made_counters::{Begin, MadeCounter, MadeCounters, StoredCounters};
use crate::notes::Notes;
use crate::refusals::Refusal;

/// The start value of a total whose first amount has a start time. Not 0, because a counter at 0 takes no part in
/// energy.
pub const BASE: Decimal = Decimal::ONE;
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
pub struct Totals {
    devices: BTreeMap<String, DeviceTotals>,
    rules: Rules,
}

/// The rules for adding up amounts.
#[derive(Debug, Clone, Default)]
struct Rules {
    interval: RowInterval,
    notes: Notes,
    /// The server whose counters are continued; `None` in a dry run.
    table: Option<Arc<dyn StoredCounters + Send + Sync>>,
    /// The totals that continue the table's counters.
    made: MadeCounters,
}

/// The total of a metric, at the end of its newest amount.
#[derive(Debug, Clone)]
struct Total {
    begin: Begin,
    at: Timestamp,
    value: Decimal,
}

/// The start value of a total.
struct Base {
    begin: Begin,
    value: Decimal,
    /// Whether the table's value at the start is the end of an earlier amount, for example of the previous file.
    is_stored: bool,
}

/// The totals of a device.
#[derive(Debug, Clone, Default)]
struct DeviceTotals {
    /// The total of each metric; `None` before its first amount.
    totals: BTreeMap<String, Option<Total>>,
    /// The time of the newest rows.
    newest: Option<Timestamp>,
}

/// Lines whose amounts are added up.
struct AddedUp<I: Iterator<Item = anyhow::Result<Line>>> {
    lines: Peekable<I>,
    totals: Totals,
    /// The device of the newest rows.
    device: String,
    ready: VecDeque<Line>,
    now: Timestamp,
}

impl Totals {
    /// Makes the totals that the columns ask for.
    pub fn of(columns: &Columns) -> Self {
        let rules = Rules { interval: columns.timestamp.interval, ..Rules::default() };
        let mut totals = Self { rules, ..Self::default() };
        for (id, metric) in columns.shape.totals() {
            let device = totals.devices.entry(id.to_string()).or_default();
            device.totals.insert(metric.to_string(), None);
        }
        totals
    }

    /// Makes the totals continue the table's counters, so that amounts of a month follow those of the month before.
    pub fn continuing(self, table: Arc<dyn StoredCounters + Send + Sync>) -> anyhow::Result<Self> {
        if !table.may_read()? {
            self.rules.notes.say(UNASKED.to_owned());
            return Ok(self);
        }
        let rules = Rules { table: Some(table), ..self.rules };
        Ok(Self { rules, ..self })
    }

    /// Fails if the counters of these lines do not continue those of the table. A file is read once for this check
    /// alone. A pipe can be read only once, so only [`add_up`](Self::add_up) checks its counters.
    pub fn ensure_fit(
        &self,
        lines: impl Iterator<Item = anyhow::Result<Line>>,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        let (notes, made) = (Notes::default(), MadeCounters::default());
        let rules = Rules { notes, made, ..self.rules.clone() };
        let unheard = Self { devices: self.devices.clone(), rules };
        unheard.add_up(lines, now).try_for_each(|line| line.map(drop))
    }

    /// Returns whether no metric is a total.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// The remarks about the added lines.
    pub const fn notes(&self) -> &Notes {
        &self.rules.notes
    }

    /// The totals that continue the table's counters, each when its last line is added.
    pub const fn made(&self) -> &MadeCounters {
        &self.rules.made
    }

    /// Adds up the amounts of rows, which are sorted by device and time, and decodes them at `now`. Other lines pass.
    pub fn add_up<'a>(
        self,
        lines: impl Iterator<Item = anyhow::Result<Line>> + 'a,
        now: Timestamp,
    ) -> Box<dyn Iterator<Item = anyhow::Result<Line>> + 'a> {
        if self.is_empty() {
            return Box::new(lines);
        }
        let (lines, ready) = (lines.peekable(), VecDeque::new());
        Box::new(AddedUp { lines, totals: self, device: String::new(), ready, now })
    }
}

impl<I: Iterator<Item = anyhow::Result<Line>>> AddedUp<I> {
    /// Adds up the amounts of the rows of the next device and time. Returns `false` at the end of the lines.
    fn advance(&mut self) -> anyhow::Result<bool> {
        let rows = self.next_rows()?;
        let next = rows.first().map(|row| row.device.clone()).unwrap_or_default();

        let Totals { devices, rules } = &mut self.totals;
        if next != self.device {
            let ended = std::mem::replace(&mut self.device, next);
            devices.get(&ended).map_or(Ok(()), |device| device.end(&ended, rules))?;
        }

        let is_end = rows.is_empty();
        let rows = match devices.get_mut(&self.device) {
            Some(device) => device.add(rows, rules, &mut self.ready)?,
            None => rows,
        };
        self.ready.extend(rows.iter().map(|row| csv::row_line(row, self.now)));
        Ok(!is_end || !self.ready.is_empty())
    }

    /// Takes the rows of one device and time. Other lines before them become ready.
    fn next_rows(&mut self) -> anyhow::Result<Vec<CsvRow>> {
        let mut rows: Vec<CsvRow> = Vec::new();
        let is_next = |line: &anyhow::Result<Line>, rows: &[CsvRow]| match (line, rows.last()) {
            (Ok(Line::Row(row)), Some(last)) => row.device == last.device && row.at == last.at,
            (Ok(_), Some(_)) => false,
            (Err(_), _) | (_, None) => true,
        };

        while let Some(line) = self.lines.next_if(|line| is_next(line, &rows)) {
            match line? {
                Line::Row(row) => rows.push(row),
                line => self.ready.push_back(line),
            }
        }

        Ok(rows)
    }
}

impl<I: Iterator<Item = anyhow::Result<Line>>> Iterator for AddedUp<I> {
    type Item = anyhow::Result<Line>;

    fn next(&mut self) -> Option<anyhow::Result<Line>> {
        while self.ready.is_empty() {
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

impl Rules {
    /// Returns the start value of a total. If the table has the counter at `begin` or before, its value is taken, so
    /// that no energy is lost between two files.
    fn base(&self, device: &str, metric: &str, begin: Timestamp) -> anyhow::Result<Base> {
        if self.interval == RowInterval::default() {
            return self.base_without_beginning(device, metric, begin);
        }

        let at = begin.as_millis();
        let found = match &self.table {
            Some(table) => table.last_before(device, metric, at + 1)?,
            None => None,
        };
        let (Some(table), Some((_, value))) = (&self.table, found.filter(|found| found.0 == at))
        else {
            let value = found.map_or(BASE, |(_, value)| value);
            return Ok(Base { begin: Begin { at, before: found }, value, is_stored: false });
        };

        let before = table.last_before(device, metric, at)?;
        if let Some((_, before)) = before.filter(|(_, before)| *before > value) {
            bail!(
                "{metric} of {device} falls at {begin} from {before} to {value}, as after an earlier import of this file \
                 that did not go on from there: the energy at the seam is wrong. Take that import back, or delete its \
                 readings, and import the file again"
            );
        }

        // A value that is alone, or equal to the one before, is the start of these same amounts, stored by an
        // interrupted import of the same lines.
        let is_stored = before.is_some_and(|(_, before)| before != value);
        Ok(Base { begin: Begin { at, before }, value, is_stored })
    }

    /// Returns the start value of a total whose first amount has no known start. The amount counts from the table's
    /// last value on; without such a value, the amount is in no energy.
    fn base_without_beginning(
        &self,
        device: &str,
        metric: &str,
        row: Timestamp,
    ) -> anyhow::Result<Base> {
        let at = row.as_millis();
        let before = match &self.table {
            Some(table) => table.last_before(device, metric, at)?,
            None => None,
        };
        if before.is_none() {
            self.notes.say_once(NO_BEGINNING);
        }

        let value = before.map_or(Decimal::ZERO, |(_, value)| value);
        Ok(Base { begin: Begin { at, before }, value, is_stored: true })
    }
}

impl DeviceTotals {
    /// Notes the totals as made. Fails if they do not fit the table's later values.
    fn end(&self, id: &str, rules: &Rules) -> anyhow::Result<()> {
        let Some(table) = &rules.table else { return Ok(()) };
        for (metric, total) in &self.totals {
            let Some(Total { begin, at, value }) = total.clone() else { continue };
            let mend = format!(
                "Import files in the order of their time; `roomtide delete readings {id} --from {at} --to now` deletes the \
                 later ones, whose files are imported after this one"
            );
            let (device, metric) = (id.to_owned(), metric.clone());
            let made = MadeCounter { device, metric, begin, end: at, value, mend };
            if let Some(misfit) = made.misfit_after(&**table)? {
                bail!(misfit);
            }
            rules.made.add_all([made]);
        }
        Ok(())
    }

    /// Adds the amounts of rows of one time. Returns the rows with totals in the place of amounts. A row with the start
    /// values of new totals comes before them.
    fn add(
        &mut self,
        mut rows: Vec<CsvRow>,
        rules: &Rules,
        refused: &mut VecDeque<Line>,
    ) -> anyhow::Result<Vec<CsvRow>> {
        let Rules { interval, notes, .. } = rules;
        let Some(last) = rows.last().cloned() else { return Ok(rows) };
        let begin = interval.begin(last.at).max(self.newest.unwrap_or(Timestamp::MIN));
        let mut beginning = CsvRow { at: begin, metrics: Vec::new(), ..last.clone() };

        for (name, total) in &mut self.totals {
            let amounts: Vec<&str> = rows.iter().filter_map(|row| row.value(name)).collect();
            let empty = amounts.iter().filter(|amount| **amount == rows::NO_AMOUNT).count();
            notes.leave_out_many(&format!("rows without an amount of {name}"), empty as u64);
            let replaced = (amounts.len() - empty).saturating_sub(1);
            notes.leave_out_many("rows of a time that a later line has too", replaced as u64);

            let amount = amounts.iter().rev().find_map(|amount| amount.parse::<Decimal>().ok());
            let mut shown = None;
            if let Some(amount) = amount {
                let base = match total {
                    Some(total) => Base { begin: total.begin, value: total.value, is_stored: true },
                    None => rules.base(&last.device, name, begin)?,
                };
                if let Some(value) = base.value.checked_add(amount) {
                    if !base.is_stored {
                        // Without this reading, the first interval's amount would have no start.
                        beginning.metrics.push((name.clone(), base.value.normalize().to_string()));
                    }
                    shown = Some(value.normalize().to_string());
                    *total = Some(Total { begin: base.begin, at: last.at, value });
                } else {
                    let reason = format!("{name}: the total is too large, over 28 digits");
                    refused.push_back(Line::Refused(Refusal { line: last.line, reason }));
                }
            }

            rows.iter_mut().for_each(|row| row.set(name, shown.as_deref()));
        }

        self.newest = Some(last.at);
        rows.insert(0, beginning);
        rows.retain(|row| !row.metrics.is_empty());
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::columns::{Shape, TimestampColumn};
    use crate::reading;
    use crate::text_lines::TextLines;

    use std::io::Cursor;

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
        let lines =
            csv::read(TextLines::new(Cursor::new(text.into_bytes())), &columns, Timestamp::MAX);
        let lines = lines.unwrap();
        let mut lines: Vec<Line> = lines.collect::<anyhow::Result<_>>().unwrap();
        lines.sort_by_key(Line::owner);
        let shown =
            totals.clone().add_up(lines.into_iter().map(Ok), Timestamp::MAX).map(|line| match line
                .unwrap()
            {
                Line::Reading(read) => {
                    let json = reading::json(&read.reading);
                    let (_, rest) = json.split_once("2026-01-11T").unwrap();
                    rest.replace(":00.000Z\",", " ").replace(['"', '}'], "")
                }
                Line::Refused(refusal) => refusal.to_string(),
                line => panic!("{line:?}"),
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
        let refused = "line 3: both: B is empty, so there is no sum";
        assert_eq!(readings, [refused, "10:00 both:1.5,k:3", "10:15 k:7", "10:30 both:12,k:31"]);
        assert!(
            said.contains("without --interval")
                && said.ends_with("left out     1 rows without an amount of k"),
            "{said}"
        );
    }

    /// A table that has a value of every counter, at one time.
    #[derive(Debug)]
    struct TableWith(i64, Decimal);

    impl StoredCounters for TableWith {
        fn may_read(&self) -> anyhow::Result<bool> {
            Ok(true)
        }

        fn last_before(&self, _: &str, _: &str, to: i64) -> anyhow::Result<Option<(i64, Decimal)>> {
            Ok(Some((self.0, self.1)).filter(|(at, _)| *at < to))
        }

        fn first_from(
            &self,
            _: &str,
            _: &str,
            from: i64,
        ) -> anyhow::Result<Option<(i64, Decimal)>> {
            Ok(Some((self.0, self.1)).filter(|(at, _)| *at >= from))
        }
    }

    #[test]
    fn without_an_interval_a_file_goes_on_from_what_the_table_has_before_it() {
        let columns =
            Columns { shape: Shape::wide(&["m:k=total(A)"]).unwrap(), ..Columns::default() };
        let counters_after = |stored: &str| {
            let at = Timestamp::parse_absolute(stored).unwrap();
            let table = Arc::new(TableWith(at.as_millis(), Decimal::TEN));
            let totals = Totals::of(&columns).continuing(table).unwrap();
            let text = "timestamp,A\n2026-01-11T10:00:00Z,2\n2026-01-11T10:15:00Z,3\n";
            let lines =
                csv::read(TextLines::new(text.as_bytes()), &columns, Timestamp::MAX).unwrap();
            let counters = totals.clone().add_up(lines, Timestamp::MAX).map(|line| {
                let Line::Reading(read) = line? else { panic!("a reading") };
                anyhow::Ok(reading::json(&read.reading))
            });
            let counters = counters.collect::<anyhow::Result<Vec<String>>>();
            (counters.map_err(|error| error.to_string()), totals.notes().to_string())
        };

        let (counters, said) = counters_after("2026-01-10T00:00:00Z");
        let counters = counters.unwrap();
        assert!(counters[0].contains("\"k\":12") && counters[1].contains("\"k\":15"));
        assert_eq!(said, "", "the amount of the first row reaches from the file before");

        // Another run of the same file.
        let (counters, said) = counters_after("2026-01-11T10:00:00Z");
        assert!(counters.unwrap()[0].contains("\"k\":2"));
        assert_eq!(said, NO_BEGINNING);
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
            "2026-01-11T10:30:00Z,0,",
        ];
        let (readings, _) = read("", &["k=total(A)"], &rows);
        let expected = [
            "10:00 k:79228162514264337593543950335",
            "line 3: k: the total is too large, over 28 digits",
            "10:30 k:79228162514264337593543950335",
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
        let lines = csv::read(TextLines::new(text.as_bytes()), &columns, Timestamp::MAX).unwrap();
        let lines = Totals::of(&columns).add_up(lines, Timestamp::MAX);
        let readings: Vec<_> = lines
            .map(|line| line.unwrap())
            .filter(|line| matches!(line, Line::Reading(_)))
            .collect();
        assert_eq!(readings.len(), 4, "{readings:?}");
    }
}
