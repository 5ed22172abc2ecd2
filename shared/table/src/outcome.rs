//! The outcomes of writes that are not errors. Writes nothing.

use crate::{StoreError, StoreResult};
use domain::{Deletion, Device, DeviceId, Room};

/// The outcome of [`AddArrival`](crate::AddArrival).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It is stored.
    Stored,
    /// Another reading of the device has this timestamp.
    Taken,
}

/// The readings that were perhaps not stored, or not deleted. The others are done.
#[derive(Debug, Default)]
pub struct PutOutcome {
    /// The positions of the readings that are perhaps not done, ascending.
    pub not_stored: Vec<usize>,
    /// The error, if any reading is not done.
    pub cause: Option<StoreError>,
}

impl PutOutcome {
    /// What came of single writes, in the order of what they store or delete.
    pub fn of(written: impl IntoIterator<Item = StoreResult<()>>) -> Self {
        let mut outcome = Self::default();
        for (position, written) in written.into_iter().enumerate() {
            if let Err(error) = written {
                outcome.not_stored.push(position);
                outcome.cause.get_or_insert(error);
            }
        }
        outcome
    }
}

/// The outcome of a put that expects no item under its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InsertOutcome<T> {
    /// It is stored as given.
    Inserted,
    /// This item was there and stays.
    Exists(T),
}

/// The outcome of the registration of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registration {
    /// It is registered as given.
    Inserted,
    /// This device is there: it was before, or has just replaced a deleted one.
    Exists(Box<Device>),
    /// The device is being deleted: it is not registered.
    Deleted(Deletion),
}

/// The outcome of an update. `F` is the item where a condition failed, or why it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateOutcome<T, F = T> {
    /// The update is written; this is the whole item now.
    Updated(T),
    /// A condition failed and nothing is written: the item was this, or this is why, or it was not there.
    ConditionFailed(Option<F>),
}

/// The outcome of the wish to delete a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BegunDeletion {
    /// The deletion that was begun or already under way.
    Deletion(Deletion),
    /// There is no device.
    NoDevice,
    /// Nothing is begun: these devices are behind it.
    Meter(Vec<DeviceId>),
}

/// A person's edit of a device, done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The device now.
    pub device: Device,
    /// The room that the edit moved the device into.
    pub room: Option<Room>,
}
