//! The points of a source on their way to readings: sorted by device and time, united, thinned. They stay lines of line
//! protocol, because the code of the function ingest decodes them, as it decodes the lines of a live sender. Reads no
//! source.

pub mod device_point;
pub mod line_reader;
pub mod thin;
pub mod unite;
