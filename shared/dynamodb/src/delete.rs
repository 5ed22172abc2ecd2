//! `DeleteItem`: of whatever is there, with a look at what it was, or only of what is still as it was. Chooses nothing.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity, ReturnValue};

use crate::attribute::{SdkItem, to_sdk, value_to_sdk};
use crate::error::store_error;
use crate::pause::{asked, while_throttled};
use crate::{DynamoStore, note_write};
use table::item::{self, Attribute};
use table::keys::{Key, PK, SK};
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

    /// Deletes an item, whatever it is; returns whether there was one.
    pub(super) async fn delete_found(
        &self,
        key: &Key,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let request = self
            .client
            .delete_item()
            .table_name(&self.table)
            .set_key(Some(to_sdk(item::key(key))))
            .return_values(ReturnValue::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = asked(invocation, || request.clone().send()).await?;
        note_write(invocation, answer.consumed_capacity());
        Ok(answer.attributes.is_some_and(|it| !it.is_empty()))
    }

    /// Deletes an item whose attributes still have these values, `None` where there is no such attribute; returns
    /// whether they had.
    pub(super) async fn delete_if_still(
        &self,
        key: &Key,
        still: impl IntoIterator<Item = (&'static str, Option<Attribute>)>,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut condition = "attribute_exists(#p)".to_owned();
        let mut names = HashMap::from([("#p".to_owned(), PK.to_owned())]);
        let mut values = SdkItem::new();
        for (n, (name, value)) in still.into_iter().enumerate() {
            names.insert(format!("#n{n}"), name.to_owned());
            match value {
                Some(value) => {
                    condition += &format!(" AND #n{n} = :v{n}");
                    values.insert(format!(":v{n}"), value_to_sdk(value));
                }
                None => condition += &format!(" AND attribute_not_exists(#n{n})"),
            }
        }
        let request = self
            .client
            .delete_item()
            .table_name(&self.table)
            .set_key(Some(to_sdk(item::key(key))))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values((!values.is_empty()).then_some(values))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let send = || async {
            match invocation.within(request.clone().send()).await? {
                Ok(answer) => {
                    note_write(invocation, answer.consumed_capacity());
                    Ok(true)
                }
                Err(error) => match error.as_service_error() {
                    Some(DeleteItemError::ConditionalCheckFailedException(_)) => {
                        invocation.add_write(1.0);
                        Ok(false)
                    }
                    _ => Err(store_error(error)),
                },
            }
        };
        while_throttled(invocation, send).await
    }
}
