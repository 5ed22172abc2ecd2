//! Looks again at a device whose readings were stored, changed or deleted without a judgement. Removes no look.

use alerts::Subject;
use domain::Timestamp;
use series::Failure;
use table::{AlertKey, Invocation, Look};

use crate::case::Case;
use crate::judged::{Judged, has_time};
use crate::judging::Judging;
use crate::ports::Store;
use crate::rules::Rules;

impl Judging {
    /// Judges every rule that is about a device, from the instant on that was touched. Once the result
    /// [`is_done`](Judged::is_done), the look may be removed.
    pub async fn look(
        &self,
        store: &impl Store,
        rules: &Rules,
        look: &Look,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Judged, Failure> {
        let device = self.device(store, &look.device, now, invocation).await?;
        let subject = Subject::Device(look.device.clone());
        let mut judged = Judged::default();
        for rule in rules.of(&look.device, device.as_ref()) {
            if !has_time(invocation) {
                judged.is_cut = true;
                break;
            }
            let case = Case { rule, subject: &subject, touched: Some(look.since) };
            let result = self.judge(store, rules, case, now, invocation).await;
            judged.add(AlertKey { rule: rule.id.clone(), subject: subject.clone() }, result);
        }
        Ok(judged)
    }
}
