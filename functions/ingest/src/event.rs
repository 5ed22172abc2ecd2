//! The events that invoke the function, and its replies: HTTP requests and IoT Core messages. Parses no payload.

use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use table::StoreError;

use crate::replies::native::Receipt;

/// An event that AWS sends to the function.
#[derive(Debug, Clone)]
pub enum Event {
    /// An HTTP API event: it has a `requestContext`.
    Http(Box<ApiGatewayV2httpRequest>),
    /// An MQTT message, by way of an IoT Core rule.
    Iot(Message),
    /// An MQTT message with a device's own payload, by way of another rule.
    Payload(TopicMessage),
}

/// An MQTT message as the rule of `template.yaml` hands it on.
///
/// The rule passes the payload as Base64, unread: whatever members it has, none can take the place
/// of `device_id`. Source: <https://docs.aws.amazon.com/iot/latest/developerguide/binary-payloads.html>
#[derive(Debug, Clone, Deserialize)]
pub struct Message {
    /// The level of the topic that names the device.
    pub device_id: String,
    /// When the broker took the message, in milliseconds since 1970. A reading without a timestamp gets this time. A
    /// repeated invocation has the same one.
    pub timestamp: i64,
    /// The payload: anything that `POST /readings` takes as its body.
    #[serde(rename = "data", deserialize_with = "from_base64")]
    pub payload: Vec<u8>,
}

/// An MQTT message with a device's own payload, as the second rule of `template.yaml` hands it on.
#[derive(Debug, Clone, Deserialize)]
pub struct TopicMessage {
    /// The whole topic, such as `roomtide/tasmota/plug/tele/SENSOR`.
    pub topic: String,
    /// See [`Message::timestamp`].
    pub timestamp: i64,
    /// The payload, as the device sent it.
    #[serde(rename = "data", deserialize_with = "from_base64")]
    pub payload: Vec<u8>,
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Probe {
            #[serde(rename = "requestContext")]
            context: Option<IgnoredAny>,
            topic: Option<IgnoredAny>,
        }
        let text = Box::<RawValue>::deserialize(deserializer)?;
        // HTTP first: most events are that, and are read once. Without a context this fails.
        let event = serde_json::from_str(text.get()).map(Self::Http).or_else(|error| {
            match serde_json::from_str(text.get())? {
                Probe { context: Some(_), .. } => Err(error),
                Probe { topic: Some(_), .. } => serde_json::from_str(text.get()).map(Self::Payload),
                Probe { .. } => serde_json::from_str(text.get()).map(Self::Iot),
            }
        });
        event.map_err(D::Error::custom)
    }
}

/// The function's reply.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Reply {
    /// To an HTTP request.
    Http(Box<ApiGatewayV2httpResponse>),
    /// To an IoT Core rule, which nobody reads but the log.
    Iot(Receipt),
}

/// Not everything is stored, and nobody waits for an answer: the invocation should be repeated.
#[derive(Debug, thiserror::Error)]
#[error("{not_stored} readings are not stored")]
pub struct Failure {
    not_stored: usize,
    #[source]
    cause: StoreError,
}

impl Failure {
    pub(crate) fn new(not_stored: &[usize], cause: StoreError) -> Self {
        Self { not_stored: not_stored.len(), cause }
    }
}
