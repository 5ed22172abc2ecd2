//! Access tokens: found by their hash, added once, revoked for good. Knows no secret.

use domain::{Timestamp, Token, TokenHash};
use ports::port;

use crate::db::{Db, absent, put, set_if_absent, update};
use crate::item::attribute::REVOKED;
use crate::item::{Attribute, Kind as _};
use crate::keys::{Key, PK, TOKENS};
use crate::{Patterns, StoreError, StoreResult};

/// Looks up an access token.
#[port(FindToken, GetItem(Tokens))]
impl<D: Db> Patterns<'_, D> {
    /// The token with this hash, revoked or not, as it is this moment.
    pub async fn token(self, hash: &TokenHash) -> StoreResult<Option<Token>> {
        self.find(&Key::Token(*hash)).await
    }
}

/// Stores new access tokens.
#[port(AddToken, PutItem(Tokens))]
impl<D: Db> Patterns<'_, D> {
    /// Stores a new token. Refused if the token exists, so a repeat is refused.
    pub async fn add_token(self, token: &Token) -> StoreResult<()> {
        let new = put(token.item()).when([absent(PK)]);
        if self.is_written(new).await? {
            Ok(())
        } else {
            Err(StoreError::Refused("the token is there already".into()))
        }
    }
}

/// Lists and revokes access tokens: for the command line, not for functions.
#[port(ManageTokens, Query(Tokens), UpdateItem(Tokens))]
impl<D: Db> Patterns<'_, D> {
    /// All tokens, including revoked ones.
    pub async fn tokens(self) -> StoreResult<Vec<Token>> {
        Ok(self.list(TOKENS).await?.found)
    }

    /// Revokes a token; returns whether it exists. A repeat does not change the timestamp.
    pub async fn revoke_token(self, hash: &TokenHash, at: Timestamp) -> StoreResult<bool> {
        let at = Attribute::text(&at);
        self.is_written(update(&Key::Token(*hash)).with([set_if_absent(REVOKED, at)])).await
    }
}
