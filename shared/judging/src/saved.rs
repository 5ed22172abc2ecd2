//! Judges a rule that was saved or switched on, at once, on the first of what it is about. Saves no rule.

use alerts::MAX_BACK;
use table::{AlertKey, Looked, NoteLooks, StoreError, StoredRule};

use crate::Result;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::progress::Trigger;
use crate::report::JudgingReport;
use crate::rules::subjects_of;
use crate::task::{JudgingTask, Tasks};

/// The devices that are judged at once.
const MAX_AT_ONCE: usize = 20;

/// What came of judging a rule that was saved.
#[derive(Debug)]
pub struct JudgedSaved {
    /// What was judged at once.
    pub judged: Result<JudgingReport>,
    /// Why no recheck of the rest could be noted.
    pub not_noted: Option<StoreError>,
}

impl<S: Store + NoteLooks> JudgingSession<'_, S> {
    /// Judges a rule on its first devices, or its room. Where something is left, or failed, it leaves a recheck of the
    /// rule, which begins anew and keeps its place.
    pub async fn judge_saved(&self, rule: &StoredRule) -> JudgedSaved {
        let JudgingSession { store, invocation, now, .. } = *self;
        // The rest of the time is for noting the recheck, and for the answer.
        let part = invocation.part_of(invocation.remaining() / 3);
        let judged = self.within(&part).judge_first(rule).await;

        let mut not_noted = None;
        if !judged.as_ref().is_ok_and(JudgingReport::is_done) {
            let recheck = (Looked::Rule(rule.id.clone()), now.saturating_add(-MAX_BACK));
            let part = invocation.part_of(invocation.remaining() / 2);
            not_noted = store.note_looks(&[recheck], &part).await.cause;
        }
        JudgedSaved { judged, not_noted }
    }

    async fn judge_first(&self, rule: &StoredRule) -> Result<JudgingReport> {
        let rules = self.refresh().await?;
        let devices = self.devices().await?;
        let subjects = subjects_of(&rule.rule, devices.iter());
        let has_more = subjects.len() > MAX_AT_ONCE;
        let task = |subject| {
            let key = AlertKey { rule: rule.id.clone(), subject };
            (key, JudgingTask::Rule { rule, touched: None })
        };
        let tasks = subjects.into_iter().take(MAX_AT_ONCE).map(task).collect();

        let tasks = Tasks { trigger: Trigger::Saved, rules: &rules, tasks };
        let mut report = self.judge_all(tasks).await;
        report.is_cut |= has_more;
        Ok(report)
    }
}
