//! Judges what a batch of the stream tells of devices. Decodes nothing, and notes no look itself.

use std::collections::BTreeMap;

use alerts::{MAX_BACK, Subject, Watch, passes};
use domain::{Device, DeviceId, QuarterHour, Reading, Timestamp};
use rollups::is_over;
use series::Failure;
use table::{AlertKey, Invocation, StoreError, StoredAlertState, StoredRule};

use crate::case::Case;
use crate::devices::Devices;
use crate::episodes::episodes_of;
use crate::judged::{Judged, has_time, may_succeed};
use crate::judging::Judging;
use crate::observed::observation;
use crate::ports::Store;
use crate::rules::Rules;

/// The readings of one device that were written, in order of time. What was deleted is looked at again by whoever
/// deleted it.
pub type Written = BTreeMap<Timestamp, Reading>;

/// What came of a batch.
#[derive(Debug, Default)]
pub struct BatchJudged {
    /// The judgements.
    pub judged: Judged,
    /// The devices that could not be judged now, each with the earliest instant that was touched: they are to be looked
    /// at again.
    pub looks: BTreeMap<DeviceId, Timestamp>,
    /// Why the rules, devices or states could not be read, if so.
    pub cause: Option<Failure>,
}

/// The devices of a batch that are judged.
type Fresh<'a> = [(&'a DeviceId, &'a Written)];

impl Judging {
    /// Judges the rules that are about the devices of a batch. Rules that wait for whole quarters of an hour are left out.
    /// So are rules on many devices, unless a reading of the batch is late.
    ///
    /// Without rules, and for devices whose newest reading of the batch is over a day old, nothing more is read. Where
    /// rules, devices or states cannot be read, all its devices are to be looked at again.
    pub async fn judge_batch(
        &self,
        store: &impl Store,
        batch: &BTreeMap<DeviceId, Written>,
        now: Timestamp,
        invocation: &Invocation,
    ) -> BatchJudged {
        let fresh: Vec<_> = batch.iter().filter(|(_, written)| !is_late(written, now)).collect();
        let mut found = BatchJudged::default();
        if fresh.is_empty() {
            return found;
        }
        if let Err(failure) = self.judge_fresh(store, &fresh, &mut found, now, invocation).await {
            let all = fresh.iter().filter_map(|(id, it)| Some(((*id).clone(), since(it)?)));
            found.looks = all.collect();
            found.cause = Some(failure);
        }
        found
    }

    async fn judge_fresh(
        &self,
        store: &impl Store,
        fresh: &Fresh<'_>,
        found: &mut BatchJudged,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<(), Failure> {
        let rules = self.rules(store, now, invocation).await?;
        let pairs = self.pairs(store, &rules, fresh, now, invocation).await?;
        let keys: Vec<AlertKey> = pairs.iter().map(|(key, ..)| key.clone()).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let listing = store.alert_states(&keys, invocation).await?;
        let damaged = listing.damaged();
        let states: BTreeMap<AlertKey, StoredAlertState> =
            listing.found.into_iter().map(|it| (it.key.clone(), it)).collect();
        for (key, rule, written) in pairs {
            // Of a damaged state the judgement says so.
            if !damaged.contains(&key) && is_passed(rule, states.get(&key), written, now) {
                continue;
            }
            let case = Case { rule, subject: &key.subject, touched: since(written) };
            let result = if has_time(invocation) {
                self.judge(store, &rules, case, now, invocation).await
            } else {
                Err(StoreError::TimedOut.into())
            };
            if let (Err(failure), Subject::Device(device)) = (&result, &key.subject)
                && may_succeed(failure)
            {
                found.looks.extend(since(written).map(|since| (device.clone(), since)));
            }
            found.judged.add(key, result);
        }
        Ok(())
    }

    /// Each rule with each device of a batch that it is about, where batches are judged by it.
    async fn pairs<'a>(
        &self,
        store: &impl Store,
        rules: &'a Rules,
        fresh: &Fresh<'a>,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Vec<(AlertKey, &'a StoredRule, &'a Written)>, Failure> {
        let mut pairs = Vec::new();
        if !rules.has_groups() {
            for (id, written) in fresh {
                let about = rules.of(id, None).filter(|it| is_of_batches(&it.rule.watch));
                pairs.extend(about.map(|rule| (key_of(rule, id), rule, *written)));
            }
            return Ok(pairs);
        }
        let known = self.devices(store, now, invocation).await?;
        let new = missing(store, &known, fresh, now, invocation).await?;
        let mut is_prompt: BTreeMap<&str, bool> = BTreeMap::new();
        for (id, written) in fresh {
            let device = known.get(id).or_else(|| new.get(*id));
            let is_old = may_be_sealed(written, now);
            for rule in rules.of(id, device).filter(|it| is_of_batches(&it.rule.watch)) {
                let is_prompt = is_prompt.entry(rule.id.as_str());
                if is_old && matches!(rule.rule.watch, Watch::Metric { .. })
                    || *is_prompt.or_insert_with(|| known.is_prompt(&rule.rule))
                {
                    pairs.push((key_of(rule, id), rule, *written));
                }
            }
        }
        Ok(pairs)
    }
}

fn key_of(rule: &StoredRule, device: &DeviceId) -> AlertKey {
    AlertKey { rule: rule.id.clone(), subject: Subject::Device(device.clone()) }
}

/// The devices of a batch that the list lacks: they may be new. Where the list has no device, because there are too
/// many, only the devices with late readings are asked for: batches are judged by no other reading of a group then.
async fn missing(
    store: &impl Store,
    known: &Devices,
    fresh: &Fresh<'_>,
    now: Timestamp,
    invocation: &Invocation,
) -> Result<BTreeMap<DeviceId, Device>, Failure> {
    let is_asked = |id: &DeviceId, written: &Written| {
        known.get(id).is_none() && (known.is_whole() || may_be_sealed(written, now))
    };
    let lacking = fresh.iter().filter(|(id, written)| is_asked(id, written));
    let lacking: Vec<DeviceId> = lacking.map(|(id, _)| (*id).clone()).collect();
    if lacking.is_empty() {
        return Ok(BTreeMap::new());
    }
    let found = store.find_devices(&lacking, invocation).await?.found;
    Ok(found.into_iter().map(|device| (device.id().clone(), device)).collect())
}

/// Whether a rule is judged when readings come; the others wait for whole quarters of an hour.
const fn is_of_batches(watch: &Watch) -> bool {
    match watch {
        Watch::Metric { .. } | Watch::Silence { .. } | Watch::Demand { .. } => true,
        Watch::Budget { .. } | Watch::Counter { .. } => false,
    }
}

/// The earliest instant that was touched.
fn since(written: &Written) -> Option<Timestamp> {
    written.keys().next().copied()
}

/// Whether the quarter of an hour of its earliest reading may have been sealed before that was written. A rule on many
/// devices is judged when a quarter is sealed, and would not see the reading.
fn may_be_sealed(written: &Written, now: Timestamp) -> bool {
    since(written).is_some_and(|since| is_over(QuarterHour::of(since).end(), now))
}

/// Whether all of it is so old that it is history.
fn is_late(written: &Written, now: Timestamp) -> bool {
    written.keys().next_back().is_none_or(|newest| *newest < now.saturating_add(-MAX_BACK))
}

/// Whether a pair is passed over, for what the batch says and its state.
fn is_passed(
    rule: &StoredRule,
    state: Option<&StoredAlertState>,
    written: &Written,
    now: Timestamp,
) -> bool {
    let metric = match &rule.rule.watch {
        Watch::Metric { metric, .. } => Some(metric),
        Watch::Demand { .. } => return false,
        _ => None,
    };
    let batch: Vec<_> = written.values().map(|reading| observation(reading, metric)).collect();
    passes(&rule.rule, state.and_then(episodes_of), &batch, now)
}
