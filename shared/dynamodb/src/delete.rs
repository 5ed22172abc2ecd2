//! `DeleteItem` of whatever is there. Chooses nothing.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};

use crate::pause::asked;
use crate::{DynamoStore, note_write};
use table::keys::{PK, SK};
use table::{Invocation, StoreResult};

impl DynamoStore {
    /// Deletes an item, whatever it is. Done twice, it changes nothing.
    pub(super) async fn delete_item(
        &self,
        pk: String,
        sk: String,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        let request = self
            .client
            .delete_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(pk))
            .key(SK, AttributeValue::S(sk))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = asked(invocation, || request.clone().send()).await?;
        note_write(invocation, answer.consumed_capacity());
        Ok(())
    }
}
