//! Looks again at a device whose readings were stored, changed or deleted without a judgement, or at a rule that was
//! saved. Removes no look.

use alerts::Subject;
use domain::{DeviceId, RuleId, Timestamp};
use series::Failure;
use table::{AlertKey, Invocation, Look, Looked, NoteLooks, StoreError};

use crate::case::Case;
use crate::judged::{Judged, has_time, may_succeed};
use crate::judging::Judging;
use crate::ports::Store;
use crate::rules::{Rules, subjects_of};

impl Judging {
    /// Judges what is to be looked at again, from the instant on that was touched. Once the result
    /// [`is_done`](Judged::is_done), the look may be removed; before that, one at a rule moves on to
    /// [`up_to`](Judged::up_to).
    pub async fn look(
        &self,
        store: &(impl Store + NoteLooks),
        rules: &Rules,
        look: &Look,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Judged, Failure> {
        match &look.what {
            Looked::Device(device) => {
                self.look_at_device(store, rules, device, look, now, invocation).await
            }
            Looked::Rule(rule) => {
                self.look_at_rule(store, rules, rule, look, now, invocation).await
            }
        }
    }

    /// Every rule that is about a device.
    async fn look_at_device(
        &self,
        store: &impl Store,
        rules: &Rules,
        id: &DeviceId,
        look: &Look,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Judged, Failure> {
        let device = self.device(store, id, now, invocation).await?;
        let subject = Subject::Device(id.clone());
        let mut judged = Judged::default();
        for rule in rules.of(id, device.as_ref()) {
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

    /// All that a rule is about, behind the place up to which it is judged. A device that fails gets a look of its own,
    /// and holds up no further devices.
    async fn look_at_rule(
        &self,
        store: &(impl Store + NoteLooks),
        rules: &Rules,
        id: &RuleId,
        look: &Look,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Judged, Failure> {
        let mut judged = Judged::default();
        // As it is this moment: `rules` may have been read before it was saved, and then the look would be lost.
        let rule = match store.alert_rule(id, invocation).await {
            Ok(Some(rule)) if rule.rule.is_on => rule,
            Ok(_) | Err(StoreError::Unreadable(_)) => return Ok(judged),
            Err(error) => return Err(error.into()),
        };
        let devices = self.devices(store, now, invocation).await?;
        judged.unjudged = rules.of_unknown_devices(&devices, |asked| asked.id == *id);

        for subject in subjects_of(&rule.rule, devices.iter()) {
            let device = match &subject {
                Subject::Device(device) => Some(device.clone()),
                Subject::Room(_) => None,
            };
            if look.after.is_some() && device <= look.after {
                continue;
            }
            if !has_time(invocation) {
                judged.is_cut = true;
                break;
            }

            let case = Case { rule: &rule, subject: &subject, touched: Some(look.since) };
            let key = AlertKey { rule: rule.id.clone(), subject: subject.clone() };
            match (self.judge(store, rules, case, now, invocation).await, &device) {
                (Err(failure), Some(device)) if may_succeed(&failure) => {
                    let own = (Looked::Device(device.clone()), look.since);
                    if store.note_looks(&[own], invocation).await.cause.is_some() {
                        judged.add(key, Err(failure));
                        break;
                    }
                }
                (result, _) => judged.add(key, result),
            }
            judged.up_to = device;
        }
        Ok(judged)
    }
}
