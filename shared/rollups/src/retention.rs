//! The times for which readings and rollups are kept. Deletes nothing.

use chrono::TimeDelta;
use domain::{Bucket, Timestamp};
use table::item;

/// How long each level is kept; `None` is for ever. Each is kept at least as long as the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Readings.
    pub readings: Option<TimeDelta>,
    /// The rollups of 15 minutes.
    pub quarters: Option<TimeDelta>,
    /// The rollups of local days.
    pub days: Option<TimeDelta>,
}

/// An emptied rollup stays this long: longer than any fold that still saw a reading can take.
const EMPTIED: TimeDelta = TimeDelta::days(7);
/// Readings that expire within this time count as gone: clocks differ, and the readings of a bucket expire one after
/// the other.
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

    /// Whether the rollups of the quarters from `start` on are all still there.
    pub(crate) fn has_quarters(&self, start: Timestamp, now: Timestamp) -> bool {
        !is_closing(self.quarters.map(|kept| item::expires(start, kept)), now)
    }
}

/// Whether what expires then may have begun to be deleted.
pub fn is_closing(expires: Option<Timestamp>, now: Timestamp) -> bool {
    expires.is_some_and(|expires| expires <= now.saturating_add(MARGIN))
}

/// When the rollup of nothing expires.
pub(crate) fn emptied_expires(now: Timestamp) -> Timestamp {
    now.saturating_add(EMPTIED)
}
