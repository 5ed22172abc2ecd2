//! `PutItem` if absent: stores a reading without a timestamp and replaces none.

use chrono::TimeDelta;

use crate::DynamoStore;
use domain::Reading;
use table::item::{self, Arrival};
use table::{AddArrival, Added, InsertOutcome, Invocation, StoreResult};

impl AddArrival for DynamoStore {
    async fn add_arrival(
        &self,
        reading: &Reading,
        arrival: &str,
        retention: Option<TimeDelta>,
        invocation: &Invocation,
    ) -> StoreResult<Added> {
        let arrived = item::from_arrival(reading, arrival, retention);
        Ok(match self.put_if_absent(arrived, invocation).await? {
            InsertOutcome::Inserted => Added::Stored,
            // The SDK repeats a request whose answer was lost: then the item that is there is this one,
            // with whatever was merged into it since.
            InsertOutcome::Exists(Arrival(came)) if came.as_deref() == Some(arrival) => {
                Added::Stored
            }
            InsertOutcome::Exists(_) => Added::Taken,
        })
    }
}
