//! Judges what waits for whole quarters of an hour: budgets, counters and means of rooms. Seals none.

use alerts::{Scope, Watch};
use domain::Timestamp;
use series::Failure;
use table::{Invocation, StoredRule};

use crate::case::Case;
use crate::judged::{Judged, has_time, may_succeed};
use crate::judging::Judging;
use crate::ports::Store;

impl Judging {
    /// Judges the rules that wait for sealed quarters, once for each quarter that is sealed. What fails, and what the
    /// time does not suffice for, is judged when it is next called.
    ///
    /// The order is drawn by lot. A process remembers the judged subjects, and a new process begins anew. With a fixed
    /// order the last subjects would never be judged where processes are short-lived.
    pub async fn judge_sealed(
        &self,
        store: &impl Store,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Judged, Failure> {
        let mut judged = Judged::default();
        let rules = self.rules(store, now, invocation).await?;
        if !rules.rules.iter().any(waits) {
            return Ok(judged);
        }

        let horizon = self.rollups.read(store, now, invocation).await?;
        let Some(edge) = horizon.state().map(|state| horizon.believed(state.sealed())) else {
            return Ok(judged);
        };
        if self.sealed.is_whole(edge) {
            return Ok(judged);
        }

        let devices = self.devices(store, now, invocation).await?;
        judged.unjudged = rules.of_unknown_devices(&devices, needs_the_list);
        let mut left = self.sealed.left(edge, rules.keys(&devices, waits));
        fastrand::shuffle(&mut left);

        for key in left {
            let Some(rule) = rules.get(&key.rule) else { continue };
            if !has_time(invocation) {
                judged.is_cut = true;
                break;
            }
            let case = Case { rule, subject: &key.subject, touched: None };
            let result = self.judge(store, &rules, case, now, invocation).await;
            if !result.as_ref().is_err_and(may_succeed) {
                self.sealed.note(&key);
            }
            judged.add(key, result);
        }

        if judged.is_done() {
            self.sealed.note_whole();
        }
        Ok(judged)
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

/// Whether a rule that waits for whole quarters finds its devices in the list only. A counter's steps are found by looks
/// too.
fn needs_the_list(rule: &StoredRule) -> bool {
    waits(rule) && !matches!(rule.rule.watch, Watch::Counter { .. })
}
