//! The kinds and units of metrics that a source knows beside its points. Sends nothing.

use std::collections::BTreeMap;

use domain::{MetricKind, Reading};

use crate::points::line_reader::LineReader;
use crate::units::{Known, SeriesUnits};

/// The settings of metrics, by device and metric.
pub type Settings = BTreeMap<String, BTreeMap<String, Known>>;

/// The kinds and units of metrics that a source knows. They complete readings before the readings are sent.
#[derive(Debug, Default, Clone)]
pub struct Taught(Settings);

impl Taught {
    /// Makes the settings from the points that were seen.
    pub fn of(units: &SeriesUnits, reader: &LineReader) -> Self {
        Self(settings(units, reader))
    }

    /// Adds the settings to a reading's `about`; the settings that the reading has itself stay.
    pub fn add_to(&self, reading: &mut Reading) {
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
pub fn settings(units: &SeriesUnits, reader: &LineReader) -> Settings {
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
