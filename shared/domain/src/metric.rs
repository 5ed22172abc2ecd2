//! Metrics: their names, kinds and units. Holds no values.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::excerpt;

/// Names that a reading's item or body uses itself. Every other attribute of ours begins with `_`,
/// which no metric does.
const RESERVED: [&str; 6] = ["pk", "sk", "room", "exp", "device_id", "timestamp"];

/// The name of a metric: `[a-z][a-z0-9_]{0,63}`, and no name that the item itself uses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MetricName(String);

/// Why a text is no [`MetricName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricNameError {
    /// Not of the form.
    #[error(
        "{0:?} is no name of a metric; write 1 to 64 of a-z, 0-9 and _, beginning with a letter"
    )]
    Form(String),
    /// Taken by the table.
    #[error("{0:?} is a reserved name")]
    Reserved(String),
}

impl MetricName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What is known of the metric by its name: a well-known one has its kind and unit, any other is
    /// a gauge without a unit.
    #[must_use]
    pub fn well_known(&self) -> (MetricKind, Option<&'static str>) {
        let unit = match self.as_str() {
            "current_w" => "W",
            "cumulative_kwh_p" | "cumulative_kwh_n" => return (MetricKind::Counter, Some("kWh")),
            "temperature" => "°C",
            "humidity" | "battery" => "%",
            "co2" => "ppm",
            "illuminance" => "lx",
            "pressure" => "hPa",
            _ => return (MetricKind::Gauge, None),
        };
        (MetricKind::Gauge, Some(unit))
    }
}

impl TryFrom<String> for MetricName {
    type Error = MetricNameError;

    fn try_from(text: String) -> Result<Self, MetricNameError> {
        let form = (1..=64).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if !form {
            return Err(MetricNameError::Form(excerpt(&text)));
        }
        if RESERVED.contains(&text.as_str()) {
            return Err(MetricNameError::Reserved(text));
        }
        Ok(Self(text))
    }
}

impl FromStr for MetricName {
    type Err = MetricNameError;

    fn from_str(text: &str) -> Result<Self, MetricNameError> {
        text.to_owned().try_into()
    }
}

impl From<MetricName> for String {
    fn from(name: MetricName) -> String {
        name.0
    }
}

impl fmt::Display for MetricName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a metric's values relate to one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricKind {
    /// A level at a timestamp: temperature, power.
    Gauge,
    /// A total that only rises until it is reset or wraps: a meter's kWh.
    Counter,
}

impl MetricKind {
    /// The kind as the table and the API write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
        }
    }

    /// Reads what [`as_str`](Self::as_str) writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Gauge, Self::Counter].into_iter().find(|kind| kind.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_metrics_have_one_form() {
        for name in [
            "temperature",
            "t",
            "cumulative_kwh_p",
            "pm2_5",
            &"m".repeat(64),
            "count",
            "value",
            "z",
            "attr",
            "ver",
        ] {
            assert!(name.parse::<MetricName>().is_ok(), "{name}");
        }
        for name in ["", "T", "2pm", "_x", "a-b", "a b", "témp", &"m".repeat(65), "a#b"] {
            assert!(matches!(name.parse::<MetricName>(), Err(MetricNameError::Form(_))), "{name}");
        }
        for name in ["pk", "sk", "room", "exp", "timestamp", "device_id"] {
            assert!(
                matches!(name.parse::<MetricName>(), Err(MetricNameError::Reserved(_))),
                "{name}"
            );
        }
    }

    #[test]
    fn well_known_metrics_have_a_kind_and_a_unit() {
        let known = |name: &str| name.parse::<MetricName>().expect("a name").well_known();
        assert_eq!(known("current_w"), (MetricKind::Gauge, Some("W")));
        assert_eq!(known("cumulative_kwh_n"), (MetricKind::Counter, Some("kWh")));
        assert_eq!(known("pm2_5"), (MetricKind::Gauge, None));
    }
}
