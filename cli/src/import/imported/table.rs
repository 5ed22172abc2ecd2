//! The table of an import, as its server answers about it: readings, hours and registry entries. Stores nothing.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use anyhow::Context as _;
use domain::{DeviceId, Exact, MetricName, RoomId, Timestamp};
use serde::de::IgnoredAny;

use crate::client::{Client, sleep};
use crate::import::described::Described;
use crate::import::reading_pages::{self, Row};
use crate::pages::Page;

/// The reasons why a table cannot be asked.
const UNANSWERED: &str =
    "the address answers no queries; an address that does is the output ApiUrl";
const FORBIDDEN: &str = "the token may not read";

/// A table that may be read.
pub(super) struct Table<'a> {
    client: &'a Client,
}

/// The smallest and the largest value of each metric in an hour.
pub(super) type Extremes = BTreeMap<MetricName, (Exact, Exact)>;

impl<'a> Table<'a> {
    /// Asks whether the table may be read. The inner error is the reason if not.
    pub(super) fn of(client: &'a Client) -> anyhow::Result<Result<Self, &'static str>> {
        Ok(match client.get("/rooms?limit=1")?.status {
            200 => Ok(Self { client }),
            401 | 403 => Err(FORBIDDEN),
            _ => Err(UNANSWERED),
        })
    }

    /// Waits, unless the import is interrupted.
    pub(super) fn wait(&self, pause: Duration) {
        sleep(pause, &[&self.client.interrupted()]);
    }

    /// Returns the registry's entry of a device; `None` if the registry does not have the device.
    pub(super) fn described(&self, device: &DeviceId) -> anyhow::Result<Option<Described>> {
        Described::ask(self.client, device.as_str())
    }

    /// Whether the registry has a room.
    pub(super) fn has_room(&self, room: &RoomId) -> anyhow::Result<bool> {
        Ok(self.client.find::<IgnoredAny>(&format!("/rooms/{room}"))?.is_some())
    }

    /// Returns the time of the first reading at or after an instant.
    pub(super) fn first_from(
        &self,
        device: &DeviceId,
        from: Timestamp,
    ) -> anyhow::Result<Option<Timestamp>> {
        let path = format!("/devices/{device}/readings?from={from}&to={}", Timestamp::MAX);
        let rows = reading_pages::first(self.client, &path, 1)?;
        rows.first().map(reading_pages::time_of).transpose().with_context(|| self.strange())
    }

    /// Returns a page of the readings of a device in a span. `None` if the device is being deleted.
    pub(super) fn readings(
        &self,
        device: &DeviceId,
        span: &Range<Timestamp>,
        limit: usize,
    ) -> anyhow::Result<Option<Page<Row>>> {
        let (from, to) = (span.start, span.end);
        let path = format!("/devices/{device}/readings?from={from}&to={to}&limit={limit}");
        let answer = self.client.get(&path)?;
        match answer.status {
            200 => self.client.parsed(&path, &answer).map(Some),
            404 => Ok(Some(Page::default())),
            410 => Ok(None),
            _ => Err(self.client.error(&path, &answer)),
        }
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
        let answer = self.client.get(&path)?;
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
        let readings = reading_pages::first(self.client, &path, count)?;

        let mut values = Vec::with_capacity(readings.len());
        for reading in readings {
            let Some(value) = reading.get(metric.as_str()) else { continue };
            let at = reading_pages::time_of(&reading).with_context(|| self.strange())?;
            values.push((at, Exact::parse(value.get()).with_context(|| self.strange())?));
        }
        Ok(values)
    }

    fn strange(&self) -> String {
        format!("{} answers, but not as Roomtide does", self.client.url())
    }
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
            let value = Exact::parse(cell).context("a value is not a number")?;
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
    use domain::given;

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
