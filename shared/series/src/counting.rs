//! When a device counts in a sum of rooms: not while a meter that measures it too is there. Chooses no devices.
//!
//! A device and its meter move, so a sum has of a device what it would have if each stay of the meter were asked for by
//! itself: then the sums of a range's parts are the sum of the range.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use domain::{DeviceId, MetricName, MetricRule, Order, RoomId, TimeRange, Timestamp, meter_of};
use table::Invocation;

use super::device::{DeviceValues, device_values};
use super::failure::Failure;
use super::gather::{Ask, Level, Piece, edge, nearest};
use super::grid::intersection;
use crate::ports::Store;

/// The most times between the stays of a meter for which one request reads a device: each is a question of its own.
const MAX_PARTS: usize = 50;

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

/// The part of the range in which a meter is in the rooms that are asked for: from its first reading there to its last
/// there before one elsewhere, and on for its hold at most until that. What a counter counts between two rooms counts in
/// neither, so then it takes no other device's place.
pub async fn presence(
    store: &impl Store,
    ask: &Ask<'_>,
    values: &DeviceValues<'_>,
    hold: TimeDelta,
    invocation: &Invocation,
) -> Result<Vec<TimeRange>, Failure> {
    let range = ask.grid.range();
    if ask.rooms.is_none() {
        return Ok(vec![range]);
    }
    let before = nearest_before(store, ask, invocation).await?;
    let mut since = ask.is_about(before.room.as_ref()).then_some(range.from());
    // The last reading there, and the piece that it is of.
    let mut newest: (Option<Timestamp>, Option<&Piece>) = (before.at, None);
    let mut stays = Vec::new();
    for (n, piece) in values.gathered.pieces.iter().enumerate() {
        match (since, piece.is_elsewhere) {
            (Some(from), true) => {
                let last = last_reading(store, ask, newest, invocation).await?;
                let to = last.map_or(from, |last| last.saturating_add(hold)).min(piece.first);
                stays.extend(TimeRange::new(from, to).ok());
                since = None;
            }
            (None, false) if n == 0 && piece.level > Level::Readings => {
                let first = edge(store, ask, piece.range, Order::Ascending, invocation).await?;
                since = Some(first.unwrap_or(piece.first));
            }
            (None, false) => since = Some(piece.first),
            (Some(_), false) | (None, true) => {}
        }
        newest = if piece.is_elsewhere { (None, None) } else { (Some(piece.first), Some(piece)) };
    }
    let Some(from) = since else { return Ok(stays) };
    let mut to = range.to();
    if let Some(left) = leaves_after(store, ask, invocation).await? {
        let last = last_reading(store, ask, newest, invocation).await?;
        to = last.map_or(from, |last| last.saturating_add(hold)).min(left).min(to);
    }
    stays.extend(TimeRange::new(from, to).ok());
    Ok(stays)
}

/// For how long the last value of a meter counts on: that of powers, where no counter tells.
pub fn hold(values: &DeviceValues<'_>, is_counted: impl Fn(&MetricName) -> bool) -> TimeDelta {
    let counted = values.metrics.iter().filter(|(name, _)| is_counted(name));
    let mut holds = Vec::new();
    for (_, metric) in counted {
        match metric.rule {
            MetricRule::Counter(_) => return TimeDelta::zero(),
            MetricRule::Power(hold) => holds.push(hold),
            MetricRule::Gauge => {}
        }
    }
    holds.into_iter().max().unwrap_or_default()
}

/// When the last reading in the rooms is, of the newest piece there or before the range.
async fn last_reading(
    store: &impl Store,
    ask: &Ask<'_>,
    (at, piece): (Option<Timestamp>, Option<&Piece>),
    invocation: &Invocation,
) -> Result<Option<Timestamp>, Failure> {
    let Some(piece) = piece else { return Ok(at) };
    Ok(edge(store, ask, piece.range, Order::Descending, invocation).await?.or(piece.last).or(at))
}

/// The last reading before the range, and its room; where it has expired, the registry tells.
struct Before {
    at: Option<Timestamp>,
    room: Option<RoomId>,
}

async fn nearest_before(
    store: &impl Store,
    ask: &Ask<'_>,
    invocation: &Invocation,
) -> Result<Before, Failure> {
    let from = ask.grid.range().from();
    let Ok(before) = TimeRange::new(Timestamp::MIN, from) else {
        return Ok(Before { at: None, room: None });
    };
    let found = nearest(store, ask, before, Order::Descending, invocation).await?;
    let registered = || ask.device.place().room().filter(|_| ask.device.first_seen() < from);
    Ok(match found {
        Some(reading) => Before { at: Some(reading.at), room: reading.room },
        None => Before { at: None, room: registered().cloned() },
    })
}

/// The room in which a device was when the range began.
pub async fn room_before(
    store: &impl Store,
    ask: &Ask<'_>,
    invocation: &Invocation,
) -> Result<Option<RoomId>, Failure> {
    Ok(nearest_before(store, ask, invocation).await?.room)
}

/// When the first reading after the range is, if it is of another room.
async fn leaves_after(
    store: &impl Store,
    ask: &Ask<'_>,
    invocation: &Invocation,
) -> Result<Option<Timestamp>, Failure> {
    let Ok(after) = TimeRange::new(ask.grid.range().to(), Timestamp::MAX) else { return Ok(None) };
    let next = nearest(store, ask, after, Order::Ascending, invocation).await?;
    Ok(next.filter(|reading| !ask.is_about(reading.room.as_ref())).map(|reading| reading.at))
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
    if parts.len() > MAX_PARTS {
        return Err(Failure::OutOfReach(format!(
            "A meter that measures {} too has moved more than {MAX_PARTS} times. Narrow from and to, or ask for \
             the device.",
            ask.device.id()
        )));
    }
    let mut values = DeviceValues::empty(ask, names);
    for part in parts.iter().filter_map(|part| intersection(*part, ask.grid.range())) {
        let (first, grid) = ask.grid.within(part);
        let ask = Ask { grid: &grid, ..*ask };
        let found = device_values(store, &ask, names, spans, invocation).await?;
        values.append(found, first);
    }
    Ok(values)
}
