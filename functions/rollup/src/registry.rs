//! Reads the devices of the registry, as they are at this moment or since a stated time. Writes no device.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use domain::{DeviceId, Timestamp};
use rollups::DeviceRules;
use runtime::clock::Clock;
use runtime::registry::has_readings;
use runtime::telemetry::chain;
use runtime::work_queue::WorkQueue;
use table::{Session, StoreError, StoreResult};

use crate::bucket_folding::BucketFolding;
use crate::memory::{ListedDevice, ListedDevices};
use crate::ports::Store;

/// The number of devices on a page, when all devices are listed.
const LIST_PAGE: usize = 5_000;
/// The pauses before devices that are not registered yet are read again. Ingest registers a new device right after its
/// readings, and the function registry does so from the same stream.
const REGISTRATION_PAUSES: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1_600),
];

/// The rules of some devices. An error has the reason why the item of a device cannot be read or is not there yet.
/// Deleted devices are missing.
pub(crate) type Rules = BTreeMap<DeviceId, Result<DeviceRules, String>>;

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    /// The rules of devices, as they are at this moment. A deleted device has no rules: no rollup is made of readings
    /// that are being deleted.
    ///
    /// A device that is not registered yet is waited for. A rollup that was made without its rules would never be
    /// folded again.
    pub(crate) async fn rules(
        &self,
        session: Session<'_, S>,
        ids: &[DeviceId],
    ) -> StoreResult<Rules> {
        let mut rules = Rules::new();
        let missing = self.add_rules(session, &mut rules, ids.to_vec()).await?;
        let mut missing = self.with_readings(session, missing, &mut rules).await?;
        for pause in REGISTRATION_PAUSES {
            if missing.is_empty() || session.invocation.remaining() < pause {
                break;
            }
            tokio::time::sleep(pause).await;
            missing = self.add_rules(session, &mut rules, missing).await?;
        }

        rules.extend(missing.into_iter().map(|id| {
            let why = chain(&not_registered(&id));
            (id, Err(why))
        }));
        Ok(rules)
    }

    /// Adds to `rules` those of the registered devices. Returns the devices that may yet be registered.
    async fn add_rules(
        &self,
        session: Session<'_, S>,
        rules: &mut Rules,
        mut ids: Vec<DeviceId>,
    ) -> StoreResult<Vec<DeviceId>> {
        if ids.is_empty() {
            return Ok(ids);
        }

        let listing = session.find_devices(&ids).await?;
        self.registered.note(listing.found.iter().map(domain::Device::id));
        let indexing = &session.indexing().await?;
        let of = |device| DeviceRules::of(device).indexed(indexing);
        rules.extend(listing.found.iter().map(|device| (device.id().clone(), Ok(of(device)))));

        let is_being_deleted = |id: &DeviceId| {
            listing
                .deleted
                .iter()
                .any(|deleted| deleted.id == *id && deleted.deletion.ended.is_none())
        };
        ids.retain(|id| !rules.contains_key(id) && !is_being_deleted(id));

        for id in &ids {
            if let Some(item) = listing.unreadable.iter().find(|item| item.sk == id.as_str()) {
                rules.insert(id.clone(), Err(chain(item)));
            }
        }

        ids.retain(|id| !rules.contains_key(id));
        Ok(ids)
    }

    /// The devices of a list that have readings. A device without readings was deleted, and the stream is late. For a
    /// device whose readings the table throttles, the error is put into `rules`.
    async fn with_readings(
        &self,
        session: Session<'_, S>,
        ids: Vec<DeviceId>,
        rules: &mut Rules,
    ) -> StoreResult<Vec<DeviceId>> {
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let part = session.invocation.for_one_of_several(session.invocation.remaining());
            match has_readings(session.within(&part), &id).await {
                Ok(true) => found.push(id),
                Ok(false) => {}
                Err(error @ StoreError::Throttled(_)) => drop(rules.insert(id, Err(chain(&error)))),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The rules of one registered device.
    pub(crate) async fn rules_of(
        &self,
        session: Session<'_, S>,
        id: &DeviceId,
    ) -> StoreResult<DeviceRules> {
        let mut listing = session.find_devices(std::slice::from_ref(id)).await?;
        if let Some(item) = listing.unreadable.pop() {
            return Err(StoreError::Unreadable(item));
        }
        let device = listing.found.first().ok_or_else(|| not_registered(id))?;
        Ok(DeviceRules::of(device).indexed(&session.indexing().await?))
    }

    /// All devices, from a list that was read at `time` or later, also by an earlier invocation.
    pub(crate) async fn listed_since(
        &self,
        session: Session<'_, S>,
        time: Timestamp,
    ) -> StoreResult<Arc<ListedDevices>> {
        let read_at = self.clock.now();
        let known = self.registered.listed.get(read_at, |_| TimeDelta::MAX);
        if let Some(known) = known.filter(|known| known.read_at >= time) {
            return Ok(known);
        }

        let (mut devices, mut unreadable) = (Vec::<ListedDevice>::new(), Vec::new());
        let mut kinds = Vec::new();
        loop {
            let after = devices.last().map(|device| &device.id);
            let page = Box::pin(session.device_page(after, LIST_PAGE)).await?;
            let found = page.listing.found.into_iter();
            devices.extend(found.map(|device| ListedDevice::of(device, &mut kinds)));
            unreadable.extend(page.listing.unreadable);
            if !page.has_more {
                break;
            }
        }

        let new = ListedDevices { devices, unreadable, read_at };
        Ok(self.registered.listed.keep(new, read_at))
    }
}

/// The error for a device that was deleted meanwhile, or that is not registered yet.
fn not_registered(device: &DeviceId) -> StoreError {
    StoreError::Inapplicable(format!("the device {device} is not registered").into())
}
