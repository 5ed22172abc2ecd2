//! The seven operations of a table on `DynamoDB`. Knows no kind of item.

use std::sync::atomic::AtomicBool;

use crate::DynamoStore;
use crate::body::{BatchGetBody, GetBody, QueryBody, TransactBody, WriteBody};
use crate::door::{SendError, TableRequest, code, error_body};
use crate::error::store_error;
use crate::reply::{self, Reason, Reply, read_page};
use table::db::{Db, Each, ItemQuery, Items, RefusedWrites, Write, WriteChange, WriteOutcome};
use table::item::Item;
use table::layout::Layout;
use table::{Invocation, ItemKey, Pauses, PutOutcome, StoreError, StoreResult, while_throttled};

/// `DynamoDB` takes at most 100 keys in a `BatchGetItem`.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html>
const MAX_KEYS: usize = 100;

/// The write units of one small item. A refused write costs them too.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html#write-operation-consumption>
const REFUSED_WRITE: f64 = 1.0;

/// The write units of one small item in a transaction. A cancelled transaction costs them too.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html>
const CANCELLED_WRITE: f64 = 2.0;

/// The reasons for a cancelled transaction that may succeed later: another transaction holds the item, or the table
/// throttles.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>
const BUSY: [&str; 3] = ["TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"];

impl Db for DynamoStore {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn has_checked_shards(&self) -> &AtomicBool {
        &self.has_checked_shards
    }

    async fn get(&self, key: &ItemKey, invocation: &Invocation) -> StoreResult<Option<Item>> {
        let request = TableRequest::new("GetItem", &GetBody::of(&self.table, key));
        let answer = self.ask(&request, invocation).await?;

        let reply = Reply::read(answer.bytes())?;
        invocation.add_read(reply.units());
        Ok(reply.into_item())
    }

    async fn get_all(
        &self,
        mut keys: Vec<ItemKey>,
        invocation: &Invocation,
        each: Each<'_>,
    ) -> StoreResult<Vec<ItemKey>> {
        while !keys.is_empty() {
            let later = keys.split_off(keys.len().min(MAX_KEYS));
            let mut left = self.get_batch(keys, invocation, &mut *each).await?;
            if !left.is_empty() {
                left.extend(later);
                return Ok(left);
            }
            keys = later;
        }
        Ok(keys)
    }

    async fn query(
        &self,
        query: &ItemQuery,
        invocation: &Invocation,
        each: Each<'_>,
    ) -> StoreResult<Option<Item>> {
        let request = TableRequest::new("Query", &QueryBody::of(&self.table, query));
        let answer = self.ask(&request, invocation).await?;

        let page = read_page(answer.bytes(), each)?;
        invocation.add_read(page.units);
        Ok(page.last_key)
    }

    async fn write(&self, write: Write, invocation: &Invocation) -> StoreResult<WriteOutcome> {
        let request =
            TableRequest::new(operation_of(&write), &WriteBody::alone(&self.table, &write));
        while_throttled(invocation, || self.write_once(&request, invocation)).await
    }

    /// If the SDK repeats a transaction because the answer was lost, `DynamoDB` recognises its token.
    async fn transact(
        &self,
        writes: Vec<Write>,
        invocation: &Invocation,
    ) -> StoreResult<Result<(), RefusedWrites>> {
        let request =
            TableRequest::new("TransactWriteItems", &TransactBody::of(&self.table, &writes));
        match invocation.within(self.send(&request)).await? {
            Ok(answer) => {
                invocation.add_write(Reply::read(answer.bytes())?.units());
                Ok(Ok(()))
            }
            Err(error) if code(&error) == Some("TransactionCanceledException") => {
                cancelled(error, invocation).map(Err)
            }
            Err(error) => Err(store_error(error)),
        }
    }

    async fn put_all(&self, items: &impl Items, invocation: &Invocation) -> PutOutcome {
        self.put_batches(items, invocation).await
    }

    async fn insert_all(
        &self,
        items: &impl Items,
        positions: &[usize],
        invocation: &Invocation,
    ) -> Vec<bool> {
        self.insert_at(items, positions, invocation).await
    }
}

impl DynamoStore {
    /// Reads the items of one request. Returns the keys that were not read.
    async fn get_batch(
        &self,
        mut waiting: Vec<ItemKey>,
        invocation: &Invocation,
        each: Each<'_>,
    ) -> StoreResult<Vec<ItemKey>> {
        let mut pauses = Pauses::default();
        loop {
            let request =
                TableRequest::new("BatchGetItem", &BatchGetBody::of(&self.table, &waiting));
            let answer = match self.ask(&request, invocation).await {
                Err(StoreError::Throttled(_)) => return Ok(waiting),
                answer => answer?,
            };

            let page = read_page(answer.bytes(), &mut *each)?;
            invocation.add_read(page.units);
            waiting = page.unprocessed;
            if waiting.is_empty() {
                return Ok(waiting);
            }

            // Unprocessed keys come with status 200, so the SDK does not retry them.
            invocation.note_throttled();
            if !pauses.pause(invocation).await {
                return Ok(waiting);
            }
        }
    }

    async fn write_once(
        &self,
        request: &TableRequest,
        invocation: &Invocation,
    ) -> StoreResult<WriteOutcome> {
        match invocation.within(self.send(request)).await? {
            Ok(answer) => {
                let reply = Reply::read(answer.bytes())?;
                invocation.add_write(reply.units());
                Ok(WriteOutcome::Done(reply.into_item()))
            }
            Err(error) if code(&error) == Some("ConditionalCheckFailedException") => {
                invocation.add_write(REFUSED_WRITE);
                Ok(WriteOutcome::Refused(Reply::read(error_body(&error))?.into_item()))
            }
            Err(error) => Err(store_error(error)),
        }
    }
}

/// The writes of a cancelled transaction whose conditions failed; or the error, if no condition failed.
fn cancelled(error: SendError, invocation: &Invocation) -> StoreResult<RefusedWrites> {
    let reasons = Reply::read(error_body(&error))?.cancellation_reasons;
    reasons.iter().for_each(|_| invocation.add_write(CANCELLED_WRITE));
    if reasons.iter().any(Reason::is_refusal) {
        return Ok(reply::refused(reasons));
    }

    let has = |code: &str| reasons.iter().any(|reason| reason.code == code);
    if BUSY.into_iter().any(has) {
        return Err(StoreError::Throttled(Box::new(error)));
    }

    // A single write would fail with a `ValidationException`.
    if has("ValidationError") {
        return Err(StoreError::Inapplicable(Box::new(error)));
    }

    Err(store_error(error))
}

fn operation_of(write: &Write) -> &'static str {
    match write.change {
        WriteChange::Put(_) => "PutItem",
        WriteChange::Update(..) => "UpdateItem",
        WriteChange::Delete(_) => "DeleteItem",
        WriteChange::Check(_) => unreachable!("a check by itself is no write"),
    }
}

#[cfg(test)]
mod tests;
