//! `UpdateItem`: sets metrics of a reading and keeps its others. Reads nothing and removes nothing.

use chrono::TimeDelta;
use futures_util::future::join_all;

use crate::DynamoStore;
use crate::pause::while_throttled;
use crate::update::Update;
use domain::{Reading, RoomId};
use table::item::attribute::{NAMED, NAMED_ROOM};
use table::item::{self, Attribute};
use table::keys::{Key, ROOM, TTL};
use table::{Invocation, MergeReadings, PutOutcome, StoreResult};

const MERGE_CONCURRENCY: usize = 16;

impl MergeReadings for DynamoStore {
    async fn merge_readings(
        &self,
        readings: &[Reading],
        retention: Option<TimeDelta>,
        invocation: &Invocation,
    ) -> PutOutcome {
        let mut outcome = PutOutcome::default();
        // A request under way takes some 14 KB: only so many are made at a time.
        for (n, some) in readings.chunks(MERGE_CONCURRENCY).enumerate() {
            let merging = some.iter().map(|it| self.merge_reading(it, retention, invocation));
            for (place, result) in (n * MERGE_CONCURRENCY..).zip(join_all(merging).await) {
                if let Err(error) = result {
                    outcome.not_stored.push(place);
                    outcome.cause.get_or_insert(error);
                }
            }
        }
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
        while_throttled(invocation, || update(reading, retention).send(self, invocation))
            .await
            .map(drop)
    }
}

fn update(reading: &Reading, retention: Option<TimeDelta>) -> Update {
    let mut update = Update::or_put(Key::Reading(reading.device.clone(), reading.at));
    for (name, value) in reading.metrics() {
        update.set(&[name.as_str()], Attribute::N(value.to_string()));
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
