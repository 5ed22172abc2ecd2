//! Names that devices introduced in the last minutes, such as metrics and rooms. They count towards a limit until the
//! registry has noted them. Reads and writes no table.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use domain::{DeviceId, Timestamp};

/// The number of devices whose names are remembered. Beyond it, all are forgotten.
const MAX_DEVICES: usize = 1_000;
/// The time for which names are remembered. Later the registry has noted them, or they were not stored.
const REMEMBERED: TimeDelta = TimeDelta::minutes(3);

/// Names that the registry may not have noted yet. Without them, overlapping requests would not see each other's names.
#[derive(Debug)]
pub(super) struct NewNames<N>(Mutex<HashMap<DeviceId, OfDevice<N>>>);

impl<N> Default for NewNames<N> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// The names of a device, and when the last of them was introduced.
#[derive(Debug)]
struct OfDevice<N> {
    names: BTreeSet<N>,
    at: Timestamp,
}

impl<N: Ord + Clone> NewNames<N> {
    /// Introduces names of a device, if there are then at most `free` beside those that the registry has noted. Else none is
    /// introduced, and the first beyond the limit is returned.
    pub(super) fn introduce<'a>(
        &self,
        id: &DeviceId,
        names: impl Iterator<Item = &'a N>,
        is_noted: impl Fn(&N) -> bool,
        free: usize,
        now: Timestamp,
    ) -> Result<(), &'a N> {
        let unknown: Vec<&N> = names.filter(|name| !is_noted(name)).collect();
        if unknown.is_empty() {
            return Ok(());
        }

        let mut devices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if devices.len() >= MAX_DEVICES && !devices.contains_key(id) {
            devices.clear();
        }
        let device = devices.entry(id.clone());
        let device = device.or_insert_with(|| OfDevice { names: BTreeSet::new(), at: now });
        if now.since(device.at).abs() >= REMEMBERED {
            device.names.clear();
        }
        device.names.retain(|name| !is_noted(name));

        let is_new = |name: &&N| !device.names.contains(*name);
        let new: Vec<&N> = unknown.into_iter().filter(is_new).collect();
        if let Some(beyond) = new.get(free.saturating_sub(device.names.len())) {
            return Err(beyond);
        }
        if !new.is_empty() {
            device.names.extend(new.into_iter().cloned());
            device.at = now;
        }
        Ok(())
    }
}
