//! `GetItem`, `PutItem`, `Query` and `UpdateItem` on access tokens. Knows no secret.

use aws_sdk_dynamodb::types::ReturnConsumedCapacity;

use super::DynamoStore;
use super::attribute::to_sdk;
use super::error::store_error;
use super::update::{Update, Updated};
use crate::domain::{Instant, Token, TokenHash};
use crate::store::item::attribute::REVOKED;
use crate::store::item::{self, Attribute};
use crate::store::keys::{Key, PK, TOKENS};
use crate::store::{Budget, FindToken, ManageTokens, StoreResult};

impl FindToken for DynamoStore {
    async fn token(&self, hash: &TokenHash, budget: &Budget) -> StoreResult<Option<Token>> {
        self.find(&Key::Token(*hash), item::to_token, budget).await
    }
}

impl ManageTokens for DynamoStore {
    async fn add_token(&self, token: &Token, budget: &Budget) -> StoreResult<()> {
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(to_sdk(item::from_token(token))))
            .condition_expression("attribute_not_exists(#p)")
            .expression_attribute_names("#p", PK)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send();
        budget.within(put).await?.map(drop).map_err(store_error)
    }

    async fn tokens(&self, budget: &Budget) -> StoreResult<Vec<Token>> {
        self.list(TOKENS, item::to_token, budget).await
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
