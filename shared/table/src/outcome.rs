//! The outcomes of writes that are not errors. Writes nothing.

use crate::{StoreError, StoreResult};
use domain::{Deletion, Device, DeviceId, Room};

/// The outcome of [`AddArrival`](crate::AddArrival).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// The reading is stored.
    Stored,
    /// Another reading of the device has this timestamp.
    Taken,
}

/// The outcome of a batch of writes or deletions: the entries that were perhaps not done. All others are done.
#[derive(Debug, Default)]
pub struct PutOutcome {
    /// The positions of the entries that were perhaps not done, ascending.
    pub not_stored: Vec<usize>,
    /// The error, if an entry was not done.
    pub cause: Option<StoreError>,
}

impl PutOutcome {
    /// The outcome of single writes, in the order of their entries.
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
    /// The item is stored as given.
    Inserted,
    /// There was an item already, which stays.
    Exists(T),
}

/// The outcome of the registration of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registration {
    /// The device is registered as given.
    Inserted,
    /// The device is registered: it was before, or has just replaced a deleted one.
    Exists(Box<Device>),
    /// The device is being deleted, and is not registered.
    Deleted(Deletion),
}

/// The outcome of an update. `F` is the stored item if a condition failed, or the reason of the failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateOutcome<T, F = T> {
    /// The update is written. Has the whole updated item.
    Updated(T),
    /// A condition failed and nothing is written. Has the stored item or the reason; `None` if there is no item.
    ConditionFailed(Option<F>),
}

/// The outcome of a request to delete a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BegunDeletion {
    /// The deletion, which was begun now or before.
    Deletion(Deletion),
    /// The device does not exist.
    NoDevice,
    /// The deletion is refused, because these devices are behind the device.
    Meter(Vec<DeviceId>),
}

/// The result of a person's edit of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The edited device.
    pub device: Device,
    /// The room into which the edit moved the device.
    pub room: Option<Room>,
}
