//! How a system is started. Starts none.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use api::FrameAncestors;
use domain::{Timestamp, Zone};
use outgoing::Url;
use rollups::Following;
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

/// How much of a table's unused capacity is there for a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Burst {
    /// That of one second: AWS promises no more.
    None,
    /// That of 300 seconds, which AWS keeps at most.
    Full,
}

/// How a system is started.
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
    /// The port of a second address, at which only the ingest function answers and no other does: as on AWS, where
    /// each function has an address of its own. By default one address answers everything.
    pub ingest_port: Option<u16>,
    /// Whether requests need an access token; by default not, because only this machine can send any.
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
    /// The number of days after which rollups of 15 minutes expire; by default they do not. Not less than
    /// that of readings.
    pub quarter_retention_days: Option<u32>,
    /// The number of days after which rollups of a day expire; by default they do not. Not less than that of
    /// 15 minutes.
    pub day_retention_days: Option<u32>,
    /// How soon rollups follow changes; by default as the template's batching window says. A machine
    /// gathers them for a sixtieth of that time.
    pub following: Option<Following>,
    /// The zone of the days by which readings are rolled up, if the table has none yet; UTC by default.
    pub time_zone: Zone,
    /// The number of partitions of the registry's devices; by default that of the table, 1 of a new one.
    pub device_shards: Option<Shards>,
    /// Whether the table has the index by conditions; by default as it is, and a new one has none.
    pub conditions_index: Option<bool>,
    /// Whether the table has the index of attributes; by default as it is, and a new one has none.
    pub attribute_index: Option<bool>,
    /// Whether compressed bodies of text reach the functions as text, by which their bytes are lost; by default
    /// they do not. Nobody says whether API Gateway does that.
    pub gateway_damages_gzip: bool,
    /// Whether the table refuses what is beyond the units that the template provisions, and its burst; by default it
    /// has no bounds.
    pub provisioned: Option<Burst>,
    /// The address of the page, to which messages of alerts lead; by default the one that it listens on.
    pub page_url: Option<String>,
    /// The address that is asked every five minutes, so that somebody notices when it is not; by default none.
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
            following: None,
            time_zone: Zone::UTC,
            device_shards: None,
            conditions_index: None,
            attribute_index: None,
            gateway_damages_gzip: false,
            provisioned: None,
            page_url: None,
            heartbeat: None,
            telemetry: Telemetry::silent(),
        }
    }
}
