//! The devices of each room, with what they measured there: what the room itself answers. Chooses no devices.
//!
//! Each device is read once, whole; of one that has been in a single room that is what the room has of it. A
//! device that has moved is read again for each of its rooms, in the way in which the room reads it.

use std::collections::BTreeSet;

use domain::{DeviceId, MAX_ROLLUP_ROOMS, MetricName, MetricRule, RoomId};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::budget::{DeviceRows, RowReader};
use super::device::{DeviceValues, device_values};
use super::failure::Failure;
use super::gather::Ask;
use super::members::DEVICE_CONCURRENCY;
use crate::ports::Store;

/// What a row is of, with its devices.
pub struct Place<'a> {
    /// `None` for a device that is in no room: it stands for itself, with all that it sent.
    pub room: Option<RoomId>,
    /// Its devices, in the order of their ids.
    pub devices: Vec<DeviceValues<'a>>,
}

/// What is asked for, room by room.
pub struct Places<'a> {
    /// The rooms, each with its devices, and the devices that are in no room.
    pub places: Vec<Place<'a>>,
    /// The other devices that have readings of no room too, or of one that is not asked for: none of the rows has
    /// these.
    pub without_room: Vec<DeviceId>,
}

/// The rooms of devices, each with its devices, and the devices that are in no room.
pub async fn places<'a, S: Store>(
    reader: &mut RowReader<'_, S>,
    asks: &[Ask<'a>],
    found: Vec<DeviceValues<'a>>,
    rooms: &'a [BTreeSet<RoomId>],
    names: &[MetricName],
    spans: impl Fn(&MetricRule) -> bool + Copy,
) -> Result<Places<'a>, Failure> {
    let mut without_room = Vec::new();
    let mut of_rooms: Vec<(RoomId, DeviceValues<'a>)> = Vec::new();
    let mut alone = Vec::new();
    let mut moved: Vec<Ask<'a>> = Vec::new();
    let mut dropped = Vec::new();
    for (ask, values) in asks.iter().zip(found) {
        match Rooms::of(&values, rooms) {
            Rooms::One(room) => of_rooms.push((room, values)),
            Rooms::Several(of_device) => {
                moved.extend(of_device.into_iter().map(|it| Ask { rooms: Some(it), ..*ask }));
                if is_in_none(&values) {
                    alone.push(values);
                    continue;
                }
                if has_others(&values, rooms) {
                    without_room.push(values.device.id().clone());
                }
                dropped.push(DeviceRows::of(*ask, names));
            }
            Rooms::None => alone.push(values),
        }
    }
    let rows: Vec<_> = moved.iter().map(|ask| DeviceRows::of(*ask, names)).collect();
    // What is read by room takes the place of what is dropped.
    reader.budget.release(&dropped);
    Box::pin(reader.spend(&rows)).await?;
    let RowReader { store, invocation, .. } = *reader;
    let again = moved.into_iter().map(|ask| {
        Box::pin(async move {
            let values = device_values(store, &ask, names, spans, invocation).await?;
            let room = ask.rooms.and_then(BTreeSet::first);
            let room = room.filter(|room| was_in(&values, room));
            Ok::<_, Failure>((room.cloned(), values))
        })
    });
    let again: Vec<_> = again.collect();
    let again = stream::iter(again).buffered(DEVICE_CONCURRENCY).try_collect::<Vec<_>>().await?;
    of_rooms.extend(again.into_iter().filter_map(|(room, values)| Some((room?, values))));
    Ok(Places { places: grouped(of_rooms, alone), without_room })
}

/// Whether a device is in no room, and has readings of none.
fn is_in_none(values: &DeviceValues<'_>) -> bool {
    values.device.place().room().is_none()
        && values.gathered.pieces.iter().any(|piece| piece.rollup.rooms.contains(&None))
}

/// Whether a device has readings of no room, or of another than those that are asked for.
fn has_others(values: &DeviceValues<'_>, asked: &[BTreeSet<RoomId>]) -> bool {
    let is_asked = |room: &RoomId| asked.iter().any(|it| it.contains(room));
    let mut rooms = values.gathered.pieces.iter().map(|piece| &piece.rollup.rooms);
    // A rollup that has as many as it names may have others.
    rooms.any(|rooms| {
        rooms.len() >= MAX_ROLLUP_ROOMS
            || !rooms.iter().all(|room| room.as_ref().is_some_and(is_asked))
    })
}

/// Whether what is read of a device for a room has anything of the room.
fn was_in(values: &DeviceValues<'_>, room: &RoomId) -> bool {
    values.device.place().room() == Some(room)
        || values.gathered.pieces.iter().any(|piece| !piece.is_elsewhere)
        || values.has_share()
}

/// The rooms of a device, of those that are asked about, each by itself.
enum Rooms<'a> {
    None,
    /// All that is found of it in the range, and beside it as far as its values reach in, is of this room.
    One(RoomId),
    /// It has been in several, or in others too.
    Several(Vec<&'a BTreeSet<RoomId>>),
}

impl<'a> Rooms<'a> {
    fn of(values: &DeviceValues<'_>, asked: &'a [BTreeSet<RoomId>]) -> Self {
        let pieces = || values.gathered.pieces.iter().map(|piece| &piece.rollup);
        let now = values.device.place().room();
        let beside = || values.rooms_beside.iter().flatten();
        let may_be_of = |room: &&BTreeSet<RoomId>| {
            now.into_iter().chain(beside()).any(|it| room.contains(it))
                || pieces().any(|it| it.may_be_of(room))
        };
        let rooms: Vec<&BTreeSet<RoomId>> = asked.iter().filter(may_be_of).collect();
        match rooms.first().and_then(|room| room.first()) {
            None => Self::None,
            Some(room)
                if rooms.len() == 1
                    && pieces().all(|it| it.is_only_of(rooms[0]))
                    && values.rooms_beside.iter().all(|beside| beside.as_ref() == Some(room)) =>
            {
                Self::One(room.clone())
            }
            Some(_) => Self::Several(rooms),
        }
    }
}

/// The devices by room, and those without one behind them; each in the order of their ids.
fn grouped<'a>(
    mut of_rooms: Vec<(RoomId, DeviceValues<'a>)>,
    alone: Vec<DeviceValues<'a>>,
) -> Vec<Place<'a>> {
    of_rooms.sort_by(|(room, it), (other, next)| {
        (room, it.device.id()).cmp(&(other, next.device.id()))
    });
    let mut places: Vec<Place<'a>> = Vec::new();
    for (room, values) in of_rooms {
        match places.last_mut().filter(|place| place.room.as_ref() == Some(&room)) {
            Some(place) => place.devices.push(values),
            None => places.push(Place { room: Some(room), devices: vec![values] }),
        }
    }
    places.extend(alone.into_iter().map(|it| Place { room: None, devices: vec![it] }));
    places
}
