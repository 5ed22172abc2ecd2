//! The stored values by which devices are found, and the mark that all of them are stored. Searches nothing.

use std::collections::BTreeSet;
use std::iter;

use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, ReturnConsumedCapacity, TransactWriteItem,
};

use crate::attribute::to_sdk;
use crate::pause::asked;
use crate::put::Put;
use crate::update::Update;
use crate::{DynamoStore, note_read};
use domain::{Device, DeviceId, SearchEntry, Timestamp};
use table::item::attribute::{DEVICE_VERSION, DONE, RUN, VERSION};
use table::item::{self, Attribute};
use table::keys::{Key, PK, SK, search_pk};
use table::{
    Companion, Expected, IndexDevices, Invocation, LookUpRegistry as _, MAX_CACHED_ENTRIES,
    MarkIndexed, ReadRegistry as _, SearchDevices as _, StoreError, StoreResult, UpdateOutcome,
    entry_companions,
};

/// The number of values that one transaction writes, beside the check of the device.
const MAX_ENTRIES: usize = 90;
/// The number of attempts at a device that others keep changing.
const MAX_ATTEMPTS: usize = 5;

impl IndexDevices for DynamoStore {
    async fn begin_index(&self, run: &str, invocation: &Invocation) -> StoreResult<()> {
        let mut update = Update::or_put(Key::Indexed);
        update.set(&[RUN], Attribute::S(run.to_owned()));
        update.send(self, invocation).await.map(drop)
    }

    async fn index_device(&self, device: &Device, invocation: &Invocation) -> StoreResult<usize> {
        let mut device = device.clone();
        for _ in 0..MAX_ATTEMPTS {
            let stored = self.stored_entries(device.id(), invocation).await?;
            let wrong = entry_companions(device.id(), &stored, &device.search_entries());
            let mut is_still = true;
            for some in wrong.chunks(MAX_ENTRIES) {
                is_still = is_still && self.write_entries(&device, some, invocation).await?;
            }
            if is_still {
                return Ok(wrong.len());
            }
            let id = device.id();
            match self.device(id, invocation).await? {
                Some(now) => device = now,
                None => return Ok(0),
            }
        }
        Err(StoreError::Contended(format!("the device {}", device.id())))
    }

    async fn end_index(
        &self,
        run: &str,
        at: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut update = Update::of(Key::Indexed);
        update.only_if_still(&[RUN], Some(Attribute::S(run.to_owned())));
        update.set(&[DONE], Attribute::S(at.to_string()));
        let outcome = update.send(self, invocation).await?;
        Ok(matches!(outcome, UpdateOutcome::Updated(_)))
    }
}

impl MarkIndexed for DynamoStore {
    async fn mark_indexed(&self, now: Timestamp, invocation: &Invocation) -> StoreResult<bool> {
        if !self.layout.attribute_index || self.is_indexed(invocation).await? {
            return Ok(self.layout.attribute_index);
        }
        // Of two marks the versions differ: one that an edit takes away and another puts again is not ended here.
        let version = u64::try_from(now.as_millis()).unwrap_or(0);
        let mut mark = item::key(&Key::Indexed);
        mark.insert(VERSION.to_owned(), Attribute::number(version));
        mark.insert(RUN.to_owned(), Attribute::S(now.to_string()));
        let begun = Put::new(mark.clone(), Expected::Absent).send(self, invocation).await?;
        if !matches!(begun, UpdateOutcome::Updated(())) {
            return Ok(false);
        }
        let devices = self.devices(invocation).await?;
        let has_none = |device: &Device| device.search_entries().is_empty();
        if devices.found.len() > MAX_CACHED_ENTRIES
            || !devices.unreadable.is_empty()
            || !devices.found.iter().all(has_none)
        {
            return Ok(false);
        }
        mark.insert(DONE.to_owned(), Attribute::S(now.to_string()));
        let ended = Put::new(mark, Expected::Version(version)).send(self, invocation).await?;
        Ok(matches!(ended, UpdateOutcome::Updated(())))
    }
}

impl DynamoStore {
    async fn stored_entries(
        &self,
        device: &DeviceId,
        invocation: &Invocation,
    ) -> StoreResult<BTreeSet<SearchEntry>> {
        let pk = search_pk(device);
        let mut entries = BTreeSet::new();
        let mut start = None;
        loop {
            let request = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("#p = :p")
                .expression_attribute_names("#p", PK)
                .expression_attribute_values(":p", AttributeValue::S(pk.clone()))
                .consistent_read(true)
                .set_exclusive_start_key(start)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            let answer = asked(invocation, || request.clone().send()).await?;
            note_read(invocation, answer.consumed_capacity());
            for item in answer.items.into_iter().flatten() {
                let sk = item.get(SK).and_then(|sk| sk.as_s().ok());
                if let Some(Key::SearchEntry(_, entry)) = sk.and_then(|sk| Key::parse(&pk, sk)) {
                    entries.insert(entry);
                }
            }
            start = answer.last_evaluated_key;
            if start.is_none() {
                return Ok(entries);
            }
        }
    }

    /// Writes values of a device that is still what it was. Returns whether it is.
    pub(super) async fn write_entries(
        &self,
        device: &Device,
        entries: &[Companion],
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let version = (device.version() > 0).then(|| device.version().to_string());
        let check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(to_sdk(item::key(&self.layout.device_key(device.id())))))
            .expression_attribute_names("#v", DEVICE_VERSION)
            .expression_attribute_names("#p", PK)
            .condition_expression(match version {
                Some(_) => "attribute_exists(#p) AND #v = :v",
                None => "attribute_exists(#p) AND attribute_not_exists(#v)",
            })
            .set_expression_attribute_values(
                version.map(|it| [(":v".to_owned(), AttributeValue::N(it))].into()),
            )
            .build()
            .expect("key, table and condition are set");
        let entries = entries.iter().map(|entry| self.entry_part(entry.clone()));
        let check = TransactWriteItem::builder().condition_check(check).build();
        let parts = iter::once(check).chain(entries).collect();
        // Only the check has a condition: where it fails, an edit was faster.
        Ok(self.transact_parts(parts, invocation).await?.is_ok())
    }
}
