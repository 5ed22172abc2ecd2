//! The results of a minute's runs, for the log. Decides nothing.

use domain::PolledSourceId;

/// The result of one run, or of several.
#[derive(Debug, Default)]
pub(crate) struct SourceRun {
    /// The number of sources that were run.
    pub(crate) asked: usize,
    /// The number of requests to makers.
    pub(crate) requests: usize,
    /// The number of readings that ingest took.
    pub(crate) accepted: usize,
    /// The ids of sources that fail or are limited.
    pub(crate) failing: Vec<String>,
    /// Errors that happened here and not at a maker.
    pub(crate) failures: Vec<String>,
}

impl SourceRun {
    /// The result of a run that failed here and not at a maker.
    pub(crate) fn failed(id: &PolledSourceId, why: &str) -> Self {
        Self { failures: vec![format!("{id}: {why}")], ..Self::default() }
    }

    /// Adds the result of another run.
    pub(crate) fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.requests += other.requests;
        self.accepted += other.accepted;
        self.failing.extend(other.failing);
        self.failures.extend(other.failures);
    }
}
