//! All formats of payloads at once: their tables, and payloads of any shape.

use std::collections::BTreeSet;

use domain::given::{cases, number};
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::payload::Row;
use super::payload::tests::shown;
use super::scale::Scaled;
use super::*;

/// The folder with the cases of each format, by the operation of its endpoint.
const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/formats/cases");

/// Keys that the code of formats looks for, beside those of the tables.
const KEYS: [&str; 50] = [
    "Epoch",
    "StatusSNS",
    "Time",
    "ENERGY",
    "DS18B20",
    "TempUnit",
    "PressureUnit",
    "params",
    "result",
    "src",
    "method",
    "ts",
    "sys",
    "mac",
    "switch:0",
    "em:1",
    "temperature:100",
    "tF",
    "meters",
    "emeters",
    "relays",
    "tmp",
    "ext_temperature",
    "0",
    "last_seen",
    "state_l1",
    "device",
    "context",
    "body",
    "deviceMac",
    "timeOfSample",
    "newest_events",
    "smart_meter",
    "id",
    "ZbReceived",
    "Name",
    "Temperature1",
    "COUNTER",
    "deviceType",
    "power_a",
    "temperature_1",
    "bthomesensor:200",
    "value",
    "temperature_F",
    "end_device_ids",
    "device_id",
    "uplink_message",
    "decoded_payload",
    "deviceInfo",
    "devEui",
];

fn rows() -> impl Iterator<Item = &'static Row> {
    let tables = tasmota::TABLES.iter().chain(&shelly::TABLES);
    let tables = tables.chain(&zigbee2mqtt::TABLES).chain(&switchbot::TABLES);
    let tables = tables.chain(&lorawan::TABLES).chain(&chirpstack::TABLES);
    tables.flat_map(|table| table.iter())
}

#[test]
fn every_metric_of_a_table_is_in_the_vocabulary() {
    assert!(rows().count() > 150);
    let rows = rows().map(|(_, metric, _)| *metric);
    let by_type = switchbot::BY_TYPE.iter().map(|(_, (_, metric, _))| *metric);
    for metric in rows.chain(by_type).chain(units::metrics()) {
        assert!(vocabulary::meaning(metric).is_some(), "{metric}");
    }
}

/// A row that is added says here which number its maker's document has for what is open.
#[test]
fn whatever_tells_how_far_it_is_open_is_100_when_open() {
    let makers = [
        ("Shelly", &shelly::TABLES[..]),
        ("Tasmota", &tasmota::TABLES[..]),
        ("Zigbee2MQTT", &zigbee2mqtt::TABLES[..]),
        ("LoRaWAN", &lorawan::TABLES[..]),
    ];
    let of_maker = |(maker, tables): (&'static str, &'static [&'static [Row]])| {
        tables.iter().copied().flatten().map(move |row| (maker, row))
    };
    let by_type = switchbot::BY_TYPE.iter();
    let by_type =
        by_type.map(|(kind, row)| (if kind.is_empty() { "SwitchBot" } else { *kind }, row));
    let rows = makers.into_iter().flat_map(of_maker).chain(by_type);
    let mut found = BTreeSet::new();
    for (maker, (key, metric, scale)) in rows {
        if !["opening", "position", "tilt", "tilt_opening"].contains(metric) {
            continue;
        }
        found.insert(format!("{maker} {key}: {metric}"));
        // An angle.
        if *metric == "tilt" {
            continue;
        }
        let open = match maker {
            "SwitchBot" => 0,
            "Blind" => 50,
            _ => 100,
        };
        let scaled = scale.apply(&Value::from(open)).expect("a number");
        let hundred = number("100");
        assert_eq!(scaled, Scaled::Value(hundred), "{maker} {key}");
    }
    let expected = [
        "Blind slidePosition: opening",
        "Shelly accel/tilt: tilt",
        "Shelly current_pos: position",
        "Shelly pos: position",
        "Shelly rotation: tilt",
        "Shelly slat_pos: tilt_opening",
        "Shelly tilt: tilt",
        "SwitchBot position: opening",
        "SwitchBot slidePosition: opening",
        "Tasmota Position: position",
        "Tasmota Tilt: tilt",
        "Zigbee2MQTT position: position",
        "Zigbee2MQTT tilt: tilt_opening",
    ];
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

/// The texts say what each group of payloads states; `nothing` is a payload that is known and has no numbers.
#[test]
fn a_payload_is_read_as_its_case_says() {
    for reader in PayloadReader::all() {
        let Read::Tree { read, .. } = reader.read else { continue };
        let operation = reader.endpoint.operation.name();
        let path = format!("{CASES}/{operation}.txt");
        let text = std::fs::read_to_string(&path).expect(&path);
        let mut refusal = None;
        for case in cases(&text) {
            let found = match shown(|payload| read(payload, Timestamp::MAX), case.given) {
                Ok(lines) if lines.is_empty() => vec!["nothing".to_owned()],
                Ok(lines) => lines,
                Err(why) => {
                    let same = *refusal.get_or_insert(why);
                    assert_eq!(why, same, "{operation}, {case}");
                    vec!["not understood".to_owned()]
                }
            };
            assert_eq!(found, case.expected, "{operation}, {case}");
        }
    }
}

fn payloads() -> impl Strategy<Value = Value> {
    let keys: Vec<&str> = rows().flat_map(|(key, ..)| key.split('/')).chain(KEYS).collect();
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "(ON|OPEN|F|-?[0-9]{0,4}(\\.[0-9])?|2026-01-11T16:00:00Z?|NotifyStatus|\\PC{0,9})"
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, move |inner| {
        let members = (prop::sample::select(keys.clone()), inner.clone());
        let object = prop::collection::vec(members, 0..8).prop_map(|members| {
            let members = members.into_iter().map(|(key, value)| (key.to_owned(), value));
            Value::Object(members.collect::<Map<_, _>>())
        });
        prop_oneof![3 => object, 1 => prop::collection::vec(inner, 0..10).prop_map(Value::from)]
    })
}

proptest! {
    /// A part that is there has a value, whose metric the vocabulary knows.
    #[test]
    fn a_payload_of_any_shape_is_read_or_refused(payload in payloads()) {
        for format in PayloadReader::all().filter(|reader| !reader.is_address()) {
            let Ok(read) = format.read(payload.to_string().as_bytes(), Timestamp::MAX) else { continue };
            for measured in read.iter().flat_map(|payload| payload.parts.values()) {
                prop_assert!(!measured.is_empty());
                for (metric, it) in measured {
                    let is_known = vocabulary::meaning(metric.as_str()).is_some();
                    prop_assert!(is_known || it.is_own, "{:?}", metric);
                }
                prop_assert!(measured.values().filter(|it| it.is_own).count() <= domain::MAX_METRICS);
            }
        }
    }
}

#[test]
fn each_endpoint_of_a_payload_has_a_format_and_a_reader() {
    let is_payload = |endpoint: &&Endpoint| {
        endpoint.body == Some("Payload") || endpoint.access == api::endpoints::Access::Address
    };
    let endpoints = ENDPOINTS.iter().filter(is_payload);
    let taken: Vec<&str> = endpoints.map(|endpoint| endpoint.operation.name()).collect();
    let readers: Vec<&str> =
        PayloadReader::all().map(|reader| reader.endpoint.operation.name()).collect();
    assert_eq!(taken, readers);
}
