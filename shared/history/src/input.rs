//! An open file of a source: its kind, its lines and its bytes. Finds no path.

use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use domain::Timestamp;
use flate2::bufread::MultiGzDecoder;

use crate::csv;
use crate::csv::columns::Columns;
use crate::exported_lines;
use crate::growing::Growing;
use crate::kind::{self, Format};
use crate::line::Lines;
use crate::records;
use crate::text_lines::TextLines;

/// An open file of readings.
pub struct InputFile {
    /// The decompressed bytes.
    pub reader: Box<dyn BufRead + Send>,
    /// The kind of the file.
    pub format: Format,
    /// Whether the bytes are the file's own, neither decompressed nor from a stream.
    pub is_plain: bool,
    /// Whether the file has no content, as an export of an empty table.
    pub is_empty: bool,
}

/// Opens the bytes of a file: finds its format, and decompresses it. `-` is standard input.
pub fn open(
    mut raw: impl BufRead + Send + 'static,
    path: &Path,
    format: Option<Format>,
) -> anyhow::Result<InputFile> {
    let cannot_read = || format!("cannot read {}", path.display());
    let is_compressed = is_gzip(&mut raw).with_context(cannot_read)?;
    let mut reader = decompressed(raw).with_context(cannot_read)?;

    if reader.fill_buf().with_context(cannot_read)?.starts_with(b"\xef\xbb\xbf") {
        reader.consume(3); // the byte order mark of UTF-8 is no part of the first record
    }

    let beginning = reader.fill_buf().with_context(cannot_read)?;
    let is_empty = beginning.iter().all(u8::is_ascii_whitespace);
    let format = kind::of(beginning, path, format)?;
    let is_plain = !is_compressed && path.is_file();
    Ok(InputFile { reader, format, is_plain, is_empty })
}

/// Decompresses bytes that are gzip, and returns others as they are. Fails if gzip was compressed once more.
pub fn decompressed(
    mut raw: impl BufRead + Send + 'static,
) -> anyhow::Result<Box<dyn BufRead + Send>> {
    if !is_gzip(&mut raw)? {
        return Ok(Box::new(raw));
    }
    let mut content = BufReader::new(MultiGzDecoder::new(raw));
    ensure!(!is_gzip(&mut content)?, "it is gzip within gzip: decompress it once with gunzip");
    Ok(Box::new(content))
}

fn is_gzip(reader: &mut impl BufRead) -> io::Result<bool> {
    Ok(reader.fill_buf()?.starts_with(&[0x1f, 0x8b]))
}

impl InputFile {
    /// Reads the lines of readings that the file has. Fails if the file has points. Reads a Shelly meter's log as
    /// ordinary CSV.
    pub fn lines(
        self,
        columns: &Columns,
        growing: Growing,
        now: Timestamp,
    ) -> anyhow::Result<Lines> {
        let format = self.format;
        let lines = self.into_lines(growing);
        match format {
            Format::Csv | Format::Shelly => csv::read(lines, columns, now),
            Format::ExportedLines => {
                Ok(Box::new(records::decode(lines, exported_lines::json, now)))
            }
            Format::Ndjson => Ok(Box::new(records::decode(lines, ndjson, now))),
            Format::LineProtocol
            | Format::HomeAssistant
            | Format::HomeAssistantBackup
            | Format::InfluxDb => bail!("{} has points and no lines of readings", format.name()),
        }
    }

    /// Returns the lines of the text.
    pub fn into_lines(self, growing: Growing) -> TextLines<Box<dyn BufRead + Send>> {
        TextLines::growing(self.reader, growing)
    }
}

/// Returns the JSON of a line of NDJSON; `None` if the line is blank.
fn ndjson(text: &[u8]) -> Option<Result<String, String>> {
    match std::str::from_utf8(text) {
        Ok(json) if json.trim().is_empty() => None,
        Ok(json) => Some(Ok(json.to_owned())),
        Err(error) => {
            Some(Err(format!("is not UTF-8: byte {} cannot be read", error.valid_up_to())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growing::CUT;
    use crate::line::{JsonRecord, Line};
    use crate::reading;
    use crate::text_lines::MAX_LINE;
    use std::fs::File;
    use std::io::Write as _;

    fn open_file(path: &Path) -> anyhow::Result<InputFile> {
        open(BufReader::new(File::open(path)?), path, None)
    }

    fn written(bytes: &[u8], suffix: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::Builder::new().suffix(suffix).tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn lines_of(bytes: &[u8], suffix: &str) -> anyhow::Result<Vec<Line>> {
        let file = written(bytes, suffix);
        let growing = Growing::of(file.path());
        open_file(file.path())?.lines(&Columns::default(), growing, Timestamp::MAX)?.collect()
    }

    fn lines(bytes: &[u8]) -> anyhow::Result<Vec<Line>> {
        lines_of(bytes, "")
    }

    /// Why these objects are no readings.
    const TIMELESS: &str = "timestamp: is missing";

    /// The numbers of the lines that have an object, and all other refusals.
    fn told(bytes: &[u8]) -> (Vec<u64>, Vec<String>) {
        let (mut readings, mut refusals) = (Vec::new(), Vec::new());
        for line in lines(bytes).unwrap() {
            match line {
                Line::Reading(reading) => readings.push(reading.line),
                Line::Refused(refusal) if refusal.reason.starts_with(TIMELESS) => {
                    readings.push(refusal.line);
                }
                Line::Refused(refusal) => refusals.push(refusal.to_string()),
                line => panic!("{line:?}"),
            }
        }
        (readings, refusals)
    }

    #[test]
    fn the_last_line_of_a_file_that_grows_is_refused_and_of_another_it_is_said_that_it_has_no_end()
    {
        let csv = b"timestamp,device_id,t\n2026-01-11T16:00:00Z,d,21.5\n2026-01-11T16:01:00Z,d,2";
        let read = |bytes: &[u8], more: &[u8]| {
            let mut file = written(bytes, ".csv");
            let growing = Growing::of(file.path());
            let lines = open_file(file.path()).unwrap();
            let lines = lines.lines(&Columns::default(), growing.clone(), Timestamp::MAX).unwrap();
            file.write_all(more).unwrap();
            let lines: Vec<Line> = lines.collect::<anyhow::Result<_>>().unwrap();
            let refused = lines.iter().filter_map(|line| match line {
                Line::Refused(refusal) if !refusal.reason.starts_with(TIMELESS) => {
                    Some(refusal.to_string())
                }
                _ => None,
            });
            (lines.len(), refused.collect::<Vec<_>>(), growing.said())
        };
        let refusal = format!("line 3: {CUT}");
        assert_eq!(read(csv, b"2.2"), (2, vec![refusal], None));
        let (count, refused, said) = read(csv, b"");
        assert_eq!((count, refused.len()), (2, 0));
        assert!(said.unwrap().starts_with("last line    of "));
        let ended = [&csv[..], b"2.25\n"].concat();
        assert_eq!(read(&ended, b""), (2, vec![], None));
        let refusal = format!("line 4: {CUT}");
        assert_eq!(read(&ended, b"2026-01-11T16:02:00Z,d,2"), (3, vec![refusal], None));
    }

    #[test]
    fn the_last_line_of_any_text_that_grows_is_refused() {
        let export = "# roomtide export\nreadings,device_id=d t=1 1768147200000000000";
        for (text, cut) in [
            ("{\"a\": 1}\n{\"b\": 2}", 2),
            ("{\"a\": 1}\n{\"b\":", 2),
            (export, 2),
            ("{\"a\": 1}\n{\"b\": 2}\n  ", 0),
        ] {
            let file = written(text.as_bytes(), "");
            let growing = Growing::of(file.path());
            std::fs::OpenOptions::new()
                .append(true)
                .open(file.path())
                .unwrap()
                .write_all(b" ")
                .unwrap();
            let lines =
                open_file(file.path()).unwrap().lines(&Columns::default(), growing, Timestamp::MAX);
            let refused = lines.unwrap().filter_map(|line| match line.unwrap() {
                Line::Refused(refusal) if !refusal.reason.starts_with(TIMELESS) => {
                    Some(refusal.to_string())
                }
                _ => None,
            });
            let expected = (cut > 0).then(|| format!("line {cut}: {CUT}"));
            assert_eq!(refused.collect::<Vec<_>>(), Vec::from_iter(expected), "{text}");
        }
    }

    #[test]
    fn csv_and_ndjson_are_told_apart_and_gzip_is_inflated() {
        let csv = b"timestamp,device_id,room,temperature\n2026-01-11T16:00:00Z,d,r,21.50\n2026-01-11T16:01:00Z,d,,\n";
        let expected = Line::decode(
            JsonRecord {
                line: 2,
                json: r#"{"timestamp":"2026-01-11T16:00:00.000Z","device_id":"d","room":"r","temperature":21.5}"#.to_owned(),
            },
            Timestamp::MAX,
        );
        assert_eq!(
            lines(csv).unwrap(),
            vec![expected.clone()],
            "a row without a value is no reading"
        );
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(csv).unwrap();
        assert_eq!(lines(&gzip.finish().unwrap()).unwrap(), vec![expected]);
        assert_eq!(told(b"{\"a\": 1}\n\n{\"b\": 2}").0, [1, 3]);
        assert_eq!(told(b"\xef\xbb\xbf{}").0, [1], "without the mark");
        // The name tells before the first character does, which may be damaged.
        for suffix in [".ndjson", ".jsonl", ".NDJSON.gz"] {
            assert_eq!(lines_of(b"damaged\n{\"b\": 2}", suffix).unwrap().len(), 2, "{suffix}");
        }
    }

    #[test]
    fn the_header_tells_the_separator_and_a_comma_may_be_decimal() {
        for (file, value) in [
            ("timestamp;device_id;\"t\"\n1768147200;d;21,5\n", "21.5"),
            ("timestamp\tdevice_id\tt\n1768147200\td\t21.5\n", "21.5"),
            ("timestamp,device_id,t\n1768147200,d,21.5\n", "21.5"),
        ] {
            let Line::Reading(read) = &lines(file.as_bytes()).unwrap()[0] else { panic!("{file}") };
            let json = reading::json(&read.reading);
            assert!(json.ends_with(&format!("\"t\":{value}}}")), "{json}");
        }
        let (_, refusals) = told(b"timestamp,device_id,t\n1768147200,d,\"1,234\"\n");
        assert!(refusals[0].contains("--decimal-comma"), "{refusals:?}");
    }

    #[test]
    fn a_line_that_cannot_be_read_is_refused_and_the_rest_goes_on() {
        let csv = b"timestamp,device_id,t\n1768147201,d,1\n2,d\n3,d,\xff\n,d,4\n1768147205,d,warm\n1768147206,d,6\n";
        let (readings, refusals) = told(csv);
        assert_eq!(readings, [2, 7]);
        assert_eq!(
            refusals,
            [
                "line 3: has 2 columns; the header has 3",
                "line 4: is not UTF-8 in column 3; `iconv -f WINDOWS-1252 -t UTF-8` converts a file of Windows",
                "line 5: timestamp: is empty",
                "line 6: t: \"warm\" is not a number",
            ]
        );
        let (readings, refusals) = told(b"{\"a\": 1}\n{\"a\": \"\xff\"}\n{\"b\": 2}\n");
        assert_eq!(readings, [1, 3]);
        assert_eq!(refusals, ["line 2: is not UTF-8: byte 7 cannot be read"]);
        let long = [b"{}\n{\"".as_slice(), &vec![b'x'; MAX_LINE + 5], b"\n{}\n"].concat();
        let (readings, refusals) = told(&long);
        assert_eq!((readings, refusals.len()), (vec![1, 3], 1));
    }

    #[test]
    fn a_quote_that_does_not_end_takes_no_other_line_with_it() {
        let row = |n: u32| format!("176814{n:04},d,{n}\n");
        let mut csv = "timestamp,device_id,\"t\"\n".to_owned();
        csv.extend((2..2_000).map(row));
        csv += "1768149000,d,\"10\n";
        csv.extend((2_001..4_000).map(row));
        let reason = "does not end on this line; a cell holds no line break";
        for end in ["", "1768149001,\"d,5", "1768149001,\"d,5\r\n"] {
            let (readings, refusals) = told(format!("{csv}{end}").as_bytes());
            assert_eq!(readings.len(), 3_997, "{end:?}");
            assert_eq!(refusals[0], format!("line 2000: has a quote in column 3 that {reason}"));
            let last = format!("line 4000: has a quote in column 2 that {reason}");
            assert_eq!(refusals[1..], if end.is_empty() { vec![] } else { vec![last] });
        }
        let spanning = b"timestamp,device_id,t,note\n1768147201,d,1,\"two\nlines\"\n1768147203,d,3,\"\"\"one\"\"\"\n";
        let (readings, refusals) = told(spanning);
        assert_eq!(readings, [4]);
        assert!(refusals[0].starts_with("line 2: has a quote in column 4 that"), "{refusals:?}");
        assert_eq!(refusals[1], "line 3: has 1 columns; the header has 4");
        let error = lines(b"timestamp,\"device_id\n1,d\n").unwrap_err();
        assert!(format!("{error:#}").contains("the header row has a quote"), "{error:#}");
    }

    #[test]
    fn a_line_of_csv_takes_no_more_memory_than_the_longest_may() {
        let long = vec![b'1'; MAX_LINE + 5];
        let csv =
            [b"timestamp,device_id,t\n1768147201,d,".as_slice(), &long, b"\n1768147202,d,2\n"];
        let (readings, refusals) = told(&csv.concat());
        assert_eq!(readings, [3]);
        assert_eq!(refusals, [format!("line 2: is longer than {MAX_LINE} bytes")]);
    }

    #[test]
    fn lines_may_end_in_any_of_the_three_ways() {
        for end in ["\n", "\r\n", "\r"] {
            let csv = ["timestamp,device_id,t", "1768147201,d,1", "", "1768147202,d,2"].join(end);
            assert_eq!(told(csv.as_bytes()).0.len(), 2, "{end:?}");
        }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn a_file_that_ends_too_early_is_an_error() {
        for text in ["timestamp,device_id,t\n1768147201,d,1\n", "{\"a\": 1}\n"] {
            let gzip = gzip(text.repeat(2_000).as_bytes());
            let file = written(&gzip[..gzip.len() / 2], "");
            let growing = Growing::of(file.path());
            let read = open_file(file.path())
                .and_then(|input| input.lines(&Columns::default(), growing, Timestamp::MAX))
                .and_then(Iterator::collect::<anyhow::Result<Vec<Line>>>);
            let error = format!("{:#}", read.unwrap_err());
            assert!(error.contains(&*file.path().to_string_lossy()), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_read_at_all_says_so() {
        let error = |bytes: &[u8]| format!("{:#}", lines(bytes).unwrap_err());
        assert!(error(b"").contains("is empty"));
        assert!(error(b"[1]").contains("one object a line"));
        assert!(error(b"m,host=a value=1 17\n").contains("has points"));
        assert!(error(b"time,device_id\n1,d\n").contains("no column \"timestamp\""));
        let twice = gzip(&gzip(b"{}"));
        assert!(error(&twice).contains("gzip within gzip"));
        let directory = tempfile::tempdir().unwrap();
        let error = format!("{:#}", open_file(directory.path()).err().unwrap());
        assert!(error.contains(&*directory.path().to_string_lossy()), "{error}");
    }
}
