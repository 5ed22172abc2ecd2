//! A bucket with its timestamps.

use domain::{Bucket, LocalDate, QuarterHour, TimeRange, Timestamp, Zone};
use table::StoredRollup;

use crate::sealing::part_of_day;

/// A bucket with its timestamps; for a day also the time zone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) bucket: Bucket,
    pub(crate) range: TimeRange,
    pub(crate) zone: Option<Zone>,
}

impl Bounds {
    pub(crate) fn quarter(quarter: QuarterHour) -> Self {
        Self { bucket: Bucket::QuarterHour(quarter), range: quarter.range(), zone: None }
    }

    /// A local day, or the part of it that is folded at `until`. `None` for a date that the zone skips, or if no part
    /// is over.
    pub(crate) fn day(zone: Zone, date: LocalDate, until: Timestamp) -> Option<Self> {
        let range = part_of_day(zone.day(date)?, until)?;
        Some(Self { bucket: Bucket::Day(date), range, zone: Some(zone) })
    }

    /// The same bounds, but at least as long as the stored rollup of the day: a slower clock does not shorten it.
    pub(crate) fn at_least(self, known: Option<&StoredRollup>) -> Self {
        let (Some(known), Some(zone), Bucket::Day(date)) = (known, self.zone, self.bucket) else {
            return self;
        };
        let is_longer = known.zone.as_deref() == Some(zone.name())
            && zone.day(date).is_some_and(|day| is_part(known.range, day))
            && known.range.to() > self.range.to();
        if is_longer { Self { range: known.range, ..self } } else { self }
    }

    /// Whether the stored rollup has the zone of these bounds, and covers the same day or its beginning.
    pub(crate) fn continues(&self, known: &StoredRollup) -> bool {
        self.zone.is_some_and(|zone| known.zone.as_deref() == Some(zone.name()))
            && is_part(known.range, self.range)
            && known.range != self.range
    }
}

/// Whether a range begins like a day, and does not go beyond the day.
fn is_part(range: TimeRange, day: TimeRange) -> bool {
    range.from() == day.from() && range.to() <= day.to()
}
