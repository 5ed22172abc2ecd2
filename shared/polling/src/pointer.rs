//! JSON pointers into answers, and the meaning of the values there, in the form that people write. Reads no answer.

use chrono::TimeDelta;
use domain::{AboutMetric, Decimal, MetricKind, Unit, duration};
use serde::Deserialize;
use serde_json::Number;

/// A JSON pointer (RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Pointer(String);

impl Pointer {
    /// The pointer as a text.
    pub(crate) fn place(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Pointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "" => Ok(Self(text)),
            place if place.starts_with('/') && place.len() <= 512 => Ok(Self(text)),
            _ => Err("is not a JSON pointer; write one like /data/temperature".to_owned()),
        }
    }
}

/// The JSON pointer to a metric's values, alone or with the meaning of the values.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "must be a pointer such as \"/a\" or {\"at\": \"/a\", \"times\": 0.001, \"unit\": \"kWh\", \"kind\": \"counter\"}"
)]
pub(crate) enum MetricPointer {
    Place(Pointer),
    Described(DescribedPointer),
}

/// The JSON pointer to a metric's values, and the meaning of the values.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DescribedPointer {
    at: Pointer,
    /// The factor by which values are multiplied.
    times: Option<Factor>,
    unit: Option<Unit>,
    kind: Option<MetricKind>,
    hold: Option<Hold>,
}

impl MetricPointer {
    pub(crate) const fn at(&self) -> &Pointer {
        match self {
            Self::Place(at) | Self::Described(DescribedPointer { at, .. }) => at,
        }
    }

    pub(crate) fn times(&self) -> Option<&Decimal> {
        match self {
            Self::Place(_) => None,
            Self::Described(described) => described.times.as_ref().map(|times| &times.0),
        }
    }

    /// The meaning of the metric, for ingest.
    pub(crate) fn about(&self) -> AboutMetric {
        match self {
            Self::Place(_) => AboutMetric::default(),
            Self::Described(DescribedPointer { unit, kind, hold, .. }) => AboutMetric {
                unit: unit.clone(),
                kind: *kind,
                hold: hold.map(|hold| hold.0),
                ..AboutMetric::default()
            },
        }
    }
}

/// How long a power value is valid, as a text such as `30m`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
struct Hold(TimeDelta);

impl TryFrom<String> for Hold {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        duration::hold::parse(&text).map(Self).ok_or("is not a time such as 30m, at most a day")
    }
}

/// The factor by which values are multiplied.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Number")]
struct Factor(Decimal);

impl TryFrom<Number> for Factor {
    type Error = String;

    fn try_from(number: Number) -> Result<Self, String> {
        Decimal::parse(&number.to_string()).map(Self).map_err(|why| why.to_string())
    }
}

/// The interval at which a row is repeated until the next row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum RowFill {
    /// A quarter of an hour.
    #[serde(rename = "15m")]
    Quarter,
}
