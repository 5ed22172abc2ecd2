//! When a meter was in the rooms of an answer, by its readings, rollups and stays. Chooses no devices.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use domain::{Device, DeviceId, Order, TimeRange, Timestamp, meters_above};
use table::{NearestReading, Session};

use super::device::DeviceRows;
use super::error::SeriesError;
use super::gather::{DeviceQuestion, RollupPiece};
use crate::ports::Store;

/// The parts of a range in which a meter was in the rooms of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presence {
    range: TimeRange,
    /// The stays in order; no two touch.
    stays: Vec<TimeRange>,
    /// Whether any row has a part of the meter's energy.
    has_share: bool,
}

impl Presence {
    /// The presence of a meter in these parts of a range, which must be in order.
    pub(crate) const fn within(range: TimeRange, stays: Vec<TimeRange>) -> Self {
        Self { range, stays, has_share: false }
    }

    /// Finds when the meter of `values` was in the rooms. Only the time from the first reading of the meter, or of a
    /// device behind it, until now counts.
    ///
    /// Between two readings, a meter is in the room of the earlier reading, which may be from before the range.
    pub async fn of<'a>(
        session: Session<'_, impl Store>,
        question: &DeviceQuestion<'_>,
        values: &DeviceRows<'_>,
        devices: impl IntoIterator<Item = &'a Device>,
        behind: impl Fn(&DeviceId) -> Option<&'a DeviceId>,
    ) -> Result<Self, SeriesError> {
        let pieces = &values.gathered.pieces;
        let range =
            lifetime(question, pieces, first_seen_with(values.device.id(), devices, behind));
        if question.rooms.is_none() {
            return Ok(Self::within(range, vec![range]));
        }

        let has_share = values.has_share();
        let mut presence = Self { has_share, ..Self::within(range, Vec::new()) };
        let left = left_at(question, pieces);

        // Until its first reading in the range, the meter is in the room of its last reading before the range.
        let first = pieces.first().map_or(question.grid.range().to(), |piece| piece.first);
        if range.from() < first
            && let Some(last) = was_there_before(session, question).await?
        {
            let left = left.filter(|left| last < *left);
            presence.append(range.from(), first.min(left.unwrap_or(first)));
        }

        let end = left.unwrap_or(range.to());
        for (n, piece) in pieces.iter().enumerate() {
            if !piece.is_in_other_room {
                presence.append(piece.first, pieces.get(n + 1).map_or(end, |next| next.first));
            }
        }
        Ok(presence)
    }

    /// Appends a stay, as far as it is in the range.
    fn append(&mut self, from: Timestamp, to: Timestamp) {
        let Ok(stay) = TimeRange::new(from.max(self.range.from()), to.min(self.range.to())) else {
            return;
        };
        match self.stays.last_mut().filter(|last| last.to() == stay.from()) {
            Some(last) => *last = TimeRange::new(last.from(), stay.to()).expect("it only grows"),
            None => self.stays.push(stay),
        }
    }

    /// The stays, in order.
    pub fn stays(&self) -> &[TimeRange] {
        &self.stays
    }

    /// Whether the meter was in the rooms at any time, or any row has a part of its energy.
    pub const fn is_ever(&self) -> bool {
        !self.stays.is_empty() || self.has_share
    }

    /// Whether the meter was in the rooms in the whole range.
    pub fn is_always(&self) -> bool {
        self.stays == [self.range]
    }

    /// Whether the meter was in the rooms for at least half of the range.
    pub fn is_mostly(&self) -> bool {
        self.is_mostly_in(self.range)
    }

    /// Whether the meter was in the rooms for at least half of a part of the range. Time before the first reading does
    /// not count.
    pub fn is_mostly_in(&self, part: TimeRange) -> bool {
        let part = TimeRange::new(part.from().max(self.range.from()), part.to()).unwrap_or(part);
        let stays = self.stays.iter().filter_map(|stay| stay.intersection(part));
        stays.map(TimeRange::length).sum::<TimeDelta>() * 2 >= part.length()
    }
}

/// Finds when meters were in the rooms of an answer about these devices.
pub async fn presences<'a, 'q>(
    session: Session<'_, impl Store>,
    meters: &[&DeviceRows<'a>],
    question: impl Fn(&'a Device) -> DeviceQuestion<'q>,
    devices: &[&'a Device],
    behind: impl Fn(&DeviceId) -> Option<&'a DeviceId> + Copy,
) -> Result<BTreeMap<&'a DeviceId, Presence>, SeriesError> {
    let mut presences = BTreeMap::new();
    for values in meters {
        let (question, devices) = (question(values.device), devices.iter().copied());
        let presence = Presence::of(session, &question, values, devices, behind).await?;
        presences.insert(values.device.id(), presence);
    }
    Ok(presences)
}

/// The part of the range from the first reading of the meter, or of a device behind it, until now. If there are
/// readings from after now, the part is longer.
fn lifetime(
    question: &DeviceQuestion<'_>,
    pieces: &[RollupPiece],
    first_seen: Timestamp,
) -> TimeRange {
    let whole = question.grid.range();
    let begin = pieces.first().map_or(first_seen, |piece| piece.first.min(first_seen));
    let newest = pieces.last().map_or(Timestamp::MIN, |piece| piece.first);
    let end = question.now.max(newest.saturating_add(TimeDelta::milliseconds(1)));
    TimeRange::new(whole.from().max(begin), whole.to().min(end)).unwrap_or(whole)
}

/// When a silent device left the rooms, by its newest stay. `None` if it is still there, has sent a reading since, or
/// has no stay.
fn left_at(question: &DeviceQuestion<'_>, pieces: &[RollupPiece]) -> Option<Timestamp> {
    let stay = question.device.stay()?;
    let left = if question.is_about(Some(&stay.room)) { stay.until? } else { stay.since };
    let last = pieces.last().map(|piece| piece.last);
    last.is_none_or(|last| last < left).then_some(left)
}

/// The time of a device's last reading before the range, if the device was in the rooms then. If the reading has
/// expired, the registry decides, and the result is `Timestamp::MIN`.
async fn was_there_before(
    session: Session<'_, impl Store>,
    question: &DeviceQuestion<'_>,
) -> Result<Option<Timestamp>, SeriesError> {
    let from = question.grid.range().from();
    let Ok(range) = TimeRange::new(Timestamp::MIN, from) else { return Ok(None) };
    let (device, order) = (question.device.id(), Order::Descending);
    let last = NearestReading { device, range, order, consistent: false };
    if let Some(reading) = last.find(session).await? {
        return Ok(question.is_about(reading.room.as_ref()).then_some(reading.at));
    }

    let is_there = question.is_about(question.device.place().room());
    Ok((question.device.first_seen() < from && is_there).then_some(Timestamp::MIN))
}

/// The time of the first reading of a meter or of a device behind it.
fn first_seen_with<'a>(
    meter: &DeviceId,
    devices: impl IntoIterator<Item = &'a Device>,
    behind: impl Fn(&DeviceId) -> Option<&'a DeviceId>,
) -> Timestamp {
    let is_measured = |device: &&'a Device| {
        device.id() == meter || meters_above(device.id(), &behind).contains(&meter)
    };
    devices.into_iter().filter(is_measured).map(Device::first_seen).min().unwrap_or(Timestamp::MIN)
}
