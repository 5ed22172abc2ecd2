//! Finds the devices that have fallen silent, for the rules to which that matters. Reads the newest reading of a device
//! when it could be silent, and writes nothing where it is not.

use std::collections::BTreeMap;

use alerts::{MAX_AHEAD, MAX_UNJUDGED, NoData, Patience, Subject, Watch};
use chrono::TimeDelta;
use domain::{DeviceId, Order, RuleId, TimeRange, Timestamp};
use series::Failure;
use table::{Invocation, QueryReadings, RangeQuery, StoredRule};

use crate::case::Case;
use crate::judged::{Judged, for_one_of_several, has_time};
use crate::judging::Judging;
use crate::next_questions::Question;
use crate::outcome::Outcome;
use crate::ports::Store;
use crate::rules::Rules;

impl Judging {
    /// Judges the rules about silence, and those that fire without data, on each device that could be silent by now.
    /// Subjects without time are left to the next call. The order is drawn by lot, so that no subject waits for ever
    /// behind others that fail.
    pub async fn judge_silence(
        &self,
        store: &impl Store,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Judged, Failure> {
        let mut judged = Judged::default();
        let rules = self.rules(store, now, invocation).await?;
        if !rules.rules.iter().any(fires_of_silence) {
            return Ok(judged);
        }

        let devices = self.devices(store, now, invocation).await?;
        judged.unjudged = rules.of_unknown_devices(&devices, fires_of_silence);
        let versions: BTreeMap<&RuleId, u64> =
            rules.rules.iter().map(|rule| (&rule.id, rule.version)).collect();
        let questions = rules.keys(&devices, fires_of_silence).into_iter().filter_map(|key| {
            let version = *versions.get(&key.rule)?;
            Some(Question { key, version })
        });
        let mut due = self.questions.due(questions.collect(), now);
        fastrand::shuffle(&mut due);

        for question in due {
            let key = question.key.clone();
            let Some(rule) = rules.get(&key.rule) else { continue };
            if !has_time(invocation) {
                judged.is_cut = true;
                break;
            }
            let case = Case { rule, subject: &key.subject, touched: None };
            let asked = Box::pin(self.ask(store, &rules, case, now, invocation)).await;
            match asked {
                Ok((next, outcome)) => {
                    self.questions.set(question, next);
                    outcome.into_iter().for_each(|outcome| judged.add(key.clone(), Ok(outcome)));
                }
                Err(failure) => judged.add(key, Err(failure)),
            }
        }
        Ok(judged)
    }

    /// Asks whether a device is silent, and judges the rule on it if so. Returns when to ask again.
    async fn ask(
        &self,
        store: &impl Store,
        rules: &Rules,
        case: Case<'_>,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<(Timestamp, Option<Outcome>), Failure> {
        let later = now.saturating_add(MAX_UNJUDGED);
        // A room is judged by its mean, when that is sealed.
        let Subject::Device(device) = case.subject else { return Ok((later, None)) };

        let asking = &for_one_of_several(invocation);
        let newest = newest_reading(store, device, now, asking).await?;
        let limit = match &case.rule.rule.watch {
            Watch::Silence { after: Some(after) } => *after,
            _ => self.limits.of(store, device, now, asking).await?,
        };
        // Its first reading may come right now, and be the last one.
        let Some(newest) = newest else {
            return Ok((later.min(now.saturating_add(limit)), None));
        };

        let pauses = rules.pauses(store, now, asking).await?;
        let silent_from = Patience { limit, pauses }.ends(newest);
        if silent_from > now {
            return Ok((silent_from, None));
        }
        let outcome = self.judge(store, rules, case, now, invocation).await?;
        Ok((later, Some(outcome)))
    }
}

/// Whether silence is a breach to a rule.
fn fires_of_silence(rule: &StoredRule) -> bool {
    let rule = &rule.rule;
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
