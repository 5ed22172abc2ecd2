//! `GetItem`, `PutItem`, `Query` and `UpdateItem` on access tokens. Knows no secret.

use crate::DynamoStore;
use crate::update::Update;
use domain::{Timestamp, Token, TokenHash};
use table::item::attribute::REVOKED;
use table::item::{self, Attribute};
use table::keys::{Key, TOKENS};
use table::{
    AddToken, FindToken, InsertOutcome, Invocation, ManageTokens, StoreError, StoreResult,
    UpdateOutcome,
};

impl FindToken for DynamoStore {
    async fn token(&self, hash: &TokenHash, invocation: &Invocation) -> StoreResult<Option<Token>> {
        self.find(&Key::Token(*hash), invocation).await
    }
}

impl AddToken for DynamoStore {
    async fn add_token(&self, token: &Token, invocation: &Invocation) -> StoreResult<()> {
        match self.put_if_absent(item::from_token(token), invocation).await? {
            InsertOutcome::Inserted => Ok(()),
            InsertOutcome::Exists(Token { .. }) => {
                Err(StoreError::Refused("the token is there already".into()))
            }
        }
    }
}

impl ManageTokens for DynamoStore {
    async fn tokens(&self, invocation: &Invocation) -> StoreResult<Vec<Token>> {
        Ok(self.list(TOKENS, invocation).await?.found)
    }

    async fn revoke_token(
        &self,
        hash: &TokenHash,
        at: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut update = Update::of(Key::Token(*hash));
        update.set_if_absent(&[REVOKED], Attribute::S(at.to_string()));
        Ok(matches!(update.send(self, invocation).await?, UpdateOutcome::Updated(_)))
    }
}
