//! Judges what waits for whole quarters of an hour: budgets, counters and means of rooms. Seals none.

use alerts::{Scope, Watch};
use domain::Timestamp;
use table::StoredRule;

use crate::Result;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::progress::Trigger;
use crate::report::{JudgingReport, may_succeed};
use crate::result::JudgementResult;
use crate::task::{JudgingTask, RuleOnSubject, Tasks};

impl<S: Store> JudgingSession<'_, S> {
    /// Judges the rules that wait for sealed quarters, once for each quarter that is sealed. What fails, and what the
    /// time does not suffice for, is judged when it is next called.
    pub async fn judge_sealed(&self) -> Result<JudgingReport> {
        let rules = self.rules().await?;
        if !rules.rules.iter().any(waits) {
            return Ok(JudgingReport::default());
        }
        let horizon = self.judging.rollups.read(self.session).await?;
        let edge = horizon.state().map(|state| horizon.believed(state.sealed()));
        let Some(edge) = edge.filter(|edge| self.judging.progress.sealed() != Some(*edge)) else {
            return Ok(JudgingReport::default());
        };

        let devices = self.devices().await?;
        let all = rules.on_subjects(&devices, waits);
        let left = self.judging.progress.awake(Trigger::Sealed, all, |judged| judged == edge);
        let task = |(key, rule)| (key, JudgingTask::Sealed { rule, edge });
        let tasks = left.into_iter().map(task);

        let mut report = self.judge_all(Tasks::of(Trigger::Sealed, &rules, tasks)).await;
        report.unjudged = rules.of_unknown_devices(&devices, needs_the_list);
        if report.is_done() {
            self.judging.progress.note_sealed(edge);
        }
        Ok(report)
    }

    /// Judges a rule by the quarters that are sealed up to an edge. Lets the task rest until there are more, unless it
    /// failed and may succeed.
    pub(crate) async fn judge_up_to(
        &self,
        edge: Timestamp,
        judged: RuleOnSubject<'_>,
    ) -> Result<JudgementResult> {
        let result = self.judge(judged).await;
        if !result.as_ref().is_err_and(may_succeed) {
            self.judging.progress.rest(Trigger::Sealed, judged.key, judged.rule, edge);
        }
        result
    }
}

/// Whether a rule waits for whole quarters.
fn waits(rule: &StoredRule) -> bool {
    let waits = match rule.rule.watch {
        Watch::Budget { .. } | Watch::Counter { .. } => true,
        Watch::Metric { .. } => matches!(rule.rule.scope, Scope::RoomMean(_)),
        Watch::Silence { .. } | Watch::Demand { .. } => false,
    };
    rule.rule.is_on && waits
}

/// Whether a rule that waits for whole quarters finds its devices in the list only. Steps of counters are found by
/// rechecks too.
fn needs_the_list(rule: &StoredRule) -> bool {
    waits(rule) && !matches!(rule.rule.watch, Watch::Counter { .. })
}
