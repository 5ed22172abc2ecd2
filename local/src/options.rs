//! The options with which a system starts. Starts none.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use api::FrameAncestors;
use domain::{Timestamp, Zone};
use outgoing::Url;
use rollups::RollupDelay;
use runtime::telemetry::Telemetry;
use table::shards::Shards;

/// Where the table is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// In a temporary directory, which is removed when the system ends.
    Memory,
    /// In this directory, which is created if it is missing.
    Dir(PathBuf),
}

/// How much unused capacity of a table can be used in a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Burst {
    /// The capacity of one second: AWS promises no more.
    None,
    /// The capacity of 300 seconds, the most that AWS keeps.
    Full,
}

/// The options with which a system starts.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the table is kept; in memory by default.
    pub data: Data,
    /// Whether the API is served over HTTP; by default it is. Otherwise only this process can send requests.
    pub listens: bool,
    /// The address to listen on; loopback by default.
    pub host: IpAddr,
    /// The port to listen on; by default 0, any free one.
    pub port: u16,
    /// The port of a second address that only the ingest function answers, as on AWS, where each function has an
    /// address of its own. By default one address serves everything.
    pub ingest_port: Option<u16>,
    /// Whether requests need an access token; by default not, because only this machine can send requests.
    pub auth: bool,
    /// The origins whose pages may show the web page in a frame; by default none.
    pub frame_ancestors: FrameAncestors,
    /// The greatest age of the functions' registry caches; 1 second by default, so that a person sees a
    /// new device at once.
    pub registry_max_age: Duration,
    /// The timestamp before which readings are refused; by default the functions' own.
    pub earliest_timestamp: Timestamp,
    /// The number of days after which readings expire; by default they do not.
    pub retention_days: Option<u32>,
    /// The number of days after which rollups of 15 minutes expire; by default they do not. At least `retention_days`.
    pub quarter_retention_days: Option<u32>,
    /// The number of days after which rollups of a day expire; by default they do not. At least
    /// `quarter_retention_days`.
    pub day_retention_days: Option<u32>,
    /// How soon rollups follow changes; by default after the template's batching window. A machine gathers changes for
    /// a sixtieth of that time.
    pub rollup_delay: Option<RollupDelay>,
    /// The time zone of the days of rollups, for a table that has none yet; UTC by default.
    pub time_zone: Zone,
    /// The number of partitions of the registry's devices; by default the table's number, or 1 for a new table.
    pub device_shards: Option<Shards>,
    /// Whether the table has the index by conditions; by default unchanged, and a new table has none.
    pub conditions_index: Option<bool>,
    /// Whether the table has the index of attributes; by default unchanged, and a new table has none.
    pub attribute_index: Option<bool>,
    /// Whether the table refuses requests beyond the template's provisioned units and this burst; by default the table
    /// has no limit.
    pub provisioned: Option<Burst>,
    /// The address of the web page, for links in messages of alerts; by default the address that this system listens
    /// on.
    pub page_url: Option<String>,
    /// The command as its user calls it, for command lines on the web page; `roomtide` by default.
    pub command: Option<String>,
    /// The option that names the data in such command lines; `None` if the commands find the data without an option.
    pub data_option: Option<String>,
    /// A URL that is requested every five minutes, so that a monitoring service notices a stopped system; by default
    /// none.
    pub heartbeat: Option<Url>,
    /// Where the functions' log events go; nowhere by default.
    pub telemetry: Telemetry,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            data: Data::Memory,
            listens: true,
            host: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            ingest_port: None,
            auth: false,
            frame_ancestors: FrameAncestors::default(),
            registry_max_age: Duration::from_secs(1),
            earliest_timestamp: ingest::Settings::default().earliest_timestamp,
            retention_days: None,
            quarter_retention_days: None,
            day_retention_days: None,
            rollup_delay: None,
            time_zone: Zone::UTC,
            device_shards: None,
            conditions_index: None,
            attribute_index: None,
            provisioned: None,
            page_url: None,
            command: None,
            data_option: None,
            heartbeat: None,
            telemetry: Telemetry::silent(),
        }
    }
}
