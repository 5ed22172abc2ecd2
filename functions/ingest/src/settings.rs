//! The settings of the function. Reads no environment.

use std::time::Duration;

use chrono::TimeDelta;
use domain::{Timestamp, Zone};
use rollups::MARKED_AHEAD;
use runtime::auth::Auth;
use runtime::config::{Config, EARLIEST_TIMESTAMP, MaxUnits};

/// The settings of the function.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The age at which the cached registry is read again.
    pub registry_max_age: Duration,
    /// The earliest accepted timestamp. An earlier one comes from a clock that was never set.
    pub earliest_timestamp: Timestamp,
    /// The number of days after which a reading is deleted; `None`: never.
    pub retention_days: Option<u32>,
    /// The largest number of devices that a write token may introduce.
    pub max_devices_per_token: u32,
    /// Who needs an access token.
    pub auth: Auth,
    /// How long a late mark, which announces changes of past readings, is valid before the next is written.
    pub late_ahead: TimeDelta,
    /// The home's time zone for a table without rollups. Existing rollups keep their own zone.
    pub time_zone: Zone,
    /// The largest numbers of units that the table may consume in a second; `None` if there are no limits.
    pub max_units: Option<MaxUnits>,
}

impl Default for Settings {
    /// The settings of a deployed function if no environment variable changes them.
    fn default() -> Self {
        let earliest = Timestamp::parse_absolute(EARLIEST_TIMESTAMP);
        Self {
            registry_max_age: Duration::from_secs(60),
            earliest_timestamp: earliest.expect("it is a timestamp"),
            retention_days: None,
            max_devices_per_token: 1_000,
            auth: Auth::On,
            late_ahead: MARKED_AHEAD,
            time_zone: Zone::UTC,
            max_units: None,
        }
    }
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Self {
            registry_max_age: config.registry_max_age,
            earliest_timestamp: config.earliest_timestamp,
            retention_days: config.retention_days,
            max_devices_per_token: config.max_devices_per_token,
            auth: config.auth,
            late_ahead: MARKED_AHEAD,
            time_zone: config.time_zone,
            max_units: Some(config.max_units),
        }
    }
}
