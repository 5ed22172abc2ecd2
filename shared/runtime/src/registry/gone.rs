//! Checks whether a device has readings, and whether a deleted device is gone. Records of a gone device's readings may
//! still arrive and are ignored. Deletes no device.

use domain::{DeletedDevice, DeviceId, Order, TimeRange, Timestamp};
use table::{NearestReading, QueryReadings, Session, StoreResult};

/// Whether a deleted device is gone. During the deletion it is gone, whatever is left of its items. After the deletion
/// it is gone unless the table has a reading of the device, which was then sent after the deletion. A record in the
/// stream proves nothing, because the record may come a day after its reading was deleted.
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
