//! A list of the registry, with the items that could not be read. Reads no table.

use std::collections::BTreeSet;

use domain::DeletedDevice;

use crate::item::{self, Attribute, Decode, ItemError, UnreadableItem};
use crate::keys::Key;
use crate::{AlertKey, StoredAlertState};

/// The largest number of devices, and of rooms, that a function keeps in memory.
pub const MAX_CACHED_ENTRIES: usize = 10_000;

/// Items of the registry, or of alerts or sources. A person or a program may have damaged some.
#[derive(Debug)]
pub struct Listing<T> {
    /// The items that can be read.
    pub found: Vec<T>,
    /// The items that cannot be read.
    pub unreadable: Vec<UnreadableItem>,
    /// The devices that are being deleted, or whose tombstones have not expired.
    pub deleted: Vec<DeletedDevice>,
}

/// A page of a list of the registry, sorted by id.
#[derive(Debug)]
pub struct ListPage<T> {
    /// The items of the page.
    pub listing: Listing<T>,
    /// Whether there are items after the page.
    pub has_more: bool,
}

/// The states of a page that are due.
#[derive(Debug)]
pub struct DueStates {
    /// The due states, and the unreadable states of the page.
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
    /// Adds an item. An unreadable item is listed apart, so that the list goes on without it.
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
    /// The keys of states that exist and cannot be read, so that their content is unknown.
    pub fn damaged(&self) -> BTreeSet<AlertKey> {
        let alert = |item: &UnreadableItem| match Key::parse(&item.pk, &item.sk) {
            Some(Key::AlertState(key)) => Some(key),
            _ => None,
        };
        self.unreadable.iter().filter_map(alert).collect()
    }
}
