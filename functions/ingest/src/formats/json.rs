//! Readings in JSON: one object, an array, `{"readings": [...]}`, or one object a line. Knows no sender and no
//! clock.

use std::collections::BTreeMap;
use std::fmt;

use api::json::{JsonKind, Members, WrongKind, number, string};
use api::{ABOUT, AboutBody, MAX_READINGS, Problem, ProblemKind};
use domain::{About, Decimal, DeviceId, MAX_FIELDS, MetricName, RoomId, Timestamp};
use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::formats::draft::{Content, Entry, Fault, Refusal, SentReading};

/// The largest number of members of a reading: the metrics, `device_id`, `timestamp`, `room` and `about`.
const MAX_MEMBERS: usize = MAX_FIELDS + 4;
/// The byte order mark, which some editors put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The entries of a JSON document: an object, an array or `{"readings": [...]}`.
///
/// A body that is no JSON document is read as NDJSON if its lines look like JSON objects: MQTT has no content type.
pub(crate) fn document_or_lines(body: &[u8]) -> Result<Vec<Entry>, Problem> {
    let body = trimmed(body);
    let entries = match document(body) {
        Err(_) if looks_like_lines(body) => read_lines(body)?,
        entries => entries?,
    };
    at_least_one(entries)
}

/// The entries of NDJSON. Each line is read alone, so that a damaged line does not spoil the rest.
pub(crate) fn lines(body: &[u8]) -> Result<Vec<Entry>, Problem> {
    at_least_one(read_lines(trimmed(body))?)
}

fn trimmed(body: &[u8]) -> &[u8] {
    body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body).trim_ascii()
}

fn at_least_one(entries: Vec<Entry>) -> Result<Vec<Entry>, Problem> {
    if entries.is_empty() { Err(bad("The body holds no reading.")) } else { Ok(entries) }
}

/// The readings of one JSON document.
fn document(body: &[u8]) -> Result<Vec<Entry>, Problem> {
    let text = std::str::from_utf8(body).map_err(|error| {
        bad(format!("The body is not UTF-8: byte {} cannot be read.", error.valid_up_to()))
    })?;
    match text.as_bytes().first() {
        None => Ok(Vec::new()),
        Some(b'[') => array(text),
        Some(b'{') => object(text),
        Some(_) => Err(bad(
            "The body is not a reading; send a JSON object, an array, {\"readings\": [...]} or one object a line.",
        )),
    }
}

fn object(text: &str) -> Result<Vec<Entry>, Problem> {
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| not_json(text, &error))?;

    match Members::parse(whole.get(), MAX_MEMBERS) {
        Ok(mut members) if members.has("readings") && !members.has("device_id") => {
            let readings = members.take_non_null("readings");
            if let Some((name, _)) = members.into_iter().next() {
                let message = "is not expected beside \"readings\"";
                return Err(Problem::field(&domain::excerpt(&name), message));
            }

            match readings {
                Some(readings) if readings.get().starts_with('[') => array(readings.get()),
                _ => Err(Problem::field("readings", "must be an array")),
            }
        }
        Ok(members) => Ok(vec![draft(members)]),
        Err(error) => Ok(vec![Err(Refusal::whole(error))]),
    }
}

/// The entries of a JSON array. Each element is parsed alone.
fn array(text: &str) -> Result<Vec<Entry>, Problem> {
    struct Elements;
    impl<'de> Visitor<'de> for Elements {
        /// At most `MAX_READINGS` elements, and whether the array has more.
        type Value = (Vec<&'de RawValue>, bool);

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut elements = Vec::new();
            while let Some(element) = seq.next_element()? {
                if elements.len() == MAX_READINGS {
                    while seq.next_element::<serde::de::IgnoredAny>()?.is_some() {}
                    return Ok((elements, true));
                }
                elements.push(element);
            }
            Ok((elements, false))
        }
    }
    let mut parser = serde_json::Deserializer::from_str(text);
    let (elements, more) = parser
        .deserialize_seq(Elements)
        .and_then(|elements| parser.end().map(|()| elements))
        .map_err(|error| not_json(text, &error))?;
    if more {
        return Err(too_many());
    }

    Ok(elements.into_iter().map(|element| entry(element.get())).collect())
}

fn read_lines(body: &[u8]) -> Result<Vec<Entry>, Problem> {
    let read = |line| match std::str::from_utf8(line) {
        Ok(text) => entry(text),
        Err(error) => Err(Refusal::whole(Fault::NotUtf8(error.valid_up_to()))),
    };
    let mut lines = non_blank_lines(body);
    let entries = lines.by_ref().take(MAX_READINGS).map(read).collect();
    if lines.next().is_some() { Err(too_many()) } else { Ok(entries) }
}

/// Whether a body of several lines is NDJSON: the first line, or at least half of all lines, is a JSON object. A
/// damaged document that spans several lines has few complete objects.
fn looks_like_lines(body: &[u8]) -> bool {
    let is_object =
        |line: &[u8]| line.starts_with(b"{") && std::str::from_utf8(line).is_ok_and(is_json);
    let mut lines = non_blank_lines(body).map(is_object);
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else { return false };
    let surplus = |sum: i64, complete| sum + if complete { 1 } else { -1 };
    first || lines.fold(surplus(-1, second), surplus) >= 0
}

fn non_blank_lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

/// The entry of one JSON object.
pub(crate) fn entry(text: &str) -> Entry {
    let members = Members::parse(text, MAX_MEMBERS).map_err(|error| {
        let is_other_value = is_json(text) && !text.trim_start().starts_with('{');
        Refusal::whole(if is_other_value { Fault::NotAnObject } else { error.into() })
    });
    draft(members?)
}

fn draft(mut members: Members<'_>) -> Entry {
    let device = members.take_non_null("device_id").map(device_id).transpose();
    let device = device.map_err(|fault| Refusal::of("device_id", fault))?;
    Ok(SentReading { device, content: content(members) })
}

fn content(mut members: Members<'_>) -> Result<Content, Refusal> {
    let at = members.take_non_null("timestamp").map(timestamp).transpose();
    let timestamp = at.map_err(|fault| Refusal::of("timestamp", fault))?;
    let room = members.take_non_null("room").map(room_id).transpose();
    let room = room.map_err(|fault| Refusal::of("room", fault))?;
    let mut metrics = BTreeMap::new();
    let mut about = About::default();
    for (name, value) in members {
        if name == ABOUT && JsonKind::of(value) == JsonKind::Object {
            let said = AboutBody::read(value).map_err(|why| Refusal::within(ABOUT, why))?;
            about = said.into();
            continue;
        }

        let metric: MetricName =
            name.parse().map_err(|why| Refusal::of(&name, Fault::from(why)))?;
        let value = decimal(value).map_err(|fault| Refusal::of(&name, fault))?;
        metrics.insert(metric, value);
    }
    Ok(Content { timestamp, room, metrics, about })
}

fn device_id(value: &RawValue) -> Result<DeviceId, Fault> {
    Ok(string(value)?.parse()?)
}

fn room_id(value: &RawValue) -> Result<RoomId, Fault> {
    Ok(string(value)?.parse()?)
}

fn timestamp(value: &RawValue) -> Result<Timestamp, Fault> {
    match JsonKind::of(value) {
        JsonKind::String => Ok(Timestamp::parse_absolute(&string(value)?)?),
        JsonKind::Number => Ok(Timestamp::parse_absolute(value.get())?),
        _ => Err(WrongKind::of(value, "a string or a number").into()),
    }
}

fn decimal(value: &RawValue) -> Result<Decimal, Fault> {
    Ok(Decimal::parse(number(value)?)?)
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn bad(detail: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::BadRequest, detail)
}

fn not_json(text: &str, error: &serde_json::Error) -> Problem {
    let hint = if text.contains("NaN") || text.contains("Infinity") {
        " NaN and Infinity are not JSON; leave such a metric out."
    } else {
        ""
    };
    bad(format!("The body is not JSON: {error}.{hint}"))
}

fn too_many() -> Problem {
    let detail = format!("The body holds more than {MAX_READINGS} readings; send fewer at a time.");
    Problem::new(ProblemKind::TooLarge, detail)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::MAX_INFLATED;
    use runtime::clock::Stopwatch;

    use super::*;
    use crate::formats::ReadingFormat;
    use crate::intake::sender::RequestSender;
    use crate::intake::times::Times;
    use crate::readings::place_all;
    use crate::settings::Settings;

    fn shape(body: &str, content_type: &str) -> Result<Vec<bool>, (u16, String)> {
        ReadingFormat::of(content_type)
            .read(body.as_bytes())
            .map(|entries| entries.iter().map(Result::is_ok).collect())
            .map_err(|problem| (problem.kind.status(), problem.detail))
    }

    #[test]
    fn every_form_is_read() {
        for (body, entries) in [
            (r#"{"device_id": "d"}"#, vec![true]),
            ("\u{feff} {\n \"device_id\": \"d\"\n}\n", vec![true]),
            (r#"[{"a": 1}, {"b": 2}]"#, vec![true, true]),
            (r#"{"readings": [{"a": 1}]}"#, vec![true]),
            ("{\"a\": 1}\n{\"b\": 2}\r\n\n{\"c\": 3}\n", vec![true, true, true]),
        ] {
            assert_eq!(shape(body, "application/json"), Ok(entries), "{body}");
        }
        for media_type in ["application/x-ndjson", "Application/JSONL; charset=utf-8"] {
            assert_eq!(shape("{\"a\": 1}\n[\n{}", media_type), Ok(vec![true, false, true]));
        }
    }

    #[test]
    fn a_damaged_line_does_not_take_the_others_down_wherever_it_stands() {
        for (body, entries) in [
            ("{\"a\": \n{\"b\": 2}", vec![false, true]),
            ("{\"a\": 1\n{\"b\": 2}\n{\"c\": 3}\n", vec![false, true, true]),
            ("garbage\n{\"b\": 2}", vec![false, true]),
            ("[1,\n{\"b\": 2}\n{\"c\": 3}", vec![false, true, true]),
            ("{\"a\": 1}\n{\"b\": \n{\"c\": NaN}", vec![true, false, false]),
        ] {
            assert_eq!(shape(body, ""), Ok(entries), "{body}");
        }
        let entries = document_or_lines(b"{\"a\": \"\xff\"}\n{\"b\": 2}").expect("lines");
        assert_eq!(entries.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true]);
        let why = entries[0].as_ref().expect_err("no UTF-8").to_string();
        assert_eq!(why, "is not UTF-8: byte 7 cannot be read");
    }

    #[test]
    fn a_document_over_several_lines_is_one_document_damaged_or_not() {
        let whole = "{\n  \"readings\": [\n    {\"a\": 1},\n    {\"b\": 2}\n  ]\n}";
        assert_eq!(shape(whole, ""), Ok(vec![true, true]));
        let damaged = whole.replace('2', "NaN");
        let (status, detail) = shape(&damaged, "").expect_err("NaN");
        assert_eq!(status, 400);
        assert!(detail.contains("line 4"), "{detail}");
        let damaged = "{\n  \"device_id\": \"d\",\n  \"t\": 1,\n}";
        assert!(shape(damaged, "").expect_err("a comma too many").1.contains("line 4"));
    }

    #[test]
    fn a_bad_reading_does_not_take_the_others_down() {
        assert_eq!(
            shape(r#"[{"a": 1}, 5, "x", [], null]"#, ""),
            Ok(vec![true, false, false, false, false])
        );
        assert_eq!(shape("{\"a\": 1}\n{\"a\": NaN}\n{\"b\"", ""), Ok(vec![true, false, false]));
        assert_eq!(shape(r#"[{"a": 1, "a": 2}]"#, ""), Ok(vec![false]));
        assert_eq!(shape(r#"[{"a": 1e400}]"#, ""), Ok(vec![true]), "the number is read later");
    }

    #[test]
    fn what_cannot_be_taken_apart_is_refused_with_its_place() {
        let problem = |body: &str| shape(body, "application/json").expect_err(body);
        assert!(problem("[{\"a\": 1},\n {\"a\": NaN}]").1.contains("line 2"));
        assert!(problem("{\n\"a\": \n").1.contains("EOF"));
        assert!(problem("").1.contains("no reading"));
        assert!(problem("[]").1.contains("no reading"));
        assert!(problem("hello").1.contains("not a reading"));
        assert!(problem("[1] trailing").1.contains("trailing"));
        assert!(problem(r#"{"readings": 5}"#).1.contains("array"));
        assert!(problem(r#"{"readings": [], "x": 1}"#).1.contains("x: is not expected"));
        assert!(shape("\u{feff}", "").is_err());
        assert_eq!(
            document_or_lines(b"{\"a\": \"\xff\"}").expect_err("no UTF-8").kind.status(),
            400
        );
    }

    /// A mebibyte is minutes where anything is quadratic, less than a second where it is not.
    #[test]
    fn a_large_body_of_any_shape_is_taken_apart_at_once() {
        const SIZE: usize = MAX_INFLATED / 8;
        let repeated = |text: &str| text.repeat(SIZE / text.len());
        let members = |count: usize| -> String {
            let members: Vec<String> = (0..count).map(|n| format!("\"m{n}\":{n}")).collect();
            format!("{{{}}}", members.join(","))
        };
        let long = |open: &str, fill: &str, close: &str| {
            format!("{open}{}{close}", fill.repeat(SIZE / fill.len()))
        };
        let hundred = members(100);
        let lines = vec![hundred.as_str(); SIZE / hundred.len()];
        let shapes = [
            members(SIZE / 17),
            format!("[{}]", members(SIZE / 17)),
            format!("{{\"readings\":{}}}", members(SIZE / 17)),
            long("{", "\"a\":1,", "\"a\":1}"),
            long("{\"readings\":[],", "\"a\":1,", "\"a\":1}"),
            format!("[{}]", lines.join(",")),
            lines.join("\n"),
            repeated("["),
            repeated("{\"a\":"),
            repeated("{\"readings\":["),
            long("[", "[[]],", "1]"),
            long("{\"", "\\u0041", "\":1}"),
            long("{\"device_id\":\"", "\\n", "\"}"),
            long("{\"device_id\":\"d\",\"t\":0.", "0", "1}"),
            long("{\"device_id\":\"d\",\"t\":1,\"timestamp\":", "9", "}"),
            long("{\"device_id\":\"d\",\"t\":1,\"timestamp\":\"-", "9", "s\"}"),
            long("{\"a\":1}", "\n", "{"),
            long("{\"a\":1}\n", "{", ""),
            long("{\"a\":1}", " ", "5"),
            repeated("{}\n"),
        ];
        let times = Times::new(Timestamp::MAX, &Settings::default());
        for shape in shapes {
            let watch = Stopwatch::start();
            for content_type in ["", "application/x-ndjson"] {
                let entries = ReadingFormat::of(content_type).read(shape.as_bytes());
                let entries = entries.unwrap_or_default();
                let all = place_all(entries, &RequestSender::Anyone, &times);
                let taken = all.timed.readings.len() + all.arrivals.readings.len();
                assert_eq!(taken, 0, "{}", &shape[..60]);
            }
            let spent = watch.elapsed();
            assert!(spent < Duration::from_secs(10), "{spent:?} for {}", &shape[..60]);
        }
    }

    #[test]
    fn depth_and_number_are_bounded() {
        let deep = "[".repeat(6 << 20);
        assert_eq!(shape(&deep, "").expect_err("deep").0, 400);
        let nested = format!("[{}1{}]", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(shape(&nested, ""), Ok(vec![false]));
        let many = |n: usize| format!("[{}]", vec!["{}"; n].join(","));
        assert_eq!(shape(&many(10_000), "").map(|entries| entries.len()), Ok(10_000));
        assert_eq!(shape(&many(10_001), "").expect_err("one too many").0, 413);
        assert_eq!(shape(&"{}\n".repeat(10_001), "").expect_err("one too many").0, 413);
    }
}
