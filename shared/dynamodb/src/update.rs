//! `UpdateItem` built clause by clause, every name behind a placeholder. Knows no attribute by name but the mark
//! of a deleted device.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    ReturnConsumedCapacity, ReturnValue, ReturnValuesOnConditionCheckFailure,
};

use crate::attribute::{SdkItem, to_sdk, value_to_sdk};
use crate::error::store_error;
use crate::pause::while_throttled;
use crate::{DynamoStore, note_write};
use table::item::attribute::DELETED;
use table::item::{self, Attribute};
use table::keys::{Key, PK};
use table::{Invocation, StoreResult, UpdateOutcome};

/// An update of one item.
pub(super) struct Update {
    key: Key,
    sets: Vec<String>,
    removes: Vec<String>,
    adds: Vec<String>,
    conditions: Vec<String>,
    names: Vec<(String, String)>,
    values: SdkItem,
}

/// An update as a request takes it.
struct Built {
    key: SdkItem,
    update: Option<String>,
    condition: Option<String>,
    names: HashMap<String, String>,
    values: Option<SdkItem>,
}

impl Update {
    /// An update of the item under `key`; it creates the item if it is absent.
    pub(super) fn or_put(key: Key) -> Self {
        Self {
            key,
            sets: Vec::new(),
            removes: Vec::new(),
            adds: Vec::new(),
            conditions: Vec::new(),
            names: Vec::new(),
            values: SdkItem::new(),
        }
    }

    /// Sets the attributes that have a value, and removes the others.
    pub(super) fn set_or_remove(
        &mut self,
        attributes: impl IntoIterator<Item = (&'static str, Option<Attribute>)>,
    ) {
        for (name, value) in attributes {
            match value {
                Some(value) => self.set(&[name], value),
                None => self.remove(&[name]),
            }
        }
    }

    /// An update of the item under `key`. Its condition fails if the item is absent, and if the item is that of a
    /// device that is being deleted.
    pub(super) fn of(key: Key) -> Self {
        let is_device = matches!(key, Key::Device(..));
        let mut update = Self::or_put(key);
        update.only_if_present(&[PK]);
        if is_device {
            update.only_if_still(&[DELETED], None);
        }
        update
    }

    /// A placeholder for a path: hundreds of ordinary words are reserved in expressions.
    fn name(&mut self, path: &[&str]) -> String {
        let mut placeholder = |part: &&str| {
            let known = self.names.iter().position(|(_, name)| name == part);
            let n = known.unwrap_or_else(|| {
                self.names.push((format!("#n{}", self.names.len()), (*part).to_owned()));
                self.names.len() - 1
            });
            self.names[n].0.clone()
        };
        path.iter().map(&mut placeholder).collect::<Vec<_>>().join(".")
    }

    fn value(&mut self, value: Attribute) -> String {
        let placeholder = format!(":v{}", self.values.len());
        self.values.insert(placeholder.clone(), value_to_sdk(value));
        placeholder
    }

    pub(super) fn set(&mut self, path: &[&str], value: Attribute) {
        let clause = format!("{} = {}", self.name(path), self.value(value));
        self.sets.push(clause);
    }

    pub(super) fn set_if_absent(&mut self, path: &[&str], value: Attribute) {
        let name = self.name(path);
        let clause = format!("{name} = if_not_exists({name}, {})", self.value(value));
        self.sets.push(clause);
    }

    pub(super) fn remove(&mut self, path: &[&str]) {
        let name = self.name(path);
        self.removes.push(name);
    }

    /// Adds to a number, which counts as 0 where it is missing.
    pub(super) fn add_number(&mut self, path: &[&str], more: usize) {
        let clause = format!("{} {}", self.name(path), self.value(Attribute::number(more)));
        self.adds.push(clause);
    }

    /// Writes only if `path` has this value, or is absent if `value` is `None`.
    pub(super) fn only_if_still(&mut self, path: &[&str], value: Option<Attribute>) {
        let name = self.name(path);
        let clause = match value {
            Some(value) => format!("{name} = {}", self.value(value)),
            None => format!("attribute_not_exists({name})"),
        };
        self.conditions.push(clause);
    }

    /// Writes only where something is at `path`.
    pub(super) fn only_if_present(&mut self, path: &[&str]) {
        let clause = format!("attribute_exists({})", self.name(path));
        self.conditions.push(clause);
    }

    /// Writes only where `path` is greater than `value`.
    pub(super) fn only_if_above(&mut self, path: &[&str], value: Attribute) {
        let clause = format!("{} > {}", self.name(path), self.value(value));
        self.conditions.push(clause);
    }

    /// Writes only where `path` is less than `value`.
    pub(super) fn only_if_below(&mut self, path: &[&str], value: Attribute) {
        let clause = format!("{} < {}", self.name(path), self.value(value));
        self.conditions.push(clause);
    }

    /// Writes only where `path` is missing or at most `value`.
    pub(super) fn only_if_at_most(&mut self, path: &[&str], value: usize) {
        let name = self.name(path);
        let value = self.value(Attribute::number(value));
        self.conditions.push(format!("(attribute_not_exists({name}) OR {name} <= {value})"));
    }

    fn build(self) -> Built {
        let clause = |word: &str, parts: &[String]| match parts {
            [] => String::new(),
            parts => format!("{word} {} ", parts.join(", ")),
        };
        let update = clause("SET", &self.sets)
            + &clause("REMOVE", &self.removes)
            + &clause("ADD", &self.adds);
        Built {
            key: to_sdk(item::key(&self.key)),
            // `DynamoDB` refuses what is empty.
            update: (!update.is_empty()).then_some(update),
            condition: (!self.conditions.is_empty()).then(|| self.conditions.join(" AND ")),
            names: self.names.into_iter().collect(),
            values: (!self.values.is_empty()).then_some(self.values),
        }
    }

    /// Sends the update by itself.
    pub(super) async fn send(
        self,
        store: &DynamoStore,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<SdkItem>> {
        let Built { key, update, condition, names, values } = self.build();
        let request = store
            .client
            .update_item()
            .table_name(&store.table)
            .set_key(Some(key))
            .set_update_expression(update)
            .set_condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(values)
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let send = || async {
            match invocation.within(request.clone().send()).await? {
                Ok(answer) => {
                    note_write(invocation, answer.consumed_capacity());
                    Ok(UpdateOutcome::Updated(answer.attributes.unwrap_or_default()))
                }
                Err(error) => match error.as_service_error() {
                    Some(UpdateItemError::ConditionalCheckFailedException(failed)) => {
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
