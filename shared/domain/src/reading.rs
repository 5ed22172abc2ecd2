//! A reading: the metrics of one device at one timestamp. Does not know how it is sent or stored.

use std::collections::BTreeMap;

use super::{About, Decimal, DeviceId, MetricName, RoomId, Timestamp};

/// The largest number of metrics that a sender may put into one reading, and of fields in a line of line protocol. The
/// item of such a reading stays far below `DynamoDB`'s 400 KB.
pub const MAX_FIELDS: usize = 256;
/// The largest number of metrics that a device's own payload may have, and that a request may name.
pub const MAX_METRICS: usize = 64;

/// The metrics of one device at one timestamp, at least one.
///
/// The device and the timestamp identify a reading. A reading that is sent again replaces itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reading {
    /// The device that measured.
    pub device: DeviceId,
    /// The time of the measurement.
    pub at: Timestamp,
    /// The room, named by the sender or filled in from the registry.
    pub room: Option<RoomId>,
    /// The room that the sender named. Only this room moves a device: a room from the registry may be out of date.
    pub named_room: Option<RoomId>,
    /// The facts that the sender gives about the device in addition to the values; no answer shows them. The function
    /// ingest keeps only the facts that the registry does not have yet.
    pub about: Option<Box<About>>,
    metrics: BTreeMap<MetricName, Decimal>,
}

/// The reasons for which metrics do not form a reading.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadingError {
    /// There is no metric.
    #[error("there is no metric; add at least one, such as \"temperature\": 21.5")]
    NoMetric,
    /// There are more than [`MAX_FIELDS`] metrics.
    #[error("there are {0} metrics; at most {MAX_FIELDS} are allowed in one reading")]
    TooManyMetrics(usize),
}

impl Reading {
    /// A reading as a sender may send it, with at most [`MAX_FIELDS`] metrics.
    pub fn new(
        device: DeviceId,
        at: Timestamp,
        room: Option<RoomId>,
        metrics: BTreeMap<MetricName, Decimal>,
    ) -> Result<Self, ReadingError> {
        match metrics.len() {
            0..=MAX_FIELDS => Self::stored(device, at, room, metrics),
            n => Err(ReadingError::TooManyMetrics(n)),
        }
    }

    /// A reading as the table stores it. Writes that merge readings may have given it any number of metrics. The room
    /// counts as named by the sender.
    pub fn stored(
        device: DeviceId,
        at: Timestamp,
        room: Option<RoomId>,
        metrics: BTreeMap<MetricName, Decimal>,
    ) -> Result<Self, ReadingError> {
        if metrics.is_empty() {
            return Err(ReadingError::NoMetric);
        }
        Ok(Self { device, at, named_room: room.clone(), room, about: None, metrics })
    }

    /// The reading with the facts that its sender gives about the device.
    #[must_use]
    pub fn with_about(mut self, about: About) -> Self {
        let room = self.named_room.clone();
        self.say(about, room.as_ref());
        self
    }

    /// Adds facts that the sender gives about the device and about `room`. Facts about metrics that this reading does
    /// not have are dropped, and so is the name of another room.
    pub fn say(&mut self, mut about: About, room: Option<&RoomId>) {
        about.metrics.retain(|name, _| self.metrics.contains_key(name));
        about.room_name.take_if(|_| room.is_none() || self.named_room.as_ref() != room);
        if !about.is_empty() {
            self.about.get_or_insert_default().absorb(about);
        }
    }

    /// The values by metric.
    pub const fn metrics(&self) -> &BTreeMap<MetricName, Decimal> {
        &self.metrics
    }

    /// Fills in the registry's room of the device, if a person chose the room or the sender named no room.
    pub fn fill_in_room(&mut self, room: &RoomId, is_chosen: bool) {
        if is_chosen || self.room.is_none() {
            self.room = Some(room.clone());
        }
    }

    /// A metric that both readings have.
    pub fn shared_metric(&self, other: &Self) -> Option<&MetricName> {
        self.metrics.keys().find(|name| other.metrics.contains_key(*name))
    }

    /// Adds the metrics of a later reading of the same device and timestamp, without limiting their number. Where both
    /// have a value, the later one wins.
    pub fn merge_later(&mut self, later: Self) {
        if let Some(about) = &mut self.about
            && later.named_room.is_some()
            && later.named_room != self.named_room
        {
            about.room_name = None;
        }

        self.room = later.room.or(self.room.take());
        self.named_room = later.named_room.or(self.named_room.take());
        self.metrics.extend(later.metrics);
        if let Some(about) = later.about {
            let room = self.named_room.clone();
            self.say(*about, room.as_ref());
        }
    }

    /// This stored reading after a write that merges `new` into it, a reading of the same device and timestamp. New
    /// values win. A room that was filled in from the registry does not replace the stored room.
    #[must_use]
    pub fn as_after_merging(&self, new: &Self) -> Self {
        let mut metrics = self.metrics.clone();
        metrics.extend(new.metrics.iter().map(|(name, value)| (name.clone(), value.clone())));
        let keeps_room = new.named_room.is_none() && self.room.is_some();
        let room = if keeps_room { &self.room } else { &new.room };
        let named_room = new.named_room.clone().or_else(|| self.named_room.clone());
        let about = new.about.clone().or_else(|| self.about.clone());

        Self {
            device: self.device.clone(),
            at: self.at,
            room: room.clone(),
            named_room,
            about,
            metrics,
        }
    }

    /// Merges a later reading of the same device and timestamp into this one. The later values win.
    ///
    /// If the result would have too many metrics, this reading stays unchanged.
    pub fn merge_later_within_limit(&mut self, later: Self) -> Result<(), ReadingError> {
        let new = later.metrics.keys().filter(|name| !self.metrics.contains_key(*name)).count();
        let total = self.metrics.len() + new;
        if total > MAX_FIELDS {
            return Err(ReadingError::TooManyMetrics(total));
        }
        self.merge_later(later);
        Ok(())
    }
}
