//! The settings of the `query` function. Reads no environment.

use std::time::Duration;

use api::FrameAncestors;
use outgoing::Reach;
use rollups::RollupDelay;
use runtime::auth::Auth;
use runtime::config::{Config, MaxUnits};

/// The settings of the `query` function.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The age at which the cached registry is read again.
    pub registry_max_age: Duration,
    /// The requests that need an access token.
    pub auth: Auth,
    /// The origin at which readings are stored, if it is not the page's own.
    pub ingest_url: Option<String>,
    /// The command of this server, if the owner calls it by a name other than `roomtide`.
    pub command: Option<String>,
    /// The option that names the data of this server in its commands, such as `--data-dir 'mine'`.
    pub data_option: Option<String>,
    /// The origins whose pages may show the web page in a frame.
    pub frame_ancestors: FrameAncestors,
    /// The delay with which rollups follow readings.
    pub rollup_delay: RollupDelay,
    /// The table's maximum throughput in units a second; `None` without a limit.
    pub max_units: Option<MaxUnits>,
    /// The addresses to which alert channels may connect.
    pub reach: Reach,
    /// The topic of Amazon SNS to which e-mails of alerts may be published.
    pub alert_topic: Option<String>,
}

impl Default for Settings {
    /// The defaults of a deployed function.
    fn default() -> Self {
        Self {
            registry_max_age: Duration::from_secs(60),
            auth: Auth::On,
            ingest_url: None,
            command: None,
            data_option: None,
            frame_ancestors: FrameAncestors::default(),
            rollup_delay: RollupDelay::default(),
            max_units: None,
            reach: Reach::Public,
            alert_topic: None,
        }
    }
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Self {
            registry_max_age: config.registry_max_age,
            auth: config.auth,
            ingest_url: config.ingest_url.clone(),
            frame_ancestors: config.frame_ancestors.clone(),
            rollup_delay: RollupDelay::gathering_for(config.rollup_window),
            max_units: Some(config.max_units),
            alert_topic: config.alert_topic.clone(),
            ..Self::default()
        }
    }
}
