//! Episodes: times during which conditions hold. Reads nothing.

use serde::Serialize;
use std::collections::BTreeMap;

use chrono::TimeDelta;

use crate::{
    Condition, Decimal, FoldRules, MetricMeans, MetricName, MetricRule, QuarterHour, Reading,
    TimeRange, Timestamp,
};

/// The data from which an episode is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Basis {
    /// Means of 15 minutes.
    Mean15,
    /// Readings.
    Readings,
}

/// A time without a gap during which all conditions hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Episode {
    /// The time in which the conditions hold.
    pub range: TimeRange,
    /// The data from which the episode is computed.
    pub basis: Basis,
    /// The smallest and the largest value of each metric during the episode.
    pub extremes: BTreeMap<MetricName, Extremes>,
}

/// The smallest and the largest value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extremes {
    /// The smallest value.
    pub min: Decimal,
    /// The largest value.
    pub max: Decimal,
}

impl Extremes {
    fn join(&mut self, other: &Self) {
        if other.min < self.min {
            self.min.clone_from(&other.min);
        }
        if other.max > self.max {
            self.max.clone_from(&other.max);
        }
    }
}

/// The longest time for which a value is valid if its metric has no newer value.
pub const MAX_HOLD: TimeDelta = TimeDelta::minutes(15);

/// Joins matching quarters to episodes: one episode for each run of consecutive quarters. The quarters are in order.
pub fn episodes(matching: &[(QuarterHour, BTreeMap<MetricName, MetricMeans>)]) -> Vec<Episode> {
    let runs = matching.chunk_by(|(a, _), (b, _)| a.end() == b.start());
    let episode = |run: &[(QuarterHour, BTreeMap<MetricName, MetricMeans>)]| {
        let mut extremes = BTreeMap::new();
        for (name, means) in run.iter().flat_map(|(_, values)| values) {
            note(&mut extremes, name, &means.min, &means.max);
        }
        let range = TimeRange::new(run[0].0.start(), run[run.len() - 1].0.end());
        let range = range.expect("a quarter is longer than nothing");
        Episode { range, basis: Basis::Mean15, extremes }
    };
    runs.map(episode).collect()
}

/// The episodes within a range, computed from readings. The readings are in order and may begin before the range. Each
/// value is valid until the next value of its metric, for 15 minutes at most. Without a valid value of each metric
/// there is no episode. Values that rollups leave out, such as a counter's 0, are ignored.
pub fn exact_episodes(
    readings: &[Reading],
    rules: &FoldRules,
    conditions: &[Condition],
    range: TimeRange,
) -> Vec<Episode> {
    let mut episodes: Vec<Episode> = Vec::new();
    let mut tracked: Vec<TrackedCondition<'_>> =
        conditions.iter().map(|condition| TrackedCondition::of(condition, rules)).collect();

    let ends = readings.iter().map(|reading| reading.at).skip(1).chain([range.to()]);
    for (reading, end) in readings.iter().zip(ends) {
        for condition in &mut tracked {
            condition.take(reading);
        }

        let matches = tracked.iter().map(|condition| condition.newest_match);
        let Some(matches) = matches.collect::<Option<Vec<_>>>() else { continue };
        let Some(until) = matches.iter().map(|newest| newest.until).min() else { continue };

        let (from, to) = (reading.at.max(range.from()), end.min(until).min(range.to()));
        let Ok(held) = TimeRange::new(from, to) else { continue };

        let episode = extended_or_new(&mut episodes, held);
        for MatchingValue { metric, value, .. } in matches {
            note(&mut episode.extremes, metric, value, value);
        }
    }
    episodes
}

/// A condition while readings are taken one after the other.
struct TrackedCondition<'a> {
    condition: &'a Condition,
    rule: MetricRule,
    /// The newest value of the metric; `None` if there is no value yet or the newest value does not match.
    newest_match: Option<MatchingValue<'a>>,
}

/// A value that matches a condition.
#[derive(Clone, Copy)]
struct MatchingValue<'a> {
    metric: &'a MetricName,
    value: &'a Decimal,
    /// The end of the time for which the value is valid, if no newer value follows.
    until: Timestamp,
}

impl<'a> TrackedCondition<'a> {
    fn of(condition: &'a Condition, rules: &FoldRules) -> Self {
        Self { condition, rule: rules.rule(&condition.metric), newest_match: None }
    }

    fn take(&mut self, reading: &'a Reading) {
        let Condition { metric, interval } = self.condition;
        let value = reading.metrics().get(metric).filter(|value| self.rule.counts(value));
        if let Some(value) = value {
            let until = reading.at.saturating_add(MAX_HOLD);
            self.newest_match =
                interval.contains(value).then_some(MatchingValue { metric, value, until });
        }
    }
}

/// The last episode, extended if it ends where `held` begins; else a new episode.
fn extended_or_new(episodes: &mut Vec<Episode>, held: TimeRange) -> &mut Episode {
    match episodes.last_mut() {
        Some(last) if last.range.to() == held.from() => {
            last.range = TimeRange::new(last.range.from(), held.to()).expect("it only grows");
        }
        _ => {
            let (basis, extremes) = (Basis::Readings, BTreeMap::new());
            episodes.push(Episode { range: held, basis, extremes });
        }
    }
    episodes.last_mut().expect("it was extended or added")
}

fn note(
    extremes: &mut BTreeMap<MetricName, Extremes>,
    name: &MetricName,
    min: &Decimal,
    max: &Decimal,
) {
    let new = Extremes { min: min.clone(), max: max.clone() };
    match extremes.get_mut(name) {
        Some(known) => known.join(&new),
        None => drop(extremes.insert(name.clone(), new)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::{self, at_minute, device, metric, number};

    #[test]
    fn quarters_that_follow_each_other_are_one_episode() {
        let quarter = |n: i64, min: &str, max: &str| {
            let means = MetricMeans { mean: number(min), min: number(min), max: number(max) };
            (QuarterHour::of(at_minute(15 * n)), [(metric("t"), means)].into())
        };
        let matching = [quarter(1, "28", "29"), quarter(2, "27.5", "28.5"), quarter(4, "28", "28")];
        let found = episodes(&matching);
        let spans: Vec<_> = found.iter().map(|it| (it.range.from(), it.range.to())).collect();
        assert_eq!(spans, [(at_minute(15), at_minute(45)), (at_minute(60), at_minute(75))]);
        let extremes = &found[0].extremes[&metric("t")];
        assert_eq!((extremes.min.as_str(), extremes.max.as_str()), ("27.5", "29"));
        assert!(episodes(&[]).is_empty());
    }

    fn reading(minute: i64, metrics: &[(&str, &str)]) -> Reading {
        let metrics = metrics.iter().map(|(of, value)| (metric(of), number(value))).collect();
        Reading::new(device("d"), at_minute(minute), None, metrics).expect("valid")
    }

    fn exact(readings: &[Reading], (from, to): (i64, i64)) -> Vec<(Timestamp, Timestamp)> {
        let condition = |of: &str, text: &str| Condition {
            metric: metric(of),
            interval: given::interval(text),
        };
        let conditions = [condition("t", "28.."), condition("h", "70..")];
        let range = given::range(at_minute(from), at_minute(to));
        let found = exact_episodes(readings, &FoldRules::default(), &conditions, range);
        found.iter().map(|it| (it.range.from(), it.range.to())).collect()
    }

    #[test]
    fn a_counters_zero_is_no_value_as_in_rollups() {
        let meter = "cumulative_kwh_p";
        let readings =
            [(1, "4"), (5, "0"), (9, "6"), (12, "0")].map(|(at, it)| reading(at, &[(meter, it)]));
        let interval = given::interval("..5");
        let conditions = [Condition { metric: metric(meter), interval }];
        let range = given::range(at_minute(0), at_minute(20));
        let found = exact_episodes(&readings, &FoldRules::default(), &conditions, range);
        let spans: Vec<_> = found.iter().map(|it| (it.range.from(), it.range.to())).collect();
        assert_eq!(spans, [(at_minute(1), at_minute(9))]);
    }

    #[test]
    fn values_of_different_readings_hold_together() {
        let readings = [
            reading(1, &[("t", "29")]),
            reading(3, &[("h", "75")]),
            reading(6, &[("t", "30")]),
            reading(8, &[("co2", "600")]),
            reading(9, &[("h", "60")]),
            reading(12, &[("h", "71"), ("t", "28")]),
        ];
        assert_eq!(
            exact(&readings, (0, 20)),
            [(at_minute(3), at_minute(9)), (at_minute(12), at_minute(20))]
        );
    }

    #[test]
    fn a_value_holds_for_15_minutes_at_most_and_a_spike_alone_is_no_coincidence() {
        assert_eq!(
            exact(&[reading(1, &[("t", "29"), ("h", "75")])], (0, 40)),
            [(at_minute(1), at_minute(16))]
        );
        let apart =
            [reading(1, &[("t", "40"), ("h", "10")]), reading(2, &[("t", "10"), ("h", "99")])];
        assert_eq!(exact(&apart, (0, 15)), []);
        assert_eq!(exact(&[], (0, 15)), []);
        let before = [reading(31, &[("t", "29")]), reading(36, &[("h", "75")])];
        assert_eq!(exact(&before, (40, 55)), [(at_minute(40), at_minute(46))]);
    }
}
