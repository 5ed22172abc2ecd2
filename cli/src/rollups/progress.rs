//! The progress of a walk over devices and days, kept in a file until the walk is complete. Visits no day itself.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use domain::{DeviceId, Timestamp};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::scope::Scope;
use crate::place::ProgressFile;
use crate::progress_file::{self, HeldProgress};

/// The progress of a walk, with its findings so far.
#[derive(Debug)]
pub(super) struct Progress<T> {
    path: PathBuf,
    /// Keeps other commands from the file.
    _lock: HeldProgress,
    state: State<T>,
}

#[derive(Debug, Serialize, Deserialize)]
struct State<T> {
    /// The command and its table, for people. Absent in a file of an earlier version.
    #[serde(default)]
    of: Option<String>,
    /// Identifies the command, with its options and its table. Only the same command continues the walk.
    asked: String,
    /// The start of the first run, in milliseconds; relative times are counted from there. Absent in a file of an
    /// earlier version.
    #[serde(default)]
    began: Option<i64>,
    /// The current device, and the time in milliseconds up to which it is done.
    under_way: Option<(DeviceText, i64)>,
    found: T,
}

type DeviceText = String;

impl<T: Default + Serialize + DeserializeOwned> Progress<T> {
    /// Reads the progress of the same command, if one was interrupted. Fails if the file has the progress of another
    /// command or table, and leaves that unchanged.
    pub(super) fn of(
        command: &str,
        scope: &Scope,
        file: &ProgressFile,
        more: &str,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let ProgressFile { path, table } = file;
        progress_file::ensure_ours::<State<IgnoredAny>>(path)?;
        let lock = HeldProgress::take(path)?;
        let kept = if scope.again { Vec::new() } else { fs::read(path).unwrap_or_default() };

        let of = format!("{command} of {table}");
        if let Ok(state) = serde_json::from_slice::<State<IgnoredAny>>(&kept) {
            progress_file::ensure_same(path, state.of.as_deref(), &of)?;
        }

        let Scope { device, from, to, .. } = scope;
        let asked = format!("{device:?} {from:?} {to:?} {more} in {table}");
        let earlier = serde_json::from_slice::<State<T>>(&kept).ok();
        let earlier = earlier.filter(|state| state.asked == asked);
        let found = T::default();
        let new = State { of: None, asked, began: None, under_way: None, found };
        let state = earlier.unwrap_or(new);
        let began = state.began.unwrap_or(now.as_millis());
        let state = State { of: Some(of), began: Some(began), ..state };
        Ok(Self { path: path.clone(), _lock: lock, state })
    }

    /// Returns the time up to which a device is done; `None` if the walk has not reached it. Devices are visited in the
    /// order of their ids.
    pub(super) fn done_until(&self, device: &DeviceId) -> Option<Timestamp> {
        let (under_way, until) = self.state.under_way.as_ref()?;
        match device.as_str().cmp(under_way) {
            std::cmp::Ordering::Less => Some(Timestamp::MAX),
            std::cmp::Ordering::Equal => Timestamp::from_millis(*until).ok(),
            std::cmp::Ordering::Greater => None,
        }
    }

    /// Returns the start of the command's first run.
    pub(super) fn began(&self) -> anyhow::Result<Timestamp> {
        let began = self.state.began.context("the progress does not tell when it began")?;
        Ok(Timestamp::from_millis(began)?)
    }

    /// Returns whether an earlier command is continued.
    pub(super) const fn continues(&self) -> bool {
        self.state.under_way.is_some()
    }

    /// The findings so far.
    pub(super) const fn found(&mut self) -> &mut T {
        &mut self.state.found
    }

    /// Saves that a device is done up to a time, and all devices before it are done.
    pub(super) fn save(&mut self, device: &DeviceId, until: Timestamp) -> anyhow::Result<()> {
        self.state.under_way = Some((device.to_string(), until.as_millis()));
        progress_file::replace(&self.path, &serde_json::to_vec(&self.state)?)
            .with_context(|| progress_file::cannot_write(&self.path))
    }

    /// Removes the file, because the command is complete. Returns the findings.
    pub(super) fn finish(self) -> T {
        // If the file cannot be removed, the next command finds everything done; --again starts over.
        drop(fs::remove_file(&self.path));
        self.state.found
    }
}
