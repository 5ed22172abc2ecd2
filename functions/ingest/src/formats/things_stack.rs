//! The Things Stack's messages about a device, version 3: its webhook's and its MQTT's. Reads no join and no
//! downlink.
//!
//! Source: <https://www.thethingsindustries.com/docs/integrations/data-formats/>

use domain::Timestamp;
use serde_json::{Map, Value};

use super::lorawan::{decoded, heard};
use super::payload::{Payload, Unknown, text};
use super::scale::SAME;
use crate::formats::moment::Moment;

pub(crate) const EXPECTED: &str =
    "end_device_ids with a device_id, and an uplink_message with a decoded_payload";

/// Reads a message. Its times are those of the network, which are believed.
pub(crate) fn read(payload: &Value) -> Result<Vec<Payload>, Unknown> {
    let Some(ids) = payload.get("end_device_ids") else { return Err(Unknown(EXPECTED)) };
    let device = text(ids, "device_id").or_else(|| text(ids, "dev_eui"));
    let Some(device) = device else { return Err(Unknown(EXPECTED)) };
    let Some(uplink) = payload.get("uplink_message") else { return Ok(Vec::new()) };
    let at = text(uplink, "received_at").or_else(|| text(payload, "received_at"));
    let at = at.and_then(|at| Timestamp::parse_absolute(at).ok());
    let mut read = Payload::new(Some(device), at.map_or(Moment::Arrival, Moment::Known));
    heard(&mut read, uplink.get("rx_metadata"));
    match uplink.get("decoded_payload") {
        Some(Value::Object(values)) => decoded(&mut read, values),
        _ => match uplink.get("normalized_payload").and_then(Value::as_array) {
            Some(measurements) => normalized(&mut read, measurements),
            None if uplink.get("frm_payload").is_some() => read.ignore("frm_payload"),
            None => {}
        },
    }
    if let Some(battery) = uplink.pointer("/last_battery_percentage/value")
        && !read.has("", "battery")
    {
        read.put("", "last_battery_percentage", "battery", battery, SAME);
    }
    Ok(vec![read])
}

/// Reads what the network has normalized: groups such as `air` and `soil`, and the battery in V. Of several
/// measurements the first is read.
///
/// Source: <https://www.thethingsindustries.com/docs/integrations/payload-formatters/javascript/uplink/>
fn normalized(read: &mut Payload, measurements: &[Value]) {
    let mut values = Map::new();
    for (group, members) in measurements.first().and_then(Value::as_object).into_iter().flatten() {
        match members {
            Value::Object(members) => values.extend(members.iter().map(|(key, value)| {
                let name = if group == "air" { key.clone() } else { format!("{group}_{key}") };
                (name, value.clone())
            })),
            value => {
                let name = if group == "battery" { "battery_voltage" } else { group };
                values.insert(name.to_owned(), value.clone());
            }
        }
    }
    decoded(read, &values);
    for number in 1..measurements.len() {
        read.ignore(&format!("normalized_payload/{number}"));
    }
}

/// The device that a topic names behind the format, if its messages have readings:
/// `v3/APPLICATION@TENANT/devices/DEVICE/up`.
pub(super) fn device_of(rest: &str) -> Option<&str> {
    let (_, device) = rest.strip_prefix("v3/")?.split_once("/devices/")?;
    device.strip_suffix("/up").filter(|device| !device.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::payload::tests::shown;

    fn of(text: &str) -> Vec<String> {
        shown(read, text).expect(text)
    }

    #[test]
    fn without_a_decoder_it_is_what_the_network_has_normalized() {
        let uplink = r#"{"end_device_ids":{"device_id":"n"},"uplink_message":{"normalized_payload":[
            {"air":{"temperature":20.5,"relativeHumidity":44,"location":"indoor"},"soil":{"moisture":30},"battery":3.1},
            {"air":{"temperature":20.25}}]}}"#;
        assert_eq!(
            of(uplink),
            [
                "n| battery_voltage=3.1 humidity=44 soil_moisture=30 temperature=20.5 @arrival",
                "not location",
                "not normalized_payload/1"
            ]
        );
    }

    #[test]
    fn an_uplink_is_what_its_decoder_tells_and_how_it_was_heard() {
        let uplink = r#"{"end_device_ids":{"device_id":"attic","application_ids":{"application_id":"home"},"dev_eui":"0004A30B001C0530"},
            "correlation_ids":["as:up:1"],"received_at":"2026-01-11T16:00:01.123456789Z",
            "uplink_message":{"f_port":2,"f_cnt":7,"frm_payload":"AA==","received_at":"2026-01-11T16:00:00.5Z",
            "decoded_payload":{"BatV":3.05,"TempC_SHT":"21.5","Hum_SHT":48.2,"TempC_DS":19.25,"air":{"radon":31},"Ext_sensor":"Temperature Sensor"},
            "rx_metadata":[{"gateway_ids":{"gateway_id":"a"},"rssi":-103,"snr":-4.75},{"gateway_ids":{"gateway_id":"b"},"rssi":-80,"snr":9.5}],
            "settings":{"frequency":"868100000"}}}"#;
        assert_eq!(
            of(uplink),
            [
                "attic| air_radon=31 battery_voltage=3.05 humidity=48.2 probe_temperature=19.25 signal_strength=-80 snr=9.5 temperature=21.5 @known 2026-01-11T16:00:00.500Z",
                "not Ext_sensor",
            ]
        );
    }

    #[test]
    fn channels_of_cayenne_are_parts_if_there_are_several() {
        let of = |decoded: &str| {
            of(&format!(
                r#"{{"end_device_ids":{{"device_id":"d"}},"uplink_message":{{"decoded_payload":{decoded}}}}}"#
            ))
        };
        assert_eq!(
            of(r#"{"temperature_3":21.5,"relative_humidity_4":40,"analog_in_1":2.5}"#),
            ["d| analog_in_1=2.5 humidity=40 temperature=21.5 @arrival"]
        );
        assert_eq!(
            of(r#"{"temperature_1":21.5,"temperature_2":4,"battery":3507}"#),
            [
                "d| battery_voltage=3.507 @arrival",
                "d|1 temperature=21.5 @arrival",
                "d|2 temperature=4 @arrival"
            ]
        );
    }

    #[test]
    fn known_without_numbers_is_nothing_and_anything_else_is_not_understood() {
        let joined = r#"{"end_device_ids":{"device_id":"d"},"join_accept":{"session_key_id":"x"}}"#;
        assert_eq!(of(joined), Vec::<String>::new());
        let raw = r#"{"end_device_ids":{"device_id":"d"},"uplink_message":{"frm_payload":"AQ=="}}"#;
        assert_eq!(of(raw), ["not frm_payload"]);
        for text in
            ["[1]", "5", "{}", r#"{"deviceInfo":{"devEui":"a"}}"#, r#"{"end_device_ids":{}}"#]
        {
            assert_eq!(shown(read, text), Err(EXPECTED), "{text}");
        }
    }
}
