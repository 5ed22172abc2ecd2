//! What invokes the function: an HTTP request or an IoT Core rule. Reads no reading.

use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use shared::http::FieldError;

/// What AWS sends to the function.
#[derive(Debug, Clone)]
pub enum Event {
    /// An HTTP API event: it has a `requestContext`.
    Http(Box<ApiGatewayV2httpRequest>),
    /// The message of an IoT Core rule: a reading, or `{"device_id": ..., "readings": [...]}`, whose
    /// `device_id` the rule took from the topic.
    Iot(Box<RawValue>),
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Probe {
            #[serde(rename = "requestContext")]
            context: Option<IgnoredAny>,
        }
        // The text is kept: a message's numbers must not pass through floating point.
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let probe: Probe = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        if probe.context.is_none() {
            return Ok(Self::Iot(text));
        }
        serde_json::from_str(text.get()).map(Self::Http).map_err(D::Error::custom)
    }
}

/// What the function answers.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Reply {
    /// To an HTTP request.
    Http(Box<ApiGatewayV2httpResponse>),
    /// To an IoT Core rule, which nobody reads but the log.
    Iot(Receipt),
}

/// How many readings were stored and which were refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Receipt {
    /// Stored.
    pub accepted: usize,
    /// Refused, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<FieldError>,
}
