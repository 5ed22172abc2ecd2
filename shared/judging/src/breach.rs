//! Decides by the extremes of a quarter of an hour whether a device is to be judged again. Judges no rule.

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
/// The greatest age of rules while the table throttles reading them again. Rollups are made every 15 minutes.
const MAX_LAST_AGE: TimeDelta = TimeDelta::hours(1);
/// The longest wait while the table throttles the rules. No rollup is folded during the wait.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The rules that a process remembers while it makes rollups. These rules decide which devices are judged again.
#[derive(Debug, Default)]
pub struct SealedBreaches(Remembered<Vec<StoredRule>>);

/// The active rules, which the extremes of a quarter of an hour, or the steps of a counter in it, may break.
#[derive(Debug, Clone)]
pub struct Breaches(Arc<Vec<StoredRule>>);

impl SealedBreaches {
    /// The active rules, as they were read at most a minute ago; while the table throttles the read, at most an hour
    /// ago.
    pub async fn rules(&self, session: Session<'_, impl ReadAlertRules>) -> StoreResult<Breaches> {
        if let Some(rules) = self.0.get(session.now, |_| MAX_AGE) {
            return Ok(Breaches(rules));
        }

        let part = session.invocation.with_patience(MAX_WAIT);
        match session.within(&part).alert_rules().await {
            Ok(rules) => {
                let rules = rules.found.into_iter().filter(|rule| rule.definition.is_on);
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

    /// Whether a quarter of a device may break a rule. The device is assumed to belong to the group of every rule.
    pub fn may_have(&self, id: &DeviceId, quarter: &Rollup) -> bool {
        self.is_breached(quarter, |scope| match scope {
            Scope::Device(named) => named == id,
            Scope::Each(_) => true,
            Scope::RoomMean(_) => false,
        })
    }

    /// Whether a quarter breaks a rule on the device. This finds breaches whose stream batch was lost, and breaches of
    /// rules on many devices, which batches leave out.
    pub fn has(&self, device: &Device, quarter: &Rollup) -> bool {
        self.is_breached(quarter, |scope| is_about(scope, device.id(), Some(device)))
    }

    fn is_breached(&self, quarter: &Rollup, is_about: impl Fn(&Scope) -> bool) -> bool {
        let mut rules = self.0.iter().map(|stored| &stored.definition);
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
