//! What tests put into a table before anything is asked, and the ranges that they ask for.

use domain::{Order, Reading, TimeRange};
use table::{Expected, NoteSeen, PutReadings, RangeQuery, RoomVisit};

use crate::given::{answer, invocation};

/// Stores readings; all of them are stored.
pub(crate) async fn put(store: &impl PutReadings, readings: &[Reading]) {
    let put = store.put_readings(readings, None, &invocation()).await;
    assert!(put.not_stored.is_empty() && put.cause.is_none(), "{put:?}");
}

/// Notes for the first time that a device is seen in a room.
pub(crate) async fn note_seen(store: &impl NoteSeen, seen: &RoomVisit) {
    assert!(answer!(store.put_seen(seen, Expected::Absent)));
}

/// The first page of a range.
pub(crate) fn first_page(range: TimeRange, order: Order, limit: usize) -> RangeQuery {
    RangeQuery { range, order, after: None, limit, consistent: false }
}
