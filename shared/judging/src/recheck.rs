//! Judges a saved rule at once on its first subjects. Judges rechecks (requests to judge again) of saved rules, and of
//! devices whose readings changed without a judgement. Removes no recheck.

use std::collections::BTreeSet;
use std::sync::Arc;

use alerts::{AlertSubject, MAX_BACK, MAX_UNKNOWN, Rule, Scope};
use domain::{DeviceId, RuleId, Timestamp};
use table::{AlertKey, NoteRechecks, Recheck, Rechecked, Session, StoreError, StoredRule};

use crate::Result;
use crate::devices::ListedDevices;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::progress::Trigger;
use crate::report::JudgingReport;
use crate::rules::{AlertRules, subjects_of};
use crate::task::{JudgingTask, Tasks};

/// The largest number of devices on which a saved rule is judged while a person waits. The recheck judges the rest.
const MAX_AT_ONCE: usize = 20;

impl<S: Store + NoteRechecks> JudgingSession<'_, S> {
    /// Judges a device or a rule again, by its readings since the time in the recheck. If the report
    /// [`is_done`](JudgingReport::is_done), the recheck may be removed. Otherwise the recheck of a rule is to note
    /// [`up_to`](JudgingReport::up_to), where the next call goes on. `None` if the recheck of a rule has to wait until
    /// every process knows the rule: until then a batch of readings may be judged without the rule.
    pub async fn recheck(
        &self,
        rules: &AlertRules,
        recheck: &Recheck,
    ) -> Result<Option<JudgingReport>> {
        match &recheck.target {
            Rechecked::Device(device) => {
                self.recheck_device(rules, device, recheck).await.map(Some)
            }
            Rechecked::Rule(rule) => self.recheck_rule(rules, rule, recheck).await,
        }
    }

    /// Judges all rules on a device. If that takes several calls, a process judges each rule once.
    async fn recheck_device(
        &self,
        rules: &AlertRules,
        id: &DeviceId,
        recheck: &Recheck,
    ) -> Result<JudgingReport> {
        let on_group = rules.on_groups().next();
        let device = match on_group {
            Some(_) => self.device_now(id).await,
            None => Ok(None),
        };
        let (rechecked, now) = (&self.judging.rechecked, self.table.now);
        let key = (id.clone(), recheck.touch);
        let mut judged = rechecked.get(&key, now).unwrap_or_default();

        let known = device.as_ref().ok().and_then(Option::as_ref);
        let mut of_device: Vec<&StoredRule> = rules.of(id, known).collect();
        of_device.retain(|rule| !judged.contains(&rule.id));
        let tasks = of_device.iter().map(|rule| {
            let key = rule.on(AlertSubject::Device(id.clone()));
            (key, JudgingTask::Rule { rule, touched: Some(recheck.since) })
        });
        let mut report = self.judge_all(Tasks::of(Trigger::Recheck, rules, tasks)).await;

        // If the device could not be read, its groups are not known, and only rules that name the device were judged.
        if let (Some(rule), Err(error)) = (on_group, device) {
            report.add(rule.on(AlertSubject::Device(id.clone())), Err(error.into()));
        }

        if !report.is_done() {
            of_device.retain(|rule| report.left.iter().all(|key| key.rule != rule.id));
            judged.extend(of_device.into_iter().map(|rule| rule.id.clone()));
            rechecked.keep(key, judged, now);
        }
        Ok(report)
    }

    /// Judges a rule on its subjects, beginning after the last device that was judged. If a judgement fails or panics,
    /// its device gets a recheck of its own and delays no other device.
    async fn recheck_rule(
        &self,
        rules: &AlertRules,
        id: &RuleId,
        recheck: &Recheck,
    ) -> Result<Option<JudgingReport>> {
        // The recheck is stored a moment before the rule, with a `since` that is earlier by `MAX_BACK`, so the sum is the
        // time when it was stored. A time ahead is of a wrong clock, and is not waited for.
        let is_recent = |at: Timestamp| self.table.now.since(at).abs() < MAX_UNKNOWN;
        if is_recent(recheck.since.saturating_add(MAX_BACK)) {
            return Ok(None);
        }

        // The rule is read again, because `rules` may be older. Without the new rule the recheck would be lost.
        let rule = match self.stored_rule(id).await {
            Ok(Some(rule)) if rule.definition.is_on => rule,
            Ok(_) | Err(StoreError::Unreadable(_)) => return Ok(Some(JudgingReport::default())),
            Err(error) => return Err(error.into()),
        };
        if is_recent(rule.definition.changed) {
            return Ok(None);
        }

        let devices = self.devices_for(&rule.definition, rule.definition.changed).await?;
        let task = JudgingTask::Rule { rule: &rule, touched: None };
        let after = recheck.after.as_ref();
        let mut subjects = subjects_of(&rule.definition, devices.iter());
        subjects.retain(|subject| after.is_none() || device_of(subject) > after);
        let keys: BTreeSet<AlertKey> =
            subjects.into_iter().map(|subject| rule.on(subject)).collect();

        let tasks = keys.iter().map(|key| (key.clone(), task));
        let mut report = self.judge_all(Tasks::of(Trigger::Saved, rules, tasks)).await;
        report.unjudged = rules.of_unknown_devices(&devices, |other| other.id == *id);
        self.hand_on_failures(&mut report, recheck).await;

        let judged = keys.iter().take_while(|key| !report.left.contains(key));
        report.up_to = judged.last().and_then(|key| device_of(&key.subject)).cloned();
        Ok(Some(report))
    }

    /// Stores a recheck for each device that failed and may succeed later, or whose judgement panicked. Then the device
    /// is no longer left. The report keeps panics, because somebody has to mend the code.
    async fn hand_on_failures(&self, report: &mut JudgingReport, recheck: &Recheck) {
        let failed = report.failures.iter().map(|(key, _)| key);
        let panicked = report.panics.iter().map(|(key, _)| key);
        let failed: BTreeSet<AlertKey> = failed.chain(panicked).cloned().collect();
        let failed: Vec<AlertKey> =
            report.left.iter().filter(|key| failed.contains(key)).cloned().collect();
        let own = |key: &AlertKey| {
            Some((Rechecked::Device(device_of(&key.subject)?.clone()), recheck.since))
        };
        let own: Vec<_> = failed.iter().filter_map(own).collect();
        if own.is_empty() {
            return;
        }

        let note =
            async |table: Session<'_, S>| table.note_rechecks(&own).await.cause.map_or(Ok(()), Err);
        if self.judging.throttles.own_rechecks.unless_throttled(self.table, note).await.is_err() {
            return;
        }
        report.left.retain(|key| !failed.contains(key));
        report.failures.retain(|(key, _)| !failed.contains(key));
    }

    /// Judges a saved rule on its first devices, or on its room. The recheck of the rule, which was stored before the
    /// rule was saved, judges the rest.
    pub async fn judge_saved(&self, rule: &StoredRule) -> Result<JudgingReport> {
        // The rest of the time is for the answer.
        let invocation = self.table.invocation;
        let part = invocation.shortened_to(invocation.remaining() / 3);
        self.within(&part).judge_first(rule).await
    }

    async fn judge_first(&self, rule: &StoredRule) -> Result<JudgingReport> {
        let rules = self.rules_read_now().await?;
        let devices = self.devices_for(&rule.definition, self.table.now).await?;
        let subjects = subjects_of(&rule.definition, devices.iter());
        let has_more = subjects.len() > MAX_AT_ONCE;
        let task = |subject| (rule.on(subject), JudgingTask::Rule { rule, touched: None });
        let tasks = subjects.into_iter().take(MAX_AT_ONCE).map(task);

        let mut report = self.judge_all(Tasks::of(Trigger::Saved, &rules, tasks)).await;
        report.is_cut |= has_more;
        Ok(report)
    }

    /// The devices among which a rule finds its subjects. A rule that names a device needs no list. For a rule on a
    /// group, the list is read after the rule was saved, because the same person may have moved a device just before.
    async fn devices_for(&self, rule: &Rule, saved: Timestamp) -> Result<Arc<ListedDevices>> {
        let devices = match rule.scope {
            Scope::Each(_) => self.devices_read_after(saved).await,
            Scope::RoomMean(_) => self.devices().await,
            Scope::Device(_) => Ok(Arc::default()),
        };
        Ok(devices?)
    }
}

/// The device of a subject; `None` for a room.
pub(crate) const fn device_of(subject: &AlertSubject) -> Option<&DeviceId> {
    match subject {
        AlertSubject::Device(device) => Some(device),
        AlertSubject::Room(_) => None,
    }
}
