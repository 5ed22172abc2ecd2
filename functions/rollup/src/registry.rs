//! Reads devices from the registry, as they are now or as a remembered list has them. Writes no device.

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

/// The number of devices that are read at once for the list of all devices.
const LIST_PAGE: usize = 5_000;
/// The pauses before unregistered devices are looked up again. A new device is registered soon: by ingest right after
/// its readings, or by the function registry from the same stream.
const REGISTRATION_PAUSES: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1_600),
];

/// The rules of some devices. An error is the reason why a device's item cannot be read or is not there yet. Deleted
/// devices have no entry.
pub(crate) type RulesByDevice = BTreeMap<DeviceId, Result<DeviceRules, String>>;

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    /// Reads the rules of devices now. A deleted device has no rules, so that its remaining readings make no rollup.
    ///
    /// Waits for devices that are not registered yet. A rollup that was made without rules would never be folded again.
    pub(crate) async fn rules(
        &self,
        session: Session<'_, S>,
        ids: &[DeviceId],
    ) -> StoreResult<RulesByDevice> {
        let mut rules = RulesByDevice::new();
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

    /// Adds the rules of registered devices to `rules`. Returns the unregistered devices that are not being deleted.
    async fn add_rules(
        &self,
        session: Session<'_, S>,
        rules: &mut RulesByDevice,
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

    /// Returns the devices that have readings. A device without readings was deleted before the stream delivered its
    /// records. If the table throttles the readings of a device, the error is put into `rules`.
    async fn with_readings(
        &self,
        session: Session<'_, S>,
        ids: Vec<DeviceId>,
        rules: &mut RulesByDevice,
    ) -> StoreResult<Vec<DeviceId>> {
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let part = session.invocation.with_quarter_patience();
            match has_readings(session.within(&part), &id).await {
                Ok(true) => found.push(id),
                Ok(false) => {}
                Err(error @ StoreError::Throttled(_)) => drop(rules.insert(id, Err(chain(&error)))),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Reads the rules of one registered device.
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

    /// All devices, from a list that was read at `time` or later, perhaps by an earlier invocation.
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
