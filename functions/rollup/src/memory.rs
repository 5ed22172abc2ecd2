//! The memory of an instance between its invocations: facts that stay true, and lists that are read again. Reads no
//! table.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use domain::{Device, DeviceId, DeviceParts, FoldRules, FoldSettings, Timestamp};
use rollups::DeviceRules;
use table::{Indexing, QueueDepth, Remembered, UnreadableItem};

/// The registry as the instance remembers it.
#[derive(Debug, Default)]
pub(crate) struct RegistryMemory {
    /// Devices that were seen in the registry. Deleted devices may stay here: their next reading registers them again,
    /// so the sweep finds them.
    devices: Mutex<BTreeSet<DeviceId>>,
    /// The newest list of all devices.
    pub(crate) listed: Remembered<ListedDevices>,
}

/// All devices at a point in time.
#[derive(Debug)]
pub(crate) struct ListedDevices {
    pub(crate) devices: Vec<ListedDevice>,
    pub(crate) unreadable: Vec<UnreadableItem>,
    /// The time just before the list was read.
    pub(crate) read_at: Timestamp,
}

/// The facts about a device that the function needs, in at most 80 bytes and the text of the id: a fleet has hundreds
/// of thousands of devices.
#[derive(Debug)]
pub(crate) struct ListedDevice {
    pub(crate) id: DeviceId,
    pub(crate) fold_settings: FoldSettings,
    pub(crate) first_seen: Timestamp,
    /// The rules, shared by devices whose rules are equal.
    rules: Arc<FoldRules>,
}

const _: () = assert!(size_of::<ListedDevice>() <= 80);

/// How many different rules are shared. Further rules have a copy for each device.
const MAX_KINDS: usize = 64;

impl ListedDevice {
    pub(crate) fn of(device: Device, kinds: &mut Vec<Arc<FoldRules>>) -> Self {
        let rules = FoldRules::of(&device);
        let known = kinds.iter().find(|known| ***known == rules).cloned();
        let rules = known.unwrap_or_else(|| {
            let rules = Arc::new(rules);
            if kinds.len() < MAX_KINDS {
                kinds.push(Arc::clone(&rules));
            }
            rules
        });
        let DeviceParts { id, fold_settings, first_seen, .. } = device.into_parts();
        Self { id, fold_settings, first_seen, rules }
    }

    /// The rules for folding the device. `indexing` says what the conditions index has.
    pub(crate) fn rules(&self, indexing: &Indexing) -> DeviceRules {
        DeviceRules {
            id: self.id.clone(),
            rules: (*self.rules).clone(),
            settings: self.fold_settings.clone(),
            indexing: indexing.clone(),
        }
    }
}

impl RegistryMemory {
    /// The devices that are not remembered as registered, sorted.
    pub(crate) fn unknown<'a>(&self, ids: impl Iterator<Item = &'a DeviceId>) -> Vec<DeviceId> {
        let known = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown: BTreeSet<_> = ids.filter(|id| !known.contains(*id)).collect();
        unknown.into_iter().cloned().collect()
    }

    pub(crate) fn is_known(&self, id: &DeviceId) -> bool {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
    }

    pub(crate) fn note<'a>(&self, ids: impl Iterator<Item = &'a DeviceId>) {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner).extend(ids.cloned());
    }
}

/// Since when every count has found messages in the queue; `None` if the last count found no message.
#[derive(Debug, Default)]
pub(crate) struct QueueBusy(Mutex<Option<Timestamp>>);

impl QueueBusy {
    /// Adds a count. Returns since when messages wait: SQS counts messages, but does not give their age.
    pub(crate) fn since(&self, counted: Option<QueueDepth>) -> Option<Timestamp> {
        let mut since = self.0.lock().expect("nothing panics while it is held");
        match counted.filter(|depth| depth.messages > 0) {
            Some(depth) => Some(*since.get_or_insert(depth.at)),
            None => {
                *since = None;
                None
            }
        }
    }
}
