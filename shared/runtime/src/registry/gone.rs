//! Checks whether a device has readings, and whether a deleted device is gone, so that late records of its readings are
//! ignored. Deletes no device.

use domain::{DeletedDevice, DeviceId, Order, TimeRange, Timestamp};
use table::{NearestReading, QueryReadings, Session, StoreResult};

/// Whether a deleted device is gone. During the deletion the device is gone, whatever is left of it. After the
/// deletion, the device is gone as long as the table has no reading of it: such a reading was sent since. A record in
/// the stream proves nothing, because it may come a day after the reading was deleted.
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
