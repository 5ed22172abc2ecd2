//! A point with the device to which the server maps it. Points are sorted by device, because two series may be one
//! device in Roomtide: then their lines of a millisecond are decoded together. Reads no source.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::line_reader::LineReader;
use crate::notes::Notes;
use crate::point::{MILLISECOND, Point, Way};

/// The maximum number of series whose device is remembered.
const MAX_SERIES: usize = 10_000;

/// A point and its device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevicePoint {
    /// The device. If the server would refuse the point: its tags, or its measurement if there are no tags.
    pub device: String,
    /// The point.
    pub point: Point,
}

/// Finds the devices of points. A device is remembered by its series, because finding it means to decode a line.
pub struct DevicesOfSeries {
    reader: LineReader,
    notes: Notes,
    remembered: HashMap<(String, Way), String>,
    sources: HashMap<String, SourcesOfDevice>,
}

/// The first series of a device.
#[derive(Debug, Default)]
struct SourcesOfDevice {
    /// The first series that the map gives to the device.
    mapped: Option<String>,
    /// The first series whose tags name the device.
    tagged: Option<String>,
}

impl DevicesOfSeries {
    /// Remembers no device yet.
    pub fn new(reader: LineReader, notes: Notes) -> Self {
        Self { reader, notes, remembered: HashMap::new(), sources: HashMap::new() }
    }

    /// Returns a point with its device.
    pub fn with_device(&mut self, point: Point) -> DevicePoint {
        let series = (point.series(), point.way);
        if let Some(device) = self.remembered.get(&series) {
            return DevicePoint { device: device.clone(), point };
        }

        let device = self.device_of(&series).unwrap_or_else(|| point.owner().to_owned());
        self.say_if_united(&device, &series);
        if self.remembered.len() == MAX_SERIES {
            self.remembered.clear();
        }
        self.remembered.insert(series, device.clone());
        DevicePoint { device, point }
    }

    /// Says once that a device has a series by the map and another by its tags. Of equal metrics the last value wins.
    fn say_if_united(&mut self, device: &str, (series, way): &(String, Way)) {
        let sources = self.sources.entry(device.to_owned()).or_default();
        let source = if *way == Way::Device { &mut sources.mapped } else { &mut sources.tagged };
        if source.is_some() {
            return;
        }
        *source = Some(series.clone());

        if let SourcesOfDevice { mapped: Some(mapped), tagged: Some(tagged) } = sources {
            self.notes.say(format!(
                "map          {device} is {mapped} by the map and {tagged} by its tags: the two become one device"
            ));
        }
    }

    /// Returns the device of a line with the field `value`. Other fields of the series may belong to a part of this
    /// device, and their points are sorted with it.
    fn device_of(&self, (series, way): &(String, Way)) -> Option<String> {
        let line = format!("{series} value=1 {}", self.reader.now.as_millis() * MILLISECOND);
        let read = self.reader.read(&line, *way).ok()?;
        Some(read.readings.first()?.device.to_string())
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;
    use ingest::LineRules;

    use super::*;

    #[test]
    fn all_points_of_series_that_are_one_device_here_have_the_same_device() {
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        let notes = Notes::default();
        let reader = LineReader { now, rules: LineRules::default() };
        let mut devices = DevicesOfSeries::new(reader, notes.clone());
        let mut device = |measurement: &str, tags: &str, field: &str, way| {
            let fields = vec![(field.to_owned(), "\"text\"".to_owned())];
            let (measurement, tags) = (measurement.to_owned(), tags.to_owned());
            let point = Point { measurement, tags, fields, nanos: 1, line: 0, way, hour: None };
            devices.with_device(point).device
        };
        let entity = "domain=sensor,entity_id=warm";
        assert_eq!(device("°C", entity, "friendly_name_str", Way::Plain), "sensor.warm");
        assert_eq!(device("%", entity, "value", Way::Plain), "sensor.warm");
        let chosen = ["host=a,roomtide_device=d", "host=b,roomtide_device=d"];
        let chosen = chosen.map(|tags| device("m", tags, "v", Way::Device));
        assert_eq!(chosen[0], chosen[1]);
        assert_eq!(device("m", "zone=", "v", Way::Plain), "zone=", "which the server refuses");
        assert_eq!(notes.to_string(), "");
        assert_eq!(device("m", "host=d", "v", Way::Plain), chosen[0]);
        assert_eq!(device("n", "host=d", "v", Way::Plain), chosen[0]);
        let expected = "d is m,host=a,roomtide_device=d by the map and m,host=d by its tags";
        assert!(notes.to_string().contains(expected), "{notes}");
        assert_eq!(notes.to_string().matches("by the map").count(), 1, "{notes}");
    }
}
