//! Tasmota's telemetry: `tele/TOPIC/SENSOR`, `tele/TOPIC/STATE` and the answer to `Status 8`. Skips `Today`,
//! `Yesterday` and `Period`, which fall and so are not counters.
//!
//! Sources: <https://tasmota.github.io/docs/MQTT/>, <https://tasmota.github.io/docs/Smart-Meter-Interface/>,
//! <https://tasmota.github.io/docs/Supported-Peripherals/>

use api::endpoints::Operation;
use serde_json::{Map, Value};

use super::payload::{Payload, Rest, Row, TreeFormat, has_row, moment, rows, text};
use super::scale::{FAHRENHEIT, SAME, SWITCH, Scale};
use super::units::{
    INCHES_OF_MERCURY, KILOMETRES_PER_HOUR, KNOTS, MILES_PER_HOUR, MILLIMETRES_OF_MERCURY, PSI,
    TENFOLD, TENTH, UnitConversion,
};
use super::vocabulary;

/// Members of the device's own energy meter.
const ENERGY: &[Row] = rows! {
    SAME =>
        "Total": "cumulative_kwh_p", "ExportActive": "cumulative_kwh_n", "Power": "current_w",
        "ApparentPower": "apparent_power", "ReactivePower": "reactive_power",
        "Factor": "power_factor", "Voltage": "voltage", "Current": "current",
        "Frequency": "frequency";
};

/// Members of a sensor, which is a separate part. A digit at the end of a key numbers several values: `Temperature1`.
const SENSOR: &[Row] = rows! {
    SAME =>
        "Temperature": "temperature", "ProbeTemperature": "temperature", "AMBTMP": "temperature",
        "DewPoint": "dew_point", "Humidity": "humidity", "Pressure": "pressure",
        "SeaPressure": "sea_level_pressure", "Illuminance": "illuminance", "CarbonDioxide": "co2",
        "eCO2": "eco2", "TVOC": "tvoc", "Gas": "gas_resistance", "PM1": "pm1", "PM1_0": "pm1",
        "PM2.5": "pm2_5", "PM2_5": "pm2_5", "PM10": "pm10", "Moisture": "soil_moisture",
        "Distance": "distance", "UvIndex": "uv_index", "WindSpeed": "wind_speed",
        "Speed/Act": "wind_speed", "Speed/Max": "wind_gust", "Dir/Deg": "wind_direction",
        "Battery": "battery", "BatteryPercentage": "battery", "BatteryVoltage": "battery_voltage",
        "RSSI": "signal_strength", "LinkQuality": "link_quality", "Voltage": "voltage",
        "Current": "current", "Power": "current_w",
        // Covers are open at 100, and slats turn by degrees: <https://tasmota.github.io/docs/Blinds-and-Shutters/>
        "Position": "position", "Tilt": "tilt", "C": "count",
        // A meter's script sends these in lower case. `Energy` may come from another sensor, for a lightning flash.
        "energy": "cumulative_kwh_p", "en_out": "cumulative_kwh_n", "power": "current_w";
};

/// Members of a meter's reader, whose script chooses the names. These are the names of the documented scripts, in upper
/// or lower case.
const METER: &[Row] = rows! {
    SAME =>
        "Total_in": "cumulative_kwh_p", "E_in": "cumulative_kwh_p",
        "Energy_Tot": "cumulative_kwh_p", "Verbrauch_Summe": "cumulative_kwh_p",
        "Total_out": "cumulative_kwh_n", "E_out": "cumulative_kwh_n",
        "Energy_Tot_Export": "cumulative_kwh_n", "Einspeisung_Summe": "cumulative_kwh_n",
        "Power_curr": "current_w", "Power_cur": "current_w", "P_in": "current_w",
        "Watt_Summe": "current_w", "Power_p1": "current_w_a", "Power_p2": "current_w_b",
        "Power_p3": "current_w_c", "Power_L1": "current_w_a", "Power_L2": "current_w_b",
        "Power_L3": "current_w_c", "Watt_L1": "current_w_a", "Watt_L2": "current_w_b",
        "Watt_L3": "current_w_c", "Volt_p1": "voltage_a", "Volt_p2": "voltage_b",
        "Volt_p3": "voltage_c", "Volt_L1": "voltage_a", "Volt_L2": "voltage_b",
        "Volt_L3": "voltage_c", "Voltage_L1": "voltage_a", "Voltage_L2": "voltage_b",
        "Voltage_L3": "voltage_c", "Curr_p1": "current_a", "Curr_p2": "current_b",
        "Curr_p3": "current_c", "Current_L1": "current_a", "Current_L2": "current_b",
        "Current_L3": "current_c", "PF_L1": "power_factor_a", "PF_L2": "power_factor_b",
        "PF_L3": "power_factor_c", "HZ": "frequency";
};

/// Members of a device that Tasmota's Zigbee bridge has received.
const RECEIVED: &[Row] = rows! {
    SWITCH => "Power": "on", "Occupancy": "occupancy";
    SAME =>
        "ActivePower": "current_w", "RMSVoltage": "voltage", "RMSCurrent": "current",
        // From 0 to 254; the `Dimmer` of a Tasmota's own light is from 0 to 100.
        "Dimmer": "brightness_level", "Illuminance": "illuminance_raw";
    // 1 is an alarm: the contact is open.
    SWITCH => "Contact": "open";
};

/// Members of a sensor inside the device, which measures the device's own heat.
const INSIDE: &[Row] = &[("Temperature", "device_temperature", SAME)];

/// Prefixes of sections that describe a chip of the device: the processor or the meter.
const CHIPS: [&str; 5] = ["ESP32", "BK72", "BL09", "AXP192", "AXP2101"];

/// The state of the device itself. `Wifi/RSSI` is a percentage; `Signal` is in dBm.
const STATE: &[Row] = rows! {
    SWITCH =>
        "POWER": "on", "POWER1": "on_a", "POWER2": "on_b", "POWER3": "on_c", "POWER4": "on_d",
        "POWER5": "on_e", "POWER6": "on_f", "POWER7": "on_g", "POWER8": "on_h",
        "Switch1": "input_a", "Switch2": "input_b", "Switch3": "input_c", "Switch4": "input_d",
        "Switch5": "input_e", "Switch6": "input_f", "Switch7": "input_g", "Switch8": "input_h";
    SAME => "Dimmer": "brightness", "Wifi/Signal": "signal_strength";
};

/// Skipped members: descriptions of the device, and counts of one day or one period, which begin again at zero.
const IGNORED: &str = "\
    Address Berry Color Device Endpoint Epoch Fade HSBColor Heap Id IEEEAddr LedTable LoadAvg Manufacturer ModelId \
    MqttCount Name Period PressureUnit Scheme Sleep SleepMode Speed SpeedUnit TempUnit Time Today TotalStartTime \
    TotalToday TotalYesterday Uptime UptimeSec Wifi Yesterday";

/// The sections that are not sensors.
const NOT_SENSORS: [&str; 4] = ["ENERGY", "Wifi", "Berry", "ZbReceived"];

/// Prefixes of sections that measure a distance, with the metric and the conversion from their unit. All other sections
/// measure in cm.
const DISTANCES: &[(&str, &str, UnitConversion)] = &[
    ("VL53", "distance", TENTH),
    ("TOF10120", "distance", TENTH),
    ("A02", "distance", TENTH),
    ("HRXL", "distance", TENTH),
    ("AS3935", "lightning_distance", UnitConversion::Same),
];

pub(super) const FORMAT: TreeFormat = TreeFormat {
    operation: Operation::PostTasmota,
    expected: "ENERGY, a sensor such as {\"DS18B20\": {\"Temperature\": 20.6}}, POWER, Wifi, \
    StatusSNS, or at least Time",
    read: |payload, _| read(payload),
    device_of,
    #[cfg(test)]
    tables: &[ENERGY, SENSOR, METER, RECEIVED, INSIDE, STATE],
};

/// Reads a payload. The time is by the device's clock, and local unless it has an offset.
fn read(payload: &Value) -> Option<Vec<Payload>> {
    let told = payload.get("StatusSNS").unwrap_or(payload);
    let members = told.as_object()?;
    let time = told.get("Epoch").or_else(|| told.get("Time"));
    let mut read = Payload::new(None, moment(time));
    let mut is_known = time.is_some();

    if let Some(Value::Object(energy)) = told.get("ENERGY") {
        is_known = true;
        read.take("", &told["ENERGY"], ENERGY);
        let is_read = |key: &str| has_row(ENERGY, key);
        let rest = Rest { part: "", prefix: "ENERGY/", is_read: &is_read, ignored: &[IGNORED] };
        read.rest(rest, energy);
    }

    is_known |= read.take("", told, STATE);
    if let Some(Value::Object(received)) = told.get("ZbReceived") {
        for (address, device) in received {
            let Value::Object(values) = device else { continue };
            let part = text(device, "Name").unwrap_or(address);
            is_known |= read.take(part, device, RECEIVED);
            let section = Section { name: address, part, values };
            is_known |= read_section(&mut read, &section, told, RECEIVED);
        }
    }

    let sensors = members.iter().filter(|(name, _)| !NOT_SENSORS.contains(&name.as_str()));
    for (name, sensor) in sensors {
        let Value::Object(values) = sensor else { continue };
        is_known |= is_inside(name, told) && read.take("", sensor, &in_unit(told, INSIDE));
        let section = Section { name, part: name, values };
        is_known |= read_section(&mut read, &section, told, &[]);
    }

    if !is_known {
        return None;
    }

    let is_read = |key: &str| has_row(STATE, key);
    let rest = Rest { part: "", prefix: "", is_read: &is_read, ignored: &[IGNORED] };
    read.rest(rest, members.iter().filter(|(_, it)| !it.is_object()));
    Some(vec![read])
}

/// A sensor's section of a message.
struct Section<'a> {
    name: &'a str,
    part: &'a str,
    values: &'a Map<String, Value>,
}

/// Reads a sensor's section, except the keys in `taken`. Returns whether a table has one of the section's keys.
fn read_section(read: &mut Payload, section: &Section<'_>, told: &Value, taken: &[Row]) -> bool {
    let Section { name, part, values } = *section;
    let is_own = |key: &str| has_row(INSIDE, key) && is_inside(name, told);
    let mut is_known = false;
    let mut is_read = Vec::new();

    for (key, value) in values.iter().filter(|(key, _)| !has_row(taken, key) && !is_own(key)) {
        if let Some(metric) = metric_of(key) {
            is_known = true;
            is_read.push(key.as_str());
            let (metric, scale) = scaled(name, &metric, told);
            if !read.put(part, key, &metric, value, scale) {
                read.ignore(&format!("{name}/{key}"));
            }
        }
    }

    let whole = Value::Object(values.clone());
    let nested: Vec<Row> = SENSOR.iter().filter(|(key, ..)| key.contains('/')).copied().collect();
    is_known |= read.take(part, &whole, &in_unit(told, &nested));
    let is_read = |key: &str| {
        is_read.contains(&key) || has_row(taken, key) || has_row(&nested, key) || is_own(key)
    };
    let ignored: Vec<&str> = IGNORED.split_whitespace().filter(|key| *key != "Speed").collect();
    let prefix = format!("{name}/");
    read.rest(Rest { part, prefix: &prefix, is_read: &is_read, ignored: &ignored }, values);
    is_known
}

/// The metric of a sensor's key. A digit at the end of the key numbers several values of one metric.
fn metric_of(key: &str) -> Option<String> {
    let find =
        |key: &str| SENSOR.iter().find(|(known, ..)| *known == key).map(|(_, metric, _)| *metric);
    if let Some(metric) = find(key) {
        return Some(metric.to_owned());
    }
    let row = METER.iter().find(|(known, ..)| known.eq_ignore_ascii_case(key));
    if let Some((_, metric, _)) = row {
        return Some((*metric).to_owned());
    }
    let (digit, whole) = (key.chars().next_back()?.to_digit(10)?, &key[..key.len() - 1]);
    let phase = usize::try_from(digit).ok()?.checked_sub(1)?;
    vocabulary::of_phase(find(whole)?, phase)
}

/// The name that a metric has in a section, and the conversion from the unit of the section or of the payload.
fn scaled(section: &str, metric: &str, told: &Value) -> (String, Scale) {
    let distance = DISTANCES.iter().find(|(known, ..)| section.starts_with(known));
    match (metric, distance) {
        ("distance", Some((_, metric, conversion))) => {
            ((*metric).to_owned(), Scale::Number(*conversion))
        }
        _ => (metric.to_owned(), scale(told, metric)),
    }
}

/// Rows with conversions from the units that the payload names.
fn in_unit(told: &Value, rows: &[Row]) -> Vec<Row> {
    rows.iter().map(|(key, metric, _)| (*key, *metric, scale(told, metric))).collect()
}

/// Whether a section is a sensor inside the device: a chip, or the analogue input of a device with a meter. Plugs and
/// relays such as Shelly's measure their own heat by this input.
fn is_inside(section: &str, told: &Value) -> bool {
    CHIPS.iter().any(|chip| section.starts_with(chip))
        || section == "ANALOG" && told.get("ENERGY").is_some()
}

/// The conversion from the unit that the payload names to the metric's unit.
fn scale(told: &Value, metric: &str) -> Scale {
    let whole = metric.rsplit_once('_').filter(|(_, phase)| phase.len() == 1);

    match whole.map_or(metric, |(whole, _)| whole) {
        "temperature" | "device_temperature" | "dew_point"
            if text(told, "TempUnit") == Some("F") =>
        {
            FAHRENHEIT
        }
        "pressure" | "sea_level_pressure" => Scale::Number(match text(told, "PressureUnit") {
            Some("mmHg") => MILLIMETRES_OF_MERCURY,
            Some("inHg") => INCHES_OF_MERCURY,
            Some("kPa") => TENFOLD,
            Some("psi") => PSI,
            _ => UnitConversion::Same,
        }),
        "wind_speed" | "wind_gust" => Scale::Number(match text(told, "SpeedUnit") {
            Some("km/h") => KILOMETRES_PER_HOUR,
            Some("mph") => MILES_PER_HOUR,
            Some("kn") => KNOTS,
            Some("ft/s") => UnitConversion::Times("0.3048"),
            Some("yd/s") => UnitConversion::Times("0.9144"),
            _ => UnitConversion::Same,
        }),
        _ => SAME,
    }
}

/// Finds the device in the part of a topic after the format's name; `None` if the topic carries no readings.
/// Topics with readings are `DEVICE/tele/SENSOR`, with the `FullTopic` `roomtide/tasmota/%topic%/%prefix%/`.
fn device_of(rest: &str) -> Option<&str> {
    let (device, message) = rest.split_once('/')?;
    matches!(message, "tele/SENSOR" | "tele/STATE" | "stat/STATUS8" | "stat/STATUS10")
        .then_some(device)
}
