//! `UpdateItem`: metrics set beside those that a reading has already. Reads nothing and removes nothing.

use chrono::TimeDelta;
use futures_util::{StreamExt as _, stream};

use super::DynamoStore;
use super::pause::Pauses;
use super::update::Update;
use crate::domain::{Reading, RoomSource};
use crate::store::item::attribute::FILLED_IN_ROOM;
use crate::store::item::{self, Attribute};
use crate::store::keys::{Key, ROOM, TTL};
use crate::store::{Budget, MergeReadings, PutOutcome, StoreError, StoreResult};

const IN_FLIGHT: usize = 16;

impl MergeReadings for DynamoStore {
    async fn merge_readings(
        &self,
        readings: &[Reading],
        retention: Option<TimeDelta>,
        budget: &Budget,
    ) -> PutOutcome {
        let merged = readings.iter().map(|reading| self.merge_reading(reading, retention, budget));
        let results: Vec<StoreResult<()>> =
            stream::iter(merged.collect::<Vec<_>>()).buffered(IN_FLIGHT).collect().await;
        let mut outcome = PutOutcome::default();
        for (n, result) in results.into_iter().enumerate() {
            if let Err(error) = result {
                outcome.unstored.push(n);
                outcome.cause.get_or_insert(error);
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
        budget: &Budget,
    ) -> StoreResult<()> {
        let mut pauses = Pauses::default();
        loop {
            match update(reading, retention).send(self, budget).await {
                Err(throttled @ StoreError::Throttled(_)) => {
                    if !pauses.pause(budget).await {
                        return Err(throttled);
                    }
                }
                sent => return sent.map(drop),
            }
        }
    }
}

fn update(reading: &Reading, retention: Option<TimeDelta>) -> Update {
    let mut update = Update::or_put(Key::Reading(reading.device.clone(), reading.at));
    for (name, value) in reading.metrics() {
        update.set(&[name.as_str()], Attribute::N(value.to_string()));
    }
    if let Some(retention) = retention {
        update.set(&[TTL], item::expiry(reading.at, retention));
    }
    if let Some(room) = &reading.room {
        let room = || Attribute::S(room.to_string());
        match reading.room_source {
            RoomSource::Sender => {
                update.set(&[ROOM], room());
                update.remove(&[FILLED_IN_ROOM]);
            }
            // Where the sender named another room before, it stays, and stays the sender's.
            RoomSource::Registry => {
                update.set_if_absent(&[ROOM], room());
                update.set_if_absent(&[FILLED_IN_ROOM], room());
            }
            RoomSource::Person => {
                update.set(&[ROOM], room());
                update.set(&[FILLED_IN_ROOM], room());
            }
        }
    }
    update
}
