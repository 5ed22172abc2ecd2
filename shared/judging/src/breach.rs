//! Whether a sealed quarter of an hour asks for a recheck: its extremes are in breach of a rule. Judges nothing.

use std::sync::Arc;
use std::time::Duration;

use alerts::{Scope, Watch};
use chrono::TimeDelta;
use domain::{Device, DeviceId, OfKind, Rollup};
use table::{ReadAlertRules, Remembered, Session, StoreResult, StoredRule};

use crate::counter::flags_of;
use crate::rules::is_about;

/// How long rules are used.
const MAX_AGE: TimeDelta = TimeDelta::minutes(1);
/// How long the last rules are used while the table throttles them: sweeps are a quarter of an hour apart.
const MAX_LAST_AGE: TimeDelta = TimeDelta::hours(1);
/// The time that throttled rules have: no rollup is folded meanwhile.
const MAX_ASKING: Duration = Duration::from_secs(10);

/// The rules by which a process that seals quarters leaves rechecks.
#[derive(Debug, Default)]
pub struct SealedBreaches(Remembered<Vec<StoredRule>>);

/// The rules that sealed quarters may be in breach of.
#[derive(Debug, Clone)]
pub struct Breaches(Arc<Vec<StoredRule>>);

impl SealedBreaches {
    /// The rules that are on, at most a minute old; while the table throttles them, at most an hour old.
    pub async fn rules(&self, session: Session<'_, impl ReadAlertRules>) -> StoreResult<Breaches> {
        if let Some(rules) = self.0.get(session.now, |_| MAX_AGE) {
            return Ok(Breaches(rules));
        }

        let part = session.invocation.patient_for(MAX_ASKING);
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

    /// Whether a quarter of a device is in breach of a rule that may be about it: which group the device is in is not
    /// asked.
    pub fn may_have(&self, id: &DeviceId, quarter: &Rollup) -> bool {
        self.is_breached(quarter, |scope| match scope {
            Scope::Device(named) => named == id,
            Scope::Each(_) => true,
            Scope::RoomMean(_) => false,
        })
    }

    /// Whether the quarter breaks a rule on the device. Finds what a lost batch held, and serves rules on many devices.
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
