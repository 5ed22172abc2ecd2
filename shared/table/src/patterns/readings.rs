//! Stores, merges and deletes readings by their keys. Reads no reading.

use chrono::TimeDelta;
use domain::{Decimal, MetricName, Reading};
use futures_util::{StreamExt as _, stream};
use ports::port;

use crate::db::{AttributeChange, Db, Items, delete, remove, replace, set, set_if_absent, upsert};
use crate::item::attribute::{NAMED, NAMED_ROOM, SAID_ABOUT};
use crate::item::{self, Attribute};
use crate::keys::{Key, ROOM, TTL};
use crate::{Patterns, PutOutcome, ReadingKey, StoreResult};

/// The largest number of readings that one request inserts.
const MAX_INSERTED: usize = 25;
/// The number of requests that insert at once.
const INSERT_CONCURRENCY: usize = 8;
/// The number of updates that run at once. Each takes some 14 KB of memory.
const MERGE_CONCURRENCY: usize = 32;
/// The largest number of metrics that one update sets: an expression may be 4 KB long.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html>
const METRICS_CHUNK: usize = 200;
/// The number of readings that are deleted at once, each by a request of its own. A role that may delete in batches may
/// also put in batches, and a function that deletes readings must not be able to replace one.
const DELETE_CONCURRENCY: usize = 16;

struct ReadingItems<'a> {
    readings: &'a [Reading],
    retention: Option<TimeDelta>,
}

impl Items for ReadingItems<'_> {
    fn count(&self) -> usize {
        self.readings.len()
    }

    fn attributes(&self, position: usize) -> impl Iterator<Item = (&str, Attribute)> {
        item::from_reading(&self.readings[position], self.retention)
    }
}

/// Stores readings.
///
/// A repeat changes nothing: each reading is put as a whole, and its key is made of its device and timestamp.
#[port(PutReadings, BatchWriteItem(Readings))]
impl<D: Db> Patterns<'_, D> {
    /// Stores readings. No two of them may have the same device and timestamp. Each reading is deleted some days after
    /// its `retention` has ended.
    pub async fn put_readings(
        self,
        readings: &[Reading],
        retention: Option<TimeDelta>,
    ) -> PutOutcome {
        self.db.put_all(&ReadingItems { readings, retention }, self.invocation).await
    }
}

/// Adds metrics to readings that may be stored already.
///
/// A repeat changes nothing, because the update only sets attributes.
#[port(MergeReadings, PartiQLInsert(Readings), UpdateItem(Readings))]
impl<D: Db> Patterns<'_, D> {
    /// Sets the metrics of each reading, and keeps other metrics of the same device and timestamp. If the sender named
    /// no room, a stored room stays. More than 32 readings are first tried as inserts, because 25 inserts take the time
    /// of one update.
    pub async fn merge_readings(
        self,
        readings: &[Reading],
        retention: Option<TimeDelta>,
    ) -> PutOutcome {
        let inserted = if readings.len() > MERGE_CONCURRENCY {
            self.insert_readings(&ReadingItems { readings, retention }).await
        } else {
            vec![false; readings.len()]
        };

        let inserted = &inserted;
        let merging = stream::iter(0..readings.len()).map(|index| async move {
            if inserted[index] {
                Ok(())
            } else {
                self.merge_reading(&readings[index], retention).await
            }
        });
        let merging = merging.buffered(MERGE_CONCURRENCY);
        PutOutcome::of(merging.collect::<Vec<_>>().await)
    }

    /// Tries to insert readings. No two of them may have the same device and timestamp. Returns for each whether it was
    /// inserted. If not, the table may have had a reading with its key, or the result is not known.
    ///
    /// If most readings of the first batch are not inserted, the other batches are not tried, because a failed insert
    /// costs units too.
    async fn insert_readings(self, items: &ReadingItems<'_>) -> Vec<bool> {
        let positions: Vec<usize> = (0..items.count()).collect();
        let mut batches = positions.chunks(MAX_INSERTED);
        let first = batches.next().unwrap_or_default();
        let mut inserted = self.db.insert_all(items, first, self.invocation).await;

        if inserted.iter().filter(|is_inserted| **is_inserted).count() * 2 > first.len() {
            let batches: Vec<_> = batches
                .map(|batch| Box::pin(self.db.insert_all(items, batch, self.invocation)))
                .collect();
            let batches = stream::iter(batches).buffered(INSERT_CONCURRENCY);
            inserted.extend(batches.collect::<Vec<_>>().await.into_iter().flatten());
        }

        inserted.resize(items.count(), false);
        inserted
    }

    async fn merge_reading(
        self,
        reading: &Reading,
        retention: Option<TimeDelta>,
    ) -> StoreResult<()> {
        let metrics: Vec<(&MetricName, &Decimal)> = reading.metrics().iter().collect();
        for some in metrics.chunks(METRICS_CHUNK) {
            let metrics = some
                .iter()
                .map(|(name, value)| set(name.as_str().to_owned(), Attribute::number(value)));
            // The stored reading may have the expiry of an earlier retention, so its expiry is replaced or removed.
            let expiry = retention.map(|retention| item::expiry(reading.at, retention));
            let about =
                reading.about.as_ref().map(|about| set(SAID_ABOUT, item::from_about(about)));

            let merged = upsert(&Key::Reading(reading.device.clone(), reading.at))
                .with(metrics)
                .with(about)
                .with([replace(TTL, expiry)])
                .with(rooms(reading));
            self.write(merged).await?;
        }
        Ok(())
    }
}

/// Deletes the readings that a person wants to remove.
#[port(DeleteReadings, DeleteItem(Readings))]
impl<D: Db> Patterns<'_, D> {
    /// Deletes readings. A repeat changes nothing.
    pub async fn delete_readings(self, readings: &[ReadingKey]) -> PutOutcome {
        let deleting = readings.iter().map(|reading| async move {
            let key = Key::Reading(reading.device.clone(), reading.at);
            self.write(delete(&key)).await.map(drop)
        });
        PutOutcome::of_all(DELETE_CONCURRENCY, deleting).await
    }
}

/// The changes that store the room of a reading. The room that the sender named is never lost: it is stored as `ROOM`
/// with the flag `NAMED`, or, if a person chose another room, as `NAMED_ROOM` beside `ROOM`. A room from the registry has
/// neither.
fn rooms(reading: &Reading) -> Vec<AttributeChange> {
    match (&reading.named_room, &reading.room) {
        (Some(named), Some(room)) if named != room => {
            vec![
                set(ROOM, Attribute::text(room)),
                set(NAMED_ROOM, Attribute::text(named)),
                remove(NAMED),
            ]
        }
        (Some(named), _) => {
            vec![set(ROOM, Attribute::text(named)), set(NAMED, item::flag()), remove(NAMED_ROOM)]
        }
        // A stored room is not replaced, because the sender may have named it.
        (None, Some(room)) => vec![set_if_absent(ROOM, Attribute::text(room))],
        (None, None) => Vec::new(),
    }
}
