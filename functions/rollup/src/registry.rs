//! The registry's devices, as they are this moment or as they were at a stated time. Writes none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use domain::{Device, DeviceId, FoldRules, FoldSettings, Timestamp};
use rollups::DeviceRules;
use runtime::clock::Clock;
use runtime::registry::is_gone;
use runtime::telemetry::chain;
use runtime::work_queue::WorkQueue;
use table::{Indexing, Invocation, StoreError, StoreResult, UnreadableItem};

use crate::Store;
use crate::bucket_folding::BucketFolding;

/// What the instance remembers of the registry: only what stays true.
#[derive(Debug, Default)]
pub(crate) struct Registered {
    /// Devices that stood in the registry. One that is deleted and comes again is registered again with its
    /// first reading, so that the sweep finds it like any other.
    devices: Mutex<BTreeSet<DeviceId>>,
    /// The newest list of all devices.
    listed: Mutex<Option<Arc<ListedDevices>>>,
}

/// All devices, as they were at a time.
#[derive(Debug)]
pub(crate) struct ListedDevices {
    pub(crate) devices: Vec<ListedDevice>,
    pub(crate) unreadable: Vec<UnreadableItem>,
    /// The time before which the list was not begun.
    pub(crate) read_at: Timestamp,
}

/// What the function needs of a device, in 80 bytes and its id: a fleet has hundreds of thousands.
#[derive(Debug)]
pub(crate) struct ListedDevice {
    pub(crate) id: DeviceId,
    pub(crate) fold_settings: FoldSettings,
    pub(crate) first_seen: Timestamp,
    /// Shared by devices of one kind.
    rules: Arc<FoldRules>,
}

const _: () = assert!(size_of::<ListedDevice>() <= 80);

impl ListedDevice {
    fn of(device: Device, kinds: &mut Vec<Arc<FoldRules>>) -> Self {
        let rules = FoldRules::of(&device);
        let known = kinds.iter().find(|known| ***known == rules).cloned();
        let rules = known.unwrap_or_else(|| {
            let rules = Arc::new(rules);
            if kinds.len() < MAX_KINDS {
                kinds.push(Arc::clone(&rules));
            }
            rules
        });
        let Device { id, fold_settings, first_seen, .. } = device;
        Self { id, fold_settings, first_seen, rules }
    }

    /// The rules that the device is folded by, with what the index by conditions is to have.
    pub(crate) fn rules(&self, indexing: &Indexing) -> DeviceRules {
        DeviceRules {
            id: self.id.clone(),
            rules: (*self.rules).clone(),
            settings: self.fold_settings.number,
            indexing: indexing.clone(),
        }
    }
}

/// The number of devices that are read at once for the list of all.
const LIST_PAGE: usize = 5_000;
/// The number of kinds of devices whose rules are shared.
const MAX_KINDS: usize = 64;

/// The rules of some devices; the reason where a device's item cannot be read. Devices that are gone have none.
pub(crate) type Rules = BTreeMap<DeviceId, Result<DeviceRules, String>>;

impl Registered {
    /// Those that are not known to be registered.
    pub(crate) fn unknown<'a>(&self, ids: impl Iterator<Item = &'a DeviceId>) -> Vec<DeviceId> {
        let known = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown: BTreeSet<_> = ids.filter(|id| !known.contains(*id)).collect();
        unknown.into_iter().cloned().collect()
    }

    pub(crate) fn is_known(&self, id: &DeviceId) -> bool {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
    }

    fn note<'a>(&self, ids: impl Iterator<Item = &'a DeviceId>) {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner).extend(ids.cloned());
    }
}

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
        self.registered.note(listing.found.iter().map(|device| &device.id));
        let indexing = &self.store.indexing(invocation).await?;
        let rules = |it| DeviceRules::of(it).indexed(indexing);
        let found = listing.found.iter().map(|it| (it.id.clone(), Ok(rules(it))));
        let mut rules: Rules = found.collect();
        let mut gone = BTreeSet::new();
        for device in &listing.deleted {
            if is_gone(&self.store, device, invocation).await? {
                gone.insert(&device.id);
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
        let unknown = || DeviceRules::of_unknown(id.clone());
        let rules = listing.found.first().map_or_else(unknown, DeviceRules::of);
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
