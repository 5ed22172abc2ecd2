//! Whether a device has readings, and a deleted one is gone, so that a late record of one of its readings says nothing.
//! Deletes none.

use domain::{DeletedDevice, DeviceId, Order, TimeRange, Timestamp};
use table::{NearestReading, QueryReadings, Session, StoreResult};

/// Whether the device is gone. While it is being deleted it is, whatever of it is left. Afterwards it is as
/// long as it has no readings: the stream may deliver a record of a reading a day after the reading was
/// deleted, but a reading that is there was sent anew.
pub async fn is_gone(
    session: Session<'_, impl QueryReadings>,
    device: &DeletedDevice,
) -> StoreResult<bool> {
    if device.deletion.ended.is_none() {
        return Ok(true);
    }
    Ok(!has_readings(session, &device.id).await?)
}

/// Whether the table has a reading of the device.
pub async fn has_readings(
    session: Session<'_, impl QueryReadings>,
    device: &DeviceId,
) -> StoreResult<bool> {
    let range = TimeRange::new(Timestamp::MIN, Timestamp::MAX).expect("one is before the other");
    let order = Order::Descending;
    let newest = NearestReading { device, range, order, consistent: true };
    Ok(newest.find(session).await?.is_some())
}
