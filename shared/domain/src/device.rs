//! A device of the registry, and what its readings say about the device. No I/O.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    About, AttributeName, AttributeValues, Deletion, DeviceId, FoldSettings, Label, MAX_BEHIND,
    MAX_KNOWN_METRICS, MetricInfo, MetricName, Place, Reading, RoomId, SETTLING, Source, Stay,
    Tags, Timestamp,
};

/// A device as the registry knows it. [`new`](Self::new) checks that the parts fit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device(pub(crate) DeviceParts);

/// The members of a [`Device`], unchecked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceParts {
    /// The device's id, as in its readings.
    pub id: DeviceId,
    /// The name that a person set; see [`shown_name`](Device::shown_name).
    pub name: Option<Label>,
    /// The room where the device is. Readings that name no room are stored with this room.
    pub place: Place,
    /// The kind of device; a person sets it.
    pub kind: Option<Label>,
    /// The tags; a person sets them.
    pub tags: Tags,
    /// Facts that people add, by name.
    pub attributes: BTreeMap<AttributeName, AttributeValues>,
    /// The metrics that the device has sent, at most 256.
    pub metrics: BTreeMap<MetricName, MetricInfo>,
    /// The origin of the device, as senders describe it.
    pub source: Source,
    /// The timestamp of its earliest reading.
    pub first_seen: Timestamp,
    /// The rooms that this device's readings have added to the registry, at most [`MAX_INTRODUCED_ROOMS`].
    pub introduced_rooms: BTreeSet<RoomId>,
    /// The meter that measures this device too, so that sums over a room leave the device out. A person sets the meter.
    pub behind: Option<DeviceId>,
    /// The devices that name this device in `behind`. A meter with such devices cannot be deleted. Devices that an
    /// earlier version of Roomtide put behind the meter are missing.
    pub behind_it: BTreeSet<DeviceId>,
    /// Whether the means of rooms include the device, if a person has decided; see
    /// [`not_of_room`](Device::not_of_room).
    pub in_room_means: Option<bool>,
    /// Counts the changes of the settings by which readings are folded into rollups.
    pub fold_settings: FoldSettings,
    /// The newest stay in a room, which may have ended.
    pub stay: Option<Stay>,
    /// Counts edits, stays, learned facts and changes of `behind`: a write of these fails if another write has changed
    /// the version. New rooms, first readings, and new metrics without a description do not change the version.
    pub version: u64,
}

/// The reasons for which parts do not form a [`Device`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The device would be behind itself.
    #[error("is behind itself")]
    BehindItself,
    /// The device has introduced too many rooms.
    #[error("has introduced {0} rooms; at most {MAX_INTRODUCED_ROOMS} are allowed")]
    TooManyRooms(usize),
    /// Too many devices are directly behind the device.
    #[error("has {0} devices directly behind it; at most {MAX_BEHIND} are allowed")]
    TooManyBehind(usize),
}

/// The number of rooms that one device may add to the registry. Any further room appears only in its readings.
///
/// Without this limit a token for one device could fill the list of rooms, which everybody reads.
pub const MAX_INTRODUCED_ROOMS: usize = 32;

/// A summary of some readings of one device.
///
/// [`see`](Self::see) is idempotent, and commutative except for facts on which readings disagree. So readings that are
/// delivered again, or in another order, give the same summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceObservation {
    /// The timestamp of the earliest reading.
    pub first: Timestamp,
    /// The timestamp of the latest reading.
    pub last: Timestamp,
    /// The rooms that the sender named, without rooms that ingest filled in from the registry.
    pub rooms: BTreeMap<RoomId, Span>,
    /// The room that each reading named, by timestamp. It shows from which reading on the device was in its new room.
    named: BTreeMap<Timestamp, RoomId>,
    /// The metrics of all readings.
    pub metrics: BTreeSet<MetricName>,
    /// The facts about the device. If readings disagree, the fact that was seen first counts.
    pub about: About,
    /// The names that readings give to rooms.
    pub room_names: BTreeMap<RoomId, Label>,
    /// The rooms that the device introduces.
    pub introduced_rooms: BTreeSet<RoomId>,
}

/// The span of the readings that name one room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The timestamp of the earliest reading.
    pub first: Timestamp,
    /// The timestamp of the latest reading.
    pub last: Timestamp,
}

impl DeviceObservation {
    /// The summary of one reading.
    pub fn of(reading: &Reading) -> Self {
        let mut observation = Self {
            first: reading.at,
            last: reading.at,
            rooms: BTreeMap::new(),
            named: BTreeMap::new(),
            metrics: BTreeSet::new(),
            about: About::default(),
            room_names: BTreeMap::new(),
            introduced_rooms: BTreeSet::new(),
        };
        observation.see(reading);
        observation
    }

    /// Adds a reading to the summary.
    pub fn see(&mut self, reading: &Reading) {
        self.first = self.first.min(reading.at);
        self.last = self.last.max(reading.at);

        if let Some(room) = &reading.named_room {
            let once = Span { first: reading.at, last: reading.at };
            let span = self.rooms.entry(room.clone()).or_insert(once);
            *span = Span { first: span.first.min(reading.at), last: span.last.max(reading.at) };
            // If two rooms are named for the same time, the greater id counts, whatever the order of the readings.
            let named = self.named.entry(reading.at).or_insert_with(|| room.clone());
            if *named < *room {
                named.clone_from(room);
            }
        }

        for name in reading.metrics().keys() {
            if !self.metrics.contains(name) {
                self.metrics.insert(name.clone());
            }
        }

        if let Some(about) = &reading.about {
            self.hear((**about).clone(), reading.named_room.as_ref());
        }
    }

    /// Adds the facts that a reading gives about its device and its room.
    fn hear(&mut self, mut about: About, room: Option<&RoomId>) {
        let name = about.room_name.take();
        let is_introduced = std::mem::take(&mut about.introduces_room);
        if let Some(room) = room {
            self.room_names.extend(name.map(|name| (room.clone(), name)));
            self.introduced_rooms.extend(is_introduced.then(|| room.clone()));
        }
        self.about.absorb(about);
    }

    /// The timestamp since which all readings up to `at` name `room`; `at` itself if the last of these readings names
    /// another room.
    pub fn since(&self, room: &RoomId, at: Timestamp) -> Timestamp {
        let before = self.named.range(..=at).rev();
        before.take_while(|(_, named)| *named == room).last().map_or(at, |(since, _)| *since)
    }

    /// The device to register if the registry has no device of this id. The device introduces the rooms that are not
    /// registered. Its room is that of the newest reading that names a registered or introduced room.
    pub fn new_device(&self, id: DeviceId, is_room_registered: impl Fn(&RoomId) -> bool) -> Device {
        let introduced = self.rooms.keys().filter(|room| !is_room_registered(room));
        let introduced: BTreeSet<RoomId> = introduced.take(MAX_INTRODUCED_ROOMS).cloned().collect();
        let registered = |room: &RoomId| is_room_registered(room) || introduced.contains(room);

        let place = self
            .rooms
            .iter()
            .filter(|(room, _)| registered(room))
            .max_by_key(|(room, span)| (span.last, *room))
            .map(|(room, span)| Place::Learned(room.clone(), self.since(room, span.last)));

        let device = Device(DeviceParts {
            id,
            name: None,
            place: place.unwrap_or_default(),
            kind: None,
            tags: Tags::default(),
            attributes: BTreeMap::new(),
            metrics: self
                .metrics
                .iter()
                .take(MAX_KNOWN_METRICS)
                .map(|name| (name.clone(), name.into()))
                .collect(),
            source: Source::default(),
            first_seen: self.first,
            introduced_rooms: introduced,
            behind: None,
            behind_it: BTreeSet::new(),
            in_room_means: None,
            fold_settings: FoldSettings::default(),
            stay: None,
            version: 0,
        });
        device.described(&self.about)
    }
}

/// The changes that an observation makes to a registered device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceUpdate {
    /// The timestamp of the first reading, if it is earlier than the known one.
    pub first_seen: Option<Timestamp>,
    /// A new room, and the timestamp of the newest reading that names it.
    pub room: Option<(Timestamp, RoomId)>,
    /// New metrics.
    pub metrics: BTreeSet<MetricName>,
    /// Facts that the device does not have yet.
    pub about: Option<About>,
}

impl DeviceUpdate {
    /// Whether the update changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Applies the changes to a device. Known metrics keep their settings, and new metrics beyond
    /// [`MAX_KNOWN_METRICS`] are left out.
    pub fn apply(&self, device: &mut Device) {
        let Device(parts) = device;
        parts.first_seen = self.first_seen.unwrap_or(parts.first_seen);
        if let Some((at, room)) = &self.room {
            parts.place = Place::Learned(room.clone(), *at);
        }

        for name in &self.metrics {
            if parts.metrics.len() < MAX_KNOWN_METRICS {
                parts.metrics.entry(name.clone()).or_insert_with(|| name.into());
            }
        }

        if let Some(described) = self.about.as_ref().and_then(|about| device.with_about(about)) {
            *device = described;
        }
    }
}

impl Device {
    /// Checks the parts and makes a device of them.
    ///
    /// Concurrent observations may have stored more than [`MAX_KNOWN_METRICS`] metrics. Then metrics with settings are
    /// kept first: a metric without settings is folded in the same way if the registry does not know the metric.
    pub fn new(mut parts: DeviceParts) -> Result<Self, DeviceError> {
        if parts.behind.as_ref() == Some(&parts.id) || parts.behind_it.contains(&parts.id) {
            return Err(DeviceError::BehindItself);
        }

        if parts.introduced_rooms.len() > MAX_INTRODUCED_ROOMS {
            return Err(DeviceError::TooManyRooms(parts.introduced_rooms.len()));
        }

        if parts.behind_it.len() > MAX_BEHIND {
            return Err(DeviceError::TooManyBehind(parts.behind_it.len()));
        }
        if parts.metrics.len() > MAX_KNOWN_METRICS {
            let mut metrics: Vec<_> = parts.metrics.into_iter().collect();
            metrics.sort_by_key(|(name, info)| *info == MetricInfo::from(name));
            parts.metrics = metrics.into_iter().take(MAX_KNOWN_METRICS).collect();
        }

        Ok(Self(parts))
    }

    /// The members.
    pub const fn parts(&self) -> &DeviceParts {
        &self.0
    }

    /// The members, to change or to take some of them.
    pub fn into_parts(self) -> DeviceParts {
        self.0
    }

    /// The device after a change of its members.
    pub fn changed(&self, change: impl FnOnce(&mut DeviceParts)) -> Result<Self, DeviceError> {
        let mut parts = self.0.clone();
        change(&mut parts);
        Self::new(parts)
    }

    /// The device with its version counted up, as after a write that expected the old version.
    #[must_use]
    pub fn next_version(mut self) -> Self {
        self.0.version += 1;
        self
    }

    /// The device as it is registered again after its deletion. Its fold settings get a number above those of the
    /// deleted device.
    #[must_use]
    pub fn numbered_after(mut self, deletion: &Deletion) -> Self {
        self.0.fold_settings = FoldSettings::after(deletion);
        self
    }

    /// The device with a stay that was recorded, in its next version.
    #[must_use]
    pub fn with_stay(&self, stay: Option<Stay>) -> Self {
        Self(DeviceParts { stay, ..self.0.clone() }).next_version()
    }

    /// See [`DeviceParts::id`].
    pub const fn id(&self) -> &DeviceId {
        &self.0.id
    }

    /// See [`DeviceParts::name`].
    pub const fn name(&self) -> Option<&Label> {
        self.0.name.as_ref()
    }

    /// See [`DeviceParts::place`].
    pub const fn place(&self) -> &Place {
        &self.0.place
    }

    /// The name that people see: a person's, else the sender's.
    pub fn shown_name(&self) -> Option<&Label> {
        self.name().or(self.source().name.as_ref())
    }

    /// See [`DeviceParts::kind`].
    pub const fn kind(&self) -> Option<&Label> {
        self.0.kind.as_ref()
    }

    /// See [`DeviceParts::tags`].
    pub const fn tags(&self) -> &Tags {
        &self.0.tags
    }

    /// See [`DeviceParts::attributes`].
    pub const fn attributes(&self) -> &BTreeMap<AttributeName, AttributeValues> {
        &self.0.attributes
    }

    /// See [`DeviceParts::metrics`].
    pub const fn metrics(&self) -> &BTreeMap<MetricName, MetricInfo> {
        &self.0.metrics
    }

    /// See [`DeviceParts::source`].
    pub const fn source(&self) -> &Source {
        &self.0.source
    }

    /// See [`DeviceParts::first_seen`].
    pub const fn first_seen(&self) -> Timestamp {
        self.0.first_seen
    }

    /// See [`DeviceParts::introduced_rooms`].
    pub const fn introduced_rooms(&self) -> &BTreeSet<RoomId> {
        &self.0.introduced_rooms
    }

    /// See [`DeviceParts::behind`].
    pub const fn behind(&self) -> Option<&DeviceId> {
        self.0.behind.as_ref()
    }

    /// See [`DeviceParts::behind_it`].
    pub const fn behind_it(&self) -> &BTreeSet<DeviceId> {
        &self.0.behind_it
    }

    /// See [`DeviceParts::in_room_means`].
    pub const fn in_room_means(&self) -> Option<bool> {
        self.0.in_room_means
    }

    /// See [`DeviceParts::fold_settings`].
    pub const fn fold_settings(&self) -> &FoldSettings {
        &self.0.fold_settings
    }

    /// See [`DeviceParts::stay`].
    pub const fn stay(&self) -> Option<&Stay> {
        self.0.stay.as_ref()
    }

    /// See [`DeviceParts::version`].
    pub const fn version(&self) -> u64 {
        self.0.version
    }

    /// Whether the device has as many metrics as the registry keeps.
    pub fn knows_enough_metrics(&self) -> bool {
        self.metrics().len() >= MAX_KNOWN_METRICS
    }

    /// The stay that has not ended.
    pub fn open_stay(&self) -> Option<&Stay> {
        self.stay().filter(|stay| stay.until.is_none())
    }

    /// The stay to record if the device has settled in the room of its readings. The device has settled if the room has
    /// not changed for [`SETTLING`] before `newest`, the timestamp of a reading. `None` if the stay in this room is
    /// recorded already.
    ///
    /// A new stay never begins before the end of the newest stay. If a person took the device out of its room, a late
    /// reading may name a room for an earlier time. The stay in that room then begins when the newest stay ended.
    pub fn settled(&self, newest: Timestamp) -> Option<Stay> {
        let Place::Learned(room, at) = self.place() else { return None };
        if self.open_stay().is_some_and(|stay| stay.room == *room) {
            return None;
        }
        let since = self.stay().map_or(*at, |stay| stay.earliest_next().max(*at));
        (newest.since(since) >= SETTLING).then(|| Stay::begun(room.clone(), since))
    }

    /// The changes that `observation` makes to this device.
    ///
    /// A room is a change only if the device moves (see [`Place::is_moved_by`]); otherwise each reading would write to
    /// the registry. The room must also be registered: a room that the device may not introduce does not exist.
    pub fn diff(
        &self,
        observation: &DeviceObservation,
        is_registered: impl Fn(&RoomId) -> bool,
    ) -> DeviceUpdate {
        let moved = |(room, span): &(&RoomId, &Span)| {
            self.place().is_moved_by(room, span.last) && is_registered(room)
        };
        let room =
            observation.rooms.iter().filter(moved).max_by_key(|(room, span)| (span.last, *room));
        let unknown = |name: &&MetricName| !self.metrics().contains_key(*name);
        let room_for = MAX_KNOWN_METRICS.saturating_sub(self.metrics().len());

        DeviceUpdate {
            first_seen: (observation.first < self.first_seen()).then_some(observation.first),
            room: room.map(|(room, span)| (span.last, room.clone())),
            metrics: observation.metrics.iter().filter(unknown).take(room_for).cloned().collect(),
            about: self.news(&observation.about),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;
    use crate::given::{self, device_of, number};

    fn reading(millis: i64, room: Option<&str>, metric: &str) -> Reading {
        let metrics = [(given::metric(metric), number("1"))];
        Reading::new(
            given::device("d"),
            Timestamp::from_millis(millis).expect("a timestamp"),
            room.map(|r| r.parse().expect("an id")),
            metrics.into(),
        )
        .expect("a reading")
    }

    /// What a device learns of a reading.
    fn learned(device: &Device, reading: &Reading) -> DeviceUpdate {
        device.diff(&DeviceObservation::of(reading), |_| true)
    }

    #[test]
    fn an_observation_is_the_same_in_any_order_and_when_repeated() {
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
        let device = one.new_device(given::device("d"), |_| true);
        assert_eq!(device.place().room().map(RoomId::as_str), Some("b"));
    }

    #[test]
    fn a_known_room_is_never_learned_again_and_a_late_one_not_at_all() {
        let device = device_of([&reading(5, Some("a"), "t")]);
        assert!(learned(&device, &reading(9, Some("a"), "t")).is_empty());
        let again = learned(&device, &reading(5, Some("b"), "t"));
        assert!(again.room.is_some(), "the same reading, sent again with another room");
        let late = learned(&device, &reading(4, Some("b"), "t"));
        assert_eq!(late.room, None);
        assert_eq!(late.first_seen.map(Timestamp::as_millis), Some(4));
        let moved = learned(&device, &reading(6, Some("b"), "t"));
        assert!(moved.room.is_some());
    }

    #[test]
    fn an_applied_update_leaves_nothing_to_change_and_keeps_a_metrics_settings() {
        let mut device = device_of([&reading(5, Some("a"), "t")]);
        let unit: Unit = given::unit("K");
        let known = device.0.metrics.values_mut().next().expect("one");
        known.unit = Some(unit.clone());
        let mut observation = DeviceObservation::of(&reading(6, Some("b"), "t"));
        observation.see(&reading(4, None, "u"));
        let mut update = device.diff(&observation, |_| true);
        assert_eq!(update.metrics.len(), 1);
        update.metrics.insert(given::metric("t"));
        update.apply(&mut device);
        assert_eq!(device.first_seen().as_millis(), 4);
        assert_eq!(device.place().room().map(RoomId::as_str), Some("b"));
        assert_eq!(device.metrics().values().next().map(|info| &info.unit), Some(&Some(unit)));
        assert!(device.diff(&observation, |_| true).is_empty());
    }

    #[test]
    fn a_device_with_endless_metrics_stays_within_its_item() {
        let mut observation = DeviceObservation::of(&reading(5, None, "t"));
        observation.metrics = (0..300).map(|n| given::metric(&format!("m{n:03}"))).collect();
        let device = observation.new_device(given::device("d"), |_| true);
        assert_eq!(device.metrics().len(), MAX_KNOWN_METRICS);
        assert!(
            device.diff(&observation, |_| true).is_empty(),
            "and nothing is written again and again"
        );
        let mut small = device_of([&reading(5, None, "t")]);
        let learned = small.diff(&observation, |_| true);
        assert_eq!(learned.metrics.len(), MAX_KNOWN_METRICS - 1);
        learned.apply(&mut small);
        assert!(small.diff(&observation, |_| true).is_empty());
    }

    #[test]
    fn parts_that_cannot_be_together_make_no_device() {
        let device = device_of([&reading(5, Some("a"), "t")]);
        let itself = || device.id().clone();
        assert_eq!(device.changed(|it| it.behind = Some(itself())), Err(DeviceError::BehindItself));
        assert_eq!(
            device.changed(|it| it.behind_it.extend([itself()])),
            Err(DeviceError::BehindItself)
        );
        let ids = |n: usize| (0..n).map(|n| format!("x{n}"));
        let rooms = |n| {
            device.changed(|it| {
                it.introduced_rooms = ids(n).map(|id| given::room(&id)).collect();
            })
        };
        assert!(rooms(MAX_INTRODUCED_ROOMS).is_ok());
        assert_eq!(rooms(33), Err(DeviceError::TooManyRooms(33)));
        let behind_it =
            |n| device.changed(|it| it.behind_it = ids(n).map(|id| given::device(&id)).collect());
        assert!(behind_it(MAX_BEHIND).is_ok());
        assert_eq!(behind_it(201), Err(DeviceError::TooManyBehind(201)));
    }

    #[test]
    fn of_too_many_stored_metrics_those_with_settings_stay() {
        let device = device_of([&reading(5, None, "t")]);
        let full = device.changed(|it| {
            let names = (0..400).map(|n| format!("m{n:03}").parse().expect("a name"));
            it.metrics = names.map(|name: MetricName| (name.clone(), (&name).into())).collect();
            it.metrics.values_mut().skip(300).for_each(|info| info.is_net = true);
        });
        let metrics = full.expect("a device").into_parts().metrics;
        assert_eq!(metrics.len(), MAX_KNOWN_METRICS);
        assert_eq!(metrics.values().filter(|info| info.is_net).count(), 100);
    }

    #[test]
    fn a_filled_in_room_teaches_nothing() {
        let known = DeviceObservation::of(&reading(1, Some("a"), "t"));
        let mut filled = reading(5, None, "t");
        let known = known.new_device(given::device("d"), |_| false);
        filled.fill_in_room(known.place().room().expect("learned"), false);
        assert_eq!(filled.room.as_ref().map(RoomId::as_str), Some("a"));
        let observation = DeviceObservation::of(&filled);
        assert!(observation.rooms.is_empty());
        assert_eq!(*observation.new_device(given::device("d"), |_| false).place(), Place::Unknown);
    }

    #[test]
    fn a_device_introduces_so_many_rooms_and_is_in_a_registered_one() {
        let mut observation = DeviceObservation::of(&reading(1, Some("r00"), "t"));
        for n in 1..40 {
            observation.see(&reading(n, Some(&format!("r{n:02}")), "t"));
        }
        let device = observation.new_device(given::device("d"), |_| false);
        assert_eq!(device.introduced_rooms().len(), MAX_INTRODUCED_ROOMS);
        assert_eq!(device.place().room().map(RoomId::as_str), Some("r31"));
        let device = observation.new_device(given::device("d"), |_| true);
        assert!(device.introduced_rooms().is_empty(), "who names a known room introduces none");
        assert_eq!(device.place().room().map(RoomId::as_str), Some("r39"));
    }

    #[test]
    fn a_persons_room_is_newer_than_any_reading() {
        let mut device = device_of([&reading(5, Some("a"), "t")]);
        device.0.place = Place::Chosen(given::room("a"));
        assert!(learned(&device, &reading(9, Some("b"), "t")).is_empty());
        let mut named = reading(9, Some("b"), "t");
        named.fill_in_room(device.place().room().expect("chosen"), true);
        assert_eq!(named.room.as_ref().map(RoomId::as_str), Some("a"), "in new readings too");
        assert_eq!(
            named.named_room.as_ref().map(RoomId::as_str),
            Some("b"),
            "what it said is kept"
        );
    }
}
