//! Reads the histories of homes that other programs kept, as readings of devices: from files, databases, backups and a
//! running InfluxDB. Knows no command line and no progress bar, and asks nothing of Roomtide.

pub mod address;
pub mod csv;
pub mod exported_lines;
#[cfg(any(test, feature = "fake"))]
#[allow(clippy::unwrap_used, reason = "only tests use it")]
#[path = "tests/fake_server.rs"]
pub mod fake_server;
pub mod growing;
pub mod home_assistant;
pub mod influxdb;
pub mod input;
pub mod kind;
pub mod line;
pub mod line_protocol;
pub mod made_counters;
pub mod notes;
pub mod point;
pub mod points;
pub mod reading;
mod records;
pub mod refusals;
pub mod shelly;
pub mod source;
pub mod sqlite;
pub mod taught;
pub mod temporary;
pub mod text_lines;
pub mod units;

pub use ingest::{LineRules, PointsRead, read_line, read_points, read_reading};
