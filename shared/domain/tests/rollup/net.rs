//! Net meters: falls are negative, a new cycle is a reset, and any grouping and any partition gives what integers say.

use domain::given;
use domain::{
    CounterRule, Flag, FoldRules, MetricInfo, MetricRule, Neighbours, OfKind, Rollup, Row,
    TimeRange, increases,
};
use proptest::prelude::*;

use super::{at_millis, device, exact, metric, reading, thousandths};

/// A value and the cycle that its reading tells, if it tells one; or a reading that has the cycle alone.
type Reported = (Option<i128>, Option<i128>);

fn info(is_net: bool, cycle: bool) -> MetricInfo {
    MetricInfo {
        is_net,
        cycle: cycle.then(|| metric("attr_last_reset")),
        ..MetricInfo::from(&metric("cumulative_kwh_p"))
    }
}

/// The readings of a meter, a minute apart.
fn readings(reported: &[Reported]) -> Vec<domain::Reading> {
    let each =
        reported.iter().zip(0..).filter(|((value, cycle), _)| value.is_some() || cycle.is_some());
    let reading = |((value, cycle), n): (&Reported, i64)| {
        let value = value.map(|it| (metric("cumulative_kwh_p"), thousandths(it)));
        let cycle = cycle.map(|it| (metric("attr_last_reset"), thousandths(it)));
        reading(n * 60_000, None, value.into_iter().chain(cycle).collect())
    };
    each.map(reading).collect()
}

/// What was used by integers: each value against the one before it.
fn used(reported: &[Reported]) -> i128 {
    let values: Vec<(i128, Option<i128>)> =
        reported.iter().filter_map(|(value, cycle)| Some(((*value)?, *cycle))).collect();
    let steps = values.windows(2).map(|pair| match (pair[0], pair[1]) {
        ((_, Some(old)), (value, Some(new))) if old != new => value,
        ((old, _), (new, _)) => new - old,
    });
    steps.sum()
}

fn reported() -> impl Strategy<Value = Vec<Reported>> {
    let value =
        prop_oneof![6 => (-400_i128..400).prop_map(Some), 1 => Just(Some(0)), 1 => Just(None)];
    let cycle = prop_oneof![5 => (1_i128..3).prop_map(Some), 1 => Just(None)];
    prop::collection::vec((value, cycle), 2..20)
}

proptest! {
    #[test]
    fn a_net_meter_counts_its_falls_and_begins_again_with_a_new_cycle(
        reported in reported(),
        cut in 0_usize..20,
        edges in prop::collection::btree_set(0_i64..1_200_000, 0..4),
    ) {
        let of = device([(metric("cumulative_kwh_p"), info(true, true))]);
        let rules = FoldRules::of(&of);
        let readings = readings(&reported);
        let whole = Rollup::fold(&readings, &rules);
        let (left, right) = readings.split_at(cut.min(readings.len()));
        let mut parts = Rollup::fold(left, &rules);
        parts.append(&Rollup::fold(right, &rules), &rules);
        prop_assert_eq!(&parts, &whole);
        let Some(metric_rollup) = whole.metrics.get(&metric("cumulative_kwh_p")) else { return Ok(()) };
        let OfKind::Counter { increase, .. } = &metric_rollup.of_kind else { panic!("a counter") };
        prop_assert_eq!(increase, &exact(used(&reported), -3));

        // The rows of any partition add up to it.
        let MetricRule::Counter(rule) = MetricRule::of(&info(true, true)) else { panic!("a counter") };
        let mut edges: Vec<i64> = edges.into_iter().filter(|edge| *edge > 0).collect();
        edges.insert(0, 0);
        edges.push(1_200_001);
        let ranges: Vec<TimeRange> = edges
            .windows(2)
            .map(|edge| given::range(at_millis(edge[0]), at_millis(edge[1])))
            .collect();
        let folds: Vec<Rollup> = ranges
            .iter()
            .map(|range| Rollup::fold(readings.iter().filter(|it| range.contains(it.at)), &rules))
            .collect();
        let rows: Vec<Row<'_>> = ranges
            .iter()
            .zip(&folds)
            .map(|(range, fold)| Row { range: *range, rollup: fold.metrics.get(&metric("cumulative_kwh_p")) })
            .collect();
        let sum = increases(&rows, &Neighbours::default(), &rule)
            .into_iter()
            .filter_map(|row| row.amount)
            .fold(exact(0, 0), |sum, amount| &sum + &amount);
        prop_assert_eq!(sum, exact(used(&reported), -3));
    }
}

fn steps(info: &MetricInfo, reported: &[Reported]) -> Vec<(String, Option<Flag>)> {
    let rule = MetricRule::of(info);
    let MetricRule::Counter(counter) = &rule else { panic!("a counter") };
    let readings = readings(reported);
    let name = metric("cumulative_kwh_p");
    let samples: Vec<_> = readings.iter().filter_map(|it| rule.sample(it, &name)).collect();
    let steps = samples.windows(2).map(|pair| CounterRule::step(counter, &pair[0], &pair[1]));
    steps.map(|step| (step.amount.to_string(), step.flag)).collect()
}

#[test]
fn a_fall_is_negative_on_a_net_meter_only_and_a_jump_is_suspect_on_each() {
    let value = |it: i128| (Some(it), None);
    let falls = [value(9_000), value(7_500), value(7_750)];
    assert_eq!(steps(&info(true, true), &falls), [("-1.5".into(), None), ("0.25".into(), None)]);
    assert_eq!(
        steps(&info(false, false), &falls),
        [("0".to_owned(), Some(Flag::Suspect)), ("0.25".to_owned(), None)]
    );
    let boots = [value(9_000_000), value(0), value(9_000_000)];
    let suspect = ("0".to_owned(), Some(Flag::Suspect));
    assert_eq!(steps(&info(true, true), &boots), [suspect.clone(), suspect]);
    let below_zero = [value(500), value(-500), value(0)];
    assert_eq!(steps(&info(true, true), &below_zero), [("-1".into(), None), ("0.5".into(), None)]);
    assert_eq!(steps(&info(false, false), &below_zero), [], "only positive values take part");
}

#[test]
fn a_new_cycle_is_a_reset_even_where_the_value_is_larger() {
    let day = [(Some(400), Some(1)), (Some(500), Some(1)), (Some(700), Some(2)), (Some(600), None)];
    for is_net in [true, false] {
        let steps = steps(&info(is_net, true), &day);
        assert_eq!(steps[..2], [("0.1".into(), None), ("0.7".into(), Some(Flag::Reset))]);
    }
    let unknown = steps(&info(true, true), &day[2..]);
    assert_eq!(unknown, [("-0.1".to_owned(), None)], "who tells no cycle begins none");
}
