//! A point of a source: the texts of a line of line protocol. Knows no source.

use serde::{Deserialize, Serialize};

use crate::export::lines::COMMENT;
use crate::import::sort::Sortable;

/// A point: fields of one series at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::import) struct Point {
    /// The measurement, escaped.
    pub(in crate::import) measurement: String,
    /// The tags in the order of their keys, escaped: `a=b,c=d`.
    pub(in crate::import) tags: String,
    /// Keys, escaped, and values, as line protocol writes them.
    pub(in crate::import) fields: Vec<(String, String)>,
    /// The instant, in nanoseconds since 1970.
    pub(in crate::import) nanos: i64,
    /// The line of the file, from 1; 0 where there are none.
    pub(in crate::import) line: u64,
    /// The parameters of its write.
    pub(in crate::import) way: Way,
    /// Of long-term statistics the hour that the point stands for. Other points stand for their instant.
    pub(in crate::import) hour: Option<StatisticHour>,
}

/// An hour of long-term statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::import) struct StatisticHour {
    /// Its beginning, in nanoseconds.
    pub(in crate::import) start: i64,
    /// Whether the source has hourly means only at that time.
    pub(in crate::import) has_means_only: bool,
}

/// The tag of the room that an import adds.
pub(in crate::import) const ROOM_TAG: &str = "area";
/// The tag of the device that a person chose.
pub(in crate::import) const DEVICE_TAG: &str = "roomtide_device";

/// What identifies the device of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::import) enum Way {
    /// The tags, as of any write.
    Plain,
    /// Home Assistant's entity, and not the tag of the room.
    Entity,
    /// The tag of the device.
    Device,
}

impl Way {
    /// Returns the tags that identify the device, and the tag of the room.
    pub(in crate::import) const fn tags(self) -> (&'static [&'static str], Option<&'static str>) {
        match self {
            Self::Plain => (&[], None),
            Self::Entity => (&["domain", "entity_id"], Some(ROOM_TAG)),
            Self::Device => (&[DEVICE_TAG], Some(ROOM_TAG)),
        }
    }
}

impl Point {
    /// Returns the series: the measurement and the tags.
    pub(in crate::import) fn series(&self) -> String {
        let Self { measurement, tags, .. } = self;
        if tags.is_empty() { measurement.clone() } else { format!("{measurement},{tags}") }
    }

    /// Returns the entity of Home Assistant that the point is of.
    pub(in crate::import) fn entity(&self) -> Option<String> {
        let tag =
            |name| self.tags.split(',').find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
        Some(format!("{}.{}", tag("domain")?, tag("entity_id")?))
    }

    /// Returns the owner of the point: the tags, or else the measurement.
    pub(in crate::import) fn owner(&self) -> &str {
        if self.tags.is_empty() { &self.measurement } else { &self.tags }
    }
}

/// Points of the same tags follow each other by time, whatever their measurement: they are of one device.
impl Sortable for Point {
    fn place(&self) -> (String, Option<i64>) {
        (self.owner().to_owned(), Some(self.nanos))
    }

    fn bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(key, value)| key.len() + value.len() + 48);
        self.measurement.len() + self.tags.len() + fields.sum::<usize>()
    }
}

/// Writes a number with its shortest digits, as Python does. It is finite.
pub(in crate::import) fn number(value: f64) -> String {
    if value.abs() >= 1e16 { format!("{value:e}") } else { value.to_string() }
}

/// Escapes the text of a tag, or the key of a field.
pub(in crate::import) fn escaped(text: &str) -> String {
    escaped_with(text, &[',', '=', ' '])
}

/// Escapes a measurement. One that begins with a number sign would make its line a comment, so it gets a backslash, which
/// stays in its name.
pub(in crate::import) fn escaped_measurement(text: &str) -> String {
    let escaped = escaped_with(text, &[',', ' ']);
    if escaped.starts_with(COMMENT) { format!("\\{escaped}") } else { escaped }
}

/// Writes a text as the value of a field.
pub(in crate::import) fn text_field(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A backslash at the end would escape what follows, and line protocol has no other way to write one.
fn escaped_with(text: &str, ends: &[char]) -> String {
    let text = text.trim_end_matches('\\');
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if ends.contains(&c) => escaped.extend(['\\', c]),
            '\n' | '\r' | '\t' => escaped.push_str("\\ "),
            c => escaped.push(c),
        }
    }
    escaped
}
