//! The registry as the functions share it: in memory, and from the table where memory lacks something. Registers what is
//! new, and edits nothing.

mod cache;
mod devices;
mod found;
mod gone;
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
pub use snapshot::Snapshot;

/// The longest age of what is remembered in a fleet, such as a device's room, in ages of a cached registry. Each look-up
/// costs a read unit, and in a large fleet most devices never move.
pub const PLACE_AGE_FACTOR: u32 = 60;
