//! Keeps the rollups in the table equal to their readings, for the rollup function and the command line. Knows no
//! events and no order of work.
//!
//! [`DeviceFolds`] folds one bucket, or all quarters of a range. It reads the version of the stored rollup, then the
//! readings, and puts the fold if the version is still the same. Of two concurrent folds of a bucket, the fold with the
//! older readings is refused and begins again. So when no fold is left, a rollup is the fold of its readings, provided
//! that each change of a reading is followed by a fold.
//!
//! Two rules make this true. A put is never skipped because the rollup looks the same: an older fold may still be on
//! its way, and only the new version refuses it. Nothing is ever deleted: a rollup whose readings are gone stays for
//! some days as an empty rollup.

mod bounds;
mod bucket;
mod device_rules;
mod fold;
mod fresh;
mod late;
mod retention;
mod rollup_delay;
mod sealing;
mod seen_rooms;
mod snapshot;
#[cfg(test)]
mod tests;
mod window;

pub use device_rules::DeviceRules;
pub use fold::{Assumed, DeviceFolds, Folded, Store};
pub use late::LateMarking;
pub use retention::{Retention, is_closing};
pub use rollup_delay::{MARKED_AHEAD, RollupDelay, is_late};
pub use sealing::{
    GRACE, SKEW, is_over, newest_sealable_end, newest_watermark, over_until, part_of_day,
};
pub use seen_rooms::{
    NamedRooms, Registered, SeenRooms, months_of, named_by_readings, named_by_rollup,
};
pub use snapshot::{Change, Snapshot};
pub use window::FoldedWindow;
