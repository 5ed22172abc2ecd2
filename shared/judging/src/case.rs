//! A rule on one subject, and its judgement by the kind of the rule. Chooses no subjects.

use alerts::{Subject, Watch};
use domain::Timestamp;
use series::Failure;
use table::{AlertKey, Invocation, StoredRule};

use crate::judged::for_one_of_several;
use crate::judging::Judging;
use crate::outcome::Outcome;
use crate::ports::Store;
use crate::rules::Rules;

/// What is to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The rule.
    pub rule: &'a StoredRule,
    /// The device or room.
    pub subject: &'a Subject,
    /// The earliest instant at which readings were stored, overwritten or deleted; `None` where the time alone has
    /// passed or the rule was saved.
    pub touched: Option<Timestamp>,
}

impl Judging {
    /// Judges a rule on one subject, and stores its state with the messages that each channel is to send.
    pub async fn judge(
        &self,
        store: &impl Store,
        rules: &Rules,
        case: Case<'_>,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Outcome, Failure> {
        let Case { rule, subject, touched } = case;
        let invocation = &for_one_of_several(invocation);
        let key = AlertKey { rule: rule.id.clone(), subject: subject.clone() };
        match &rule.rule.watch {
            Watch::Metric { .. } | Watch::Silence { .. } => {
                self.judge_episodes(store, rules, (rule, &key), touched, now, invocation).await
            }
            Watch::Budget { .. } | Watch::Demand { .. } | Watch::Counter { .. } => {
                self.judge_once(store, rules, (rule, &key), now, invocation).await
            }
        }
    }
}
