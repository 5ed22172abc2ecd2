//! Makes a new access token and its secret. Stores no token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use domain::{Label, Scope, Timestamp, Token, TokenHash, token_of};

/// The properties of a new token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// The permissions.
    pub scope: Scope,
    /// The purpose, in a person's words.
    pub name: Option<Label>,
    /// How long the token is valid; `None`: for ever.
    pub lifetime: Option<TimeDelta>,
    /// The admin token that was used to make the new token.
    pub issued_by: Option<TokenHash>,
}

/// The error that the operating system gives no random bits.
#[derive(Debug, thiserror::Error)]
#[error("the operating system has no randomness: {0}")]
pub struct NoRandomness(getrandom::Error);

impl NewToken {
    /// Makes the token, and its secret of 256 random bits. Only the hash of the secret is in the token.
    pub fn make(self, now: Timestamp) -> Result<(Token, String), NoRandomness> {
        let mut bits = [0; 32];
        getrandom::fill(&mut bits).map_err(NoRandomness)?;
        let secret = token_of(&URL_SAFE_NO_PAD.encode(bits));
        let Self { scope, name, lifetime, issued_by } = self;
        let (hash, created) = (TokenHash::of(&secret), now);
        let expires = lifetime.map(|lifetime| created.saturating_add(lifetime));
        Ok((Token { hash, scope, name, created, revoked: None, expires, issued_by }, secret))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::at_millis;

    #[test]
    fn a_token_has_256_random_bits_and_only_its_hash_is_kept() {
        let issued_by = Some(TokenHash::of("admin"));
        let lifetime = Some(TimeDelta::hours(1));
        let new = NewToken { scope: Scope::Read, name: None, lifetime, issued_by };
        let now = at_millis(0);
        let (token, secret) = new.clone().make(now).expect("random bits");
        let (_, other) = new.make(now).expect("random bits");
        assert_ne!(secret, other);
        assert_eq!(URL_SAFE_NO_PAD.decode(&secret[3..46]).expect("base64").len(), 32);
        assert_eq!(domain::check_token(&secret), Ok(()));
        assert_eq!(token.hash, TokenHash::of(&secret));
        assert_eq!(token.issued_by, issued_by);
        let expires = Some(now.saturating_add(TimeDelta::hours(1)));
        assert_eq!((token.created, token.expires), (now, expires));
    }
}
