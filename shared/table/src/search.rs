//! Queries of the attribute index, and its entries. Sends none.

use domain::{DeviceId, SearchRange, SearchValue, Subject};

use crate::keys;

/// A query for entries of one subject, in the order of the index.
#[derive(Debug, Clone, Copy)]
pub struct SearchQuery<'a> {
    /// The subject.
    pub subject: &'a Subject,
    /// The range of the values.
    pub range: &'a SearchRange,
    /// The last entry of the previous page; `None` for the first page.
    pub after: Option<&'a SearchHit>,
    /// The largest number of entries.
    pub limit: usize,
}

/// An entry of the index: the device has the value, or had it until a moment ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The value.
    pub value: SearchValue,
    /// The device.
    pub device: DeviceId,
}

impl SearchHit {
    /// The text by which the index sorts the entries of a subject.
    pub fn place(&self) -> String {
        keys::search_place(&self.value, &self.device)
    }

    /// Parses a text that [`place`](Self::place) has made.
    pub fn parse(place: &str) -> Option<Self> {
        keys::parse_search_place(place).map(|(value, device)| Self { value, device })
    }
}
