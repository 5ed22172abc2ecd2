//! The item of an entry in the attribute index: its key, and the keys of the index. It is never decoded.

use super::{Attribute, Item, with_key};
use crate::keys::{self, Key};
use crate::layout::Layout;
use domain::{DeviceId, SearchEntry};

/// The item of a device's entry. Its partition in the index is named by the subject and the device's partition.
pub fn from_search_entry(device: &DeviceId, entry: &SearchEntry, layout: Layout) -> Item {
    let shard = layout.shards.of(device);
    let subject = Attribute::S(shard.of_name(entry.subject.as_str()));
    let value = Attribute::S(keys::search_place(&entry.value, device));
    let under = Key::SearchEntry(device.clone(), entry.clone());
    with_key(&under, [(keys::ATTRIBUTE, Some(subject)), (keys::VALUE, Some(value))])
}
