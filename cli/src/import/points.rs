//! The way of a source's points to the server: sorted, united, sent as line protocol. Reads no source.
//!
//! Points go to the write endpoint, not to `POST /readings`: a write also registers units, kinds and names, and maps
//! tags by the token's settings. So the devices are the same as if the original sender had written the points.

mod beside_means;
mod left_out;
mod map;
mod report;
mod selection;
mod send;
mod thin;
mod unite;
mod vacant_hours;

pub(super) use beside_means::beside_no_means;
pub(super) use map::SeriesMap;
pub(super) use report::Report;
pub(super) use selection::Selection;
pub(super) use send::{PointOptions, send};
pub(super) use thin::{KnownKinds, Thinned};
pub(super) use unite::{Counts, Group, United};
pub(super) use vacant_hours::in_vacant_hours;
