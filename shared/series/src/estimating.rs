//! A store that adds up, about, what its queries cost: by the sizes of the items that they find, as `DynamoDB` counts
//! them. Beside the consumed units that tells whether the table was asked for more than the rows needed.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::{DeviceId, LocalDate, Order, TimeRange};
use table::sizes::{of_reading, of_rollup, read_halves, units_of};
use table::{
    Invocation, Page, Permission, QueryReadings, RangeQuery, ReadRollupState, ReadRollups,
    RollupKey, RollupState, RoomWalk, StoreResult, StoredRollup,
};

use crate::ports::Store;

/// The ports of a store, and what was read through them.
#[derive(Debug)]
pub struct Estimating<'a, S> {
    store: &'a S,
    /// Half read units.
    halves: AtomicUsize,
}

impl<'a, S: Store> Estimating<'a, S> {
    /// Has read nothing yet.
    pub const fn of(store: &'a S) -> Self {
        Self { store, halves: AtomicUsize::new(0) }
    }

    /// The read units so far, about.
    pub fn units(&self) -> f64 {
        units_of(self.halves.load(Ordering::Relaxed))
    }

    /// Adds a query that found so many bytes; a consistent one costs twice as much.
    fn add(&self, bytes: impl Iterator<Item = usize>, is_consistent: bool) {
        let halves = read_halves(bytes.fold(0, usize::saturating_add));
        let halves = halves * (1 + usize::from(is_consistent));
        self.halves.fetch_add(halves, Ordering::Relaxed);
    }
}

impl<S: Store> QueryReadings for Estimating<'_, S> {
    const PERMISSIONS: &'static [Permission] = <S as QueryReadings>::PERMISSIONS;

    async fn device_readings(
        &self,
        device: &DeviceId,
        query: &RangeQuery,
        invocation: &Invocation,
    ) -> StoreResult<Page> {
        let page = self.store.device_readings(device, query, invocation).await?;
        self.add(page.readings.iter().map(of_reading), query.consistent);
        Ok(page)
    }
}

impl<S: Store> ReadRollups for Estimating<'_, S> {
    const PERMISSIONS: &'static [Permission] = <S as ReadRollups>::PERMISSIONS;

    async fn rollup(
        &self,
        key: &RollupKey,
        invocation: &Invocation,
    ) -> StoreResult<Option<StoredRollup>> {
        let found = self.store.rollup(key, invocation).await?;
        self.add(found.iter().map(of_rollup), true);
        Ok(found)
    }

    async fn quarters(
        &self,
        device: &DeviceId,
        range: TimeRange,
        consistent: bool,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        let found = self.store.quarters(device, range, consistent, invocation).await?;
        self.add(found.iter().map(of_rollup), consistent);
        Ok(found)
    }

    async fn days(
        &self,
        device: &DeviceId,
        dates: RangeInclusive<LocalDate>,
        order: Order,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        let found = self.store.days(device, dates, order, limit, invocation).await?;
        self.add(found.iter().map(of_rollup), false);
        Ok(found)
    }
}

impl<S: Store> ReadRollupState for Estimating<'_, S> {
    const PERMISSIONS: &'static [Permission] = <S as ReadRollupState>::PERMISSIONS;

    async fn rollup_state(&self, invocation: &Invocation) -> StoreResult<Option<RollupState>> {
        self.add(std::iter::empty(), true);
        self.store.rollup_state(invocation).await
    }

    async fn room_walk(&self, invocation: &Invocation) -> StoreResult<Option<RoomWalk>> {
        self.add(std::iter::empty(), true);
        self.store.room_walk(invocation).await
    }
}
