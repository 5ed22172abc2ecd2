//! The meters to read, check and write when an edit changes a device's `behind`. Reads and writes nothing itself.
//!
//! A meter may itself be behind a meter, which is then above it. All meters above the new meter are read, one after the
//! other. The transaction that writes the device checks that each of these meters is still behind the same meter.
//! DynamoDB serializes transactions with all writes of the same items. So if several edits at once would close a
//! circle, one of them fails:
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-isolation>
//!
//! The same transaction adds the device to the meter's list and raises the meter's version. A deletion of the meter
//! expects the version that it read. So it cannot miss a device that was put behind the meter.

use domain::{BehindError, Device, DeviceId, DevicePatch, Edit, MAX_BEHIND, MAX_METERS_ABOVE};

use crate::Companion;

/// A change of the meter that a device is behind.
#[derive(Debug)]
#[must_use]
pub struct MeterChange {
    device: DeviceId,
    /// The meter that the device leaves.
    left: Option<DeviceId>,
    was_behind: Option<DeviceId>,
    /// The new meter and the meters above it, each as it was read.
    above: Vec<(DeviceId, Option<Device>)>,
    /// The meter `left` as it was read; `None` if it is among `above`.
    left_as_read: Option<Device>,
    next: Option<NextMeter>,
    /// Whether the device is behind the new meter already, and in the meter's list.
    is_noted: bool,
}

#[derive(Debug)]
enum NextMeter {
    /// The new meter.
    New(DeviceId),
    /// A meter above the new one.
    Above(DeviceId),
    /// The meter that the device leaves.
    Left(DeviceId),
}

impl MeterChange {
    /// The change that an edit makes. If the edit keeps the meter, nothing needs to be read.
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
        let into = into.map(NextMeter::New);
        Self {
            device: old.id().clone(),
            next: into.or_else(|| left.clone().map(NextMeter::Left)),
            left,
            was_behind: old.behind().cloned(),
            above: Vec::new(),
            left_as_read: None,
            is_noted: false,
        }
    }

    /// The meter that must be read next, with a consistent read.
    pub const fn next(&self) -> Option<&DeviceId> {
        match &self.next {
            Some(NextMeter::New(id) | NextMeter::Above(id) | NextMeter::Left(id)) => Some(id),
            None => None,
        }
    }

    /// Takes the meter that [`next`](Self::next) named, as it was read.
    pub fn see(&mut self, found: Option<Device>) -> Result<(), BehindError> {
        match self.next.take() {
            Some(NextMeter::New(id)) => self.see_new(id, found)?,
            Some(NextMeter::Above(id)) => self.climb(id, found)?,
            Some(NextMeter::Left(_)) => self.left_as_read = found,
            None => {}
        }
        Ok(())
    }

    /// Takes the new meter. If the device is already behind this meter and in the meter's list, nothing more is read.
    fn see_new(&mut self, id: DeviceId, found: Option<Device>) -> Result<(), BehindError> {
        let Some(meter) = found else { return Err(BehindError::NoMeter(id)) };
        let is_listed = meter.behind_it().contains(&self.device);
        if self.was_behind.as_ref() == Some(&id) && is_listed {
            self.is_noted = true;
            return Ok(());
        }
        if meter.behind_it().len() >= MAX_BEHIND && !is_listed {
            return Err(BehindError::Full(id));
        }
        self.climb(id, Some(meter))
    }

    /// Takes the new meter or one above it. The next meter is the one above, else the meter that the device leaves.
    fn climb(&mut self, id: DeviceId, found: Option<Device>) -> Result<(), BehindError> {
        let further = found.as_ref().and_then(|device| device.behind().cloned());
        self.above.push((id, found));
        let meter = || self.above[0].0.clone();
        if further.as_ref() == Some(&self.device) {
            return Err(BehindError::Circle { meter: meter(), device: self.device.clone() });
        }

        let is_new = |id: &DeviceId| self.above.iter().all(|(above, _)| above != id);
        // If the stored meters form a circle, the next one was read before.
        let further = further.filter(is_new);
        if further.is_some() && self.above.len() == MAX_METERS_ABOVE {
            return Err(BehindError::TooDeep(meter()));
        }

        let left = self.left.clone().filter(is_new);
        self.next = further.map(NextMeter::Above).or_else(|| left.map(NextMeter::Left));
        Ok(())
    }

    /// The writes and checks to make in one transaction with the write of the device.
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
                // A transaction may have an item only once. This write expects the meter's version, so it also checks
                // the meter's `behind`.
                Some(meter) if left.as_ref() == Some(&id) => forget(meter),
                _ => None,
            };
            companions.push(written.unwrap_or(still));
        }

        companions
    }
}
