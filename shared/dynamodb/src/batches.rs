//! `BatchWriteItem` and `BatchExecuteStatement`: many items in one request, several requests at once. Reads nothing.

use std::collections::HashMap;

use futures_util::{StreamExt as _, stream};

use crate::DynamoStore;
use crate::body::{BatchPutBody, InsertBody, InsertStatement};
use crate::door::TableRequest;
use crate::error::store_error;
use crate::reply::Reply;
use table::db::Items;
use table::{Invocation, ItemKey, Pauses, PutOutcome, StoreError, StoreResult, out_of_patience};

/// `DynamoDB` takes at most 25 puts in a `BatchWriteItem`.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html>
const MAX_BATCH: usize = 25;
const BATCH_CONCURRENCY: usize = 8;

impl DynamoStore {
    pub(super) async fn put_batches(
        &self,
        items: &impl Items,
        invocation: &Invocation,
    ) -> PutOutcome {
        let all: Vec<usize> = (0..items.count()).collect();
        let batches = all.chunks(MAX_BATCH);
        let batches = batches.map(|batch| Box::pin(self.put_at(items, batch.to_vec(), invocation)));
        let outcomes: Vec<PutOutcome> =
            stream::iter(batches.collect::<Vec<_>>()).buffered(BATCH_CONCURRENCY).collect().await;

        let mut whole = PutOutcome::default();
        for outcome in outcomes {
            whole.not_stored.extend(outcome.not_stored);
            whole.cause = whole.cause.or(outcome.cause);
        }
        whole
    }

    /// Puts the items at some positions. Repeats the puts of unprocessed items until the patience ends.
    async fn put_at(
        &self,
        items: &impl Items,
        mut waiting: Vec<usize>,
        invocation: &Invocation,
    ) -> PutOutcome {
        let mut pauses = Pauses::default();
        let mut last_throttling = None;
        if invocation.is_out_of_patience() {
            return not_stored(waiting, out_of_patience());
        }

        loop {
            let cause = match self.put_once(items, &waiting, invocation).await {
                Ok(unprocessed) if unprocessed.is_empty() => return PutOutcome::default(),
                Ok(unprocessed) => {
                    waiting = unprocessed;
                    StoreError::Throttled("unprocessed items remained".into())
                }
                // The SDK has retried too, but gives up before the patience ends.
                Err(error @ StoreError::Throttled(_)) => error,
                // Timed out during the SDK's retries: the throttling before it is the cause.
                Err(StoreError::TimedOut) => {
                    return not_stored(waiting, last_throttling.unwrap_or(StoreError::TimedOut));
                }
                Err(error) => return not_stored(waiting, error),
            };

            invocation.note_throttled();
            if !pauses.pause(invocation).await {
                return not_stored(waiting, cause);
            }
            last_throttling = Some(cause);
        }
    }

    /// Sends one request. Returns the positions of the unprocessed items in ascending order. The SDK does not send
    /// these items again, because the status is 200.
    async fn put_once(
        &self,
        items: &impl Items,
        positions: &[usize],
        invocation: &Invocation,
    ) -> StoreResult<Vec<usize>> {
        let request =
            TableRequest::new("BatchWriteItem", &BatchPutBody::of(&self.table, items, positions));
        let answer = invocation.within(self.send(&request)).await?.map_err(store_error)?;

        let reply = Reply::read(answer.bytes())?;
        invocation.add_write(reply.units());
        let mut unprocessed = reply.unprocessed().peekable();
        if unprocessed.peek().is_none() {
            return Ok(Vec::new());
        }

        let by_key: HashMap<ItemKey, usize> = positions
            .iter()
            .map(|position| (ItemKey::of_item(&items.item(*position)), *position))
            .collect();
        let mut left: Vec<usize> =
            unprocessed.filter_map(|key| by_key.get(&key).copied()).collect();
        left.sort_unstable();
        Ok(left)
    }

    /// Inserts the items at some positions. Returns for each position whether the item is known to be inserted. `false`
    /// if the table has an item with the same key, if the statement would be too long, or if the request fails.
    pub(super) async fn insert_at(
        &self,
        items: &impl Items,
        positions: &[usize],
        invocation: &Invocation,
    ) -> Vec<bool> {
        let mut inserted = vec![false; positions.len()];
        let mut statements = Vec::new();
        let mut sent = Vec::new();
        for (nth, position) in positions.iter().enumerate() {
            if let Some(statement) = InsertStatement::of(&self.table, items, *position) {
                statements.push(statement);
                sent.push(nth);
            }
        }

        if statements.is_empty() {
            return inserted;
        }

        let request = TableRequest::new("BatchExecuteStatement", &InsertBody { statements });
        let Ok(Ok(answer)) = invocation.within(self.send(&request)).await else { return inserted };
        let Ok(reply) = Reply::read(answer.bytes()) else { return inserted };

        invocation.add_write(reply.units());
        for (place, is_inserted) in sent.into_iter().zip(reply.successes()) {
            inserted[place] = is_inserted;
        }
        inserted
    }
}

fn not_stored(waiting: Vec<usize>, cause: StoreError) -> PutOutcome {
    PutOutcome { not_stored: waiting, cause: Some(cause) }
}
