//! Limits the devices that a sender introduces: without a limit any sender could fill the registry, which everybody
//! reads. Registers no device.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::DeviceId;
use runtime::registry::FoundDevices;
use table::{CountIntroduced, Counting, Session, StoreResult};

use crate::limits::counted_sender::CountedSender;
use crate::store_request::{StoreRequest, refusal};

/// The largest number of devices that are remembered as counted; beyond it, all are forgotten and counted again.
const MAX_REMEMBERED: usize = 10_000;
/// The number of attempts at counting. An attempt fails if another instance counts devices of the same sender at this
/// moment.
const MAX_ATTEMPTS: usize = 5;

/// New devices that were already counted for a sender and are not in the registry yet, each with the sender's name. No
/// device is counted twice, even if its registration failed and is left to the registry function.
#[derive(Debug, Default)]
pub(crate) struct IntroductionCounts(Mutex<HashMap<DeviceId, String>>);

/// The new devices of a request. Devices that were counted for another sender are left out.
struct NewDevices {
    not_counted: BTreeSet<DeviceId>,
    /// Devices that an earlier request of the sender has introduced, and that are not registered yet.
    counted: BTreeSet<DeviceId>,
}

impl IntroductionCounts {
    /// Refuses the readings of new devices beyond the sender's limit. Returns the devices that the sender introduces.
    pub(crate) async fn introduce(
        &self,
        session: Session<'_, impl CountIntroduced>,
        request: &mut StoreRequest<'_>,
        found: &FoundDevices,
    ) -> StoreResult<BTreeSet<DeviceId>> {
        let Some(sender) = request.counted_sender else { return Ok(BTreeSet::new()) };
        // A request that is refused as a whole introduces nothing.
        if request.options.all_or_nothing && request.has_refusals() {
            return Ok(BTreeSet::new());
        }

        let NewDevices { not_counted, counted: introduced_before } =
            self.new_devices(sender, request, found);
        if not_counted.is_empty() {
            return Ok(introduced_before);
        }

        // The devices of the sender are counted in memory if memory holds the whole registry, else in the table.
        let granted = match found.number_introduced_by(&sender.name) {
            Some(registered) => {
                sender.limit.saturating_sub(registered + self.not_registered_of(sender))
            }
            None => {
                let new = not_counted.len();
                let least = if request.options.all_or_nothing { new } else { 1 };
                count_in_table(session, sender, new, least).await?
            }
        };

        // The first devices of the request are introduced, the others refused.
        let mut introduced = BTreeSet::new();
        request.refuse(|reading| {
            let id = &reading.device;
            if !not_counted.contains(id) || introduced.contains(id) {
                return None;
            }
            if introduced.len() < granted {
                introduced.insert(id.clone());
                return None;
            }
            Some(refusal("device_id", sender.refusal()))
        });

        if introduced.len() < not_counted.len() {
            request.report.refused_sender = Some(sender.name.clone());
            if request.options.all_or_nothing {
                return Ok(BTreeSet::new());
            }
        }

        self.remember(&introduced, sender);
        introduced.extend(introduced_before);
        Ok(introduced)
    }

    /// The new devices of a request.
    fn new_devices(
        &self,
        sender: &CountedSender,
        request: &StoreRequest<'_>,
        found: &FoundDevices,
    ) -> NewDevices {
        let devices = request.readings().map(|reading| &reading.device);
        let is_new = |id: &&DeviceId| !found.is_registered(id) && !sender.is(id);
        let devices: BTreeSet<&DeviceId> = devices.filter(is_new).collect();
        let mut new = NewDevices { not_counted: BTreeSet::new(), counted: BTreeSet::new() };
        if devices.is_empty() {
            return new;
        }

        let mut all_counted = self.lock();
        // Once the registry has a device, it counts the device for its introducer.
        all_counted.retain(|id, _| found.device(id).is_none());

        for id in devices {
            match all_counted.get(id) {
                None => drop(new.not_counted.insert(id.clone())),
                Some(name) if *name == sender.name => drop(new.counted.insert(id.clone())),
                // Another sender introduced the device.
                Some(_) => {}
            }
        }

        new
    }

    /// How many devices were counted for a sender and are not in the registry yet.
    fn not_registered_of(&self, sender: &CountedSender) -> usize {
        self.lock().values().filter(|name| **name == sender.name).count()
    }

    fn remember(&self, introduced: &BTreeSet<DeviceId>, sender: &CountedSender) {
        let mut counted = self.lock();
        if counted.len() + introduced.len() > MAX_REMEMBERED {
            counted.clear();
        }
        counted.extend(introduced.iter().map(|id| (id.clone(), sender.name.clone())));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DeviceId, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts new devices in the table, as many as the sender may introduce, but none if these are fewer than `least`.
/// Returns their number.
///
/// This costs a write for each request with new devices. If memory holds the whole registry, nothing is counted here.
/// Devices may be counted twice: by a repeated request or by another instance.
async fn count_in_table(
    session: Session<'_, impl CountIntroduced>,
    sender: &CountedSender,
    new: usize,
    least: usize,
) -> StoreResult<usize> {
    let mut wanted = new.min(sender.limit);
    for _ in 0..MAX_ATTEMPTS {
        if wanted < least {
            break;
        }

        match session.count_introduced(&sender.name, wanted, sender.limit).await? {
            Counting::Counted => return Ok(wanted),
            Counting::BeyondLimit { stored } => {
                wanted = wanted.min(sender.limit.saturating_sub(stored));
            }
        }
    }
    Ok(0)
}
