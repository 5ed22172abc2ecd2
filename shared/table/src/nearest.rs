//! Finds the first or the last reading of a device in a range. Reads no rollup.

use domain::{DeviceId, Order, Reading, TimeRange};

use crate::{QueryReadings, RangeQuery, Session, StoreResult};

/// A search for one reading of a device.
#[derive(Debug, Clone, Copy)]
pub struct NearestReading<'a> {
    /// The device.
    pub device: &'a DeviceId,
    /// The range in which the reading lies.
    pub range: TimeRange,
    /// Ascending for the oldest reading of the range, descending for the newest.
    pub order: Order,
    /// Whether the read is consistent, which costs twice the units.
    pub consistent: bool,
}

impl NearestReading<'_> {
    /// Reads the reading; `None` if the range has no reading.
    pub async fn find(
        self,
        session: Session<'_, impl QueryReadings>,
    ) -> StoreResult<Option<Reading>> {
        let Self { device, range, order, consistent } = self;
        let query = RangeQuery { range, order, after: None, limit: 1, consistent };
        let page = session.device_readings(device, &query).await?;
        Ok(page.items.into_iter().next())
    }
}
