//! What both plans find, and the months by which they read. Reads nothing.

use std::collections::{BTreeMap, BTreeSet};

use domain::{CalendarUnit, MetricMeans, MetricName, QuarterHour, Rollup, RoomId, TimeRange, Zone};

use crate::gather::DeviceQuestion;

/// The quarters of an hour that match, with what the metrics of the conditions were.
pub(crate) type Matching = BTreeMap<QuarterHour, BTreeMap<MetricName, MetricMeans>>;

/// Whether a quarter of an hour counts for the room that is asked about: one in which the device was in
/// several counts for each.
pub(crate) fn is_of(question: &DeviceQuestion<'_>, rooms: &BTreeSet<Option<RoomId>>) -> bool {
    let rooms = || Rollup { rooms: rooms.clone(), ..Rollup::default() };
    question.rooms.is_none_or(|asked| rooms().may_be_of(asked))
}

/// A range by months of UTC.
pub(crate) fn months(range: TimeRange) -> Vec<TimeRange> {
    let months = CalendarUnit::Month.buckets(range, Zone::UTC);
    months.filter_map(|month| month.intersection(range)).collect()
}
