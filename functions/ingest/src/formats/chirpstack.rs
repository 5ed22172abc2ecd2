//! ChirpStack's events about a device, version 4: its HTTP integration's and its MQTT's. Reads no join and no
//! acknowledgement.
//!
//! Source: <https://www.chirpstack.io/docs/chirpstack/integrations/events.html>

use domain::Timestamp;
use serde_json::Value;

use super::lorawan::{decoded, heard};
use super::payload::{Payload, Row, Unknown, text};
use super::scale::SAME;
use crate::formats::moment::Moment;

/// What a device tells of itself when the network asks: an event of its own. Its margin is by how much it is heard
/// better than is needed, so it is no ratio of signal to noise.
const STATUS: &[Row] = &[("batteryLevel", "battery", SAME), ("margin", "link_margin", SAME)];

pub(crate) const EXPECTED: &str = "deviceInfo with a devEui, and an object that a codec has made";

/// Reads an event. Its time is that of the network, which is believed.
pub(crate) fn read(payload: &Value) -> Result<Vec<Payload>, Unknown> {
    let info = payload.get("deviceInfo");
    let device = info.and_then(|info| text(info, "devEui"));
    let Some((info, device)) = info.zip(device) else { return Err(Unknown(EXPECTED)) };
    let at = text(payload, "time").and_then(|at| Timestamp::parse_absolute(at).ok());
    let mut read = Payload::new(Some(device), at.map_or(Moment::Arrival, Moment::Known));
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
    Ok(vec![read])
}

#[cfg(test)]
pub(super) const TABLES: [&[Row]; 1] = [STATUS];

/// The device that a topic names behind the format, if its messages have readings:
/// `application/APPLICATION/device/DEV_EUI/event/up`.
pub(super) fn device_of(rest: &str) -> Option<&str> {
    let (_, device) = rest.strip_prefix("application/")?.split_once("/device/")?;
    let device = device.strip_suffix("/event/up").or_else(|| device.strip_suffix("/event/status"));
    device.filter(|device| !device.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::payload::tests::shown;

    fn of(text: &str) -> Vec<String> {
        shown(read, text).expect(text)
    }

    #[test]
    fn an_uplink_is_what_its_codec_tells_and_how_it_was_heard() {
        let uplink = r#"{"deduplicationId":"3ac7","time":"2026-01-11T16:00:00.25+00:00","deviceInfo":{"tenantName":"ChirpStack",
            "applicationName":"home","deviceProfileName":"AM103","deviceName":"Attic air","devEui":"24e124725c140542"},"devAddr":"00189440",
            "adr":true,"dr":5,"fCnt":4,"fPort":85,"confirmed":false,"data":"AXVZ",
            "object":{"battery":89,"co2":886,"humidity":29,"temperature":22.3,"door":"open","history":[{"temperature":22}]},
            "rxInfo":[{"gatewayId":"a","uplinkId":1,"rssi":-110,"snr":-3},{"gatewayId":"b","rssi":-48,"snr":9,"location":{}}],
            "txInfo":{"frequency":867100000}}"#;
        assert_eq!(
            of(uplink),
            [
                "24e124725c140542| battery=89 co2=886 history_a_temperature=22 humidity=29 open=1 signal_strength=-48 snr=9 temperature=22.3 @known 2026-01-11T16:00:00.250Z"
            ]
        );
        let named = read(&serde_json::from_str(uplink).expect("JSON")).expect("an uplink");
        assert_eq!(named[0].name.as_deref(), Some("Attic air"));
        let status = r#"{"deviceInfo":{"devEui":"a"},"margin":10,"externalPowerSource":false,"batteryLevelUnavailable":false,"batteryLevel":75.5}"#;
        assert_eq!(of(status), ["a| battery=75.5 link_margin=10 @arrival"]);
    }

    #[test]
    fn known_without_numbers_is_nothing_and_anything_else_is_not_understood() {
        let join = r#"{"deviceInfo":{"devEui":"a"},"devAddr":"00"}"#;
        assert_eq!(of(join), Vec::<String>::new());
        for text in
            ["[1]", "5", "{}", r#"{"deviceInfo":{}}"#, r#"{"end_device_ids":{"device_id":"d"}}"#]
        {
            assert_eq!(shown(read, text), Err(EXPECTED), "{text}");
        }
    }
}
