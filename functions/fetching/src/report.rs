//! What became of the runs of one minute, for the log. Decides nothing.

use domain::PolledSourceId;

/// What became of a run, or of several.
#[derive(Debug, Default)]
pub(crate) struct SourceRun {
    /// The sources that were asked.
    pub(crate) asked: usize,
    /// The requests to makers.
    pub(crate) requests: usize,
    /// The readings that ingest took.
    pub(crate) accepted: usize,
    /// The ids of sources that fail or are limited.
    pub(crate) failing: Vec<String>,
    /// What failed here and not at a maker.
    pub(crate) failures: Vec<String>,
}

impl SourceRun {
    /// A run that failed here and not at a maker.
    pub(crate) fn failed(id: &PolledSourceId, why: &str) -> Self {
        Self { failures: vec![format!("{id}: {why}")], ..Self::default() }
    }

    /// Adds another run.
    pub(crate) fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.requests += other.requests;
        self.accepted += other.accepted;
        self.failing.extend(other.failing);
        self.failures.extend(other.failures);
    }
}
