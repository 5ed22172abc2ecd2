//! The times after which a bucket is over. Reads no clock.

use chrono::TimeDelta;
use domain::{QuarterHour, TimeRange, Timestamp};

/// The time after the end of a bucket from which a change of its readings is folded at once. An earlier change is left
/// to the sweep.
pub const GRACE: TimeDelta = TimeDelta::minutes(10);
/// The largest difference between two clocks of the system.
pub const SKEW: TimeDelta = TimeDelta::seconds(60);
/// An open day is folded again each time that it has grown by this much. So a reader of the day needs the quarters of
/// at most this time.
const PART: TimeDelta = TimeDelta::hours(8);

/// Whether a bucket with this end is over, so that changes of its readings are folded at once.
pub fn is_over(end: Timestamp, now: Timestamp) -> bool {
    end <= over_until(now)
}

/// The newest end of a bucket that is over.
pub fn over_until(now: Timestamp) -> Timestamp {
    now.saturating_add(-GRACE)
}

/// The end of the newest quarter that a sweep may seal. Every clock agrees that this quarter is over. So a process
/// decides to leave a reading to the sweep before any sweep seals its quarter.
pub fn newest_sealable_end(now: Timestamp) -> Timestamp {
    QuarterHour::of(now.saturating_add(-(GRACE + SKEW))).start()
}

/// The newest watermark that a sweep with a right clock may have left. A later watermark was made by a clock that was
/// ahead, and hides later readings.
pub fn newest_watermark(now: Timestamp) -> Timestamp {
    newest_sealable_end(now.saturating_add(SKEW))
}

/// The part of a local day that is folded at `until`: the whole day if it is over, else the first 16 or 8 hours. `None`
/// before the first 8 hours are over.
pub fn part_of_day(day: TimeRange, until: Timestamp) -> Option<TimeRange> {
    let parts = [day.to(), day.from().saturating_add(PART * 2), day.from().saturating_add(PART)];
    let to = parts.into_iter().find(|to| *to <= until.min(day.to()))?;
    TimeRange::new(day.from(), to).ok()
}
