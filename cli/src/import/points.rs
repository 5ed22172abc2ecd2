//! The points of a source as a person wants them, and what the table has beside them. Reads no source.

mod beside_means;
mod left_out;
pub(super) mod map;
mod selection;
mod vacant_hours;

pub(super) use beside_means::beside_no_means;
pub(super) use map::SeriesMap;
pub(super) use selection::{Selection, meet_tags};
pub(super) use vacant_hours::in_vacant_hours;
