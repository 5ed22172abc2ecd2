//! Messages of The Things Stack 3 about a device, by its webhook or by MQTT. Reads no join and no downlink.
//!
//! Source: <https://www.thethingsindustries.com/docs/integrations/data-formats/>

use api::endpoints::Operation;
use domain::Timestamp;
use serde_json::{Map, Value};

use super::lorawan::{decoded, heard};
use super::payload::{Payload, TreeFormat, text};
use super::scale::SAME;
use crate::formats::moment::PayloadTime;

pub(super) const FORMAT: TreeFormat = TreeFormat {
    operation: Operation::PostThingsStack,
    expected: "end_device_ids with a device_id, and an uplink_message with a decoded_payload",
    read: |payload, _| read(payload),
    device_of,
    #[cfg(test)]
    tables: &[],
};

/// Reads a message. The times in a message come from the network and are trusted.
fn read(payload: &Value) -> Option<Vec<Payload>> {
    let ids = payload.get("end_device_ids")?;
    let device = text(ids, "device_id").or_else(|| text(ids, "dev_eui"));
    let device = device?;
    let Some(uplink) = payload.get("uplink_message") else { return Some(Vec::new()) };

    let at = text(uplink, "received_at").or_else(|| text(payload, "received_at"));
    let at = at.and_then(|at| Timestamp::parse_absolute(at).ok());
    let mut read = Payload::new(Some(device), at.map_or(PayloadTime::Arrival, PayloadTime::Known));
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

    Some(vec![read])
}

/// Reads values that the network has normalized: groups such as `air` and `soil`, and the battery in V. Only the first
/// of several measurements is read.
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

/// Finds the device in the part of a topic after the format's name; `None` if the topic carries no readings.
/// Topics with readings are `v3/APPLICATION@TENANT/devices/DEVICE/up`.
fn device_of(rest: &str) -> Option<&str> {
    let (_, device) = rest.strip_prefix("v3/")?.split_once("/devices/")?;
    device.strip_suffix("/up").filter(|device| !device.contains('/'))
}
