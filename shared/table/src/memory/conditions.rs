//! The ports of the index by conditions in memory. Encodes no value.

use super::MemoryStore;
use crate::{
    ConditionsPage, Expected, IndexedQuarter, Invocation, PutConditionsSchema, QueryConditions,
    ReadConditionsSchema, SetConditionsReady, StoreResult, StoredRollup, StoredSchema,
};
use domain::{Bucket, ConditionsSchema, DeviceId, Timestamp};

impl MemoryStore {
    /// Gives the table the index by conditions.
    pub fn add_conditions_index(&self) {
        self.state().conditions.exists = true;
    }

    /// Lets the index by conditions lag behind the table, or reach it again.
    pub fn hold_conditions_index(&self, is_held: bool) {
        let mut state = self.state();
        state.conditions.held = is_held.then(|| state.rollups.clone());
    }
}

impl ReadConditionsSchema for MemoryStore {
    async fn conditions_schema(
        &self,
        _invocation: &Invocation,
    ) -> StoreResult<Option<StoredSchema>> {
        if !self.has_conditions_index() {
            return Ok(None);
        }
        Ok(self.read()?.conditions.schema.clone())
    }

    fn has_conditions_index(&self) -> bool {
        self.state().conditions.exists
    }
}

impl PutConditionsSchema for MemoryStore {
    async fn put_conditions_schema(
        &self,
        schema: &ConditionsSchema,
        expected: Expected,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let stored = &mut self.write()?.conditions.schema;
        let known = stored.as_ref().map(|it| Expected::Version(it.schema.version().into()));
        let is_as_expected = known.unwrap_or(Expected::Absent) == expected;
        if is_as_expected {
            *stored = Some(StoredSchema { schema: schema.clone(), is_ready: false });
        }
        Ok(is_as_expected)
    }
}

impl SetConditionsReady for MemoryStore {
    async fn set_conditions_ready(
        &self,
        version: u8,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut state = self.write()?;
        let stored = state.conditions.schema.as_mut().filter(|it| it.schema.version() == version);
        Ok(stored.map(|stored| stored.is_ready = true).is_some())
    }
}

impl QueryConditions for MemoryStore {
    async fn indexed_quarters(
        &self,
        (device, month): (&DeviceId, Timestamp),
        (first, last): (&[u8], &[u8]),
        after: Option<&IndexedQuarter>,
        limit: usize,
        _invocation: &Invocation,
    ) -> StoreResult<ConditionsPage> {
        let state = self.read()?;
        let rollups = state.conditions.held.as_ref().unwrap_or(&state.rollups);
        let month = crate::keys::conditions_month(device, month);
        let entry = |stored: &StoredRollup| {
            let Bucket::QuarterHour(quarter) = stored.key.bucket else { return None };
            let entry = stored.indexed.as_ref()?.entry.clone()?;
            let is_asked = crate::keys::conditions_month(&stored.key.device, quarter.start())
                == month
                && (first..=last).contains(&&*entry.address);
            is_asked.then(|| IndexedQuarter {
                key: stored.key.clone(),
                quarter,
                entry,
                rooms: stored.rollup.rooms.clone(),
                expires: stored.expires,
            })
        };
        let mut found: Vec<IndexedQuarter> = rollups.values().filter_map(entry).collect();
        let place = |it: &IndexedQuarter| (it.entry.address.clone(), it.quarter);
        found.sort_by_key(place);
        found.retain(|it| after.is_none_or(|after| place(after) < place(it)));
        let has_more = found.len() > limit;
        found.truncate(limit);
        Ok(ConditionsPage { found, has_more })
    }
}
