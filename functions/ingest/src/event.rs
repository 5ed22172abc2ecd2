//! The events that invoke the function, and its replies: HTTP requests, IoT Core messages, and fetched bodies. Parses
//! no payload.

use std::collections::BTreeMap;

use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{AboutMetric, DeviceId, Label, MetricName, RoomId};
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use table::StoreError;

use crate::replies::fetched::FetchedReceipt;
use crate::replies::native::Receipt;

/// The `source` of an event that comes from the function `fetching`, as JSON.
const FETCHING: &str = r#""roomtide.fetching""#;

/// An event that AWS sends to the function.
#[derive(Debug, Clone)]
pub enum Event {
    /// An HTTP API event: it has a `requestContext`.
    Http(Box<ApiGatewayV2httpRequest>),
    /// An MQTT message, by way of an IoT Core rule.
    Iot(MqttMessage),
    /// An MQTT message with a device's own payload, by way of another rule.
    Payload(TopicMessage),
    /// The answer of a source, handed on by the function `fetching`: an event with the `source` of this function, and
    /// without `requestContext`, `topic` and `device_id`.
    Fetched(Box<FetchedMessage>),
}

/// An MQTT message as the rule of `template.yaml` hands it on.
///
/// The rule passes the payload as Base64, so no member of the payload can replace `device_id`. Source:
/// <https://docs.aws.amazon.com/iot/latest/developerguide/binary-payloads.html>
#[derive(Debug, Clone, Deserialize)]
pub struct MqttMessage {
    /// The part of the topic that names the device.
    pub device_id: String,
    /// When the broker took the message, in milliseconds since 1970. A reading without a timestamp gets this time. A
    /// repeated invocation has the same time.
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
    /// See [`MqttMessage::timestamp`].
    pub timestamp: i64,
    /// The payload, as the device sent it.
    #[serde(rename = "data", deserialize_with = "from_base64")]
    pub payload: Vec<u8>,
}

/// The answer of a source, as the function `fetching` hands it on.
#[derive(Debug, Clone, Deserialize)]
pub struct FetchedMessage {
    /// The id of the source.
    pub of: String,
    /// The id of this event, different for each event of a source. A repeated invocation has the same id.
    pub run: String,
    /// When the body was fetched, in milliseconds since 1970. A reading without a timestamp gets this time.
    pub timestamp: i64,
    /// The format of the body: `readings`, as `POST /readings` takes them, or `NAME`, as `POST /readings/NAME` does.
    pub format: String,
    /// The device of readings that name no device.
    pub device: Option<DeviceId>,
    /// The room of readings that name no room and whose device is not in `rooms`.
    pub room: Option<RoomId>,
    /// The rooms of devices and their parts. If the room of a device is `None`, the person does not want the device,
    /// and its readings are left out.
    #[serde(default)]
    pub rooms: BTreeMap<DeviceId, Option<FetchedRoom>>,
    /// The names of devices that have no name in the body.
    #[serde(default)]
    pub names: BTreeMap<DeviceId, Label>,
    /// The meaning of metrics that the body does not explain.
    #[serde(default)]
    pub about: BTreeMap<MetricName, AboutMetric>,
    /// Whether the body is the state of the source, made by `fetching`, and not an answer of the source.
    #[serde(default)]
    pub own: bool,
    /// Whether this is a dry run: nothing is stored, and the reply shows what would be stored.
    #[serde(default)]
    pub dry: bool,
    /// The body.
    #[serde(rename = "data", deserialize_with = "from_base64")]
    pub payload: Vec<u8>,
}

/// The room that a source gives a device.
#[derive(Debug, Clone, Deserialize)]
pub struct FetchedRoom {
    /// The room.
    pub room: RoomId,
    /// The name of the room.
    pub name: Option<Label>,
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Probe<'a> {
            #[serde(rename = "requestContext")]
            context: Option<IgnoredAny>,
            topic: Option<IgnoredAny>,
            device_id: Option<IgnoredAny>,
            #[serde(borrow)]
            source: Option<&'a RawValue>,
        }

        let text = Box::<RawValue>::deserialize(deserializer)?;
        // HTTP events are the most frequent, so their parser is tried first. It fails without a `requestContext`.
        let event = serde_json::from_str(text.get()).map(Self::Http).or_else(|error| {
            match serde_json::from_str(text.get())? {
                Probe { context: Some(_), .. } => Err(error),
                Probe { topic: Some(_), .. } => serde_json::from_str(text.get()).map(Self::Payload),
                Probe { device_id: None, source: Some(source), .. } if source.get() == FETCHING => {
                    serde_json::from_str(text.get()).map(Self::Fetched)
                }
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
    /// To an IoT Core rule, which ignores the reply.
    Iot(Receipt),
    /// To the function `fetching`.
    Fetched(FetchedReceipt),
}

/// Some readings are not stored, and no client waits for an answer: the invocation fails, so that AWS repeats it.
#[derive(Debug, thiserror::Error)]
#[error("{not_stored} readings are not stored")]
pub struct NotAllStored {
    not_stored: usize,
    #[source]
    cause: StoreError,
}

impl NotAllStored {
    pub(crate) fn new(not_stored: &[usize], cause: StoreError) -> Self {
        Self { not_stored: not_stored.len(), cause }
    }
}
