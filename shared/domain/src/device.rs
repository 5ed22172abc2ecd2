//! A device of the registry: what its readings teach about it and what a person decides. No I/O.

use std::collections::{BTreeMap, BTreeSet};

use super::{Decimal, DeviceId, MetricKind, MetricName, Reading, RoomId, Timestamp};

/// A device as the registry knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The id that readings carry.
    pub id: DeviceId,
    /// What people see, once somebody has said it.
    pub name: Option<String>,
    /// Where it is now.
    pub room: Option<RoomId>,
    /// The timestamp of the reading that told the room; a person's choice is [`Timestamp::MAX`], newer
    /// than any reading, so that no reading ever moves it.
    pub room_at: Option<Timestamp>,
    /// What sort of device it is, in a person's words.
    pub kind: Option<String>,
    /// A person's labels.
    pub tags: Vec<String>,
    /// Every metric it has ever sent.
    pub metrics: BTreeMap<MetricName, MetricInfo>,
    /// The timestamp of its earliest reading.
    pub first_seen: Timestamp,
    /// The rooms that it was the first to name, at most [`MAX_INTRODUCED_ROOMS`].
    pub introduced_rooms: BTreeSet<RoomId>,
}

/// How many rooms one device may introduce to the registry; those that it names beyond stay in its
/// readings only.
///
/// A token that writes for one device could else fill the list of rooms, which everybody reads.
pub const MAX_INTRODUCED_ROOMS: usize = 32;

/// How many metrics of one device the registry knows; the readings may hold more.
///
/// A device that puts a counter or an address into the name of a metric would else grow its item
/// beyond `DynamoDB`'s 400 KB, and every list with it.
pub(super) const MAX_KNOWN_METRICS: usize = 256;

/// What is known of one metric of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricInfo {
    /// Level or total.
    pub kind: MetricKind,
    /// The unit of its values.
    pub unit: Option<String>,
    /// Where a counter wraps to zero, in its unit.
    pub modulus: Option<Decimal>,
    /// The largest power the meter can see, in watt.
    pub max_w: Option<Decimal>,
    /// The largest fall of a counter that is noise, in its unit.
    pub dip: Option<Decimal>,
}

impl From<&MetricName> for MetricInfo {
    fn from(name: &MetricName) -> Self {
        let (kind, unit) = name.well_known();
        Self { kind, unit: unit.map(str::to_owned), modulus: None, max_w: None, dip: None }
    }
}

/// What some readings of one device say about it, in whatever order they come.
///
/// [`see`](Self::see) is commutative and idempotent: redelivered or reordered readings make the same
/// observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceObservation {
    /// The timestamp of the earliest reading.
    pub first: Timestamp,
    /// The rooms that the sender named. Those that ingest filled in from the registry are not among them.
    pub rooms: BTreeMap<RoomId, Stay>,
    /// All metrics seen.
    pub metrics: BTreeSet<MetricName>,
}

/// The earliest and the latest of some readings that name one room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stay {
    /// The earliest.
    pub first: Timestamp,
    /// The latest.
    pub last: Timestamp,
}

impl DeviceObservation {
    /// What one reading says.
    #[must_use]
    pub fn of(reading: &Reading) -> Self {
        let mut observation =
            Self { first: reading.at, rooms: BTreeMap::new(), metrics: BTreeSet::new() };
        observation.see(reading);
        observation
    }

    /// Adds one more reading.
    pub fn see(&mut self, reading: &Reading) {
        self.first = self.first.min(reading.at);
        if let Some(room) = &reading.named_room {
            let once = Stay { first: reading.at, last: reading.at };
            let stay = self.rooms.entry(room.clone()).or_insert(once);
            *stay = Stay { first: stay.first.min(reading.at), last: stay.last.max(reading.at) };
        }
        for name in reading.metrics().keys() {
            if !self.metrics.contains(name) {
                self.metrics.insert(name.clone());
            }
        }
    }

    /// The device as it is registered when nothing else is known of it: it introduces the rooms that
    /// `is_known` does not know, and is in the newest room that is known or introduced.
    #[must_use]
    pub fn new_device(&self, id: DeviceId, is_known: impl Fn(&RoomId) -> bool) -> Device {
        let introduced = self.rooms.keys().filter(|room| !is_known(room));
        let introduced: BTreeSet<RoomId> = introduced.take(MAX_INTRODUCED_ROOMS).cloned().collect();
        let registered = |room: &RoomId| is_known(room) || introduced.contains(room);
        let room = self
            .rooms
            .iter()
            .filter(|(room, _)| registered(room))
            .max_by_key(|(room, stay)| (stay.last, *room))
            .map(|(room, stay)| (room.clone(), stay.last));
        let (room, room_at) = room.unzip();
        Device {
            id,
            name: None,
            room,
            room_at,
            kind: None,
            tags: Vec::new(),
            metrics: self
                .metrics
                .iter()
                .take(MAX_KNOWN_METRICS)
                .map(|name| (name.clone(), name.into()))
                .collect(),
            first_seen: self.first,
            introduced_rooms: introduced,
        }
    }
}

/// What a observation teaches that the registry does not know yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceUpdate {
    /// An earlier first reading.
    pub first_seen: Option<Timestamp>,
    /// Another room, and the timestamp of the reading that told it.
    pub room: Option<(Timestamp, RoomId)>,
    /// Metrics not seen before.
    pub metrics: BTreeSet<MetricName>,
}

impl DeviceUpdate {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Device {
    /// The room that a person chose; it wins over whatever readings name.
    #[must_use]
    pub fn chosen_room(&self) -> Option<&RoomId> {
        self.room.as_ref().filter(|_| self.room_at == Some(Timestamp::MAX))
    }

    /// Whether the registry knows as many metrics of the device as it may.
    #[must_use]
    pub fn knows_enough_metrics(&self) -> bool {
        self.metrics.len() >= MAX_KNOWN_METRICS
    }

    /// What `observation` teaches beyond what is known.
    ///
    /// A room counts only when it differs from the known one: nothing is written to the registry per
    /// reading. It counts only when its reading is no older than the one that told the known room; of
    /// the same timestamp it may be the same reading, sent again with the right room. And it counts only
    /// where it `is_registered`: what a device may not introduce, it is not in.
    #[must_use]
    pub fn diff(
        &self,
        observation: &DeviceObservation,
        is_registered: impl Fn(&RoomId) -> bool,
    ) -> DeviceUpdate {
        let moved = |(room, stay): &(&RoomId, &Stay)| {
            self.room.as_ref() != Some(*room)
                && self.room_at.is_none_or(|known| known <= stay.last)
                && is_registered(room)
        };
        let room =
            observation.rooms.iter().filter(moved).max_by_key(|(room, stay)| (stay.last, *room));
        let unknown = |name: &&MetricName| !self.metrics.contains_key(*name);
        let room_for = MAX_KNOWN_METRICS.saturating_sub(self.metrics.len());
        DeviceUpdate {
            first_seen: (observation.first < self.first_seen).then_some(observation.first),
            room: room
                .filter(|_| self.chosen_room().is_none())
                .map(|(room, stay)| (stay.last, room.clone())),
            metrics: observation.metrics.iter().filter(unknown).take(room_for).cloned().collect(),
        }
    }
}

/// What a person does to one field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Edit<T> {
    /// Leaves it as it is.
    #[default]
    Keep,
    /// Takes it away.
    Clear,
    /// Sets it.
    Set(T),
}

/// What a person changes of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DevicePatch {
    /// The name.
    pub name: Edit<String>,
    /// The room; cleared, the readings decide again.
    pub room: Edit<RoomId>,
    /// The sort of device.
    pub kind: Edit<String>,
    /// The labels.
    pub tags: Edit<Vec<String>>,
    /// Settings of metrics that the device has already sent.
    pub metrics: BTreeMap<MetricName, MetricPatch>,
    /// Metrics that the registry forgets, until they are sent again; none of [`metrics`](Self::metrics).
    pub dropped_metrics: BTreeSet<MetricName>,
}

impl DevicePatch {
    /// The first metric that the patch sets and the device has not sent.
    #[must_use]
    pub fn unknown_metric(&self, device: &Device) -> Option<&MetricName> {
        self.metrics.keys().find(|name| !device.metrics.contains_key(name))
    }
}

/// What a person changes of one metric of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetricPatch {
    /// The unit.
    pub unit: Edit<String>,
    /// See [`MetricInfo::modulus`].
    pub modulus: Edit<Decimal>,
    /// See [`MetricInfo::max_w`].
    pub max_w: Edit<Decimal>,
    /// See [`MetricInfo::dip`].
    pub dip: Edit<Decimal>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(millis: i64, room: Option<&str>, metric: &str) -> Reading {
        let metrics = [(metric.parse().expect("a name"), Decimal::parse("1").expect("a number"))];
        Reading::new(
            "d".parse().expect("an id"),
            Timestamp::from_millis(millis).expect("a timestamp"),
            room.map(|r| r.parse().expect("an id")),
            metrics.into(),
        )
        .expect("a reading")
    }

    #[test]
    fn a_sighting_is_the_same_in_any_order_and_when_repeated() {
        let readings = [
            reading(3, Some("b"), "humidity"),
            reading(1, Some("a"), "temperature"),
            reading(4, None, "temperature"),
        ];
        let see = |order: &[usize]| {
            let mut observation = DeviceObservation::of(&readings[order[0]]);
            order.iter().for_each(|i| observation.see(&readings[*i]));
            observation
        };
        let one = see(&[0, 1, 2]);
        for order in [&[2, 1, 0][..], &[1, 0, 2, 1, 0], &[2, 2, 0, 1]] {
            assert_eq!(see(order), one);
        }
        assert_eq!(one.first.as_millis(), 1);
        let device = one.new_device("d".parse().expect("an id"), |_| true);
        assert_eq!(device.room.as_ref().map(RoomId::as_str), Some("b"));
    }

    #[test]
    fn a_known_room_is_never_learned_again_and_a_late_one_not_at_all() {
        let device = DeviceObservation::of(&reading(5, Some("a"), "t"))
            .new_device("d".parse().expect("an id"), |_| true);
        assert!(
            device.diff(&DeviceObservation::of(&reading(9, Some("a"), "t")), |_| true).is_empty()
        );
        let again = device.diff(&DeviceObservation::of(&reading(5, Some("b"), "t")), |_| true);
        assert!(again.room.is_some(), "the same reading, sent again with another room");
        let late = device.diff(&DeviceObservation::of(&reading(4, Some("b"), "t")), |_| true);
        assert_eq!(late.room, None);
        assert_eq!(late.first_seen.map(Timestamp::as_millis), Some(4));
        let moved = device.diff(&DeviceObservation::of(&reading(6, Some("b"), "t")), |_| true);
        assert!(moved.room.is_some());
    }

    #[test]
    fn a_device_with_endless_metrics_stays_within_its_item() {
        let mut observation = DeviceObservation::of(&reading(5, None, "t"));
        observation.metrics =
            (0..300).map(|n| format!("m{n:03}").parse().expect("a name")).collect();
        let device = observation.new_device("d".parse().expect("an id"), |_| true);
        assert_eq!(device.metrics.len(), MAX_KNOWN_METRICS);
        assert!(
            device.diff(&observation, |_| true).is_empty(),
            "and nothing is written again and again"
        );
        let mut small = DeviceObservation::of(&reading(5, None, "t"))
            .new_device("d".parse().expect("an id"), |_| true);
        let learned = small.diff(&observation, |_| true);
        assert_eq!(learned.metrics.len(), MAX_KNOWN_METRICS - 1);
        small.metrics.extend(learned.metrics.iter().map(|name| (name.clone(), name.into())));
        assert!(small.diff(&observation, |_| true).is_empty());
    }

    #[test]
    fn a_filled_in_room_teaches_nothing() {
        let known = DeviceObservation::of(&reading(1, Some("a"), "t"));
        let mut filled = reading(5, None, "t");
        filled.fill_in_room(&known.new_device("d".parse().expect("an id"), |_| false));
        assert_eq!(filled.room.as_ref().map(RoomId::as_str), Some("a"));
        let observation = DeviceObservation::of(&filled);
        assert!(observation.rooms.is_empty());
        assert_eq!(observation.new_device("d".parse().expect("an id"), |_| false).room, None);
    }

    #[test]
    fn a_device_introduces_so_many_rooms_and_is_in_a_registered_one() {
        let mut observation = DeviceObservation::of(&reading(1, Some("r00"), "t"));
        for n in 1..40 {
            observation.see(&reading(n, Some(&format!("r{n:02}")), "t"));
        }
        let device = observation.new_device("d".parse().expect("an id"), |_| false);
        assert_eq!(device.introduced_rooms.len(), MAX_INTRODUCED_ROOMS);
        assert_eq!(device.room.as_ref().map(RoomId::as_str), Some("r31"));
        let device = observation.new_device("d".parse().expect("an id"), |_| true);
        assert!(device.introduced_rooms.is_empty(), "who names a known room introduces none");
        assert_eq!(device.room.as_ref().map(RoomId::as_str), Some("r39"));
    }

    #[test]
    fn a_persons_room_is_newer_than_any_reading() {
        let mut device = DeviceObservation::of(&reading(5, Some("a"), "t"))
            .new_device("d".parse().expect("an id"), |_| true);
        device.room_at = Some(Timestamp::MAX);
        assert!(
            device.diff(&DeviceObservation::of(&reading(9, Some("b"), "t")), |_| true).is_empty()
        );
        let mut named = reading(9, Some("b"), "t");
        named.fill_in_room(&device);
        assert_eq!(named.room.as_ref().map(RoomId::as_str), Some("a"), "in new readings too");
        assert_eq!(
            named.named_room.as_ref().map(RoomId::as_str),
            Some("b"),
            "what it said is kept"
        );
    }
}
