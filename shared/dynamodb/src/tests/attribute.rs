//! Items to and from the SDK's attribute values, for tests that compare with the SDK. Knows no attribute by name.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;

use table::item::Attribute;

/// The SDK's form of an item.
pub(crate) type SdkItem = HashMap<String, AttributeValue>;

pub(crate) fn to_sdk<N: Into<String>>(
    attributes: impl IntoIterator<Item = (N, Attribute)>,
) -> SdkItem {
    attributes.into_iter().map(|(name, value)| (name.into(), value_to_sdk(value))).collect()
}

pub(crate) fn value_to_sdk(attribute: Attribute) -> AttributeValue {
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

pub(crate) fn from_sdk(item: SdkItem) -> impl Iterator<Item = (String, Attribute)> {
    item.into_iter().map(|(name, value)| (name, value_from_sdk(value)))
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
