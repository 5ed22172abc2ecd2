//! Payloads in the forms that makers and integrations document, each with what a person expects to find of it: every
//! device, metric, value and unit, and what is named as not stored. The files name their sources.

use std::collections::{BTreeMap, BTreeSet};

use domain::{WritableDevices, WriteScope};

use super::*;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/corpus");

/// Devices with their metrics, each as `value unit`, and the names of what is not stored.
type Found = (BTreeMap<String, BTreeMap<String, String>>, BTreeSet<String>);

#[tokio::test]
async fn payloads_become_what_a_person_expects() {
    let (mut payloads, mut wrong) = (0, Vec::new());
    for entry in std::fs::read_dir(FOLDER).expect(FOLDER) {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        let file = path.display();
        let mut lines = text.lines().enumerate().peekable();
        let mut source = "";
        while let Some((number, line)) = lines.next() {
            if line.is_empty() || line.starts_with("//") {
                source = line;
                continue;
            }
            assert!(source.len() > 10, "{file}:{number} has no source");
            let mut expected = Found::default();
            while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with("    ")) {
                expect(line.trim(), &mut expected);
            }
            payloads += 1;
            let found = found(line).await;
            if found != expected {
                let number = number + 1;
                wrong.push(format!(
                    "{file}:{number} {source}\n  found {found:?}\n  want  {expected:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {payloads} payloads:\n{}", wrong.len(), wrong.join("\n"));
    assert!(payloads >= 150, "{payloads}");
}

/// A line of what is expected: `nothing`, `not NAME`, or `DEVICE METRIC=VALUE UNIT, ...`.
fn expect(line: &str, (devices, ignored): &mut Found) {
    match line.split_once(' ') {
        None => assert_eq!(line, "nothing"),
        Some(("not", name)) => drop(ignored.insert(name.to_owned())),
        Some((device, metrics)) => {
            let metrics = metrics.split(", ").map(|it| it.split_once('=').expect("a value"));
            let metrics = metrics.map(|(name, value)| (name.to_owned(), value.to_owned()));
            devices.insert(device.to_owned(), metrics.collect());
        }
    }
}

/// What is found of a payload: `FORMAT?PARAMETERS PAYLOAD`, `lines LINE` or `GET FORMAT?PARAMETERS`.
async fn found(sent: &str) -> Found {
    let bench = Bench::with(MemoryDb::default(), true);
    let devices = WritableDevices::Any;
    let scope = Scope::Write(WriteScope { devices, device_tags: Vec::new(), room_tag: None });
    let secret = given::secret("any");
    bench.store.add_token(&given::token("any", scope), &invocation()).await.expect("memory");
    let (address, payload) = sent.split_once(' ').expect("an address and a payload");
    let (method, address, body) = match address {
        "GET" => ("GET", format!("/readings/{payload}&p={secret}"), ""),
        "lines" => ("POST", format!("/write?p={secret}"), payload),
        address => {
            let separator = if address.contains('?') { '&' } else { '?' };
            ("POST", format!("/readings/{address}{separator}p={secret}"), payload)
        }
    };
    let answered = bench.answer(method, &address, json!({}), body).await;
    let answer: Value = serde_json::from_str(&answered.text).unwrap_or_default();
    let is_stored = !bench.store.readings().is_empty();
    let ignored = answer["ignored"].as_array().into_iter().flatten();
    let ignored: BTreeSet<String> =
        ignored.map(|name| name.as_str().expect("a name").to_owned()).collect();
    let status = match (method, is_stored, ignored.is_empty()) {
        ("POST", true, _) if address.starts_with("/write") => 204,
        (_, true, _) => 201,
        (_, false, true) => 204,
        (_, false, false) => 200,
    };
    assert_eq!(answered.status, status, "{sent}: {}", answered.text);
    let mut devices: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let known = bench.devices().await;
    for reading in bench.store.readings() {
        let device = known.iter().find(|it| *it.id() == reading.device).expect("registered");
        for (name, value) in reading.metrics() {
            let unit = device.metrics()[name].unit.as_ref();
            let unit = unit.map(|unit| format!(" {unit}")).unwrap_or_default();
            let known = devices.entry(reading.device.to_string()).or_default();
            known.insert(name.to_string(), format!("{value}{unit}"));
        }
    }
    (devices, ignored)
}
