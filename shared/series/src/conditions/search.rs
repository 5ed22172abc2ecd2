//! A search for episodes: its conditions and its range. Parses no request.

use domain::{Condition, MetricName, TimeRange};

/// A search for episodes.
#[derive(Debug)]
pub struct EpisodeSearch {
    /// The conditions: at least one, and at most one for each metric.
    pub conditions: Vec<Condition>,
    /// The range to search, in whole quarters of an hour.
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
