//! Items to and from the SDK's attribute values. Knows no attribute by name.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;

use table::item::{self, Attribute, Decode, ItemError, UnreadableItem};
use table::{StoreError, StoreResult};

/// The SDK's form of an item.
pub(super) type SdkItem = HashMap<String, AttributeValue>;

pub(super) fn to_sdk<N: Into<String>>(
    attributes: impl IntoIterator<Item = (N, Attribute)>,
) -> SdkItem {
    attributes.into_iter().map(|(name, value)| (name.into(), value_to_sdk(value))).collect()
}

pub(super) fn value_to_sdk(attribute: Attribute) -> AttributeValue {
    match attribute {
        Attribute::S(text) => AttributeValue::S(text),
        Attribute::N(number) => AttributeValue::N(number.into()),
        Attribute::B(bytes) => AttributeValue::B(Blob::new(bytes)),
        Attribute::L(list) => AttributeValue::L(list.into_iter().map(value_to_sdk).collect()),
        Attribute::M(item) => AttributeValue::M(to_sdk(item)),
        Attribute::Ss(set) => AttributeValue::Ss(set),
        Attribute::Bool(flag) => AttributeValue::Bool(flag),
        Attribute::Other => AttributeValue::Null(true),
    }
}

pub(super) fn from_sdk(item: SdkItem) -> impl Iterator<Item = (String, Attribute)> {
    item.into_iter().map(|(name, value)| (name, value_from_sdk(value)))
}

/// Reads an item that must be what its key says.
pub(super) fn read<T: Decode>(found: SdkItem) -> StoreResult<T> {
    item::read(from_sdk(found)).map_err(StoreError::Unreadable)
}

/// Reads an item. Returns `None` for a device that is being deleted, or is deleted.
pub(super) fn read_present<T: Decode>(found: SdkItem) -> StoreResult<Option<T>> {
    match item::read(from_sdk(found)) {
        Ok(present) => Ok(Some(present)),
        Err(UnreadableItem { why: ItemError::Deleted(_), .. }) => Ok(None),
        Err(unreadable) => Err(StoreError::Unreadable(unreadable)),
    }
}

fn value_from_sdk(value: AttributeValue) -> Attribute {
    match value {
        AttributeValue::S(text) => Attribute::S(text),
        AttributeValue::N(number) => Attribute::N(number.into()),
        AttributeValue::B(bytes) => Attribute::B(bytes.into_inner()),
        AttributeValue::L(list) => Attribute::L(list.into_iter().map(value_from_sdk).collect()),
        AttributeValue::M(item) => Attribute::M(from_sdk(item).collect()),
        AttributeValue::Ss(set) => Attribute::Ss(set),
        AttributeValue::Bool(flag) => Attribute::Bool(flag),
        _ => Attribute::Other,
    }
}
