//! The times after which a bucket is over. Reads no clock.

use chrono::TimeDelta;
use domain::{QuarterHour, TimeRange, Timestamp};

/// A bucket is folded as soon as its readings change from this long after its end on; before, it is left
/// to the sweep.
pub const GRACE: TimeDelta = TimeDelta::minutes(10);
/// The most by which two clocks of the system differ.
pub const SKEW: TimeDelta = TimeDelta::seconds(60);
/// An open day is folded each time that it is longer by so much, so that whoever asks for it reads the quarters of
/// this time at most.
const PART: TimeDelta = TimeDelta::hours(8);

/// Whether a bucket with this end is folded as soon as its readings change.
pub fn is_over(end: Timestamp, now: Timestamp) -> bool {
    end <= over_until(now)
}

/// The newest end of a bucket that is over.
pub fn over_until(now: Timestamp) -> Timestamp {
    now.saturating_add(-GRACE)
}

/// The end of the newest quarter that a sweep may seal: every clock agrees that the quarter is over, so
/// whoever left one of its readings to the sweep has seen that reading before.
pub fn newest_sealable_edge(now: Timestamp) -> Timestamp {
    QuarterHour::of(now.saturating_add(-(GRACE + SKEW))).start()
}

/// The newest watermark that a sweep with a right clock may have left. One beyond it was made by a clock that was ahead,
/// and hides later readings.
pub fn newest_watermark(now: Timestamp) -> Timestamp {
    newest_sealable_edge(now.saturating_add(SKEW))
}

/// The part of a local day that is folded at `until`: the whole day once it is over, before that its first 8 or 16
/// hours. `None` before.
pub fn part_of_day(day: TimeRange, until: Timestamp) -> Option<TimeRange> {
    let parts = [day.to(), day.from().saturating_add(PART * 2), day.from().saturating_add(PART)];
    let to = parts.into_iter().find(|to| *to <= until.min(day.to()))?;
    TimeRange::new(day.from(), to).ok()
}
