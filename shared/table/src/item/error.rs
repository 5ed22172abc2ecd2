//! The errors of decoding an item. Says nothing of requests.

use domain::DeletedDevice;

/// Why an item cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum ItemError {
    /// A required attribute is absent, or has another type.
    #[error("{0} is missing or has another type")]
    Missing(&'static str),
    /// The key is not a key of the table, or belongs to another kind of item.
    #[error("the key {0:?}, {1:?} is not a key of this kind of item")]
    Key(String, String),
    /// The device is deleted or being deleted.
    #[error("the device is deleted")]
    Deleted(Box<DeletedDevice>),
    /// The content of an attribute is not valid.
    #[error("{attribute} is not valid")]
    Invalid {
        /// The attribute.
        attribute: &'static str,
        /// The reason.
        #[source]
        why: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// An item that cannot be decoded as the kind of item that its key names.
#[derive(Debug, thiserror::Error)]
#[error("the item {} {}", domain::excerpt(pk), domain::excerpt(sk))]
pub struct UnreadableItem {
    /// The partition key of the item.
    pub pk: String,
    /// The sort key of the item.
    pub sk: String,
    /// The reason.
    #[source]
    pub why: ItemError,
}
