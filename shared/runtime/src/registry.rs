//! The registry that the functions share: cached in memory, and read from the table if memory does not have something.
//! Registers new devices and rooms, and edits nothing.

mod cache;
mod devices;
mod found;
mod gone;
mod known_facts;
mod look_up;
mod place_cache;
mod registration;
mod shared_map;
mod snapshot;

pub use cache::CachedRegistry;
pub use devices::Devices;
pub use found::{FoundDevices, PageStart, RoomMembers};
pub use gone::{has_readings, is_gone};
pub use look_up::DeviceDetail;
pub use shared_map::SharedMap;
pub use snapshot::RegistrySnapshot;

/// The factor by which a single fact, such as a device's room in a large fleet, is cached longer than the registry.
/// Each look-up costs a read unit, and in a large fleet most devices never move.
pub const PLACE_AGE_FACTOR: u32 = 60;
