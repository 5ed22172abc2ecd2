//! The time without a reading after which a device counts as silent, derived from its usual intervals. Reads no rollup.

use chrono::TimeDelta;
use domain::QuarterHour;

/// The shortest time that counts as silence.
pub const LEAST_SILENCE: TimeDelta = TimeDelta::minutes(10);
/// The longest time after which a device counts as silent: twice the seven days from which the time is learned.
pub const LONGEST_SILENCE: TimeDelta = TimeDelta::days(14);
/// The number of a device's usual intervals after which the device is silent.
const INTERVALS: i32 = 4;
/// The assumed interval of a device that sent nothing in its last day.
const UNKNOWN_INTERVAL: TimeDelta = TimeDelta::minutes(15);
/// The milliseconds of an hour.
const HOUR: i64 = 3_600_000;

/// One day of a device: the number of readings in each quarter of an hour.
#[derive(Debug, Clone, Copy)]
pub struct DayCounts<'a> {
    /// The readings of each quarter, in order.
    pub quarters: &'a [u32],
    /// Whether the device was silent on that day. Such a day is left out: otherwise a dead device would count as a
    /// device that seldom sends.
    pub was_silent: bool,
}

/// The time after which a device counts as silent: the greatest of ten minutes, four usual intervals, and twice the
/// longest run of quarters without readings in the days without silence.
///
/// `hours` has the number of readings in each whole hour of the last day, `days` the last seven days in order.
pub fn silence_limit(hours: &[u32], days: &[DayCounts<'_>]) -> TimeDelta {
    let usual = usual_interval(hours).unwrap_or(UNKNOWN_INTERVAL);
    let quarters = longest_run(days);
    LEAST_SILENCE.max(usual * INTERVALS).max(QuarterHour::LENGTH * quarters * 2)
}

/// The interval in an hour with more readings than three quarters of the hours have. Hours in which the device began to
/// send or fell silent have fewer readings.
fn usual_interval(hours: &[u32]) -> Option<TimeDelta> {
    let mut counts: Vec<u32> = hours.iter().copied().filter(|count| *count > 0).collect();
    counts.sort_unstable();
    let count = counts.get(counts.len() * 3 / 4)?;
    Some(TimeDelta::milliseconds(HOUR / i64::from(*count)))
}

/// The longest run of empty quarters between two quarters with readings.
fn longest_run(days: &[DayCounts<'_>]) -> i32 {
    let mut longest = 0;
    for days in days.split(|day| day.was_silent) {
        let (mut run, mut is_heard) = (0, false);
        for count in days.iter().flat_map(|day| day.quarters) {
            if *count > 0 {
                longest = if is_heard { longest.max(run) } else { longest };
                (run, is_heard) = (0, true);
            } else {
                run += 1;
            }
        }
    }

    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(hours: &[u32], days: &[(&[u32], bool)]) -> i64 {
        let days: Vec<DayCounts<'_>> =
            days.iter().map(|&(quarters, was_silent)| DayCounts { quarters, was_silent }).collect();
        silence_limit(hours, &days).num_minutes()
    }

    #[test]
    fn the_limit_is_the_greatest_of_three() {
        assert_eq!(minutes(&[60; 24], &[]), 10, "never before ten minutes");
        assert_eq!(minutes(&[4; 24], &[]), 60, "four usual intervals");
        assert_eq!(minutes(&[], &[]), 60, "nothing is known");
        assert_eq!(minutes(&[0, 0, 1, 12, 12, 12], &[]), 20, "hours with less count less");
        assert_eq!(minutes(&[60; 24], &[(&[5, 0, 0, 5], false)]), 60, "twice the longest run");
    }

    #[test]
    fn a_device_that_dies_raises_no_limit() {
        assert_eq!(minutes(&[60; 24], &[(&[5, 0, 0, 0, 5], true)]), 10);
        assert_eq!(minutes(&[60; 24], &[(&[5, 0, 0, 0], false)]), 10, "a run that lasts");
        assert_eq!(minutes(&[60; 24], &[(&[0, 0, 0, 5], false)]), 10, "before its first reading");
        assert_eq!(minutes(&[60; 24], &[(&[5, 0], false), (&[0, 5], false)]), 60, "over midnight");
        assert_eq!(minutes(&[60; 24], &[(&[5, 0], false), (&[5], true), (&[0, 5], false)]), 10);
    }
}
