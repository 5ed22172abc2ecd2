//! `GetItem`, `PutItem`, `Query` and `UpdateItem` on access tokens. Knows no secret.

use crate::DynamoStore;
use crate::update::{Update, Updated};
use domain::{Instant, Token, TokenHash};
use table::item::attribute::REVOKED;
use table::item::{self, Attribute};
use table::keys::{Key, TOKENS};
use table::{Budget, FindToken, ManageTokens, Registration, StoreError, StoreResult};

impl FindToken for DynamoStore {
    async fn token(&self, hash: &TokenHash, budget: &Budget) -> StoreResult<Option<Token>> {
        self.find(&Key::Token(*hash), item::to_token, budget).await
    }
}

impl ManageTokens for DynamoStore {
    async fn add_token(&self, token: &Token, budget: &Budget) -> StoreResult<()> {
        match self.put_if_absent(item::from_token(token), item::to_token, budget).await? {
            Registration::New => Ok(()),
            Registration::Known(_) => Err(StoreError::Refused("the token is there already".into())),
        }
    }

    async fn tokens(&self, budget: &Budget) -> StoreResult<Vec<Token>> {
        Ok(self.list(TOKENS, item::to_token, budget).await?.found)
    }

    async fn revoke_token(
        &self,
        hash: &TokenHash,
        at: Instant,
        budget: &Budget,
    ) -> StoreResult<bool> {
        let mut update = Update::of(Key::Token(*hash));
        update.set_if_absent(&[REVOKED], Attribute::S(at.to_string()));
        Ok(matches!(update.send(self, budget).await?, Updated::Written(_)))
    }
}
