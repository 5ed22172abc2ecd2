//! Turns drafts and lines into readings, and names the bad ones. Reads and writes no table.

mod assemble;
mod batch;
mod fetched;
pub(crate) mod line_points;
mod payloads;
mod read_lines;

pub(crate) use assemble::assemble;
#[cfg(test)]
pub(crate) use assemble::place_all;
pub use assemble::read_reading;
pub(crate) use batch::{Assembled, PlacedReadings};
pub(crate) use fetched::MAX_FETCHED_DEVICES;
pub use read_lines::{LineRules, LineTextError, LineTexts, PointsRead, read_line, read_points};
