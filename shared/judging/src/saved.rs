//! Judges a rule that was saved or switched on, at once, on all that it is about. Saves no rule.

use alerts::{MAX_BACK, Subject};
use domain::{DeviceId, Timestamp};
use series::Failure;
use table::{AlertKey, Invocation, NoteLooks, StoredRule};

use crate::case::Case;
use crate::judged::{Judged, has_time};
use crate::judging::Judging;
use crate::ports::Store;
use crate::rules::subjects_of;

/// The subjects that are judged at once; each of the others is looked at within a minute.
const MAX_AT_ONCE: usize = 20;
/// The looks that are noted at once.
const PAGE: usize = 100;

impl Judging {
    /// Judges a rule on its first devices, or its room, and leaves looks at the others and at what failed. Returns what
    /// was judged; a look that could not be noted is a failure.
    pub async fn judge_saved(
        &self,
        store: &(impl Store + NoteLooks),
        rule: &StoredRule,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Judged, Failure> {
        let rules = self.refresh(store, now, invocation).await?;
        let devices = self.devices(store, now, invocation).await?;
        let subjects = subjects_of(&rule.rule, devices.iter());
        let (mut judged, mut later) = (Judged::default(), Vec::new());
        for (n, subject) in subjects.iter().enumerate() {
            let result = if n < MAX_AT_ONCE && has_time(invocation) {
                let case = Case { rule, subject, touched: None };
                Some(self.judge(store, &rules, case, now, invocation).await)
            } else {
                None
            };
            match (result, subject) {
                (None | Some(Err(Failure::Store(_))), Subject::Device(device)) => {
                    later.push((device.clone(), now.saturating_add(-MAX_BACK)));
                }
                (Some(result), _) => {
                    let key = AlertKey { rule: rule.id.clone(), subject: subject.clone() };
                    judged.add(key, result);
                }
                (None, Subject::Room(_)) => {}
            }
        }
        note_looks(store, &later, invocation).await?;
        Ok(judged)
    }
}

/// Leaves looks at devices, each with the earliest instant that was touched.
pub(crate) async fn note_looks(
    store: &impl NoteLooks,
    touched: &[(DeviceId, Timestamp)],
    invocation: &Invocation,
) -> Result<(), Failure> {
    for page in touched.chunks(PAGE) {
        if let Some(error) = store.note_looks(page, invocation).await.cause {
            return Err(error.into());
        }
    }
    Ok(())
}
