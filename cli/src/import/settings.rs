//! Sets the kinds and units of metrics that a source knows. Replaces no existing setting.

use std::collections::BTreeMap;

use domain::{MetricKind, Reading, Timestamp};
use serde_json::{Value, json};

use super::described::Described;
use super::line::Record;
use super::registry::{self, RegistryLine};
use super::sources::{Known, Units};
use crate::client::Client;
use crate::output::{counted, print};

/// The settings of metrics, by device and metric.
type Settings = BTreeMap<String, BTreeMap<String, Known>>;

/// The kinds and units of metrics that a source knows. They complete readings before these are sent.
#[derive(Debug, Default, Clone)]
pub(super) struct Taught(Settings);

impl Taught {
    /// Makes the settings from the points that were seen.
    pub(super) fn of(units: &Units, now: Timestamp) -> Self {
        Self(settings(units, now))
    }

    /// Adds the settings to what a reading says of its device.
    pub(super) fn add_to(&self, reading: &mut Reading) {
        let Some(known) = self.0.get(reading.device.as_str()) else { return };
        let mut about = reading.about.take().unwrap_or_default();
        for name in reading.metrics().keys() {
            let Some(known) = known.get(name.as_str()) else { continue };
            let metric = about.metrics.entry(name.clone()).or_default();
            let kind = if known.is_counter { MetricKind::Counter } else { MetricKind::Gauge };
            metric.kind = metric.kind.or(Some(kind));
            metric.unit = metric.unit.take().or_else(|| known.unit.parse().ok());
        }
        reading.about = Some(about);
    }
}

/// Returns the settings of the metrics that a source's points become.
fn settings(units: &Units, now: Timestamp) -> Settings {
    let mut settings = Settings::new();
    for (point, known) in units.seen() {
        let (device_tags, room_tag) = point.way.tags();
        let fields: Vec<String> =
            point.fields.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let line = format!("{} {} {}", point.series(), fields.join(","), point.nanos);
        let Ok(read) = local::read_points(line.as_bytes(), now, device_tags, room_tag) else {
            continue;
        };
        for reading in read.readings {
            let metrics = settings.entry(reading.device.to_string()).or_default();
            metrics.extend(reading.metrics().keys().map(|name| (name.to_string(), known.clone())));
        }
    }
    settings
}

/// Prints the settings that an import would set.
pub(super) fn show(units: &Units, now: Timestamp) {
    for (device, metrics) in settings(units, now) {
        for (metric, Known { unit, is_counter }) in metrics {
            let kind = if is_counter { ", a counter" } else { "" };
            print(format_args!("unit         {device} {metric}: {unit}{kind}"));
        }
    }
}

/// The remark if the kinds of metrics were set after their readings were rolled up.
const FOLDED_AGAIN: &str = "\
units and counters of the source are set now, so the rollups of their devices are folded again: energy has all of it
within a quarter of an hour in which a server runs";

/// Sets the kinds and units that a device does not have yet. A failure is only reported, because the import is
/// complete.
pub(super) fn apply(units: &Units, client: &Client, now: Timestamp) {
    let settings = settings(units, now);
    let count: usize = settings.values().map(BTreeMap::len).sum();
    if count == 0 {
        return;
    }
    let metrics = counted(count as u64, "metric");
    match set(settings, client) {
        Ok(why) if why.is_empty() => print(FOLDED_AGAIN),
        Ok(why) => print(format_args!("units of {metrics} are not all set: {}", why.join("; "))),
        Err(error) => print(format_args!(
            "units of {metrics} are not set: {error:#}; import again with an admin token, or PATCH them"
        )),
    }
}

fn set(settings: Settings, client: &Client) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    for (device, mut metrics) in settings {
        // The registry lags behind the readings, so it may not have the device yet.
        let known = Described::ask(client, &device)?.unwrap_or_default();
        metrics.retain(|name, _| known.is_unknown(name));
        if metrics.is_empty() {
            continue;
        }
        let setting = |(name, known): (String, Known)| {
            let kind = if known.is_counter { "counter" } else { "gauge" };
            (name, json!({"kind": kind, "unit": known.unit}))
        };
        let metrics: serde_json::Map<String, Value> = metrics.into_iter().map(setting).collect();
        let json = json!({"device": {"device_id": device, "metrics": metrics}}).to_string();
        lines.push(RegistryLine::read(&Record { line: 0, json }).map_err(anyhow::Error::msg)?);
    }
    let refusals = registry::apply(&lines, client, print)?;
    Ok(refusals.into_iter().map(|refusal| refusal.to_string()).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::import::fake_server::{self, Reply};
    use crate::import::sources::{Point, Way};

    fn units() -> Units {
        let units = Units::default();
        for (measurement, unit, is_counter) in [
            ("use", "W", false),
            ("use_kwh", "kWh", true),
            ("named", "°C", false),
            ("unseen", "V", false),
        ] {
            let point = Point {
                measurement: measurement.to_owned(),
                tags: "node=a".to_owned(),
                fields: vec![("value".to_owned(), "1".to_owned())],
                nanos: 1_768_147_200_000_000_000,
                line: 0,
                way: Way::Plain,
                hour: None,
            };
            units.know(point.series(), unit, is_counter);
            if measurement != "unseen" {
                // The map may send a series as another device.
                units.see(&point.series(), &Point { tags: "node=b".to_owned(), ..point.clone() });
            }
        }
        units
    }

    #[test]
    fn what_is_not_known_yet_is_set_and_nothing_else() {
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&bodies);
        let server = fake_server::serve(move |_, request| {
            assert!(request.path.starts_with("/devices/b"), "{}", request.path);
            if request.method == "PATCH" {
                seen.lock().unwrap().push(request.body);
            }
            Reply::of(
                200,
                r#"{"metrics": {"named": {"kind": "gauge", "unit": "K"}, "use": {"kind": "gauge", "unit": null}}}"#,
            )
        });
        let client = server.client();
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        assert_eq!(set(settings(&units(), now), &client).unwrap(), Vec::<String>::new());
        let mut bodies = bodies.lock().unwrap();
        bodies.sort();
        assert_eq!(
            *bodies,
            [
                r#"{"metrics":{"use":{"kind":"gauge","unit":"W"},"use_kwh":{"kind":"counter","unit":"kWh"}}}"#,
            ]
        );
    }

    /// A dry run counts the energy of feeds, whose lines tell no kind.
    #[test]
    fn what_the_source_knows_is_taught_as_a_line_would() {
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        let taught = Taught::of(&units(), now);
        let lines = [1, 2].map(|n| {
            format!(
                "use_kwh,node=b value={n} {}",
                1_768_147_200_000_000_000_i64 + n * 60_000_000_000
            )
        });
        let mut energy = crate::import::energy::Energy::default();
        for line in lines {
            let read = local::read_points(line.as_bytes(), now, &[], None).unwrap();
            for mut reading in read.readings {
                taught.add_to(&mut reading);
                energy.add(&reading);
            }
        }
        let text = energy.to_string();
        assert!(text.contains("b use_kwh: 1 kWh"), "{text}");
    }

    #[test]
    fn a_token_that_may_not_set_them_is_an_error_that_is_said() {
        let server = fake_server::serve(|_, request| match &*request.method {
            "PATCH" => Reply::of(403, r#"{"detail": "an admin token is needed"}"#),
            _ => Reply::of(404, "{}"),
        });
        let client = server.client();
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        let error = set(settings(&units(), now), &client).unwrap_err().to_string();
        assert!(error.contains("403") && error.contains("an admin token is needed"), "{error}");
    }
}
