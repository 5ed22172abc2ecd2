//! Who needs an access token. Checks none.

/// Who needs a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Auth {
    /// Everybody.
    #[default]
    On,
    /// Whoever edits or deletes. Anybody may read, and store readings.
    Off,
    /// Nobody, because only the owner of this machine can reach the function.
    Owner,
}
