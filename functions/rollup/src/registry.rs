//! The registry's devices, as they are this moment or as they were at a stated time. Writes none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use domain::{DeviceId, Timestamp};
use rollups::DeviceRules;
use runtime::clock::Clock;
use runtime::registry::is_gone;
use runtime::telemetry::chain;
use runtime::work_queue::WorkQueue;
use table::{Invocation, StoreError, StoreResult};

use crate::bucket_folding::BucketFolding;
use crate::memory::{ListedDevice, ListedDevices};
use crate::ports::Store;

/// The number of devices that are read at once for the list of all.
const LIST_PAGE: usize = 5_000;
/// The rules of some devices; the reason where a device's item cannot be read. Devices that are gone have none.
pub(crate) type Rules = BTreeMap<DeviceId, Result<DeviceRules, String>>;

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    /// The rules of devices, as they are this moment. A device that is gone has none: of its readings, which
    /// are deleted, no rollup is made anew.
    pub(crate) async fn rules(
        &self,
        ids: &[DeviceId],
        invocation: &Invocation,
    ) -> StoreResult<Rules> {
        if ids.is_empty() {
            return Ok(Rules::new());
        }
        let listing = self.store.find_devices(ids, invocation).await?;
        self.registered.note(listing.found.iter().map(domain::Device::id));
        let indexing = &self.store.indexing(invocation).await?;
        let rules = |it| DeviceRules::of(it).indexed(indexing);
        let found = listing.found.iter().map(|it| (it.id().clone(), Ok(rules(it))));
        let mut rules: Rules = found.collect();
        let mut gone = BTreeSet::new();
        for device in &listing.deleted {
            if is_gone(&self.store, device, invocation).await? {
                gone.insert(&device.id);
            } else {
                let come_again = DeviceRules::of_deleted(device).indexed(indexing);
                rules.insert(device.id.clone(), Ok(come_again));
            }
        }
        for id in ids.iter().filter(|id| !gone.contains(id)) {
            rules.entry(id.clone()).or_insert_with(|| {
                match listing.unreadable.iter().find(|item| item.sk == id.as_str()) {
                    Some(item) => Err(chain(item)),
                    None => Ok(DeviceRules::of_unknown(id.clone()).indexed(indexing)),
                }
            });
        }
        Ok(rules)
    }

    /// The rules of one device; an item that cannot be read is an error.
    pub(crate) async fn rules_of(
        &self,
        id: &DeviceId,
        invocation: &Invocation,
    ) -> StoreResult<DeviceRules> {
        let mut listing = self.store.find_devices(std::slice::from_ref(id), invocation).await?;
        if let Some(item) = listing.unreadable.pop() {
            return Err(StoreError::Unreadable(item));
        }
        let deleted = || listing.deleted.first().map(DeviceRules::of_deleted);
        let rules = listing.found.first().map(DeviceRules::of).or_else(deleted);
        let rules = rules.unwrap_or_else(|| DeviceRules::of_unknown(id.clone()));
        Ok(rules.indexed(&self.store.indexing(invocation).await?))
    }

    /// All devices, listed at `time` or later. The list of an earlier invocation serves as well.
    pub(crate) async fn listed_since(
        &self,
        time: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<Arc<ListedDevices>> {
        let listed = || self.registered.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = listed().as_ref().filter(|known| known.read_at >= time) {
            return Ok(Arc::clone(known));
        }
        let read_at = self.clock.now();
        let (mut devices, mut unreadable) = (Vec::<ListedDevice>::new(), Vec::new());
        let mut kinds = Vec::new();
        loop {
            let after = devices.last().map(|device| &device.id);
            let page = Box::pin(self.store.device_page(after, LIST_PAGE, invocation)).await?;
            let found = page.listing.found.into_iter();
            devices.extend(found.map(|device| ListedDevice::of(device, &mut kinds)));
            unreadable.extend(page.listing.unreadable);
            if !page.has_more {
                break;
            }
        }
        let new = Arc::new(ListedDevices { devices, unreadable, read_at });
        *listed() = Some(Arc::clone(&new));
        Ok(new)
    }
}
