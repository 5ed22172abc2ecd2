//! Readings sent without a timestamp, stored at a free one. Replaces no reading.

use chrono::TimeDelta;
use domain::Reading;

use crate::db::{Db, put};
use crate::item::{Arrival, from_arrival};
use crate::{Added, InsertOutcome, Patterns, StoreResult};

impl<D: Db> Patterns<'_, D> {
    /// Stores a reading at a free timestamp. A stored reading with the same `arrival` is the same reading.
    pub async fn add_arrival(
        self,
        reading: &Reading,
        arrival: &str,
        retention: Option<TimeDelta>,
    ) -> StoreResult<Added> {
        let arrived = put(from_arrival(reading, arrival, retention));
        Ok(match self.insert(arrived).await? {
            InsertOutcome::Inserted => Added::Stored,
            // A request is repeated if its answer was lost. The stored item is then the same reading, possibly with
            // metrics that were merged since.
            InsertOutcome::Exists(Arrival(came)) if came.as_deref() == Some(arrival) => {
                Added::Stored
            }
            InsertOutcome::Exists(_) => Added::Taken,
        })
    }
}
