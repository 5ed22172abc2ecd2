//! A list of items of one kind, and the items that cannot be read. Reads no table.

use std::collections::BTreeSet;

use domain::DeletedDevice;

use crate::item::{self, Attribute, Decode, ItemError, UnreadableItem};
use crate::keys::Key;
use crate::{AlertKey, StoredAlertState};

/// The largest number of devices, and also of rooms, that a function keeps in memory.
pub const MAX_CACHED_ENTRIES: usize = 10_000;

/// Items of one kind: of the registry, of alerts, sources or tariffs. Some may be damaged by a person or a program.
#[derive(Debug)]
pub struct Listing<T> {
    /// The items that can be read.
    pub found: Vec<T>,
    /// The items that cannot be read.
    pub unreadable: Vec<UnreadableItem>,
    /// The devices that are being deleted, or whose tombstones have not expired.
    pub deleted: Vec<DeletedDevice>,
}

/// A page of a list.
#[derive(Debug)]
pub struct ListPage<T> {
    /// The items of the page.
    pub listing: Listing<T>,
    /// Whether there are items after the page.
    pub has_more: bool,
}

/// The due states of the states that a query has read.
#[derive(Debug)]
pub struct DueStates {
    /// The due states, and the due ones that cannot be read.
    pub listing: Listing<StoredAlertState>,
    /// The sort key after which the next page begins; `None` after the last page.
    pub next: Option<String>,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self { found: Vec::new(), unreadable: Vec::new(), deleted: Vec::new() }
    }
}

impl<T: Decode> Listing<T> {
    /// Adds an item. An unreadable item does not end the list, but is listed separately.
    pub fn add(&mut self, attributes: impl IntoIterator<Item = (String, Attribute)>) {
        match item::read(attributes) {
            Ok(found) => self.found.push(found),
            Err(UnreadableItem { why: ItemError::Deleted(device), .. }) => {
                self.deleted.push(*device);
            }
            Err(unreadable) => self.unreadable.push(unreadable),
        }
    }
}

impl Listing<StoredAlertState> {
    /// The keys of the states that are stored but cannot be read.
    pub fn damaged(&self) -> BTreeSet<AlertKey> {
        let alert = |item: &UnreadableItem| match Key::parse(&item.pk, &item.sk) {
            Some(Key::AlertState(key)) => Some(key),
            _ => None,
        };
        self.unreadable.iter().filter_map(alert).collect()
    }
}
