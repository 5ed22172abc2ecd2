//! Zigbee2MQTT's messages on `BASE/FRIENDLY_NAME`. Reads no message of the bridge itself.
//!
//! Source: <https://www.zigbee2mqtt.io/guide/usage/mqtt_topics_and_messages.html>

use api::endpoints::Operation;
use serde_json::Value;

use super::payload::{Payload, Rest, Row, TreeFormat, has_row, moment, rows, text};
use super::scale::{LOCK, MILLI, OPENING, SAME, SWITCH, Scale, Scaled, TRUTH};
use super::units::HUNDREDFOLD;
use super::vocabulary;

/// The states of a thermostat: heating is 1, idle is 0.
const RUNNING: Scale = Scale::Words(&[("heat", "1"), ("idle", "0")]);

/// Members that devices expose. Some measurements have an older name, too. If two keys map to one metric, the later row
/// gets the metric, and the other value keeps its own name.
const EXPOSED: &[Row] = rows! {
    SAME =>
        "temperature", "local_temperature": "temperature",
        "occupied_heating_setpoint": "set_temperature",
        "current_heating_setpoint": "set_temperature", "device_temperature",
        "cpu_temperature": "device_temperature", "external_temperature": "probe_temperature",
        "temperature_probe": "probe_temperature", "humidity", "soil_moisture", "pressure",
        // If a message also has `illuminance_lux`, `illuminance` is the raw value.
        "illuminance", "illuminance_lux": "illuminance", "co2", "eco2", "voc", "voc_index", "pm1",
        "pm25": "pm2_5", "pm10", "battery";
    SWITCH => "battery_low";
    SAME =>
        "power": "current_w", "power_phase_b": "current_w_b", "power_phase_c": "current_w_c",
        "power_total": "current_w", "power_ab": "current_w", "power_reactive": "reactive_power",
        "power_apparent": "apparent_power";
    Scale::Share =>
        "power_factor", "power_factor_phase_b": "power_factor_b",
        "power_factor_phase_c": "power_factor_c";
    SAME =>
        "current", "current_phase_b": "current_b", "current_phase_c": "current_c",
        "current_neutral": "current_n", "voltage_phase_b": "voltage_b",
        "voltage_phase_c": "voltage_c", "ac_frequency": "frequency", "energy": "cumulative_kwh_p",
        "produced_energy": "cumulative_kwh_n", "energy_produced": "cumulative_kwh_n";
    SWITCH => "state": "on";
    OPENING => "state": "open";
    LOCK => "state": "locked";
    SAME =>
        "brightness": "brightness_level",
        // 100 is open unless `invert_cover` is set: <https://www.zigbee2mqtt.io/devices/MOT-C1ZxxC_F.html>
        "position";
    // Slats are open at 100, like the cover. A vibration sensor sends a boolean `tilt`, which is not taken.
    Scale::IfNumber => "tilt": "tilt_opening";
    SWITCH => "contact", "occupancy", "presence", "water_leak", "smoke";
    TRUTH => "gas";
    Scale::IfNumber => "gas": "gas_reading";
    SWITCH => "carbon_monoxide", "vibration", "tamper", "window_open";
    OPENING => "window_open";
    Scale::Number(HUNDREDFOLD) => "distance";
    RUNNING => "running_state": "heating";
    SAME =>
        "pi_heating_demand": "heating_demand", "wind_speed", "wind_direction", "uv_index",
        "water_consumed", "flow", "linkquality": "link_quality";
};

/// Members of devices with a load: a plug, a metered relay or a dimmer. The `temperature` of these devices is that of
/// the electronics, unless a member of `SENSING` is there, too.
const LOAD: [&str; 5] = ["power", "energy", "consumption", "current", "brightness"];
const SENSING: [&str; 5] = [
    "humidity",
    "local_temperature",
    "device_temperature",
    "occupied_heating_setpoint",
    "current_heating_setpoint",
];

/// Skipped members: device descriptions and button events. The first five (`SILENT`) mark a message of Zigbee2MQTT.
const IGNORED: &str = "\
    last_seen update update_available action click action_* device elapsed color color_mode power_on_behavior \
    power_outage_memory indicator_mode child_lock effect";
const SILENT: [&str; 5] = ["last_seen", "update", "update_available", "action", "click"];

/// The names of endpoints of one device. A value of an endpoint has the endpoint's name as suffix.
const ENDPOINTS: [&str; 19] = [
    "l1", "l2", "l3", "l4", "l5", "l6", "l7", "l8", "left", "right", "center", "1", "2", "3", "4",
    "5", "6", "7", "8",
];

/// The suffixes for values of one phase of a meter, or of one clamp of several.
const PHASES: [&str; 3] = ["a", "b", "c"];

pub(super) const FORMAT: TreeFormat = TreeFormat {
    operation: Operation::PostZigbee2Mqtt,
    expected: "what a device exposes, such as temperature, humidity, power, energy, state, contact, \
    occupancy, water_leak, battery or linkquality",
    read: |payload, _| read(payload),
    device_of,
    #[cfg(test)]
    tables: &[EXPOSED],
};

/// Reads a message. `last_seen` is in UTC, with an offset, local, or a number of milliseconds.
fn read(payload: &Value) -> Option<Vec<Payload>> {
    let members = payload.as_object()?;
    let device = payload.get("device").and_then(|device| text(device, "friendlyName"));
    let mut read = Payload::new(device, moment(payload.get("last_seen")));
    let mut is_known = SILENT.iter().any(|silent| members.contains_key(*silent));

    let has_one = |keys: &[&str]| keys.iter().any(|key| members.contains_key(*key));
    let warms_itself = members.contains_key("state") && has_one(&LOAD) && !has_one(&SENSING);
    let (inside, others): (Vec<Row>, Vec<Row>) =
        EXPOSED.iter().partition(|(key, ..)| warms_itself && *key == "temperature");

    is_known |= read.take("", payload, &others);
    for (key, _, scale) in inside {
        is_known |= read.take("", payload, &[(key, "device_temperature", scale)]);
    }

    let mut placed = Vec::new();
    for (name, value) in members.iter().filter(|(name, _)| !has_row(EXPOSED, name)) {
        let Some((part, metric, scale)) = target(payload, name, value) else { continue };
        is_known = true;
        placed.push(name.as_str());
        if !read.put(part, name, &metric, value, scale) {
            read.ignore(name);
        }
    }

    if !is_known {
        return None;
    }

    let is_read = |key: &str| has_row(EXPOSED, key) || placed.contains(&key);
    read.rest(Rest { part: "", prefix: "", is_read: &is_read, ignored: &[IGNORED] }, members);
    Some(vec![read])
}

/// The part, metric and conversion of a voltage, or of a value whose name ends with a phase or an endpoint.
fn target<'a>(payload: &Value, name: &'a str, value: &Value) -> Option<(&'a str, String, Scale)> {
    if name == "voltage" {
        return Some(("", name.to_owned(), voltage_scale(payload, value)));
    }

    let (key, behind) = name.rsplit_once('_')?;
    let rows = || EXPOSED.iter().filter(|(known, ..)| *known == key);
    let (metric, scale) = match key {
        "voltage" => ("voltage", voltage_scale(payload, value)),
        _ => {
            let reads = |scale: &Scale| {
                scale.apply(value).is_ok_and(|scaled| scaled != Scaled::UnknownWord)
            };
            let (_, metric, scale) =
                rows().find(|(_, _, scale)| reads(scale)).or_else(|| rows().next())?;
            (*metric, *scale)
        }
    };
    if let Some(phase) = PHASES.iter().position(|phase| *phase == behind) {
        return Some(("", vocabulary::of_phase(metric, phase)?, scale));
    }

    ENDPOINTS.contains(&behind).then(|| (behind, metric.to_owned(), scale))
}

/// The conversion of a voltage, chosen by its size. Devices with a battery send millivolts, plugs send volts, and not
/// every message has the battery.
fn voltage_scale(payload: &Value, voltage: &Value) -> Scale {
    let least = if payload.get("battery").is_some() { 100.0 } else { 1_000.0 };
    let number = voltage.as_f64().or_else(|| voltage.as_str()?.trim().parse().ok());
    if number.is_some_and(|voltage| voltage >= least) { MILLI } else { SAME }
}

/// Finds the device in the part of a topic after the format's name; `None` if the topic carries no readings.
/// The rest is `FRIENDLY_NAME`, which may contain `/`. `base_topic` is `roomtide/zigbee2mqtt`.
fn device_of(rest: &str) -> Option<&str> {
    let is_command = |level: &str| matches!(level, "set" | "get");
    let mut last = rest.rsplit('/');
    let is_silent = rest.is_empty()
        || rest.split('/').next() == Some("bridge")
        || last.next().is_some_and(|level| level == "availability" || is_command(level))
        || last.next().is_some_and(is_command);
    (!is_silent).then_some(rest)
}
