//! The only door to the environment: read once, at cold start. Has no defaults of other modules.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use aws::{CaBundle, Credentials, QueueConfig, StoreConfig};
use domain::Timestamp;
use table::layout::Layout;

/// The credentials and the region of the environment, for a command line.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn credentials() -> Result<(Credentials, Option<String>), ConfigError> {
    let lookup = |name| std::env::var(name).ok();
    let region = |name| lookup(name).filter(|value| !value.is_empty());
    let region = region("AWS_REGION").or_else(|| region("AWS_DEFAULT_REGION"));
    Ok((read_credentials(lookup)?, region))
}

/// The root certificates that the environment names, for a command line.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn ca_bundle() -> Result<Option<CaBundle>, ConfigError> {
    read_ca_bundle(std::env::var("AWS_CA_BUNDLE").ok().filter(|path| !path.is_empty()))
}

fn read_credentials(
    lookup: impl Fn(&'static str) -> Option<String>,
) -> Result<Credentials, ConfigError> {
    let optional = |name| lookup(name).filter(|value| !value.is_empty());
    let required = |name| optional(name).ok_or(ConfigError::Missing(name));
    Ok(Credentials {
        access_key_id: required("AWS_ACCESS_KEY_ID")?,
        secret_access_key: required("AWS_SECRET_ACCESS_KEY")?,
        session_token: optional("AWS_SESSION_TOKEN"),
    })
}

/// The configuration that a function reads from its environment.
#[derive(Debug, Clone)]
pub struct Config {
    /// `TABLE_NAME`, `AWS_REGION`, `AWS_ENDPOINT_URL_DYNAMODB` or `AWS_ENDPOINT_URL`, `AWS_CA_BUNDLE`
    /// and the credentials that Lambda sets.
    ///
    /// Lambda replaces an environment before its credentials end, so they are read once.
    pub store: StoreConfig,
    /// `ROOM_INDEX`: how the table is laid out; with its index without it.
    pub layout: Layout,
    /// `DEAD_LETTER_QUEUE_URL`, with `AWS_ENDPOINT_URL_SQS` or `AWS_ENDPOINT_URL`; the registry's alone.
    failures: Option<QueueConfig>,
    /// `AUTH`: whether requests need an access token; `on` without it.
    pub auth: bool,
    /// `REGISTRY_MAX_AGE_SECONDS`: how old the cached registry may grow; 60 without it.
    pub registry_max_age: Duration,
    /// `EARLIEST_TIMESTAMP`: readings before it are refused; [`EARLIEST_TIMESTAMP`] without it.
    pub earliest_timestamp: Timestamp,
    /// `RETENTION_DAYS`: after how many days a reading is deleted; never without it or with 0.
    pub retention_days: Option<u32>,
}

/// Readings before it come from clocks that were never set, which begin at 1970.
pub const EARLIEST_TIMESTAMP: &str = "2000-01-01T00:00:00Z";

/// An error in the environment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A variable that has to be there is not.
    #[error("the environment variable {0} is not set")]
    Missing(&'static str),
    /// A variable that cannot be read.
    #[error("the environment variable {name} is {value:?}; expected {expected}")]
    Unreadable {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// The expected form.
        expected: &'static str,
    },
}

impl Config {
    /// Reads the process's environment.
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::read(|name| std::env::var(name).ok())
    }

    /// The queue of what the registry can never apply.
    pub fn failures(&self) -> Result<&QueueConfig, ConfigError> {
        self.failures.as_ref().ok_or(ConfigError::Missing("DEAD_LETTER_QUEUE_URL"))
    }

    fn read(lookup: impl Fn(&'static str) -> Option<String>) -> Result<Self, ConfigError> {
        let optional = |name| lookup(name).filter(|value| !value.is_empty());
        let required = |name| optional(name).ok_or(ConfigError::Missing(name));
        let (region, credentials) = (required("AWS_REGION")?, read_credentials(&lookup)?);
        let endpoint = |service| optional(service).or_else(|| optional("AWS_ENDPOINT_URL"));
        let ca_bundle = read_ca_bundle(optional("AWS_CA_BUNDLE"))?;
        let days: u32 = number("RETENTION_DAYS", optional("RETENTION_DAYS"), 0)?;
        let age = optional("REGISTRY_MAX_AGE_SECONDS");
        Ok(Self {
            store: StoreConfig {
                table: required("TABLE_NAME")?,
                region: region.clone(),
                endpoint: endpoint("AWS_ENDPOINT_URL_DYNAMODB"),
                credentials: credentials.clone(),
                ca_bundle: ca_bundle.clone(),
            },
            layout: Layout { room_index: switch("ROOM_INDEX", optional("ROOM_INDEX").as_deref())? },
            failures: optional("DEAD_LETTER_QUEUE_URL").map(|url| QueueConfig {
                url,
                region,
                endpoint: endpoint("AWS_ENDPOINT_URL_SQS"),
                credentials,
                ca_bundle,
            }),
            auth: switch("AUTH", optional("AUTH").as_deref())?,
            earliest_timestamp: timestamp("EARLIEST_TIMESTAMP", optional("EARLIEST_TIMESTAMP"))?,
            registry_max_age: Duration::from_secs(number("REGISTRY_MAX_AGE_SECONDS", age, 60)?),
            retention_days: (days > 0).then_some(days),
        })
    }
}

/// On unless it is off.
fn switch(name: &'static str, value: Option<&str>) -> Result<bool, ConfigError> {
    match value {
        None | Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(value) => {
            Err(ConfigError::Unreadable { name, value: value.to_owned(), expected: "on or off" })
        }
    }
}

/// The certificates of a file, if one is named.
fn read_ca_bundle(path: Option<String>) -> Result<Option<CaBundle>, ConfigError> {
    let Some(path) = path else { return Ok(None) };
    let bundle = CaBundle::read(Path::new(&path)).map_err(|_| ConfigError::Unreadable {
        name: "AWS_CA_BUNDLE",
        value: path,
        expected: "a file of PEM certificates",
    })?;
    Ok(Some(bundle))
}

fn timestamp(name: &'static str, value: Option<String>) -> Result<Timestamp, ConfigError> {
    let value = value.unwrap_or_else(|| EARLIEST_TIMESTAMP.to_owned());
    Timestamp::parse_absolute(&value).map_err(|_| ConfigError::Unreadable {
        name,
        value,
        expected: "a timestamp such as 2000-01-01T00:00:00Z",
    })
}

fn number<T: FromStr>(
    name: &'static str,
    value: Option<String>,
    default: T,
) -> Result<T, ConfigError> {
    let Some(value) = value else { return Ok(default) };
    value.parse().map_err(|_| ConfigError::Unreadable { name, value, expected: "a whole number" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(overrides: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let base = [
            ("TABLE_NAME", "t"),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
        ];
        Config::read(|name| {
            let found = overrides.iter().chain(&base).find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_defaults_suffice() {
        let config = read(&[]).expect("complete");
        assert!(config.auth && config.layout.room_index && config.store.endpoint.is_none());
        assert_eq!(config.registry_max_age, Duration::from_secs(60));
        assert_eq!(config.retention_days, None);
        assert_eq!(config.earliest_timestamp.to_string(), "2000-01-01T00:00:00.000Z");
        assert!(!format!("{config:?}").contains("secret"));
    }

    #[test]
    fn an_error_names_the_variable() {
        assert_eq!(read(&[("TABLE_NAME", "")]).unwrap_err(), ConfigError::Missing("TABLE_NAME"));
        for (name, value) in [
            ("ROOM_INDEX", "maybe"),
            ("AUTH", "no"),
            ("AWS_CA_BUNDLE", "/nowhere.pem"),
            ("RETENTION_DAYS", "-1"),
            ("EARLIEST_TIMESTAMP", "-30d"),
            ("REGISTRY_MAX_AGE_SECONDS", "1m"),
        ] {
            let error = read(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }
}
