//! The outcomes of writes that are not errors. Writes nothing.

use domain::{Deletion, Device, DeviceId, Room};
use futures_util::{StreamExt as _, stream};

use crate::{LateChanges, StoreError, StoreResult};

/// The outcome of [`AddArrival`](crate::AddArrival).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// The reading is stored.
    Stored,
    /// Not stored, because another reading of the device has this timestamp.
    Taken,
}

/// The outcome of a batch of writes or deletions: the entries that may have failed. All others are done.
#[derive(Debug, Default)]
pub struct PutOutcome {
    /// The positions of the entries that may have failed, ascending.
    pub not_stored: Vec<usize>,
    /// The error of the first entry that failed.
    pub cause: Option<StoreError>,
}

impl PutOutcome {
    /// Makes writes, at most `most` at once. Their positions in the outcome are those in `writes`.
    pub(crate) async fn of_all<F>(most: usize, writes: impl IntoIterator<Item = F>) -> Self
    where
        F: Future<Output = StoreResult<()>> + Send,
    {
        // All writes are collected first, so that the future does not hold the caller's iterator.
        let writes: Vec<_> = writes.into_iter().map(Box::pin).collect();
        Self::of(stream::iter(writes).buffered(most).collect::<Vec<_>>().await)
    }

    /// The outcome of writes that were made one by one, in the order of their entries.
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

/// The outcome of a put that is only done if there is no item under its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InsertOutcome<T> {
    /// The given item is stored.
    Inserted,
    /// There was an item already, which was not changed.
    Exists(T),
}

/// The outcome of the registration of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registration {
    /// The given device is registered.
    Inserted,
    /// This device is registered: it was before, or it has just replaced a tombstone.
    Exists(Box<Device>),
    /// The device is being deleted, and is not registered.
    Deleted(Deletion),
}

/// The outcome of an update. A failed condition returns an `F`: the stored item or a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateOutcome<T, F = T> {
    /// The update is written. Has the whole updated item.
    Updated(T),
    /// A condition failed and nothing is written. Has the stored item or the reason; `None` if there is no item.
    ConditionFailed(Option<F>),
}

/// The outcome of counting the devices that a sender introduces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// The devices are counted.
    Counted,
    /// With these devices there would be more than the limit, so none is counted. Has the stored number.
    BeyondLimit {
        /// The number that is stored.
        stored: usize,
    },
}

/// The outcome of storing marks of late changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarksOutcome {
    /// The marks are stored.
    Stored,
    /// The stored marks have another version than expected, and were not changed.
    Outdated(LateChanges),
}

/// The outcome of a request to delete a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BegunDeletion {
    /// The deletion, which began now or before.
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
