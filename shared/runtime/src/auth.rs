//! The setting of who needs an access token. Checks no token.

/// Who needs an access token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Auth {
    /// Everybody needs a token.
    #[default]
    On,
    /// Only edits and deletions need a token. Anybody may read, and store readings.
    Off,
    /// Nobody needs a token: only the owner of this machine can reach the function.
    Owner,
}
