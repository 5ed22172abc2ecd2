//! The line protocol of an export: each line is a reading, each comment the settings of a device or a room. Opens no
//! file.
//!
//! The write endpoint maps tags to ids, but cannot restore every id from them: it divides tags at slashes, takes a
//! colon for the border of two tags, and a field's measurement for a part of the device. So the first line marks the
//! file as an export, and an import takes the tags as they are. InfluxDB reads the file like any other line protocol.

use std::io::{self, Write};

use anyhow::Context as _;
use domain::MAX_FIELDS;
use serde_json::value::RawValue;

use super::row::Row;

use crate::moment::MILLISECOND;

/// The number sign (`#`), which begins a comment.
pub(crate) const COMMENT: char = 0x23 as char;
/// The first line, after the number sign.
const TITLE: &str = " roomtide export";
/// Further comment lines, after the number sign: `influx -import` requires them before any data.
const CONTEXT: [&str; 2] = [" DML", " CONTEXT-DATABASE: roomtide"];
/// The measurement of all lines.
pub(crate) const MEASUREMENT: &str = "readings";
/// The names of the tags.
pub(crate) const DEVICE: &str = "device_id";
pub(crate) const ROOM: &str = "room";
/// The metric `time` and the name of its field: line protocol permits no field `time`, and no metric has an upper-case
/// letter.
pub(crate) const TIME: (&str, &str) = ("time", "Time");

/// Returns whether a file with these first bytes is an export.
pub(crate) fn is_export(bytes: &[u8]) -> bool {
    let behind = bytes.strip_prefix(&[COMMENT as u8]);
    behind
        .and_then(|it| it.strip_prefix(TITLE.as_bytes()))
        .is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

/// Writes the comments at the beginning of a file.
pub(super) fn begin(out: &mut impl Write) -> io::Result<()> {
    [TITLE].iter().chain(&CONTEXT).try_for_each(|text| writeln!(out, "{COMMENT}{text}"))
}

/// Writes a reading. Every value is a float, because the fields of a measurement have one type. Ids and names contain
/// no character that needs escaping.
pub(super) fn reading(out: &mut impl Write, row: &Row<'_>) -> anyhow::Result<()> {
    let Row { device, at, room, metrics } = row;
    let nanos = at.as_millis().checked_mul(MILLISECOND);
    let nanos = nanos.with_context(|| {
        format!("{device} has a reading of {at}, and the nanoseconds of line protocol end in 2262; --to excludes it")
    })?;
    let metrics: Vec<_> = metrics.iter().collect();
    for fields in metrics.chunks(MAX_FIELDS) {
        write!(out, "{MEASUREMENT},{DEVICE}={device}")?;
        if let Some(room) = room {
            write!(out, ",{ROOM}={room}")?;
        }
        for (n, (name, value)) in fields.iter().enumerate() {
            let name = if **name == TIME.0 { TIME.1 } else { name };
            write!(out, "{}{name}={value}", if n == 0 { ' ' } else { ',' })?;
        }
        writeln!(out, " {nanos}")?;
    }
    Ok(())
}

/// Writes the description of a device or a room as a comment. Equals signs are escaped: InfluxDB 1 and 2 would take a
/// quote after one for the start of a string that continues on the next line.
pub(super) fn describe(out: &mut impl Write, what: &str, json: &RawValue) -> io::Result<()> {
    let json = json.get().replace('=', "\\u003d");
    writeln!(out, "{COMMENT} {{\"{what}\":{json}}}")
}

/// Returns the lines of line protocol for a reading.
#[cfg(test)]
pub(crate) fn written(json: &str) -> anyhow::Result<String> {
    let json = RawValue::from_string(json.to_owned())?;
    let mut out = Vec::new();
    reading(&mut out, &Row::of(&json)?)?;
    Ok(String::from_utf8(out)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_a_line_with_every_digit() {
        let json = r#"{"device_id":"a:b","timestamp":"2026-01-11T16:00:00.001Z","room":"r","time":5,"t":-1.5E-100}"#;
        let expected = "readings,device_id=a:b,room=r t=-1.5E-100,Time=5 1768147200001000000\n";
        assert_eq!(written(json).unwrap(), expected);
    }

    #[test]
    fn many_metrics_are_several_lines() {
        let metrics: Vec<_> = (0..300).map(|n| format!(r#""m{n:03}":{n}"#)).collect();
        let json = format!(
            r#"{{"device_id":"d","timestamp":"2026-01-11T16:00:00.000Z",{}}}"#,
            metrics.join(",")
        );
        let text = written(&json).unwrap();
        let fields: Vec<_> = text.lines().map(|it| it.matches(['m']).count()).collect();
        assert_eq!(fields, [256, 44]);
    }

    #[test]
    fn a_time_that_line_protocol_does_not_have_is_named() {
        let json = r#"{"device_id":"d","timestamp":"2300-01-01T00:00:00.000Z","t":5}"#;
        let error = written(json).unwrap_err().to_string();
        assert!(error.starts_with("d has a reading of 2300-01-01"), "{error}");
    }

    #[test]
    fn the_beginning_tells_an_export() {
        let mut out = Vec::new();
        begin(&mut out).unwrap();
        assert!(is_export(&out));
        assert!(!is_export(&out[1..]) && !is_export(b"") && !is_export(b"\x23 DDL"));
        let json = RawValue::from_string(r#"{"name":"a=b"}"#.to_owned()).unwrap();
        let mut out = Vec::new();
        describe(&mut out, "device", &json).unwrap();
        assert_eq!(out, b"\x23 {\"device\":{\"name\":\"a\\u003db\"}}\n");
    }
}
