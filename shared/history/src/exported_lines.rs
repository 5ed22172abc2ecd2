//! Reads the line protocol of `roomtide export` as the original readings and settings. Opens no file.
//!
//! Other line protocol goes through the write endpoint's mapping, which could give other ids.

use std::fmt::Write as _;

use domain::{Decimal, DeviceId, MetricName, RoomId, Timestamp};
use ingest::LineTexts;

use crate::point::{COMMENT, MILLISECOND};

/// The first line of an export, after the number sign.
pub const TITLE: &str = " roomtide export";
/// The measurement of all lines.
pub const MEASUREMENT: &str = "readings";
/// The tag of a line's device.
pub const DEVICE: &str = "device_id";
/// The tag of a line's room.
pub const ROOM: &str = "room";
/// The metric `time` and the name of its field: line protocol permits no field `time`, and no metric has an upper-case
/// letter.
pub const TIME: (&str, &str) = ("time", "Time");

/// Returns whether a file with these first bytes is an export.
pub fn is_export(bytes: &[u8]) -> bool {
    let behind = bytes.strip_prefix(&[COMMENT as u8]);
    behind
        .and_then(|rest| rest.strip_prefix(TITLE.as_bytes()))
        .is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

/// The refusal of a last line without a line end: its timestamp may lack digits.
const CUT: &str = "has no end, as each line of an export has: it is cut";

/// Returns the JSON of a line's reading, or of the settings in a comment. Returns `None` for any other comment.
pub fn json(text: &[u8]) -> Option<Result<String, String>> {
    if let Some(comment) = text.strip_prefix(&[COMMENT as u8]) {
        let json = comment.trim_ascii();
        return json
            .starts_with(b"{")
            .then(|| String::from_utf8(json.to_vec()).map_err(|_| "is not UTF-8".to_owned()));
    }

    let line = ingest::read_line(text)?;
    if text.last() != Some(&b'\n') {
        return Some(Err(CUT.to_owned()));
    }

    Some(line.map_err(|error| error.to_string()).and_then(|line| reading(&line)))
}

fn reading(line: &LineTexts<'_>) -> Result<String, String> {
    let (mut device, mut room) = (None, None);
    if line.measurement != MEASUREMENT {
        return Err(format!(
            "the measurement is {:?}; a line of an export is of {MEASUREMENT}; without its first line the file is \
             imported as any other line protocol",
            domain::excerpt(line.measurement)
        ));
    }

    for (tag, value) in &line.tags {
        let named = |why| format!("{tag} {why}");
        match *tag {
            DEVICE => device = Some(value.parse::<DeviceId>().map_err(named)?),
            ROOM => room = Some(value.parse::<RoomId>().map_err(named)?),
            other => return Err(format!("the tag {:?} is of no export", domain::excerpt(other))),
        }
    }

    let device = device.ok_or_else(|| format!("has no tag {DEVICE}"))?;
    let nanos = line.timestamp.ok_or("has no timestamp")?;
    let at =
        Timestamp::from_millis(nanos.div_euclid(MILLISECOND)).map_err(|why| why.to_string())?;

    let mut json = format!(r#"{{"device_id":"{device}","timestamp":"{at}""#);
    if let Some(room) = room {
        write!(json, r#","{ROOM}":"{room}""#).expect("a text takes everything");
    }

    for (field, value) in &line.fields {
        let name = if *field == TIME.1 { TIME.0 } else { field };
        let name: MetricName = name.parse().map_err(|why| format!("the field {why}"))?;
        let value = Decimal::parse(value).map_err(|why| format!("{name}: {why}"))?;
        write!(json, ",\"{name}\":{value}").expect("a text takes everything");
    }

    json.push('}');
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Line;
    use crate::text_lines::TextLines;
    use crate::{reading, records};

    fn read(text: &str) -> Vec<Result<String, String>> {
        let lines = records::decode(TextLines::new(text.as_bytes()), json, Timestamp::MAX);
        let told = lines.map(|line| match line.unwrap() {
            Line::Reading(read) => Ok(reading::json(&read.reading)),
            Line::Refused(refusal) => Err(refusal.to_string()),
            line => panic!("{line:?}"),
        });
        told.collect()
    }

    #[test]
    fn what_is_of_no_export_is_named() {
        for (line, why) in [
            ("m,device_id=d t=1 5000000", "the measurement is \"m\""),
            ("readings t=1 5000000", "has no tag device_id"),
            ("readings,device_id=d t=1", "has no timestamp"),
            ("readings,device_id=a/b t=1 5000000", "device_id contains '/'"),
            ("readings,device_id=d,room=ROOM t=1 5000000", "room \"ROOM\" is a reserved name"),
            ("readings,device_id=d,host=e t=1 5000000", "the tag \"host\""),
            ("readings,device_id=d T=1 5000000", "the field \"T\" is not a metric name"),
            ("readings,device_id=d t=\"x\" 5000000", "t: "),
            ("readings,device_id=d", "missing fields"),
        ] {
            let told = read(&format!("\x23 a comment\n\n{line}\n"));
            let [Err(reason)] = &told[..] else { panic!("{told:?}") };
            assert!(reason.starts_with("line 3: ") && reason.contains(why), "{reason}");
        }
    }

    #[test]
    fn a_last_line_that_may_lack_digits_is_refused() {
        let line = "readings,device_id=d t=1 1768147200000000000";
        let told = read(&format!("{line}\n\x23 a comment"));
        assert!(told.len() == 1 && told[0].is_ok(), "{told:?}");
        let told = read(&format!("{line}\n{}", &line[..line.len() - 6]));
        assert_eq!(told[1..], [Err(format!("line 2: {CUT}"))]);
    }
}
