//! What makes one message only: the budget or the demand of a period, a step of a counter. Computes no figure.

use std::collections::BTreeMap;
use std::ops::Bound;

use chrono::TimeDelta;
use domain::{Exact, Timestamp};
use serde::{Deserialize, Serialize};

use crate::message::next_number;
use crate::rule::{Rule, Watch};
use crate::text::{self, numbers};

/// How long a period or step that had its message is remembered: longer than the longest period.
const REMEMBERED: TimeDelta = TimeDelta::days(40);
/// The greatest age of a counter's step that makes a message. Without this limit an import would make hundreds.
const MAX_AGE: TimeDelta = TimeDelta::days(1);

/// A figure that a rule compares with its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// The start of the period, or the time of the reading that ends the step.
    pub at: Timestamp,
    /// The energy in kWh, the least demand in kW, or the size of the step.
    pub value: Exact,
    /// Whether the figure is beyond the rule's limit. A step counts as beyond the limit if the rule watches steps of
    /// this kind.
    pub is_beyond: bool,
    /// For a step, the time of the reading at which the step begins. `None` while some steps are not known.
    pub before: Option<Timestamp>,
}

impl Figure {
    /// A figure of a period.
    pub const fn new(at: Timestamp, value: Exact, is_beyond: bool) -> Self {
        Self { at, value, is_beyond, before: None }
    }

    /// The told step that became this figure. A late or deleted reading moves the end of a step, so `all` figures lack
    /// the old end.
    fn moved_from(&self, told: &BTreeMap<Timestamp, u64>, all: &[Self]) -> Option<Timestamp> {
        let after = (Bound::Excluded(self.before?), Bound::Unbounded);
        let (next, _) = told.range(after).next()?;
        let is_gone = all.iter().all(|figure| figure.at != *next);
        is_gone.then_some(*next)
    }
}

/// The figures that had a message, of one rule on one subject.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FigureState {
    /// The periods or steps that had a message, each with the message's number.
    #[serde(with = "numbers")]
    pub told: BTreeMap<Timestamp, u64>,
    /// The number of the last message; 0 if there was none.
    pub number: u64,
    /// The kind of period that was judged. `None` for steps, and in states that older versions stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
    /// When the rule was saved, in the version that was judged last.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Timestamp>,
}

impl FigureState {
    /// The new state after `figures`, and the figures that get a message, each with the message's number. State and
    /// messages are stored together, as with [`fold_episodes`](crate::fold_episodes).
    ///
    /// An edit of the rule gives no period a second message while its figure is beyond the limit. A period within the
    /// new limit may get one later. If the edit changes the kind of period, all are forgotten.
    pub fn judge<'a>(
        &self,
        rule: &Rule,
        figures: &'a [Figure],
        now: Timestamp,
    ) -> (Self, Vec<(u64, &'a Figure)>) {
        let mut state = self.clone();
        let is_edited = self.changed != Some(rule.changed);
        state.changed = Some(rule.changed);
        state.per = rule.watch.period().map(|period| period.to_string());
        if self.per.is_some() && self.per != state.per {
            // A month and its first day begin at the same instant.
            state.told.clear();
        }

        state.told.retain(|at, _| now.since(*at) < REMEMBERED);

        let is_step = matches!(rule.watch, Watch::Counter { .. });
        let mut news = Vec::new();
        for figure in figures {
            if is_edited && !figure.is_beyond {
                state.told.remove(&figure.at);
            }
            let is_fresh = !is_step || now.since(figure.at) < MAX_AGE;
            if !figure.is_beyond
                || !is_fresh
                || !rule.may_send(now)
                || state.told.contains_key(&figure.at)
            {
                continue;
            }
            if let Some(before) = figure.moved_from(&state.told, figures) {
                let number = state.told.remove(&before);
                state.told.extend(number.map(|number| (figure.at, number)));
                continue;
            }
            state.number = next_number(state.number, now);
            state.told.insert(figure.at, state.number);
            news.push((state.number, figure));
        }

        (state, news)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOUR: i64 = 3_600_000;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_millis((480_000 + hour) * HOUR).expect("in range")
    }

    fn rule(members: serde_json::Value, changed: i64) -> Rule {
        Rule::from_json(members, at(changed)).expect("a rule")
    }

    fn figure(hour: i64, is_beyond: bool) -> Figure {
        Figure::new(at(hour), Exact::from(5_i64), is_beyond)
    }

    /// The new state after `figures`, and the figures to tell. Message numbers continue from the state's last number,
    /// or begin with the time.
    fn told(
        state: &FigureState,
        rule: &Rule,
        figures: &[Figure],
        now: i64,
    ) -> (FigureState, usize) {
        let (next, news) = state.judge(rule, figures, at(now));
        let time = u64::try_from(at(now).as_millis() / 1_000).expect("after 1970");
        let first = if state.number == 0 { time } else { state.number + 1 };
        let numbers = news.iter().map(|(number, _)| *number);
        assert!(numbers.eq((first..).take(news.len())), "{news:?}");
        (next, news.len())
    }

    #[test]
    fn a_budget_is_told_once_a_period_and_again_by_a_new_limit() {
        let budget = |changed| {
            rule(json!({"name": "n", "device": "d", "budget_kwh": 5, "per": "day"}), changed)
        };
        let (state, news) = told(&FigureState::default(), &budget(0), &[figure(0, false)], 5);
        assert_eq!(news, 0);
        let (state, news) = told(&state, &budget(0), &[figure(0, true)], 6);
        assert_eq!(news, 1);
        let (state, news) = told(&state, &budget(0), &[figure(0, true)], 7);
        assert_eq!(news, 0);
        let (same, news) = told(&state, &budget(8), &[figure(0, true)], 8);
        assert_eq!(news, 0, "still beyond");
        let (higher, _) = told(&same, &budget(9), &[figure(0, false)], 9);
        let (higher, news) = told(&higher, &budget(9), &[figure(0, true)], 10);
        assert_eq!(news, 1);
        assert_eq!(told(&higher, &budget(9), &[figure(24, true)], 30).1, 1, "the next day");
    }

    #[test]
    fn a_day_that_was_told_is_not_the_month_that_begins_with_it() {
        let budget = |per: &str, changed| {
            rule(json!({"name": "n", "device": "d", "budget_kwh": 5, "per": per}), changed)
        };
        let (day, news) = told(&FigureState::default(), &budget("day", 0), &[figure(0, true)], 6);
        assert_eq!(news, 1);
        let (month, news) = told(&day, &budget("month", 7), &[figure(0, true)], 7);
        assert_eq!(news, 1, "the month is told too");
        assert_eq!(told(&month, &budget("month", 7), &[figure(0, true)], 8).1, 0);

        let unknown = FigureState { per: None, ..day };
        assert_eq!(told(&unknown, &budget("day", 7), &[figure(0, true)], 8).1, 0, "as before");
    }

    #[test]
    fn steps_of_the_last_day_are_told_however_late_they_are_found() {
        let counter =
            rule(json!({"name": "n", "device": "d", "metric": "kwh", "counter": ["reset"]}), 0);
        let figures = [figure(0, true), figure(30, true), figure(40, false)];
        let (state, news) = told(&FigureState::default(), &counter, &figures, 41);
        assert_eq!(news, 1, "an old one is history");
        let late = [figure(29, true), figure(30, true)];
        let (state, news) = told(&state, &counter, &late, 42);
        assert_eq!(news, 1);
        let stored = serde_json::to_string(&state).expect("JSON");
        assert_eq!(serde_json::from_str::<FigureState>(&stored).expect("what was told"), state);
        let (state, _) = told(&state, &counter, &[], 42 + 41 * 24);
        assert!(state.told.is_empty());
        let off = Rule { is_on: false, ..counter };
        assert_eq!(told(&state, &off, &[figure(1_030, true)], 1_031).1, 0);
    }
}
