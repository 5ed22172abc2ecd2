//! A put with a condition, as a `PutItem` and as a part of a transaction. Never puts without a condition.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{
    self, AttributeValue, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure,
};

use crate::attribute::{SdkItem, read, to_sdk};
use crate::error::store_error;
use crate::pause::while_throttled;
use crate::{DynamoStore, note_write};
use table::item::attribute::VERSION;
use table::item::{Attribute, Decode};
use table::keys::PK;
use table::{Expected, InsertOutcome, Invocation, StoreResult, UpdateOutcome};

/// A put of one item.
pub(super) struct Put {
    item: SdkItem,
    expected: Expected,
    /// An attribute of the item that has the expected version, and the largest number that it may be.
    /// It limits nothing where no item is expected.
    pub(super) at_most: Option<(&'static str, u64)>,
    /// An attribute that the item may have, and the largest number that it may be. It limits nothing where
    /// no item is expected.
    pub(super) absent_or_at_most: Option<(&'static str, u64)>,
}

/// A put as a request and a transaction both take it.
struct Built {
    item: SdkItem,
    condition: String,
    names: HashMap<String, String>,
    values: Option<SdkItem>,
}

impl Put {
    /// A put of `item`, refused if the item under its key is not the `expected` one.
    pub(super) fn new<N: Into<String>>(
        item: impl IntoIterator<Item = (N, Attribute)>,
        expected: Expected,
    ) -> Self {
        Self { item: to_sdk(item), expected, at_most: None, absent_or_at_most: None }
    }

    fn build(self) -> Built {
        let version = match self.expected {
            Expected::Version(version) => version,
            Expected::Absent | Expected::Present => {
                let is_absent = self.expected == Expected::Absent;
                let exists = if is_absent { "attribute_not_exists" } else { "attribute_exists" };
                return Built {
                    item: self.item,
                    condition: format!("{exists}(#pk)"),
                    names: HashMap::from([("#pk".to_owned(), PK.to_owned())]),
                    values: None,
                };
            }
        };
        let number = |number: u64| AttributeValue::N(number.to_string());
        let mut condition = "#ver = :ver".to_owned();
        let mut names = HashMap::from([("#ver".to_owned(), VERSION.to_owned())]);
        let mut values = SdkItem::from([(":ver".to_owned(), number(version))]);
        if let Some((name, limit)) = self.at_most {
            condition += " AND #limited <= :limit";
            names.insert("#limited".to_owned(), name.to_owned());
            values.insert(":limit".to_owned(), number(limit));
        }
        if let Some((name, limit)) = self.absent_or_at_most {
            condition += " AND (attribute_not_exists(#further) OR #further <= :further)";
            names.insert("#further".to_owned(), name.to_owned());
            values.insert(":further".to_owned(), number(limit));
        }
        Built { item: self.item, condition, names, values: Some(values) }
    }

    /// The put as a part of a transaction.
    pub(super) fn transact(self, store: &DynamoStore) -> types::Put {
        let Built { item, condition, names, values } = self.build();
        types::Put::builder()
            .table_name(&store.table)
            .set_item(Some(item))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .expect("item and table are set")
    }

    /// Sends the put by itself.
    pub(super) async fn send(
        self,
        store: &DynamoStore,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<(), SdkItem>> {
        let Built { item, condition, names, values } = self.build();
        let request = store
            .client
            .put_item()
            .table_name(&store.table)
            .set_item(Some(item))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let send = || async {
            match invocation.within(request.clone().send()).await? {
                Ok(answer) => {
                    note_write(invocation, answer.consumed_capacity());
                    Ok(UpdateOutcome::Updated(()))
                }
                Err(error) => match error.as_service_error() {
                    Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                        invocation.add_write(1.0);
                        Ok(UpdateOutcome::ConditionFailed(failed.item.clone()))
                    }
                    _ => Err(store_error(error)),
                },
            }
        };
        while_throttled(invocation, send).await
    }
}

impl DynamoStore {
    /// Puts an item where none is, or reads the one that is there.
    pub(super) async fn put_if_absent<N: Into<String>, T: Decode>(
        &self,
        new: impl IntoIterator<Item = (N, Attribute)>,
        invocation: &Invocation,
    ) -> StoreResult<InsertOutcome<T>> {
        match Put::new(new, Expected::Absent).send(self, invocation).await? {
            UpdateOutcome::Updated(()) => Ok(InsertOutcome::Inserted),
            UpdateOutcome::ConditionFailed(known) => {
                read(known.unwrap_or_default()).map(InsertOutcome::Exists)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The condition, and by the placeholder in it each name and number.
    fn condition(
        expected: Expected,
        at_most: Option<(&'static str, u64)>,
    ) -> (String, Vec<String>) {
        let new = [("pk", Attribute::S("a".to_owned())), ("ver", Attribute::number(4))];
        let item = to_sdk(new.clone());
        let built = Put { at_most, ..Put::new(new, expected) }.build();
        assert_eq!(built.item, item);
        let names = built.names.into_iter().map(|(placeholder, name)| placeholder + " " + &name);
        let values = built.values.into_iter().flatten().map(|(placeholder, value)| {
            format!("{placeholder} {}", value.as_n().expect("a number"))
        });
        let mut placeholders: Vec<String> = names.chain(values).collect();
        placeholders.sort();
        (built.condition, placeholders)
    }

    #[test]
    fn a_put_expects_absence_or_a_version_and_never_both() {
        let is = |condition: &str, placeholders: &[&str]| {
            (condition.to_owned(), placeholders.iter().map(ToString::to_string).collect())
        };
        let absent = is("attribute_not_exists(#pk)", &["#pk pk"]);
        assert_eq!(condition(Expected::Absent, None), absent);
        let present = is("attribute_exists(#pk)", &["#pk pk"]);
        assert_eq!(condition(Expected::Present, None), present);
        assert_eq!(condition(Expected::Absent, Some(("settings", 7))), absent, "of no item");
        assert_eq!(
            condition(Expected::Version(3), None),
            is("#ver = :ver", &["#ver ver", ":ver 3"])
        );
        assert_eq!(
            condition(Expected::Version(3), Some(("settings", 7))),
            is(
                "#ver = :ver AND #limited <= :limit",
                &["#limited settings", "#ver ver", ":limit 7", ":ver 3"]
            )
        );
    }
}
