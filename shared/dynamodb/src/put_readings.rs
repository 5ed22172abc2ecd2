//! `BatchWriteItem`: readings, 25 at a time, several requests at once. Reads nothing.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{PutRequest, ReturnConsumedCapacity, WriteRequest};
use chrono::TimeDelta;
use futures_util::{StreamExt as _, stream};

use crate::attribute::to_sdk;
use crate::error::store_error;
use crate::pause::Pauses;
use crate::{DynamoStore, note_write};
use domain::Reading;
use table::keys::{PK, SK};
use table::{Invocation, PutOutcome, PutReadings, StoreError, item};

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
        let batches = readings
            .chunks(MAX_BATCH)
            .enumerate()
            .map(|(n, batch)| self.put_batch(n * MAX_BATCH, batch, retention, invocation));
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
        let mut waiting: Vec<WriteRequest> = Vec::with_capacity(batch.len());
        let mut positions = HashMap::with_capacity(batch.len());
        for (n, reading) in batch.iter().enumerate() {
            let item = to_sdk(item::from_reading(reading, retention));
            let put = PutRequest::builder().set_item(Some(item)).build().expect("the item is set");
            let request = WriteRequest::builder().put_request(put).build();
            positions.insert(key_of(&request), offset + n);
            waiting.push(request);
        }
        let not_stored = |waiting: &[WriteRequest]| {
            let mut not_stored: Vec<usize> = waiting
                .iter()
                .filter_map(|request| positions.get(&key_of(request)).copied())
                .collect();
            not_stored.sort_unstable();
            not_stored
        };

        let mut pauses = Pauses::default();
        let mut throttled = None;
        loop {
            let sent = self
                .client
                .batch_write_item()
                .request_items(&self.table, waiting.clone())
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send();
            let answer = invocation.within(sent).await.and_then(|sent| sent.map_err(store_error));
            let cause = match answer {
                Ok(answer) => {
                    answer.consumed_capacity().iter().for_each(|c| note_write(invocation, Some(c)));
                    // They come with a 200, and nobody retries them but us.
                    waiting = answer
                        .unprocessed_items
                        .and_then(|mut tables| tables.remove(&self.table))
                        .unwrap_or_default();
                    if waiting.is_empty() {
                        return PutOutcome::default();
                    }
                    StoreError::Throttled("unprocessed items remained".into())
                }
                // The SDK has tried some times, for less time than there is.
                Err(throttled @ StoreError::Throttled(_)) => throttled,
                Err(error) => {
                    // The time ran out while the SDK tried again.
                    let is_late = matches!(error, StoreError::TimedOut);
                    let cause = throttled.take().filter(|_| is_late).unwrap_or(error);
                    return PutOutcome { not_stored: not_stored(&waiting), cause: Some(cause) };
                }
            };
            if !pauses.pause(invocation).await {
                return PutOutcome { not_stored: not_stored(&waiting), cause: Some(cause) };
            }
            throttled = Some(cause);
        }
    }
}

fn key_of(request: &WriteRequest) -> (String, String) {
    let part = |name| {
        let item = request.put_request().map(PutRequest::item);
        item.and_then(|item| item.get(name)?.as_s().ok()).cloned().unwrap_or_default()
    };
    (part(PK), part(SK))
}
