//! The list of a dry run: the series of points, or the devices of other readings, with their spans, gaps, metrics,
//! units and rooms. Estimates nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use domain::{DeviceId, MetricName, Reading, RoomId, Unit};
use history::points::line_reader::LineReader;

use super::decoded::Decoded;
use super::points::map::{self, Row};
use super::span::SeriesSpan;

/// The maximum number of devices or series that are shown.
const MAX_SHOWN: usize = 40;
/// The maximum number of rooms shown for a device.
const MAX_ROOMS: usize = 3;

/// The list of a dry run, by series or by device.
#[derive(Debug, Default)]
pub(super) struct ListedNames(BTreeMap<String, ListedSeries>);

#[derive(Debug)]
struct ListedSeries {
    span: SeriesSpan,
    /// The devices that it becomes, and the unit of each metric, if something tells one.
    becomes: BTreeMap<DeviceId, BTreeMap<MetricName, Option<Unit>>>,
    rooms: BTreeSet<RoomId>,
}

impl ListedNames {
    /// Returns the number of series or devices.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds lines that were decoded together. Must be called in order of time.
    pub(super) fn add(&mut self, decoded: &Decoded, reader: &LineReader) {
        for line in &decoded.points {
            let listing = self.at(&line.series, line.millis);
            // The first accepted line decides what the series becomes.
            if listing.becomes.is_empty() {
                let read = reader.read(&line.text, line.way).unwrap_or_default();
                read.readings.iter().for_each(|reading| listing.describe(reading));
            }
        }

        if decoded.points.is_empty() {
            for read in &decoded.readings {
                let reading = &read.reading;
                self.at(reading.device.as_str(), reading.at.as_millis()).describe(reading);
            }
        }
    }

    fn at(&mut self, name: &str, millis: i64) -> &mut ListedSeries {
        let listing = self.0.entry(name.to_owned()).or_insert_with(|| ListedSeries {
            span: SeriesSpan::before(millis),
            becomes: BTreeMap::new(),
            rooms: BTreeSet::new(),
        });
        listing.span.add(millis);
        listing
    }

    /// Sets the unit that the file gives a metric of a device.
    pub(super) fn set_unit(&mut self, device: &DeviceId, name: &MetricName, unit: Option<Unit>) {
        let listing = self.0.get_mut(device.as_str());
        let metrics = listing.and_then(|listing| listing.becomes.get_mut(device));
        if let Some(known) = metrics.and_then(|metrics| metrics.get_mut(name)) {
            *known = unit;
        }
    }

    /// Writes the map of the series, for a person to edit.
    pub(super) fn write_map(&self, path: &Path) -> anyhow::Result<()> {
        let rows = self.0.iter().map(|(name, listing)| {
            let (first, last) = listing.span.ends();
            Row {
                series: name.clone(),
                import: "yes".to_owned(),
                device: String::new(),
                room: String::new(),
                points: listing.span.count,
                first,
                last,
                becomes: listing.shown(name),
            }
        });
        map::write(path, rows)
    }

    /// Writes the list; `nouns` are points or readings.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, nouns: &str) -> fmt::Result {
        for (name, listing) in self.0.iter().take(MAX_SHOWN) {
            writeln!(f, "  {name}")?;
            listing.span.write(f, nouns, &listing.shown(name))?;
        }
        if self.0.len() > MAX_SHOWN {
            writeln!(f, "  and {} more", self.0.len() - MAX_SHOWN)?;
        }
        Ok(())
    }
}

impl ListedSeries {
    fn describe(&mut self, reading: &Reading) {
        let metrics = self.becomes.entry(reading.device.clone()).or_default();
        for name in reading.metrics().keys() {
            if !metrics.contains_key(name) {
                let about = reading.about.as_ref().and_then(|about| about.metrics.get(name));
                let unit = about.and_then(|metric| metric.unit.clone());
                metrics.insert(name.clone(), unit.or_else(|| name.well_known().1));
            }
        }
        self.rooms.extend(reading.room.clone());
    }

    /// The devices with their metrics, and the rooms. A device of the listing's own name is not repeated.
    fn shown(&self, name: &str) -> String {
        let devices = self.becomes.iter().map(|(device, metrics)| {
            let metrics: Vec<String> = metrics
                .iter()
                .map(|(name, unit)| match unit {
                    Some(unit) => format!("{name} ({})", unit.as_str()),
                    None => name.to_string(),
                })
                .collect();
            let of = if device.as_str() == name { String::new() } else { format!("{device} ") };
            of + &metrics.join(", ")
        });

        let mut shown = devices.collect::<Vec<_>>().join("; ");
        for room in self.rooms.iter().take(MAX_ROOMS) {
            shown.push_str(&format!(", room {room}"));
        }

        if self.rooms.len() > MAX_ROOMS {
            shown.push_str(&format!(" and {} more", self.rooms.len() - MAX_ROOMS));
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;
    use history::point::Way;
    use history::points::unite::SentLine;

    use super::*;

    #[test]
    fn a_series_whose_first_point_is_refused_becomes_what_the_next_one_says() {
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        let decoded = |value: &str, second: i64| Decoded {
            points: vec![SentLine {
                line: 1,
                device: "a::m".to_owned(),
                series: "m,host=a".to_owned(),
                millis: second * 1_000,
                text: format!("m,host=a v={value} {second}000000000"),
                way: Way::Plain,
                hour: None,
            }],
            ..Decoded::default()
        };
        let reader = LineReader { now, rules: history::LineRules::default() };
        // No reading is of a time before 1970.
        let mut listed = ListedNames::default();
        listed.add(&decoded("1", -1), &reader);
        assert_eq!(listed.0["m,host=a"].shown("m,host=a"), "", "it is refused");
        listed.add(&decoded("2", 1_768_147_200), &reader);
        let series = &listed.0["m,host=a"];
        assert_eq!((&*series.shown("m,host=a"), series.span.count), ("a::m v", 2));
    }
}
