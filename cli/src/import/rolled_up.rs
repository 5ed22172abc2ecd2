//! Waits until the rollups of what was imported are there. Sends no reading.
//!
//! The changes of a device reach its rollups in the order in which they were written, and an import sends
//! each device in order of time. Only the last requests, which ran at once, were written in any order. So
//! the rollups are there when the newest quarters count as many readings as these requests may hold.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use chrono::TimeDelta;
use domain::{DeviceId, MetricName, Quarter, Reading};
use indicatif::ProgressBar;
use runtime::clock::Stopwatch;
use serde_json::Value;

use crate::client::{Ask, Client};

/// The longest range that is looked at: what a series answers even from readings.
const MAX_RANGE: TimeDelta = TimeDelta::days(31);
/// The pause between two looks, and the time without any progress after which nobody waits longer.
const PAUSE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(300);

/// What the rollups have to count when they are complete.
#[derive(Debug)]
pub(super) struct Expected {
    devices: BTreeMap<DeviceId, Newest>,
    /// The readings of a device that the last requests may hold.
    kept: u64,
}

/// The newest quarters of a device that the import wrote.
#[derive(Debug)]
struct Newest {
    /// The metric that is counted.
    metric: MetricName,
    /// The number of readings by quarter.
    quarters: BTreeMap<Quarter, u64>,
}

/// How the wait ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// Everything is rolled up.
    RolledUp,
    /// Nobody knows: the server does not tell, nothing moved for a long time, or a person interrupted.
    Unknown,
}

impl Expected {
    /// Expects nothing yet. The last requests hold at most `kept` readings.
    pub(super) const fn new(kept: u64) -> Self {
        Self { devices: BTreeMap::new(), kept }
    }

    /// Notes a reading that is stored. One that `is_new` is counted once more than before.
    pub(super) fn note(&mut self, reading: &Reading, is_new: bool) {
        let Some(metric) = reading.metrics().keys().next() else { return };
        let new = || Newest { metric: metric.clone(), quarters: BTreeMap::new() };
        let Newest { metric, quarters } =
            self.devices.entry(reading.device.clone()).or_insert_with(new);
        let counts = is_new && reading.metrics().contains_key(metric);
        *quarters.entry(Quarter::of(reading.at)).or_default() += u64::from(counts);
        let mut total: u64 = quarters.values().sum();
        while let Some(first) = quarters.first_entry() {
            total -= first.get();
            if total < self.kept {
                break;
            }
            first.remove();
        }
    }

    /// Waits until the server's series count all of it.
    pub(super) fn wait(self, client: &Client, bar: &ProgressBar) -> anyhow::Result<Waited> {
        let interrupted = client.interrupted();
        let count = self.devices.len();
        let mut open: Vec<_> = self.devices.into_iter().map(|it| (it, None)).collect();
        let mut quiet = Stopwatch::start();
        while !open.is_empty() {
            bar.set_message(format!("rolled up: {} of {count} devices", count - open.len()));
            let mut left = Vec::new();
            for ((device, newest), before) in open {
                let counts = match newest.counts(&device, client) {
                    Ok(Some(counts)) => counts,
                    Ok(None) => return Ok(Waited::Unknown),
                    Err(_) if interrupted.load(Ordering::Acquire) => return Ok(Waited::Unknown),
                    Err(error) => return Err(error),
                };
                if newest.is_complete(&counts) {
                    quiet = Stopwatch::start();
                    continue;
                }
                let counts = Some(counts);
                if counts != before {
                    quiet = Stopwatch::start();
                }
                left.push(((device, newest), counts));
            }
            open = left;
            if !open.is_empty() {
                if quiet.elapsed() > PATIENCE {
                    return Ok(Waited::Unknown);
                }
                thread::sleep(PAUSE);
            }
        }
        Ok(Waited::RolledUp)
    }
}

impl Newest {
    /// The quarters that are looked at.
    fn looked_at(&self) -> impl Iterator<Item = (&Quarter, &u64)> {
        let last = self.quarters.last_key_value().map(|(quarter, _)| quarter.end());
        let is_near = move |quarter: &Quarter| {
            last.is_some_and(|last| last.since(quarter.start()) <= MAX_RANGE)
        };
        self.quarters.iter().filter(move |(quarter, _)| is_near(quarter))
    }

    /// The counts that the server answers now; `None` where it does not tell.
    fn counts(
        &self,
        device: &DeviceId,
        client: &Client,
    ) -> anyhow::Result<Option<BTreeMap<String, u64>>> {
        let mut quarters = self.looked_at().map(|(quarter, _)| *quarter);
        let Some(first) = quarters.next() else { return Ok(Some(BTreeMap::new())) };
        let (from, to) = (first.start(), quarters.last().unwrap_or(first).end());
        let metric = &self.metric;
        let path = format!(
            "/devices/{device}/series?metric={metric}&fn=count&every=15m&tz=UTC&from={from}&to={to}"
        );
        let answer = client.send(Ask::get(&path), &AtomicBool::new(false))?;
        if answer.status != 200 {
            return Ok(None);
        }
        let series: Value = serde_json::from_str(&answer.text)
            .with_context(|| format!("{} answers, but not as Roomtide does", client.url()))?;
        let rows = series["data"].as_array().into_iter().flatten();
        let count = |row: &Value| {
            let at = row["timestamp"].as_str()?.to_owned();
            Some((at, row[metric.as_str()]["count"].as_u64()?))
        };
        Ok(Some(rows.filter_map(count).collect()))
    }

    fn is_complete(&self, counts: &BTreeMap<String, u64>) -> bool {
        self.looked_at().all(|(quarter, expected)| {
            counts.get(&quarter.start().to_string()).is_some_and(|count| count >= expected)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::fake_server::{self, Reply};
    use domain::{Decimal, Timestamp};

    fn reading(minute: i64) -> Reading {
        let at = Timestamp::parse("2026-01-11T16:00:00Z", Timestamp::MIN).unwrap();
        let at = at.saturating_add(TimeDelta::minutes(minute));
        let metrics = [("t".parse().unwrap(), Decimal::parse("1").unwrap())].into();
        Reading::new("d".parse().unwrap(), at, None, metrics).unwrap()
    }

    fn expecting(minutes: &[i64], kept: u64) -> Expected {
        let mut expected = Expected::new(kept);
        minutes.iter().for_each(|minute| expected.note(&reading(*minute), true));
        expected
    }

    fn wait(
        expected: Expected,
        answer: impl Fn(usize) -> (u16, String) + Send + Sync + 'static,
    ) -> (Waited, String) {
        let (paths, asked) = std::sync::mpsc::channel();
        let server = fake_server::serve(move |n, request| {
            paths.send(request.path).unwrap();
            let (status, body) = answer(n);
            Reply::of(status, &body)
        });
        let client = Client::impatient(&server.url, Duration::ZERO);
        let waited = expected.wait(&client, &ProgressBar::hidden()).unwrap();
        (waited, asked.recv().unwrap())
    }

    fn row(minute: u32, count: u64) -> String {
        format!(r#"{{"timestamp":"2026-01-11T16:{minute:02}:00.000Z","t":{{"count":{count}}}}}"#)
    }

    #[test]
    fn a_wait_ends_when_every_quarter_counts_what_was_sent() {
        let (waited, asked) = wait(expecting(&[0, 1, 20], 100), |n| {
            let rows = [vec![row(0, 2)], vec![row(0, 1), row(15, 1)], vec![row(0, 2), row(15, 5)]];
            (200, format!(r#"{{"data":[{}]}}"#, rows[n].join(",")))
        });
        assert_eq!(waited, Waited::RolledUp);
        let range = "from=2026-01-11T16:00:00.000Z&to=2026-01-11T16:30:00.000Z";
        assert_eq!(asked, format!("/devices/d/series?metric=t&fn=count&every=15m&tz=UTC&{range}"));
    }

    #[test]
    fn only_what_the_last_requests_may_hold_is_looked_at() {
        let month_later = 40 * 24 * 60;
        let expected = expecting(&[0, 15, 16, 30, month_later], 3);
        let quarters =
            |it: &Expected| it.devices.values().map(|it| it.quarters.len()).sum::<usize>();
        assert_eq!(quarters(&expected), 3, "4 of the 5 readings: 3 would cut a quarter");
        let newest = expected.devices.values().next().unwrap();
        assert_eq!(newest.looked_at().count(), 1);
    }

    #[test]
    fn a_server_that_does_not_tell_is_not_waited_for() {
        for status in [403, 404, 422] {
            let (waited, _) = wait(expecting(&[0], 100), move |_| (status, "{}".to_owned()));
            assert_eq!(waited, Waited::Unknown, "{status}");
        }
    }

    #[test]
    fn nothing_imported_is_rolled_up() {
        let client = Client::impatient("http://127.0.0.1:9", Duration::ZERO);
        let waited = Expected::new(1).wait(&client, &ProgressBar::hidden()).unwrap();
        assert_eq!(waited, Waited::RolledUp);
    }
}
