//! A person's edit of a device, and the reasons to refuse an edit. No I/O.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::fold_settings::extent_of_change;
use super::{
    AttributeName, AttributeValues, BehindError, Device, DeviceId, Edit, Label, MAX_KNOWN_METRICS,
    MAX_SEARCH_ENTRIES, MeaninglessSetting, MetricName, MetricPatch, Place, RoomId, Stay, Tags,
    Timestamp,
};

/// The maximum number of metrics in one edit. An edit of a device's settings needs fewer.
pub const MAX_PATCHED_METRICS: usize = 16;

/// A person's edit of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DevicePatch {
    /// The name.
    pub name: Edit<Label>,
    /// The room. After the room is cleared, the next reading that names a room decides.
    pub room: Edit<RoomId>,
    /// Since when the device is in the room, or in no room; `None` means now.
    #[serde(deserialize_with = "set")]
    pub room_since: Option<Timestamp>,
    /// The kind of device.
    pub kind: Edit<Label>,
    /// The tags.
    pub tags: Edit<Tags>,
    /// Attributes to set; `None` removes the attribute.
    pub attributes: BTreeMap<AttributeName, Option<AttributeValues>>,
    /// See [`Device::behind`].
    pub behind: Edit<DeviceId>,
    /// See [`Device::in_room_means`].
    pub in_room_means: Edit<bool>,
    /// Settings of metrics that the device has sent; `None` removes the metric from the registry.
    pub metrics: BTreeMap<MetricName, Option<MetricPatch>>,
    /// Whether the edit restores the device from a backup; see [`restoring`](Self::restoring).
    #[serde(skip)]
    pub restores: bool,
}

/// Reads a value that may be absent, but may not be `null`.
fn set<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    Timestamp::deserialize(deserializer).map(Some)
}

/// The reasons to refuse a person's edit of a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DevicePatchError {
    /// A metric in the patch is not a metric that the device has sent.
    #[error("is not a metric that the device has sent")]
    UnknownMetric(MetricName),
    /// A restored device would have more metrics than the registry keeps.
    #[error("the device would have {0} metrics; at most {MAX_KNOWN_METRICS} are kept")]
    TooManyMetrics(usize),
    /// An attribute in the patch has the name of a metric, so a search could mean either.
    #[error("is a metric that the device has sent")]
    AttributeIsMetric(AttributeName),
    /// The device would be found by too many values. An edit that does not raise their number is allowed even then.
    #[error(
        "the device would be found by {0} values: its name, kind, tags and attributes; a value that \
         reads as a number counts twice; at most {MAX_SEARCH_ENTRIES} are allowed"
    )]
    TooManyValues(usize),
    /// A metric would have a setting that its kind or its unit does not use.
    #[error(transparent)]
    Meaningless(#[from] MeaninglessSetting),
    /// The device cannot be put behind the meter.
    #[error(transparent)]
    Behind(#[from] BehindError),
    /// The device is already in the room, since this timestamp.
    #[error("cannot be changed; the device is in {0} since {1}")]
    InRoom(RoomId, Timestamp),
    /// `room_since` is too early: stays may not overlap, and the newest stay ends later, or is open and begins later.
    #[error(
        "is too early; the device's newest stay, in {0}, began at {1}, and the next one can begin at {2}"
    )]
    BeforeStay(RoomId, Timestamp, Timestamp),
}

impl DevicePatchError {
    /// The member of the patch that is wrong.
    pub fn field(&self) -> String {
        match self {
            Self::UnknownMetric(name) => format!("metrics.{name}"),
            Self::AttributeIsMetric(name) => format!("attributes.{name}"),
            Self::TooManyMetrics(_) => "metrics".to_owned(),
            Self::TooManyValues(_) => "attributes".to_owned(),
            Self::Meaningless(it) => it.field(),
            Self::Behind(_) => "behind".to_owned(),
            Self::InRoom(..) | Self::BeforeStay(..) => "room_since".to_owned(),
        }
    }
}

impl DevicePatch {
    /// The edit that restores a device as an answer of the API shows it. A metric that is not registered is added, and
    /// settings that a metric does not use are kept, because its kind or unit may have changed since.
    ///
    /// A member without a value in the answer stays as it is. The kind and the unit of a metric stay too if both follow
    /// from its name, because perhaps nobody set them. A room that no person chose stays as well.
    #[must_use]
    pub fn restoring(self, is_room_chosen: bool) -> Self {
        let metrics = self.metrics.into_iter().map(|(name, settings)| {
            let settings = settings.map(|settings| settings.without_defaults(&name));
            (name, settings)
        });

        Self {
            name: self.name.or_keep(),
            room: if is_room_chosen { self.room.or_keep() } else { Edit::Keep },
            kind: self.kind.or_keep(),
            tags: if self.tags == Edit::Set(Tags::default()) { Edit::Keep } else { self.tags },
            behind: self.behind.or_keep(),
            in_room_means: self.in_room_means.or_keep(),
            metrics: metrics.collect(),
            restores: true,
            ..self
        }
    }

    /// Whether the edit sets nothing.
    pub fn is_empty(&self) -> bool {
        let says_nothing =
            |settings: &Option<MetricPatch>| *settings == Some(MetricPatch::default());
        let all_but_metrics = Self { metrics: BTreeMap::new(), ..self.clone() };
        self.metrics.values().all(says_nothing)
            && all_but_metrics == Self { restores: self.restores, ..Self::default() }
    }

    /// The device after the edit. The same edit made twice changes the device once.
    pub fn edited(&self, device: &Device, now: Timestamp) -> Result<Device, DevicePatchError> {
        self.check(device)?;
        let mut edited = device.clone();
        self.apply(&mut edited, now);
        Ok(edited)
    }

    /// Refuses an edit that does not fit the device. Whether the device may be put behind a meter also depends on other
    /// devices, and is not checked here.
    pub fn check(&self, device: &Device) -> Result<(), DevicePatchError> {
        self.check_metrics(device)?;
        self.check_attributes(device)?;
        if self.is_behind_itself(device) {
            return Err(BehindError::Itself.into());
        }

        let (Some(since), Some(stay)) = (self.room_since, device.stay()) else { return Ok(()) };
        let Stay { room, since: begun, until } = stay.clone();

        match &self.room {
            Edit::Set(into) if until.is_none() && *into == room => {
                if since == begun {
                    Ok(())
                } else {
                    Err(DevicePatchError::InRoom(room, begun))
                }
            }
            // The newest stay has ended already, so the edit ends no stay.
            Edit::Clear if until.is_some() => Ok(()),
            _ if since >= stay.earliest_next() => Ok(()),
            _ => Err(DevicePatchError::BeforeStay(room, begun, stay.earliest_next())),
        }
    }

    /// The settings of the metrics that the edit does not remove.
    pub fn settings(&self) -> impl Iterator<Item = (&MetricName, &MetricPatch)> {
        self.metrics.iter().filter_map(|(name, settings)| Some((name, settings.as_ref()?)))
    }

    /// The metrics that are removed from the registry.
    pub fn dropped_metrics(&self) -> impl Iterator<Item = &MetricName> {
        self.metrics.iter().filter(|(_, settings)| settings.is_none()).map(|(name, _)| name)
    }

    fn check_metrics(&self, device: &Device) -> Result<(), DevicePatchError> {
        if self.restores {
            let is_new = |(name, _): &(&MetricName, _)| !device.metrics().contains_key(*name);
            let number = device.metrics().len() + self.settings().filter(is_new).count();
            let is_allowed = number <= MAX_KNOWN_METRICS.max(device.metrics().len());
            return if is_allowed { Ok(()) } else { Err(DevicePatchError::TooManyMetrics(number)) };
        }

        for (name, settings) in self.settings() {
            let known = device.metrics().get(name);
            let mut info =
                known.cloned().ok_or_else(|| DevicePatchError::UnknownMetric(name.clone()))?;
            settings.apply(name, &mut info);
            settings.check(name, &info)?;
        }

        Ok(())
    }

    fn check_attributes(&self, device: &Device) -> Result<(), DevicePatchError> {
        if !self.is_searchable() {
            return Ok(());
        }

        let set =
            self.attributes.iter().filter_map(|(name, values)| values.as_ref().and(Some(name)));
        let is_metric = |name: &&AttributeName| {
            device.metrics().keys().any(|metric| metric.as_str() == name.as_str())
        };
        if let Some(name) = set.clone().find(is_metric)
            && !self.restores
        {
            return Err(DevicePatchError::AttributeIsMetric(name.clone()));
        }

        let mut edited = device.clone();
        self.apply_searchable(&mut edited);
        let (entries, before) = (edited.search_entries().len(), device.search_entries().len());
        if entries > MAX_SEARCH_ENTRIES.max(before) {
            return Err(DevicePatchError::TooManyValues(entries));
        }
        Ok(())
    }

    fn is_behind_itself(&self, device: &Device) -> bool {
        matches!(&self.behind, Edit::Set(meter) if meter == device.id())
    }

    /// Whether the edit changes the values by which the device is found.
    pub fn is_searchable(&self) -> bool {
        self.name != Edit::Keep
            || self.kind != Edit::Keep
            || self.tags != Edit::Keep
            || !self.attributes.is_empty()
    }

    /// Applies the edits of the values by which the device is found.
    fn apply_searchable(&self, device: &mut Device) {
        self.name.apply(&mut device.0.name);
        self.kind.apply(&mut device.0.kind);
        self.tags.apply_or_empty(&mut device.0.tags);
        for (name, values) in &self.attributes {
            match values {
                Some(values) => device.0.attributes.insert(name.clone(), values.clone()),
                None => device.0.attributes.remove(name),
            };
        }
    }

    /// Applies the edit without a check; [`edited`](Self::edited) checks first. The same edit applied twice changes the
    /// device once. No edit puts a device behind itself.
    pub fn apply(&self, device: &mut Device, now: Timestamp) {
        self.apply_searchable(device);
        self.apply_room(device, now);
        if !self.is_behind_itself(device) {
            self.behind.apply(&mut device.0.behind);
        }

        self.in_room_means.apply(&mut device.0.in_room_means);
        let before = device.metrics().clone();
        for (name, patch) in self.settings() {
            // A restored metric may not be registered yet.
            if self.restores {
                device.0.metrics.entry(name.clone()).or_insert_with(|| name.into());
            }
            let Some(info) = device.0.metrics.get_mut(name) else { continue };
            patch.apply(name, info);
        }

        for name in self.dropped_metrics() {
            device.0.metrics.remove(name);
        }

        if let Some(extent) = extent_of_change(&before, device.metrics()) {
            device.0.fold_settings.note(extent);
        }
    }

    /// Applies the edit of the room. Without `room_since` the edit counts from `now` on. If the newest stay is after
    /// `now`, as the device's clock may be ahead, the edit counts from the first timestamp at which the next stay may
    /// begin.
    fn apply_room(&self, device: &mut Device, now: Timestamp) {
        let earliest = device.stay().map_or(now, |stay| stay.earliest_next().max(now));
        let since = self.room_since.unwrap_or(earliest);

        match &self.room {
            Edit::Keep => {}
            Edit::Clear => {
                device.0.place = Place::Unknown;
                if let Some(stay) = device.open_stay() {
                    device.0.stay = Some(stay.ended(since));
                }
            }
            Edit::Set(room) => {
                device.0.place = Place::Chosen(room.clone());
                if device.open_stay().is_none_or(|stay| stay.room != *room) {
                    device.0.stay = Some(Stay::begun(room.clone(), since));
                }
            }
        }
    }
}
