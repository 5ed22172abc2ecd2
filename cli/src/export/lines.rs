//! The line protocol of an export: each line is a reading, each comment the settings of a device or a room. Opens no
//! file.
//!
//! The write endpoint maps tags to ids, but cannot restore every id from them: it divides tags at slashes, takes a
//! colon for the border of two tags, and a field's measurement for a part of the device. So the first line marks the
//! file as an export, and an import takes the tags as they are. InfluxDB reads the file like any other line protocol.

use std::io::{self, Write};

use anyhow::Context as _;
use domain::MAX_FIELDS;
use history::exported_lines::{DEVICE, MEASUREMENT, ROOM, TIME, TITLE};
use history::point::COMMENT;
use serde_json::value::RawValue;

use super::row::Row;

use crate::moment::MILLISECOND;

/// Further comment lines, after the number sign: `influx -import` requires them before any data.
const CONTEXT: [&str; 2] = [" DML", " CONTEXT-DATABASE: roomtide"];
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
    use std::collections::BTreeMap;

    use domain::{DeviceId, MetricName, Timestamp, given};
    use history::exported_lines::{self, is_export};
    use proptest::prelude::*;

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

    fn id() -> impl Strategy<Value = String> {
        "[A-Za-z0-9_.:-]{1,128}".prop_filter("an id", |text| text.parse::<DeviceId>().is_ok())
    }

    fn number() -> impl Strategy<Value = String> {
        ("-?(0|[1-9][0-9]{0,37})", -129..=88).prop_map(|(digits, exponent)| {
            given::number(&format!("{digits}e{exponent}")).to_string()
        })
    }

    fn metric() -> impl Strategy<Value = String> {
        prop_oneof![Just("time".to_owned()), Just("value".to_owned()), "[a-z][a-z0-9_]{0,63}"]
            .prop_filter("a name", |text| text.parse::<MetricName>().is_ok())
    }

    /// Few metrics, or more than a line has.
    fn metrics() -> impl Strategy<Value = BTreeMap<String, String>> {
        let many = number().prop_map(|number| {
            (0..300).map(|n| (format!("m{n}"), number.clone())).collect::<BTreeMap<_, _>>()
        });
        prop_oneof![20 => proptest::collection::btree_map(metric(), number(), 1..4), 1 => many]
    }

    proptest! {
        #[test]
        fn a_reading_comes_back_equal_to_the_digit(
            device in id(),
            room in proptest::option::of(id()),
            millis in 0..9_223_372_036_000_i64,
            metrics in metrics(),
        ) {
            let at = Timestamp::from_millis(millis).unwrap();
            let mut parts = vec![format!(r#""device_id":"{device}","timestamp":"{at}""#)];
            parts.extend(room.map(|room| format!(r#""room":"{room}""#)));
            let head = parts.join(",");
            let all: Vec<_> = metrics.iter().map(|(name, it)| format!("\"{name}\":{it}")).collect();
            let json = format!("{{{head},{}}}", all.join(","));
            let text = written(&json).unwrap();
            let told: Vec<_> =
                text.split_inclusive('\n').filter_map(|line| exported_lines::json(line.as_bytes())).collect();
            // More than 256 metrics are two lines of one time, which an import unites.
            let expected: Vec<_> =
                all.chunks(256).map(|part| Ok(format!("{{{head},{}}}", part.join(",")))).collect();
            prop_assert_eq!(told, expected);
        }
    }
}
