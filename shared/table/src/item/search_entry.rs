//! The item of a value by which a device is found: its key, and the keys of the index. Is never read.

use super::{Attribute, Item, key};
use crate::keys::{self, Key};
use crate::layout::Layout;
use domain::{DeviceId, SearchEntry};

/// The item of a value of a device. In the index it is in the partition of the device's number.
#[must_use]
pub fn from_search_entry(device: &DeviceId, entry: &SearchEntry, layout: Layout) -> Item {
    let shard = layout.shards.of(device);
    let mut item = key(&Key::SearchEntry(device.clone(), entry.clone()));
    let keys = [
        (keys::ATTRIBUTE, shard.of_name(entry.subject.as_str())),
        (keys::VALUE, keys::search_place(&entry.value, device)),
    ];
    item.extend(keys.map(|(name, text)| (name.to_owned(), Attribute::S(text))));
    item
}
