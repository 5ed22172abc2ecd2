//! What several ports in memory share: a page of a list, and when a reading expires.

use chrono::TimeDelta;
use domain::Timestamp;

use crate::{ListPage, Listing};

pub(super) fn list_page<'a, T: Clone + 'a>(
    all: impl Iterator<Item = &'a T>,
    is_asked: impl Fn(&T) -> bool,
    limit: usize,
) -> ListPage<T> {
    let mut asked = all.filter(|it| is_asked(it));
    let found = asked.by_ref().take(limit).cloned().collect();
    let has_more = asked.next().is_some();
    ListPage { listing: Listing { found, ..Listing::default() }, has_more }
}

/// When a reading of that timestamp expires.
pub(super) fn expiry(at: Timestamp, retention: Option<TimeDelta>) -> Option<Timestamp> {
    retention.map(|retention| crate::item::expires(at, retention))
}
