//! Puts the lines of a file into the order in which they are sent: those of each device by time. Sends nothing.
//!
//! Then the readings of 15 minutes reach the stream together, and their rollup is folded once or twice
//! instead of once a reading. A file in that order is read twice. Any other is sorted on disk, by device and
//! time, with a merge sort: runs that fit into memory are sorted there and written to one temporary file,
//! and then merged. Lines of one device and timestamp stay in the file's order, because the last one wins.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use domain::Timestamp;
use indicatif::ProgressBar;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::line::{Line, Lines};

/// The memory that the lines of a run take, in bytes.
const RUN: usize = 64 << 20;
/// The memory that a line takes beside its text.
const OVERHEAD: usize = 160;
/// The most devices whose newest timestamps are compared; a file with more is sorted.
const MAX_DEVICES: usize = 100_000;

/// The place of a line in the order: its device, its timestamp in milliseconds, and the number of lines
/// before it.
///
/// A line that is no reading has neither device nor timestamp, and so comes first.
type Key = (String, Option<i64>, u64);

/// Returns the lines of a file in order, and the progress of reading them. `open` opens the file.
///
/// A stream, which cannot be read again, keeps its own order.
pub(super) fn lines(
    path: &Path,
    open: impl Fn() -> anyhow::Result<(Lines, ProgressBar)>,
) -> anyhow::Result<(Lines, ProgressBar)> {
    let (lines, bar) = open()?;
    if !path.is_file() {
        return Ok((lines, bar));
    }
    bar.set_message("checking the order");
    let ordered = is_ordered(lines)?;
    bar.finish_and_clear();
    let (lines, bar) = open()?;
    if ordered {
        return Ok((lines, bar));
    }
    bar.set_message("sorting by device and time");
    let lines = sorted(lines, RUN).context("the lines cannot be sorted")?;
    // What is left of the work is to send what has been read.
    bar.reset();
    bar.set_length(lines.count);
    Ok((Box::new(bar.wrap_iter(lines)), bar))
}

/// Returns whether the timestamps of no device go back.
fn is_ordered(lines: Lines) -> anyhow::Result<bool> {
    let mut newest: HashMap<String, i64> = HashMap::new();
    for line in lines {
        let (device, Some(at)) = owner(&line?) else { continue };
        if newest.len() == MAX_DEVICES && !newest.contains_key(&device) {
            return Ok(false);
        }
        let before = newest.insert(device, at);
        if before.is_some_and(|before| at < before) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the device and the timestamp of a line; neither of a line that is no reading.
fn owner(line: &Line) -> (String, Option<i64>) {
    #[derive(Deserialize)]
    struct Form<'a> {
        device_id: String,
        #[serde(borrow)]
        timestamp: &'a RawValue,
    }
    let Line::Reading(record) = line else { return Default::default() };
    let Ok(Form { device_id, timestamp }) = serde_json::from_str(&record.json) else {
        return Default::default();
    };
    let text = serde_json::from_str::<String>(timestamp.get());
    let at = Timestamp::parse_absolute(text.as_deref().unwrap_or(timestamp.get()));
    at.map_or_else(|_| Default::default(), |at| (device_id, Some(at.as_millis())))
}

/// Sorts lines, in memory where they take at most `size` bytes.
fn sorted(lines: Lines, size: usize) -> anyhow::Result<Merged> {
    let (mut run, mut taken) = (Vec::new(), 0);
    let (mut runs, mut file, mut count) = (Vec::new(), None, 0);
    for line in lines {
        let line = line?;
        let (device, at) = owner(&line);
        let text = match &line {
            Line::Reading(record) => &record.json,
            Line::Refused(refusal) => &refusal.reason,
        };
        taken += text.len() + OVERHEAD;
        run.push(((device, at, count), line));
        count += 1;
        if taken > size {
            let file = match &mut file {
                Some(file) => file,
                none => none.insert(BufWriter::new(tempfile::tempfile()?)),
            };
            let from = file.stream_position()?;
            run.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            for entry in run.drain(..) {
                serde_json::to_writer(&mut *file, &entry)?;
                file.write_all(b"\n")?;
            }
            runs.push((from, file.stream_position()?));
            taken = 0;
        }
    }
    run.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let mut sources: Vec<Run> = vec![Run::Memory(run.into_iter())];
    if let Some(file) = file {
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let file = Arc::new(Mutex::new(file));
        sources.extend(runs.into_iter().map(|(from, to)| {
            let part = FilePart { file: Arc::clone(&file), from, to };
            Run::Disk(BufReader::with_capacity(64 << 10, part))
        }));
    }
    let (runs, heads, next) = (sources, Vec::new(), BinaryHeap::new());
    let mut merged = Merged { runs, heads, next, count };
    for run in 0..merged.runs.len() {
        merged.heads.push(None);
        merged.advance(run)?;
    }
    Ok(merged)
}

/// The lines of all runs, merged.
struct Merged {
    runs: Vec<Run>,
    /// The next line of each run.
    heads: Vec<Option<Line>>,
    /// The places of these lines, and their runs.
    next: BinaryHeap<Reverse<(Key, usize)>>,
    /// The number of lines of all runs.
    count: u64,
}

impl Merged {
    /// Takes the next line out of a run.
    fn advance(&mut self, run: usize) -> anyhow::Result<()> {
        if let Some((key, line)) = self.runs[run].next().transpose()? {
            self.heads[run] = Some(line);
            self.next.push(Reverse((key, run)));
        }
        Ok(())
    }
}

impl Iterator for Merged {
    type Item = anyhow::Result<Line>;

    fn next(&mut self) -> Option<anyhow::Result<Line>> {
        let Reverse((_, run)) = self.next.pop()?;
        let line = self.heads[run].take().expect("each place in the heap has its line");
        if let Err(error) = self.advance(run) {
            self.next.clear();
            return Some(Err(error.context("the sorted lines cannot be read")));
        }
        Some(Ok(line))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.next.len(), None)
    }
}

/// Lines in order.
enum Run {
    Memory(std::vec::IntoIter<(Key, Line)>),
    Disk(BufReader<FilePart>),
}

impl Iterator for Run {
    type Item = anyhow::Result<(Key, Line)>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = match self {
            Self::Memory(entries) => return entries.next().map(Ok),
            Self::Disk(reader) => reader,
        };
        let mut text = String::new();
        match reader.read_line(&mut text) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&text).map_err(Into::into)),
            Err(error) => Some(Err(error.into())),
        }
    }
}

/// A part of a file that several readers share: so one file is open, however many parts it has.
struct FilePart {
    file: Arc<Mutex<File>>,
    from: u64,
    to: u64,
}

impl Read for FilePart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.to - self.from).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.from))?;
        let read = file.read(&mut buffer[..wanted])?;
        self.from += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::line::Record;
    use crate::import::refusals::Refusal;
    use proptest::prelude::*;

    fn reading(line: u64, device: &str, second: i64) -> Line {
        let timestamp = 1_768_147_200 + second;
        let json = format!(r#"{{"device_id":"{device}","timestamp":{timestamp},"t":{line}}}"#);
        Line::Reading(Record { line, json })
    }

    fn lines(lines: Vec<Line>) -> Lines {
        Box::new(lines.into_iter().map(Ok))
    }

    fn sorted_with(all: Vec<Line>, size: usize) -> Vec<Line> {
        sorted(lines(all), size).unwrap().collect::<anyhow::Result<_>>().unwrap()
    }

    #[test]
    fn devices_may_alternate_as_long_as_each_goes_forward() {
        let ordered = |order: &[(&str, i64)]| {
            let all = order.iter().zip(1..).map(|((device, at), line)| reading(line, device, *at));
            is_ordered(lines(all.collect())).unwrap()
        };
        assert!(ordered(&[("a", 0), ("b", 5), ("a", 0), ("b", 6), ("a", 9)]));
        assert!(!ordered(&[("a", 0), ("b", 5), ("a", 1), ("b", 4)]));
        assert!(ordered(&[]));
    }

    #[test]
    fn every_form_of_a_timestamp_has_its_place() {
        let line = |json: &str| Line::Reading(Record { line: 1, json: json.to_owned() });
        let at = Some(1_768_147_200_000);
        for timestamp in ["1768147200", "\"2026-01-11T17:00:00+01:00\"", "1768147200000"] {
            let json = format!(r#"{{"device_id":"\u0064","t":1,"timestamp":{timestamp}}}"#);
            assert_eq!(owner(&line(&json)), ("d".to_owned(), at), "{timestamp}");
        }
        for other in
            ["{", r#"{"device":{"device_id":"d"}}"#, r#"{"device_id":"d","timestamp":"-1h"}"#]
        {
            assert_eq!(owner(&line(other)), (String::new(), None), "{other}");
        }
    }

    #[test]
    fn what_is_no_reading_comes_first_and_in_its_own_order() {
        let refused = |line| Line::Refused(Refusal { line, reason: "no".to_owned() });
        let all = vec![reading(1, "b", 0), refused(2), reading(3, "a", 0), refused(4)];
        let expected = vec![refused(2), refused(4), reading(3, "a", 0), reading(1, "b", 0)];
        for size in [0, usize::MAX] {
            assert_eq!(sorted_with(all.clone(), size), expected);
        }
    }

    #[test]
    fn an_error_of_the_file_ends_the_sort() {
        let all = [Ok(reading(1, "a", 0)), Err(anyhow::anyhow!("a bad disk"))];
        let error = sorted(Box::new(all.into_iter()), 0).err().unwrap();
        assert!(format!("{error:#}").contains("a bad disk"));
    }

    proptest! {
        #[test]
        fn on_disk_and_in_memory_lines_are_sorted_as_a_stable_sort_does(
            order in proptest::collection::vec((0..3_usize, 0..20_i64), 0..60),
            size in 0..4_000_usize,
        ) {
            let all: Vec<Line> = (1..).zip(&order).map(|(line, (device, at))| {
                reading(line, ["a", "b", "c"][*device], *at)
            }).collect();
            let mut expected: Vec<_> = order.iter().zip(all.clone()).collect();
            expected.sort_by_key(|(key, _)| **key);
            let expected: Vec<Line> = expected.into_iter().map(|(_, line)| line).collect();
            prop_assert_eq!(sorted_with(all, size), expected);
        }
    }
}
