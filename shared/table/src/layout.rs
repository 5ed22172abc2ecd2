//! The table's indexes, and the indexes and partitions that a deployed table has. Writes no key's text.

use domain::DeviceId;

use crate::item::attribute::{CONDITIONS_VALUES, ROOMS};
use crate::keys::{self, Key};
use crate::shards::Shards;

/// A global secondary index of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Index {
    /// The name of the index.
    pub name: &'static str,
    /// The attribute that is the partition key of the index.
    pub partition_key: &'static str,
    /// The attribute that is the sort key of the index.
    pub sort_key: &'static str,
    /// The attributes that the index has, as a projection type of `DynamoDB`.
    pub projection: &'static str,
}

/// The room index: a room's readings, sorted by timestamp.
pub const ROOM_INDEX: Index =
    Index { name: "room-index", partition_key: keys::ROOM, sort_key: keys::SK, projection: "ALL" };

/// The conditions index: rollups of 15 minutes, sorted by their addresses on a Z-order curve.
pub const CONDITIONS_INDEX: Index = Index {
    name: "conditions-index",
    partition_key: keys::CONDITIONS_MONTH,
    sort_key: keys::CONDITIONS_ADDRESS,
    projection: "INCLUDE",
};

/// The attributes that [`CONDITIONS_INDEX`] has besides keys. A search in the index needs no other attributes.
pub const CONDITIONS_ATTRIBUTES: [&str; 3] = [CONDITIONS_VALUES, ROOMS, keys::TTL];

/// The attribute index, which finds devices by the values of their attributes.
pub const ATTRIBUTE_INDEX: Index = Index {
    name: "attribute-index",
    partition_key: keys::ATTRIBUTE,
    sort_key: keys::VALUE,
    projection: "KEYS_ONLY",
};

/// The indexes and partitions that a deployed table has. The default is that of `template.yaml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Whether the table has [`ROOM_INDEX`]. Without this index, a room's readings are merged from its devices.
    pub room_index: bool,
    /// Whether the table has [`CONDITIONS_INDEX`]. Without this index, conditions are searched in all rollups of a
    /// range.
    pub conditions_index: bool,
    /// Whether the table has [`ATTRIBUTE_INDEX`]. Without this index, devices are searched only in a function's memory.
    pub attribute_index: bool,
    /// The number of partitions of the registry's devices.
    pub shards: Shards,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            room_index: true,
            attribute_index: false,
            conditions_index: false,
            shards: Shards::ONE,
        }
    }
}

impl Layout {
    /// The key of a device of the registry.
    pub fn device_key(self, id: &DeviceId) -> Key {
        Key::Device(id.clone(), self.shards.of(id))
    }

    /// The indexes that the table has.
    pub fn indexes(self) -> impl Iterator<Item = &'static Index> {
        let room = self.room_index.then_some(&ROOM_INDEX);
        let attributes = self.attribute_index.then_some(&ATTRIBUTE_INDEX);
        let conditions = self.conditions_index.then_some(&CONDITIONS_INDEX);
        room.into_iter().chain(attributes).chain(conditions)
    }
}
