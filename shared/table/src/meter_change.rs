//! The meters that an edit of a device's `behind` concerns. Some of them are read, are checked again when the device is
//! written, or note the device. Reads and writes nothing itself.
//!
//! The meters above the new meter are read from the table, one after the other. The transaction that writes the device
//! checks that each of them is still behind the same meter. Transactions on the same items are serializable, among each
//! other and with single writes. So if several edits at once would close a circle of any length, one of them fails:
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-isolation>
//!
//! The same transaction writes the meter: it notes the device and raises the meter's version. A deletion mark expects
//! the version that was read. So a deletion of the meter sees every device that is behind the meter.

use domain::{BehindError, Device, DeviceId, DevicePatch, Edit, MAX_BEHIND, MAX_METERS_ABOVE};

use crate::Companion;

/// A change of the meter behind which a device is.
#[derive(Debug)]
#[must_use]
pub struct MeterChange {
    device: DeviceId,
    /// The meter behind which the device is put.
    into: Option<DeviceId>,
    /// The meter behind which the device was.
    left: Option<DeviceId>,
    was_behind: Option<DeviceId>,
    /// The new meter and the meters above it, each as it was read.
    above: Vec<(DeviceId, Option<Device>)>,
    /// The meter behind which the device was, if it is not among `above`.
    left_as_read: Option<Device>,
    next: Option<DeviceId>,
    /// Whether the new meter notes the device already.
    is_noted: bool,
}

impl MeterChange {
    /// The change that an edit makes. An edit without a change of meters needs no read.
    pub fn of(old: &Device, patch: &DevicePatch) -> Self {
        let into = match &patch.behind {
            Edit::Set(meter) => Some(meter.clone()),
            Edit::Keep | Edit::Clear => None,
        };
        let is_left =
            |meter: &&DeviceId| patch.behind != Edit::Keep && into.as_ref() != Some(meter);
        let left = old.behind().filter(is_left).cloned();
        Self::new(old, into, left)
    }

    /// The change that a device's deletion makes.
    pub fn of_deletion(old: &Device) -> Self {
        Self::new(old, None, old.behind().cloned())
    }

    fn new(old: &Device, into: Option<DeviceId>, left: Option<DeviceId>) -> Self {
        Self {
            device: old.id().clone(),
            next: into.clone().or_else(|| left.clone()),
            into,
            left,
            was_behind: old.behind().cloned(),
            above: Vec::new(),
            left_as_read: None,
            is_noted: false,
        }
    }

    /// The device that must be read next, with a consistent read.
    pub const fn next(&self) -> Option<&DeviceId> {
        self.next.as_ref()
    }

    /// Takes the next device as it was read.
    pub fn see(&mut self, found: Option<Device>) -> Result<(), BehindError> {
        let Some(id) = self.next.take() else { return Ok(()) };
        let is_climbing = self.into.as_ref().is_some_and(|into| {
            self.above.last().map_or(*into == id, |(_, device)| {
                device.as_ref().and_then(Device::behind) == Some(&id)
            })
        });
        if !is_climbing {
            self.left_as_read = found;
            return Ok(());
        }

        if self.above.is_empty() {
            let meter = found.as_ref().ok_or_else(|| BehindError::NoMeter(id.clone()))?;
            let is_noted = meter.behind_it().contains(&self.device);
            if self.was_behind.as_ref() == Some(&id) && is_noted {
                self.is_noted = true;
                return Ok(());
            }
            if meter.behind_it().len() >= MAX_BEHIND && !is_noted {
                return Err(BehindError::Full(id));
            }
        }

        let further = found.as_ref().and_then(|device| device.behind().cloned());
        self.above.push((id, found));
        let meter = || self.above[0].0.clone();
        if further.as_ref() == Some(&self.device) {
            return Err(BehindError::Circle { meter: meter(), device: self.device.clone() });
        }

        let is_new = |id: &DeviceId| self.above.iter().all(|(above, _)| above != id);
        // If meters form a circle already, all of them are known by now.
        let further = further.filter(is_new);
        if further.is_some() && self.above.len() == MAX_METERS_ABOVE {
            return Err(BehindError::TooDeep(meter()));
        }

        self.next = further.or_else(|| self.left.clone().filter(is_new));
        Ok(())
    }

    /// The companions that are written with the device, all or nothing.
    pub fn companions(self) -> Vec<Companion> {
        let Self { device, left, above, left_as_read, is_noted, .. } = self;
        if is_noted {
            return Vec::new();
        }

        let forget = |meter: Device| {
            let is_noted = meter.behind_it().contains(&device);
            is_noted.then(|| Companion::ForgetBehind(Box::new(meter), device.clone()))
        };

        let mut companions: Vec<Companion> = left_as_read.and_then(forget).into_iter().collect();
        for (place, (id, found)) in above.into_iter().enumerate() {
            let still = Companion::StillBehind {
                device: id.clone(),
                meter: found.as_ref().and_then(|device| device.behind().cloned()),
            };

            let written = match found {
                Some(meter) if place == 0 => {
                    Some(Companion::NoteBehind(Box::new(meter), device.clone()))
                }
                // A transaction may have an item only once. The version of this write also ensures that the meter is
                // behind the same meter.
                Some(meter) if left.as_ref() == Some(&id) => forget(meter),
                _ => None,
            };
            companions.push(written.unwrap_or(still));
        }
        companions
    }
}
