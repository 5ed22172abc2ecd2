//! Judges rules by the readings in a batch of the stream. Decodes no record, and stores no request to judge again.

use std::collections::BTreeMap;
use std::sync::Arc;

use alerts::{AlertSubject, MAX_BACK_FIRING, Watch, can_be_skipped};
use domain::{Device, DeviceId, MetricName, QuarterHour, Reading, Timestamp};
use rollups::is_over;
use series::SeriesError;
use table::{AlertKey, Session, StoreError, StoredAlertState, StoredRule};

use crate::Result;
use crate::devices::ListedDevices;
use crate::episodes::episodes_of;
use crate::judging::JudgingSession;
use crate::observed::observation;
use crate::ports::Store;
use crate::progress::Trigger;
use crate::recheck::device_of;
use crate::report::JudgingReport;
use crate::rules::AlertRules;
use crate::task::{JudgingTask, Tasks};

/// The readings of one device that were stored, by time. Deleted readings are missing here, because a deletion stores a
/// recheck of the device.
pub type ReadingsByTime = BTreeMap<Timestamp, Reading>;

/// The result of judging a batch.
#[derive(Debug, Default)]
pub struct BatchReport {
    /// The judgements.
    pub judgements: JudgingReport,
    /// Devices to judge again later, each with the time of its earliest reading in the batch.
    pub rechecks: BTreeMap<DeviceId, Timestamp>,
    /// Why rules, devices or states could not be read, or that the time ran out. Failed judgements are in `judgements`.
    pub cause: Option<SeriesError>,
}

/// Registered devices of a batch.
#[derive(Default)]
struct KnownDevices {
    /// The remembered list of devices. Empty if there are too many, or if no rule needs the list.
    listed: Arc<ListedDevices>,
    /// The devices of the batch that `listed` does not have, read by their ids.
    new: BTreeMap<DeviceId, Device>,
    /// Devices whose read the table refused for now, with its error.
    unread: Option<(Vec<DeviceId>, StoreError)>,
}

/// The readings of the batch's devices, without devices whose newest reading is over 31 days old.
type Fresh<'a> = BTreeMap<&'a DeviceId, &'a ReadingsByTime>;

/// A rule, and the batch's readings of a device that the rule is about.
struct Match<'a> {
    rule: &'a StoredRule,
    written: &'a ReadingsByTime,
}

impl<S: Store> JudgingSession<'_, S> {
    /// Judges the rules on the devices of a batch:
    ///
    /// - Budgets and counters: never, because they wait for whole quarters of an hour.
    /// - Other rules on up to `MAX_FEW` devices: always.
    /// - Limits of a metric on more devices: only late readings, whose quarter may have a rollup. Other readings are
    ///   judged by rollups: when `rollup` folds a quarter that breaks the rule, it stores a recheck.
    /// - Demands and silences on more devices: never.
    ///
    /// Devices whose newest reading in the batch is over 31 days old are ignored. If rules or states cannot be read,
    /// the report asks to judge all other devices again. If devices cannot be read for now, it asks to judge these
    /// again.
    pub async fn judge_batch(&self, batch: &BTreeMap<DeviceId, ReadingsByTime>) -> BatchReport {
        let fresh: Fresh<'_> =
            batch.iter().filter(|(_, written)| !is_history(written, self.table.now)).collect();
        if fresh.is_empty() {
            return BatchReport::default();
        }

        self.judge_fresh(&fresh).await.unwrap_or_else(|failure| {
            let mut report = BatchReport { cause: Some(failure), ..BatchReport::default() };
            report.add_rechecks(fresh.keys().copied(), &fresh);
            report
        })
    }

    async fn judge_fresh(&self, fresh: &Fresh<'_>) -> Result<BatchReport> {
        let rules = self.rules().await?;
        let known = self.known_devices(&rules, fresh).await?;
        let matches = self.matches(&rules, &known, fresh);

        let mut report = BatchReport::default();
        if !matches.is_empty() {
            let changing = self.without_unchanged(matches).await?;
            let task = |(key, Match { rule, written })| {
                (key, JudgingTask::Rule { rule, touched: earliest(written) })
            };
            let tasks = Tasks::of(Trigger::Batch, &rules, changing.into_iter().map(task));
            report.judgements = self.judge_all(tasks).await;
        }

        let left = std::mem::take(&mut report.judgements.left);
        report.add_rechecks(left.iter().filter_map(|key| device_of(&key.subject)), fresh);
        if report.judgements.is_cut {
            report.cause = Some(StoreError::TimedOut.into());
        }

        if let Some((unread, error)) = known.unread {
            report.add_rechecks(unread.iter(), fresh);
            report.cause = Some(error.into());
        }
        Ok(report)
    }

    /// Reads the states of matches, and drops the matches that cannot change theirs. A damaged state is kept, so that
    /// the judgement reports it.
    async fn without_unchanged<'a>(
        &self,
        mut matches: BTreeMap<AlertKey, Match<'a>>,
    ) -> Result<BTreeMap<AlertKey, Match<'a>>> {
        let keys: Vec<AlertKey> = matches.keys().cloned().collect();
        let read = async |table: Session<'_, S>| table.alert_states(&keys).await;
        let listing = self.judging.throttles.states.unless_throttled(self.table, read).await?;

        let damaged = listing.damaged();
        let states: BTreeMap<AlertKey, StoredAlertState> =
            listing.found.into_iter().map(|state| (state.key.clone(), state)).collect();
        matches.retain(|key, found| {
            damaged.contains(key) || !found.changes_nothing(states.get(key), self.table.now)
        });
        Ok(matches)
    }

    /// Each device of the batch with each rule on the device that batches judge.
    fn matches<'a>(
        &self,
        rules: &'a AlertRules,
        known: &KnownDevices,
        fresh: &Fresh<'a>,
    ) -> BTreeMap<AlertKey, Match<'a>> {
        let KnownDevices { listed, new, .. } = known;
        let mut matches = BTreeMap::new();
        let mut on_few_devices: BTreeMap<&str, bool> = BTreeMap::new();
        for (id, written) in fresh {
            let device = listed.get(id).or_else(|| new.get(*id));
            for rule in rules.of(id, device).filter(|rule| is_of_batches(&rule.definition.watch)) {
                let metric = rule.definition.watch.metric();
                if metric.is_some_and(|metric| lacks_metric(metric, device, written)) {
                    continue;
                }
                let is_on_few = on_few_devices.entry(rule.id.as_str());
                let is_on_few = *is_on_few.or_insert_with(|| listed.are_few_of(&rule.definition));
                let is_of_metric = matches!(rule.definition.watch, Watch::Metric { .. });
                if is_on_few || is_of_metric && may_be_sealed(written, self.table.now) {
                    let subject = AlertSubject::Device((*id).clone());
                    matches.insert(rule.on(subject), Match { rule, written });
                }
            }
        }

        matches
    }

    /// The registered devices of a batch. A device that the remembered list does not have may be new, so it is read
    /// from the table. If memory cannot hold the list, only devices with late readings are read, because only these are
    /// judged by rules on groups.
    async fn known_devices(&self, rules: &AlertRules, fresh: &Fresh<'_>) -> Result<KnownDevices> {
        // Only rules on groups need more of a device than its id.
        if rules.on_groups().next().is_none() {
            return Ok(KnownDevices::default());
        }

        let listed = match self.devices().await {
            Ok(listed) => listed,
            Err(error) if error.is_retryable() => {
                let all = fresh.keys().map(|id| (*id).clone()).collect();
                return Ok(KnownDevices { unread: Some((all, error)), ..KnownDevices::default() });
            }
            Err(error) => return Err(error.into()),
        };

        let is_lacking = |id: &DeviceId, written: &ReadingsByTime| {
            let may_be_new = listed.is_whole() || may_be_sealed(written, self.table.now);
            listed.get(id).is_none() && may_be_new
        };
        let lacking = fresh.iter().filter(|(id, written)| is_lacking(id, written));
        let lacking: Vec<DeviceId> = lacking.map(|(id, _)| (*id).clone()).collect();

        let mut known = KnownDevices { listed, ..KnownDevices::default() };
        if lacking.is_empty() {
            return Ok(known);
        }

        match self.stored_devices(&lacking).await {
            Ok(found) => {
                known.new.extend(found.into_iter().map(|device| (device.id().clone(), device)));
            }
            Err(error) if error.is_retryable() => known.unread = Some((lacking, error)),
            Err(error) => return Err(error.into()),
        }

        Ok(known)
    }
}

impl BatchReport {
    /// Notes that devices are to be judged again.
    fn add_rechecks<'a>(&mut self, ids: impl Iterator<Item = &'a DeviceId>, fresh: &Fresh<'_>) {
        let left = ids.filter_map(|id| Some((id.clone(), earliest(fresh.get(id)?)?)));
        self.rechecks.extend(left);
    }
}

impl Match<'_> {
    /// Whether the readings of the batch cannot change the state.
    fn changes_nothing(&self, state: Option<&StoredAlertState>, now: Timestamp) -> bool {
        let watch = &self.rule.definition.watch;
        if matches!(watch, Watch::Demand { .. }) {
            return false;
        }

        let metric = watch.metric();
        let written = self.written.values();
        let observations: Vec<_> = written.map(|reading| observation(reading, metric)).collect();
        can_be_skipped(
            &self.rule.definition,
            state.and_then(|stored| episodes_of(&stored.state)),
            &observations,
            now,
        )
    }
}

/// Whether a rule is judged as soon as readings come. Other rules wait for whole quarters of an hour.
const fn is_of_batches(watch: &Watch) -> bool {
    match watch {
        Watch::Metric { .. } | Watch::Silence { .. } | Watch::Demand { .. } => true,
        Watch::Budget { .. } | Watch::Counter { .. } => false,
    }
}

/// The time of the earliest reading.
fn earliest(written: &ReadingsByTime) -> Option<Timestamp> {
    written.keys().next().copied()
}

/// Whether the earliest reading may have come after its quarter of an hour got a rollup. A rule on many devices is
/// judged by rollups, and would miss the reading.
fn may_be_sealed(written: &ReadingsByTime, now: Timestamp) -> bool {
    earliest(written).is_some_and(|at| is_over(QuarterHour::of(at).end(), now))
}

/// Whether a device has never sent a metric. A batch may bring a metric that the remembered device lacks.
fn lacks_metric(metric: &MetricName, device: Option<&Device>, written: &ReadingsByTime) -> bool {
    device.is_some_and(|device| !device.metrics().contains_key(metric))
        && !written.values().any(|reading| reading.metrics().contains_key(metric))
}

/// Whether the newest reading is over 31 days old, so that no alert fires for it. `true` without readings.
fn is_history(written: &ReadingsByTime, now: Timestamp) -> bool {
    written.keys().next_back().is_none_or(|newest| *newest < now.saturating_add(-MAX_BACK_FIRING))
}
