//! Selects, maps and leaves out points of a source: by the options, and by the readings that the table has. Reads no
//! source.

mod beside_means;
mod left_out;
pub(super) mod map;
mod selection;
mod vacant_hours;

pub(super) use beside_means::beside_no_means;
pub(super) use map::SeriesMap;
pub(super) use selection::{Selection, meet_tags};
pub(super) use vacant_hours::in_vacant_hours;
