//! Finds the devices that have fallen silent, for the rules to which that matters. Reads the newest reading of a device
//! when it could be silent, and writes nothing where it is not.

use std::collections::BTreeSet;

use alerts::{MAX_AHEAD, MAX_UNJUDGED, NoData, Rule, Subject, Watch};
use chrono::TimeDelta;
use domain::{DeviceId, Order, TimeRange, Timestamp};
use series::Failure;
use table::{AlertKey, Invocation, QueryReadings, RangeQuery};

use crate::case::Case;
use crate::judged::{Judged, check_time};
use crate::judging::Judging;
use crate::ports::Store;
use crate::rules::subjects_of;

impl Judging {
    /// Judges the rules about silence, and those that fire without data, on each device that could be silent by now.
    pub async fn judge_silence(
        &self,
        store: &impl Store,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Judged, Failure> {
        let mut judged = Judged::default();
        let rules = self.rules(store, now, invocation).await?;
        let about: Vec<_> = rules.rules.iter().filter(|it| fires_of_silence(&it.rule)).collect();
        if about.is_empty() {
            return Ok(judged);
        }
        let devices = self.devices(store, now, invocation).await?;
        let mut keys = BTreeSet::new();
        for rule in about {
            for subject in subjects_of(&rule.rule, devices.iter()) {
                let key = AlertKey { rule: rule.id.clone(), subject };
                keys.insert(key.clone());
                let Subject::Device(device) = &key.subject else { continue };
                if !self.questions.is_due(&key, now) {
                    continue;
                }
                if check_time(invocation).is_err() {
                    return Ok(judged);
                }
                let asked = self.silent_from(store, (&rule.rule, device), now, invocation).await;
                let next = match asked {
                    // Nobody has heard of it yet.
                    Ok(None) => now.saturating_add(MAX_UNJUDGED),
                    Ok(Some(at)) if at > now => at,
                    Ok(Some(_)) => {
                        let case = Case { rule, subject: &key.subject, touched: None };
                        let result = self.judge(store, &rules, case, now, invocation).await;
                        let has_failed = result.is_err();
                        judged.add(key.clone(), result);
                        if has_failed {
                            continue;
                        }
                        now.saturating_add(MAX_UNJUDGED)
                    }
                    Err(failure) => {
                        judged.add(key, Err(failure));
                        continue;
                    }
                };
                self.questions.set(&key, next);
            }
        }
        self.questions.keep(&keys);
        Ok(judged)
    }

    /// When a device is silent if nothing more comes; `None` if nothing ever came.
    async fn silent_from(
        &self,
        store: &impl Store,
        (rule, device): (&Rule, &DeviceId),
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Option<Timestamp>, Failure> {
        let Some(newest) = newest_reading(store, device, now, invocation).await? else {
            return Ok(None);
        };
        let limit = match &rule.watch {
            Watch::Silence { after: Some(after) } => *after,
            _ => self.limits.of(store, device, now, invocation).await?,
        };
        Ok(Some(newest.saturating_add(limit)))
    }
}

/// Whether silence is a breach to a rule.
fn fires_of_silence(rule: &Rule) -> bool {
    let is_breach = match rule.watch {
        Watch::Silence { .. } => true,
        Watch::Metric { .. } => rule.no_data == NoData::Fire,
        Watch::Budget { .. } | Watch::Demand { .. } | Watch::Counter { .. } => false,
    };
    rule.is_on && is_breach
}

/// The newest reading of a device that is not ahead of the clock.
async fn newest_reading(
    store: &impl QueryReadings,
    device: &DeviceId,
    now: Timestamp,
    invocation: &Invocation,
) -> Result<Option<Timestamp>, Failure> {
    let end = now.saturating_add(MAX_AHEAD + TimeDelta::milliseconds(1));
    let Ok(range) = TimeRange::new(Timestamp::MIN, end) else { return Ok(None) };
    let query =
        RangeQuery { range, order: Order::Descending, after: None, limit: 1, consistent: false };
    let page = store.device_readings(device, &query, invocation).await?;
    Ok(page.readings.first().map(|reading| reading.at))
}
