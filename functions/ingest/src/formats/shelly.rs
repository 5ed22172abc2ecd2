//! Payloads of Shelly devices: the status of Gen2 and later with or without a message's envelope, Gen1's `/status`, and
//! the parameters of actions. Reads no state of the system or of the cloud.
//!
//! Sources: <https://shelly-api-docs.shelly.cloud/gen2/>, <https://shelly-api-docs.shelly.cloud/gen1/>

use api::endpoints::Operation;
use serde_json::{Map, Value};

use super::payload::{Payload, Rest, Row, TreeFormat, has_row, moment, rows, text};
use super::scale::{FAHRENHEIT, MILLI, OPENING, SAME, SWITCH, Scale};
use super::units::{TENTH, UnitConversion};
use super::vocabulary;
use crate::formats::moment::PayloadTime;

/// Members of components that switch, dim, move or meter.
const METERED: &[Row] = rows! {
    SAME =>
        "apower": "current_w", "act_power": "current_w", "aprt_power": "apparent_power", "voltage",
        "current", "freq": "frequency", "pf": "power_factor";
    MILLI =>
        "aenergy/total": "cumulative_kwh_p", "ret_aenergy/total": "cumulative_kwh_n",
        "total_act_energy": "cumulative_kwh_p", "total_act_ret_energy": "cumulative_kwh_n";
    SAME => "temperature/tC": "device_temperature";
    SWITCH => "output": "on";
    SAME =>
        "brightness",
        // For covers and for slats, 100 is open:
        // <https://shelly-api-docs.shelly.cloud/gen2/ComponentsAndServices/Cover>
        "current_pos": "position", "slat_pos": "tilt_opening";
    OPENING => "state": "open";
};

/// Members of a three-phase meter and of its energies.
const PHASES: &[Row] = rows! {
    phases SAME =>
        "act_power": "current_w", "aprt_power": "apparent_power", "voltage", "current",
        "pf": "power_factor", "freq": "frequency";
    SAME =>
        "total_act_power": "current_w", "total_aprt_power": "apparent_power",
        "n_current": "current_n", "total_current": "current";
    phases MILLI =>
        "total_act_energy": "cumulative_kwh_p", "total_act_ret_energy": "cumulative_kwh_n";
    MILLI => "total_act": "cumulative_kwh_p", "total_act_ret": "cumulative_kwh_n";
};

/// The temperature of the board. A device that switches nothing sends this temperature as a separate component.
const BOARD: &[Row] = &[("tC", "device_temperature", SAME)];

/// Members of components that measure. A temperature comes in °C and in °F; °C is preferred.
const MEASURING: &[Row] = rows! {
    SAME =>
        "tC": "temperature", "rh": "humidity", "lux": "illuminance", "battery/percent": "battery",
        "battery/V": "battery_voltage", "voltage";
};

/// Members of components that raise an alarm: `true` is an alarm.
const SMOKE: &[Row] = &[("alarm", "smoke", SWITCH)];
const FLOOD: &[Row] = &[("alarm", "water_leak", SWITCH)];
const GAS: &[Row] = &[("alarm", "gas", SWITCH), ("ppm", "gas_concentration", SAME)];
const CARBON_MONOXIDE: &[Row] = &[("alarm", "carbon_monoxide", SWITCH)];

/// Members of presence sensors and of their zones.
const PRESENCE: &[Row] = &[("value", "presence", SWITCH), ("state", "presence", SWITCH)];

/// Members of inputs: of a switch, of an analogue input, or of a counter of pulses.
const INPUT: &[Row] =
    &[("state", "input", SWITCH), ("counts/total", "count", SAME), ("freq", "frequency", SAME)];

/// Members of radiator valves and of thermostats.
const THERMOSTAT: &[Row] = rows! {
    SAME =>
        "current_C": "temperature", "target_C": "set_temperature", "current_humidity": "humidity",
        // 100 is open: <https://shelly-api-docs.shelly.cloud/gen2/Devices/Gen3/ShellyBluGwG3>
        "pos": "position";
    SWITCH => "output": "heating";
    SAME => "battery", "rssi": "signal_strength";
};

/// Members of a Bluetooth device that a gateway receives. The device's measurements are separate components.
const BLUETOOTH: &[Row] = &[("battery", "battery", SAME), ("rssi", "signal_strength", SAME)];

/// Members of messages in which a script passes on a Bluetooth device's data.
const HEARD: &[Row] = rows! {
    SAME => "battery", "rssi": "signal_strength", "temperature", "humidity", "illuminance";
    SWITCH => "motion", "window": "open";
    // In degrees: <https://bthome.io/format/>
    SAME => "rotation": "tilt", "moisture": "soil_moisture";
    Scale::Number(TENTH) => "distance";
};

/// Metrics of Bluetooth sensors by their object's number in `BTHome`. Only answers to `Shelly.GetComponents` have the
/// number.
///
/// Source: <https://bthome.io/format/>
const OBJECTS: &[(u64, &str, Scale)] = &[
    (1, "battery", SAME),
    (2, "temperature", SAME),
    (3, "humidity", SAME),
    (4, "pressure", SAME),
    (5, "illuminance", SAME),
    (12, "voltage", SAME),
    (18, "co2", SAME),
    (26, "open", SWITCH),
    (32, "water_leak", SWITCH),
    (33, "motion", SWITCH),
    (35, "occupancy", SWITCH),
    (37, "presence", SWITCH),
    (41, "smoke", SWITCH),
    (45, "open", SWITCH),
    (46, "humidity", SAME),
    (47, "soil_moisture", SAME),
    (61, "count", SAME),
    (63, "tilt", SAME),
    (64, "distance", Scale::Number(TENTH)),
    (68, "wind_speed", SAME),
    (69, "temperature", SAME),
    (70, "uv_index", SAME),
    (94, "wind_direction", SAME),
    (95, "rain", SAME),
];

/// The components that are read: the kinds, which stand before `:`, and their table.
const COMPONENTS: &[(&str, &[Row])] = &[
    ("switch light cover rgb rgbw cct pm1 em1 em1data", METERED),
    ("em emdata", PHASES),
    ("temperature humidity illuminance devicepower voltmeter", MEASURING),
    ("smoke", SMOKE),
    ("flood", FLOOD),
    ("gas", GAS),
    ("co", CARBON_MONOXIDE),
    ("presence presencezone", PRESENCE),
    ("input", INPUT),
    ("thermostat blutrv", THERMOSTAT),
    ("bthomedevice", BLUETOOTH),
    ("bthomesensor number boolean", &[]),
];

/// Kinds of components that only measure.
const SENSORS: &str = "\
    thermostat temperature humidity illuminance devicepower voltmeter smoke flood gas co presence presencezone input \
    blutrv bthomedevice bthomesensor number boolean";

/// Kinds of components that are parts of the device even with the number 0: a device may have both a thermostat and the
/// thermometer that the thermostat reads.
const PARTS: [&str; 6] =
    ["thermostat", "blutrv", "bthomedevice", "bthomesensor", "number", "boolean"];

/// Kinds of components without measurements. A payload with one of them comes from a Shelly.
const SILENT: [&str; 21] = [
    "sys", "cloud", "wifi", "eth", "mqtt", "ws", "ble", "script", "bthome", "ui", "knx", "matter",
    "modbus", "plugs_ui", "ht_ui", "wd_ui", "blugw", "schedule", "zigbee", "button", "group",
];

/// Members of a message that are not components.
const ENVELOPE: [&str; 6] = ["ts", "events", "id", "src", "dst", "method"];

/// The member for a Bluetooth sensor's object number, added to the sensor's status.
const OBJECT: &str = "obj_id";

/// Skipped members: descriptions of a component, and a meter's energies of single minutes, which are not counters.
const IGNORED: &str = "\
    actions_stats aenergy by_minute calibrating cfg_changed_cnt charger color_temp_range connect_retries counters \
    errors external event event_cnt flags has_timer hwID BTHome_version addr address encryption pid id \
    illumination is_valid last_direction last_event last_update_ts last_updated_ts minute_ts move_started_at \
    move_timeout mute overpower overtemperature obj_id packet_id paired pos_control positioning ret_aenergy rgb \
    rpc rsv safety_switch schedule schedules slat source started_at stop_reason tC tF target_pos temperature \
    timer_* timestamp transition ts units user_calibrated_phase xcounts xfreq";

/// Members of Gen1's `/status`. `temperature` is the heat of a relay; `tmp` has the same value.
const GEN1: &[Row] = rows! {
    SENSED =>
        "hum/value": "humidity", "bat/value": "battery", "bat/voltage": "battery_voltage",
        "lux/value": "illuminance";
    SAME => "temperature": "device_temperature";
    SWITCH => "flood": "water_leak", "smoke";
    OPENING => "sensor/state": "open";
    SWITCH => "sensor/motion": "motion", "sensor/vibration": "vibration";
    // In degrees: <https://shelly-api-docs.shelly.cloud/gen1/#shelly-door-window-1-2-status>
    SENSED => "accel/tilt": "tilt";
    Scale::Unless(&["-1"]) => "accel/vibration": "vibration";
    SAME => "concentration/ppm": "gas_concentration";
    ALARM => "gas_sensor/alarm_state": "gas";
    SAME =>
        "wifi_sta/rssi": "signal_strength", "voltage", "total_power": "current_w",
        "emeter_n/current": "current_n";
};
/// Members of a relay, a light or a roller.
const GEN1_OUTPUT: &[Row] = &[
    ("ison", "on", SWITCH),
    // 100 is open: <https://shelly-api-docs.shelly.cloud/gen1/#shelly2-5-roller-0>
    ("current_pos", "position", SAME),
    ("brightness", "brightness", SAME),
    ("power", "current_w", SAME),
];
/// Members of a relay's or a light's meter, which counts watt-minutes.
const GEN1_METER: &[Row] =
    &[("power", "current_w", SAME), ("total", "cumulative_kwh_p", WATT_MINUTES)];
/// Members of a separate energy meter, which counts Wh.
const GEN1_ENERGY_METER: &[Row] = rows! {
    SAME =>
        "power": "current_w", "voltage", "current", "pf": "power_factor",
        "reactive": "reactive_power";
    MILLI => "total": "cumulative_kwh_p", "total_returned": "cumulative_kwh_n";
};
/// Members of a switch's input, and (`GEN1_ANALOGUE`) of an analogue input.
const GEN1_INPUT: &[Row] = &[("input", "input", SWITCH)];
const GEN1_ANALOGUE: &[Row] = &[("voltage", "voltage", SAME)];
/// Members of the valve of a gas pipe.
const GEN1_VALVE: &[Row] = &[("state", "open", OPENING)];
/// Members of a radiator valve. `tmp/units` has the unit of its temperatures.
const GEN1_THERMOSTAT: &[Row] = &[
    ("tmp/value", "temperature", SENSED_DEGREES),
    ("target_t/value", "set_temperature", SENSED_DEGREES),
    // 100 is open: <https://shelly-api-docs.shelly.cloud/gen1/#shelly-trv-status>
    ("pos", "position", SENSED),
    ("window_open", "window_open", SWITCH),
];

/// The lists in Gen1's `/status`, and the tables of their elements.
const GEN1_LISTS: &[(&str, &[Row])] = &[
    ("inputs", GEN1_INPUT),
    ("adcs", GEN1_ANALOGUE),
    ("relays", GEN1_OUTPUT),
    ("lights", GEN1_OUTPUT),
    ("rollers", GEN1_OUTPUT),
    ("meters", GEN1_METER),
    ("emeters", GEN1_ENERGY_METER),
    ("thermostats", GEN1_THERMOSTAT),
    ("valves", GEN1_VALVE),
];

/// Members of Gen1's `/status` that are skipped, mostly because they describe the device itself.
const GEN1_IGNORED: &str = "\
    wifi_sta cloud mqtt time unixtime serial has_update mac update ram_* fs_* uptime temperature_status overload \
    max_power sensor is_valid tmp hum bat lux accel gas_sensor concentration act_reasons sensor_error getinfo \
    input mode emeter_n v_data ixsum mismatch self_test_state relays lights rollers meters emeters inputs adcs \
    thermostats ext_temperature ext_humidity ext_sensors ext_switch valves gain white temp red green blue \
    boost_minutes schedule_profile target_t ison state wifi_ap calibrated rotation_* dbg_flags ps_mode";

/// Parameters of actions that differ from the names of values in Gen2: the parameters that Gen1 adds to an address, and
/// short names.
const OF_ACTIONS: &[Row] = rows! {
    SENSED_DEGREES => "temp": "temperature";
    FAHRENHEIT => "tF": "temperature";
    SENSED =>
        "hum": "humidity", "lux": "illuminance", "bat": "battery", "batV": "battery_voltage",
        "tilt";
    SWITCH => "flood": "water_leak", "smoke", "vibration", "motion";
    SAME => "ppm": "gas_concentration";
};

/// The rows of an action's parameters. The names that values have in Gen2 are parameters as well.
pub(crate) fn parameters() -> Vec<Row> {
    let rows = [OF_ACTIONS, METERED, PHASES, MEASURING].concat();
    rows.into_iter().filter(|(key, ..)| !key.contains('/')).collect()
}

/// Watt-minutes to kWh, rounded to the milliwatt-hour.
const WATT_MINUTES: Scale =
    Scale::Number(UnitConversion::By(|watt_minutes| watt_minutes / 60_000.0, 6));

/// The alarm of a gas sensor.
const ALARM: Scale = Scale::Words(&[("none", "0"), ("mild", "1"), ("heavy", "1"), ("test", "0")]);

/// A value of Gen1. 999 and -1 mean that there is no sensor. For temperatures (`SENSED_DEGREES`) only 999 does, since
/// -1 may be measured.
const SENSED: Scale = Scale::Unless(&["999", "-1"]);
const SENSED_DEGREES: Scale = Scale::Unless(&["999"]);

pub(super) const FORMAT: TreeFormat = TreeFormat {
    operation: Operation::PostShelly,
    expected: "a notification with params, a status with components such as switch:0, em:0 or \
    temperature:0, or Gen1's status with meters, emeters, relays, tmp or bat",
    read: |payload, _| read(payload),
    device_of,
    #[cfg(test)]
    tables: &[
        METERED,
        PHASES,
        BOARD,
        MEASURING,
        SMOKE,
        FLOOD,
        GAS,
        CARBON_MONOXIDE,
        PRESENCE,
        INPUT,
        THERMOSTAT,
        BLUETOOTH,
        HEARD,
        GEN1_INPUT,
        GEN1_ANALOGUE,
        GEN1_THERMOSTAT,
        GEN1_VALVE,
        GEN1,
        GEN1_OUTPUT,
        GEN1_METER,
        GEN1_ENERGY_METER,
        OF_ACTIONS,
    ],
};

/// Reads a payload. A notification is partial: it has only the components that changed.
fn read(payload: &Value) -> Option<Vec<Payload>> {
    let told = payload.get("params").or_else(|| payload.get("result")).unwrap_or(payload);
    let components = told.get("components").and_then(Value::as_array).map(Vec::as_slice);
    let listed = components.map(status_of);
    let status = listed.as_ref().unwrap_or(told);
    let members = status.as_object()?;
    if members.keys().any(|key| has_name(GEN1_SIGNS, key)) {
        return Some(vec![read_gen1(status)]);
    }

    let time = status.get("ts").or_else(|| status.pointer("/sys/unixtime"));
    let mac = status.get("sys").and_then(|sys| text(sys, "mac"));
    let source = text(payload, "src");
    let mut read = Payload::new(source.or(mac), moment(time));

    // Two kinds of messages come from a Shelly even if they have no components: events of buttons and scripts, and
    // answers to commands.
    let is_event = text(payload, "method").is_some_and(|method| method.starts_with("Notify"));
    let is_answer = payload.get("src").is_some() && payload.get("result").is_some();
    let has_heard = heard_by_scripts(&mut read, members.get("events"));

    let mut is_known = is_event || is_answer || has_heard;
    for component in members.keys() {
        is_known |= read_component(&mut read, component, members, source);
    }
    is_known.then(|| vec![read])
}

/// Reads a component of a status. Returns whether Shelly devices have such a component.
fn read_component(
    payload: &mut Payload,
    component: &str,
    members: &Map<String, Value>,
    source: Option<&str>,
) -> bool {
    let values = &members[component];
    let (kind, number) = component.split_once(':').unwrap_or((component, ""));
    let is_silent = SILENT.contains(&kind);
    if is_silent || ENVELOPE.contains(&kind) {
        return is_silent;
    }

    let rows = rows_of(kind).filter(|_| !number.is_empty());
    let Some(rows) = rows else {
        if values.is_object() && !number.is_empty() {
            payload.unite(component, component_of(component, component, values, &[]));
        } else {
            payload.ignore(component);
        }
        return false;
    };

    // `rgb:0` is always a part: the device's own light is the white `cct:0` or `light:0`, which may be absent here.
    let is_device = number == "0" && kind != "rgb" && !PARTS.contains(&kind);
    // A meter's energies are in a second component: `em1data:0` belongs to the meter `em1:0`.
    let name = kind.strip_suffix("data").unwrap_or(kind);
    let part = if is_device { String::new() } else { format!("{name}:{number}") };

    let is_board = kind == "temperature" && has_board(number, source, members);
    let mut one = component_of(component, &part, values, if is_board { BOARD } else { rows });
    if kind == "temperature" && values.get("tC").is_none() {
        let metric = if is_board { "device_temperature" } else { "temperature" };
        one.take(&part, values, &[("tF", metric, FAHRENHEIT)]);
    }
    payload.unite(component, one);
    true
}

/// The table of a kind of components.
fn rows_of(kind: &str) -> Option<&'static [Row]> {
    COMPONENTS.iter().find(|(kinds, _)| has_name(kinds, kind)).map(|(_, rows)| *rows)
}

/// Reads Bluetooth data that a script on a gateway passes on, such as Shelly's example script. The device of each
/// address is a part. Returns whether there is such data.
///
/// Source: <https://github.com/ALLTERCO/shelly-script-examples>
fn heard_by_scripts(read: &mut Payload, events: Option<&Value>) -> bool {
    let events = events.and_then(Value::as_array).into_iter().flatten();
    let heard = events.filter_map(|event| Some((text(event, "component")?, event.get("data")?)));
    let mut has_heard = false;
    for (component, data) in heard.filter(|(_, data)| data.is_object()) {
        has_heard = true;
        let address = text(data, "address").or_else(|| text(data, "addr"));
        let part = address.unwrap_or(component);
        read.unite(component, component_of(component, part, data, HEARD));
    }
    has_heard
}

/// Collects the status of each component that an answer lists, by the component's key.
fn status_of(components: &[Value]) -> Value {
    let status = components.iter().filter_map(|component| {
        let mut status = component.get("status")?.clone();
        let object = component.pointer("/config/obj_id");
        if let (Some(status), Some(object)) = (status.as_object_mut(), object) {
            status.insert(OBJECT.to_owned(), object.clone());
        }
        Some((text(component, "key")?.to_owned(), status))
    });
    Value::Object(status.collect())
}

/// Reads a component: the members that its table has, then all others.
fn component_of(component: &str, part: &str, values: &Value, rows: &[Row]) -> Payload {
    let mut one = Payload::new(None, PayloadTime::Arrival);
    let object = values.get(OBJECT).and_then(Value::as_u64);
    let sensed: Vec<Row> = OBJECTS
        .iter()
        .filter(|(number, ..)| object == Some(*number))
        .map(|(_, metric, scale)| ("value", *metric, *scale))
        .collect();
    let rows = if sensed.is_empty() { rows } else { sensed.as_slice() };
    one.take(part, values, rows);

    let Value::Object(values) = values else { return one };
    let is_read = |key: &str| has_row(rows, key);
    let prefix = format!("{component}/");
    let rest = Rest { part, prefix: &prefix, is_read: &is_read, ignored: &[IGNORED] };

    match values.get("value").filter(|_| rows.is_empty()).and_then(Value::as_bool) {
        Some(state) => {
            let mut values = values.clone();
            values.insert("value".to_owned(), u8::from(state).into());
            one.rest(rest, &values);
        }
        None => one.rest(rest, values),
    }

    one
}

/// The lowest number of a component for an add-on's temperature probe.
const FIRST_PROBE: u32 = 100;

/// Whether the component `temperature:NUMBER` measures the device's board. This is so in devices that meter or switch
/// and measure no humidity. The model in the device's name says so too (`shellypro3em-...`, `shelly3em63g3-...`),
/// because a notification may have no other components. A wall display switches, but measures the room.
fn has_board(number: &str, source: Option<&str>, members: &Map<String, Value>) -> bool {
    let model = source.and_then(|source| source.rsplit_once('-')).map_or("", |(model, _)| model);
    let model = model.to_ascii_lowercase();
    let is_probe = number.parse::<u32>().is_ok_and(|number| number >= FIRST_PROBE);
    if is_probe || model.contains("walldisplay") || members.contains_key("humidity:0") {
        return false;
    }

    let works = |component: &str| {
        let kind = component.split_once(':').map_or("", |(kind, _)| kind);
        !has_name(SENSORS, kind) && rows_of(kind).is_some()
    };
    model.starts_with("shellypro")
        || model.contains("em")
        || members.keys().any(|component| works(component))
}

/// Members by which Gen1's `/status` is recognized.
const GEN1_SIGNS: &str = "meters emeters relays lights rollers thermostats tmp hum bat wifi_sta";

/// Whether a name is in a list of names that are separated by spaces.
fn has_name(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

fn read_gen1(status: &Value) -> Payload {
    let mut read = Payload::new(text(status, "mac"), moment(status.get("unixtime")));
    read.take("", status, GEN1);
    for (list, rows) in GEN1_LISTS {
        read_gen1_list(&mut read, status, list, rows);
    }

    if let Some(sensor) = status.get("tmp")
        && status.get("temperature").is_none()
        && is_valid(sensor)
    {
        // A dimmer sends its own heat under the name of a thermometer's room temperature.
        let works = ["relays", "lights", "rollers", "meters", "emeters"];
        let is_inside = works.iter().any(|list| status.get(*list).is_some());
        let metric = if is_inside { "device_temperature" } else { "temperature" };
        read.take("", sensor, &[("tC", metric, SENSED_DEGREES)]);
    }

    for (list, row) in [
        ("ext_temperature", ("tC", "temperature", SENSED_DEGREES)),
        ("ext_humidity", ("hum", "humidity", SENSED)),
    ] {
        let sensors = status.get(list).and_then(Value::as_object).into_iter().flatten();
        for (number, sensor) in sensors {
            read.take(&format!("ext:{number}"), sensor, &[row]);
        }
    }

    rest_of_gen1(&mut read, "", "", status, GEN1);
    read
}

/// Reads the valid elements of a list as parts of the device. Three energy meters are the phases of one meter.
fn read_gen1_list(read: &mut Payload, status: &Value, list: &str, rows: &[Row]) {
    let elements: &[Value] = status.get(list).and_then(Value::as_array).map_or(&[], Vec::as_slice);
    let is_phases = list == "emeters" && elements.len() == 3;
    // The meter of a relay is the same part as the relay.
    let metered = ["relays", "lights", "rollers"].into_iter().find(|of| status.get(*of).is_some());
    let name = metered.filter(|_| list == "meters").unwrap_or(list).trim_end_matches('s');

    for (number, element) in elements.iter().enumerate().filter(|(_, element)| is_valid(element)) {
        if is_phases {
            for (key, metric, scale) in rows {
                let metric = vocabulary::of_phase(metric, number).expect("one of three");
                let value = element.get(*key).unwrap_or(&Value::Null);
                read.put("", key, &metric, value, *scale);
            }
            continue;
        }

        let part = if number == 0 { String::new() } else { format!("{name}:{number}") };
        let is_fahrenheit = element.pointer("/tmp/units").is_some_and(|unit| unit == "F");
        for (key, metric, scale) in rows {
            let is_degrees = is_fahrenheit && metric.ends_with("temperature");
            let scale = if is_degrees { FAHRENHEIT } else { *scale };
            read.take(&part, element, &[(key, metric, scale)]);
        }
        rest_of_gen1(read, &part, &format!("{list}/{number}/"), element, rows);
    }
}

/// Reads the members of a status, or of a list's element, that are in no table of this format.
fn rest_of_gen1(read: &mut Payload, part: &str, prefix: &str, object: &Value, rows: &[Row]) {
    let Value::Object(members) = object else { return };
    let is_read = |key: &str| has_row(rows, key);
    let ignored = &[IGNORED, GEN1_IGNORED];
    read.rest(Rest { part, prefix, is_read: &is_read, ignored }, members);
}

fn is_valid(sensor: &Value) -> bool {
    sensor.get("is_valid") != Some(&Value::Bool(false))
}

/// The device in `DEVICE/events/rpc`, the rest of a topic below `roomtide/shelly/`. Other topics repeat the values.
fn device_of(rest: &str) -> Option<&str> {
    rest.strip_suffix("/events/rpc")
}
