//! A list of the registry, with the items that could not be read. Reads no table.

use std::collections::BTreeSet;

use domain::DeletedDevice;

use crate::item::{self, Attribute, Decode, ItemError, UnreadableItem};
use crate::keys::Key;
use crate::{AlertKey, StoredAlertState};

/// How many devices, and how many rooms, a function keeps in memory.
pub const MAX_CACHED_ENTRIES: usize = 10_000;

/// Items of the registry. A person or a program may have damaged some.
#[derive(Debug)]
pub struct Listing<T> {
    /// The items that can be read.
    pub found: Vec<T>,
    /// The items that cannot be read.
    pub unreadable: Vec<UnreadableItem>,
    /// The devices that are being deleted, or are deleted and not forgotten yet.
    pub deleted: Vec<DeletedDevice>,
}

/// A page of a list of the registry, sorted by id.
#[derive(Debug)]
pub struct ListPage<T> {
    /// Its items.
    pub listing: Listing<T>,
    /// Whether there are items after them.
    pub has_more: bool,
}

/// The states of a page that are due.
#[derive(Debug)]
pub struct DueStates {
    /// The due states, and those of the page that cannot be read.
    pub listing: Listing<StoredAlertState>,
    /// The sort key after which further states begin.
    pub next: Option<String>,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self { found: Vec::new(), unreadable: Vec::new(), deleted: Vec::new() }
    }
}

impl<T: Decode> Listing<T> {
    /// Adds an item. An item that cannot be read is kept aside, so that the list goes on without it.
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
    /// The rules and subjects whose states are there and cannot be read: nobody knows what they say.
    pub fn damaged(&self) -> BTreeSet<AlertKey> {
        let alert = |item: &UnreadableItem| match Key::parse(&item.pk, &item.sk) {
            Some(Key::AlertState(key)) => Some(key),
            _ => None,
        };
        self.unreadable.iter().filter_map(alert).collect()
    }
}
