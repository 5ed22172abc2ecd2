//! What devices had before an import, kept in a file beside its progress: an import that goes on does not find it any
//! more. Asks no server.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use domain::{DeviceId, Exact, RoomId};
use local::private;
use serde::{Deserialize, Serialize};

use super::known::{Before, OfMonth};
use super::tally::Totals;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Device { device: String, before: Option<KeptBefore> },
    Room { room: String, is_new: bool },
    Report { report: PathBuf },
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptBefore {
    is_new: bool,
    months: BTreeMap<String, KeptMonth>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptMonth {
    days: Vec<u8>,
    /// Counts and sums.
    metrics: BTreeMap<String, (i64, String)>,
}

/// What was known before.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// `None` where nobody can tell.
    pub(super) devices: BTreeMap<DeviceId, Option<Before>>,
    /// Whether each room was new.
    pub(super) rooms: BTreeMap<RoomId, bool>,
    /// The reports of runs that stopped.
    pub(super) reports: Vec<PathBuf>,
}

/// The file.
pub(super) struct Kept {
    path: PathBuf,
    file: File,
}

impl Kept {
    /// Opens the file of an import that goes on, with what is in it, or begins a new one. What is there is `None` if an
    /// import goes on whose file is gone.
    pub(super) fn open(path: PathBuf, goes_on: bool) -> anyhow::Result<(Self, Option<Earlier>)> {
        let context =
            || format!("cannot write {}; --state FILE keeps it elsewhere", path.display());
        let earlier = if goes_on { read(&path) } else { Some(Earlier::default()) };
        let is_continued = goes_on && earlier.is_some();
        let mut options = private::options();
        options.create(true).append(is_continued).truncate(!is_continued);
        let mut file = options.open(&path).with_context(context)?;
        // A crash may have cut off the last line.
        file.write_all(b"\n").with_context(context)?;
        Ok((Self { path, file }, earlier))
    }

    /// Adds a device.
    pub(super) fn add_device(
        &mut self,
        device: &DeviceId,
        before: Option<&Before>,
    ) -> anyhow::Result<()> {
        self.add(&Line::Device { device: device.to_string(), before: before.map(Into::into) })
    }

    /// Adds a room.
    pub(super) fn add_room(&mut self, room: &RoomId, is_new: bool) -> anyhow::Result<()> {
        self.add(&Line::Room { room: room.to_string(), is_new })
    }

    /// Adds the report of a run that stopped.
    pub(super) fn add_report(&mut self, report: PathBuf) -> anyhow::Result<()> {
        self.add(&Line::Report { report })
    }

    fn add(&mut self, line: &Line) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let context = || format!("cannot write {}", self.path.display());
        self.file.write_all(&text).with_context(context)
    }

    /// Removes the file, because the import is complete.
    pub(super) fn finish(self) {
        // If it cannot be removed, the next import begins it anew.
        drop(fs::remove_file(self.path));
    }
}

/// The lines of a file. One that was cut off by a crash is asked for again.
fn read(path: &Path) -> Option<Earlier> {
    let text = fs::read_to_string(path).ok()?;
    let mut earlier = Earlier::default();
    for line in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        match line {
            Line::Device { device, before } => {
                let before = before.map(Before::try_from).transpose().ok()?;
                earlier.devices.insert(device.parse().ok()?, before);
            }
            Line::Room { room, is_new } => drop(earlier.rooms.insert(room.parse().ok()?, is_new)),
            Line::Report { report } => earlier.reports.push(report),
        }
    }
    Some(earlier)
}

impl From<&Before> for KeptBefore {
    fn from(before: &Before) -> Self {
        let totals = |it: &Totals| (it.count, it.sum.to_string());
        let month = |it: &OfMonth| KeptMonth {
            days: it.days.iter().copied().collect(),
            metrics: it.metrics.iter().map(|(name, it)| (name.to_string(), totals(it))).collect(),
        };
        let months = before.months.iter().map(|(name, it)| (name.to_string(), month(it)));
        Self { is_new: before.is_new, months: months.collect() }
    }
}

impl TryFrom<KeptBefore> for Before {
    type Error = anyhow::Error;

    fn try_from(kept: KeptBefore) -> anyhow::Result<Self> {
        let mut before = Self { is_new: kept.is_new, ..Self::default() };
        for (month, KeptMonth { days, metrics }) in kept.months {
            let mut of_month = OfMonth { days: days.into_iter().collect(), ..OfMonth::default() };
            for (name, (count, sum)) in metrics {
                let sum = Exact::parse(&sum).context("a sum is no number")?;
                of_month.metrics.insert(name.parse()?, Totals { count, sum });
            }
            before.months.insert(month.parse()?, of_month);
        }
        Ok(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_is_known_again_and_a_torn_line_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("before");
        let (mut kept, earlier) = Kept::open(path.clone(), false).unwrap();
        assert!(earlier.unwrap().devices.is_empty());
        let totals = Totals { count: 3, sum: Exact::parse("0.30").unwrap() };
        let of_month =
            OfMonth { metrics: [("t".parse().unwrap(), totals)].into(), days: [1, 31].into() };
        let before =
            Before { is_new: false, months: [("2026-01".parse().unwrap(), of_month)].into() };
        kept.add_device(&"d".parse().unwrap(), Some(&before)).unwrap();
        kept.add_device(&"e".parse().unwrap(), None).unwrap();
        kept.add_room(&"hall".parse().unwrap(), true).unwrap();
        kept.add_report("stopped".into()).unwrap();
        kept.file.write_all(b"{\"device\":\"f\",\"bef").unwrap();
        let (kept, earlier) = Kept::open(path.clone(), true).unwrap();
        let earlier = earlier.unwrap();
        assert_eq!(earlier.devices[&"d".parse().unwrap()], Some(before));
        assert_eq!(earlier.devices[&"e".parse().unwrap()], None);
        assert_eq!((earlier.devices.len(), earlier.rooms.len()), (2, 1));
        assert_eq!(earlier.reports, [PathBuf::from("stopped")]);
        kept.finish();
        assert!(!path.exists());
        let (_, earlier) = Kept::open(path.clone(), true).unwrap();
        assert!(earlier.is_none(), "nobody knows what was there");
        let (_, earlier) = Kept::open(path, false).unwrap();
        assert!(earlier.is_some());
    }
}
