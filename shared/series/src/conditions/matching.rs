//! The matching quarters that `plain` and `indexed` both return, and the months in which both read. Reads nothing.

use std::collections::{BTreeMap, BTreeSet};

use domain::{CalendarUnit, MetricMeans, MetricName, QuarterHour, Rollup, RoomId, TimeRange, Zone};

use crate::gather::DeviceQuestion;

/// Matching quarters of an hour, each with the means of the metrics in the conditions.
pub(crate) type Matching = BTreeMap<QuarterHour, BTreeMap<MetricName, MetricMeans>>;

/// Whether a quarter of an hour counts for the rooms of the question. If the device was in several rooms, the quarter
/// counts for each of them.
pub(crate) fn is_of(question: &DeviceQuestion<'_>, rooms: &BTreeSet<Option<RoomId>>) -> bool {
    let rooms = || Rollup { rooms: rooms.clone(), ..Rollup::default() };
    question.rooms.is_none_or(|asked| rooms().may_be_of(asked))
}

/// The months of UTC in a range; the first and the last are cut at its ends.
pub(crate) fn months(range: TimeRange) -> Vec<TimeRange> {
    let months = CalendarUnit::Month.buckets(range, Zone::UTC);
    months.filter_map(|month| month.intersection(range)).collect()
}
