//! Payloads of SwitchBot's webhook and of its status query. Devices without numbers are not read.
//!
//! Source: <https://github.com/OpenWonderLabs/SwitchBotAPI>

use api::endpoints::Operation;
use domain::Timestamp;
use serde_json::Value;

use super::payload::{Payload, Rest, Row, TreeFormat, has_row, rows, text};
use super::scale::{FAHRENHEIT, LOCK, MILLI, OPENING, SAME, SWITCH, Scale};
use super::units::{CLOSED, TILT};
use crate::formats::moment::PayloadTime;

/// Members of reports and statuses. `weight` is the power of plugs without a member `power`.
const REPORTED: &[Row] = rows! {
    SAME =>
        "humidity", "CO2": "co2", "battery", "lightLevel": "light_level", "weight": "current_w",
        "voltage";
    MILLI => "electricCurrent": "current";
    SWITCH => "powerState": "on", "switchStatus": "on";
    OPENING => "openState": "open", "doorState": "open";
    DOOR => "doorStatus": "open";
    LOCK => "lockState": "locked";
    SWITCH => "moveDetected": "motion", "Detected": "presence";
    Scale::IfNumber => "brightness";
    SAME => "targetTemperature": "set_temperature";
    SWITCH => "switch1Status": "on_a", "switch2Status": "on_b";
    SAME =>
        "switch1Voltage": "voltage_a", "switch2Voltage": "voltage_b", "switch1Power": "current_w_a",
        "switch2Power": "current_w_b";
    MILLI => "switch1ElectricCurrent": "current_a", "switch2ElectricCurrent": "current_b";
};

/// A garage door: 0 is open.
const DOOR: Scale = Scale::Words(&[("0", "1"), ("1", "0")]);

/// Keys whose meaning depends on the device's type. Each row has a word from the type's name; the first matching row of
/// a key is taken.
pub(super) const BY_TYPE: &[(&str, Row)] = &[
    ("Water", ("detectionState", "water_leak", SWITCH)),
    ("Water", ("status", "water_leak", SWITCH)),
    ("Presence Sensor", ("detectionState", "presence", SWITCH)),
    ("", ("detectionState", "motion", SWITCH)),
    ("Relay Switch", ("power", "current_w", SAME)),
    ("(EU)", ("power", "current_w", SAME)),
    ("PlugEU", ("power", "current_w", SAME)),
    ("", ("power", "on", SWITCH)),
    // In the commands of a Blind Tilt 100 is open; in its status 50 is open.
    ("Blind", ("slidePosition", "opening", Scale::Number(TILT))),
    ("", ("slidePosition", "opening", Scale::Number(CLOSED))),
    ("", ("position", "opening", Scale::Number(CLOSED))),
];

/// Skipped members: descriptions of the device, settings, and counts of one day, which begin at zero each day.
const IGNORED: &str = "\
    calibrate childLock commandId deviceId deviceMac deviceMode deviceName deviceType direction electricityOfDay \
    eventName group hubDeviceId mode moving nightStatus online onlineStatus result scale switch1UsedElectricity \
    switch2UsedElectricity timeOfSample usedElectricity version workingStatus";

pub(super) const FORMAT: TreeFormat = TreeFormat {
    operation: Operation::PostSwitchBot,
    expected: "a report with context and its deviceMac, or a status with body and its deviceId",
    read: |payload, _| read(payload),
    device_of: |_| None,
    #[cfg(test)]
    tables: &[REPORTED],
};

/// Reads a report or a status. A report's time is in milliseconds; a status has no time.
fn read(payload: &Value) -> Option<Vec<Payload>> {
    let told = payload.get("context").or_else(|| payload.get("body"));
    let told =
        told.filter(|event| text(event, "deviceMac").or_else(|| text(event, "deviceId")).is_some());
    let told = told?;

    let device = text(told, "deviceMac").or_else(|| text(told, "deviceId"));
    let at = told.get("timeOfSample").and_then(Value::as_i64);
    let moment = at.map_or(PayloadTime::Arrival, |millis| {
        Timestamp::from_millis(millis).map_or(PayloadTime::Unset, PayloadTime::Shown)
    });
    let mut read = Payload::new(device, moment);

    let is_fahrenheit = text(told, "scale") == Some("FAHRENHEIT");
    let scale = if is_fahrenheit { FAHRENHEIT } else { SAME };
    let mut rows = vec![("temperature", "temperature", scale)];
    rows.extend(REPORTED);
    let kind = text(told, "deviceType").unwrap_or_default();

    for (word, row) in BY_TYPE {
        if kind.contains(word) && !has_row(&rows, row.0) {
            rows.push(*row);
        }
    }

    read.take("", told, &rows);
    if let Value::Object(members) = told {
        let is_read = |key: &str| has_row(&rows, key);
        read.rest(Rest { part: "", prefix: "", is_read: &is_read, ignored: &[IGNORED] }, members);
    }

    Some(vec![read])
}
