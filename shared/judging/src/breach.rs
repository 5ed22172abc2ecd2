//! Whether a sealed quarter of an hour asks for a look: its extremes are in breach of a rule. Judges nothing.

use alerts::{Limits, Watch};
use domain::{Device, MetricRollup, OfKind, Rollup};

use crate::counter::is_told;
use crate::rules::Rules;

/// Whether a rule that is about a device may have an episode in a quarter of it: a value is beyond its limits, or a
/// step of a counter is one that it tells. Batches are judged promptly, so this finds what a lost one had, and what
/// rules on many devices are about.
#[must_use]
pub fn asks_for_look(rules: &Rules, device: &Device, quarter: &Rollup) -> bool {
    rules.of(device.id(), Some(device)).any(|it| match &it.rule.watch {
        Watch::Metric { metric, limits } => {
            quarter.metrics.get(metric).is_some_and(|metric| is_beyond(limits, metric))
        }
        Watch::Counter { metric, events } => {
            quarter.metrics.get(metric).is_some_and(|metric| match &metric.of_kind {
                OfKind::Counter { flags, .. } => {
                    flags.iter().any(|flag| is_told(flag.as_str(), events))
                }
                OfKind::Gauge | OfKind::Power { .. } => false,
            })
        }
        Watch::Silence { .. } | Watch::Budget { .. } | Watch::Demand { .. } => false,
    })
}

/// Whether an extreme is beyond a limit.
pub(crate) fn is_beyond(limits: &Limits, metric: &MetricRollup) -> bool {
    limits.above().is_some_and(|edge| metric.max > edge.limit)
        || limits.below().is_some_and(|edge| metric.min < edge.limit)
}
