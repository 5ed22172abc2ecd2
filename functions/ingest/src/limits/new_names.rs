//! Names that devices introduced in the last minutes, such as metrics and rooms. They count towards a limit until the
//! registry has noted them. Reads and writes no table.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use domain::{DeviceId, Timestamp};
use table::BoundedMemory;

/// The number of devices whose names are remembered. Beyond it, all are forgotten.
const MAX_DEVICES: usize = 1_000;
/// The time for which names are remembered. Later the registry has noted them, or they were not stored.
const REMEMBERED: TimeDelta = TimeDelta::minutes(3);

/// Names that the registry may not have noted yet. Without them, overlapping requests would not see each other's names.
#[derive(Debug)]
pub(super) struct NewNames<N>(BoundedMemory<DeviceId, BTreeSet<N>>);

impl<N: Clone> Default for NewNames<N> {
    fn default() -> Self {
        Self(BoundedMemory::new(MAX_DEVICES, REMEMBERED))
    }
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

        let mut remembered = self.0.get(id, now).unwrap_or_default();
        remembered.retain(|name| !is_noted(name));
        let is_new = |name: &&N| !remembered.contains(*name);
        let new: Vec<&N> = unknown.into_iter().filter(is_new).collect();
        if let Some(beyond) = new.get(free.saturating_sub(remembered.len())) {
            return Err(beyond);
        }

        if !new.is_empty() {
            remembered.extend(new.into_iter().cloned());
            self.0.keep(id.clone(), remembered, now);
        }
        Ok(())
    }
}
