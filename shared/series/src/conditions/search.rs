//! The conditions that are asked for, and when. Parses no request.

use domain::{Condition, MetricName, TimeRange};

/// What episodes are asked for.
#[derive(Debug)]
pub struct EpisodeSearch {
    /// At least one; no metric twice.
    pub conditions: Vec<Condition>,
    /// Whole quarters of an hour.
    pub range: TimeRange,
    /// Whether readings refine the episodes.
    pub is_exact: bool,
}

impl EpisodeSearch {
    /// The metrics of the conditions.
    pub fn names(&self) -> Vec<MetricName> {
        self.conditions.iter().map(|condition| condition.metric.clone()).collect()
    }
}
