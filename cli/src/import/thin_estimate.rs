//! Estimates how many readings remain after thinning to 15 minutes. Thins nothing.

use std::collections::HashMap;

use domain::{DeviceId, Reading};

/// 15 minutes in milliseconds.
const QUARTER: i64 = 900_000;

/// The estimated number of readings after thinning.
#[derive(Debug, Default)]
pub(super) struct ThinEstimate {
    devices: HashMap<DeviceId, Device>,
    kept: u64,
}

/// The current quarters of a device.
#[derive(Debug)]
struct Device {
    counters: Run,
    others: Run,
}

/// The readings of a quarter. For counters, the quarter includes its end; for other numbers, its start.
#[derive(Debug)]
struct Run {
    quarter: i64,
    count: u64,
    /// The time of the newest reading in milliseconds.
    newest: i64,
    /// Whether a second reading in the quarter keeps one more reading.
    second_counts: bool,
}

impl Default for Run {
    fn default() -> Self {
        Self { quarter: i64::MIN, count: 0, newest: 0, second_counts: false }
    }
}

impl ThinEstimate {
    /// Adds a reading with values of counters, or of other numbers, or both. Readings of a device must come in order of
    /// time.
    pub(super) fn add(&mut self, reading: &Reading, has_counter: bool, has_other: bool) {
        let at = reading.at.as_millis();
        let is_at_an_end = |millis: i64| millis.rem_euclid(QUARTER) == 0;
        if !self.devices.contains_key(&reading.device) {
            let new = Device { counters: Run::default(), others: Run::default() };
            self.devices.insert(reading.device.clone(), new);
        }
        let Some(device) = self.devices.get_mut(&reading.device) else { return };
        if has_counter {
            let run = &mut device.counters;
            // The newest value is kept, and also the first one if the previous quarter has no value at its end.
            let is_behind_a_gap = run.count > 0 && !is_at_an_end(run.newest);
            self.kept += run.add((at - 1).div_euclid(QUARTER), at, 1, is_behind_a_gap);
        }
        if has_other {
            // One mean is kept, at the quarter's start, where a counter's value may be already. A single line stays
            // unchanged.
            let is_new = u64::from(!has_counter);
            let second_counts = has_counter && !is_at_an_end(at);
            self.kept += device.others.add(at.div_euclid(QUARTER), at, is_new, second_counts);
        }
    }

    /// The number of readings that are kept.
    pub(super) const fn kept(&self) -> u64 {
        self.kept
    }
}

impl Run {
    /// Adds a reading. Returns the number of additionally kept readings: `of_first` for a new quarter, and one for the
    /// second reading if `second_counts`.
    fn add(&mut self, quarter: i64, at: i64, of_first: u64, second_counts: bool) -> u64 {
        if quarter != self.quarter {
            *self = Self { quarter, count: 1, newest: at, second_counts };
            return of_first;
        }
        (self.count, self.newest) = (self.count + 1, at);
        u64::from(self.count == 2 && self.second_counts)
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;
    use domain::given::{device, metric, number};

    use super::*;

    /// What is left of a day of one device that sends every so many seconds, from some seconds on.
    fn kept(every: i64, from: i64, has_counter: bool, has_other: bool) -> u64 {
        let mut estimate = ThinEstimate::default();
        for n in 0..86_400 / every {
            let at =
                Timestamp::from_millis(1_768_147_200_000 + (every * n + from) * 1_000).unwrap();
            let metrics = [(metric("t"), number("1"))].into();
            let reading = Reading::new(device("d"), at, None, metrics).unwrap();
            estimate.add(&reading, has_counter, has_other);
        }
        estimate.kept()
    }

    #[test]
    fn a_counter_keeps_up_to_two_readings_of_a_quarter_and_beside_other_numbers_three() {
        assert_eq!(kept(60, 7, false, true), 96);
        assert_eq!(kept(60, 7, true, false), 2 * 96 - 1, "before the first quarter is none");
        assert_eq!(kept(60, 7, true, true), 3 * 96 - 1);
        assert_eq!(kept(60, 60, true, false), 96, "values at the ends of the quarters");
        assert_eq!(kept(3_600, 7, true, true), 24, "alone in its quarter");
        assert_eq!(kept(60, 0, true, true), 97);
    }
}
