//! A device of the registry: what its readings teach about it and what a person decides. No I/O.

use std::collections::{BTreeMap, BTreeSet};

use super::{DeviceId, Instant, MetricKind, MetricName, Number, Reading, RoomId};

/// A device as the registry knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The id that readings carry.
    pub id: DeviceId,
    /// What people see, once somebody has said it.
    pub name: Option<String>,
    /// Where it is now.
    pub room: Option<RoomId>,
    /// The instant of the reading that told the room; a person's choice is [`Instant::MAX`], newer
    /// than any reading, so that no reading ever moves it.
    pub room_at: Option<Instant>,
    /// What sort of device it is, in a person's words.
    pub kind: Option<String>,
    /// A person's labels.
    pub tags: Vec<String>,
    /// Every metric it has ever sent.
    pub metrics: BTreeMap<MetricName, MetricInfo>,
    /// The instant of its earliest reading.
    pub first_seen: Instant,
}

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
    pub modulus: Option<Number>,
    /// The largest power the meter can see, in watt.
    pub max_w: Option<Number>,
    /// The largest fall of a counter that is noise, in its unit.
    pub dip: Option<Number>,
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
/// sighting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The instant of the earliest reading.
    pub first: Instant,
    /// The newest reading that names a room.
    pub room: Option<(Instant, RoomId)>,
    /// All metrics seen.
    pub metrics: BTreeSet<MetricName>,
}

impl Sighting {
    /// What one reading says.
    #[must_use]
    pub fn of(reading: &Reading) -> Self {
        Self {
            first: reading.at,
            room: reading.room.clone().map(|room| (reading.at, room)),
            metrics: reading.metrics().keys().cloned().collect(),
        }
    }

    /// Adds one more reading.
    pub fn see(&mut self, reading: &Reading) {
        self.first = self.first.min(reading.at);
        if let Some(room) = &reading.room {
            let seen = (reading.at, room.clone());
            self.room = self.room.take().max(Some(seen));
        }
        for name in reading.metrics().keys() {
            if !self.metrics.contains(name) {
                self.metrics.insert(name.clone());
            }
        }
    }

    /// The device as it is registered when nothing else is known of it.
    #[must_use]
    pub fn register(&self, id: DeviceId) -> Device {
        Device {
            id,
            name: None,
            room: self.room.as_ref().map(|(_, room)| room.clone()),
            room_at: self.room.as_ref().map(|(at, _)| *at),
            kind: None,
            tags: Vec::new(),
            metrics: self
                .metrics
                .iter()
                .take(MAX_KNOWN_METRICS)
                .map(|name| (name.clone(), name.into()))
                .collect(),
            first_seen: self.first,
        }
    }
}

/// What a sighting teaches that the registry does not know yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Learned {
    /// An earlier first reading.
    pub first_seen: Option<Instant>,
    /// A newer room.
    pub room: Option<(Instant, RoomId)>,
    /// Metrics not seen before.
    pub metrics: BTreeSet<MetricName>,
}

impl Learned {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Device {
    /// What `sighting` teaches beyond what is known.
    ///
    /// A room counts only when it differs from the known one: nothing is written to the registry per
    /// reading. It counts only when its reading is newer than the one that told the known room.
    #[must_use]
    pub fn learn(&self, sighting: &Sighting) -> Learned {
        let moved = |(at, room): &&(Instant, RoomId)| {
            self.room.as_ref() != Some(room) && self.room_at.is_none_or(|known| known < *at)
        };
        let unknown = |name: &&MetricName| !self.metrics.contains_key(*name);
        let room_for = MAX_KNOWN_METRICS.saturating_sub(self.metrics.len());
        Learned {
            first_seen: (sighting.first < self.first_seen).then_some(sighting.first),
            room: sighting.room.as_ref().filter(moved).cloned(),
            metrics: sighting.metrics.iter().filter(unknown).take(room_for).cloned().collect(),
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

/// What a person changes of one metric of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetricPatch {
    /// The unit.
    pub unit: Edit<String>,
    /// See [`MetricInfo::modulus`].
    pub modulus: Edit<Number>,
    /// See [`MetricInfo::max_w`].
    pub max_w: Edit<Number>,
    /// See [`MetricInfo::dip`].
    pub dip: Edit<Number>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(millis: i64, room: Option<&str>, metric: &str) -> Reading {
        let metrics = [(metric.parse().expect("a name"), Number::parse("1").expect("a number"))];
        Reading::new(
            "d".parse().expect("an id"),
            Instant::from_millis(millis).expect("an instant"),
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
            let mut sighting = Sighting::of(&readings[order[0]]);
            order.iter().for_each(|i| sighting.see(&readings[*i]));
            sighting
        };
        let one = see(&[0, 1, 2]);
        for order in [&[2, 1, 0][..], &[1, 0, 2, 1, 0], &[2, 2, 0, 1]] {
            assert_eq!(see(order), one);
        }
        assert_eq!(one.first.as_millis(), 1);
        assert_eq!(
            one.room.as_ref().map(|(at, room)| (at.as_millis(), room.as_str())),
            Some((3, "b"))
        );
    }

    #[test]
    fn a_known_room_is_never_learned_again_and_a_late_one_not_at_all() {
        let device =
            Sighting::of(&reading(5, Some("a"), "t")).register("d".parse().expect("an id"));
        assert!(device.learn(&Sighting::of(&reading(9, Some("a"), "t"))).is_empty());
        let late = device.learn(&Sighting::of(&reading(4, Some("b"), "t")));
        assert_eq!(late.room, None);
        assert_eq!(late.first_seen.map(Instant::as_millis), Some(4));
        let moved = device.learn(&Sighting::of(&reading(6, Some("b"), "t")));
        assert!(moved.room.is_some());
    }

    #[test]
    fn a_device_with_endless_metrics_stays_within_its_item() {
        let mut sighting = Sighting::of(&reading(5, None, "t"));
        sighting.metrics = (0..300).map(|n| format!("m{n:03}").parse().expect("a name")).collect();
        let device = sighting.register("d".parse().expect("an id"));
        assert_eq!(device.metrics.len(), MAX_KNOWN_METRICS);
        assert!(device.learn(&sighting).is_empty(), "and nothing is written again and again");
        let mut small = Sighting::of(&reading(5, None, "t")).register("d".parse().expect("an id"));
        let learned = small.learn(&sighting);
        assert_eq!(learned.metrics.len(), MAX_KNOWN_METRICS - 1);
        small.metrics.extend(learned.metrics.iter().map(|name| (name.clone(), name.into())));
        assert!(small.learn(&sighting).is_empty());
    }

    #[test]
    fn a_persons_room_is_newer_than_any_reading() {
        let mut device =
            Sighting::of(&reading(5, Some("a"), "t")).register("d".parse().expect("an id"));
        device.room_at = Some(Instant::MAX);
        assert!(device.learn(&Sighting::of(&reading(9, Some("b"), "t"))).is_empty());
    }
}
