//! A room of the registry, and a person's edits of it. No I/O.

use serde::Deserialize;

use super::{Edit, HomeId, Label, RoomId, Timestamp};

/// A room as the registry knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// The id of the room in readings.
    pub id: RoomId,
    /// The name that people see; a person sets it.
    pub name: Option<Label>,
    /// The home of the room; a person sets it. No item lists homes: a home exists while a room names it.
    pub home: Option<HomeId>,
    /// Whether the room is outside, if a person has decided. A flag for people: no sum and no mean uses it.
    pub outside: Option<bool>,
    /// The timestamp of the room's earliest reading.
    pub first_seen: Timestamp,
}

impl Room {
    /// A room that no person has edited.
    pub const fn new(id: RoomId, first_seen: Timestamp) -> Self {
        Self { id, name: None, home: None, outside: None, first_seen }
    }
}

/// A person's edit of a room.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoomPatch {
    /// The name.
    pub name: Edit<Label>,
    /// The home.
    pub home: Edit<HomeId>,
    /// Whether the room is outside.
    pub outside: Edit<bool>,
}

impl RoomPatch {
    /// Applies the edit to a room.
    pub fn apply(&self, room: &mut Room) {
        self.name.apply(&mut room.name);
        self.home.apply(&mut room.home);
        self.outside.apply(&mut room.outside);
    }
}
