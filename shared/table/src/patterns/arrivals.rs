//! Stores readings that were sent without a timestamp. Replaces no reading.

use chrono::TimeDelta;
use domain::Reading;
use ports::port;

use crate::db::{Db, put};
use crate::item::{Arrival, from_arrival};
use crate::{Added, InsertOutcome, Patterns, StoreResult};

/// Stores a reading that was sent without a timestamp.
#[port(AddArrival, PutItem(Readings))]
impl<D: Db> Patterns<'_, D> {
    /// Stores a reading, unless its timestamp is taken. A repeat changes nothing: a stored reading with the same
    /// `arrival` is the same reading.
    pub async fn add_arrival(
        self,
        reading: &Reading,
        arrival: &str,
        retention: Option<TimeDelta>,
    ) -> StoreResult<Added> {
        let arrived = put(from_arrival(reading, arrival, retention));
        Ok(match self.insert(arrived).await? {
            InsertOutcome::Inserted => Added::Stored,
            // A request is repeated if its answer was lost. The reading is then stored already, perhaps with metrics
            // that were added since.
            InsertOutcome::Exists(Arrival(came)) if came.as_deref() == Some(arrival) => {
                Added::Stored
            }
            InsertOutcome::Exists(_) => Added::Taken,
        })
    }
}
