//! Finds the room of a device by the newest readings, and since when the device is there. Writes nothing.

use domain::{Device, Order, RoomId, TimeRange, Timestamp};
use table::{FindRegistry, QueryReadings, RangeQuery, ReadingKey, Session, StoreResult};

use crate::current::Current;

/// The number of a device's newest readings that are searched for a room.
const MAX_SEARCHED_READINGS: usize = 200;

/// A room that readings of a device name, with the time of the earliest known reading that does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedRoom {
    pub(crate) room: RoomId,
    pub(crate) since: Timestamp,
}

/// The room of the newest reading that names a room, and the earliest known time in this room. `named` is the newest room
/// of the batch; older readings are not read. `None` if the device is in the room already.
///
/// The registry is not written for each reading, so it does not know how new the device's room is. A late reading from
/// another room could look newer, therefore the readings are searched. If no reading names a room, the device stays
/// where it is. The registry then notes the time, so that the next late reading does not repeat the search.
///
/// The stream may lag by a whole import. No later batch then shows that the device has settled in the room, so the
/// search also finds since when the device is there.
pub(crate) async fn newest_room(
    session: Session<'_, impl FindRegistry + QueryReadings>,
    device: &Device,
    named: NamedRoom,
    current: &mut Current,
) -> StoreResult<Option<NamedRoom>> {
    let Ok(range) = TimeRange::new(named.since, Timestamp::MAX) else { return Ok(Some(named)) };
    let mut query =
        RangeQuery { range, order: Order::Descending, after: None, limit: 10, consistent: true };
    let mut newest = None;
    let mut found: Option<NamedRoom> = None;

    loop {
        let page = session.device_readings(device.id(), &query).await?;
        for reading in &page.items {
            newest.get_or_insert(reading.at);
            let Some(room) = &reading.named_room else { continue };
            match &mut found {
                Some(found) if found.room == *room => found.since = reading.at,
                Some(_) => return Ok(found),
                // A room that no device could introduce is not registered. No device moves there.
                None if !current.has_room(room, session).await? => {}
                None if device.place().room() == Some(room) => return Ok(None),
                None => found = Some(NamedRoom { room: room.clone(), since: reading.at }),
            }
        }

        match (page.items.last(), newest, device.place().room()) {
            (Some(last), _, _) if page.has_more && query.limit == 10 => {
                query.after = Some(ReadingKey::of(last));
                query.limit = MAX_SEARCHED_READINGS - 10;
            }
            _ if found.is_some() => return Ok(found),
            (Some(_), Some(newest), Some(room)) if page.has_more => {
                return Ok(Some(NamedRoom { room: room.clone(), since: newest }));
            }
            // The readings are deleted, or the device has no room yet: only the batch has a room for the device.
            _ => return Ok(Some(named)),
        }
    }
}
