//! Reads and puts a device's rollups, and reads readings with their expiry. Folds nothing.

use std::ops::RangeInclusive;

use domain::{DeviceId, LocalDate, Order, TimeRange};
use ports::port;

use super::expected;
use super::range::UNLIMITED;
use crate::db::{Db, ItemQuery, Op, absent_or, at_most, put};
use crate::item::attribute::{CONDITIONS_VERSION, SETTINGS};
use crate::item::{Attribute, Decode, Kind as _};
use crate::keys::{self, Key};
use crate::{Expected, Patterns, RollupKey, StoreResult, StoredReading, StoredRollup};

/// Rollups of a device in a range.
#[port(ReadRollups, GetItem(Rollups), Query(Rollups))]
impl<D: Db> Patterns<'_, D> {
    /// One rollup, as it is this moment.
    pub async fn rollup(self, key: &RollupKey) -> StoreResult<Option<StoredRollup>> {
        self.find(&Key::Rollup(key.device.clone(), key.bucket)).await
    }

    /// All rollups of the quarters that begin in a range, oldest first. A consistent read has all earlier puts, for
    /// twice the price.
    pub async fn quarters(
        self,
        device: &DeviceId,
        range: TimeRange,
        consistent: bool,
    ) -> StoreResult<Vec<StoredRollup>> {
        let rollups = ItemQuery::of(keys::rollup_pk(device)).between(keys::quarter_range(range));
        self.all(ItemQuery { consistent, ..rollups }).await
    }

    /// The rollups of the days in `dates`, including both ends: at most `limit`.
    pub async fn days(
        self,
        device: &DeviceId,
        dates: RangeInclusive<LocalDate>,
        order: Order,
        limit: usize,
    ) -> StoreResult<Vec<StoredRollup>> {
        let query = ItemQuery {
            order,
            consistent: false,
            ..ItemQuery::of(keys::rollup_pk(device))
                .between(keys::day_range(*dates.start(), *dates.end()))
        };
        Ok(self.range(query, limit.min(UNLIMITED), |_| true, |_| 0).await?.items)
    }
}

/// All readings of a device in a range, with their expiry, as they are this moment.
#[port(ReadStoredReadings, Query(Readings))]
impl<D: Db> Patterns<'_, D> {
    /// All readings of the range, oldest first. They must fit into memory.
    pub async fn stored_readings(
        self,
        device: &DeviceId,
        range: TimeRange,
    ) -> StoreResult<Vec<StoredReading>> {
        self.all(ItemQuery::of(device.to_string()).between(keys::reading_range(range))).await
    }
}

/// Stores rollups.
///
/// Each put expects the version that was read before the readings. So of two folds, the one that read older readings is
/// refused.
#[port(PutRollups, PutItem(Rollups))]
impl<D: Db> Patterns<'_, D> {
    /// Stores a rollup, if the stored one is as expected. If `before` is a version, the stored one must also be folded
    /// with settings and a schema that are not newer. Returns whether the rollup is stored.
    pub async fn put_rollup(self, stored: &StoredRollup, before: Expected) -> StoreResult<bool> {
        let mut new = put(stored.item()).when([expected(before)]);
        if let Expected::Version(_) = before {
            new = new.when([at_most(SETTINGS, Attribute::number(stored.settings))]);
            new = new.when(stored.indexed.as_ref().map(|indexed| {
                let version = Attribute::number(u64::from(indexed.schema));
                absent_or(CONDITIONS_VERSION, Op::AtMost, version)
            }));
        }
        self.is_written(new).await
    }

    /// All items of a query, in its order.
    async fn all<T: Decode + Send>(self, query: ItemQuery) -> StoreResult<Vec<T>> {
        Ok(self.range(query, UNLIMITED, |_| true, |_| 0).await?.items)
    }
}
