//! The way of a source's points to the server: sorted, united, sent as line protocol. Reads no source.
//!
//! They go to the write endpoint and not to `POST /readings`, because a write teaches the devices their units, kinds and
//! names, and maps by the settings of the token: so the points become what the sender itself would have made of them.

mod beside_means;
mod left_out;
mod map;
mod report;
mod selection;
mod send;
mod thin;
mod unite;
mod vacant_hours;
mod watched;

pub(super) use beside_means::beside_no_means;
pub(super) use map::SeriesMap;
pub(super) use report::Report;
pub(super) use selection::Selection;
pub(super) use send::{Sent, send};
pub(super) use thin::{KnownKinds, Thinned};
pub(super) use unite::{Counts, Group, United};
pub(super) use vacant_hours::in_vacant_hours;
pub(super) use watched::Watched;
