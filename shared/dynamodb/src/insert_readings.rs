//! `BatchExecuteStatement`: readings where none are, 25 at a time. Changes nothing that is stored.

use chrono::TimeDelta;
use futures_util::{StreamExt as _, stream};
use serde::Serialize;

use crate::json::Value;
use crate::request::SendBody;
use crate::{DynamoStore, note_write};
use domain::Reading;
use table::{Invocation, item};

/// `DynamoDB` takes at most 25 statements in a `BatchExecuteStatement`.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html>
const MAX_BATCH: usize = 25;
/// The bytes of a statement at most, from the same page's `BatchStatementRequest`.
const MAX_STATEMENT: usize = 8_192;
const BATCH_CONCURRENCY: usize = 8;

impl DynamoStore {
    /// Tries to insert readings; no two of them have the same device and timestamp. Returns for each
    /// whether it is stored now. The others are stored already, or it is not known.
    ///
    /// Where most of the first batch are stored already, the others are not tried: each costs its units
    /// also then.
    pub(crate) async fn insert_readings(
        &self,
        readings: &[Reading],
        retention: Option<TimeDelta>,
        invocation: &Invocation,
    ) -> Vec<bool> {
        let (first, others) = readings.split_at(readings.len().min(MAX_BATCH));
        let mut inserted = self.insert_batch(first, retention, invocation).await;
        if inserted.iter().filter(|it| **it).count() * 2 > first.len() {
            let batches = others
                .chunks(MAX_BATCH)
                .map(|batch| Box::pin(self.insert_batch(batch, retention, invocation)));
            let batches = stream::iter(batches.collect::<Vec<_>>());
            let others: Vec<_> = batches.buffered(BATCH_CONCURRENCY).collect().await;
            inserted.extend(others.into_iter().flatten());
        }
        inserted.resize(readings.len(), false);
        inserted
    }

    async fn insert_batch(
        &self,
        batch: &[Reading],
        retention: Option<TimeDelta>,
        invocation: &Invocation,
    ) -> Vec<bool> {
        let mut inserted = vec![false; batch.len()];
        let (places, statements): (Vec<usize>, Vec<_>) =
            (0..batch.len()).filter_map(|n| Some((n, self.insert(&batch[n], retention)?))).unzip();
        if statements.is_empty() {
            return inserted;
        }
        let body = Body { statements, return_consumed_capacity: "TOTAL" };
        let body = SendBody::new("DynamoDB_20120810.BatchExecuteStatement", &body);
        let request = self.client.batch_execute_statement().customize().interceptor(body);
        if let Ok(Ok(answer)) = invocation.within(request.send()).await {
            answer.consumed_capacity().iter().for_each(|units| note_write(invocation, Some(units)));
            for (place, answer) in places.into_iter().zip(answer.responses()) {
                inserted[place] = answer.error().is_none();
            }
        }
        inserted
    }

    /// The statement that inserts a reading; `None` where it would be too long.
    fn insert(&self, reading: &Reading, retention: Option<TimeDelta>) -> Option<Insert> {
        // No name has a quotation mark in it.
        let (names, parameters): (Vec<_>, Vec<_>) = item::from_reading(reading, retention)
            .map(|(name, value)| (format!("'{name}': ?"), Value(value)))
            .unzip();
        let statement = format!("INSERT INTO \"{}\" VALUE {{{}}}", self.table, names.join(", "));
        (statement.len() <= MAX_STATEMENT).then_some(Insert { statement, parameters })
    }
}

/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html#API_BatchExecuteStatement_RequestSyntax>
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Body {
    statements: Vec<Insert>,
    return_consumed_capacity: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Insert {
    statement: String,
    parameters: Vec<Value>,
}
