//! The errors of the table. Says nothing of how a client sees them.

use crate::item::UnreadableItem;

/// An error of the table.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The table throttled the request; the same request succeeds later.
    #[error("the capacity of the table is used up")]
    Throttled(#[source] Cause),
    /// The table could not be reached or failed; the same request may succeed later.
    #[error("the table cannot be reached")]
    Unavailable(#[source] Cause),
    /// Other writers changed the item during each attempt; the same request may succeed later.
    #[error("others keep changing {0} at the same moment")]
    Contended(String),
    /// The invocation's time is over.
    #[error("there was no time left for a request to the table")]
    TimedOut,
    /// The table refuses the request until a person corrects something, such as a permission.
    #[error("the table refuses the request")]
    Refused(#[source] Cause),
    /// The request does not fit the item, or the item would grow too large; repeating does not help.
    #[error("the table cannot apply the request to the item")]
    Inapplicable(#[source] Cause),
    /// An item cannot be decoded; repeating does not help.
    #[error("an item of the table cannot be read")]
    Unreadable(#[source] UnreadableItem),
}

/// The source of a [`StoreError`].
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

impl StoreError {
    /// Whether the same request may succeed later.
    pub const fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Throttled(_) | Self::Unavailable(_) | Self::Contended(_) | Self::TimedOut
        )
    }

    /// Whether the same request fails for as long as the item is unchanged.
    pub const fn is_permanent(&self) -> bool {
        matches!(self, Self::Inapplicable(_) | Self::Unreadable(_))
    }
}

/// The result of a port.
pub type StoreResult<T> = Result<T, StoreError>;
