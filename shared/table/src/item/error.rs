//! The errors of items that are not what their keys say. Says nothing of requests.

use domain::DeletedDevice;

/// The error of an item that is not what its key says.
#[derive(Debug, thiserror::Error)]
pub enum ItemError {
    /// An attribute that has to be there is not, or has another type.
    #[error("{0} is missing or has another type")]
    Missing(&'static str),
    /// The key is not one of the table's, or belongs to another kind of item.
    #[error("the key {0:?}, {1:?} is not that of such an item")]
    Key(String, String),
    /// The device is being deleted, or is deleted.
    #[error("the device is deleted")]
    Deleted(Box<DeletedDevice>),
    /// An attribute whose content cannot be.
    #[error("{attribute} is not valid")]
    Invalid {
        /// The attribute.
        attribute: &'static str,
        /// Why.
        #[source]
        why: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// An item that cannot be what its key says.
#[derive(Debug, thiserror::Error)]
#[error("the item {} {}", domain::excerpt(pk), domain::excerpt(sk))]
pub struct UnreadableItem {
    /// Its partition key.
    pub pk: String,
    /// Its sort key.
    pub sk: String,
    /// Why.
    #[source]
    pub why: ItemError,
}
