//! Decides whether a sealed quarter of an hour needs a recheck, because its extremes break a rule. Judges no rule.

use std::sync::Arc;
use std::time::Duration;

use alerts::{Scope, Watch};
use chrono::TimeDelta;
use domain::{Device, DeviceId, OfKind, Rollup};
use table::{ReadAlertRules, Remembered, Session, StoreResult, StoredRule};

use crate::counter::flags_of;
use crate::rules::is_about;

/// How long rules are used before they are read again.
const MAX_AGE: TimeDelta = TimeDelta::minutes(1);
/// How long the last rules are used while the table throttles newer ones: sweeps are a quarter of an hour apart.
const MAX_LAST_AGE: TimeDelta = TimeDelta::hours(1);
/// The longest wait for throttled rules: no rollup is folded meanwhile.
const MAX_ASKING: Duration = Duration::from_secs(10);

/// The remembered rules of a process that seals quarters, by which it decides on rechecks.
#[derive(Debug, Default)]
pub struct SealedBreaches(Remembered<Vec<StoredRule>>);

/// The active rules that a sealed quarter may break.
#[derive(Debug, Clone)]
pub struct Breaches(Arc<Vec<StoredRule>>);

impl SealedBreaches {
    /// The active rules, at most a minute old. While the table throttles them, at most an hour old.
    pub async fn rules(&self, session: Session<'_, impl ReadAlertRules>) -> StoreResult<Breaches> {
        if let Some(rules) = self.0.get(session.now, |_| MAX_AGE) {
            return Ok(Breaches(rules));
        }

        let part = session.invocation.with_patience(MAX_ASKING);
        match session.within(&part).alert_rules().await {
            Ok(rules) => {
                let rules = rules.found.into_iter().filter(|rule| rule.rule.is_on);
                Ok(Breaches(self.0.keep(rules.collect(), session.now)))
            }
            Err(error) if error.is_retryable() => {
                self.0.get(session.now, |_| MAX_LAST_AGE).map(Breaches).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }
}

impl Breaches {
    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a quarter of a device may break a rule. The device's groups are not checked: each rule on a group
    /// counts.
    pub fn may_have(&self, id: &DeviceId, quarter: &Rollup) -> bool {
        self.is_breached(quarter, |scope| match scope {
            Scope::Device(named) => named == id,
            Scope::Each(_) => true,
            Scope::RoomMean(_) => false,
        })
    }

    /// Whether a quarter breaks a rule on the device. Finds readings of lost batches, and serves rules on many devices.
    pub fn has(&self, device: &Device, quarter: &Rollup) -> bool {
        self.is_breached(quarter, |scope| is_about(scope, device.id(), Some(device)))
    }

    fn is_breached(&self, quarter: &Rollup, is_about: impl Fn(&Scope) -> bool) -> bool {
        let mut rules = self.0.iter().map(|stored| &stored.rule);
        rules.any(|rule| is_about(&rule.scope) && is_in_breach(&rule.watch, quarter))
    }
}

fn is_in_breach(watch: &Watch, quarter: &Rollup) -> bool {
    match watch {
        Watch::Metric { metric, limits } => {
            let metric = quarter.metrics.get(metric);
            metric.is_some_and(|metric| limits.are_passed(&metric.min, &metric.max))
        }
        Watch::Counter { metric, events } => {
            quarter.metrics.get(metric).is_some_and(|metric| match &metric.of_kind {
                OfKind::Counter { flags, .. } => !flags.intersection(flags_of(events)).is_empty(),
                OfKind::Gauge | OfKind::Power { .. } => false,
            })
        }
        Watch::Silence { .. } | Watch::Budget { .. } | Watch::Demand { .. } => false,
    }
}
