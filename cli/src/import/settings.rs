//! The kinds and units of metrics that a source knows beside its points. Sends nothing.

use std::collections::BTreeMap;

use domain::{MetricKind, Reading};

use super::points::LineReader;
use super::sources::{Known, Units};
use crate::output::print;

/// The settings of metrics, by device and metric.
type Settings = BTreeMap<String, BTreeMap<String, Known>>;

/// The kinds and units of metrics that a source knows. They complete readings before these are sent.
#[derive(Debug, Default, Clone)]
pub(super) struct Taught(Settings);

impl Taught {
    /// Makes the settings from the points that were seen.
    pub(super) fn of(units: &Units, reader: &LineReader) -> Self {
        Self(settings(units, reader))
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
fn settings(units: &Units, reader: &LineReader) -> Settings {
    let mut settings = Settings::new();
    for (point, known) in units.seen() {
        let Ok(read) = reader.read(&point.text(), point.way) else { continue };
        for reading in read.readings {
            let metrics = settings.entry(reading.device.to_string()).or_default();
            metrics.extend(reading.metrics().keys().map(|name| (name.to_string(), known.clone())));
        }
    }
    settings
}

/// Prints the settings that readings of an import say.
pub(super) fn show(units: &Units, reader: &LineReader) {
    for (device, metrics) in settings(units, reader) {
        for (metric, Known { unit, is_counter }) in metrics {
            let kind = if is_counter { ", a counter" } else { "" };
            print(format_args!("unit         {device} {metric}: {unit}{kind}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::sources::{Point, Way};
    use domain::Timestamp;

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

    /// A dry run counts the energy of series whose lines tell no kind.
    #[test]
    fn what_the_source_knows_is_taught_as_a_line_would() {
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        let reader = LineReader { now, rules: local::LineRules::default() };
        let taught = Taught::of(&units(), &reader);
        let lines = [1, 2].map(|n| {
            format!(
                "use_kwh,node=b value={n} {}",
                1_768_147_200_000_000_000_i64 + n * 60_000_000_000
            )
        });
        let mut energy = crate::import::energy::Energy::default();
        for line in lines {
            let read = reader.read(&line, Way::Plain).unwrap();
            for mut reading in read.readings {
                taught.add_to(&mut reading);
                energy.add(&reading);
            }
        }
        let text = energy.to_string();
        assert!(text.contains("b use_kwh: 1 kWh"), "{text}");
    }
}
