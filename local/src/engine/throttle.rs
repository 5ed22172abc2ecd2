//! The provisioned capacity of the deployed table, before an engine that has no limit: refuses requests beyond the
//! table's units. A model of AWS's documentation, not AWS. Knows no reading.
//!
//! The table and each of its indexes have a token bucket of capacity units. The bucket fills every second and keeps
//! unused units for up to 300 seconds:
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html>. AWS promises no
//! burst, so the model can leave it out. A request is let in while its bucket holds anything. The consumed units are
//! known afterwards, and are taken then. A write needs capacity in the bucket of each index as well: an index without
//! units throttles its table, <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html>.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use dynoxide::DynoxideError;
use runtime::clock::Stopwatch;
use serde_json::{Value, json};
use table::layout::ROOM_INDEX;

use crate::Burst;
use crate::deployment::{ROOM_INDEX_UNITS, TABLE_UNITS};

/// The capacity of a table and its indexes.
pub(super) struct Throttle {
    watch: Stopwatch,
    /// Buckets by index name; the table's own have the empty name.
    buckets: Mutex<BTreeMap<String, Buckets>>,
}

struct Buckets {
    read: CapacityBucket,
    write: CapacityBucket,
}

struct CapacityBucket {
    per_second: f64,
    most: f64,
    held: f64,
    /// The time of the last fill, in seconds since the start.
    filled: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CapacityKind {
    Read,
    Write,
}

impl CapacityBucket {
    fn new(per_second: f64, burst: Burst) -> Self {
        let seconds = match burst {
            Burst::None => 1.0,
            Burst::Full => 300.0,
        };
        let most = per_second * seconds;
        Self { per_second, most, held: most, filled: 0.0 }
    }

    fn fill(&mut self, seconds: f64) {
        self.held = (self.held + (seconds - self.filled) * self.per_second).min(self.most);
        self.filled = seconds;
    }

    /// How many of `wanted` requests the bucket lets in.
    fn admits(&self, wanted: usize) -> usize {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let held = self.held.ceil().max(0.0) as usize;
        wanted.min(held)
    }
}

impl Throttle {
    /// The units of the table and of its index by room. The optional indexes are not bounded.
    pub(super) fn new(burst: Burst) -> Self {
        let provisioned = [("", TABLE_UNITS), (ROOM_INDEX.name, ROOM_INDEX_UNITS)];
        let buckets = provisioned.map(|(name, units)| {
            let bucket = |units: u32| CapacityBucket::new(units.into(), burst);
            (name.to_owned(), Buckets { read: bucket(units.read), write: bucket(units.write) })
        });
        Self { watch: Stopwatch::start(), buckets: Mutex::new(buckets.into()) }
    }

    /// Performs an operation if there is capacity for it; of a batch of puts, as many puts as there is capacity for.
    pub(super) async fn run(
        &self,
        operation: &str,
        body: &[u8],
        perform: impl AsyncFnOnce(&[u8]) -> dynoxide::Result<String>,
    ) -> dynoxide::Result<String> {
        let kind = match operation {
            "Query" | "GetItem" | "BatchGetItem" | "Scan" | "TransactGetItems" => {
                CapacityKind::Read
            }
            "BatchExecuteStatement"
            | "BatchWriteItem"
            | "DeleteItem"
            | "PutItem"
            | "TransactWriteItems"
            | "UpdateItem" => CapacityKind::Write,
            "DescribeTable" => return Ok(self.described(&perform(body).await?)),
            _ => return perform(body).await,
        };

        let Ok(mut request) = serde_json::from_slice::<Value>(body) else {
            return perform(body).await;
        };

        let mut left = None;
        let is_admitted = if operation == "BatchWriteItem" {
            left = self.leave_beyond(&mut request);
            has_puts(&request)
        } else {
            let index = request["IndexName"].as_str().unwrap_or_default();
            self.admits(kind, index, 1) == 1
        };
        if !is_admitted {
            let why = "the model of provisioned capacity has no units left".to_owned();
            return Err(DynoxideError::ProvisionedThroughputExceededException(why));
        }

        request["ReturnConsumedCapacity"] = "INDEXES".into();
        let answer = perform(request.to_string().as_bytes()).await?;
        let mut told: Value = serde_json::from_str(&answer).unwrap_or_default();
        self.take(kind, &told);

        let Some(left) = left else { return Ok(answer) };
        told["UnprocessedItems"] = left;
        Ok(told.to_string())
    }

    /// Adds the provisioned units to an answer of `DescribeTable`.
    fn described(&self, answer: &str) -> String {
        let mut answer: Value = serde_json::from_str(answer).unwrap_or_default();
        let Buckets { read, write } = &self.filled()[""];
        answer["Table"]["ProvisionedThroughput"] =
            json!({"ReadCapacityUnits": read.per_second, "WriteCapacityUnits": write.per_second});
        answer.to_string()
    }

    fn filled(&self) -> MutexGuard<'_, BTreeMap<String, Buckets>> {
        let seconds = self.watch.elapsed().as_secs_f64();
        let mut buckets = self.buckets.lock().expect("nothing panics with it");
        for Buckets { read, write } in buckets.values_mut() {
            read.fill(seconds);
            write.fill(seconds);
        }
        buckets
    }

    fn admits(&self, kind: CapacityKind, index: &str, wanted: usize) -> usize {
        let buckets = self.filled();
        match kind {
            CapacityKind::Read => {
                buckets.get(index).map_or(wanted, |units| units.read.admits(wanted))
            }
            CapacityKind::Write => {
                buckets.values().fold(wanted, |left, units| units.write.admits(left))
            }
        }
    }

    /// Takes the consumed units of an answer from the buckets.
    fn take(&self, kind: CapacityKind, answer: &Value) {
        let consumed = &answer["ConsumedCapacity"];
        let consumed =
            consumed.as_array().map_or_else(|| std::slice::from_ref(consumed), Vec::as_slice);
        let mut buckets = self.filled();

        for consumed in consumed {
            let indexes = consumed["GlobalSecondaryIndexes"].as_object().into_iter().flatten();
            let indexes = indexes.map(|(name, units)| (name.as_str(), units));
            for (name, units) in indexes.chain([("", &consumed["Table"])]) {
                let Some(of) = buckets.get_mut(name) else { continue };
                let bucket = if kind == CapacityKind::Read { &mut of.read } else { &mut of.write };
                bucket.held -= units["CapacityUnits"].as_f64().unwrap_or(0.0);
            }
        }
    }

    /// Removes the puts beyond the capacity from a batch, and returns them.
    fn leave_beyond(&self, request: &mut Value) -> Option<Value> {
        let (table, puts) = request["RequestItems"].as_object_mut()?.iter_mut().next()?;
        let puts = puts.as_array_mut()?;
        let left = puts.split_off(self.admits(CapacityKind::Write, "", puts.len()));
        (!left.is_empty()).then(|| json!({table.as_str(): left}))
    }
}

fn has_puts(request: &Value) -> bool {
    let mut tables = request["RequestItems"].as_object().into_iter().flatten();
    tables.any(|(_, puts)| puts.as_array().is_some_and(|puts| !puts.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_is_there_later_up_to_the_burst() {
        let mut bucket = CapacityBucket::new(12.0, Burst::Full);
        assert_eq!(bucket.admits(10_000), 3_600);
        bucket.held -= 3_600.0;
        assert_eq!(bucket.admits(1), 0);
        bucket.fill(10.0);
        assert_eq!(bucket.admits(1_000), 120);
        bucket.fill(100_000.0);
        assert_eq!(bucket.admits(10_000), 3_600);
        let mut bucket = CapacityBucket::new(12.0, Burst::None);
        bucket.fill(1_000.0);
        assert_eq!(bucket.admits(100), 12);
    }

    #[tokio::test]
    async fn a_full_index_holds_its_table_up_and_a_batch_is_stored_in_part() {
        let throttle = Throttle::new(Burst::None);
        let full = CapacityBucket { per_second: 0.0, most: 11.0, held: 2.0, filled: 0.0 };
        throttle.buckets.lock().unwrap().get_mut("room-index").unwrap().write = full;
        let puts: Vec<Value> = (0..5).map(|n| json!({"PutRequest": {"Item": {"n": n}}})).collect();
        let request = json!({"RequestItems": {"t": puts}}).to_string();

        let perform = async |body: &[u8]| {
            let asked: Value = serde_json::from_slice(body).unwrap();
            let units = asked["RequestItems"]["t"].as_array().unwrap().len();
            let index = json!({"room-index": {"CapacityUnits": units}});
            let table = json!({"CapacityUnits": units});
            let one = json!({"Table": table, "GlobalSecondaryIndexes": index});
            Ok(json!({"UnprocessedItems": {}, "ConsumedCapacity": [one]}).to_string())
        };

        let answer = throttle.run("BatchWriteItem", request.as_bytes(), perform).await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["UnprocessedItems"]["t"].as_array().unwrap().len(), 3);

        let refused = throttle.run("PutItem", b"{}", perform).await;
        let is_throttled =
            matches!(refused, Err(DynoxideError::ProvisionedThroughputExceededException(_)));
        assert!(is_throttled, "{refused:?}");

        let read = async |_: &[u8]| Ok("{}".to_owned());
        assert!(throttle.run("GetItem", b"{}", read).await.is_ok());
        assert!(
            throttle.run("Query", b"{}", read).await.is_ok(),
            "reads have a bucket of their own"
        );
    }
}
