//! Rechecks a device whose readings were stored, changed or deleted without a judgement, or a rule that was saved. Removes
//! no recheck.

use std::collections::BTreeMap;

use alerts::AlertSubject;
use domain::{DeviceId, RuleId};
use table::{AlertKey, Look, Looked, NoteLooks, StoreError};

use crate::Result;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::progress::Trigger;
use crate::report::JudgingReport;
use crate::rules::{Rules, subjects_of};
use crate::task::{JudgingTask, Tasks};

impl<S: Store + NoteLooks> JudgingSession<'_, S> {
    /// Judges a device or a rule again, from the instant on that was touched. Once the report
    /// [`is_done`](JudgingReport::is_done), the recheck may be removed; before that, the recheck of a rule moves on to
    /// [`up_to`](JudgingReport::up_to).
    pub async fn recheck(&self, rules: &Rules, recheck: &Look) -> Result<JudgingReport> {
        match &recheck.what {
            Looked::Device(device) => self.recheck_device(rules, device, recheck).await,
            Looked::Rule(rule) => self.recheck_rule(rules, rule, recheck).await,
        }
    }

    /// Judges every rule that is about a device.
    async fn recheck_device(
        &self,
        rules: &Rules,
        id: &DeviceId,
        recheck: &Look,
    ) -> Result<JudgingReport> {
        let device = self.device(id).await?;
        let tasks = rules.of(id, device.as_ref()).map(|rule| {
            let key = AlertKey { rule: rule.id.clone(), subject: AlertSubject::Device(id.clone()) };
            (key, JudgingTask::Rule { rule, touched: Some(recheck.since) })
        });
        let tasks = Tasks { trigger: Trigger::Recheck, rules, tasks: tasks.collect() };
        Ok(self.judge_all(tasks).await)
    }

    /// Judges a rule on its subjects, behind the last device that was judged. A device that fails gets a recheck of its
    /// own, and holds up no further devices.
    async fn recheck_rule(
        &self,
        rules: &Rules,
        id: &RuleId,
        recheck: &Look,
    ) -> Result<JudgingReport> {
        // As it is this moment: `rules` may have been read before it was saved, and then the recheck would be lost.
        let rule = match self.store.alert_rule(id, self.invocation).await {
            Ok(Some(rule)) if rule.rule.is_on => rule,
            Ok(_) | Err(StoreError::Unreadable(_)) => return Ok(JudgingReport::default()),
            Err(error) => return Err(error.into()),
        };
        let devices = self.devices().await?;
        let task = JudgingTask::Rule { rule: &rule, touched: Some(recheck.since) };
        let tasks: BTreeMap<AlertKey, JudgingTask<'_>> = subjects_of(&rule.rule, devices.iter())
            .into_iter()
            .filter(|subject| {
                recheck.after.is_none() || device_of(subject) > recheck.after.as_ref()
            })
            .map(|subject| (AlertKey { rule: id.clone(), subject }, task))
            .collect();
        let keys: Vec<AlertKey> = tasks.keys().cloned().collect();

        let tasks = Tasks { trigger: Trigger::Recheck, rules, tasks };
        let mut report = self.judge_all(tasks).await;
        report.unjudged = rules.of_unknown_devices(&devices, |other| other.id == *id);
        self.hand_on_failures(&mut report, recheck).await;

        let judged = keys.iter().take_while(|key| !report.left.contains(key));
        report.up_to = judged.last().and_then(|key| device_of(&key.subject)).cloned();
        Ok(report)
    }

    /// Notes a recheck of its own for each device that failed and may succeed. With that the report has it no longer.
    async fn hand_on_failures(&self, report: &mut JudgingReport, recheck: &Look) {
        let is_failed = |key: &AlertKey| report.failures.iter().any(|(failed, _)| failed == key);
        let failed: Vec<AlertKey> =
            report.left.iter().filter(|key| is_failed(key)).cloned().collect();
        let own = |key: &AlertKey| {
            Some((Looked::Device(device_of(&key.subject)?.clone()), recheck.since))
        };
        let own: Vec<_> = failed.iter().filter_map(own).collect();
        if own.is_empty() || self.store.note_looks(&own, self.invocation).await.cause.is_some() {
            return;
        }
        report.left.retain(|key| !failed.contains(key));
        report.failures.retain(|(key, _)| !failed.contains(key));
    }
}

const fn device_of(subject: &AlertSubject) -> Option<&DeviceId> {
    match subject {
        AlertSubject::Device(device) => Some(device),
        AlertSubject::Room(_) => None,
    }
}
