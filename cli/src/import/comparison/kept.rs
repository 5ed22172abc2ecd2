//! The state of devices before an import, kept in a file beside the import's progress. A later run of the import cannot
//! find that state in the table any more. Asks no server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use domain::{DeviceId, Exact, RoomId, Timestamp};
use local::private;
use serde::{Deserialize, Serialize};

use super::known::{Before, OfMonth};
use super::tally::Totals;
use crate::progress_file;

/// A line of the file, as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Import(Import),
    Device { device: String, before: Option<KeptBefore> },
    Room { room: String, is_new: bool },
    Report { report: PathBuf },
    Refused { refused: String },
}

/// The identity of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::import) struct Import {
    /// Identifies the content of the source, and the options.
    pub(in crate::import) asked: String,
    /// The source and the target. Absent in a file of an earlier version.
    #[serde(default)]
    pub(in crate::import) of: Option<String>,
    /// The start of the first run, in milliseconds.
    #[serde(default)]
    pub(in crate::import) began: i64,
    /// Whether the source or an option has changed since the first run.
    #[serde(default)]
    pub(in crate::import) has_changed: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptBefore {
    is_new: bool,
    months: BTreeMap<String, KeptMonth>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptMonth {
    days: Vec<u8>,
    /// For each metric, the count and the sum.
    metrics: BTreeMap<String, (i64, String)>,
}

/// The file's content: the state before the import, and the refusals and reports of its earlier runs.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// What each device had before the import; `None` if the server could not tell.
    pub(super) devices: BTreeMap<DeviceId, Option<Before>>,
    /// For each room of the import, whether it is new.
    pub(super) rooms: BTreeMap<RoomId, bool>,
    /// The reports of earlier runs that stopped.
    pub(super) reports: Vec<PathBuf>,
    /// The readings that the server refused, as JSON. A later run reads them again.
    pub(super) refused: BTreeSet<String>,
    /// The start of the import's first run, if the source has changed since then. Readings from this time on
    /// are not taken back, because others may have written them.
    pub(super) since: Option<Timestamp>,
}

impl Earlier {
    /// Returns whether the file has no content beside the import's identity.
    pub(super) fn is_nothing(&self) -> bool {
        let Self { devices, rooms, reports, refused, since: _ } = self;
        devices.is_empty() && rooms.is_empty() && reports.is_empty() && refused.is_empty()
    }
}

/// Where a run continues an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::import) enum GoesOn<'a> {
    /// The import begins. The file of a run that was killed before it saved any progress is used, even if the source
    /// has changed since. `None` if the import starts over.
    No(Option<&'a Import>),
    /// The import continues, and reads all of the source again.
    Read,
}

/// The open file.
pub(super) struct Kept {
    path: PathBuf,
    file: File,
}

impl Kept {
    /// Opens the file of an import that continues, or begins a new file. Returns the file with its content; the content
    /// is `None` if an import continues but its file is lost.
    pub(super) fn open(
        path: PathBuf,
        goes_on: GoesOn<'_>,
    ) -> anyhow::Result<(Self, Option<Earlier>)> {
        progress_file::ensure_ours::<Line>(&path)?;
        let context = || progress_file::cannot_write(&path);
        let (earlier, lines) = match (goes_on, read(&path, goes_on)) {
            (_, Some((earlier, lines))) => (Some(earlier), lines),
            (GoesOn::No(asked), None) => {
                // The first line marks the file as ours, even if a crash cuts off the second.
                let import = asked.cloned().unwrap_or_default();
                (Some(Earlier::default()), vec![line(&Line::Import(import))?])
            }
            (_, None) => (None, Vec::new()),
        };
        // Drops a line that a crash cut off.
        progress_file::replace(&path, lines.concat().as_bytes()).with_context(context)?;
        let file = private::options().append(true).open(&path).with_context(context)?;
        Ok((Self { path, file }, earlier))
    }

    pub(super) fn add_device(
        &mut self,
        device: &DeviceId,
        before: Option<&Before>,
    ) -> anyhow::Result<()> {
        self.add(&Line::Device { device: device.to_string(), before: before.map(Into::into) })
    }

    pub(super) fn add_room(&mut self, room: &RoomId, is_new: bool) -> anyhow::Result<()> {
        self.add(&Line::Room { room: room.to_string(), is_new })
    }

    /// Adds the report of a stopped run.
    pub(super) fn add_report(&mut self, report: PathBuf) -> anyhow::Result<()> {
        self.add(&Line::Report { report })
    }

    /// Adds a reading that the server refused. Called before the progress is saved.
    pub(super) fn add_refused(&mut self, refused: String) -> anyhow::Result<()> {
        self.add(&Line::Refused { refused })
    }

    fn add(&mut self, added: &Line) -> anyhow::Result<()> {
        let context = || format!("cannot write {}", self.path.display());
        self.file.write_all(line(added)?.as_bytes()).with_context(context)
    }

    /// Returns the file's name, for the caller who removes it later.
    pub(super) fn into_path(self) -> PathBuf {
        self.path
    }

    /// Removes the file, because the import is complete.
    pub(super) fn finish(self) {
        // If the file cannot be removed, the next import overwrites it.
        drop(fs::remove_file(self.path));
    }
}

/// A line of the file as text.
fn line(line: &Line) -> serde_json::Result<String> {
    Ok(serde_json::to_string(line)? + "\n")
}

/// The content of a file, and its lines. If a crash cut off the line of a device, the server is asked about that device
/// again.
fn read(path: &Path, goes_on: GoesOn<'_>) -> Option<(Earlier, Vec<String>)> {
    let text = fs::read_to_string(path).ok()?;
    let parsed = |text: &str| Some((format!("{text}\n"), serde_json::from_str(text).ok()?));
    let mut lines: Vec<(String, Line)> = text.lines().filter_map(parsed).collect();
    // A crash of the machine may have emptied the file. Then the earlier state is unknown.
    let Some((first, Line::Import(import))) = lines.first_mut() else { return None };
    if let GoesOn::No(wanted) = goes_on {
        let wanted = wanted?;
        if import.asked != wanted.asked {
            import.change_to(wanted)?;
            *first = line(&Line::Import(import.clone())).ok()?;
            // The changed source may not have the refused readings any more. The reports are files of their own.
            lines.retain(|(_, line)| !matches!(line, Line::Refused { .. } | Line::Report { .. }));
        }
    }
    let mut earlier = Earlier::default();
    let (texts, lines): (Vec<String>, Vec<Line>) = lines.into_iter().unzip();
    for line in lines {
        match line {
            Line::Device { device, before } => {
                let before = before.map(Before::try_from).transpose().ok()?;
                earlier.devices.insert(device.parse().ok()?, before);
            }
            Line::Room { room, is_new } => drop(earlier.rooms.insert(room.parse().ok()?, is_new)),
            Line::Report { report } => earlier.reports.push(report),
            Line::Refused { refused } => drop(earlier.refused.insert(refused)),
            Line::Import(Import { began, has_changed, .. }) => {
                let began = Timestamp::from_millis(began).ok()?;
                earlier.since = has_changed.then_some(began);
            }
        }
    }
    Some((earlier, texts))
}

impl Import {
    /// Updates the changed source or options of the same import; `None` if `wanted` is another import.
    fn change_to(&mut self, wanted: &Self) -> Option<()> {
        let is_same = self.of.is_some() && self.of == wanted.of;
        is_same.then(|| {
            self.asked.clone_from(&wanted.asked);
            self.has_changed = true;
        })
    }
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
    use domain::given::{device, exact, metric, room};

    #[test]
    fn what_was_there_is_known_again_and_a_torn_line_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("before");
        let (mut kept, earlier) = Kept::open(path.clone(), GoesOn::No(None)).unwrap();
        assert!(earlier.unwrap().devices.is_empty());
        let totals = Totals { count: 3, sum: exact("0.30") };
        let of_month = OfMonth { metrics: [(metric("t"), totals)].into(), days: [1, 31].into() };
        let before =
            Before { is_new: false, months: [("2026-01".parse().unwrap(), of_month)].into() };
        kept.add_device(&device("d"), Some(&before)).unwrap();
        kept.add_device(&device("e"), None).unwrap();
        kept.add_room(&room("hall"), true).unwrap();
        kept.add_report("stopped".into()).unwrap();
        kept.add_refused("{}".to_owned()).unwrap();
        kept.file.write_all(b"{\"device\":\"f\",\"bef").unwrap();
        let (kept, earlier) = Kept::open(path.clone(), GoesOn::Read).unwrap();
        let earlier = earlier.unwrap();
        assert_eq!(earlier.devices[&"d".parse().unwrap()], Some(before));
        assert_eq!(earlier.devices[&"e".parse().unwrap()], None);
        assert_eq!((earlier.devices.len(), earlier.rooms.len()), (2, 1));
        assert_eq!(earlier.reports, [PathBuf::from("stopped")]);
        assert_eq!(earlier.refused, ["{}".to_owned()].into());
        kept.finish();
        assert!(!path.exists());
        let (_, earlier) = Kept::open(path.clone(), GoesOn::Read).unwrap();
        assert!(earlier.is_none(), "nobody knows what was there");
        let (mut kept, earlier) = Kept::open(path.clone(), GoesOn::Read).unwrap();
        assert!(earlier.is_none(), "an empty file tells nothing");
        kept.add_device(&device("late"), None).unwrap();
        let (_, earlier) = Kept::open(path.clone(), GoesOn::Read).unwrap();
        assert!(earlier.is_none(), "nor does what was found later");
        let (_, earlier) = Kept::open(path, GoesOn::No(None)).unwrap();
        assert!(earlier.is_some());
    }

    #[test]
    fn a_run_that_was_killed_before_any_progress_leaves_what_it_found_to_the_same_import() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("before");
        let devices = |goes_on| {
            let (mut kept, earlier) = Kept::open(path.clone(), goes_on).unwrap();
            let found = earlier.unwrap().devices.len();
            kept.add_device(&device("d"), None).unwrap();
            found
        };
        let import = |asked: &str| Import { asked: asked.to_owned(), ..Import::default() };
        let (one, other) = (import("one"), import("other"));
        let (one, other) = (GoesOn::No(Some(&one)), GoesOn::No(Some(&other)));
        assert_eq!([devices(one), devices(one), devices(GoesOn::Read)], [0, 1, 1]);
        assert_eq!([devices(other), devices(other)], [0, 1], "another file or table");
        assert_eq!([devices(GoesOn::No(None)), devices(other)], [0, 0], "it started over");
    }

    #[test]
    fn what_a_killed_run_found_stays_true_when_its_source_has_changed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("before");
        let import = |of: &str, asked: &str, began| {
            let (asked, of) = (asked.to_owned(), Some(of.to_owned()));
            Import { asked, of, began, has_changed: false }
        };
        let (mut kept, _) =
            Kept::open(path.clone(), GoesOn::No(Some(&import("a", "1", 5)))).unwrap();
        kept.add_device(&device("d"), Some(&Before { is_new: true, ..Before::default() })).unwrap();
        kept.add_report("stopped".into()).unwrap();
        kept.add_refused("{}".to_owned()).unwrap();

        let changed = import("a", "2", 9);
        for goes_on in [GoesOn::No(Some(&changed)), GoesOn::No(Some(&changed)), GoesOn::Read] {
            let (_, earlier) = Kept::open(path.clone(), goes_on).unwrap();
            let Earlier { devices, reports, refused, since, .. } = earlier.unwrap();
            assert!(devices[&device("d")].as_ref().unwrap().is_new);
            assert_eq!((reports.len(), refused.len()), (0, 0));
            assert_eq!(since.unwrap().as_millis(), 5, "others may have written since");
        }
        let other = import("b", "3", 9);
        let (_, earlier) = Kept::open(path, GoesOn::No(Some(&other))).unwrap();
        assert!(earlier.unwrap().is_nothing(), "of another file or table");
    }
}
