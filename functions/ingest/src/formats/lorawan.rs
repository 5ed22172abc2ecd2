//! Decoded LoRaWAN payloads, whichever network carried them, and the quality of their reception. Knows no network's
//! envelope.
//!
//! Sources: <https://github.com/TheThingsNetwork/lorawan-devices>,
//! <https://docs.mydevices.com/docs/lorawan/cayenne-lpp>

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::payload::{Payload, Rest, Row, has_row, rows};
use super::scale::{MILLI, OPENING, SAME, SWITCH, Scale};

/// A temperature. The values that stand for a missing probe are left out.
const DEGREES: Scale = Scale::Unless(&["327.67", "-327.68"]);

/// Words for a leak, 1, and for no leak, 0.
const LEAK: Scale = Scale::Words(&[
    ("leak", "1"),
    ("true", "1"),
    ("1", "1"),
    ("normal", "0"),
    ("no leak", "0"),
    ("false", "0"),
    ("0", "0"),
]);

/// Words for presence, 1, and for absence, 0.
const TRIGGER: Scale = Scale::Words(&[
    ("trigger", "1"),
    ("occupied", "1"),
    ("true", "1"),
    ("normal", "0"),
    ("vacant", "0"),
    ("idle", "0"),
    ("false", "0"),
]);

/// Payload members from decoders of device makers and the Things Network's repository, in lower case.
const DECODED: &[Row] = rows! {
    DEGREES =>
        "temperature", "temp": "temperature", "air_temperature": "temperature",
        "tempc_sht": "temperature", "tempc_ds": "probe_temperature", "tempc1": "probe_temperature",
        "external_temperature": "probe_temperature", "externaltemperature": "probe_temperature";
    SAME =>
        "hum_sht": "humidity", "humidity", "relative_humidity": "humidity",
        "relativehumidity": "humidity", "hum": "humidity", "co2",
        // The unit is unknown: Milesight's decoders do not say whether it is ppb, µg/m³ or an index.
        "tvoc": "voc", "pm1_0": "pm1", "pm2_5", "pm10", "pressure",
        "barometric_pressure": "pressure";
    Scale::IfNumber => "light": "illuminance";
    SAME =>
        "lightintensity": "illuminance", "ill_lux": "illuminance", "illumination": "illuminance",
        "illuminance", "luminosity": "illuminance", "batv": "battery_voltage",
        "bat_v": "battery_voltage", "battery_voltage", "batteryvoltage": "battery_voltage";
    MILLI => "vdd": "battery_voltage";
    SAME => "soil_moisture", "water_soil": "soil_moisture", "wind_speed", "wind_direction";
    SWITCH => "presence";
    TRIGGER => "occupancy", "pir": "motion";
    // The number of motions, as Elsys counts them.
    Scale::IfNumber => "motion": "motion_count";
    OPENING => "door": "open", "door_status": "open", "magnet_status": "open";
    LEAK => "leakage_status": "water_leak", "water_leak", "leak": "water_leak";
    SWITCH => "tamper";
};

/// Members of decoded payloads that are not measurements.
const IGNORED: &str = "\
    Bat_status Ext Node_type Payload_ver Payver Port Systimestamp bytes data_time device_id firmware_version \
    hardware_version ipso_version payload_version port raw sn time timestamp tsl_version";

/// The signal of a device at the gateway that receives it best.
const HEARD: &[Row] = &[("rssi", "signal_strength", SAME), ("snr", "snr", SAME)];

/// Reads a decoded payload. A name such as `temperature_3` ends with the number of a channel. Several channels of a
/// name are parts of the device; a single channel is the device's own.
pub(crate) fn decoded(read: &mut Payload, decoded: &Map<String, Value>) {
    let mut channels: BTreeMap<&str, usize> = BTreeMap::new();
    for key in decoded.keys() {
        if let Some((name, _)) = channel(key) {
            *channels.entry(name).or_default() += 1;
        }
    }

    let mut taken = Vec::new();
    for (key, value) in decoded {
        let (name, part) = match channel(key) {
            Some((name, number)) if channels[name] > 1 => (name, number),
            Some((name, _)) => (name, ""),
            None => (key.as_str(), ""),
        };
        let Some((metric, scale)) = meaning(name, value) else { continue };
        taken.push(key.as_str());
        if !read.put(part, key, metric, value, scale) {
            read.ignore(key);
        }
    }

    let is_read = |key: &str| taken.contains(&key);
    read.rest(Rest { part: "", prefix: "", is_read: &is_read, ignored: &[IGNORED] }, decoded);
}

/// Reads the reception of an uplink by the gateway with the strongest signal.
pub(crate) fn heard(read: &mut Payload, receptions: Option<&Value>) {
    let receptions = receptions.and_then(Value::as_array).into_iter().flatten();
    let strength =
        |reception: &&Value| reception.get("rssi").and_then(Value::as_f64).unwrap_or(f64::MIN);
    if let Some(best) = receptions.max_by(|a, b| strength(a).total_cmp(&strength(b))) {
        read.take("", best, HEARD);
    }
}

/// The metric of a name, and the conversion to its unit. A battery is in %, in V or in mV, depending on the size of the
/// value.
fn meaning(name: &str, value: &Value) -> Option<(&'static str, Scale)> {
    let name = name.to_ascii_lowercase();
    if matches!(&*name, "battery" | "bat" | "batt") {
        let level = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
        return Some(match level {
            level if level > 100.0 => ("battery_voltage", MILLI),
            level if level < 15.0 && level.fract() != 0.0 => ("battery_voltage", SAME),
            _ => ("battery", SAME),
        });
    }
    let (_, metric, scale) = DECODED.iter().find(|(known, ..)| *known == name)?;
    Some((metric, *scale))
}

/// Splits a name such as `temperature_3` into the name and the channel's number, as in Cayenne LPP.
fn channel(key: &str) -> Option<(&str, &str)> {
    let (name, number) = key.rsplit_once('_')?;
    let is_number = (1..=3).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    (is_number && has_row(DECODED, name) && !has_row(DECODED, key)).then_some((name, number))
}

#[cfg(test)]
pub(super) const TABLES: [&[Row]; 2] = [DECODED, HEARD];
