//! `UpdateItem`: sets metrics of a reading and keeps its others. Reads nothing and removes nothing.
//!
//! Of many readings, those that are new are inserted before (`insert_readings`): 25 of them take the time of one
//! update.

use chrono::TimeDelta;
use futures_util::{StreamExt as _, stream};

use crate::DynamoStore;
use crate::update::Update;
use domain::{Decimal, MetricName, Reading, RoomId};
use table::item::attribute::{NAMED, NAMED_ROOM};
use table::item::{self, Attribute};
use table::keys::{Key, ROOM, TTL};
use table::{Invocation, MergeReadings, PutOutcome, StoreResult};

/// The number of requests at the same time. A request under way takes some 14 KB.
const MERGE_CONCURRENCY: usize = 32;
/// How many metrics one update sets: an expression may be 4 KB long.
const METRICS_CHUNK: usize = 200;

impl MergeReadings for DynamoStore {
    async fn merge_readings(
        &self,
        readings: &[Reading],
        retention: Option<TimeDelta>,
        invocation: &Invocation,
    ) -> PutOutcome {
        let mut outcome = PutOutcome::default();
        let inserted = if readings.len() > MERGE_CONCURRENCY {
            self.insert_readings(readings, retention, invocation).await
        } else {
            vec![false; readings.len()]
        };
        let left = (0..readings.len()).filter(|place| !inserted[*place]);
        let merging = stream::iter(left).map(|place| async move {
            (place, self.merge_reading(&readings[place], retention, invocation).await)
        });
        let mut merging = merging.buffer_unordered(MERGE_CONCURRENCY);
        while let Some((place, result)) = merging.next().await {
            if let Err(error) = result {
                outcome.not_stored.push(place);
                outcome.cause.get_or_insert(error);
            }
        }
        outcome.not_stored.sort_unstable();
        outcome
    }
}

impl DynamoStore {
    async fn merge_reading(
        &self,
        reading: &Reading,
        retention: Option<TimeDelta>,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        let metrics: Vec<_> = reading.metrics().iter().collect();
        for some in metrics.chunks(METRICS_CHUNK) {
            update(reading, some, retention).send(self, invocation).await?;
        }
        Ok(())
    }
}

fn update(
    reading: &Reading,
    metrics: &[(&MetricName, &Decimal)],
    retention: Option<TimeDelta>,
) -> Update {
    let mut update = Update::or_put(Key::Reading(reading.device.clone(), reading.at));
    for (name, value) in metrics {
        update.set(&[name.as_str()], Attribute::number(value));
    }
    match retention {
        Some(retention) => update.set(&[TTL], item::expiry(reading.at, retention)),
        // It may have been stored while there was one.
        None => update.remove(&[TTL]),
    }
    let text = |room: &RoomId| Attribute::S(room.to_string());
    match (&reading.named_room, &reading.room) {
        (Some(named), Some(room)) if named != room => {
            update.set(&[ROOM], text(room));
            update.set(&[NAMED_ROOM], text(named));
            update.remove(&[NAMED]);
        }
        (Some(named), _) => {
            update.set(&[ROOM], text(named));
            update.set(&[NAMED], item::mark());
            update.remove(&[NAMED_ROOM]);
        }
        // Where there is a room already, it stays: the sender may have named it.
        (None, Some(room)) => update.set_if_absent(&[ROOM], text(room)),
        (None, None) => {}
    }
    update
}
