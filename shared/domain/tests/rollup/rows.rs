//! Rows of a series: any partition of a range adds up to its total, and each row is what integers say.

use chrono::TimeDelta;
use domain::{
    CounterRule, DEFAULT_HOLD, Exact, MetricInfo, MetricRule, Neighbours, RowArea, RowIncrease,
    Sample, TimeRange, Timestamp, areas, increases,
};
use proptest::prelude::*;

use super::integers::{Value, counter, edges, extreme, pairs, resolved, samples, times, union};
use super::{HOUR, answer, at_millis, exact, metric};

/// The values between `from` and `to`, and those of the neighbours that are asked.
fn visible(values: &[Value], from: i64, to: i64, before: bool, after: bool) -> Vec<Value> {
    let before = values.iter().rfind(|(at, _)| *at < from).filter(|_| before);
    let after = values.iter().find(|(at, _)| *at >= to).filter(|_| after);
    let inside = values.iter().filter(|(at, _)| (from..to).contains(at));
    before.into_iter().chain(inside).chain(after).copied().collect()
}

fn neighbours(visible: &[Value], from: i64, to: i64) -> Neighbours {
    let visible = samples(visible);
    Neighbours {
        before: visible.first().filter(|sample| sample.at < at_millis(from)).cloned(),
        after: visible.last().filter(|sample| sample.at >= at_millis(to)).cloned(),
    }
}

fn sum(rows: &[RowIncrease]) -> Option<Exact> {
    let amounts = rows.iter().filter_map(|row| row.amount.clone());
    amounts.reduce(|sum, amount| &sum + &amount)
}

proptest! {
    #[test]
    fn rows_of_a_counter_add_up_in_any_partition(
        (meter, values) in counter(),
        edges in edges(),
        before: bool,
        after: bool,
    ) {
        let edges = resolved(&edges, &values);
        let (from, to) = (edges[0], *edges.last().expect("two edges"));
        let counting: Vec<Value> = values.iter().filter(|(_, it)| *it > 0).copied().collect();
        let seen = visible(&counting, from, to, before, after);
        let neighbours = neighbours(&seen, from, to);
        let rule = MetricRule::of(&meter.info());
        let counter = CounterRule::of(&meter.info());
        let values = samples(&values);
        let ask = |edges: &[i64]| {
            let edges: Vec<Timestamp> = edges.iter().copied().map(at_millis).collect();
            answer(&values, &edges, &rule, |rows| increases(rows, &neighbours, &counter))
        };

        let rows = ask(&edges);
        for (edge, row) in edges.windows(2).zip(&rows) {
            let mut expected: Option<i128> = None;
            let (mut flags, mut estimated) = (vec![], vec![]);
            for (a, b) in pairs(&seen) {
                let (start, end) = (edge[0].max(a.0), edge[1].min(b.0));
                if start >= end {
                    continue;
                }
                let (step, flag) = meter.step(a, b);
                let elapsed = |at: i64| step * 1_000_000 * i128::from(at - a.0);
                let part = |at: i64| elapsed(at).div_euclid(i128::from(b.0 - a.0));
                let share = part(end) - part(start);
                *expected.get_or_insert(0) += share;
                flags.extend(flag);
                let is_inside = edge[0] <= a.0 && b.0 <= edge[1];
                if !is_inside && b.0 - a.0 > HOUR / 4 {
                    let step = TimeRange::new(at_millis(a.0), at_millis(b.0)).expect("some time");
                    estimated.push((exact(share, -9), step));
                }
            }
            prop_assert_eq!(&row.amount, &expected.map(|billionths| exact(billionths, -9)));
            prop_assert_eq!(row.flags, union(flags));
            let parts: Vec<(Exact, TimeRange)> =
                row.estimated.iter().map(|part| (part.amount.clone(), part.step)).collect();
            prop_assert_eq!(parts, estimated);
        }
        let whole = ask(&[from, to]);
        prop_assert_eq!(sum(&whole), sum(&rows));
        let flags = |rows: &[RowIncrease]| union(rows.iter().flat_map(|row| row.flags.iter()));
        prop_assert_eq!(flags(&whole), flags(&rows));
    }

    #[test]
    fn rows_of_a_power_add_up_in_any_partition(
        (times, powers) in (1..40usize).prop_flat_map(|n| {
            (times(n), prop::collection::vec(-5_000_000..5_000_000i128, n))
        }),
        edges in edges(),
        before: bool,
        after: bool,
        hold in prop::option::of(1..60i64),
        age in prop_oneof![Just(0), -HOUR..HOUR],
    ) {
        let values: Vec<Value> = times.into_iter().zip(powers).collect();
        let edges = resolved(&edges, &values);
        let (from, to) = (edges[0], *edges.last().expect("two edges"));
        let seen = visible(&values, from, to, before, after);
        let neighbours = neighbours(&seen, from, to);
        let hold = hold.map_or(DEFAULT_HOLD, TimeDelta::minutes);
        let latest = seen.last().map_or(0, |(at, _)| *at);
        // The last value may be of a device whose clock is ahead.
        let now = latest + age;
        let rule = MetricRule::Power(hold);
        let values = samples(&values);
        let ask = |edges: &[i64]| {
            let edges: Vec<Timestamp> = edges.iter().copied().map(at_millis).collect();
            answer(&values, &edges, &rule, |rows| areas(rows, &neighbours, hold, at_millis(now)))
        };

        let rows = ask(&edges);
        let ends = seen.iter().skip(1).map(|(at, _)| *at).chain([now]);
        let held: Vec<(i64, i64, i128)> = seen
            .iter()
            .zip(ends)
            .map(|((at, watts), end)| (*at, end.min(at + hold.num_milliseconds()), *watts))
            .collect();
        for (edge, row) in edges.windows(2).zip(&rows) {
            let (mut area, mut length) = (0, 0);
            for (start, end, watts) in &held {
                let millis = (edge[1].min(*end) - edge[0].max(*start)).max(0);
                area += watts * i128::from(millis);
                length += millis;
            }
            let area = RowArea { area: exact(area, -3), held: TimeDelta::milliseconds(length) };
            prop_assert_eq!(row, &Some(area).filter(|_| length > 0));
        }
        let mut sum = RowArea::default();
        for row in rows.iter().flatten() {
            sum.area += &row.area;
            sum.held += row.held;
        }
        let whole = ask(&[from, to]).remove(0);
        prop_assert_eq!(whole, Some(sum).filter(|sum| sum.held > TimeDelta::zero()));
    }

    #[test]
    fn rows_of_the_largest_and_smallest_values_add_up(
        values in prop::collection::vec(extreme(), 1..8),
        every in 1..HOUR,
    ) {
        let values: Vec<Sample> =
            (0..).zip(values).map(|(n, value)| Sample::new(at_millis(n * 500_000), value)).collect();
        let info = MetricInfo::from(&metric("cumulative_kwh_p"));
        let edges: Vec<Timestamp> = (0..=8).map(|n| at_millis(n * every)).collect();
        let counting = || values.iter().filter(|sample| sample.value.is_positive());
        let neighbours =
            Neighbours { before: None, after: counting().find(|it| it.at >= edges[8]).cloned() };
        let ask = |edges: &[Timestamp]| {
            answer(&values, edges, &MetricRule::of(&info), |rows| {
                increases(rows, &neighbours, &CounterRule::of(&info))
            })
        };
        prop_assert_eq!(sum(&ask(&edges)), sum(&ask(&[edges[0], edges[8]])));
    }
}
