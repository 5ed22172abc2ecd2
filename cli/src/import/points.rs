//! The points of a source on their way to readings: selected, sorted by device and time, united, thinned. They stay
//! lines of line protocol, because the code of the function ingest decodes them, as it decodes the lines of a live
//! sender. Reads no source.

mod beside_means;
mod device_point;
mod left_out;
mod line_reader;
mod map;
mod report;
mod selection;
mod thin;
mod unite;
mod vacant_hours;

pub(super) use beside_means::beside_no_means;
pub(super) use device_point::{DevicePoint, DevicesOfSeries};
pub(super) use line_reader::LineReader;
pub(super) use map::SeriesMap;
pub(super) use report::Report;
pub(super) use selection::Selection;
pub(super) use thin::{KnownKinds, Thinned};
pub(super) use unite::{Counts, Group, SentLine, United};
pub(super) use vacant_hours::in_vacant_hours;
