//! A room of the registry, and a person's edit of it.

use super::{Edit, RoomId, Timestamp};

/// A room as the registry knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// The id that readings carry.
    pub id: RoomId,
    /// What people see, once somebody has said it.
    pub name: Option<String>,
    /// The timestamp of its earliest reading.
    pub first_seen: Timestamp,
}

/// What a person changes of a room.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoomPatch {
    /// The name.
    pub name: Edit<String>,
}
