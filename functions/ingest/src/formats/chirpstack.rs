//! Events of ChirpStack 4 about a device, by its HTTP integration or by MQTT. Reads no join and no acknowledgement.
//!
//! Source: <https://www.chirpstack.io/docs/chirpstack/integrations/events.html>

use api::endpoints::Operation;
use domain::Timestamp;
use serde_json::Value;

use super::lorawan::{decoded, heard};
use super::payload::{Payload, Row, TreeFormat, text};
use super::scale::SAME;
use crate::formats::moment::PayloadTime;

/// The members of a status event, a device's answer to the network. `margin` is not the signal-to-noise ratio, but how
/// far this ratio is above the necessary minimum.
const STATUS: &[Row] = &[("batteryLevel", "battery", SAME), ("margin", "link_margin", SAME)];

pub(super) const FORMAT: TreeFormat = TreeFormat {
    operation: Operation::PostChirpStack,
    expected: "deviceInfo with a devEui, and an object that a codec has made",
    read: |payload, _| read(payload),
    device_of,
    #[cfg(test)]
    tables: &[STATUS],
};

/// Reads an event. The event's time comes from the network and is trusted.
fn read(payload: &Value) -> Option<Vec<Payload>> {
    let info = payload.get("deviceInfo");
    let device = info.and_then(|info| text(info, "devEui"));
    let (info, device) = info.zip(device)?;

    let at = text(payload, "time").and_then(|at| Timestamp::parse_absolute(at).ok());
    let mut read = Payload::new(Some(device), at.map_or(PayloadTime::Arrival, PayloadTime::Known));
    read.name = text(info, "deviceName").map(str::to_owned);
    heard(&mut read, payload.get("rxInfo"));

    match payload.get("object") {
        Some(Value::Object(values)) => decoded(&mut read, values),
        _ if text(payload, "data").is_some() => read.ignore("data"),
        _ => {}
    }

    if payload.get("fCnt").is_none()
        && payload.get("externalPowerSource") != Some(&Value::Bool(true))
    {
        read.take("", payload, STATUS);
    }

    Some(vec![read])
}

/// Finds the device in the part of a topic after the format's name; `None` if the topic carries no readings.
/// Topics with readings are `application/APPLICATION/device/DEV_EUI/event/up` and `.../status`.
fn device_of(rest: &str) -> Option<&str> {
    let (_, device) = rest.strip_prefix("application/")?.split_once("/device/")?;
    let device = device.strip_suffix("/event/up").or_else(|| device.strip_suffix("/event/status"));
    device.filter(|device| !device.contains('/'))
}
