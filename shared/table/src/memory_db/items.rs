//! The items of a table in memory, by partition and sort key, and how large an item may be. Judges no condition.

use std::collections::BTreeMap;

use crate::item::{Attribute, Item};
use crate::{ItemKey, StoreError};

/// The largest number of bytes of an item, counting names and values.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html>
const MAX_ITEM_BYTES: usize = 400 << 10;

/// Items by partition and sort key.
#[derive(Debug, Clone, Default)]
pub(super) struct StoredItems(BTreeMap<String, BTreeMap<String, Item>>);

impl StoredItems {
    pub(super) fn get(&self, key: &ItemKey) -> Option<&Item> {
        self.0.get(&key.pk)?.get(&key.sk)
    }

    pub(super) fn partition(&self, pk: &str) -> Option<&BTreeMap<String, Item>> {
        self.0.get(pk)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Item> {
        self.0.values().flat_map(BTreeMap::values)
    }

    pub(super) fn store(&mut self, item: Item) {
        let ItemKey { pk, sk } = ItemKey::of_item(&item);
        self.0.entry(pk).or_default().insert(sk, item);
    }

    pub(super) fn remove(&mut self, key: &ItemKey) -> Option<Item> {
        self.0.get_mut(&key.pk)?.remove(&key.sk)
    }
}

/// The error for an item that is too large; `None` for other items.
pub(super) fn refuse_large(item: &Item) -> Option<StoreError> {
    let size = item_bytes(item);
    let why = || format!("the item has {size} bytes; the most are {MAX_ITEM_BYTES}");
    (size > MAX_ITEM_BYTES).then(|| StoreError::Inapplicable(why().into()))
}

/// The bytes of an item as `DynamoDB` counts them. Those of numbers are approximate, because AWS gives no exact rule.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>
pub(super) fn item_bytes(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &Attribute) -> usize {
    /// The bytes of a list or map without its members, and the bytes of a member without its value.
    const NESTED: usize = 3;
    const MEMBER: usize = 1;

    match value {
        Attribute::S(text) => text.len(),
        Attribute::N(number) => number.len().div_ceil(2) + 1,
        Attribute::B(bytes) => bytes.len(),
        Attribute::L(list) => {
            NESTED + list.iter().map(|member| MEMBER + value_bytes(member)).sum::<usize>()
        }
        Attribute::M(map) => NESTED + MEMBER * map.len() + item_bytes(map),
        Attribute::Ss(set) => set.iter().map(String::len).sum(),
        Attribute::Bool(_) | Attribute::Other => 1,
    }
}
