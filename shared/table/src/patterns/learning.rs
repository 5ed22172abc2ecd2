//! Writes facts from readings and backups to registered devices and rooms. Never changes what a person set.

use std::collections::BTreeSet;

use domain::{
    About, Device, DeviceId, DeviceStay, DeviceUpdate, Label, MAX_INTRODUCED_ROOMS, MetricInfo,
    MetricName, Place, Room, RoomId, Stay, Timestamp,
};
use ports::port;

use super::device_write::{changed_fold_settings, metric_path};
use crate::db::{
    AttributeChange, Db, If, Write, above, absent, add, any, fewer, holds, replace_all, set,
    set_as, set_if_absent, still, update,
};
use crate::item::attribute::{FIRST_SEEN, INTRODUCED_ROOMS, NAME, SOURCE, STAY};
use crate::item::{Attribute, Attributes as _, Members, part};
use crate::keys::Key;
use crate::{Companion, Patterns, StoreResult, UpdateOutcome, companions};

/// The largest number of metrics that one update adds or describes: an expression may be 4 KB long.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html>
const METRICS_CHUNK: usize = 32;

/// The largest number of stays that are restored at once. One transaction writes them and the device, and has at most
/// 100 items.
pub const MAX_RESTORED_STAYS: usize = 48;

/// Adds facts from the readings of the stream to the registry.
///
/// A repeat changes nothing: a value is written only if it is newer, if it is earlier, or if none is stored.
#[port(UpdateRegistry, UpdateItem(Devices, Rooms), PutItem(Stays))]
impl<D: Db> Patterns<'_, D> {
    /// Adds facts that were learned about a device; never changes what a person set. An update is refused as a whole if
    /// one of its conditions fails. For a room, the device must still have the place of `known`. For a time of the
    /// first reading, the stored time must be later. For facts of a sender, the device must still have the version of
    /// `known`. More than 32 metrics are written in several updates; after a refused update, no further one is made.
    pub async fn update_device(
        self,
        known: &Device,
        learned: &DeviceUpdate,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let (first, further) = parts(known, learned);
        let mut outcome = self.learn_part(known, &first).await?;

        for part in &further {
            let UpdateOutcome::Updated(now) = &outcome else { break };
            outcome = self.learn_part(now, part).await?;
        }
        Ok(outcome)
    }

    /// Adds one part of the facts that were learned about a device.
    async fn learn_part(
        self,
        known: &Device,
        learned: &DeviceUpdate,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let key = self.device_key(known.id());
        let described = learned.about.as_ref().and_then(|about| known.with_about(about));
        let described_metrics = described.as_ref().map(|new| changed_metrics(known, new));
        let described_metrics = described_metrics.unwrap_or_default();
        let is_plain = |name: &&MetricName| !described_metrics.contains(name);
        let plain = learned.metrics.iter().filter(is_plain).filter_map(new_metric);

        let mut update = match &described {
            Some(new) => self.description(known, new, &described_metrics),
            None => update(&key),
        };

        update = update.with(plain);
        if let Some(first_seen) = learned.first_seen {
            update = earlier(update, first_seen);
        }

        if let Some((at, room)) = &learned.room {
            let place = Place::Learned(room.clone(), *at);
            // This room was found for a device with the room of `known`. If the device has another room now, the caller
            // must look again.
            update = update.with(replace_all(&place)).when(is_still_in(known.place()));
        }
        self.update_and_read(update).await
    }

    /// An update of a device to its next version, with the facts that a sender gives about the device.
    fn description(self, known: &Device, new: &Device, metrics: &BTreeSet<&MetricName>) -> Write {
        let source =
            (new.source() != known.source()).then(|| set_as::<Members, _>(SOURCE, new.source()));
        let metrics = new.metrics().iter().filter(|(name, _)| metrics.contains(name));
        self.next_version(known)
            .with(source)
            .with(metrics.map(|(name, info)| set_as::<Members, _>(metric_path(name), info)))
            .with(changed_fold_settings(known, new))
    }

    /// Begins a learned stay of a device, and ends its current stay. Refused if the device has another place or version
    /// than `known`.
    pub async fn begin_stay(
        self,
        known: &Device,
        stay: &Stay,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let new = known.with_stay(Some(stay.clone()));
        let update =
            self.next_version(known).when(is_still_in(known.place())).with(newest_stay_of(&new));
        self.write_device(&new, update, companions(known, &new)).await
    }

    /// Stores the time of a room's first reading, if it is earlier than the stored one.
    pub async fn update_room(
        self,
        id: &RoomId,
        first_seen: Timestamp,
    ) -> StoreResult<UpdateOutcome<Room>> {
        let update = earlier(update(&Key::Room(id.clone())), first_seen);
        self.update_and_read(update).await
    }

    /// Adds a room to the rooms that a device introduced, unless the device has reached its limit. A repeat changes
    /// nothing.
    pub async fn introduce_room(
        self,
        device: &DeviceId,
        room: &RoomId,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let may_introduce = any([
            absent(INTRODUCED_ROOMS),
            holds(INTRODUCED_ROOMS, room.as_str()),
            fewer(INTRODUCED_ROOMS, MAX_INTRODUCED_ROOMS),
        ]);
        let introduced = Attribute::Ss(vec![room.to_string()]);
        let update = update(&self.device_key(device))
            .when([may_introduce])
            .with([add(INTRODUCED_ROOMS, introduced)]);
        self.update_and_read(update).await
    }

    /// Gives a registered room a name, if it has none.
    pub async fn name_room(self, id: &RoomId, name: &Label) -> StoreResult<UpdateOutcome<Room>> {
        let update = update(&Key::Room(id.clone()))
            .when([absent(NAME)])
            .with([set(NAME, Attribute::text(name))]);
        self.update_and_read(update).await
    }
}

/// Restores the stays of a backup.
#[port(RestoreStays, UpdateItem(Devices), PutItem(Stays))]
impl<D: Db> Patterns<'_, D> {
    /// Stores at most [`MAX_RESTORED_STAYS`] stays of a device, in their order, all or none. They must have ended
    /// before the device's first stay. If the device has no stays, the last restored stay becomes its newest stay.
    /// Refused if the device has changed since it was read, so a repeat is refused.
    pub async fn restore_stays(
        self,
        known: &Device,
        stays: &[Stay],
    ) -> StoreResult<UpdateOutcome<Device>> {
        let new = known.with_stay(known.stay().or(stays.last()).cloned());
        let update = self.next_version(known).with(newest_stay_of(&new));
        let keep = |stay: &Stay| {
            Companion::KeepStay(DeviceStay { device: known.id().clone(), stay: stay.clone() })
        };
        self.write_device(&new, update, stays.iter().map(keep).collect()).await
    }
}

/// The facts that were learned about a device, in parts of at most [`METRICS_CHUNK`] metrics each. The first part also
/// has all facts that are not about a metric.
fn parts(known: &Device, learned: &DeviceUpdate) -> (DeviceUpdate, Vec<DeviceUpdate>) {
    let news = learned.about.as_ref().and_then(|about| known.news(about)).unwrap_or_default();
    let names: BTreeSet<&MetricName> = learned.metrics.iter().chain(news.metrics.keys()).collect();
    let names = Vec::from_iter(names);

    let mut parts = names.chunks(METRICS_CHUNK).map(|names| {
        let metrics = news.metrics.iter().filter(|(name, _)| names.contains(name));
        let metrics = metrics.map(|(name, metric)| (name.clone(), metric.clone())).collect();
        DeviceUpdate {
            metrics: learned.metrics.iter().filter(|name| names.contains(name)).cloned().collect(),
            about: Some(About { metrics, ..About::default() }),
            ..DeviceUpdate::default()
        }
    });

    let of_metrics = parts.next().unwrap_or_default();
    let metrics = of_metrics.about.map(|about| about.metrics).unwrap_or_default();
    let first = DeviceUpdate {
        metrics: of_metrics.metrics,
        about: Some(About { metrics, ..news.clone() }),
        ..learned.clone()
    };
    (first, parts.collect())
}

/// The names of the metrics that `new` changes.
fn changed_metrics<'a>(known: &Device, new: &'a Device) -> BTreeSet<&'a MetricName> {
    let metrics = new.metrics().iter();
    let changed = metrics.filter(|(name, info)| known.metrics().get(*name) != Some(*info));
    changed.map(|(name, _)| name).collect()
}

/// The change that adds a metric, if the device does not have it.
fn new_metric(name: &MetricName) -> Option<AttributeChange> {
    let info = part::<Members, _>(&MetricInfo::from(name))?;
    Some(set_if_absent(metric_path(name), info))
}

/// The conditions that a device's place is still `place`.
fn is_still_in(place: &Place) -> impl Iterator<Item = If> + use<> {
    place.attributes().into_iter().map(|(name, value)| still(name, value))
}

/// Adds the time of the first reading to an update, on the condition that the stored time is later.
fn earlier(update: Write, first_seen: Timestamp) -> Write {
    let first_seen = Attribute::text(&first_seen);
    update.when([above(FIRST_SEEN, first_seen.clone())]).with([set(FIRST_SEEN, first_seen)])
}

fn newest_stay_of(device: &Device) -> Option<AttributeChange> {
    device.stay().map(|stay| set_as::<Members, _>(STAY, stay))
}
