//! `BatchWriteItem`: readings, 25 at a time, several requests at once. Reads nothing.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use chrono::TimeDelta;
use futures_util::{StreamExt as _, stream};
use serde::{Serialize, Serializer};

use crate::error::store_error;
use crate::json::Value;
use crate::pause::{Pauses, out_of_patience};
use crate::request::SendBody;
use crate::{DynamoStore, note_write};
use domain::Reading;
use table::keys::{self, PK, SK};
use table::{Invocation, PutOutcome, PutReadings, StoreError, StoreResult, item};

/// `DynamoDB` takes at most 25 puts in a `BatchWriteItem`.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html>
const MAX_BATCH: usize = 25;
const BATCH_CONCURRENCY: usize = 8;

impl PutReadings for DynamoStore {
    async fn put_readings(
        &self,
        readings: &[Reading],
        retention: Option<TimeDelta>,
        invocation: &Invocation,
    ) -> PutOutcome {
        let batches = readings.chunks(MAX_BATCH).enumerate().map(|(n, batch)| {
            Box::pin(self.put_batch(n * MAX_BATCH, batch, retention, invocation))
        });
        let outcomes: Vec<PutOutcome> =
            stream::iter(batches.collect::<Vec<_>>()).buffered(BATCH_CONCURRENCY).collect().await;
        let mut all = PutOutcome::default();
        for outcome in outcomes {
            all.not_stored.extend(outcome.not_stored);
            all.cause = all.cause.or(outcome.cause);
        }
        all
    }
}

impl DynamoStore {
    async fn put_batch(
        &self,
        offset: usize,
        batch: &[Reading],
        retention: Option<TimeDelta>,
        invocation: &Invocation,
    ) -> PutOutcome {
        let mut waiting: Vec<usize> = (0..batch.len()).collect();
        let mut pauses = Pauses::default();
        let mut throttled = None;
        if invocation.is_out_of_patience() {
            return not_stored(offset, &waiting, out_of_patience());
        }
        loop {
            let puts = waiting.iter().map(|n| Put::of(&batch[*n], retention)).collect();
            let cause = match self.send_batch(puts, invocation).await {
                Ok(unprocessed) if unprocessed.is_empty() => return PutOutcome::default(),
                Ok(unprocessed) => {
                    waiting = positions(&unprocessed, batch);
                    StoreError::Throttled("unprocessed items remained".into())
                }
                // The SDK has tried some times, for less time than there is.
                Err(throttled @ StoreError::Throttled(_)) => throttled,
                Err(error) => {
                    // The time ran out while the SDK tried again.
                    let is_late = matches!(error, StoreError::TimedOut);
                    let cause = throttled.take().filter(|_| is_late).unwrap_or(error);
                    return not_stored(offset, &waiting, cause);
                }
            };
            invocation.note_throttled();
            if !pauses.pause(invocation).await {
                return not_stored(offset, &waiting, cause);
            }
            throttled = Some(cause);
        }
    }

    /// Sends one batch; returns the puts that `DynamoDB` left undone: they come with a 200, and the
    /// SDK does not send them again.
    async fn send_batch(
        &self,
        puts: Vec<Put<'_>>,
        invocation: &Invocation,
    ) -> StoreResult<Vec<WriteRequest>> {
        let body =
            Body { request_items: [(&self.table, puts)].into(), return_consumed_capacity: "TOTAL" };
        let body = SendBody::new("DynamoDB_20120810.BatchWriteItem", &body);
        let request = self.client.batch_write_item().request_items(&self.table, Vec::new());
        let answer = invocation.within(request.customize().interceptor(body).send());
        let answer = answer.await?.map_err(store_error)?;
        answer.consumed_capacity().iter().for_each(|units| note_write(invocation, Some(units)));
        let unprocessed = answer.unprocessed_items;
        Ok(unprocessed.and_then(|mut tables| tables.remove(&self.table)).unwrap_or_default())
    }
}

/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html#API_BatchWriteItem_RequestSyntax>
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Body<'a> {
    request_items: HashMap<&'a String, Vec<Put<'a>>>,
    return_consumed_capacity: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Put<'a> {
    put_request: PutItem<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct PutItem<'a> {
    item: Item<'a>,
}

/// A reading's item. No map is made of it.
struct Item<'a>(&'a Reading, Option<TimeDelta>);

impl<'a> Put<'a> {
    fn of(reading: &'a Reading, retention: Option<TimeDelta>) -> Self {
        Self { put_request: PutItem { item: Item(reading, retention) } }
    }
}

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let attributes = item::from_reading(self.0, self.1);
        serializer.collect_map(attributes.map(|(name, value)| (name, Value(value))))
    }
}

fn not_stored(offset: usize, waiting: &[usize], cause: StoreError) -> PutOutcome {
    let not_stored = waiting.iter().map(|n| offset + n).collect();
    PutOutcome { not_stored, cause: Some(cause) }
}

/// The positions in `batch` of the readings that `puts` store, ascending.
fn positions(puts: &[WriteRequest], batch: &[Reading]) -> Vec<usize> {
    let keys = batch.iter().map(|it| (it.device.to_string(), keys::reading_sk(it.at)));
    let known: HashMap<_, _> = keys.zip(0..).collect();
    let mut positions: Vec<usize> =
        puts.iter().filter_map(|put| known.get(&key_of(put)).copied()).collect();
    positions.sort_unstable();
    positions
}

fn key_of(request: &WriteRequest) -> (String, String) {
    let part = |name| {
        let item = request.put_request().map(PutRequest::item);
        item.and_then(|item| item.get(name)?.as_s().ok()).cloned().unwrap_or_default()
    };
    (part(PK), part(SK))
}
