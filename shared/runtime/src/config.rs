//! The only place that reads the environment, once, at cold start. Has no defaults of other modules.

use std::num::NonZeroU32;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use api::FrameAncestors;
use aws::{CaBundle, Credentials, QueueConfig, ServiceConfig, StoreConfig};
use domain::{Timestamp, Zone};
use table::layout::Layout;
use table::shards::Shards;

use crate::auth::Auth;

/// The command as it was called, such as `roomtide` or `target/debug/roomtide`, for command lines that a person pastes.
pub fn called_as() -> Option<String> {
    std::env::args_os().next()?.into_string().ok()
}

/// The credentials and the region in the environment, for the command line.
pub fn credentials() -> Result<(Credentials, Option<String>), ConfigError> {
    let variables = Variables(environment);
    let region = variables.text("AWS_REGION").or_else(|| variables.text("AWS_DEFAULT_REGION"));
    Ok((variables.credentials()?, region))
}

/// The endpoint in the variable `service`, else in `AWS_ENDPOINT_URL`, for the command line.
pub fn endpoint(service: &'static str) -> Option<String> {
    let variables = Variables(environment);
    variables.text(service).or_else(|| variables.text("AWS_ENDPOINT_URL"))
}

/// The root certificates that the environment names, for the command line.
pub fn ca_bundle() -> Result<Option<CaBundle>, ConfigError> {
    Variables(environment).ca_bundle()
}

/// The zone in the variable `TZ`, for the command line; `None` if the variable is not set or means the machine's zone.
pub fn time_zone() -> Option<String> {
    zone_name(&Variables(environment).text("TZ")?)
}

/// The name of the zone in a value of `TZ`. POSIX allows a colon before the name, and a path into the zone database.
fn zone_name(text: &str) -> Option<String> {
    let zone = text.trim_start_matches(':');
    let name = zone.split_once("/zoneinfo/").map_or(zone, |(_, name)| name);
    (!name.is_empty() && name != "/etc/localtime").then(|| name.to_owned())
}

#[expect(clippy::disallowed_methods, reason = "this is the door")]
fn environment(name: &'static str) -> Option<String> {
    std::env::var(name).ok()
}

/// The largest numbers of capacity units that a table may consume in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxUnits {
    /// The read units.
    pub read: u32,
    /// The write units.
    pub write: u32,
}

/// The configuration that a function reads from its environment.
#[derive(Debug, Clone)]
pub struct Config {
    /// `TABLE_NAME`, `AWS_REGION`, `AWS_ENDPOINT_URL_DYNAMODB` or `AWS_ENDPOINT_URL`, `AWS_CA_BUNDLE`
    /// and the credentials that Lambda sets.
    ///
    /// Lambda replaces an instance before its credentials expire, so they are read only once.
    pub store: StoreConfig,
    /// The layout of the table: `ROOM_INDEX`, on by default; `ATTRIBUTE_INDEX` and `CONDITIONS_INDEX`, off by default;
    /// `DEVICE_SHARDS`, 1 by default.
    pub layout: Layout,
    /// `DEAD_LETTER_QUEUE_URL`, with `AWS_ENDPOINT_URL_SQS` or `AWS_ENDPOINT_URL`; for stream consumers only.
    failures: Option<QueueConfig>,
    /// `ROLLUP_QUEUE_URL`, with the same endpoints; for the rollup function only.
    work: Option<QueueConfig>,
    /// `AUTH`: whether requests need an access token; `on` by default.
    pub auth: Auth,
    /// `STACK_NAME`: the stack to which metrics belong; `local` by default.
    pub stack: String,
    /// `LOG_EVERY`: every n-th successful invocation is logged; 1 by default.
    pub log_every: u32,
    /// `INGEST_URL`: the origin at which readings are stored, if it differs from the page's origin.
    pub ingest_url: Option<String>,
    /// `FRAME_ANCESTORS`: the origins whose pages may show the web page in a frame; no origin by default.
    pub frame_ancestors: FrameAncestors,
    /// `REGISTRY_MAX_AGE_SECONDS`: the age at which the cached registry is read again; 60 by default.
    pub registry_max_age: Duration,
    /// `EARLIEST_TIMESTAMP`: readings with earlier timestamps are refused; [`EARLIEST_TIMESTAMP`] by default.
    pub earliest_timestamp: Timestamp,
    /// `MAX_DEVICES_PER_TOKEN`: the largest number of devices that a write token may introduce; 1,000 by default.
    pub max_devices_per_token: u32,
    /// `RETENTION_DAYS`: the number of days after which a reading is deleted; never by default or with 0.
    pub retention_days: Option<u32>,
    /// `QUARTER_RETENTION_DAYS`: the same for rollups of 15 minutes, which are kept at least as long as readings.
    pub quarter_retention_days: Option<u32>,
    /// `DAY_RETENTION_DAYS`: the same for rollups of a day, which are kept at least as long as rollups of 15 minutes.
    pub day_retention_days: Option<u32>,
    /// `TIME_ZONE`: the time zone of the days of rollups; UTC by default.
    pub time_zone: Zone,
    /// `ROLLUP_WINDOW_SECONDS`: how long changes of past readings are gathered before the rollups are updated; 60 by
    /// default.
    pub rollup_window: Duration,
    /// `ALERT_TOPIC`: the topic of Amazon SNS to which e-mails of alerts are published.
    pub alert_topic: Option<String>,
    /// `PAGE_URL`: the address of the page, to which messages of alerts lead.
    pub page_url: Option<String>,
    /// `HEARTBEAT_URL`: the address that is called every five minutes, so that somebody notices when the calls stop.
    pub heartbeat_url: Option<String>,
    /// `ALERTING_FUNCTION`: the function that sends messages, for functions that tell it when messages wait.
    pub alerting_function: Option<String>,
    /// `INGEST_FUNCTION`: the function that stores readings, for the function that fetches them.
    pub ingest_function: Option<String>,
    /// `FETCHING_FUNCTION`: the function that fetches from sources, for requests that test a source.
    pub fetching_function: Option<String>,
    /// Amazon SNS: region, credentials and certificates as above, with `AWS_ENDPOINT_URL_SNS` or `AWS_ENDPOINT_URL`.
    pub sns: ServiceConfig,
    /// Lambda: the same, with `AWS_ENDPOINT_URL_LAMBDA` or `AWS_ENDPOINT_URL`.
    pub lambda: ServiceConfig,
    /// `MAX_READ_UNITS` and `MAX_WRITE_UNITS`: the largest numbers of units a second that the table may consume, or its
    /// room index if that may consume fewer; 500 by default.
    pub max_units: MaxUnits,
}

/// The stack name of a function that belongs to no stack.
pub const LOCAL: &str = "local";
/// The default for the earliest timestamp. Earlier readings come from clocks that count from 1970 and were never set.
pub const EARLIEST_TIMESTAMP: &str = "2000-01-01T00:00:00Z";

/// An error in the environment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A required variable is not set.
    #[error("the environment variable {0} is not set")]
    Missing(&'static str),
    /// A variable that cannot be read.
    #[error("the environment variable {name} is {value:?}; expected {expected}")]
    Unreadable {
        /// The variable's name.
        name: &'static str,
        /// The variable's value.
        value: String,
        /// The expected form.
        expected: &'static str,
    },
    /// Data would be kept for a shorter time than the finer data that it is made from.
    #[error(
        "{name} is {days} and {finer} is {finer_days}; rollups are kept at least as long as the data that they sum up; 0 means for ever"
    )]
    Shorter {
        /// The variable of the retention that is too short.
        name: &'static str,
        /// The days of the retention that is too short.
        days: u32,
        /// The variable of the retention that it is compared with.
        finer: &'static str,
        /// The days of the retention that it is compared with.
        finer_days: u32,
    },
}

impl Config {
    /// Reads the process's environment.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::read(environment)
    }

    /// The queue of the rollup function's work.
    pub fn work(&self) -> Result<&QueueConfig, ConfigError> {
        self.work.as_ref().ok_or(ConfigError::Missing("ROLLUP_QUEUE_URL"))
    }

    /// The queue for items that a consumer of the stream can never apply.
    pub fn failures(&self) -> Result<&QueueConfig, ConfigError> {
        self.failures.as_ref().ok_or(ConfigError::Missing("DEAD_LETTER_QUEUE_URL"))
    }

    fn read(lookup: impl Fn(&'static str) -> Option<String>) -> Result<Self, ConfigError> {
        let variables = Variables(lookup);
        let aws = variables.service("AWS_ENDPOINT_URL")?;
        let service = |endpoint| ServiceConfig {
            endpoint: variables.text(endpoint).or_else(|| aws.endpoint.clone()),
            ..aws.clone()
        };
        let queue = |name| {
            let ServiceConfig { region, endpoint, credentials, ca_bundle } =
                service("AWS_ENDPOINT_URL_SQS");
            let url = variables.text(name)?;
            Some(QueueConfig { url, region, endpoint, credentials, ca_bundle })
        };
        let [retention_days, quarter_retention_days, day_retention_days] = variables
            .retentions(["RETENTION_DAYS", "QUARTER_RETENTION_DAYS", "DAY_RETENTION_DAYS"])?;

        Ok(Self {
            store: variables.store(service("AWS_ENDPOINT_URL_DYNAMODB"))?,
            layout: variables.layout()?,
            failures: queue("DEAD_LETTER_QUEUE_URL"),
            work: queue("ROLLUP_QUEUE_URL"),
            auth: variables.auth()?,
            stack: variables.text("STACK_NAME").unwrap_or_else(|| LOCAL.to_owned()),
            log_every: variables.read("LOG_EVERY", "a whole number from 1", NonZeroU32::MIN)?.get(),
            ingest_url: variables
                .parsed("INGEST_URL", HOST, None, |text| origin(text).map(Some))?,
            frame_ancestors: variables.read(
                "FRAME_ANCESTORS",
                "origins such as https://home.example.org:8123, separated by spaces",
                FrameAncestors::default(),
            )?,
            alert_topic: variables.text("ALERT_TOPIC"),
            page_url: variables.text("PAGE_URL"),
            heartbeat_url: variables.text("HEARTBEAT_URL"),
            alerting_function: variables.text("ALERTING_FUNCTION"),
            ingest_function: variables.text("INGEST_FUNCTION"),
            fetching_function: variables.text("FETCHING_FUNCTION"),
            sns: service("AWS_ENDPOINT_URL_SNS"),
            lambda: service("AWS_ENDPOINT_URL_LAMBDA"),
            earliest_timestamp: variables.earliest_timestamp()?,
            max_devices_per_token: variables.number("MAX_DEVICES_PER_TOKEN", 1_000)?,
            registry_max_age: variables.duration("REGISTRY_MAX_AGE_SECONDS", 60)?,
            retention_days,
            quarter_retention_days,
            day_retention_days,
            time_zone: variables.read(
                "TIME_ZONE",
                "a time zone of the IANA database such as Europe/Berlin",
                Zone::UTC,
            )?,
            rollup_window: variables.duration("ROLLUP_WINDOW_SECONDS", 60)?,
            max_units: MaxUnits {
                read: variables.number("MAX_READ_UNITS", 500)?,
                write: variables.number("MAX_WRITE_UNITS", 500)?,
            },
        })
    }
}

/// The variables of an environment. An empty variable counts as absent.
struct Variables<L>(L);

impl<L: Fn(&'static str) -> Option<String>> Variables<L> {
    fn text(&self, name: &'static str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    fn required(&self, name: &'static str) -> Result<String, ConfigError> {
        self.text(name).ok_or(ConfigError::Missing(name))
    }

    /// The parsed value of a variable; the default if the variable is absent.
    fn parsed<T>(
        &self,
        name: &'static str,
        expected: &'static str,
        default: T,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ConfigError> {
        let Some(value) = self.text(name) else { return Ok(default) };
        parse(&value).ok_or(ConfigError::Unreadable { name, value, expected })
    }

    fn read<T: FromStr>(
        &self,
        name: &'static str,
        expected: &'static str,
        default: T,
    ) -> Result<T, ConfigError> {
        self.parsed(name, expected, default, |text| text.parse().ok())
    }

    fn number<T: FromStr>(&self, name: &'static str, default: T) -> Result<T, ConfigError> {
        self.read(name, "a whole number", default)
    }

    fn duration(&self, name: &'static str, default: u64) -> Result<Duration, ConfigError> {
        self.number(name, default).map(Duration::from_secs)
    }

    fn switch(&self, name: &'static str, is_on: bool) -> Result<bool, ConfigError> {
        self.parsed(name, "on or off", is_on, |text| match text {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        })
    }

    fn auth(&self) -> Result<Auth, ConfigError> {
        Ok(if self.switch("AUTH", true)? { Auth::On } else { Auth::Off })
    }

    fn layout(&self) -> Result<Layout, ConfigError> {
        let shards = "a whole number from 1 to 64";
        Ok(Layout {
            room_index: self.switch("ROOM_INDEX", true)?,
            conditions_index: self.switch("CONDITIONS_INDEX", false)?,
            attribute_index: self.switch("ATTRIBUTE_INDEX", false)?,
            shards: self.read("DEVICE_SHARDS", shards, Shards::ONE)?,
        })
    }

    fn earliest_timestamp(&self) -> Result<Timestamp, ConfigError> {
        let expected = "a timestamp such as 2000-01-01T00:00:00Z";
        let default = Timestamp::parse_absolute(EARLIEST_TIMESTAMP).expect("a timestamp");
        self.parsed("EARLIEST_TIMESTAMP", expected, default, |text| {
            Timestamp::parse_absolute(text).ok()
        })
    }

    fn credentials(&self) -> Result<Credentials, ConfigError> {
        Ok(Credentials {
            access_key_id: self.required("AWS_ACCESS_KEY_ID")?,
            secret_access_key: self.required("AWS_SECRET_ACCESS_KEY")?,
            session_token: self.text("AWS_SESSION_TOKEN"),
        })
    }

    /// The root certificates of the file in `AWS_CA_BUNDLE`, if it is set.
    fn ca_bundle(&self) -> Result<Option<CaBundle>, ConfigError> {
        self.parsed("AWS_CA_BUNDLE", "a file of PEM certificates", None, |path| {
            CaBundle::read(Path::new(path)).ok().map(Some)
        })
    }

    /// The configuration of an AWS service. The variable `endpoint` has the address of the service.
    fn service(&self, endpoint: &'static str) -> Result<ServiceConfig, ConfigError> {
        Ok(ServiceConfig {
            region: self.required("AWS_REGION")?,
            endpoint: self.text(endpoint),
            credentials: self.credentials()?,
            ca_bundle: self.ca_bundle()?,
        })
    }

    fn store(&self, service: ServiceConfig) -> Result<StoreConfig, ConfigError> {
        let ServiceConfig { region, endpoint, credentials, ca_bundle } = service;
        let (table, attempt_timeout) = (self.required("TABLE_NAME")?, aws::ATTEMPT_TIMEOUT);
        Ok(StoreConfig { table, region, endpoint, credentials, ca_bundle, attempt_timeout })
    }

    /// The days of several retentions. Each must be at least as long as the previous one. `None` means for ever.
    fn retentions<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Result<[Option<u32>; N], ConfigError> {
        let mut retentions = [None; N];
        for (at, name) in names.into_iter().enumerate() {
            let days: u32 = self.number(name, 0)?;
            retentions[at] = (days > 0).then_some(days);
            let finer_days = at.checked_sub(1).and_then(|before| retentions[before]);
            if at > 0 && days > 0 && finer_days.is_none_or(|finer_days| days < finer_days) {
                let (finer, finer_days) = (names[at - 1], finer_days.unwrap_or(0));
                return Err(ConfigError::Shorter { name, days, finer, finer_days });
            }
        }
        Ok(retentions)
    }
}

/// The expected form of `INGEST_URL`.
const HOST: &str = "the address of a host such as https://id.lambda-url.eu-west-1.on.aws";

/// Parses the address of a host without a path, and removes a slash at the end. The address becomes a part of the web
/// page and of its Content-Security-Policy, so any other text is refused.
fn origin(value: &str) -> Option<String> {
    let origin = value.trim_end_matches('/');
    let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"))?;
    let is_of_host =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    (!host.is_empty() && host.chars().all(is_of_host)).then(|| origin.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_may_be_a_path_of_the_database() {
        for (text, name) in [
            ("Europe/Berlin", Some("Europe/Berlin")),
            ("/usr/share/zoneinfo/Europe/Berlin", Some("Europe/Berlin")),
            (":/usr/share/zoneinfo/Asia/Tokyo", Some("Asia/Tokyo")),
            ("/home/a/zone", Some("/home/a/zone")),
            (":/etc/localtime", None),
            ("", None),
        ] {
            assert_eq!(zone_name(text).as_deref(), name, "{text}");
        }
    }

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
        assert!(
            config.auth == Auth::On
                && config.layout == Layout::default()
                && config.store.endpoint.is_none()
        );
        assert_eq!(config.registry_max_age, Duration::from_secs(60));
        assert_eq!(config.rollup_window, Duration::from_secs(60));
        let Config { retention_days, quarter_retention_days, day_retention_days, .. } = config;
        assert_eq!([retention_days, quarter_retention_days, day_retention_days], [None; 3]);
        assert_eq!(config.time_zone, Zone::UTC);
        assert_eq!(config.max_units, MaxUnits { read: 500, write: 500 });
        assert!(config.failures().is_err() && config.work().is_err());
        assert_eq!(config.earliest_timestamp.to_string(), "2000-01-01T00:00:00.000Z");
        assert!(!format!("{config:?}").contains("secret"));
    }

    #[test]
    fn an_error_names_the_variable() {
        assert_eq!(read(&[("TABLE_NAME", "")]).unwrap_err(), ConfigError::Missing("TABLE_NAME"));
        for (name, value) in [
            ("ROOM_INDEX", "maybe"),
            ("CONDITIONS_INDEX", "maybe"),
            ("ATTRIBUTE_INDEX", "maybe"),
            ("DEVICE_SHARDS", "65"),
            ("AUTH", "no"),
            ("AWS_CA_BUNDLE", "/nowhere.pem"),
            ("RETENTION_DAYS", "-1"),
            ("EARLIEST_TIMESTAMP", "-30d"),
            ("REGISTRY_MAX_AGE_SECONDS", "1m"),
            ("QUARTER_RETENTION_DAYS", "long"),
            ("DAY_RETENTION_DAYS", "1.5"),
            ("TIME_ZONE", "Europe/Bern"),
            ("ROLLUP_WINDOW_SECONDS", "1m"),
            ("MAX_READ_UNITS", "all"),
            ("MAX_WRITE_UNITS", "-500"),
            ("LOG_EVERY", "0"),
            ("INGEST_URL", "ingest.example.org"),
            ("INGEST_URL", "https://ingest.example.org/path"),
            ("INGEST_URL", "https://a b"),
            ("FRAME_ANCESTORS", "https://a; script-src *"),
        ] {
            let error = read(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }

    #[test]
    fn what_a_stack_tells_its_functions_is_read() {
        let config = read(&[]).expect("complete");
        assert_eq!(
            (config.stack.as_str(), config.log_every, config.ingest_url),
            ("local", 1, None)
        );
        assert_eq!(config.frame_ancestors, FrameAncestors::default());
        let set = [
            ("STACK_NAME", "home"),
            ("LOG_EVERY", "100"),
            ("INGEST_URL", "https://id.lambda-url.eu-west-1.on.aws/"),
            ("FRAME_ANCESTORS", "https://a https://b:8123"),
            ("ALERT_TOPIC", "arn:aws:sns:eu-west-1:123456789012:roomtide-AlertTopic"),
            ("AUTH", "off"),
        ];
        let config = read(&set).expect("complete");
        assert_eq!(
            (config.stack.as_str(), config.log_every, config.auth),
            ("home", 100, Auth::Off)
        );
        assert_eq!(config.ingest_url.as_deref(), Some("https://id.lambda-url.eu-west-1.on.aws"));
        assert_eq!(config.frame_ancestors.to_string(), "https://a https://b:8123");
        let topic = "arn:aws:sns:eu-west-1:123456789012:roomtide-AlertTopic";
        assert_eq!(config.alert_topic.as_deref(), Some(topic));
    }

    #[test]
    fn rollups_are_kept_at_least_as_long_as_what_they_sum_up() {
        let kept = |days: [&str; 3]| {
            let names = ["RETENTION_DAYS", "QUARTER_RETENTION_DAYS", "DAY_RETENTION_DAYS"];
            let variables: Vec<_> = names.into_iter().zip(days).collect();
            read(&variables).map_err(|error| error.to_string())
        };
        for days in [["0", "0", "0"], ["30", "30", "30"], ["30", "400", "0"], ["7", "0", "0"]] {
            kept(days).unwrap_or_else(|error| panic!("{days:?}: {error}"));
        }
        for (days, expected) in [
            (["30", "29", "0"], "QUARTER_RETENTION_DAYS is 29 and RETENTION_DAYS is 30;"),
            (["0", "400", "0"], "QUARTER_RETENTION_DAYS is 400 and RETENTION_DAYS is 0;"),
            (["30", "400", "399"], "DAY_RETENTION_DAYS is 399 and QUARTER_RETENTION_DAYS is 400;"),
            (["30", "0", "400"], "DAY_RETENTION_DAYS is 400 and QUARTER_RETENTION_DAYS is 0;"),
        ] {
            let error = kept(days).expect_err("shorter than what it sums up");
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
