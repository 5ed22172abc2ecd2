//! The counts and sums of a source, by device, month and metric. Asks no server.
//!
//! Memory grows with devices, months and metrics, not with readings.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use domain::{Decimal, DeviceId, Exact, MetricName, Month, Reading, TimeRange, Timestamp, Zone};

/// The number of newest distances from which a device's usual distance follows.
const DISTANCES: usize = 100;

/// The count and the sum of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Totals {
    /// Negative if a refused reading was not counted before.
    pub(super) count: i64,
    pub(super) sum: Exact,
}

impl Default for Totals {
    fn default() -> Self {
        Self { count: 0, sum: Exact::zero() }
    }
}

impl Totals {
    /// Returns the sum of both.
    pub(super) fn and(&self, other: &Self) -> Self {
        Self { count: self.count + other.count, sum: &self.sum + &other.sum }
    }

    fn add(&mut self, value: &Exact, sign: i64) {
        self.count += sign;
        self.sum += &(value * sign);
    }
}

/// The values of a metric in a month, counted and summed.
#[derive(Debug, Default)]
pub(super) struct Values {
    positive: Totals,
    /// Zeros and negative values, which a counter does not count.
    others: Option<Box<Totals>>,
}

impl Values {
    /// Returns the values that take part in rollups: all, or only the positive ones of a counter.
    pub(super) fn of(&self, counts_all: bool) -> Totals {
        match &self.others {
            Some(others) if counts_all => self.positive.and(others),
            _ => self.positive.clone(),
        }
    }
}

/// The values and days of a device in a month.
#[derive(Debug)]
pub(super) struct OfMonth {
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    pub(super) metrics: BTreeMap<MetricName, Values>,
    /// The days with readings, each with the times of its first and last reading.
    pub(super) days: BTreeMap<u8, (Timestamp, Timestamp)>,
}

/// The values of a device.
#[derive(Debug, Default)]
pub(super) struct OfDevice {
    pub(super) months: BTreeMap<Month, OfMonth>,
    /// The local day of the newest reading, with its month and its number in the month.
    day: Option<(TimeRange, Month, u8)>,
    newest: Option<Timestamp>,
    distances: VecDeque<i64>,
}

/// The counts and sums of a source.
#[derive(Debug)]
pub(super) struct Tally {
    zone: Zone,
    pub(super) devices: BTreeMap<DeviceId, OfDevice>,
}

impl Tally {
    /// Makes an empty tally with the days of a time zone.
    pub(super) const fn new(zone: Zone) -> Self {
        Self { zone, devices: BTreeMap::new() }
    }

    /// Returns the time zone of the days.
    pub(super) const fn zone(&self) -> Zone {
        self.zone
    }

    pub(super) fn add(&mut self, reading: &Reading) {
        self.count(reading, 1);
    }

    /// Subtracts a reading that the server refused.
    pub(super) fn take_back(&mut self, reading: &Reading) {
        self.count(reading, -1);
    }

    /// Removes metrics whose values were all refused, because nothing is left to compare.
    pub(super) fn forget_taken_back(&mut self) {
        for of_month in self.devices.values_mut().flat_map(|device| device.months.values_mut()) {
            of_month.metrics.retain(|_, values| values.of(true).count != 0);
        }
    }

    /// Subtracts the values of a reading that a later one of the same device and time replaces.
    pub(super) fn replace(&mut self, earlier: &Reading, later: &Reading) {
        let replaced = earlier.metrics().iter().filter(|(it, _)| later.metrics().contains_key(*it));
        self.count_values(earlier, replaced, -1);
    }

    fn count(&mut self, reading: &Reading, sign: i64) {
        self.count_values(reading, reading.metrics().iter(), sign);
    }

    fn count_values<'a>(
        &mut self,
        reading: &Reading,
        metrics: impl Iterator<Item = (&'a MetricName, &'a Decimal)>,
        sign: i64,
    ) {
        let at = reading.at;
        if !self.devices.contains_key(&reading.device) {
            self.devices.insert(reading.device.clone(), OfDevice::default());
        }
        let device = self.devices.get_mut(&reading.device).expect("it was just inserted");
        let (month, day) = device.day_of(at, self.zone);
        if sign > 0 {
            device.note_distance(at);
        }
        let of_month = device.months.entry(month).or_insert_with(|| OfMonth {
            first: at,
            last: at,
            metrics: BTreeMap::new(),
            days: BTreeMap::new(),
        });
        (of_month.first, of_month.last) = (of_month.first.min(at), of_month.last.max(at));
        let of_day = of_month.days.entry(day).or_insert((at, at));
        *of_day = (of_day.0.min(at), of_day.1.max(at));
        for (name, value) in metrics {
            if !of_month.metrics.contains_key(name) {
                of_month.metrics.insert(name.clone(), Values::default());
            }
            let values = of_month.metrics.get_mut(name).expect("it was just inserted");
            let value = Exact::from(value);
            let totals = if value.is_positive() {
                &mut values.positive
            } else {
                values.others.get_or_insert_default()
            };
            totals.add(&value, sign);
        }
    }
}

impl OfDevice {
    /// Returns the times of the first and the last reading.
    pub(super) fn span(&self) -> Option<(Timestamp, Timestamp)> {
        let first = self.months.first_key_value()?.1.first;
        Some((first, self.months.last_key_value()?.1.last))
    }

    /// Returns the names of all metrics.
    pub(super) fn metrics(&self) -> BTreeSet<&MetricName> {
        self.months.values().flat_map(|it| it.metrics.keys()).collect()
    }

    /// Returns the usual distance of readings in milliseconds: the longest of the newest hundred.
    pub(super) fn usual_distance(&self) -> Option<i64> {
        self.distances.iter().copied().max()
    }

    fn note_distance(&mut self, at: Timestamp) {
        if let Some(newest) = self.newest {
            if at <= newest {
                return;
            }
            if self.distances.len() == DISTANCES {
                self.distances.pop_front();
            }
            self.distances.push_back(at.as_millis() - newest.as_millis());
        }
        self.newest = Some(at);
    }

    /// Returns the month of a time, and the day of the month.
    fn day_of(&mut self, at: Timestamp, zone: Zone) -> (Month, u8) {
        if let Some((range, month, day)) = &self.day
            && range.from() <= at
            && at < range.to()
        {
            return (*month, *day);
        }
        let date = zone.date(at);
        let (month, day) = month_and_day(&date.to_string());
        self.day = zone.day(date).map(|range| (range, month, day));
        (month, day)
    }
}

/// Returns the month of a date, and the day of the month.
pub(super) fn month_and_day(date: &str) -> (Month, u8) {
    let month = date[..7].parse().expect("a date begins with year and month");
    (month, date[8..10].parse().expect("a date ends with its day"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given;

    fn reading(text: &str) -> Reading {
        local::read_reading(text, Timestamp::MAX).unwrap()
    }

    fn tally(zone: &str) -> Tally {
        let mut tally = Tally::new(given::zone(zone));
        for (at, value) in [
            ("2026-01-30T12:00:00Z", "0.1"),
            ("2026-01-31T23:30:00Z", "0.2"),
            ("2026-02-01T12:00:00Z", "0"),
            ("2026-02-01T12:01:00Z", "-3"),
            ("2026-02-01T12:04:00Z", "10000000000000000000000000000000000001"),
        ] {
            let json =
                format!(r#"{{"device_id":"d","timestamp":"{at}","t":{value},"room":"hall"}}"#);
            tally.add(&reading(&json));
        }
        tally
    }

    fn months(tally: &Tally, counts_all: bool) -> Vec<(String, i64, String)> {
        let device = &tally.devices[&"d".parse().unwrap()];
        let months = device.months.iter().map(|(month, it)| {
            let totals = it.metrics[&"t".parse().unwrap()].of(counts_all);
            (month.to_string(), totals.count, totals.sum.to_string())
        });
        months.collect()
    }

    #[test]
    fn values_are_added_up_by_month_of_the_zone_and_no_digit_is_lost() {
        let of = |month: &str, count, sum: &str| (month.to_owned(), count, sum.to_owned());
        let long = "10000000000000000000000000000000000001";
        let less = "9999999999999999999999999999999999998";
        let utc = tally("UTC");
        assert_eq!(months(&utc, true), [of("2026-01", 2, "0.3"), of("2026-02", 3, less)]);
        assert_eq!(months(&utc, false), [of("2026-01", 2, "0.3"), of("2026-02", 1, long)]);
        let berlin = tally("Europe/Berlin");
        assert_eq!(months(&berlin, false)[0], of("2026-01", 1, "0.1"));
    }

    #[test]
    fn what_was_refused_is_taken_back() {
        let mut tally = tally("UTC");
        let json = r#"{"device_id":"d","timestamp":"2026-01-31T23:30:00Z","t":0.2}"#;
        tally.take_back(&reading(json));
        let (count, sum) = (months(&tally, true)[0].1, months(&tally, true)[0].2.clone());
        assert_eq!((count, &*sum), (1, "0.1"));

        // A metric whose values were all refused is not compared; a zero is a value.
        let of_two = r#"{"device_id":"d","timestamp":"2026-02-01T12:00:00Z","u":1,"zero":0}"#;
        tally.add(&reading(of_two));
        let refused = r#"{"device_id":"d","timestamp":"2026-02-01T12:00:00Z","u":1}"#;
        tally.take_back(&reading(refused));
        tally.forget_taken_back();
        let metrics = tally.devices[&"d".parse().unwrap()].metrics();
        let names: Vec<&str> = metrics.into_iter().map(MetricName::as_str).collect();
        assert_eq!(names, ["t", "zero"]);
    }

    #[test]
    fn a_value_that_a_later_line_replaces_counts_once() {
        let mut tally = Tally::new(Zone::UTC);
        let of = |values: &str| {
            reading(&format!(r#"{{"device_id":"d","timestamp":"2026-01-31T23:30:00Z",{values}}}"#))
        };
        let (earlier, later) = (of(r#""t":1,"u":5"#), of(r#""t":2,"v":3"#));
        tally.add(&earlier);
        tally.replace(&earlier, &later);
        tally.add(&later);
        assert_eq!(months(&tally, true), [("2026-01".to_owned(), 1, "2".to_owned())]);
        let device = &tally.devices[&"d".parse().unwrap()];
        let counts: Vec<i64> = device
            .months
            .values()
            .flat_map(|it| it.metrics.values())
            .map(|it| it.of(true).count)
            .collect();
        assert_eq!(counts, [1, 1, 1]);
    }

    #[test]
    fn the_usual_distance_is_that_of_the_newest_readings() {
        let mut tally = Tally::new(Zone::UTC);
        for n in [0, 5_000, 5_060, 5_120] {
            let at = 1_768_147_200 + n;
            tally.add(&reading(&format!(r#"{{"device_id":"d","timestamp":{at},"t":1}}"#)));
        }
        for n in 0..98 {
            let at = 1_768_147_200 + 5_180 + n * 60;
            tally.add(&reading(&format!(r#"{{"device_id":"d","timestamp":{at},"t":1}}"#)));
        }
        let device = || &tally.devices[&"d".parse().unwrap()];
        assert_eq!(device().usual_distance(), Some(60_000), "an hour is long ago");
        let span = device().span().map(|(first, last)| last.since(first).num_seconds());
        assert_eq!(span, Some(5_180 + 97 * 60));
    }
}
