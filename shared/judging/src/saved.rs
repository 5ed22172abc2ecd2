//! Judges a rule that was saved or switched on, at once, on the first of what it is about. Saves no rule.

use alerts::MAX_BACK;
use domain::Timestamp;
use series::Failure;
use table::{AlertKey, Invocation, Looked, NoteLooks, StoreError, StoredRule};

use crate::case::Case;
use crate::judged::{Judged, has_time};
use crate::judging::Judging;
use crate::ports::Store;
use crate::rules::subjects_of;

/// The devices that are judged at once.
const MAX_AT_ONCE: usize = 20;

/// What came of judging a rule that was saved.
#[derive(Debug)]
pub struct JudgedSaved {
    /// What was judged at once.
    pub judged: Result<Judged, Failure>,
    /// Why no look at the rest could be noted.
    pub not_noted: Option<StoreError>,
}

impl Judging {
    /// Judges a rule on its first devices, or its room. Where something is left, or failed, it leaves a look at the
    /// rule, which begins anew and keeps its place.
    pub async fn judge_saved(
        &self,
        store: &(impl Store + NoteLooks),
        rule: &StoredRule,
        now: Timestamp,
        invocation: &Invocation,
    ) -> JudgedSaved {
        // The rest of the time is for noting the look, and for the answer.
        let part = invocation.part_of(invocation.remaining() / 3);
        let judged = self.judge_first(store, rule, now, &part).await;

        let mut not_noted = None;
        if !judged.as_ref().is_ok_and(Judged::is_done) {
            let look = (Looked::Rule(rule.id.clone()), now.saturating_add(-MAX_BACK));
            let part = invocation.part_of(invocation.remaining() / 2);
            not_noted = store.note_looks(&[look], &part).await.cause;
        }
        JudgedSaved { judged, not_noted }
    }

    async fn judge_first(
        &self,
        store: &impl Store,
        rule: &StoredRule,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Judged, Failure> {
        let rules = self.refresh(store, now, invocation).await?;
        let devices = self.devices(store, now, invocation).await?;
        let subjects = subjects_of(&rule.rule, devices.iter());
        let mut judged = Judged { is_cut: subjects.len() > MAX_AT_ONCE, ..Judged::default() };

        for subject in subjects.iter().take(MAX_AT_ONCE) {
            if !has_time(invocation) {
                judged.is_cut = true;
                break;
            }
            let case = Case { rule, subject, touched: None };
            let result = self.judge(store, &rules, case, now, invocation).await;
            judged.add(AlertKey { rule: rule.id.clone(), subject: subject.clone() }, result);
        }
        Ok(judged)
    }
}
