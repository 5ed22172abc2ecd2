//! Sorts items on disk with a merge sort. Defines no order.
//!
//! Runs that fit into memory are sorted there, written to one temporary file, and then merged. Items with equal keys
//! keep their order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Seek as _, SeekFrom, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use history::line::Line;
use history::points::device_point::DevicePoint;
use history::temporary::{ensure_room, megabytes, with_room};
use indicatif::ProgressBar;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::output::print;

/// The memory of a run's items, in bytes.
pub(crate) const RUN: usize = 64 << 20;
/// The memory that an item needs in addition to its own bytes.
const OVERHEAD: usize = 160;
/// The memory that a metric needs in addition to its texts.
const METRIC: usize = 48;
/// The bytes of an item's key without its group, in the temporary file.
const KEY: usize = 32;
/// The message while a source is sorted.
pub(super) const SORTING: &str = "sorting by device and time";
/// The error if the temporary file cannot be written.
const DOES_NOT_FIT: &str = "what is sorted does not fit";

/// An item with a sort key.
pub(crate) trait Sortable: Serialize + DeserializeOwned {
    /// Returns the sort key: the owner of the item, and the time.
    fn place(&self) -> (String, Option<i64>);

    /// Returns the approximate size in bytes.
    fn bytes(&self) -> usize;
}

/// Points of a device are sorted by time, whatever their series.
impl Sortable for DevicePoint {
    fn place(&self) -> (String, Option<i64>) {
        (self.device.clone(), Some(self.point.nanos))
    }

    fn bytes(&self) -> usize {
        let history::point::Point { measurement, tags, fields, .. } = &self.point;
        let fields = fields.iter().map(|(key, value)| key.len() + value.len() + 48);
        self.device.len() + measurement.len() + tags.len() + fields.sum::<usize>()
    }
}

/// Lines of a device are sorted by time.
impl Sortable for Line {
    fn place(&self) -> (String, Option<i64>) {
        self.owner()
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Reading(read) => read
                .reading
                .metrics()
                .iter()
                .map(|(name, value)| METRIC + name.as_str().len() + value.as_str().len())
                .sum(),
            Self::Row(row) => {
                row.metrics.iter().map(|(name, value)| METRIC + name.len() + value.len()).sum()
            }
            Self::Registry(record) => record.json.len(),
            Self::Refused(refusal) => refusal.reason.len(),
        }
    }
}

/// The sort key of an item, and the number of items before it.
type Key = (String, Option<i64>, u64);

/// Sorts items; in memory if they take at most `size` bytes. `read` is the progress bar of the source. Its length tells
/// early if the temporary directory is too small for the whole source. It also shows the progress of the sort.
pub(crate) fn sorted<T: Sortable>(
    items: impl Iterator<Item = anyhow::Result<T>>,
    size: usize,
    read: &ProgressBar,
) -> anyhow::Result<Merged<T>> {
    let (mut run, mut taken, mut bytes) = (Vec::new(), 0, 0);
    let (mut runs, mut file, mut count) = (Vec::new(), None, 0);
    for item in items {
        let item = item?;
        let (group, at) = item.place();
        taken += item.bytes() + OVERHEAD;
        bytes += (item.bytes() + group.len() + KEY) as u64;
        run.push(((group, at, count), item));
        count += 1;

        if taken > size {
            run.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            let before = runs.last().map_or(0, |(_, to)| *to);
            let expected = all(before + bytes, read);
            ensure_room("sorting", expected.saturating_sub(before))?;
            if runs.is_empty() && !read.is_hidden() {
                // A suspended bar shows no message, so the text is made before.
                let said = said_before(expected, read);
                read.suspend(|| print(said));
            }
            runs.push(with_room(write(&mut file, &mut run), || DOES_NOT_FIT.to_owned())?);
            let written = runs.last().map_or(0, |(_, to)| *to);
            read.set_message(format!("{SORTING}, {} on disk", megabytes(written)));
            (taken, bytes) = (0, 0);
        }
    }

    run.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let disk = runs.last().map_or(0, |(_, to)| *to);
    let mut sources: Vec<Run<T>> = vec![Run::Memory(run.into_iter())];
    if let Some(file) = file {
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let file = Arc::new(Mutex::new(file));
        sources.extend(runs.into_iter().map(|(from, to)| {
            let part = FilePart { file: Arc::clone(&file), from, to };
            Run::Disk(BufReader::with_capacity(64 << 10, part))
        }));
    }

    let (runs, heads, next) = (sources, Vec::new(), BinaryHeap::new());
    let mut merged = Merged { runs, heads, next, count, disk };
    for run in 0..merged.runs.len() {
        merged.heads.push(None);
        merged.advance(run)?;
    }
    Ok(merged)
}

/// Appends a run to the file. Returns its start and end.
fn write<T: Sortable>(
    file: &mut Option<BufWriter<File>>,
    run: &mut Vec<(Key, T)>,
) -> anyhow::Result<(u64, u64)> {
    let file = match file {
        Some(file) => file,
        none => none.insert(BufWriter::new(tempfile::tempfile()?)),
    };

    let from = file.stream_position()?;
    for entry in run.drain(..) {
        serde_json::to_writer(&mut *file, &entry)?;
        file.write_all(b"\n")?;
    }
    Ok((from, file.stream_position()?))
}

/// The expected bytes of all items, by the share of the source that is read. If the source's length is unknown, returns
/// `bytes`.
fn all(bytes: u64, read: &ProgressBar) -> u64 {
    let (position, length) = (read.position(), read.length().unwrap_or_default());
    if position == 0 || length <= position {
        return bytes;
    }
    let all = u128::from(bytes) * u128::from(length) / u128::from(position);
    u64::try_from(all).unwrap_or(u64::MAX)
}

/// The remark before a source is sorted on disk, with the expected space.
fn said_before(bytes: u64, read: &ProgressBar) -> String {
    let directory = tempfile::env::temp_dir();
    let directory = directory.display();
    if read.length().is_none() {
        return format!("sorting      on disk, in {directory}: this takes a while");
    }
    format!("sorting      about {} on disk, in {directory}: this takes a while", megabytes(bytes))
}

/// An iterator of all items in order, merged from the runs.
pub(crate) struct Merged<T> {
    runs: Vec<Run<T>>,
    /// The next item of each run, already read.
    heads: Vec<Option<T>>,
    /// The keys of these items, with the indices of their runs.
    next: BinaryHeap<Reverse<(Key, usize)>>,
    /// The number of items in all runs.
    count: u64,
    /// The size of the temporary file in bytes.
    disk: u64,
}

impl<T: Sortable> Merged<T> {
    /// Returns the number of all items.
    pub(crate) const fn total(&self) -> u64 {
        self.count
    }

    /// Returns the bytes that the items take on disk; 0 if they fit into memory.
    pub(crate) const fn disk(&self) -> u64 {
        self.disk
    }

    /// Takes the next item from a run.
    fn advance(&mut self, run: usize) -> anyhow::Result<()> {
        if let Some((key, item)) = self.runs[run].next().transpose()? {
            self.heads[run] = Some(item);
            self.next.push(Reverse((key, run)));
        }
        Ok(())
    }
}

impl<T: Sortable> Iterator for Merged<T> {
    type Item = anyhow::Result<T>;

    fn next(&mut self) -> Option<anyhow::Result<T>> {
        let Reverse((_, run)) = self.next.pop()?;
        let item = self.heads[run].take().expect("each place in the heap has its item");
        if let Err(error) = self.advance(run) {
            self.next.clear();
            return Some(Err(error.context("what was sorted cannot be read")));
        }
        Some(Ok(item))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.next.len(), None)
    }
}

/// A sorted run.
enum Run<T> {
    Memory(std::vec::IntoIter<(Key, T)>),
    Disk(BufReader<FilePart>),
}

impl<T: Sortable> Iterator for Run<T> {
    type Item = anyhow::Result<(Key, T)>;

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

/// A part of a file that several readers share, so that only one file is open, whatever the number of parts.
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
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Item(i64);

    impl Sortable for Item {
        fn place(&self) -> (String, Option<i64>) {
            (String::new(), Some(self.0))
        }

        fn bytes(&self) -> usize {
            8
        }
    }

    /// Sorts items on disk that are so much of their source.
    fn sorted_of(position: u64, length: u64) -> anyhow::Result<Vec<i64>> {
        let bar = ProgressBar::hidden();
        bar.set_length(length);
        bar.set_position(position);
        let sorted = sorted([3, 1, 2].map(|n| Ok(Item(n))).into_iter(), 0, &bar)?;
        sorted.map(|item| item.map(|Item(n)| n)).collect()
    }

    #[test]
    #[cfg(unix)]
    fn where_the_rest_of_the_source_does_not_fit_the_sort_ends_at_once() {
        assert_eq!(sorted_of(1, 1_000).unwrap(), [1, 2, 3]);
        assert_eq!(sorted_of(0, u64::MAX).unwrap(), [1, 2, 3], "nothing is known");
        let said = sorted_of(1, 1 << 60).unwrap_err().to_string();
        assert!(said.starts_with("sorting takes about "), "{said}");
        assert!(said.ends_with("; TMPDIR names another directory"), "{said}");
    }

    #[test]
    fn a_sort_on_disk_is_announced_with_its_size_and_shows_how_far_it_is() {
        let bar = ProgressBar::hidden();
        assert!(said_before(7, &bar).starts_with("sorting      on disk, in "), "nothing is known");
        bar.set_length(100);
        let said = said_before(70_000_001, &bar);
        assert!(said.starts_with("sorting      about 71 MB on disk, in "), "{said}");
        let items = || [3, 1].map(|n| Ok(Item(n))).into_iter();
        drop(sorted(items(), usize::MAX, &bar).unwrap());
        assert_eq!(bar.message(), "", "in memory");
        // One that is seen.
        let bar = crate::progress::bar(100, "{msg}").unwrap();
        assert!(!bar.is_hidden());
        drop(sorted(items(), 0, &bar).unwrap());
        assert_eq!(bar.message(), format!("{SORTING}, 1 MB on disk"));
    }

    #[test]
    fn the_rest_is_estimated_by_what_is_read() {
        let bar = ProgressBar::hidden();
        assert_eq!(all(500, &bar), 500, "a source of unknown length");
        bar.set_length(100);
        bar.set_position(20);
        assert_eq!(all(500, &bar), 2_500);
        bar.set_position(100);
        assert_eq!(all(500, &bar), 500);
    }
}
