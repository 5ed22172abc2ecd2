//! Readings in the query of an address, for devices that can only call an address. Checks no permission.

use api::{Problem, ProblemKind};
use serde_json::{Map, Value};

use super::payload::{Payload, Row};
use super::scale::SAME;
use super::{shelly, vocabulary};
use crate::formats::moment::PayloadTime;

/// Parameters that are not metrics.
const RESERVED: [&str; 3] = ["device", "room", "time"];

/// `GET /readings/quick?device=boiler&temperature=55.5`: the parameters are names of metrics.
pub(crate) fn quick(query: &[u8]) -> Result<Vec<Payload>, Problem> {
    let rows: Vec<Row> = vocabulary::METRICS.iter().map(|(name, _)| (*name, *name, SAME)).collect();
    let parameters = parameters(query);
    Ok(vec![take(&parameters, None, &rows, &[], true)?])
}

/// `GET /readings/shelly?device=ht&temp=21.5&hum=48`: the parameters are those of a Shelly's action. Gen1 adds `id`,
/// which names the device. Unknown parameters beside known ones are listed as not stored.
pub(crate) fn shelly(query: &[u8]) -> Result<Vec<Payload>, Problem> {
    let parameters = parameters(query);
    let device = parameters.get("id").and_then(Value::as_str);
    Ok(vec![take(&parameters, device, &shelly::parameters(), &["id"], false)?])
}

fn parameters(query: &[u8]) -> Map<String, Value> {
    let pairs = form_urlencoded::parse(query);
    pairs.map(|(name, value)| (name.into_owned(), Value::String(value.into_owned()))).collect()
}

fn take(
    parameters: &Map<String, Value>,
    device: Option<&str>,
    rows: &[Row],
    reserved: &[&str],
    is_strict: bool,
) -> Result<Payload, Problem> {
    let mut payload = Payload::new(device, PayloadTime::Arrival);
    let row_of = |name: &str| rows.iter().find(|(key, ..)| *key == name);
    let refuses_unknown = is_strict || !parameters.keys().any(|name| row_of(name).is_some());

    for (name, value) in parameters {
        if RESERVED.contains(&name.as_str()) || reserved.contains(&name.as_str()) {
            continue;
        }
        let Some((_, metric, scale)) = row_of(name) else {
            if refuses_unknown {
                let message =
                    format!("unknown parameter; expected device, room, time, {}", names(rows));
                return Err(Problem::field(&domain::excerpt(name), message));
            }
            payload.ignore(name);
            continue;
        };
        if !payload.put("", name, metric, value, *scale) {
            payload.ignore(name);
        }
    }

    if payload.parts.is_empty() && payload.refused.is_empty() {
        let detail = format!("The address has no metric; expected some of {}.", names(rows));
        return Err(Problem::new(ProblemKind::BadRequest, detail));
    }
    Ok(payload)
}

fn names(rows: &[Row]) -> String {
    let names: Vec<_> = rows.iter().map(|(name, ..)| *name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(read: fn(&[u8]) -> Result<Vec<Payload>, Problem>, query: &str) -> String {
        match read(query.as_bytes()) {
            Ok(payloads) => {
                let device = payloads[0].device.as_deref().unwrap_or_default();
                let values = payloads[0].parts.values().flatten();
                let values = values.map(|(name, it)| format!(" {name}={}", it.value));
                let refused = payloads[0].refused.iter().map(|why| format!(" {why}"));
                format!("{device}{}", values.chain(refused).collect::<String>())
            }
            Err(problem) => problem.detail,
        }
    }

    #[test]
    fn parameters_are_metrics_and_any_other_name_is_refused() {
        assert_eq!(
            shown(quick, "device=boiler&room=cellar&time=1768147200&temperature=55.5&co2=%2B4e2"),
            " co2=400 temperature=55.5"
        );
        for (query, expected) in [
            (
                "temperature=21&utm_source=x",
                "utm_source: unknown parameter; expected device, room, time, app",
            ),
            ("temp=21", "temp: unknown parameter"),
            ("device=d", "The address has no metric; expected some of apparent_power,"),
            ("", "The address has no metric"),
            ("temperature=warm", " temperature \"warm\" is not a number"),
        ] {
            assert!(shown(quick, query).starts_with(expected), "{query}: {}", shown(quick, query));
        }
    }

    #[test]
    fn a_shelly_s_own_names_are_taken() {
        for (query, expected) in [
            ("hum=48&temp=21.5&id=shellyht-F36CBE", "shellyht-F36CBE humidity=48 temperature=21.5"),
            ("device=ht&tF=68&rh=40", " humidity=40 temperature=20"),
            ("temp=4&flood=1&batV=2.9&id=x", "x battery_voltage=2.9 temperature=4 water_leak=1"),
            ("state=open&lux=120&tilt=-1&id=x", "x illuminance=120 open=1"),
            ("temp=-1&hum=-1&id=x", "x temperature=-1"),
            ("slat_pos=40&total_act=1500&id=x", "x cumulative_kwh_p=1.5 tilt_opening=40"),
        ] {
            assert_eq!(shown(shelly, query), expected, "{query}");
        }
        let payloads = shelly(b"hum=48&alarm=mild&vendor=x").expect("a value");
        assert_eq!(payloads[0].ignored.iter().collect::<Vec<_>>(), ["alarm", "vendor"]);
        assert!(shown(shelly, "temperature=21").starts_with("temperature: unknown parameter"));
    }
}
