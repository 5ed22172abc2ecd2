//! The settings of the function. Reads no environment.

use outgoing::{Reach, Url, UrlError};
use runtime::config::Config;

/// The settings of the function.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address of the web page for links in messages; empty if nobody can reach the page.
    pub page_url: String,
    /// The address that gets a request every five minutes.
    pub heartbeat: Option<Url>,
}

/// The heartbeat address is not a URL.
#[derive(Debug, thiserror::Error)]
#[error("HEARTBEAT_URL {0}")]
pub struct HeartbeatError(#[from] UrlError);

impl TryFrom<&Config> for Settings {
    type Error = HeartbeatError;

    fn try_from(config: &Config) -> Result<Self, HeartbeatError> {
        let heartbeat = config.heartbeat_url.as_deref();
        Ok(Self {
            page_url: config.page_url.clone().unwrap_or_default(),
            heartbeat: heartbeat.map(|address| Url::parse(address, Reach::Public)).transpose()?,
        })
    }
}
