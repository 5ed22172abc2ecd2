//! Judges the rules that wait for whole quarters of an hour: budgets, counters and means of rooms. Makes no rollup.

use alerts::{AlertSubject, EpisodeState, Scope, Watch};
use chrono::TimeDelta;
use domain::{TimeRange, Timestamp};
use series::Horizon;
use table::{AlertKey, StoredRule};

use crate::Result;
use crate::devices::ListedDevices;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::progress::{TaskRest, Trigger};
use crate::report::{JudgingReport, may_succeed};
use crate::result::{JudgementResult, NotJudged};
use crate::room_mean::RoomMean;
use crate::rule_on_subject::RuleOnSubject;
use crate::rules::AlertRules;
use crate::task::{JudgingTask, Tasks};

/// How often the past means of a room are looked at.
const HOUR: TimeDelta = TimeDelta::hours(1);

impl<S: Store> JudgingSession<'_, S> {
    /// Judges the rules that wait for sealed quarters, which have complete rollups, once for each quarter of the device
    /// or room. A task that fails, or for which there is no time, is left to the next call. Without the list of
    /// devices, only rules that name a device are judged.
    pub async fn judge_sealed(&self) -> Result<JudgingReport> {
        let rules = self.rules().await?;
        if !rules.rules.iter().any(waits) {
            return Ok(JudgingReport::default());
        }

        let progress = &self.judging.progress;
        let horizon = self.judging.rollups.read(self.table).await?;
        let sealed = horizon.state().map(|state| state.sealed.map(|at| horizon.believed(at)));
        let Some(sealed) = sealed.filter(|sealed| !progress.is_judged_up_to(sealed)) else {
            return Ok(JudgingReport::default());
        };

        let (devices, unlisted) = self.devices_if_read().await;
        let tasks = self.sealed_tasks(&rules, &devices, unlisted.is_none(), &horizon);
        let mut report = self.judge_all(tasks).await;
        match unlisted {
            Some(error) => report.unlisted = Some(error),
            None => report.unjudged = rules.of_unknown_devices(&devices, needs_the_list),
        }

        if report.is_done() {
            progress.note_sealed(sealed);
        }
        Ok(report)
    }

    /// The rules that wait, on each subject with sealed quarters that are not judged.
    fn sealed_tasks<'a>(
        &self,
        rules: &'a AlertRules,
        devices: &ListedDevices,
        is_listed: bool,
        horizon: &Horizon,
    ) -> Tasks<'a> {
        let sealed_until = |key: &AlertKey, rule: &StoredRule| {
            sealed_until(&key.subject, &rule.definition.watch, devices, horizon)
        };
        let is_resting = |key: &AlertKey, rule: &StoredRule, rest| {
            rest == TaskRest::SealedUntil(sealed_until(key, rule))
        };
        let (progress, now) = (&self.judging.progress, self.table.now);
        let all = rules.on_subjects(devices, is_listed, waits);
        let awake = progress.awake(Trigger::Sealed, now, all, is_resting);
        let tasks = awake.into_iter().map(|(key, rule)| {
            let sealed_until = sealed_until(&key, rule);
            (key, JudgingTask::Sealed { rule, sealed_until })
        });
        Tasks::of(Trigger::Sealed, rules, tasks)
    }

    /// Whether to judge the past means of a room again, once an hour: they may have changed unseen. A late reading or a
    /// deletion stores no recheck for them, because the quarters are folded again later.
    pub(crate) async fn is_past_unseen(
        &self,
        RuleOnSubject { rule, key, .. }: RuleOnSubject<'_>,
        state: &EpisodeState,
    ) -> Result<bool> {
        let (AlertSubject::Room(room), Some(metric), Some(judged_until)) =
            (&key.subject, rule.definition.watch.metric(), state.judged_until)
        else {
            return Ok(false);
        };

        let (devices, horizon) = (self.devices().await?, self.horizon().await?);
        let sealed_until = RoomMean::of(room, metric, &devices, &horizon).sealed_until();
        let hour = |at: Timestamp| at.as_millis().div_euclid(HOUR.num_milliseconds());
        Ok(match sealed_until {
            Some(sealed) => hour(judged_until) < hour(sealed),
            // The last device has left the room, and no quarter of it is sealed any more.
            None => state.is_firing() && devices.is_whole(),
        })
    }

    /// Judges a rule by the quarters up to `sealed_until`, which have complete rollups. Lets the task rest until
    /// further quarters have one, unless the judgement failed and may succeed later.
    pub(crate) async fn judge_up_to(
        &self,
        sealed_until: Timestamp,
        on_subject: RuleOnSubject<'_>,
    ) -> Result<JudgementResult, NotJudged> {
        let result = self.judge_and_store(on_subject).await;
        if !result.as_ref().is_err_and(|failed| may_succeed(&failed.failure)) {
            let rest = TaskRest::SealedUntil(sealed_until);
            self.judging.progress.rest(Trigger::Sealed, on_subject, rest);
        }
        result
    }
}

/// The time up to which the rollups of a subject are complete: those of the device, or of all devices in a room's mean.
/// A device that the table throttles delays only its own group of devices.
fn sealed_until(
    subject: &AlertSubject,
    watch: &Watch,
    devices: &ListedDevices,
    horizon: &Horizon,
) -> Timestamp {
    let sealed = match (subject, watch) {
        (AlertSubject::Device(device), _) => horizon.rolled_up(device).map(TimeRange::to),
        (AlertSubject::Room(room), Watch::Metric { metric, .. }) => {
            RoomMean::of(room, metric, devices, horizon).sealed_until()
        }
        (AlertSubject::Room(_), _) => None,
    };
    sealed.unwrap_or(Timestamp::MIN)
}

/// Whether a rule waits for whole quarters.
fn waits(rule: &StoredRule) -> bool {
    let waits = match rule.definition.watch {
        Watch::Budget { .. } | Watch::Counter { .. } => true,
        Watch::Metric { .. } => matches!(rule.definition.scope, Scope::RoomMean(_)),
        Watch::Silence { .. } | Watch::Demand { .. } => false,
    };
    rule.definition.is_on && waits
}

/// Whether a rule waits for whole quarters and finds its devices only in the remembered list. Not a counter's: if a
/// device is not listed, rechecks judge its counters.
fn needs_the_list(rule: &StoredRule) -> bool {
    waits(rule) && !matches!(rule.definition.watch, Watch::Counter { .. })
}
