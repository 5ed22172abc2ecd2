//! The progress of a command that walks over devices and their time, kept in a file until it is complete. Visits no
//! device itself.

use std::cmp::Ordering;
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use domain::{DeviceId, Timestamp};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::progress_file::{self, HeldProgress};

/// The options of a command that continues where it was interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct ProgressArgs {
    /// The file that keeps the progress, instead of one in the data directory or, for a deployed table, in the
    /// current directory
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Start at the beginning even if the command was interrupted
    #[arg(long)]
    pub(crate) again: bool,
}

/// A command on a table, and the file of its progress. Progress on another table does not count.
#[derive(Debug)]
pub(crate) struct RunScope {
    pub(crate) path: PathBuf,
    pub(crate) table: String,
    /// Whether earlier progress is given up.
    pub(crate) again: bool,
}

/// The progress of a command, with its findings so far.
#[derive(Debug)]
pub(crate) struct ProgressFile<T> {
    path: PathBuf,
    /// Keeps other commands from the file.
    _lock: HeldProgress,
    state: State<T>,
}

#[derive(Debug, Serialize, Deserialize)]
struct State<T> {
    /// The command and its table, for people.
    of: String,
    /// Identifies the command, with its options and its table. Only the same command continues.
    asked: String,
    /// The start of the first run, in milliseconds; relative times are counted from there.
    began: i64,
    /// The current device, and the time in milliseconds up to which it is done.
    under_way: Option<(String, i64)>,
    found: T,
}

impl<T: Default + Serialize + DeserializeOwned> ProgressFile<T> {
    /// Reads the progress of the same command, if one was interrupted. Fails if the file has the progress of another
    /// command or table, or with other options, and leaves that unchanged.
    pub(crate) fn open(
        command: &str,
        scope: &RunScope,
        asked: &str,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let RunScope { path, table, again } = scope;
        progress_file::ensure_ours::<State<IgnoredAny>>(path)?;
        let lock = HeldProgress::take(path)?;
        let kept = if *again { Vec::new() } else { fs::read(path).unwrap_or_default() };

        let (of, asked) = (format!("{command} of {table}"), format!("{asked} in {table}"));
        if let Ok(state) = serde_json::from_slice::<State<IgnoredAny>>(&kept) {
            let is_other = state.of == of && state.asked != asked;
            let kept = state.of + if is_other { " with other options" } else { "" };
            progress_file::ensure_same(path, Some(&kept), &of)?;
        }

        let state = serde_json::from_slice(&kept).unwrap_or_else(|_| {
            let (began, under_way, found) = (now.as_millis(), None, T::default());
            State { of, asked, began, under_way, found }
        });
        Ok(Self { path: path.clone(), _lock: lock, state })
    }

    /// Returns the time up to which a device is done; `None` if the command has not reached it. Devices are visited in
    /// the order of their ids.
    pub(crate) fn done_until(&self, device: &DeviceId) -> Option<Timestamp> {
        let (under_way, until) = self.state.under_way.as_ref()?;
        match device.as_str().cmp(under_way) {
            Ordering::Less => Some(Timestamp::MAX),
            Ordering::Equal => Timestamp::from_millis(*until).ok(),
            Ordering::Greater => None,
        }
    }

    /// Returns the start of the command's first run.
    pub(crate) fn began(&self) -> anyhow::Result<Timestamp> {
        Ok(Timestamp::from_millis(self.state.began)?)
    }

    /// Returns whether an earlier command is continued.
    pub(crate) const fn continues(&self) -> bool {
        self.state.under_way.is_some()
    }

    /// The findings so far.
    pub(crate) const fn found(&mut self) -> &mut T {
        &mut self.state.found
    }

    /// Saves that a device is done up to a time, and that all devices before it are done.
    pub(crate) fn save(&mut self, device: &DeviceId, until: Timestamp) -> anyhow::Result<()> {
        self.state.under_way = Some((device.to_string(), until.as_millis()));
        progress_file::replace(&self.path, &serde_json::to_vec(&self.state)?)
            .with_context(|| progress_file::cannot_write(&self.path))
    }

    /// Removes the file, because the command is complete. Returns the findings.
    pub(crate) fn finish(self) -> T {
        // If the file cannot be removed, the next command finds everything done; --again starts over.
        drop(fs::remove_file(&self.path));
        self.state.found
    }
}
