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

/// Keys for which the code of formats looks and that no case has.
const KEYS: [&str; 8] = [
    "em:1",
    "ZbReceived",
    "Name",
    "Temperature1",
    "COUNTER",
    "power_a",
    "bthomesensor:200",
    "temperature_F",
];

/// All keys of the cases: with those of the tables, the keys for which the code of formats looks.
fn keys_of_cases() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for format in TREE_FORMATS {
        for case in cases(&text_of_cases(format)) {
            add_keys(&serde_json::from_str(case.given).expect("JSON"), &mut keys);
        }
    }
    keys
}

fn add_keys(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| add_keys(value, keys)),
        Value::Object(members) => {
            keys.extend(members.keys().cloned());
            members.values().for_each(|value| add_keys(value, keys));
        }
        _ => {}
    }
}

fn text_of_cases(format: &TreeFormat) -> String {
    let path = format!("{CASES}/{}.txt", format.operation.name());
    std::fs::read_to_string(&path).expect(&path)
}

fn rows() -> impl Iterator<Item = &'static Row> {
    let tables = TREE_FORMATS.iter().flat_map(|format| format.tables);
    tables.chain(&lorawan::TABLES).flat_map(|table| table.iter())
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
        ("Shelly", shelly::FORMAT.tables),
        ("Tasmota", tasmota::FORMAT.tables),
        ("Zigbee2MQTT", zigbee2mqtt::FORMAT.tables),
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
    for format in TREE_FORMATS {
        let operation = format.operation.name();
        for case in cases(&text_of_cases(format)) {
            let found = match shown(|payload| (format.read)(payload, Timestamp::MAX), case.given) {
                Some(lines) if lines.is_empty() => vec!["nothing".to_owned()],
                Some(lines) => lines,
                None => vec!["not understood".to_owned()],
            };
            assert_eq!(found, case.expected, "{operation}, {case}");
        }
    }
}

fn payloads() -> impl Strategy<Value = Value> {
    let of_tables = rows().flat_map(|(key, ..)| key.split('/')).map(str::to_owned);
    let without_case = KEYS.map(str::to_owned);
    let keys: Vec<String> = of_tables.chain(keys_of_cases()).chain(without_case).collect();
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
        let object = prop::collection::vec(members, 0..8)
            .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>()));
        prop_oneof![3 => object, 1 => prop::collection::vec(inner, 0..10).prop_map(Value::from)]
    })
}

proptest! {
    /// A part that is there has a value, whose metric the vocabulary knows.
    #[test]
    fn a_payload_of_any_shape_is_read_or_refused(payload in payloads()) {
        for format in PayloadReader::all().filter(|reader| !reader.is_address()) {
            let Ok(read) = format.read(payload.to_string().as_bytes(), MAX_PAYLOAD, Timestamp::MAX) else { continue };
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
