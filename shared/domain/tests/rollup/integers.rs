//! Random counters, and their steps in an arithmetic on integers that shares nothing with the product's.

use std::collections::{BTreeMap, BTreeSet};

use domain::given::{self, number};
use domain::{Decimal, Exchange, Flag, Flags, MetricInfo, Sample, Verdict};
use proptest::prelude::*;
use proptest::sample::Index;

use super::{HOUR, at_millis, metric, thousandths};

/// A value: milliseconds after the start, and thousandths.
pub(crate) type Value = (i64, i128);

pub(crate) fn samples(values: &[Value]) -> Vec<Sample> {
    let sample = |(at, value): &Value| Sample::new(at_millis(*at), thousandths(*value));
    values.iter().map(sample).collect()
}

pub(crate) fn pairs(values: &[Value]) -> impl Iterator<Item = (Value, Value)> + '_ {
    values.windows(2).map(|pair| (pair[0], pair[1]))
}

/// The settings of a counter, in integers.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    /// The unit, and its watt-hours if it is one of energy.
    pub(crate) unit: (&'static str, Option<i128>),
    pub(crate) max_w: Option<i128>,
    pub(crate) tolerance: Option<i128>,
    pub(crate) modulus: Option<i128>,
    pub(crate) exchanges: BTreeMap<i64, (i128, i128)>,
    pub(crate) verdicts: BTreeMap<i64, Verdict>,
}

impl Meter {
    pub(crate) fn info(&self) -> MetricInfo {
        let exchange =
            |(old, new): &(i128, i128)| Exchange { old: thousandths(*old), new: thousandths(*new) };
        MetricInfo {
            unit: Some(given::unit(self.unit.0)),
            max_w: self.max_w.map(|watts| thousandths(watts * 1000)),
            tolerance: self.tolerance.map(thousandths),
            modulus: self.modulus.map(thousandths),
            exchanges: self
                .exchanges
                .iter()
                .map(|(at, it)| (at_millis(*at), exchange(it)))
                .collect(),
            verdicts: self.verdicts.iter().map(|(at, it)| (at_millis(*at), *it)).collect(),
            ..MetricInfo::from(&metric("cumulative_kwh_p"))
        }
    }

    /// The thousandths between two values, and the flag.
    pub(crate) fn step(&self, from: Value, to: Value) -> (i128, Option<Flag>) {
        let ((start, old), (end, new)) = (from, to);
        let (amount, flag, accepted) = self.unjudged(from, to);
        let is_exchanged = self.exchanges.keys().any(|at| start < *at && *at <= end);
        let is_fall = new < old && !is_exchanged;
        let wrapped = self.modulus.map(|modulus| new - old + modulus).filter(|it| *it >= 0);
        match (self.verdicts.get(&end), flag) {
            (None, _) | (_, None | Some(Flag::Exchanged)) => (amount, flag),
            (Some(Verdict::Accept), _) => (accepted, Some(Flag::Accepted)),
            (Some(Verdict::Discard), _) => (0, Some(Flag::Discarded)),
            (Some(Verdict::Reset), _) if is_fall => (new, Some(Flag::Reset)),
            (Some(Verdict::Dip), _) if is_fall => (new - old, Some(Flag::Dip)),
            (Some(Verdict::Wrap), _) if is_fall && wrapped.is_some() => {
                (wrapped.expect("there is one"), Some(Flag::Wrapped))
            }
            _ => (amount, flag),
        }
    }

    /// The thousandths between two values, the flag, and what counts if a person accepts it.
    fn unjudged(&self, (start, old): Value, (end, new): Value) -> (i128, Option<Flag>, i128) {
        let mut legs = vec![(old, new)];
        for (at, (last, first)) in &self.exchanges {
            if start < *at && *at <= end {
                legs.last_mut().expect("one leg").1 = *last;
                legs.push((*first, new));
            }
        }
        let place = |value: i128| [1000, 100, 10].into_iter().find(|it| value % it == 0);
        let resolution = place(old).unwrap_or(1).min(place(new).unwrap_or(1));
        let default = self.unit.1.map_or(0, |watt_hours| 1_000_000 / watt_hours);
        let tolerance = self.tolerance.unwrap_or(default).max(resolution);
        let possible = |amount: i128| {
            let watt_hours = self.unit.1.map(|watt_hours| (amount - tolerance) * watt_hours);
            let limit = self.max_w.unwrap_or(50_000) * i128::from(end - start) * 1000;
            watt_hours.is_none_or(|it| it * i128::from(HOUR) <= limit)
        };
        let suspect = |amount: i128| (0, Some(Flag::Suspect), amount);
        let found = |amount: i128, flag: Flag| (amount, Some(flag), amount);
        if legs.len() > 1 {
            let used: i128 = legs.iter().map(|(from, to)| to - from).sum();
            let falls = legs.iter().any(|(from, to)| from - to > tolerance);
            return if falls || !possible(used) {
                suspect(used)
            } else {
                found(used, Flag::Exchanged)
            };
        }
        let wrapped = self.modulus.map(|modulus| new - old + modulus);
        match (new - old, wrapped) {
            (rise @ 0.., _) if possible(rise) => (rise, None, rise),
            (rise @ 0.., _)
                if self.modulus.is_some_and(|it| (-tolerance..0).contains(&(rise - it))) =>
            {
                found(rise - self.modulus.expect("there is one"), Flag::Dip)
            }
            (rise @ 0.., _) => suspect(rise),
            (fall, _) if -fall <= tolerance && 10 * new >= 9 * old => found(fall, Flag::Dip),
            (_, Some(wrapped @ 0..)) if possible(wrapped) => {
                let was_near = self.modulus.is_some_and(|it| 10 * old >= 9 * it);
                if was_near { found(wrapped, Flag::Wrapped) } else { found(new, Flag::Ambiguous) }
            }
            _ if possible(new) => found(new, Flag::Reset),
            _ => suspect(new),
        }
    }
}

pub(crate) fn union(flags: impl IntoIterator<Item = Flag>) -> Flags {
    flags.into_iter().map(Flags::from).fold(Flags::default(), Flags::union)
}

/// The time between two readings.
fn gap() -> impl Strategy<Value = i64> {
    let minutes = |n: i64| n * 60_000;
    prop_oneof![
        1 => Just(1),
        3 => Just(10_000),
        3 => Just(minutes(1)),
        3 => Just(minutes(5)),
        3 => Just(minutes(15)),
        1 => Just(minutes(15) + 1),
        1 => Just(minutes(75)),
        3 => 1..minutes(40),
    ]
}

/// The values of a counter that rises, falls, stands still, and reports nonsense.
fn counted(length: usize) -> impl Strategy<Value = Vec<i128>> {
    let next = prop_oneof![
        6 => (0..150i128).prop_map(|rise| (true, rise)),
        2 => (0..3i128).prop_map(|rise| (true, 100 * rise)),
        2 => (-1200..0i128).prop_map(|fall| (true, fall)),
        1 => (0..60_000i128).prop_map(|value| (false, value)),
        1 => (1..100i128).prop_map(|below| (false, 1_000_000 - below)),
        1 => prop_oneof![Just(0), Just(-1000)].prop_map(|value| (false, value)),
        1 => Just((false, 5_000_000_000)),
    ];
    prop::collection::vec(next, length).prop_map(|changes| {
        let mut last = 808_100;
        let value = |(relative, value): (bool, i128)| {
            last = if relative { last + value } else { value };
            last
        };
        changes.into_iter().map(value).collect()
    })
}

pub(crate) fn times(length: usize) -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(gap(), length).prop_map(|gaps| {
        let later = |at: &mut i64, gap: i64| {
            *at += gap;
            Some(*at)
        };
        gaps.into_iter().scan(0, later).collect()
    })
}

/// The settings of a counter that has values at these times.
pub(crate) fn meter(times: Vec<i64>) -> impl Strategy<Value = Meter> {
    let last = times.last().copied().unwrap_or(0) + 1;
    let at_a_value = any::<Index>().prop_map(move |index| times[index.index(times.len())]);
    let at = prop_oneof![at_a_value.clone(), 0..last];
    let unit = prop_oneof![
        1 => Just(("Wh", Some(1))),
        3 => Just(("kWh", Some(1000))),
        1 => Just(("MWh", Some(1_000_000))),
        1 => Just(("m³", None)),
    ];
    let verdict = prop::sample::select(Verdict::ALL.to_vec());
    (
        unit,
        prop::option::of(prop_oneof![Just(600), Just(12_000)]),
        prop::option::of(prop_oneof![Just(50), Just(200), Just(1000)]),
        prop::option::of(prop_oneof![Just(1_000_000), Just(10_000)]),
        prop::collection::btree_map(at, (0..900_000i128, 0..900_000i128), 0..3),
        prop::collection::btree_map(at_a_value, verdict, 0..6),
    )
        .prop_map(|(unit, max_w, tolerance, modulus, exchanges, verdicts)| Meter {
            unit,
            max_w,
            tolerance,
            modulus,
            exchanges,
            verdicts,
        })
}

/// A counter and its values.
pub(crate) fn counter() -> impl Strategy<Value = (Meter, Vec<Value>)> {
    (1..40usize).prop_flat_map(|n| (times(n), counted(n))).prop_flat_map(|(times, values)| {
        let values = times.iter().copied().zip(values).collect::<Vec<_>>();
        (meter(times), Just(values))
    })
}

/// An edge of a row: on a quarter, on a value, or anywhere.
#[derive(Debug, Clone)]
pub(crate) enum Edge {
    QuarterHour(i64),
    Value(Index),
    Any(i64),
}

pub(crate) fn edges() -> impl Strategy<Value = Vec<Edge>> {
    let edge = prop_oneof![
        3 => (-2..60i64).prop_map(Edge::QuarterHour),
        2 => any::<Index>().prop_map(Edge::Value),
        1 => (-HOUR..15 * HOUR).prop_map(Edge::Any),
    ];
    prop::collection::vec(edge, 2..12)
}

/// The edges in milliseconds, at least two.
pub(crate) fn resolved(edges: &[Edge], values: &[Value]) -> Vec<i64> {
    let millis = |edge: &Edge| match edge {
        Edge::QuarterHour(n) => n * HOUR / 4,
        Edge::Value(index) => values[index.index(values.len())].0,
        Edge::Any(millis) => *millis,
    };
    let mut edges: BTreeSet<i64> = edges.iter().map(millis).collect();
    if let (1, Some(only)) = (edges.len(), edges.first().copied()) {
        edges.insert(only + HOUR);
    }
    edges.into_iter().collect()
}

/// A value at a limit of decimals, or an ordinary one.
pub(crate) fn extreme() -> impl Strategy<Value = Decimal> {
    let texts = [
        "9.9e125",
        "-9.9e125",
        "1e125",
        "1e-130",
        "12345678901234567890123456789012345678",
        "0.12345678901234567890123456789012345678",
        "808.1",
    ];
    prop::sample::select(texts.map(number).to_vec())
}
