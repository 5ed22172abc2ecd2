//! Judges the rules that wait for whole quarters of an hour: budgets, counters and means of rooms. Makes no rollup.

use alerts::{AlertSubject, Scope, Watch};
use domain::{TimeRange, Timestamp};
use series::Horizon;
use table::{AlertKey, StoredRule};

use crate::Result;
use crate::devices::Devices;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::progress::Trigger;
use crate::report::{JudgingReport, may_succeed};
use crate::result::{JudgementResult, NotJudged};
use crate::room_mean::RoomMean;
use crate::task::{JudgingTask, RuleOnSubject, Tasks};

impl<S: Store> JudgingSession<'_, S> {
    /// Judges the rules that wait for sealed quarters, which have complete rollups, once for each quarter of the device
    /// or room. A task that fails, or for which there is no time, is left to the next call. Without the list of devices,
    /// only rules that name a device are judged.
    pub async fn judge_sealed(&self) -> Result<JudgingReport> {
        let rules = self.rules().await?;
        if !rules.rules.iter().any(waits) {
            return Ok(JudgingReport::default());
        }

        let progress = &self.judging.progress;
        let horizon = self.judging.rollups.read(self.table).await?;
        let edges = horizon.state().map(|state| state.sealed.map(|edge| horizon.believed(edge)));
        let Some(edges) = edges.filter(|edges| !progress.is_judged_up_to(edges)) else {
            return Ok(JudgingReport::default());
        };

        let (devices, unlisted) = self.devices_if_read().await;
        let edge_of = |key: &AlertKey, rule: &StoredRule| {
            sealed_until(&key.subject, &rule.definition.watch, &devices, &horizon)
        };
        // Without the list nobody knows the devices of a room, or how far their rollups are complete.
        let is_wanted = |rule: &StoredRule| {
            waits(rule) && (unlisted.is_none() || matches!(rule.definition.scope, Scope::Device(_)))
        };
        let all = rules.on_subjects(&devices, is_wanted);
        if unlisted.is_none() {
            progress.forget_others(Trigger::Sealed, &all);
        }
        let is_judged = |key: &AlertKey, rule: &StoredRule, judged| judged == edge_of(key, rule);
        let left = progress.awake(Trigger::Sealed, self.table.now, all, is_judged);
        let task = |(key, rule)| {
            let edge = edge_of(&key, rule);
            (key, JudgingTask::Sealed { rule, edge })
        };
        let tasks = left.into_iter().map(task);

        let mut report = self.judge_all(Tasks::of(Trigger::Sealed, &rules, tasks)).await;
        match unlisted {
            Some(error) => report.unlisted = Some(error),
            None => report.unjudged = rules.of_unknown_devices(&devices, needs_the_list),
        }
        if report.is_done() {
            progress.note_sealed(edges);
        }
        Ok(report)
    }

    /// Judges a rule by the quarters up to `edge`, which have complete rollups. Lets the task rest until further
    /// quarters have one, unless the judgement failed and may succeed later.
    pub(crate) async fn judge_up_to(
        &self,
        edge: Timestamp,
        on_subject: RuleOnSubject<'_>,
    ) -> Result<JudgementResult, NotJudged> {
        let result = self.judge(on_subject).await;
        if !result.as_ref().is_err_and(|failed| may_succeed(&failed.failure)) {
            self.judging.progress.rest(Trigger::Sealed, on_subject.key, on_subject.rule, edge);
        }
        result
    }
}

/// The time up to which the rollups of a subject are complete: those of the device, or of all devices in a room's mean.
/// A device that the table throttles holds up only its own group of devices.
fn sealed_until(
    subject: &AlertSubject,
    watch: &Watch,
    devices: &Devices,
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

/// Whether a rule waits for whole quarters and finds its devices only in the remembered list. A rule on a counter is
/// also judged by rechecks, which name a device.
fn needs_the_list(rule: &StoredRule) -> bool {
    waits(rule) && !matches!(rule.definition.watch, Watch::Counter { .. })
}
