//! A point of a source, as the texts of a line of line protocol. Knows no source.

use serde::{Deserialize, Serialize};

/// The number sign (`#`), which begins a comment.
pub const COMMENT: char = 0x23 as char;
/// A millisecond in nanoseconds.
pub const MILLISECOND: i64 = 1_000_000;

/// A point: fields of one series at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The measurement, with escapes.
    pub measurement: String,
    /// The tags in the order of their keys, with escapes: `a=b,c=d`.
    pub tags: String,
    /// The fields: keys with escapes, and values in line protocol.
    pub fields: Vec<(String, String)>,
    /// The time in nanoseconds since 1970.
    pub nanos: i64,
    /// The line number in the file, from 1; 0 if the source has no lines.
    pub line: u64,
    /// The tags that identify the device.
    pub way: Way,
    /// The hour that a point of long-term statistics stands for. Other points stand for their instant.
    pub hour: Option<StatisticHour>,
}

/// An hour of long-term statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatisticHour {
    /// The beginning of the hour, in nanoseconds.
    pub start: i64,
    /// Whether the source has hourly means only at that time.
    pub has_means_only: bool,
}

/// The tag with the room, added by an import.
pub const ROOM_TAG: &str = "area";
/// The tag with the device that a person chose.
pub const DEVICE_TAG: &str = "roomtide_device";

/// The tags that identify a point's device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Way {
    /// All tags, as in an ordinary write.
    Plain,
    /// The tag of Home Assistant's entity; the room's tag is not a part of the device.
    Entity,
    /// The tag with the chosen device.
    Device,
}

impl Way {
    /// Returns the tags that identify the device, and the tag of the room.
    pub const fn tags(self) -> (&'static [&'static str], Option<&'static str>) {
        match self {
            Self::Plain => (&[], None),
            Self::Entity => (&["domain", "entity_id"], Some(ROOM_TAG)),
            Self::Device => (&[DEVICE_TAG], Some(ROOM_TAG)),
        }
    }
}

impl Point {
    /// Returns the series: the measurement and the tags.
    pub fn series(&self) -> String {
        let Self { measurement, tags, .. } = self;
        if tags.is_empty() { measurement.clone() } else { format!("{measurement},{tags}") }
    }

    /// Returns the line of line protocol, without a line end.
    pub fn text(&self) -> String {
        let fields: Vec<String> =
            self.fields.iter().map(|(key, value)| format!("{key}={value}")).collect();
        format!("{} {} {}", self.series(), fields.join(","), self.nanos)
    }

    /// Returns the point's Home Assistant entity.
    pub fn entity(&self) -> Option<String> {
        let tag =
            |name| self.tags.split(',').find_map(|tag| tag.strip_prefix(name)?.strip_prefix('='));
        Some(format!("{}.{}", tag("domain")?, tag("entity_id")?))
    }

    /// Returns the owner of the point: the tags, or else the measurement.
    pub fn owner(&self) -> &str {
        if self.tags.is_empty() { &self.measurement } else { &self.tags }
    }
}

/// Writes a finite number with its shortest digits, as Python does.
pub fn number(value: f64) -> String {
    if value.abs() >= 1e16 { format!("{value:e}") } else { value.to_string() }
}

/// Escapes the key or value of a tag, or the key of a field.
pub fn escaped(text: &str) -> String {
    escaped_with(text, &[',', '=', ' '])
}

/// Escapes a measurement. A number sign at the beginning would make the line a comment, so it gets a backslash, which
/// becomes part of the name.
pub fn escaped_measurement(text: &str) -> String {
    let escaped = escaped_with(text, &[',', ' ']);
    if escaped.starts_with(COMMENT) { format!("\\{escaped}") } else { escaped }
}

/// Writes a text as the value of a field.
pub fn text_field(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Escapes the characters `ends`. Drops backslashes at the end of the text: they would escape the next character, and
/// line protocol has no way to write them there.
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
