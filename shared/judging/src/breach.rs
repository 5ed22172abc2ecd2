//! Whether a sealed quarter of an hour asks for a recheck: its extremes are in breach of a rule. Judges nothing.

use std::sync::Arc;

use alerts::{Scope, Watch};
use chrono::TimeDelta;
use domain::{Device, DeviceId, OfKind, Rollup};
use table::{ReadAlertRules, Remembered, Session, StoreResult, StoredRule};

use crate::counter::flags_of;
use crate::rules::is_about;

/// How long rules are used.
const MAX_AGE: TimeDelta = TimeDelta::minutes(1);

/// The rules by which a process that seals quarters leaves rechecks.
#[derive(Debug, Default)]
pub struct SealedBreaches(Remembered<Vec<StoredRule>>);

/// The rules that sealed quarters may be in breach of.
#[derive(Debug, Clone)]
pub struct Breaches(Arc<Vec<StoredRule>>);

impl SealedBreaches {
    /// The rules that are on, at most a minute old.
    pub async fn rules(&self, session: Session<'_, impl ReadAlertRules>) -> StoreResult<Breaches> {
        if let Some(rules) = self.0.get(session.now, |_| MAX_AGE) {
            return Ok(Breaches(rules));
        }
        let rules = session.alert_rules().await?.found.into_iter();
        Ok(Breaches(self.0.keep(rules.filter(|rule| rule.rule.is_on).collect(), session.now)))
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
