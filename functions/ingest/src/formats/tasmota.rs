//! Tasmota's telemetry: `tele/TOPIC/SENSOR`, `tele/TOPIC/STATE` and the answer to `Status 8`. Reads no `Today`,
//! `Yesterday` and `Period`, which fall by nature.
//!
//! Source: <https://tasmota.github.io/docs/MQTT/>

use serde_json::Value;

use super::payload::{FAHRENHEIT, Payload, Row, Scale, Unknown, moment, text};

/// The energy of the device itself.
const ENERGY: &[Row] = &[
    ("Total", "cumulative_kwh_p", Scale::Same),
    ("ExportActive", "cumulative_kwh_n", Scale::Same),
    ("Power", "current_w", Scale::Same),
    ("ApparentPower", "apparent_power", Scale::Same),
    ("ReactivePower", "reactive_power", Scale::Same),
    ("Factor", "power_factor", Scale::Same),
    ("Voltage", "voltage", Scale::Same),
    ("Current", "current", Scale::Same),
    ("Frequency", "frequency", Scale::Same),
];

/// A sensor, which is a part of its own.
const SENSOR: &[Row] = &[
    ("Temperature", "temperature", Scale::Same),
    ("DewPoint", "dew_point", Scale::Same),
    ("Humidity", "humidity", Scale::Same),
    ("Pressure", "pressure", Scale::Same),
    ("SeaPressure", "sea_level_pressure", Scale::Same),
    ("Illuminance", "illuminance", Scale::Same),
    ("CarbonDioxide", "co2", Scale::Same),
    ("eCO2", "eco2", Scale::Same),
    ("TVOC", "tvoc", Scale::Same),
    ("PM1", "pm1", Scale::Same),
    ("PM2.5", "pm2_5", Scale::Same),
    ("PM10", "pm10", Scale::Same),
    ("Moisture", "soil_moisture", Scale::Same),
    ("Distance", "distance", Scale::Same),
    ("UvIndex", "uv_index", Scale::Same),
    ("WindSpeed", "wind_speed", Scale::Same),
    ("Battery", "battery", Scale::Same),
    ("RSSI", "signal_strength", Scale::Same),
];

/// A sensor that is inside the device: it measures what the device itself warms, so the value is the device's.
const INSIDE: &[Row] = &[("Temperature", "device_temperature", Scale::Same)];

/// What the names of sections begin with that are a chip of the device: its processor or its meter.
const CHIPS: [&str; 5] = ["ESP32", "BK72", "BL09", "AXP192", "AXP2101"];

/// The state of the device itself. `Wifi/RSSI` is a percentage; `Signal` is in dBm.
const STATE: &[Row] = &[
    ("POWER", "on", Scale::Switch),
    ("POWER1", "on_a", Scale::Switch),
    ("POWER2", "on_b", Scale::Switch),
    ("POWER3", "on_c", Scale::Switch),
    ("POWER4", "on_d", Scale::Switch),
    ("POWER5", "on_e", Scale::Switch),
    ("POWER6", "on_f", Scale::Switch),
    ("POWER7", "on_g", Scale::Switch),
    ("POWER8", "on_h", Scale::Switch),
    ("Wifi/Signal", "signal_strength", Scale::Same),
];

/// Sections that are no sensor.
const NOT_SENSORS: [&str; 3] = ["ENERGY", "Wifi", "Berry"];

pub(crate) const EXPECTED: &str = "ENERGY, a sensor such as {\"DS18B20\": {\"Temperature\": 20.6}}, POWER, Wifi, \
    StatusSNS, or at least Time";

/// Reads a payload. The times are the device's, local unless they tell an offset.
pub(crate) fn read(payload: &Value) -> Result<Vec<Payload>, Unknown> {
    let told = payload.get("StatusSNS").unwrap_or(payload);
    let Some(members) = told.as_object() else { return Err(Unknown(EXPECTED)) };
    let time = told.get("Epoch").or_else(|| told.get("Time"));
    let mut read = Payload::new(None, moment(time));
    let mut is_known = time.is_some();
    if let Some(energy) = told.get("ENERGY") {
        is_known |= energy.is_object();
        read.take("", energy, ENERGY);
    }
    is_known |= read.take("", told, STATE);
    let in_units = |rows: &[Row]| -> Vec<Row> {
        rows.iter().map(|(key, metric, _)| (*key, *metric, scale(told, metric))).collect()
    };
    let (outside, inside) = (in_units(SENSOR), in_units(INSIDE));
    let sensors = members.iter().filter(|(name, _)| !NOT_SENSORS.contains(&name.as_str()));
    for (name, sensor) in sensors.filter(|(_, it)| it.is_object()) {
        if is_inside(name, told) {
            is_known |= read.take("", sensor, &inside);
            let others: Vec<Row> =
                outside.iter().filter(|it| it.0 != INSIDE[0].0).copied().collect();
            is_known |= read.take(name, sensor, &others);
        } else {
            is_known |= read.take(name, sensor, &outside);
        }
    }
    if is_known { Ok(vec![read]) } else { Err(Unknown(EXPECTED)) }
}

/// Whether a section is a sensor inside the device: a chip; or, beside a meter, the analogue input, by which plugs
/// and relays such as Shelly's watch their own heat.
fn is_inside(section: &str, told: &Value) -> bool {
    CHIPS.iter().any(|chip| section.starts_with(chip))
        || section == "ANALOG" && told.get("ENERGY").is_some()
}

/// The way from the unit that the payload names to the metric's.
fn scale(told: &Value, metric: &str) -> Scale {
    match metric {
        "temperature" | "device_temperature" | "dew_point"
            if text(told, "TempUnit") == Some("F") =>
        {
            FAHRENHEIT
        }
        "pressure" | "sea_level_pressure" => match text(told, "PressureUnit") {
            Some("mmHg") => Scale::By(|pressure| pressure * 1.333_223_874, 3),
            Some("inHg") => Scale::By(|pressure| pressure * 33.863_886_667, 3),
            Some("kPa") => Scale::Times("10"),
            Some("psi") => Scale::By(|pressure| pressure * 68.947_572_932, 3),
            _ => Scale::Same,
        },
        "wind_speed" => match text(told, "SpeedUnit") {
            Some("km/h") => Scale::By(|speed| speed / 3.6, 3),
            Some("mph") => Scale::By(|speed| speed * 0.447_04, 3),
            Some("kn") => Scale::By(|speed| speed * 0.514_444, 3),
            Some("ft/s") => Scale::By(|speed| speed * 0.304_8, 3),
            Some("yd/s") => Scale::By(|speed| speed * 0.914_4, 3),
            _ => Scale::Same,
        },
        _ => Scale::Same,
    }
}

#[cfg(test)]
pub(super) const TABLES: [&[Row]; 4] = [ENERGY, SENSOR, INSIDE, STATE];

/// The device that a topic names behind the format, if its messages have readings:
/// `DEVICE/tele/SENSOR`: `FullTopic` is `roomtide/tasmota/%topic%/%prefix%/`.
pub(super) fn device_of(rest: &str) -> Option<&str> {
    let (device, message) = rest.split_once('/')?;
    matches!(message, "tele/SENSOR" | "tele/STATE" | "stat/STATUS8" | "stat/STATUS10")
        .then_some(device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::payload::tests::shown;

    fn of(text: &str) -> Vec<String> {
        shown(read, text).expect(text)
    }

    #[test]
    fn a_plug_is_read_and_what_falls_by_nature_is_left_out() {
        let plug = r#"{"Time":"2018-02-15T17:37:10","ENERGY":{"TotalStartTime":"2018-11-14T18:39:40","Total":6.294,"Yesterday":5.340,"Today":0.954,"Period":217,"Power":2635,"ApparentPower":2650,"ReactivePower":282,"Factor":0.99,"Voltage":227,"Current":11.661}}"#;
        let expected = "| apparent_power=2650 cumulative_kwh_p=6.294 current=11.661 current_w=2635 \
                        power_factor=0.99 reactive_power=282 voltage=227 @local 2018-02-15 17:37:10";
        assert_eq!(of(plug), [expected]);
        let again = format!(r#"{{"StatusSNS":{plug}}}"#);
        assert_eq!(of(&again), [expected], "the answer to Status 8");
    }

    #[test]
    fn a_sensor_is_a_part_by_its_name() {
        let two = r#"{"Time":"2020-03-24T12:47:51","LYWSD03-52680f":{"Temperature":21.1,"Humidity":58.0,"DewPoint":12.5,"Battery":100},"LYWSD02-a2fd09":{"Temperature":21.4,"Humidity":57.0,"DewPoint":12.5,"Battery":2},"TempUnit":"C"}"#;
        assert_eq!(
            of(two),
            [
                "|LYWSD02-a2fd09 battery=2 dew_point=12.5 humidity=57 temperature=21.4 @local 2020-03-24 12:47:51",
                "|LYWSD03-52680f battery=100 dew_point=12.5 humidity=58 temperature=21.1 @local 2020-03-24 12:47:51",
            ]
        );
        let one = r#"{"Time":"2017-02-16T10:13:52","DS18B20":{"Id":"01144A0CB2AA","Temperature":20.6},"TempUnit":"C"}"#;
        assert_eq!(of(one), ["|DS18B20 temperature=20.6 @local 2017-02-16 10:13:52"]);
    }

    #[test]
    fn the_temperature_of_a_chip_is_the_device_s_and_that_of_a_probe_is_not() {
        for (text, expected) in [
            (
                r#"{"ENERGY":{"Total":1,"Power":2},"ESP32":{"Temperature":41.7},"TempUnit":"C"}"#,
                &["| cumulative_kwh_p=1 current_w=2 device_temperature=41.7 @arrival"][..],
            ),
            (
                r#"{"ESP32S3":{"Temperature":104},"DS18B20":{"Temperature":68},"TempUnit":"F"}"#,
                &["| device_temperature=40 @arrival", "|DS18B20 temperature=20 @arrival"],
            ),
            (r#"{"BL0940":{"Temperature":33.3}}"#, &["| device_temperature=33.3 @arrival"]),
            (
                r#"{"ENERGY":{"Power":2},"ANALOG":{"Temperature":55,"Illuminance":3}}"#,
                &["| current_w=2 device_temperature=55 @arrival", "|ANALOG illuminance=3 @arrival"],
            ),
            // Without a meter it is a probe that somebody has soldered on.
            (r#"{"ANALOG":{"Temperature":19.5}}"#, &["|ANALOG temperature=19.5 @arrival"]),
            (
                r#"{"ENERGY":{"Power":2},"SI7021":{"Temperature":21,"Humidity":40}}"#,
                &["| current_w=2 @arrival", "|SI7021 humidity=40 temperature=21 @arrival"],
            ),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn units_are_those_that_the_payload_names() {
        for (sensor, expected) in [
            (r#"{"Temperature":68},"TempUnit":"F""#, "temperature=20"),
            (r#"{"DewPoint":50},"TempUnit":"F""#, "dew_point=10"),
            (r#"{"Pressure":750},"PressureUnit":"mmHg""#, "pressure=999.918"),
            (r#"{"Pressure":29.92},"PressureUnit":"inHg""#, "pressure=1013.207"),
            (r#"{"SeaPressure":101.3},"PressureUnit":"kPa""#, "sea_level_pressure=1013"),
            (r#"{"Pressure":14.7},"PressureUnit":"psi""#, "pressure=1013.529"),
            (r#"{"Pressure":1013.2},"PressureUnit":"hPa""#, "pressure=1013.2"),
            (r#"{"WindSpeed":36},"SpeedUnit":"km/h""#, "wind_speed=10"),
            (r#"{"WindSpeed":10},"SpeedUnit":"mph""#, "wind_speed=4.47"),
            (r#"{"WindSpeed":10},"SpeedUnit":"kn""#, "wind_speed=5.144"),
            (r#"{"PM2.5":7}"#, "pm2_5=7"),
        ] {
            assert_eq!(of(&format!(r#"{{"X":{sensor}}}"#)), [format!("|X {expected} @arrival")]);
        }
    }

    #[test]
    fn odd_payloads_keep_what_they_have() {
        for (text, expected) in [
            (
                r#"{"ENERGY":{"Power":[10,0,"7"],"Current":[1.320,2.100],"Total":3.5,"Voltage":null}}"#,
                &[
                    "| cumulative_kwh_p=3.5 current_a=1.32 current_b=2.1 current_w_a=10 current_w_b=0 current_w_c=7 @arrival",
                ][..],
            ),
            (
                r#"{"Time":"1970-01-01T00:00:05","BME280":{"Temperature":null,"Humidity":"45.5"}}"#,
                &["|BME280 humidity=45.5 @local 1970-01-01 00:00:05"],
            ),
            (
                r#"{"Time":"2026-01-11T17:00:00+01:00","Epoch":1768147200,"A":{"Humidity":1}}"#,
                &["|A humidity=1 @2026-01-11T16:00:00.000Z"],
            ),
            (
                r#"{"Time":"2026-01-11T17:00:00","UptimeSec":9,"POWER1":"ON","POWER2":"OFF","Wifi":{"RSSI":96,"Signal":-52}}"#,
                &["| on_a=1 on_b=0 signal_strength=-52 @local 2026-01-11 17:00:00"],
            ),
            (
                r#"{"ENERGY":{"Power":"much","Voltage":230}}"#,
                &["| voltage=230 @arrival", "Power \"much\" is not a number"],
            ),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn known_without_numbers_is_nothing_and_anything_else_is_not_understood() {
        for text in [
            r#"{"Time":"2026-01-11T17:00:00","Switch1":"ON"}"#,
            r#"{"ENERGY":{"TotalStartTime":"2018-11-14T18:39:40"}}"#,
            r#"{"Wifi":{"AP":1,"Signal":null}}"#,
        ] {
            assert_eq!(of(text), Vec::<String>::new(), "{text}");
        }
        for text in ["[1]", "5", "{}", r#"{"temperature": 5}"#, r#"{"params": {"ts": 1}}"#] {
            assert_eq!(shown(read, text), Err(EXPECTED), "{text}");
        }
    }
}
