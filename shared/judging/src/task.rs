//! Judging tasks, each a rule on a device or room, and the one loop that judges them. Finds no tasks.

use std::collections::{BTreeMap, BTreeSet};

use alerts::{NoData, Watch};
use domain::Timestamp;
use table::panic::catching;
use table::{AlertKey, NewJudgement, StoreError, StoredAlertState, StoredRule};

use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::progress::Trigger;
use crate::report::{JudgingReport, is_throttled};
use crate::result::{JudgementResult, NextState, NotJudged};
use crate::rule_on_subject::RuleOnSubject;
use crate::rules::AlertRules;

/// The number of attempts at a judgement while other processes keep changing its state.
const MAX_ATTEMPTS: usize = 5;

/// A rule to judge on one subject.
#[derive(Debug, Clone, Copy)]
pub(crate) enum JudgingTask<'a> {
    /// A rule to judge by the readings in the table.
    Rule {
        rule: &'a StoredRule,
        /// The earliest time of readings that were stored, overwritten or deleted. `None` if no reading changed: the
        /// rule was saved.
        touched: Option<Timestamp>,
    },
    /// A state whose next judgement is due.
    Due(&'a StoredAlertState),
    /// A rule to judge if the device is silent.
    Silence(&'a StoredRule),
    /// A rule to judge by the quarters of an hour up to `sealed_until`, which have complete rollups.
    Sealed { rule: &'a StoredRule, sealed_until: Timestamp },
}

impl JudgingTask<'_> {
    /// Whether the judgement of a rule may need the silence limit that is learned from a device's rollups. `false` for
    /// all other kinds of tasks, which keep their order.
    fn may_need_silence_limit(&self) -> bool {
        let Self::Rule { rule, .. } = self else { return false };
        match rule.definition.watch {
            Watch::Metric { .. } => rule.definition.no_data != NoData::Keep,
            Watch::Silence { after } => after.is_none(),
            Watch::Budget { .. } | Watch::Demand { .. } | Watch::Counter { .. } => false,
        }
    }
}

/// The tasks of one trigger.
#[derive(Debug)]
pub(crate) struct Tasks<'a> {
    trigger: Trigger,
    rules: &'a AlertRules,
    by_key: BTreeMap<AlertKey, JudgingTask<'a>>,
}

impl<'a> Tasks<'a> {
    /// Makes the tasks of a trigger; `rules` are all rules.
    pub(crate) fn of(
        trigger: Trigger,
        rules: &'a AlertRules,
        tasks: impl Iterator<Item = (AlertKey, JudgingTask<'a>)>,
    ) -> Self {
        Self { trigger, rules, by_key: tasks.collect() }
    }

    /// The tasks after `key`, then those before it, then the task of `key`. Without a key, all tasks in order.
    fn starting_after(
        mut self,
        key: Option<&AlertKey>,
    ) -> impl Iterator<Item = (AlertKey, JudgingTask<'a>)> {
        let mut following = key.map_or_else(BTreeMap::new, |key| self.by_key.split_off(key));
        self.by_key.extend(key.and_then(|key| following.remove_entry(key)));
        following.into_iter().chain(self.by_key)
    }

    /// A random key after which to begin, for a process that remembers no task. If short-lived processes always began
    /// with the first task, the last tasks would never be judged.
    fn random_key(&self) -> Option<AlertKey> {
        fastrand::choice(self.by_key.keys()).cloned()
    }
}

impl<S: Store> JudgingSession<'_, S> {
    /// Judges tasks until they are done or the time is over. For some triggers, the next call begins after the task
    /// that was tried last, so that no task waits for ever. If a request about a device is throttled, the device's
    /// other tasks are skipped and reported as left.
    pub(crate) async fn judge_all(&self, tasks: Tasks<'_>) -> JudgingReport {
        let mut report = JudgingReport::default();
        let (trigger, rules) = (tasks.trigger, tasks.rules);
        let mut throttled = BTreeSet::new();
        let mut last_throttled = None;

        for (key, task) in self.in_order(tasks) {
            if !self.has_time() {
                report.cut_before(key);
                continue;
            }
            // A further rule on the same device would be throttled just as long.
            if throttled.contains(&key.subject) {
                report.left.push(key);
                continue;
            }

            let part = self.table.invocation.with_quarter_patience();
            let session = self.within(&part);
            let result = catching(Box::pin(session.judge_task(task, &key, rules))).await;
            self.judging.progress.note(trigger, &key);
            let result = match result {
                Ok(result) => result,
                Err(panic) => {
                    report.leave_panicked(key, panic);
                    continue;
                }
            };

            if result.as_ref().is_err_and(|failed| is_throttled(&failed.failure)) {
                throttled.insert(key.subject.clone());
                last_throttled = Some(key.clone());
            }
            report.add(key, result);
        }

        // Later tasks have moved the progress on. It goes back to the last throttled task, so that the next call begins
        // with the tasks that were skipped after it. If the time ran out, it stays at the last task that was tried.
        if let Some(begin_after) = last_throttled.filter(|_| !report.is_cut) {
            self.judging.progress.note(trigger, &begin_after);
        }
        report
    }

    /// The tasks in the order of judging. Tasks that may need a silence limit come last: the limit is learned from
    /// rollups, whose request may be throttled while all others succeed. States of deleted rules come last too, because
    /// each needs a request for its rule.
    fn in_order<'a>(&self, tasks: Tasks<'a>) -> Vec<(AlertKey, JudgingTask<'a>)> {
        let (trigger, rules) = (tasks.trigger, tasks.rules);
        let begin_after = match trigger {
            // From the first task on. No task waits for ever: unjudged tasks of a batch become rechecks, and the
            // recheck of a saved rule names its last judged device.
            Trigger::Batch | Trigger::Saved => None,
            Trigger::Recheck => tasks.random_key(),
            Trigger::Due | Trigger::Silence | Trigger::Sealed => {
                self.judging.progress.last(trigger).or_else(|| tasks.random_key())
            }
        };

        let mut tasks: Vec<_> = tasks.starting_after(begin_after.as_ref()).collect();
        // Sorting is stable: within both parts, the order after `begin_after` stays.
        tasks.sort_by_cached_key(|(key, task)| {
            task.may_need_silence_limit() || rules.get(&key.rule).is_none()
        });
        tasks
    }

    /// Judges a task; `None` if there was nothing to judge.
    async fn judge_task(
        &self,
        task: JudgingTask<'_>,
        key: &AlertKey,
        rules: &AlertRules,
    ) -> Result<Option<JudgementResult>, NotJudged> {
        let on_subject =
            |rule, touched| RuleOnSubject { rule, key, touched, rules, has_left: false };
        match task {
            JudgingTask::Rule { rule, touched } => {
                self.judge_and_store(on_subject(rule, touched)).await.map(Some)
            }
            JudgingTask::Due(state) => self.judge_state(state, rules).await.map(Some),
            JudgingTask::Silence(rule) => self.judge_if_silent(on_subject(rule, None)).await,
            JudgingTask::Sealed { rule, sealed_until } => {
                self.judge_up_to(sealed_until, on_subject(rule, None)).await.map(Some)
            }
        }
    }

    /// Judges a rule on one subject, and stores its state with the messages of each channel. The state is read before
    /// the readings. So of two concurrent judgements, the one with older readings is refused and begins again.
    pub(crate) async fn judge_and_store(
        &self,
        on_subject: RuleOnSubject<'_>,
    ) -> Result<JudgementResult, NotJudged> {
        let (RuleOnSubject { rule, key, rules, .. }, now) = (on_subject, self.table.now);
        for _ in 0..MAX_ATTEMPTS {
            let known = self.stored_state(rule, key).await?;
            let before = known.as_ref().map(|known| &known.state);
            let next = match &rule.definition.watch {
                Watch::Metric { .. } | Watch::Silence { .. } => {
                    Some(self.judge_episodes(on_subject, before).await?)
                }
                Watch::Budget { .. } | Watch::Demand { .. } | Watch::Counter { .. } => {
                    self.judge_figures(on_subject, before).await?
                }
            };
            let Some(NextState { state, messages }) = next else {
                return Ok(JudgementResult::default());
            };

            let next = StoredAlertState::next(known.as_ref(), key.clone(), state, now);
            let channels = rules.send_times(&rule.definition, now);
            let judgement = NewJudgement::new(rule, next, messages, &channels, now);
            if let Some(result) = self.put(&judgement).await.map_err(NotJudged::unstored)? {
                return Ok(result);
            }
        }

        Err(StoreError::Contended(format!("the alert {} on {}", key.rule, key.subject)).into())
    }
}
