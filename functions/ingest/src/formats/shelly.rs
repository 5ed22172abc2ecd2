//! Shelly's status: Gen2 and later with or without the envelope of its messages, Gen1's `/status`, and the
//! parameters of actions. Reads no inputs and no system, cloud or Wi-Fi state.
//!
//! Sources: <https://shelly-api-docs.shelly.cloud/gen2/>, <https://shelly-api-docs.shelly.cloud/gen1/>

use serde_json::{Map, Value};

use super::payload::{FAHRENHEIT, MILLI, Payload, Row, Scale, Unknown, moment, text};
use crate::formats::moment::Moment;

/// A component that switches, dims, moves or meters.
const METERED: &[Row] = &[
    ("apower", "current_w", Scale::Same),
    ("act_power", "current_w", Scale::Same),
    ("aprt_power", "apparent_power", Scale::Same),
    ("voltage", "voltage", Scale::Same),
    ("current", "current", Scale::Same),
    ("freq", "frequency", Scale::Same),
    ("pf", "power_factor", Scale::Same),
    ("aenergy/total", "cumulative_kwh_p", MILLI),
    ("ret_aenergy/total", "cumulative_kwh_n", MILLI),
    ("total_act_energy", "cumulative_kwh_p", MILLI),
    ("total_act_ret_energy", "cumulative_kwh_n", MILLI),
    ("temperature/tC", "device_temperature", Scale::Same),
    ("output", "on", Scale::Switch),
    ("brightness", "brightness", Scale::Same),
    ("current_pos", "position", Scale::Same),
];

/// The meter of three phases, and its energies.
const PHASES: &[Row] = &[
    ("a_act_power", "current_w_a", Scale::Same),
    ("b_act_power", "current_w_b", Scale::Same),
    ("c_act_power", "current_w_c", Scale::Same),
    ("total_act_power", "current_w", Scale::Same),
    ("a_aprt_power", "apparent_power_a", Scale::Same),
    ("b_aprt_power", "apparent_power_b", Scale::Same),
    ("c_aprt_power", "apparent_power_c", Scale::Same),
    ("total_aprt_power", "apparent_power", Scale::Same),
    ("a_voltage", "voltage_a", Scale::Same),
    ("b_voltage", "voltage_b", Scale::Same),
    ("c_voltage", "voltage_c", Scale::Same),
    ("a_current", "current_a", Scale::Same),
    ("b_current", "current_b", Scale::Same),
    ("c_current", "current_c", Scale::Same),
    ("n_current", "current_n", Scale::Same),
    ("total_current", "current", Scale::Same),
    ("a_pf", "power_factor_a", Scale::Same),
    ("b_pf", "power_factor_b", Scale::Same),
    ("c_pf", "power_factor_c", Scale::Same),
    ("a_freq", "frequency_a", Scale::Same),
    ("b_freq", "frequency_b", Scale::Same),
    ("c_freq", "frequency_c", Scale::Same),
    ("a_total_act_energy", "cumulative_kwh_p_a", MILLI),
    ("b_total_act_energy", "cumulative_kwh_p_b", MILLI),
    ("c_total_act_energy", "cumulative_kwh_p_c", MILLI),
    ("a_total_act_ret_energy", "cumulative_kwh_n_a", MILLI),
    ("b_total_act_ret_energy", "cumulative_kwh_n_b", MILLI),
    ("c_total_act_ret_energy", "cumulative_kwh_n_c", MILLI),
    ("total_act", "cumulative_kwh_p", MILLI),
    ("total_act_ret", "cumulative_kwh_n", MILLI),
];

/// The temperature of the board, which has a component of its own where nothing switches.
const BOARD: &[Row] = &[("tC", "device_temperature", Scale::Same)];

/// A component that measures; a temperature has both units, and the first is taken.
const MEASURING: &[Row] = &[
    ("tC", "temperature", Scale::Same),
    ("rh", "humidity", Scale::Same),
    ("lux", "illuminance", Scale::Same),
    ("battery/percent", "battery", Scale::Same),
    ("battery/V", "battery_voltage", Scale::Same),
    ("voltage", "voltage", Scale::Same),
    ("alarm", "smoke", Scale::Switch),
];

/// The components that are read: what stands before `:`, the part's name, the table.
const COMPONENTS: &[(&str, &str, &[Row])] = &[
    ("switch", "switch", METERED),
    ("light", "light", METERED),
    ("cover", "cover", METERED),
    ("rgb", "rgb", METERED),
    ("rgbw", "rgbw", METERED),
    ("cct", "cct", METERED),
    ("pm1", "pm1", METERED),
    ("em1", "em1", METERED),
    ("em1data", "em1", METERED),
    ("em", "em", PHASES),
    ("emdata", "em", PHASES),
    ("temperature", "temperature", MEASURING),
    ("humidity", "humidity", MEASURING),
    ("illuminance", "illuminance", MEASURING),
    ("devicepower", "devicepower", MEASURING),
    ("voltmeter", "voltmeter", MEASURING),
    ("smoke", "smoke", MEASURING),
];

/// The components that measure only.
const SENSORS: [&str; 6] =
    ["temperature", "humidity", "illuminance", "devicepower", "voltmeter", "smoke"];

/// Components without numbers. Whoever sends one of them is a Shelly.
const SILENT: [&str; 10] =
    ["sys", "cloud", "wifi", "eth", "mqtt", "ws", "ble", "script", "input", "bthome"];

/// The members of Gen1's `/status`; `temperature` is that of a relay, which has it as `tmp` again.
const GEN1: &[Row] = &[
    ("hum/value", "humidity", SENSED),
    ("bat/value", "battery", SENSED),
    ("bat/voltage", "battery_voltage", SENSED),
    ("lux/value", "illuminance", SENSED),
    ("temperature", "device_temperature", Scale::Same),
    ("flood", "water_leak", Scale::Switch),
    ("smoke", "smoke", Scale::Switch),
    ("sensor/state", "open", Scale::Opening),
    ("wifi_sta/rssi", "signal_strength", Scale::Same),
];
/// A relay, a light or a roller.
const GEN1_OUTPUT: &[Row] =
    &[("ison", "on", Scale::Switch), ("current_pos", "position", Scale::Same)];
/// A meter of a relay or a light, which counts watt-minutes.
const GEN1_METER: &[Row] =
    &[("power", "current_w", Scale::Same), ("total", "cumulative_kwh_p", WATT_MINUTES)];
/// A meter of its own, which counts Wh.
const GEN1_ENERGY_METER: &[Row] = &[
    ("power", "current_w", Scale::Same),
    ("voltage", "voltage", Scale::Same),
    ("current", "current", Scale::Same),
    ("pf", "power_factor", Scale::Same),
    ("reactive", "reactive_power", Scale::Same),
    ("total", "cumulative_kwh_p", MILLI),
    ("total_returned", "cumulative_kwh_n", MILLI),
];

/// The parameters of actions: those that Gen1 appends, and the names of Gen2's values.
pub(crate) const PARAMETERS: &[Row] = &[
    ("temp", "temperature", SENSED_DEGREES),
    ("tC", "temperature", Scale::Same),
    ("tF", "temperature", FAHRENHEIT),
    ("hum", "humidity", SENSED),
    ("rh", "humidity", Scale::Same),
    ("lux", "illuminance", SENSED),
    ("bat", "battery", SENSED),
    ("batV", "battery_voltage", SENSED),
    ("flood", "water_leak", Scale::Switch),
    ("smoke", "smoke", Scale::Switch),
    ("state", "open", Scale::Opening),
    ("tilt", "tilt", SENSED),
    ("vibration", "vibration", Scale::Switch),
    ("apower", "current_w", Scale::Same),
    ("act_power", "current_w", Scale::Same),
    ("voltage", "voltage", Scale::Same),
    ("current", "current", Scale::Same),
    ("output", "on", Scale::Switch),
];

/// Watt-minutes to kWh, to the milliwatt-hour.
const WATT_MINUTES: Scale = Scale::By(|watt_minutes| watt_minutes / 60_000.0, 6);

/// A value of Gen1, which says 999 or -1 where a sensor is not there; -1 can be a temperature.
const SENSED: Scale = Scale::Unless(&["999", "-1"]);
const SENSED_DEGREES: Scale = Scale::Unless(&["999"]);

pub(crate) const EXPECTED: &str = "a notification with params, a status with components such as switch:0, em:0 or \
    temperature:0, or Gen1's status with meters, emeters, relays, tmp or bat";

/// Reads a payload. A notification is partial: it has what changed.
pub(crate) fn read(payload: &Value) -> Result<Vec<Payload>, Unknown> {
    let status = payload.get("params").or_else(|| payload.get("result")).unwrap_or(payload);
    let Some(members) = status.as_object() else { return Err(Unknown(EXPECTED)) };
    if members.keys().any(|key| is_gen1(key)) {
        return Ok(vec![read_gen1(status)]);
    }
    let time = status.get("ts").or_else(|| status.pointer("/sys/unixtime"));
    let mac = status.get("sys").and_then(|sys| text(sys, "mac"));
    let mut read = Payload::new(text(payload, "src").or(mac), moment(time));
    // Events of buttons and of scripts; an answer to a command that reports nothing.
    let mut is_known = text(payload, "method").is_some_and(|it| it.starts_with("Notify"))
        || payload.get("src").is_some() && payload.get("result").is_some();
    for (component, values) in members {
        let (kind, number) = component.split_once(':').unwrap_or((component, ""));
        is_known |= SILENT.iter().any(|silent| kind.starts_with(silent));
        let read_by = COMPONENTS.iter().find(|(known, ..)| *known == kind);
        let Some((_, name, rows)) = read_by.filter(|_| !number.is_empty()) else { continue };
        is_known = true;
        // The white of a coloured light is `cct:0` or `light:0`; a notification need not contain it.
        let is_whole = number == "0" && kind != "rgb";
        let part = if is_whole { String::new() } else { format!("{name}:{number}") };
        let is_board = kind == "temperature" && has_board(number, text(payload, "src"), members);
        let (rows, temperature) =
            if is_board { (BOARD, "device_temperature") } else { (*rows, "temperature") };
        let mut one = Payload::new(None, Moment::Arrival);
        one.take(&part, values, rows);
        if values.get("tC").is_none() {
            one.take(&part, values, &[("tF", temperature, FAHRENHEIT)]);
        }
        read.unite(component, one);
    }
    if is_known { Ok(vec![read]) } else { Err(Unknown(EXPECTED)) }
}

/// The number of the first temperature that an add-on measures by a probe.
const FIRST_PROBE: u32 = 100;

/// Whether a component `temperature:NUMBER` is the device's board: that of a device that meters or switches and
/// has no humidity. A notification need not have the components that tell; then the model does, which is
/// in the name of a Pro and of a meter (`shellypro3em-...`, `shelly3em63g3-...`). A wall display
/// switches and measures its room.
fn has_board(number: &str, source: Option<&str>, members: &Map<String, Value>) -> bool {
    let model = source.and_then(|it| it.rsplit_once('-')).map_or("", |(model, _)| model);
    let model = model.to_ascii_lowercase();
    let is_probe = number.parse::<u32>().is_ok_and(|number| number >= FIRST_PROBE);
    if is_probe || model.contains("walldisplay") || members.contains_key("humidity:0") {
        return false;
    }
    let works = |component: &str| {
        let kind = component.split_once(':').map_or("", |(kind, _)| kind);
        !SENSORS.contains(&kind) && COMPONENTS.iter().any(|(known, ..)| *known == kind)
    };
    model.starts_with("shellypro")
        || model.contains("em")
        || members.keys().any(|component| works(component))
}

fn is_gen1(key: &str) -> bool {
    matches!(
        key,
        "meters" | "emeters" | "relays" | "lights" | "rollers" | "tmp" | "hum" | "bat" | "wifi_sta"
    )
}

fn read_gen1(status: &Value) -> Payload {
    let mut read = Payload::new(text(status, "mac"), moment(status.get("unixtime")));
    read.take("", status, GEN1);
    for (list, name, rows) in [
        ("relays", "relay", GEN1_OUTPUT),
        ("lights", "light", GEN1_OUTPUT),
        ("rollers", "roller", GEN1_OUTPUT),
        ("meters", "meter", GEN1_METER),
        ("emeters", "emeter", GEN1_ENERGY_METER),
    ] {
        let elements = status.get(list).and_then(Value::as_array).into_iter().flatten();
        for (number, element) in elements.enumerate() {
            // A meter and the relay that it meters are one part.
            let name = if list == "meters" { metered(status) } else { name };
            let part = if number == 0 { String::new() } else { format!("{name}:{number}") };
            if is_valid(element) {
                read.take(&part, element, rows);
            }
        }
    }
    if let Some(sensor) = status.get("tmp")
        && status.get("temperature").is_none()
        && is_valid(sensor)
    {
        // A dimmer tells its own heat by the name by which a thermometer tells the room's.
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
    read
}

fn is_valid(sensor: &Value) -> bool {
    sensor.get("is_valid") != Some(&Value::Bool(false))
}

/// The name of what the meters of a Gen1 device measure.
fn metered(status: &Value) -> &'static str {
    let names = [("relays", "relay"), ("lights", "light"), ("rollers", "roller")];
    names.iter().find(|(list, _)| status.get(*list).is_some()).map_or("meter", |(_, name)| name)
}

#[cfg(test)]
pub(super) const TABLES: [&[Row]; 9] = [
    METERED,
    PHASES,
    BOARD,
    MEASURING,
    GEN1,
    GEN1_OUTPUT,
    GEN1_METER,
    GEN1_ENERGY_METER,
    PARAMETERS,
];

/// The device that a topic names behind the format, if its messages have readings:
/// `DEVICE/events/rpc`: the MQTT prefix is `roomtide/shelly/DEVICE`. `status/` would say the same again.
pub(super) fn device_of(rest: &str) -> Option<&str> {
    rest.strip_suffix("/events/rpc")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::payload::tests::shown;

    fn of(text: &str) -> Vec<String> {
        shown(read, text).expect(text)
    }

    #[test]
    fn notifications_are_read() {
        for (text, expected) in [
            (
                r#"{"src":"shelly1pmg4-7c2c67667790","dst":"plug/events","method":"NotifyStatus","params":{"ts":1787950560.02,"switch:0":{"id":0,"aenergy":{"by_minute":[0.000,0.000,0.000],"minute_ts":1787950560,"total":1885.832},"apower":0.0,"current":0.0,"voltage":230.1}}}"#,
                "shelly1pmg4-7c2c67667790| cumulative_kwh_p=1.885832 current=0 current_w=0 voltage=230.1 @2026-08-28T20:56:00.020Z",
            ),
            (
                r#"{"src":"shellyplusht-08b61fcb7f3c","dst":"ht/events","method":"NotifyFullStatus","params":{"ts":1709301234.5,"temperature:0":{"id":0,"tC":21.4,"tF":70.5},"humidity:0":{"id":0,"rh":48.2},"devicepower:0":{"id":0,"battery":{"V":5.02,"percent":62},"external":{"present":false}}}}"#,
                "shellyplusht-08b61fcb7f3c| battery=62 battery_voltage=5.02 humidity=48.2 temperature=21.4 @2024-03-01T13:53:54.500Z",
            ),
            (
                r#"{"src":"shellypro3em-1","method":"NotifyStatus","params":{"ts":1709301234.5,"em:0":{"id":0,"a_act_power":120.1,"a_voltage":230.2,"a_current":0.55,"b_act_power":0.0,"c_act_power":0.0,"total_act_power":120.1}}}"#,
                "shellypro3em-1| current_a=0.55 current_w=120.1 current_w_a=120.1 current_w_b=0 current_w_c=0 voltage_a=230.2 @2024-03-01T13:53:54.500Z",
            ),
        ] {
            assert_eq!(of(text), [expected], "{text}");
        }
    }

    #[test]
    fn a_status_without_an_envelope_names_its_device_by_its_address() {
        let status = r#"{"ble":{},"cloud":{"connected":true},"input:0":{"id":0,"state":false},
            "switch:0":{"id":0,"output":true,"apower":8.9,"temperature":{"tC":44.1,"tF":111.4}},
            "switch:1":{"id":1,"output":false,"apower":null},
            "em1:1":{"id":1,"act_power":-5.5},"em1data:1":{"id":1,"total_act_energy":1500,"total_act_ret_energy":20.5},
            "temperature:101":{"id":101,"tF":68},
            "emdata:0":{"a_total_act_energy":1000.5,"total_act":3000,"total_act_ret":1},
            "sys":{"mac":"A8032ABE54DC","unixtime":1768147200}}"#;
        assert_eq!(
            of(status),
            [
                "A8032ABE54DC| cumulative_kwh_n=0.001 cumulative_kwh_p=3 cumulative_kwh_p_a=1.0005 current_w=8.9 device_temperature=44.1 on=1 @2026-01-11T16:00:00.000Z",
                "A8032ABE54DC|em1:1 cumulative_kwh_n=0.0205 cumulative_kwh_p=1.5 current_w=-5.5 @2026-01-11T16:00:00.000Z",
                "A8032ABE54DC|switch:1 on=0 @2026-01-11T16:00:00.000Z",
                "A8032ABE54DC|temperature:101 temperature=20 @2026-01-11T16:00:00.000Z",
            ]
        );
        let coloured = r#"{"rgb:0":{"output":true,"apower":10.5,"aenergy":{"total":5000}},
            "cct:0":{"output":false,"apower":3.1,"aenergy":{"total":90}}, "illuminance:0":{"lux":999}}"#;
        assert_eq!(
            of(coloured),
            [
                "| cumulative_kwh_p=0.09 current_w=3.1 illuminance=999 on=0 @arrival",
                "|rgb:0 cumulative_kwh_p=5 current_w=10.5 on=1 @arrival",
            ]
        );
        let two_meters =
            r#"{"switch:0":{"output":true,"voltage":230},"voltmeter:0":{"voltage":12}}"#;
        assert_eq!(
            of(two_meters),
            [
                "| on=1 voltage=230 @arrival",
                "voltmeter:0 has voltage, and so has another component of the same number",
            ]
        );
        let answer =
            r#"{"id":1,"src":"shellyplus1-a","dst":"x","result":{"switch:0":{"apower":1}}}"#;
        assert_eq!(of(answer), ["shellyplus1-a| current_w=1 @arrival"]);
    }

    #[test]
    fn gen1_counts_watt_minutes_where_a_relay_is_metered_and_wh_where_a_meter_is() {
        let plug = r#"{"wifi_sta":{"connected":true,"rssi":-61},"mac":"98F4ABF3AE72","unixtime":1768147200,
            "relays":[{"ison":true},{"ison":false}],
            "meters":[{"power":29.66,"is_valid":true,"total":4634310},{"power":0,"is_valid":true,"total":60}],
            "temperature":41.2,"tmp":{"tC":41.2,"tF":106.2,"is_valid":true}}"#;
        assert_eq!(
            of(plug),
            [
                "98F4ABF3AE72| cumulative_kwh_p=77.2385 current_w=29.66 device_temperature=41.2 on=1 signal_strength=-61 @2026-01-11T16:00:00.000Z",
                "98F4ABF3AE72|relay:1 cumulative_kwh_p=0.001 current_w=0 on=0 @2026-01-11T16:00:00.000Z",
            ]
        );
        let meter = r#"{"mac":"X","unixtime":0,"emeters":[{"power":12.5,"pf":0.5,"voltage":231.5,"is_valid":true,"total":80481.0,"total_returned":9.5},{"power":1,"is_valid":false}]}"#;
        assert_eq!(
            of(meter),
            [
                "X| cumulative_kwh_n=0.0095 cumulative_kwh_p=80.481 current_w=12.5 power_factor=0.5 voltage=231.5 @1970-01-01T00:00:00.000Z"
            ]
        );
    }

    #[test]
    fn the_temperature_of_a_board_is_the_device_s_and_that_of_a_sensor_is_not() {
        for (text, expected) in [
            // A whole status of a Pro 3EM, and a notification of one.
            (
                r#"{"em:0":{"id":0,"total_act_power":2413.825},"emdata:0":{"id":0,"total_act":5415.41},
                    "temperature:0":{"id":0,"tC":46.6,"tF":115.9},"sys":{"mac":"M"}}"#,
                "M| cumulative_kwh_p=5.41541 current_w=2413.825 device_temperature=46.6 @arrival",
            ),
            (
                r#"{"src":"shellypro3em-a","method":"NotifyStatus","params":{"temperature:0":{"tC":46.6}}}"#,
                "shellypro3em-a| device_temperature=46.6 @arrival",
            ),
            (
                r#"{"src":"shelly3em63g3-a","method":"NotifyStatus","params":{"temperature:0":{"tF":86}}}"#,
                "shelly3em63g3-a| device_temperature=30 @arrival",
            ),
            (
                r#"{"switch:0":{"output":true},"em1:0":{"act_power":1},"temperature:0":{"tC":50}}"#,
                "| current_w=1 device_temperature=50 on=1 @arrival",
            ),
            (
                r#"{"switch:0":{"output":true,"temperature":{"tC":44}},"temperature:100":{"tC":19}}"#,
                "| device_temperature=44 on=1 @arrival|temperature:100 temperature=19 @arrival",
            ),
            (
                r#"{"src":"shellyproem50-a","params":{"temperature:100":{"tC":19}}}"#,
                "shellyproem50-a|temperature:100 temperature=19 @arrival",
            ),
            (
                r#"{"src":"shellyhtg3-a","params":{"temperature:0":{"tC":21}}}"#,
                "shellyhtg3-a| temperature=21 @arrival",
            ),
            (
                r#"{"src":"shellyplusht-a","params":{"temperature:0":{"tC":21},"humidity:0":{"rh":40}}}"#,
                "shellyplusht-a| humidity=40 temperature=21 @arrival",
            ),
            (
                r#"{"src":"ShellyWallDisplay-0008","params":{"switch:0":{"output":true},"temperature:0":{"tC":21}}}"#,
                "ShellyWallDisplay-0008| on=1 temperature=21 @arrival",
            ),
            // A dimmer of the first generation, and a flood sensor.
            (
                r#"{"lights":[{"ison":true}],"tmp":{"tC":34.1,"is_valid":true}}"#,
                "| device_temperature=34.1 on=1 @arrival",
            ),
            (
                r#"{"flood":false,"bat":{"value":80},"tmp":{"tC":12.5,"is_valid":true}}"#,
                "| battery=80 temperature=12.5 water_leak=0 @arrival",
            ),
        ] {
            assert_eq!(of(text).concat(), expected, "{text}");
        }
    }

    #[test]
    fn where_gen1_has_no_sensor_there_is_no_value() {
        let sensor = r#"{"mac":"X","tmp":{"value":999,"tC":999,"is_valid":false},"hum":{"value":-1},
            "bat":{"value":88,"voltage":5.9},"ext_temperature":{"0":{"hwID":"a","tC":-1},"1":{"hwID":"b","tC":999}}}"#;
        assert_eq!(
            of(sensor),
            ["X| battery=88 battery_voltage=5.9 @arrival", "X|ext:0 temperature=-1 @arrival"]
        );
        let sensor = r#"{"tmp":{"value":21.5,"units":"C","tC":21.5,"tF":70.7,"is_valid":true},"hum":{"value":45}}"#;
        assert_eq!(of(sensor), ["| humidity=45 temperature=21.5 @arrival"]);
    }

    #[test]
    fn known_without_numbers_is_nothing_and_anything_else_is_not_understood() {
        for text in [
            r#"{"src":"s","method":"NotifyEvent","params":{"ts":1.5,"events":[{"component":"input:0","event":"single_push"}]}}"#,
            r#"{"src":"s","method":"NotifyStatus","params":{"ts":1.5,"sys":{"available_updates":{}}}}"#,
            r#"{"src":"s","method":"NotifyStatus","params":{"ts":null,"input:0":{"id":0,"state":true}}}"#,
            r#"{"switch:0":{"id":0,"apower":null}}"#,
            r#"{"id":1,"src":"s","result":{"was_on":false}}"#,
        ] {
            assert_eq!(of(text), Vec::<String>::new(), "{text}");
        }
        for text in ["[1]", "5", "{}", r#"{"temperature":5}"#, r#"{"Time":"x","ENERGY":{}}"#] {
            assert_eq!(shown(read, text), Err(EXPECTED), "{text}");
        }
    }
}
