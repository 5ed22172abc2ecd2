//! When a device counts in a sum of rooms: not while a meter that measures it too is there. Chooses no devices.
//!
//! A device and its meter move, so a sum has of a device what it would have if each stay of the meter were asked for by
//! itself: then the sums of a range's parts are the sum of the range.

use std::collections::{BTreeMap, BTreeSet};

use domain::{DeviceId, MetricName, MetricRule, Order, TimeRange, Timestamp, meter_of};
use table::Invocation;

use super::device::{DeviceValues, device_values};
use super::failure::Failure;
use super::gather::{Ask, Level, Piece, edge, nearest};
use super::grid::intersection;
use crate::ports::Store;

/// When each meter is in the rooms that are asked for.
pub type Presences = BTreeMap<DeviceId, Vec<TimeRange>>;

/// When a device counts, and when a meter counts in its place.
#[derive(Debug, PartialEq, Eq)]
pub struct Counted<'a> {
    /// When the device counts itself.
    pub itself: Vec<TimeRange>,
    /// When a meter measures it too, with the first such meter.
    pub by_meter: Option<(&'a DeviceId, Vec<TimeRange>)>,
}

/// The devices that a device is behind, the nearest first.
#[must_use]
pub fn meters_above<'a>(
    device: &'a DeviceId,
    behind: impl Fn(&DeviceId) -> Option<&'a DeviceId>,
) -> Vec<&'a DeviceId> {
    let mut above: Vec<&DeviceId> = Vec::new();
    let mut next = behind(device);
    while let Some(meter) = next.filter(|it| *it != device && !above.contains(it)) {
        above.push(meter);
        next = behind(meter);
    }
    above
}

/// The part of the range in which a device is in the rooms that are asked for: from its first reading there to its
/// last there before one elsewhere. What it counts between two rooms counts in neither, so then it takes no other
/// device's place.
pub async fn presence(
    store: &impl Store,
    ask: &Ask<'_>,
    pieces: &[Piece],
    invocation: &Invocation,
) -> Result<Vec<TimeRange>, Failure> {
    let range = ask.grid.range();
    if ask.rooms.is_none() {
        return Ok(vec![range]);
    }
    let end = |piece: &Piece| {
        let lasts = piece.rollup.metrics.values().map(|metric| metric.last.at);
        (piece.range, lasts.max().unwrap_or(piece.range.from()))
    };
    let mut since = is_there_before(store, ask, invocation).await?.then_some(range.from());
    let mut newest: Option<&Piece> = None;
    let mut stays = Vec::new();
    for (n, piece) in pieces.iter().enumerate() {
        match (since, piece.is_elsewhere) {
            (Some(from), true) => {
                if let Some((of, last)) = newest.map(end) {
                    let last =
                        edge(store, ask, of, Order::Descending, invocation).await?.unwrap_or(last);
                    stays.extend(TimeRange::new(from, last).ok());
                }
                (since, newest) = (None, None);
            }
            (None, false) if n == 0 && piece.level > Level::Readings => {
                let first = edge(store, ask, piece.range, Order::Ascending, invocation).await?;
                (since, newest) = (Some(first.unwrap_or(piece.first)), Some(piece));
            }
            (since_when, false) => {
                (since, newest) = (since_when.or(Some(piece.first)), Some(piece));
            }
            (None, true) => {}
        }
    }
    let Some(from) = since else { return Ok(stays) };
    let mut to = Some(range.to());
    if leaves_after(store, ask, invocation).await? {
        to = match newest.map(end) {
            Some((of, last)) => {
                Some(edge(store, ask, of, Order::Descending, invocation).await?.unwrap_or(last))
            }
            None => None,
        };
    }
    stays.extend(to.and_then(|to| TimeRange::new(from, to).ok()));
    Ok(stays)
}

/// Whether the last reading before the range is of the rooms; where that has expired, the registry tells.
async fn is_there_before(
    store: &impl Store,
    ask: &Ask<'_>,
    invocation: &Invocation,
) -> Result<bool, Failure> {
    let from = ask.grid.range().from();
    let Ok(before) = TimeRange::new(Timestamp::MIN, from) else { return Ok(false) };
    Ok(match nearest(store, ask, before, Order::Descending, invocation).await? {
        Some(reading) => ask.is_about(reading.room.as_ref()),
        None => ask.device.first_seen() < from && ask.is_about(ask.device.place().room()),
    })
}

/// Whether the first reading after the range is of another room.
async fn leaves_after(
    store: &impl Store,
    ask: &Ask<'_>,
    invocation: &Invocation,
) -> Result<bool, Failure> {
    let Ok(after) = TimeRange::new(ask.grid.range().to(), Timestamp::MAX) else { return Ok(false) };
    if after.from() >= ask.now {
        return Ok(false);
    }
    let next = nearest(store, ask, after, Order::Ascending, invocation).await?;
    Ok(next.is_some_and(|reading| !ask.is_about(reading.room.as_ref())))
}

/// When a device counts in a sum with meters.
pub fn counted<'a>(
    range: TimeRange,
    device: &'a DeviceId,
    behind: impl Fn(&DeviceId) -> Option<&'a DeviceId>,
    presences: &Presences,
    is_meter: impl Fn(&DeviceId) -> bool,
) -> Counted<'a> {
    let edges = presences.values().flatten().flat_map(|it| [it.from(), it.to()]);
    let mut edges: BTreeSet<Timestamp> = edges.filter(|it| range.contains(*it)).collect();
    edges.extend([range.from(), range.to()]);
    let edges: Vec<Timestamp> = edges.into_iter().collect();
    let (mut itself, mut by_meter) = (Vec::new(), None);
    for edge in edges.windows(2) {
        let part = TimeRange::new(edge[0], edge[1]).expect("edges are in order");
        let is_there = |id: &DeviceId| {
            let mut stays = presences.get(id).into_iter().flatten();
            is_meter(id) && stays.any(|stay| stay.contains(part.from()))
        };
        match meter_of(device, &behind, is_there) {
            None => append(&mut itself, part),
            Some(meter) => {
                append(&mut by_meter.get_or_insert_with(|| (meter, Vec::new())).1, part);
            }
        }
    }
    Counted { itself, by_meter }
}

/// Appends a later range, joined to the last if they touch.
fn append(ranges: &mut Vec<TimeRange>, next: TimeRange) {
    match ranges.last_mut().filter(|last| last.to() == next.from()) {
        Some(last) => *last = TimeRange::new(last.from(), next.to()).expect("it only grows"),
        None => ranges.push(next),
    }
}

/// The rows of a device as [`device_values`], with what some parts of the range hold alone.
pub async fn values_within<'a>(
    store: &impl Store,
    ask: &Ask<'a>,
    parts: &[TimeRange],
    names: &[MetricName],
    spans: impl Fn(&MetricRule) -> bool + Copy,
    invocation: &Invocation,
) -> Result<DeviceValues<'a>, Failure> {
    let mut values = DeviceValues::empty(ask, names);
    for part in parts.iter().filter_map(|part| intersection(*part, ask.grid.range())) {
        let (first, grid) = ask.grid.within(part);
        let ask = Ask { grid: &grid, ..*ask };
        let found = device_values(store, &ask, names, spans, invocation).await?;
        values.append(found, first);
    }
    Ok(values)
}
