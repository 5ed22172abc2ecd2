//! Answers of Nature Remo's API: devices with their newest events, appliances with a smart meter. Polls nothing.
//!
//! Sources: <https://developer.nature.global/>, ECHONET Lite's object 0x0288 (low-voltage smart meter).

use std::collections::BTreeMap;

use api::endpoints::Operation;
use domain::{Decimal, DecimalError, Timestamp};
use serde_json::Value;

use super::payload::{Measured, Payload, TreeFormat, text};
use super::scale::SAME;
use crate::formats::draft::{Fault, Refusal};
use crate::formats::moment::PayloadTime;
use crate::intake::times::{MAX_AHEAD, check_lead};

/// The sensors of a device; motion is a separate event.
const SENSORS: [(&str, &str); 3] =
    [("te", "temperature"), ("hu", "humidity"), ("il", "illuminance")];

/// The properties of a meter that count energy.
const COUNTERS: [(u64, &str); 2] = [(224, "cumulative_kwh_p"), (227, "cumulative_kwh_n")];
/// The property with the factor of all energies.
const COEFFICIENT: u64 = 211;
/// The property with the number of digits after which the counters roll over.
const DIGITS: u64 = 215;
/// The property with the unit of the counters, a code of `UNITS`.
const UNIT: u64 = 225;
/// The property with the power in W, which is negative during export.
const POWER: u64 = 231;

/// Codes of energy units, with their size in kWh.
const UNITS: [(&str, &str); 9] = [
    ("0", "1"),
    ("1", "0.1"),
    ("2", "0.01"),
    ("3", "0.001"),
    ("4", "0.0001"),
    ("10", "10"),
    ("11", "100"),
    ("12", "1000"),
    ("13", "10000"),
];

pub(super) const FORMAT: TreeFormat = TreeFormat {
    operation: Operation::PostRemo,
    expected: "a device with newest_events, an appliance with smart_meter, or a list of them",
    read,
    device_of: |_| None,
    #[cfg(test)]
    tables: &[],
};

/// Reads a device, an appliance or a list of them. Appliances without a meter have no numbers.
fn read(payload: &Value, arrived: Timestamp) -> Option<Vec<Payload>> {
    let one = std::slice::from_ref(payload);
    let all = payload.as_array().map_or(one, Vec::as_slice);
    let mut payloads = Vec::new();
    for it in all {
        if let Some(events) = it.get("newest_events") {
            payloads.extend(device(it, events, arrived));
        } else if let Some(properties) = it.pointer("/smart_meter/echonetlite_properties") {
            payloads.extend(meter(it, properties));
        } else if it.get("id").is_none() {
            return None;
        }
    }

    Some(payloads)
}

/// Reads a device. All values get the time of the newest event, which proves that the device is alive. The time of a
/// value only says when the value last changed. Motion keeps its own time. An event with an impossible time is refused
/// and does not count as the newest.
fn device(it: &Value, events: &Value, arrived: Timestamp) -> Vec<Payload> {
    let event = |(name, metric)| RemoEvent::of(name, metric, events, arrived);
    let (sensors, motion) = (SENSORS.map(event), event(("mo", "motion")));
    let newest = sensors.iter().chain([&motion]).filter_map(RemoEvent::time).max();

    let mut measured = of(it, newest);
    for sensor in sensors {
        sensor.put_into(&mut measured);
    }

    let mut payloads = vec![measured];
    if motion.value.is_some() {
        let mut moved = of(it, motion.time());
        motion.put_into(&mut moved);
        payloads.push(moved);
    }
    payloads
}

/// The newest event of one sensor.
struct RemoEvent<'a> {
    name: &'static str,
    metric: &'static str,
    value: Option<&'a Value>,
    at: Result<Option<Timestamp>, Fault>,
}

impl<'a> RemoEvent<'a> {
    fn of(name: &'static str, metric: &'static str, events: &'a Value, arrived: Timestamp) -> Self {
        let event = events.get(name);
        let created = event.and_then(|event| text(event, "created_at"));
        let at = created.map(|created| {
            let at = Timestamp::parse_absolute(created)?;
            check_lead(at, arrived, MAX_AHEAD)?;
            Ok(at)
        });
        Self { name, metric, value: event.and_then(|event| event.get("val")), at: at.transpose() }
    }

    /// The time of the event; `None` also if the time is impossible.
    fn time(&self) -> Option<Timestamp> {
        *self.at.as_ref().ok()?
    }

    fn put_into(self, payload: &mut Payload) {
        let Some(value) = self.value else { return };
        match self.at {
            Ok(_) => drop(payload.put("", self.name, self.metric, value, SAME)),
            Err(why) => {
                payload.refused.push(Refusal::of(&format!("{}/created_at", self.name), why));
            }
        }
    }
}

/// Reads a meter's properties. Each property has its own time of reading.
fn meter(it: &Value, properties: &Value) -> Vec<Payload> {
    let properties = properties.as_array().into_iter().flatten();
    let properties: BTreeMap<u64, &Value> = properties
        .filter_map(|property| Some((property.get("epc")?.as_u64()?, property)))
        .collect();
    // The API sends texts; an integration in between may have made numbers of them.
    let values: BTreeMap<u64, String> = properties
        .iter()
        .filter_map(|(epc, property)| match property.get("val")? {
            Value::String(text) => Some((*epc, text.clone())),
            Value::Number(number) => Some((*epc, number.to_string())),
            _ => None,
        })
        .collect();

    let value = |epc: u64| values.get(&epc).map(String::as_str);
    let time =
        |epc: u64| properties.get(&epc).and_then(|property| known(text(property, "updated_at")?));
    let mut by_time: BTreeMap<Option<Timestamp>, Payload> = BTreeMap::new();

    for (epc, metric) in COUNTERS {
        let Some(count) = value(epc) else { continue };
        let payload = by_time.entry(time(epc)).or_insert_with(|| of(it, time(epc)));
        match energy(count, value(COEFFICIENT), value(UNIT), value(DIGITS)) {
            Ok(measured) => payload.insert("", metric, measured),
            Err((at_fault, fault)) => {
                // A wrong count is named by its counter's property; all other properties belong to all counters.
                let epc = if at_fault == COUNTERS[0].0 { epc } else { at_fault };
                payload.refused.push(Refusal::of(&format!("epc {epc}"), fault));
            }
        }
    }

    if let Some(power) = properties.get(&POWER).and_then(|property| property.get("val")) {
        let payload = by_time.entry(time(POWER)).or_insert_with(|| of(it, time(POWER)));
        payload.put("", "epc 231", "current_w", power, SAME);
    }

    by_time.into_values().collect()
}

/// The energy in kWh and the value at which the counter rolls over. The error has the number of the wrong property.
fn energy(
    count: &str,
    coefficient: Option<&str>,
    unit: Option<&str>,
    digits: Option<&str>,
) -> Result<Measured, (u64, Fault)> {
    let unit = unit.ok_or((UNIT, Fault::Missing))?;
    let (_, unit) = UNITS
        .iter()
        .find(|(code, _)| *code == unit)
        .ok_or_else(|| (UNIT, Fault::UnknownUnit(unit.to_owned())))?;
    let factor =
        Decimal::parse(coefficient.unwrap_or("1")).map_err(|why| (COEFFICIENT, why.into()))?;

    let in_kwh = |count: &str| -> Result<Decimal, DecimalError> {
        Decimal::parse(count)?.checked_mul(&factor)?.checked_mul(&Decimal::parse(unit)?)
    };
    let value = in_kwh(count).map_err(|why| (COUNTERS[0].0, why.into()));
    let modulus = digits.map(|digits| in_kwh(&format!("1e{digits}")));
    let modulus = modulus.transpose().map_err(|why| (DIGITS, why.into()));
    Ok(Measured { modulus: modulus?, ..Measured::new(value?) })
}

fn of(it: &Value, at: Option<Timestamp>) -> Payload {
    let moment = at.map_or(PayloadTime::Arrival, PayloadTime::Known);
    let name = text(it, "nickname").or_else(|| text(it, "name")).map(str::to_owned);
    Payload { name, ..Payload::new(text(it, "id"), moment) }
}

fn known(time: &str) -> Option<Timestamp> {
    Timestamp::parse_absolute(time).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::payload::tests::shown;
    use domain::given::at;

    const DEVICE: &str = r#"{"name":"Remo","id":"a1","temperature_offset":0,"humidity_offset":0,"serial_number":"1W3","firmware_version":"Remo/1.0","newest_events":{"te":{"val":26.2,"created_at":"2018-06-24T14:33:51Z"},"hu":{"val":40,"created_at":"2018-06-24T14:30:00Z"},"il":{"val":182.19,"created_at":"2018-06-24T14:40:00Z"},"mo":{"val":1,"created_at":"2018-06-24T14:20:00Z"}}}"#;

    #[test]
    fn an_event_of_a_time_that_cannot_be_takes_no_other_down() {
        let arrived = |payload: &Value| read(payload, at("2018-06-24T14:41:00Z"));
        for (sensor, time, expected) in [
            ("te", "2118-06-24T14:33:51Z", "is more than a day ahead"),
            ("te", "soon", "\"soon\" is not a timestamp"),
            ("mo", "2018-06-26T14:20:00Z", "is more than a day ahead"),
            ("mo", "2018-06-24 14:20:00", "has no offset"),
        ] {
            let mut device: Value = serde_json::from_str(DEVICE).expect("JSON");
            device["newest_events"][sensor]["created_at"] = time.into();
            let shown = shown(arrived, &device.to_string()).expect("a device");
            let (refused, stored): (Vec<_>, Vec<_>) = shown
                .iter()
                .filter(|line| *line != "called Remo")
                .partition(|line| line.starts_with(&format!("{sensor}/created_at ")));
            assert_eq!(refused.len(), 1, "{shown:?}");
            assert!(refused[0].contains(expected), "{shown:?}");
            let others = match sensor {
                "te" => [
                    "a1| humidity=40 illuminance=182.19 @known 2018-06-24T14:40:00.000Z",
                    "a1| motion=1 @known 2018-06-24T14:20:00.000Z",
                ]
                .as_slice(),
                _ => &[
                    "a1| humidity=40 illuminance=182.19 temperature=26.2 @known 2018-06-24T14:40:00.000Z",
                ],
            };
            assert_eq!(stored, others);
        }
    }
}
