//! Finds the room of a device by its newest readings, and since when the device is in this room. Writes nothing.

use domain::{Device, Order, RoomId, TimeRange, Timestamp};
use table::{FindRegistry, QueryReadings, RangeQuery, ReadingKey, Session, StoreResult};

use crate::current::Current;

/// The number of a device's newest readings that the first query reads.
const FIRST_PAGE: usize = 10;
/// The number of a device's newest readings that are searched for a room.
const MAX_SEARCHED_READINGS: usize = 200;

/// A room that a device's readings name, and the earliest known time of such a reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedRoom {
    pub(crate) room: RoomId,
    pub(crate) since: Timestamp,
}

/// The room of the newest reading that names a room, and the earliest known time in this room. `named` is the newest
/// room of the batch; readings before its time are not read. `None` if the device is in the room already.
///
/// The registry is not written for each reading, so it does not know the time of the newest reading in a room. A late
/// reading from another room could seem newer, so the newest readings are searched. If the searched readings name no
/// room, and there are further readings, the device stays in its room. The time of the newest reading is then stored as
/// the time in this room, so that the next late reading needs no search.
///
/// The stream may lag by a whole import. No later batch then shows since when the device is in the room, so the search
/// finds this time, too.
pub(crate) async fn newest_room(
    session: Session<'_, impl FindRegistry + QueryReadings>,
    device: &Device,
    named: NamedRoom,
    current: &mut Current,
) -> StoreResult<Option<NamedRoom>> {
    let Ok(range) = TimeRange::new(named.since, Timestamp::MAX) else { return Ok(Some(named)) };
    let (order, limit) = (Order::Descending, FIRST_PAGE);
    let mut query = RangeQuery { range, order, after: None, limit, consistent: true };
    let mut newest = None;
    let mut found: Option<NamedRoom> = None;

    for limit in [FIRST_PAGE, MAX_SEARCHED_READINGS - FIRST_PAGE] {
        query.limit = limit;
        let page = session.device_readings(device.id(), &query).await?;
        newest = newest.or_else(|| page.items.first().map(|reading| reading.at));
        for reading in &page.items {
            let Some(room) = &reading.named_room else { continue };
            match &mut found {
                Some(found) if found.room == *room => found.since = reading.at,
                Some(_) => return Ok(found),
                // A device cannot move to an unregistered room: the device was not permitted to introduce the room.
                None if !current.has_room(room, session).await? => {}
                None if device.place().room() == Some(room) => return Ok(None),
                None => found = Some(NamedRoom { room: room.clone(), since: reading.at }),
            }
        }

        let Some(last) = page.items.last().filter(|_| page.has_more) else {
            // If only the batch names a room, the readings are deleted, or the device has no room yet.
            return Ok(Some(found.unwrap_or(named)));
        };
        query.after = Some(ReadingKey::of(last));
    }

    // There are more readings than are searched. If the searched readings name no room, the device stays in its room; a
    // device without a room gets `named`.
    let stay = || Some(NamedRoom { room: device.place().room()?.clone(), since: newest? });
    Ok(found.or_else(stay).or(Some(named)))
}
