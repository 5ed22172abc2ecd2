//! The settings of the function. Reads no environment.

use chrono::TimeDelta;
use domain::Zone;
use rollups::{Retention, RollupDelay};
use runtime::config::Config;

/// The settings of the function.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The time zone of local days, if the stored state has no zone yet.
    pub zone: Zone,
    /// How long readings and rollups are kept.
    pub retention: Retention,
    /// How soon rollups follow changes of readings.
    pub rollup_delay: RollupDelay,
    /// The largest number of read units that the table may consume in a second.
    pub max_read_units: u32,
    /// The largest number of write units that the table may consume in a second.
    pub max_write_units: u32,
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        let days = |days: Option<u32>| days.map(|days| TimeDelta::days(days.into()));
        Self {
            zone: config.time_zone,
            retention: Retention {
                readings: days(config.retention_days),
                quarters: days(config.quarter_retention_days),
                days: days(config.day_retention_days),
            },
            rollup_delay: RollupDelay::gathering_for(config.rollup_window),
            max_read_units: config.max_units.read,
            max_write_units: config.max_units.write,
        }
    }
}
