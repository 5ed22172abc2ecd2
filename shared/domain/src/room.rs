//! A room of the registry, and a person's edits of it. No I/O.

use super::{Edit, Label, RoomId, Timestamp};

/// A room as the registry knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// The id in readings.
    pub id: RoomId,
    /// The name that people see; a person sets it.
    pub name: Option<Label>,
    /// The timestamp of its earliest reading.
    pub first_seen: Timestamp,
}

/// A person's edit of a room.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoomPatch {
    /// The name.
    pub name: Edit<Label>,
}
