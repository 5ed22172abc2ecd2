//! The times for which readings and rollups are kept. Deletes nothing.

use chrono::TimeDelta;
use domain::{Bucket, Timestamp};
use table::item;

/// The times for which each level is kept; `None` means for ever. Each level is kept at least as long as the level
/// before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// The time for readings.
    pub readings: Option<TimeDelta>,
    /// The time for the rollups of 15 minutes.
    pub quarters: Option<TimeDelta>,
    /// The time for the rollups of local days.
    pub days: Option<TimeDelta>,
}

/// The time for which an emptied rollup stays. A fold that still saw a reading ends before.
const EMPTIED: TimeDelta = TimeDelta::days(7);
/// The time before its expiry from which a reading counts as gone: clocks differ, and the readings of a bucket do not
/// expire together.
const MARGIN: TimeDelta = TimeDelta::days(1);

impl Retention {
    /// When the rollup of a bucket that begins at `start` expires.
    pub(crate) fn expires(&self, bucket: Bucket, start: Timestamp) -> Option<Timestamp> {
        let kept = match bucket {
            Bucket::QuarterHour(_) => self.quarters,
            Bucket::Day(_) => self.days,
        };
        kept.map(|kept| item::expires(start, kept))
    }

    /// Whether all rollups of the quarters from `start` on still exist.
    pub(crate) fn has_quarters(&self, start: Timestamp, now: Timestamp) -> bool {
        !is_closing(self.quarters.map(|kept| item::expires(start, kept)), now)
    }
}

/// Whether data with this time of expiry is gone, or expires within a day, so that nobody may rely on it.
pub fn is_closing(expires: Option<Timestamp>, now: Timestamp) -> bool {
    expires.is_some_and(|expires| expires <= now.saturating_add(MARGIN))
}

/// When an emptied rollup expires.
pub(crate) fn emptied_expires(now: Timestamp) -> Timestamp {
    now.saturating_add(EMPTIED)
}
