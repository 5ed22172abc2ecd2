//! The times after which a bucket is over. Reads no clock.

use chrono::TimeDelta;
use domain::{Quarter, Timestamp};

/// A bucket is folded as soon as its readings change from this long after its end on; before, it is left
/// to the sweep.
pub const GRACE: TimeDelta = TimeDelta::minutes(10);
/// The most by which two clocks of the system differ.
pub const SKEW: TimeDelta = TimeDelta::seconds(60);

/// Whether a bucket with this end is folded as soon as its readings change.
#[must_use]
pub fn is_over(end: Timestamp, now: Timestamp) -> bool {
    end.saturating_add(GRACE) <= now
}

/// The end of the newest quarter that a sweep may seal: every clock agrees that the quarter is over, so
/// whoever left one of its readings to the sweep has seen that reading before.
#[must_use]
pub fn newest_sealable_edge(now: Timestamp) -> Timestamp {
    Quarter::of(now.saturating_add(-(GRACE + SKEW))).start()
}

/// The newest mark that a sweep with a right clock may have left. One beyond it was made by a clock that was ahead,
/// and hides what was stored since.
#[must_use]
pub fn newest_possible_mark(now: Timestamp) -> Timestamp {
    newest_sealable_edge(now.saturating_add(SKEW))
}
