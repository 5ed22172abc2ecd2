//! The options that choose a command's rollups, and those for continuing an interrupted command.

use anyhow::Context as _;
use domain::{DeviceId, TimeRange, Timestamp};

use crate::kept_progress::ProgressArgs;

/// The rollups that are meant, and how an interrupted command continues.
#[derive(Debug, clap::Args)]
pub(super) struct RollupScope {
    /// Only this device; repeat it for several
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(super) device: Vec<DeviceId>,
    /// The start of the range, such as 2026-01-01T00:00:00Z or -30d; the 15 minutes around it are included
    #[arg(long, value_name = "TIMESTAMP", allow_hyphen_values = true)]
    pub(super) from: Option<String>,
    /// The end of the range; the 15 minutes around it are included
    #[arg(long, value_name = "TIMESTAMP", allow_hyphen_values = true)]
    pub(super) to: Option<String>,
    #[command(flatten)]
    pub(super) progress: ProgressArgs,
}

impl RollupScope {
    /// Returns whether the scope includes all rollups.
    pub(super) const fn is_everything(&self) -> bool {
        self.device.is_empty() && self.from.is_none() && self.to.is_none()
    }

    /// The options of a command as a text, with `more`. Relative times stay as they were written, because their instant
    /// differs in each run.
    pub(super) fn asked(&self, more: &str) -> String {
        let Self { device, from, to, .. } = self;
        format!("{device:?} {from:?} {to:?} {more}")
    }

    /// The range; it ends now by default. Relative times are counted from the start of the command's first run. Called
    /// once per command, so that all of its work has the same range.
    pub(super) fn range(&self, began: Timestamp, now: Timestamp) -> anyhow::Result<TimeRange> {
        let parse = |text: &Option<String>, name, default| match text {
            Some(text) => Timestamp::parse(text, began).context(name),
            None => Ok(default),
        };
        let from = parse(&self.from, "--from", Timestamp::MIN)?;
        TimeRange::new(from, parse(&self.to, "--to", now)?).context("--from")
    }
}
