//! `PutItem` where nothing is: a reading without a timestamp, which must take nobody's place.

use chrono::TimeDelta;

use crate::DynamoStore;
use crate::pause::while_throttled;
use domain::Reading;
use table::{AddArrival, Added, Budget, Registration, StoreResult, item};

impl AddArrival for DynamoStore {
    async fn add_arrival(
        &self,
        reading: &Reading,
        arrival: &str,
        retention: Option<TimeDelta>,
        budget: &Budget,
    ) -> StoreResult<Added> {
        let put = || {
            let item = item::from_arrival(reading, arrival, retention);
            self.put_if_absent(item, |there| Ok(item::arrival(there)), budget)
        };
        Ok(match while_throttled(budget, put).await? {
            Registration::New => Added::Stored,
            // The SDK repeats a request whose answer was lost: then the item that is there is this one,
            // with whatever was merged into it since.
            Registration::Known(came) if came.as_deref() == Some(arrival) => Added::Stored,
            Registration::Known(_) => Added::Taken,
        })
    }
}
