//! `UpdateItem`, and `TransactWriteItems` for stays: applies what readings say to the registry. Never changes what a person set.

use crate::DynamoStore;
use crate::update::Update;
use crate::write_device::DeviceWrite;
use domain::{Device, DeviceUpdate, MetricInfo, Place, Room, RoomId, Stay, Timestamp};
use table::item::attribute::{FIRST_SEEN, METRICS, STAY};
use table::item::{self, Attribute};
use table::keys::Key;
use table::{Invocation, StoreResult, UpdateOutcome, UpdateRegistry, companions};

/// How many metrics one update adds: an expression may be 4 KB long.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html>
const METRICS_CHUNK: usize = 32;

impl UpdateRegistry for DynamoStore {
    async fn update_device(
        &self,
        known: &Device,
        learned: &DeviceUpdate,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let key = || self.layout.device_key(known.id());
        let mut update = Update::of(key());
        if let Some(first_seen) = learned.first_seen {
            earlier(&mut update, first_seen);
        }
        if let Some((at, room)) = &learned.room {
            for (name, value) in item::from_place(&Place::Learned(room.clone(), *at)) {
                value.into_iter().for_each(|value| update.set(&[name], value));
            }
            // Which reading is the newest was asked for this room; for another, it must be asked again.
            only_if_still_in(&mut update, known.place());
        }
        for (n, name) in learned.metrics.iter().enumerate() {
            if n > 0 && n % METRICS_CHUNK == 0 {
                // Only the first has conditions that may be refused; the others add what is absent.
                let sent = std::mem::replace(&mut update, Update::of(key()));
                let sent = sent.send_and_read(self, invocation).await?;
                if matches!(sent, UpdateOutcome::ConditionFailed(_)) {
                    return Ok(sent);
                }
            }
            let info = item::metric(&MetricInfo::from(name));
            update.set_if_absent(&[METRICS, name.as_str()], info);
        }
        update.send_and_read(self, invocation).await
    }

    async fn begin_stay(
        &self,
        known: &Device,
        stay: &Stay,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let new = known.with_stay(Some(stay.clone()));
        let mut update = Update::of(self.layout.device_key(known.id()));
        only_if_still_in(&mut update, known.place());
        new.stay().into_iter().for_each(|stay| update.set(&[STAY], item::newest_stay(stay)));
        let companions = companions(known, &new);
        let written = self.write_device((known, &new), update, companions, invocation).await?;
        Ok(match written {
            DeviceWrite::Done(now) => UpdateOutcome::Updated(now),
            DeviceWrite::Lost(was) => UpdateOutcome::ConditionFailed(was),
            DeviceWrite::CompanionRefused => unreachable!("stays are put without a condition"),
        })
    }

    async fn update_room(
        &self,
        id: &RoomId,
        first_seen: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Room>> {
        let mut update = Update::of(Key::Room(id.clone()));
        earlier(&mut update, first_seen);
        update.send_and_read(self, invocation).await
    }
}

fn only_if_still_in(update: &mut Update, place: &Place) {
    for (name, value) in item::from_place(place) {
        update.only_if_still(&[name], value);
    }
}

fn earlier(update: &mut Update, first_seen: Timestamp) {
    let first_seen = Attribute::S(first_seen.to_string());
    update.set(&[FIRST_SEEN], first_seen.clone());
    update.only_if_above(&[FIRST_SEEN], first_seen);
}
