//! The names of the attributes of readings and registry items. Has no keys of the table or an index.

#![expect(missing_docs, reason = "most are the fields of the same names")]

/// A mark: the sender of a reading named its room; it was not filled in.
pub const NAMED: &str = "_named";
/// The room that the sender of a reading named where a person had chosen another.
pub const NAMED_ROOM: &str = "_named_room";
/// What tells the arrival of a reading without a timestamp from all others.
pub const ARRIVAL: &str = "_arrival";
/// The rooms that a device introduced.
pub const INTRODUCED_ROOMS: &str = "_rooms";
/// The number of times that the item was written, where each write expects the version that it read.
pub const VERSION: &str = "ver";
pub const NAME: &str = "name";
pub const ROOM_AT: &str = "room_at";
pub const KIND: &str = "kind";
pub const TAGS: &str = "tags";
pub const METRICS: &str = "metrics";
pub const FIRST_SEEN: &str = "first_seen";
pub const UNIT: &str = "unit";
pub const MODULUS: &str = "modulus";
pub const MAX_W: &str = "max_w";
pub const DIP: &str = "dip";
pub const SCOPE: &str = "scope";
pub const DEVICES: &str = "devices";
pub const CREATED: &str = "created";
pub const REVOKED: &str = "revoked";
