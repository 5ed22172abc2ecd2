//! The laws of rollups and of what is read from them, for random readings and for the world's. Reads no
//! table.

mod energy;
mod fold;
mod integers;
mod net;
mod rows;
mod settings;

use std::collections::BTreeMap;

use domain::given::{self, at_millis, metric, number};
use domain::{
    Decimal, Device, DeviceObservation, Exact, MetricInfo, MetricName, MetricRollup, MetricRule,
    Reading, Row, Sample, TimeRange, Timestamp,
};

const HOUR: i64 = 3_600_000;
/// 2026-01-11T16:00:00Z, where a quarter of an hour begins.
const START: i64 = 1_768_147_200_000;

fn thousandths(value: i128) -> Decimal {
    number(&format!("{value}e-3"))
}

fn exact(digits: i128, exponent: i32) -> Exact {
    given::exact(&format!("{digits}e{exponent}"))
}

fn reading(millis: i64, room: Option<&str>, metrics: BTreeMap<MetricName, Decimal>) -> Reading {
    let room = room.map(|room| room.parse().expect("an id"));
    Reading::stored(given::device("meter"), at_millis(millis), room, metrics)
        .expect("it has a metric")
}

fn device(metrics: impl IntoIterator<Item = (MetricName, MetricInfo)>) -> Device {
    let any = reading(0, None, [(metric("temperature"), thousandths(21_500))].into());
    let id = given::device("meter");
    let device = DeviceObservation::of(&any).new_device(id, |_| true);
    device.changed(|it| it.metrics = metrics.into_iter().collect()).expect("few metrics")
}

/// The fold of some values.
fn fold<'a>(
    values: impl IntoIterator<Item = &'a Sample>,
    rule: &MetricRule,
) -> Option<MetricRollup> {
    let singles = values
        .into_iter()
        .filter(|it| !matches!(rule, MetricRule::Counter(_)) || it.value.is_positive())
        .map(|sample| MetricRollup::of(sample.clone(), rule));
    singles.reduce(|mut rollup, single| {
        rollup.append(&single, rule);
        rollup
    })
}

/// The answer for the rows between consecutive edges, each with the fold of the values inside.
fn answer<T>(
    values: &[Sample],
    edges: &[Timestamp],
    rule: &MetricRule,
    ask: impl Fn(&[Row<'_>]) -> T,
) -> T {
    let range = |edge: &[Timestamp]| given::range(edge[0], edge[1]);
    let ranges: Vec<TimeRange> = edges.windows(2).map(range).collect();
    let inside = |range: TimeRange| values.iter().filter(move |it| range.contains(it.at));
    let rollups: Vec<_> = ranges.iter().map(|range| fold(inside(*range), rule)).collect();
    let rows = ranges.into_iter().zip(&rollups);
    let rows = rows.map(|(range, rollup)| Row { range, rollup: rollup.as_ref() });
    ask(&rows.collect::<Vec<_>>())
}
