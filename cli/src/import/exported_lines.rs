//! Reads the line protocol of `roomtide export` as the original readings and settings. Opens no file.
//!
//! Other line protocol goes through the write endpoint's mapping, which could give other ids.

use std::fmt::Write as _;

use domain::{Decimal, DeviceId, MetricName, RoomId, Timestamp};
use local::LineTexts;

use crate::export::lines::{COMMENT, DEVICE, MEASUREMENT, ROOM, TIME};
use crate::moment::MILLISECOND;

/// The refusal of a last line without a line end: its timestamp may lack digits.
const CUT: &str = "has no end, as each line of an export has: it is cut";

/// Returns the JSON of a line's reading, or of the settings in a comment. Returns `None` for any other comment.
pub(super) fn json(text: &[u8]) -> Option<Result<String, String>> {
    if let Some(comment) = text.strip_prefix(&[COMMENT as u8]) {
        let json = comment.trim_ascii();
        return json
            .starts_with(b"{")
            .then(|| String::from_utf8(json.to_vec()).map_err(|_| "is not UTF-8".to_owned()));
    }
    let line = local::read_line(text)?;
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
    use std::collections::BTreeMap;

    use domain::given;
    use proptest::prelude::*;

    use super::*;
    use crate::export::lines::written;
    use crate::import::line::Line;
    use crate::import::records::Records;
    use crate::import::text_lines::TextLines;

    fn read(text: &str) -> Vec<Result<String, String>> {
        let lines = Records::new(TextLines::new(text.as_bytes()), json);
        let told = lines.map(|line| match line.unwrap() {
            Line::Reading(record) => Ok(record.json),
            Line::Refused(refusal) => Err(refusal.to_string()),
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
            let told = read(&written(&json).unwrap());
            // More than 256 metrics are two lines of one time, which an import unites.
            let expected: Vec<_> =
                all.chunks(256).map(|part| Ok(format!("{{{head},{}}}", part.join(",")))).collect();
            prop_assert_eq!(told, expected);
        }
    }
}
