//! A bucket with its timestamps.

use domain::{Bucket, LocalDate, Quarter, TimeRange, Zone};

/// A bucket, its timestamps, and the zone of a day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) bucket: Bucket,
    pub(crate) range: TimeRange,
    pub(crate) zone: Option<Zone>,
}

impl Bounds {
    pub(crate) fn quarter(quarter: Quarter) -> Self {
        Self { bucket: Bucket::Quarter(quarter), range: quarter.range(), zone: None }
    }

    /// `None` for a date that the zone skips.
    pub(crate) fn day(zone: Zone, date: LocalDate) -> Option<Self> {
        Some(Self { bucket: Bucket::Day(date), range: zone.day(date)?, zone: Some(zone) })
    }
}
