//! Finds devices that have fallen silent, for the rules that watch this. Reads the newest reading of a device only when
//! the device could be silent. Writes nothing for devices that are not.

use alerts::{AlertSubject, MAX_AHEAD, MAX_UNJUDGED, NoData, SilenceLimit, Watch};
use chrono::TimeDelta;
use domain::Timestamp;
use table::{AlertKey, StoredRule};

use crate::Result;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::progress::{TaskRest, Trigger};
use crate::report::JudgingReport;
use crate::result::{JudgementResult, NotJudged};
use crate::rule_on_subject::RuleOnSubject;
use crate::task::{JudgingTask, Tasks};

/// The longest time for which a task rests. A silence limit is learned anew every few hours, and may become shorter.
const MAX_REST: TimeDelta = TimeDelta::hours(1);

impl<S: Store> JudgingSession<'_, S> {
    /// Judges the rules about silence, and the rules that fire without data, on each device that could be silent by
    /// now. Tasks for which there is no time are left to the next call. Without the list of devices, only rules that
    /// name a device are judged.
    pub async fn judge_silence(&self) -> Result<JudgingReport> {
        let rules = self.rules().await?;
        if !rules.rules.iter().any(fires_of_silence) {
            return Ok(JudgingReport::default());
        }

        let (devices, unlisted) = self.devices_if_read().await;
        let (progress, now) = (&self.judging.progress, self.table.now);
        let is_resting = |_: &AlertKey, _: &StoredRule, rest: TaskRest| match rest {
            TaskRest::Until(until) => until > now,
            TaskRest::SealedUntil(_) => false,
        };
        let all = rules.on_subjects(&devices, unlisted.is_none(), fires_of_silence);
        let due = progress.awake(Trigger::Silence, now, all, is_resting);
        let tasks = due.into_iter().map(|(key, rule)| (key, JudgingTask::Silence(rule)));

        let mut report = self.judge_all(Tasks::of(Trigger::Silence, &rules, tasks)).await;
        match unlisted {
            Some(error) => report.unlisted = Some(error),
            None => report.unjudged = rules.of_unknown_devices(&devices, fires_of_silence),
        }
        Ok(report)
    }

    /// Judges a rule on a device if the device is silent; the task then rests for [`MAX_UNJUDGED`]. Otherwise the task
    /// rests until the device may be silent, at most for [`MAX_REST`].
    pub(crate) async fn judge_if_silent(
        &self,
        on_subject: RuleOnSubject<'_>,
    ) -> Result<Option<JudgementResult>, NotJudged> {
        let silent_from = self.silent_from(on_subject).await?;
        let (next, result) = if silent_from > self.table.now {
            (silent_from.min(self.table.now.saturating_add(MAX_REST)), None)
        } else {
            let result = self.judge_and_store(on_subject).await?;
            (self.table.now.saturating_add(MAX_UNJUDGED), Some(result))
        };
        self.judging.progress.rest(Trigger::Silence, on_subject, TaskRest::Until(next));
        Ok(result)
    }

    /// The time from which a device counts as silent if it sends no further reading.
    async fn silent_from(&self, on_subject: RuleOnSubject<'_>) -> Result<Timestamp> {
        let later = self.table.now.saturating_add(MAX_UNJUDGED);
        // The mean of a room is judged by whole quarters of an hour, and not here.
        let AlertSubject::Device(device) = &on_subject.key.subject else { return Ok(later) };

        let end = self.table.now.saturating_add(MAX_AHEAD + TimeDelta::milliseconds(1));
        let newest = self.newest_reading(device, end, false).await?;
        let limit = self.silent_after(&on_subject.rule.definition.watch, device).await?;
        // A device without readings may send its first and last reading right now.
        let Some(newest) = newest.map(|reading| reading.at) else {
            return Ok(later.min(self.table.now.saturating_add(limit)));
        };
        let pauses = self.pauses(on_subject.rules).await?;
        Ok(SilenceLimit::new(limit, pauses).begins(newest))
    }
}

/// Whether a rule fires when a device is silent.
fn fires_of_silence(rule: &StoredRule) -> bool {
    let rule = &rule.definition;
    let is_breach = match rule.watch {
        Watch::Silence { .. } => true,
        Watch::Metric { .. } => rule.no_data == NoData::Fire,
        Watch::Budget { .. } | Watch::Demand { .. } | Watch::Counter { .. } => false,
    };
    rule.is_on && is_breach
}
