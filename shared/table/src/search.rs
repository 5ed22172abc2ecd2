//! Questions to the index of attributes, and its answers. Asks nothing.

use domain::{DeviceId, SearchRange, SearchValue, Subject};

use crate::keys;

/// Some entries of one subject, in the order of the index.
#[derive(Debug, Clone, Copy)]
pub struct SearchQuery<'a> {
    /// The subject.
    pub subject: &'a Subject,
    /// The values.
    pub range: &'a SearchRange,
    /// The entry after which the answer begins.
    pub after: Option<&'a SearchHit>,
    /// The largest number of entries.
    pub limit: usize,
}

/// An entry of the index: a device has, or had until a moment ago, a value.
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

    /// Reads back what [`place`](Self::place) writes.
    pub fn parse(place: &str) -> Option<Self> {
        keys::parse_search_place(place).map(|(value, device)| Self { value, device })
    }
}
