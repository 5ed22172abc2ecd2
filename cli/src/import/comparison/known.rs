//! A server's data about a device: counts and sums by month, from its day rollups. Stores nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use chrono::TimeDelta;
use domain::{DeviceId, Exact, MetricName, Month, RoomId, Timestamp, Zone};
use runtime::clock::Stopwatch;
use serde::Deserialize;

use super::tally::{Totals, month_and_day};
use crate::client::{Answer, Ask, Client, wait};
use crate::import::described::{self, Described};
use crate::import::reading_pages;
use crate::pace::{HALF, Pace};

/// The longest range of one request.
const MAX_ASKED: TimeDelta = TimeDelta::days(366);
/// The maximum age of a server's cached registry, with a reserve, and the pause between two requests for it.
const MAX_REGISTRY_AGE: Duration = Duration::from_secs(75);
const PAUSE: Duration = Duration::from_millis(250);
/// The read units that a request is assumed to need before its answer tells them.
const UNITS: f64 = 8.0;

/// The count and the sum of each metric's values.
pub(super) type ByMetric = BTreeMap<MetricName, Totals>;

/// A server that is read at half of its table's capacity.
pub(super) struct Known<'a> {
    client: &'a Client,
    pace: Pace,
    zone: Zone,
}

/// The readings of a device before an import, by month.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Before {
    /// Whether the registry did not have the device.
    pub(super) is_new: bool,
    pub(super) months: BTreeMap<Month, OfMonth>,
}

/// The values and days of a device in a month before an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OfMonth {
    pub(super) metrics: ByMetric,
    /// The days of the month that have readings.
    pub(super) days: BTreeSet<u8>,
}

#[derive(Deserialize)]
struct Health {
    rollups: Option<Rollups>,
}

#[derive(Deserialize)]
struct Rollups {
    tz: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    data: Vec<Reading>,
}

#[derive(Deserialize)]
struct Reading {
    timestamp: String,
}

/// The smallest and the largest value of each metric in an hour.
pub(super) type Extremes = BTreeMap<MetricName, (Exact, Exact)>;

/// The answer to a request for rows of a series.
enum Rows {
    /// For each row its start, its local date, and the values.
    Found(Vec<(Timestamp, String, ByMetric)>),
    /// The registry does not have the device.
    NoDevice,
    /// The server cannot tell: its rollups do not reach so far back, or the device is being deleted.
    Untold,
}

impl Before {
    /// Whether the device may have had readings on the local days of an hour.
    pub(super) fn may_have(&self, hour: Timestamp, zone: Zone) -> bool {
        let last = hour.saturating_add(TimeDelta::minutes(59));
        [hour, last].into_iter().any(|at| {
            let (month, day) = month_and_day(&zone.date(at).to_string());
            self.months.get(&month).is_some_and(|of_month| of_month.days.contains(&day))
        })
    }
}

impl<'a> Known<'a> {
    /// Asks a server for the zone of its day rollups; `None` if the server does not tell it or refuses the request.
    pub(super) fn of(client: &'a Client) -> anyhow::Result<Option<Self>> {
        let known = Self { client, pace: Pace::of(HALF), zone: Zone::UTC };
        let answer = known.get("/health?details=1")?;
        if answer.status != 200 {
            return Ok(None);
        }
        let health: Option<Health> = serde_json::from_str(&answer.text).ok();
        let zone = health.and_then(|it| it.rollups?.tz?.parse().ok());
        Ok(zone.map(|zone| Self { zone, ..known }))
    }

    /// Returns the time zone of the day rollups.
    pub(super) const fn zone(&self) -> Zone {
        self.zone
    }

    /// Whether the token may read the table.
    pub(super) fn may_read(&self) -> anyhow::Result<bool> {
        let answer = self.get("/rooms?limit=1")?;
        Ok(answer.status == 200)
    }

    fn get(&self, path: &str) -> anyhow::Result<Answer> {
        let interrupted = self.client.interrupted();
        wait(self.pace.take(UNITS), &interrupted);
        let answer = self.client.send(Ask::get(path), &AtomicBool::new(false))?;
        self.pace.settle(UNITS, answer.units.read);
        self.pace.learn(answer.units.max_read);
        Ok(answer)
    }

    /// The body of an answer; `None` if the device or room does not exist.
    fn found(&self, path: &str) -> anyhow::Result<Option<String>> {
        let answer = self.get(path)?;
        match answer.status {
            200 => Ok(Some(answer.text)),
            404 => Ok(None),
            _ => Err(self.client.error(path, &answer)),
        }
    }

    /// Returns the registry's entry of a device; `None` if the registry does not have the device.
    pub(super) fn described(&self, device: &DeviceId) -> anyhow::Result<Option<Described>> {
        let path = described::path(device.as_str());
        Described::read(self.client, &path, &self.get(&path)?)
    }

    /// Waits until the registry's entry of a device has these metrics, because a server caches its registry for a
    /// minute. Until then a series lacks newer metrics. `watch` began when everything was stored.
    pub(super) fn described_with(
        &self,
        device: &DeviceId,
        metrics: &BTreeSet<&MetricName>,
        watch: &Stopwatch,
    ) -> anyhow::Result<Option<Described>> {
        let interrupted = self.client.interrupted();
        loop {
            let found = self.described(device)?;
            let is_behind = found.as_ref().is_some_and(|found| !found.has_all(metrics));
            let is_left = watch.elapsed() > MAX_REGISTRY_AGE || interrupted.load(Ordering::Acquire);
            if !is_behind || is_left {
                return Ok(found);
            }
            wait(PAUSE, &interrupted);
        }
    }

    /// Whether the registry has a room.
    pub(super) fn has_room(&self, room: &RoomId) -> anyhow::Result<bool> {
        Ok(self.found(&format!("/rooms/{room}"))?.is_some())
    }

    /// Returns the time of the first reading after an instant.
    pub(super) fn first_after(
        &self,
        device: &DeviceId,
        at: Timestamp,
    ) -> anyhow::Result<Option<Timestamp>> {
        let (from, to) = (at.saturating_add(TimeDelta::milliseconds(1)), Timestamp::MAX);
        let path = format!("/devices/{device}/readings?from={from}&to={to}&limit=1");
        let Some(text) = self.found(&path)? else { return Ok(None) };
        let page: Page = serde_json::from_str(&text).with_context(|| self.strange())?;
        let first = page.data.first().map(|it| Timestamp::parse_absolute(&it.timestamp));
        first.transpose().with_context(|| self.strange())
    }

    /// Returns the counts, sums and days of a device by month, until now; `None` if the server cannot tell.
    pub(super) fn before(
        &self,
        device: &DeviceId,
        now: Timestamp,
    ) -> anyhow::Result<Option<Before>> {
        let to = now.saturating_add(TimeDelta::days(1));
        let rows = match self.rows(device, (Timestamp::MIN, to), "1mo")? {
            Rows::Found(rows) => rows,
            Rows::NoDevice => return Ok(Some(Before { is_new: true, ..Before::default() })),
            Rows::Untold => return Ok(None),
        };
        let mut months: BTreeMap<Month, OfMonth> = BTreeMap::new();
        let mut asked_until = Timestamp::MIN;
        for (start, date, metrics) in rows {
            let (month, _) = month_and_day(&date);
            months.entry(month).or_default().metrics = metrics;
            if start < asked_until {
                continue;
            }
            asked_until = start.saturating_add(MAX_ASKED).min(to);
            let Rows::Found(days) = self.rows(device, (start, asked_until), "1d")? else {
                return Ok(None);
            };
            for (_, date, _) in days {
                let (month, day) = month_and_day(&date);
                months.entry(month).or_default().days.insert(day);
            }
        }
        self.add_days_without_rollups(device, &mut months)?;
        Ok(Some(Before { is_new: false, months }))
    }

    /// Adds the days that have readings but no rollups, such as days with only zeros of a counter. Costs a request for
    /// each such day, and one for each gap.
    fn add_days_without_rollups(
        &self,
        device: &DeviceId,
        months: &mut BTreeMap<Month, OfMonth>,
    ) -> anyhow::Result<()> {
        let mut after = Timestamp::MIN;
        while let Some(first) = self.first_after(device, after)? {
            let mut date = self.zone.date(first);
            loop {
                let (month, day) = month_and_day(&date.to_string());
                let is_new = months.entry(month).or_default().days.insert(day);
                let range = self.zone.day(date).with_context(|| format!("{first} is on no day"))?;
                after = range.last();
                date = self.zone.date(range.to());
                let (month, day) = month_and_day(&date.to_string());
                if is_new || !months.get(&month).is_some_and(|it| it.days.contains(&day)) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns the counts and sums of a device in the months of these spans, which are in order; `None` if the server
    /// cannot tell.
    pub(super) fn months(
        &self,
        device: &DeviceId,
        spans: &[(Timestamp, Timestamp)],
    ) -> anyhow::Result<Option<BTreeMap<Month, ByMetric>>> {
        let mut months = BTreeMap::new();
        let mut spans = spans.iter().peekable();
        while let Some(&(from, mut to)) = spans.next() {
            while let Some((_, later)) = spans.next_if(|(_, it)| it.since(from) < MAX_ASKED) {
                to = *later;
            }
            let to = to.saturating_add(TimeDelta::milliseconds(1));
            match self.rows(device, (from, to), "1mo")? {
                Rows::Found(rows) => months.extend(
                    rows.into_iter().map(|(_, date, metrics)| (month_and_day(&date).0, metrics)),
                ),
                Rows::NoDevice => {}
                Rows::Untold => return Ok(None),
            }
        }
        Ok(Some(months))
    }

    /// Returns the values of a device by the start of each hour of UTC that has values; `None` if the server cannot
    /// tell.
    pub(super) fn hours(
        &self,
        device: &DeviceId,
        span: &Range<Timestamp>,
    ) -> anyhow::Result<Option<BTreeMap<Timestamp, Extremes>>> {
        let (from, to) = (span.start, span.end);
        let path = format!(
            "/devices/{device}/series?from={from}&to={to}&every=1h&tz=UTC&fn=min,max&format=csv"
        );
        let answer = self.get(&path)?;
        match answer.status {
            200 => read_hours(&answer.text).with_context(|| self.strange()).map(Some),
            404 => Ok(Some(BTreeMap::new())),
            410 | 422 => Ok(None),
            _ => Err(self.client.error(&path, &answer)),
        }
    }

    /// Returns at most `count` of the first values of a metric in a span, with their times.
    pub(super) fn first_values(
        &self,
        device: &DeviceId,
        metric: &MetricName,
        span: &Range<Timestamp>,
        count: usize,
    ) -> anyhow::Result<Vec<(Timestamp, Exact)>> {
        let (from, to) = (span.start, span.end);
        let path = format!("/devices/{device}/readings?metrics={metric}&from={from}&to={to}");
        let get = |path: &str| {
            let text = self.found(path)?;
            text.map(|text| serde_json::from_str(&text).with_context(|| self.strange())).transpose()
        };
        let readings = reading_pages::first(&path, count, get)?;

        let mut values = Vec::with_capacity(readings.len());
        for reading in readings {
            let Some(value) = reading.get(metric.as_str()) else { continue };
            let at = reading.get("timestamp").with_context(|| self.strange())?;
            let at: String = serde_json::from_str(at.get()).with_context(|| self.strange())?;
            let at = Timestamp::parse_absolute(&at).with_context(|| self.strange())?;
            values.push((at, Exact::parse(value.get()).with_context(|| self.strange())?));
        }
        Ok(values)
    }

    fn rows(
        &self,
        device: &DeviceId,
        (from, to): (Timestamp, Timestamp),
        every: &str,
    ) -> anyhow::Result<Rows> {
        let path = format!(
            "/devices/{device}/series?from={from}&to={to}&every={every}&fn=count,sum&format=csv"
        );
        let answer = self.get(&path)?;
        match answer.status {
            200 => {
                let rows = read(&answer.text, self.zone).with_context(|| self.strange())?;
                Ok(Rows::Found(rows))
            }
            404 => Ok(Rows::NoDevice),
            410 | 422 => Ok(Rows::Untold),
            _ => Err(self.client.error(&path, &answer)),
        }
    }

    fn strange(&self) -> String {
        format!("{} answers, but not as Roomtide does", self.client.url())
    }
}

/// Parses the non-empty rows of a CSV with the columns NAME.count and NAME.sum.
fn read(text: &str, zone: Zone) -> anyhow::Result<Vec<(Timestamp, String, ByMetric)>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers()?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        let mut metrics = ByMetric::new();
        for (column, cell) in header.iter().zip(&record).filter(|(_, cell)| !cell.is_empty()) {
            let Some((name, function)) = column.rsplit_once('.') else { continue };
            let totals = metrics.entry(name.parse()?).or_default();
            match function {
                "count" => totals.count = cell.parse()?,
                _ => totals.sum = Exact::parse(cell).context("a sum is no number")?,
            }
        }
        if !metrics.is_empty() {
            let start = Timestamp::parse_absolute(record.get(0).unwrap_or_default())?;
            rows.push((start, zone.date(start).to_string(), metrics));
        }
    }
    Ok(rows)
}

/// Parses the non-empty rows of a CSV with the columns NAME.min and NAME.max.
fn read_hours(text: &str) -> anyhow::Result<BTreeMap<Timestamp, Extremes>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers()?.clone();
    let mut hours: BTreeMap<Timestamp, Extremes> = BTreeMap::new();
    for record in reader.records() {
        let record = record?;
        let start = Timestamp::parse_absolute(record.get(0).unwrap_or_default())?;
        for (column, cell) in header.iter().zip(&record).filter(|(_, cell)| !cell.is_empty()) {
            let Some((name, function)) = column.rsplit_once('.') else { continue };
            let value = Exact::parse(cell).context("a value is no number")?;
            let hour = hours.entry(start).or_default();
            let (least, largest) =
                hour.entry(name.parse()?).or_insert_with(|| (value.clone(), value.clone()));
            match function {
                "min" => *least = value,
                _ => *largest = value,
            }
        }
    }
    Ok(hours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::{self, zone};

    #[test]
    fn rows_are_read_to_the_last_digit() {
        let text = "timestamp,partial,coverage,a_b.count,a_b.sum,t.count,t.sum\n\
                    2025-12-31T23:00:00.000Z,,1,2,10000000000000000000000000000000000000000.1,,\n\
                    2026-01-31T23:00:00.000Z,true,,,,,\n";
        let rows = read(text, zone("Europe/Berlin")).unwrap();
        let [(_, date, metrics)] = &rows[..] else { panic!("{}", rows.len()) };
        assert_eq!(date, "2026-01-01");
        let totals = &metrics[&"a_b".parse().unwrap()];
        assert_eq!(totals.count, 2);
        let sum = Exact::parse("10000000000000000000000000000000000000000.1");
        assert_eq!(Some(&totals.sum), sum.as_ref());
        assert!(read("<html>\n<p>.count\n", Zone::UTC).unwrap().is_empty());
    }

    #[test]
    fn the_least_and_the_largest_value_of_an_hour_are_read() {
        let text = "timestamp,partial,coverage,power.min,power.max,t.min,t.max\n\
                    2026-01-11T16:00:00.000Z,,1,0,2000.5,,\n\
                    2026-01-11T17:00:00.000Z,true,,,,,\n";
        let hours = read_hours(text).unwrap();
        let [(start, metrics)] = &hours.iter().collect::<Vec<_>>()[..] else { panic!("{hours:?}") };
        assert_eq!(start.to_string(), "2026-01-11T16:00:00.000Z");
        let exact = |text: &str| given::exact(text);
        let expected = ("power".parse().unwrap(), (exact("0"), exact("2000.5")));
        assert_eq!(**metrics, BTreeMap::from([expected]));
    }
}
