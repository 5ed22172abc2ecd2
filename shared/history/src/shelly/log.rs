//! The rows of a log in order of time, and the counters at each row. Sends no request.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::ops::Range;
use std::str::FromStr as _;

use anyhow::{Context as _, bail, ensure};
use chrono::NaiveDateTime;
use domain::{DeviceId, Timestamp};
use rust_decimal::Decimal;

use super::columns::{Columns, LoggedKind, LoggedMetric};
use crate::csv::totals::BASE;
use crate::made_counters::{Begin, MadeCounter, MadeCounters};
use crate::notes::Notes;
use crate::point::{DEVICE_TAG, Point, Way};
use crate::source::HistorySource;
use crate::text_lines::TextLines;
use crate::units::SeriesUnits;

/// A second in nanoseconds.
const SECOND: i64 = 1_000_000_000;
/// The valid times of a meter, in seconds. Before its clock is set, a meter counts from 1970.
const TIMES: Range<i64> = 1_000_000_000..5_000_000_000;
/// The maximum number in a cell, 10^15. No meter reaches it, and the sum of all rows never overflows.
const MAX_CELL: Decimal = Decimal::from_parts(2_764_472_320, 232_830, 0, false, 0);
/// The usual interval in seconds: in later generations, and in the first.
const INTERVALS: [i64; 2] = [60, 600];

/// The log of a meter.
#[derive(Debug)]
pub struct Log {
    device: DeviceId,
    columns: Columns,
    /// The rows by start time in seconds: the line number, and the value of each metric.
    rows: BTreeMap<i64, (u64, Vec<Option<Decimal>>)>,
    interval: i64,
    notes: Notes,
}

/// The points of a metric.
#[derive(Debug)]
struct MeterSeries {
    metric: LoggedMetric,
    /// A point without time and value.
    head: Point,
    /// The counter at the end of the newest amount.
    total: Decimal,
    has_begun: bool,
}

/// A meter's counters in the table. Times are in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Anchors {
    /// By device and metric, a time and the counter's value then.
    pub counters: BTreeMap<(String, String), (i64, Decimal)>,
    /// By device and metric, the last value before the log's first value, and its time.
    pub before: BTreeMap<(String, String), (i64, Decimal)>,
    /// The time since when the meter itself sends.
    pub live: Option<i64>,
    /// The time from which on values are imported.
    pub from: i64,
}

impl Log {
    /// Reads a log of this device.
    pub fn read(mut lines: TextLines<impl BufRead>, device: DeviceId) -> anyhow::Result<Self> {
        let notes = Notes::default();
        lines.read()?;
        let header = String::from_utf8_lossy(&lines.text).trim().to_owned();
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
        let columns = Columns::of(&names).context("this is not the log of a Shelly meter")?;

        let mut rows = BTreeMap::new();
        while let Some(line) = lines.read()? {
            let text = match line {
                Ok(()) => String::from_utf8_lossy(&lines.text).trim().to_owned(),
                Err(refusal) => {
                    notes.refuse(refusal.line, refusal.reason);
                    continue;
                }
            };

            // The file may be several logs one after the other, each with its header.
            if text.is_empty() || text == header {
                continue;
            }

            match row(&text, names.len(), &columns) {
                Ok((begin, values)) => {
                    if rows.insert(begin, (lines.line, values)).is_some() {
                        notes.leave_out("rows of a time that a later line has too");
                    }
                }
                Err(why) => notes.refuse(lines.line, why),
            }
        }

        ensure!(!rows.is_empty(), "the log has no row that can be read");
        let usual = INTERVALS[usize::from(columns.is_first_generation)];
        let interval = most_frequent_step(rows.keys(), usual);

        if !columns.left_out.is_empty() {
            notes.leave_out_many(
                &format!(
                    "columns that the meter's status does not have: {}",
                    columns.left_out.join(", ")
                ),
                columns.left_out.len() as u64,
            );
        }

        Ok(Self { device, columns, rows, interval, notes })
    }

    /// Returns the ends of the rows, in milliseconds and in order.
    pub fn ends(&self) -> Vec<i64> {
        self.rows.keys().map(|begin| (begin + self.interval) * 1_000).collect()
    }

    /// Returns the time of the first value from a time on, in milliseconds. A log has a value at the begin of its first
    /// row and at the end of each row.
    pub fn first_from(&self, from: i64) -> Option<i64> {
        let begin = self.rows.keys().next().map(|begin| begin * 1_000);
        begin.into_iter().chain(self.ends()).find(|at| *at >= from)
    }

    /// Returns the counters, each as its device and metric.
    pub fn counters(&self) -> Vec<(String, String)> {
        let counters =
            self.columns.metrics.iter().filter(|metric| metric.kind == LoggedKind::Amount);
        counters.map(|metric| self.counter_of(metric)).collect()
    }

    /// Returns the device and the name of a metric.
    fn counter_of(&self, metric: &LoggedMetric) -> (String, String) {
        (self.device_of(metric), metric.name.clone())
    }

    fn device_of(&self, metric: &LoggedMetric) -> String {
        match &metric.part {
            Some(part) => format!("{}:{part}", self.device),
            None => self.device.to_string(),
        }
    }

    /// Returns the sum of the amounts of the metric at an index until a time, in kWh. An interval that has begun counts
    /// in proportion.
    fn total_at(&self, index: usize, millis: i64) -> Decimal {
        let mut total = Decimal::ZERO;
        for (begin, (_, values)) in &self.rows {
            let passed = (millis - begin * 1_000).clamp(0, self.interval * 1_000);
            if passed == 0 {
                break;
            }
            let share = Decimal::from(passed) / Decimal::from(self.interval * 1_000);
            total += values[index].unwrap_or_default() * share;
        }
        kilo(total)
    }

    /// Returns the points: at the end of each interval the counters, shifted to fit `anchors`, and the means.
    ///
    /// From the time on when the meter itself sends, the rows are left out. Fails if a counter begins below zero.
    pub fn source(self, anchors: &Anchors) -> anyhow::Result<HistorySource> {
        let (units, made) = (SeriesUnits::default(), MadeCounters::default());
        let mut all = Vec::with_capacity(self.columns.metrics.len());
        for (index, metric) in self.columns.metrics.iter().enumerate() {
            let series = self.series_of(index, metric, anchors);
            if metric.kind == LoggedKind::Amount {
                self.ensure_above_zero(index, &series, anchors)?;
                made.add_all(self.made(index, &series, anchors));
            }
            let (unit, is_counter) = match metric.kind {
                LoggedKind::Amount => ("kWh", true),
                LoggedKind::Mean(unit) => (unit, false),
            };
            units.know(series.head.series(), unit, is_counter);
            all.push(series);
        }

        let (notes, told, live) = (self.notes.clone(), self.notes, anchors.live);
        let points = self.rows.into_iter().flat_map(move |(begin, (line, values))| {
            let end = begin + self.interval;
            let mut points = Vec::with_capacity(all.len());
            if live.is_some_and(|live| end * 1_000 > live) {
                told.leave_out("rows of the time since when the meter itself sends");
                return points;
            }

            for (series, value) in all.iter_mut().zip(values) {
                series.head.line = line;
                value.into_iter().for_each(|value| series.add(begin..end, value, &mut points));
            }
            points
        });
        Ok(HistorySource { units, made, ..HistorySource::of_points(Box::new(points), notes) })
    }

    /// Fails if the first imported value of a counter is below zero by more than the largest row, because such values
    /// are in no energy. By less than a row, it may be a new meter's, and is only noted.
    fn ensure_above_zero(
        &self,
        index: usize,
        series: &MeterSeries,
        anchors: &Anchors,
    ) -> anyhow::Result<()> {
        let first = series.total.saturating_add(self.total_at(index, anchors.from));
        let largest = self.rows.values().filter_map(|(_, values)| values[index]).max();
        let counter = self.counter_of(&series.metric);
        let Some((at, value)) = anchors.counters.get(&counter) else { return Ok(()) };
        if first > Decimal::ZERO {
            return Ok(());
        }

        let (device, metric) = counter;
        let (first, value) = (first.normalize(), value.normalize());
        if first >= -kilo(largest.unwrap_or_default()) {
            self.notes.say(format!(
                "counters     {metric} of {device} begins at {first}; energy leaves out values up to 0"
            ));
            return Ok(());
        }

        let at = Timestamp::from_millis(*at)?;
        bail!(
            "{metric} of {device} is {value} at {at} in the table, and the log counts {} more than that before it: its \
             counter would begin below zero, and such values are in no energy. If a later log was imported first, `roomtide \
             delete readings {device} --from {at} --to now` deletes it, and the logs are imported in the order of their time. \
             If the meter was reset, import the rows before the reset with --to as a device of their own, and those after \
             it with --from",
            -first
        )
    }

    /// Returns a counter from its first imported value to its last; `None` if no row has a value before the meter's own.
    fn made(&self, index: usize, series: &MeterSeries, anchors: &Anchors) -> Option<MadeCounter> {
        let is_sent = |end: &i64| anchors.live.is_none_or(|live| *end <= live);
        let has_value = self.rows.iter().filter(|(_, (_, values))| values[index].is_some());
        let ends = has_value.map(|(begin, _)| (begin + self.interval) * 1_000);
        let end = ends.take_while(is_sent).last()?;

        let counter = self.counter_of(&series.metric);
        let before = anchors.before.get(&counter).copied();
        let begin = Begin { at: self.first_from(anchors.from)?, before };
        let (device, metric) = counter;
        let value = series.total.saturating_add(self.total_at(index, end));
        let mend =
            "Import the log again: its counters then end where the later ones begin".to_owned();
        let end = Timestamp::from_millis(end).ok()?;
        Some(MadeCounter { device, metric, begin, end, value, mend })
    }

    /// Makes the series of a metric, whose counter fits `anchors`.
    fn series_of(&self, index: usize, metric: &LoggedMetric, anchors: &Anchors) -> MeterSeries {
        let device = self.device_of(metric);
        // Tags separate the parts of a device's id with a slash.
        let tags = format!("{DEVICE_TAG}={}", device.replace(':', "/"));

        let anchor = anchors.counters.get(&self.counter_of(metric));
        let offset = anchor.map(|(at, value)| value.saturating_sub(self.total_at(index, *at)));

        let head = Point {
            measurement: metric.name.clone(),
            tags,
            fields: Vec::new(),
            nanos: 0,
            line: 0,
            way: Way::Device,
            hour: None,
        };
        let total = offset.unwrap_or(BASE);
        MeterSeries { metric: metric.clone(), head, total, has_begun: false }
    }
}

impl MeterSeries {
    /// Adds the points of a row, whose interval is in seconds.
    fn add(
        &mut self,
        interval: Range<i64>,
        value: Decimal,
        points: &mut Vec<anyhow::Result<Point>>,
    ) {
        if self.metric.kind != LoggedKind::Amount {
            points.push(Ok(self.point(interval.end, value)));
            return;
        }

        // Without this value, the first interval's amount would have no start.
        if !std::mem::replace(&mut self.has_begun, true) {
            points.push(Ok(self.point(interval.start, self.total)));
        }
        self.total = self.total.saturating_add(kilo(value));
        points.push(Ok(self.point(interval.end, self.total)));
    }

    fn point(&self, seconds: i64, value: Decimal) -> Point {
        let fields = vec![("value".to_owned(), value.normalize().to_string())];
        Point { fields, nanos: seconds * SECOND, ..self.head.clone() }
    }
}

/// Returns the most frequent distance between the beginnings of rows. The usual distance counts once more, and so
/// decides for a log of a single row, or of two rows with a gap between them.
fn most_frequent_step<'a>(begins: impl Iterator<Item = &'a i64> + Clone, usual: i64) -> i64 {
    let mut counts = BTreeMap::from([(usual, 1)]);
    for (begin, next) in begins.clone().zip(begins.skip(1)) {
        *counts.entry(next - begin).or_insert(0) += 1;
    }
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map_or(usual, |(step, _)| step)
}

fn kilo(value: Decimal) -> Decimal {
    value * Decimal::new(1, 3)
}

/// Parses a row: the time in seconds, and the sum of each metric's columns. A metric with an empty column has no sum.
fn row(
    text: &str,
    length: usize,
    columns: &Columns,
) -> Result<(i64, Vec<Option<Decimal>>), String> {
    let cells: Vec<&str> = text.split(',').map(str::trim).collect();
    if cells.len() != length {
        return Err(format!("has {} columns; the header has {length}", cells.len()));
    }

    let at = cells[0];
    let begin = if columns.is_first_generation {
        NaiveDateTime::parse_from_str(at, "%Y-%m-%d %H:%M").map(|at| at.and_utc().timestamp()).ok()
    } else {
        at.parse().ok()
    };

    let begin = begin
        .filter(|seconds| TIMES.contains(seconds))
        .ok_or_else(|| format!("{at:?} is not the time of a measurement"))?;

    let number = |place: &usize| match cells[*place] {
        "" => Ok(None),
        cell => match Decimal::from_str(cell) {
            Ok(number) if (Decimal::ZERO..=MAX_CELL).contains(&number) => Ok(Some(number)),
            Ok(_) => Err(format!("{cell:?} is below zero, or is too large for a meter")),
            Err(_) => Err(format!("{cell:?} is not a number")),
        },
    };

    let value = |metric: &LoggedMetric| metric.columns.iter().map(number).sum::<Result<_, _>>();
    Ok((begin, columns.metrics.iter().map(value).collect::<Result<_, _>>()?))
}
