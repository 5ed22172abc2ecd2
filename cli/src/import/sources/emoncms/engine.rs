//! Reads the values of a feed from the files of Emoncms' engines. Names no feed.

use std::fs::File;
use std::io::{self, BufReader, Read};

use anyhow::{Context as _, ensure};

use super::files::Files;

/// The size of a value in bytes.
const VALUE: usize = 4;
/// The size of a row of `PHPTimeSeries` in bytes: a mark, the time, the value.
const ROW: usize = 9;
/// The last second that fits into nanoseconds of 64 bits.
const LAST_SECOND: i64 = i64::MAX / 1_000_000_000;
/// The size of a meta file in bytes: two unused words, the interval, the start.
const META: usize = 16;

/// An item that an engine yields.
#[derive(Debug, PartialEq)]
pub(super) enum Value {
    /// The time in seconds since 1970, and the measured value.
    Measured(i64, f32),
    /// The file's end is incomplete; the text describes the problem.
    Cut(String),
}

/// An open feed: an iterator of its values.
pub(super) enum Engine {
    /// One value per interval.
    Fina { values: BufReader<File>, next: i64, interval: i64 },
    /// Values with their own times.
    Series { rows: BufReader<File>, interval: Option<i64> },
}

impl Engine {
    /// Opens a feed; `None` if the feed has no value.
    pub(super) fn open(files: &Files, id: u64) -> anyhow::Result<Option<Self>> {
        if let Some(path) = files.series(id) {
            let file = File::open(path)?;
            let bytes = file.metadata()?.len();
            let interval = interval_of_rows(&mut File::open(path)?)?;
            return Ok((bytes > 0).then(|| Self::Series { rows: BufReader::new(file), interval }));
        }
        let (meta, values) = files.fina(id);
        let values =
            values.with_context(|| format!("{id}.dat is missing; there is {id}.meta only"))?;
        let file = File::open(values)?;
        let bytes = file.metadata()?.len();
        if bytes == 0 {
            return Ok(None);
        }
        let meta = meta
            .with_context(|| format!("{id}.meta is missing, which tells the times of {id}.dat"))?;
        let (interval, start) =
            read_meta(&std::fs::read(meta)?).with_context(|| format!("{id}.meta"))?;
        let count = i64::try_from(bytes / VALUE as u64)?;
        let last = interval.checked_mul(count).and_then(|length| length.checked_add(start));
        ensure!(
            last.is_some_and(|last| last <= LAST_SECOND),
            "{id}.meta tells times behind the year 2262: its interval is {interval} seconds"
        );
        Ok(Some(Self::Fina { values: BufReader::new(file), next: start, interval }))
    }

    /// Returns the seconds between values; `None` for fewer than two.
    pub(super) const fn interval(&self) -> Option<i64> {
        match self {
            Self::Fina { interval, .. } => Some(*interval),
            Self::Series { interval, .. } => *interval,
        }
    }
}

/// Reads the interval and the start, in seconds.
fn read_meta(bytes: &[u8]) -> anyhow::Result<(i64, i64)> {
    ensure!(bytes.len() >= META, "has {} bytes, and a meta file has {META}", bytes.len());
    let word = |at: usize| {
        let bytes = bytes[at..at + VALUE].try_into().expect("the length is checked");
        i64::from(u32::from_le_bytes(bytes))
    };
    let (interval, start) = (word(8), word(12));
    ensure!(interval > 0, "tells an interval of 0 seconds");
    ensure!(start > 0, "tells no beginning");
    Ok((interval, start))
}

/// Returns the seconds between the first two rows.
fn interval_of_rows(reader: &mut impl Read) -> io::Result<Option<i64>> {
    let mut times = Vec::new();
    for _ in 0..2 {
        let Record::Whole(row) = record::<ROW>(reader)? else { return Ok(None) };
        times.push(row_of(row).0);
    }
    Ok(Some(times[1] - times[0]))
}

fn row_of([_, a, b, c, d, value @ ..]: [u8; ROW]) -> (i64, f32) {
    (u32::from_le_bytes([a, b, c, d]).into(), f32::from_le_bytes(value))
}

/// The result of reading `N` bytes.
enum Record<const N: usize> {
    Whole([u8; N]),
    /// The file ends with fewer bytes.
    Part(usize),
    End,
}

fn record<const N: usize>(reader: &mut impl Read) -> io::Result<Record<N>> {
    let (mut bytes, mut filled) = ([0; N], 0);
    while filled < N {
        match reader.read(&mut bytes[filled..]) {
            Ok(0) if filled == 0 => return Ok(Record::End),
            Ok(0) => return Ok(Record::Part(filled)),
            Ok(length) => filled += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Record::Whole(bytes))
}

impl Iterator for Engine {
    type Item = anyhow::Result<Value>;

    fn next(&mut self) -> Option<anyhow::Result<Value>> {
        let read = match self {
            Self::Fina { values, next, interval } => record::<VALUE>(values).map(|record| {
                Some(match record {
                    Record::Whole(bytes) => {
                        let at = *next;
                        *next += *interval;
                        Value::Measured(at, f32::from_le_bytes(bytes))
                    }
                    Record::Part(length) => Value::Cut(format!(
                        "the file ends with {length} bytes of a value, which has {VALUE}"
                    )),
                    Record::End => return None,
                })
            }),
            Self::Series { rows, .. } => record::<ROW>(rows).map(|record| {
                Some(match record {
                    Record::Whole(row) => {
                        let (at, value) = row_of(row);
                        Value::Measured(at, value)
                    }
                    Record::Part(length) => Value::Cut(format!(
                        "the file ends with {length} bytes of a row, which has {ROW}"
                    )),
                    Record::End => return None,
                })
            }),
        };
        read.context("the values cannot be read").transpose()
    }
}
