//! Tests of files of line protocol. The exports are written as the programs write them.

use super::*;
use crate::growing::{self, Growing};

/// An export of two databases and two policies, in the order of `influx_inspect`.
const EXPORT: &str = r#"# DDL
CREATE DATABASE _internal WITH NAME monitor
CREATE DATABASE "home one" WITH NAME autogen
CREATE DATABASE "home one" WITH NAME years
# DML
# CONTEXT-DATABASE:_internal
# CONTEXT-RETENTION-POLICY:monitor
# writing tsm data
runtime,hostname=pi Alloc=1i 1768147200000000000
# CONTEXT-DATABASE:home one
# CONTEXT-RETENTION-POLICY:years
# writing tsm data
°C,entity_id=t,domain=sensor value=1.5 1768147200000000000
# CONTEXT-DATABASE:home one
# CONTEXT-RETENTION-POLICY:autogen
# writing tsm data
°C,entity_id=t,domain=sensor friendly_name_str="Living, \"big\"
room" 1768147200000000000
°C,entity_id=t,domain=sensor value=21.5 1768147200000000000
# writing wal data
°C,entity_id=t,domain=sensor value=22 1768147200000000000
"#;

fn read(text: &str, wanted: &[&str]) -> (anyhow::Result<Vec<String>>, String, Vec<String>) {
    let notes = Notes::default();
    let wanted = wanted.iter().map(|it| it.parse().unwrap()).collect();
    let reader = std::io::Cursor::new(text.as_bytes().to_vec());
    let file = LineFile::new(TextLines::new(reader), "ns".parse().unwrap(), wanted, notes.clone());
    let points: anyhow::Result<Vec<_>> = file
        .map(|point| {
            point.map(|point| {
                let fields: Vec<_> = point.fields.iter().map(|(k, v)| format!("{k}={v}")).collect();
                format!("{}: {} {} {}", point.line, point.series(), fields.join(","), point.nanos)
            })
        })
        .collect();
    (points, notes.to_string(), notes.take_refusals().shown())
}

#[test]
fn an_export_s_default_policy_is_taken_and_the_others_are_counted() {
    let (points, notes, refusals) = read(EXPORT, &[]);
    let series = "°C,domain=sensor,entity_id=t";
    let at = "1768147200000000000";
    assert_eq!(
        points.unwrap(),
        [
            format!("17: {series} friendly_name_str=\"Living, \\\"big\\\"\nroom\" {at}"),
            format!("19: {series} value=21.5 {at}"),
            format!("21: {series} value=22 {at}"),
        ]
    );
    let expected = [
        "database     home one, retention policy autogen",
        "left out     1 lines of _internal.monitor; --database _internal.monitor imports them",
        "left out     1 lines of home one.years; --database home one.years imports them",
    ];
    assert_eq!(notes, expected.join("\n"));
    assert!(refusals.is_empty(), "{refusals:?}");
}

#[test]
fn a_database_is_taken_on_demand_and_a_missing_one_is_named() {
    let (points, ..) = read(EXPORT, &["home one.years"]);
    assert_eq!(points.unwrap().len(), 1);
    assert_eq!(read(EXPORT, &["home one"]).0.unwrap().len(), 4);
    let error = read(EXPORT, &["other"]).0.unwrap_err().to_string();
    assert!(
        error.contains("\"other\" is not in the file, which has _internal.monitor, home one.years"),
        "{error}"
    );
    let error = read("m v=1 1\n", &["other"]).0.unwrap_err().to_string();
    assert!(error.ends_with("which names none"), "{error}");
}

#[test]
fn a_file_without_marks_is_taken_whole_and_bad_lines_are_named() {
    let (points, notes, refusals) =
        read("m v=1 1\nm v=1\n\n# a comment\nm v=x 2\nm s=\"no end 3\nm v=4 4\r\n", &[]);
    assert_eq!(points.unwrap(), ["1: m v=1 1", "7: m v=4 4"]);
    assert_eq!(notes, "");
    assert_eq!(
        refusals,
        [
            "line 2: has no timestamp; a file does not tell when it was measured",
            "line 5: invalid boolean",
            "line 6: unbalanced quotes",
        ]
    );
}

#[test]
fn an_export_of_influxdb_2_and_one_without_declarations_are_read() {
    let two = "# INFLUXDB EXPORT: 1677-09-21 - 2262-04-11\n# DDL\nCREATE DATABASE b WITH NAME autogen\n# DML\n\
        # CONTEXT-DATABASE: b\n# CONTEXT-RETENTION-POLICY: autogen\n# writing tsm data\nm,t=a v=1.5 1\n";
    assert_eq!(read(two, &[]).0.unwrap(), ["8: m,t=a v=1.5 1"]);
    let plain = "# CONTEXT-DATABASE:a\n# CONTEXT-RETENTION-POLICY:p\nm v=1 1\n# CONTEXT-DATABASE:b\n\
        # CONTEXT-RETENTION-POLICY:autogen\nm v=2 2\n";
    let (points, notes, _) = read(plain, &[]);
    assert_eq!(points.unwrap(), ["3: m v=1 1"], "the first");
    assert!(notes.contains("1 lines of b.autogen"), "{notes}");
}

#[test]
fn other_precisions_are_nanoseconds_too() {
    for (name, nanos) in [("s", 5_000_000_000), ("ms", 5_000_000), ("us", 5_000), ("ns", 5)] {
        let reader = std::io::Cursor::new(b"m v=1 5\n".to_vec());
        let mut file = LineFile::new(
            TextLines::new(reader),
            name.parse().unwrap(),
            Vec::new(),
            Notes::default(),
        );
        assert_eq!(file.next().unwrap().unwrap().nanos, nanos);
    }
    assert!("h".parse::<TimePrecision>().is_err());
    let notes = Notes::default();
    let reader = std::io::Cursor::new(b"m v=1 1768147200000000000\n".to_vec());
    assert_eq!(
        LineFile::new(TextLines::new(reader), "s".parse().unwrap(), Vec::new(), notes.clone())
            .count(),
        0
    );
    assert!(notes.take_refusals().shown()[0].contains("--precision"));
}

#[test]
fn the_last_line_of_a_file_that_grows_is_refused_and_those_before_it_are_read() {
    let line = "m,host=a v=1.5,w=2 1768147200000000000\n";
    let text = line.repeat(3);
    let whole = text.len();
    for end in whole - line.len() + 1..whole {
        let (points, _, refusals) = read(&text[..end], &[]);
        let points = points.unwrap();
        // Without its end alone it is whole.
        let is_whole = end == whole - 1;
        assert_eq!(points.len(), if is_whole { 3 } else { 2 }, "{end}: {points:?}");
        assert_eq!(refusals.len(), usize::from(!is_whole), "{end}: {refusals:?}");
        assert!(refusals.iter().all(|it| it.starts_with("line 3: ")), "{refusals:?}");
    }
}

#[test]
fn a_compressed_file_that_is_cut_is_an_error_and_no_end() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    let text = "m,host=a v=1.5 1768147200000000000\n".repeat(10_000);
    std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let read = |bytes: &[u8]| {
        let reader = flate2::bufread::MultiGzDecoder::new(bytes);
        let reader = std::io::BufReader::new(reader);
        LineFile::new(
            TextLines::new(reader),
            TimePrecision::default(),
            Vec::new(),
            Notes::default(),
        )
        .collect::<anyhow::Result<Vec<_>>>()
    };
    assert_eq!(read(&gzip).unwrap().len(), 10_000);
    let error = format!("{:#}", read(&gzip[..gzip.len() / 2]).unwrap_err());
    assert!(error.contains("cannot be read"), "{error}");
}

#[test]
fn a_last_line_without_an_end_is_refused_if_the_file_is_written_meanwhile() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let text = "m v=1 1768147200000000000\nm v=2 1768147201000000000";
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    let read = |growing: &Growing| {
        let notes = Notes::default();
        let lines = TextLines::growing(text.as_bytes(), growing.clone());
        let file = LineFile::new(lines, TimePrecision::default(), Vec::new(), notes.clone());
        (file.count(), notes.take_refusals().shown())
    };
    let growing = Growing::of(file.path());
    assert_eq!(read(&growing), (2, vec![]));
    std::io::Write::write_all(&mut file, b"0").unwrap();
    let refusal = format!("line 2: {}", growing::CUT);
    assert_eq!(read(&growing), (1, vec![refusal]));
}
