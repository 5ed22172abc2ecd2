//! The fold: consecutive pieces combine to the whole, and it is what integers say.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use domain::given::number;
use domain::{
    Exact, FoldRules, MAX_ROLLUP_ROOMS, MetricInfo, MetricRollup, OfKind, Reading, Rollup,
};
use proptest::prelude::*;
use proptest::sample::Index;

use super::integers::{Meter, Value, counter, extreme, pairs, samples, union};
use super::{HOUR, START, device, exact, metric, reading, thousandths};

/// A counter, a power and a gauge.
const METRICS: [&str; 3] = ["cumulative_kwh_p", "current_w", "temperature"];

/// Readings; each has at least one of the three metrics.
fn readings() -> impl Strategy<Value = (Meter, Vec<Reading>)> {
    let value = || prop::option::of(-50_000..50_000i128);
    let room = prop::option::of(prop_oneof![Just("hall"), Just("cellar")]);
    counter().prop_flat_map(move |(meter, values)| {
        let others = prop::collection::vec((value(), value(), room.clone()), values.len());
        (Just(meter), Just(values), others).prop_map(|(meter, values, others)| {
            let readings = values.into_iter().zip(others);
            let readings = readings.map(|((at, total), (power, gauge, room))| {
                let counts = (power.is_none() && gauge.is_none()) || at % 7 != 0;
                let values =
                    METRICS.into_iter().zip([Some(total).filter(|_| counts), power, gauge]);
                let values =
                    values.filter_map(|(name, value)| Some((metric(name), thousandths(value?))));
                reading(at, room, values.collect())
            });
            (meter, readings.collect())
        })
    })
}

fn rules(meter: &Meter) -> FoldRules {
    FoldRules::of(&device([(metric("cumulative_kwh_p"), meter.info())]))
}

/// The pieces between some positions, which may be empty.
fn pieces<'a, T>(all: &'a [T], cuts: &[Index]) -> Vec<&'a [T]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len() + 1)).collect();
    cuts.extend([0, all.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &all[cut[0]..cut[1]]).collect()
}

/// The folds of the pieces, combined from the left and from the right.
fn by_pieces(readings: &[Reading], cuts: &[Index], rules: &FoldRules) -> [Rollup; 2] {
    let append = |mut earlier: Rollup, later: &Rollup| {
        earlier.append(later, rules);
        earlier
    };
    let folds = pieces(readings, cuts).into_iter().map(|piece| Rollup::fold(piece, rules));
    let folds: Vec<Rollup> = folds.collect();
    let left = folds.iter().fold(Rollup::default(), append);
    let right =
        folds.iter().rfold(Rollup::default(), |later, earlier| append(earlier.clone(), &later));
    [left, right]
}

proptest! {
    #[test]
    fn the_folds_of_consecutive_pieces_combine_to_the_fold_of_the_whole(
        (meter, readings) in readings(),
        cuts in prop::collection::vec(any::<Index>(), 0..8),
    ) {
        let rules = rules(&meter);
        let whole = Rollup::fold(&readings, &rules);
        prop_assert_eq!(by_pieces(&readings, &cuts, &rules), [whole.clone(), whole]);
    }

    #[test]
    fn the_largest_and_smallest_values_combine(
        values in prop::collection::vec([extreme(), extreme(), extreme()], 1..8),
        cuts in prop::collection::vec(any::<Index>(), 0..4),
    ) {
        let names = METRICS.map(metric);
        let readings: Vec<Reading> = (0..)
            .zip(values)
            .map(|(n, values)| reading(n, None, names.iter().cloned().zip(values).collect()))
            .collect();
        let rules = FoldRules::default();
        let whole = Rollup::fold(&readings, &rules);
        prop_assert_eq!(by_pieces(&readings, &cuts, &rules), [whole.clone(), whole]);
    }

    #[test]
    fn a_fold_is_what_integers_say((meter, readings) in readings()) {
        let rollup = Rollup::fold(&readings, &rules(&meter));
        let rooms: BTreeSet<_> = readings.iter().map(|reading| reading.room.clone()).collect();
        prop_assert_eq!(&rollup.rooms, &rooms);
        for name in METRICS.map(metric) {
            let value = |reading: &Reading| {
                let value = reading.metrics().get(&name)?;
                let scaled = value.checked_mul(&thousandths(1_000_000)).ok()?;
                Some((reading.at.as_millis() - START, scaled.to_string().parse().ok()?))
            };
            let values: Vec<Value> = readings.iter().filter_map(value).collect();
            let is_counter = name.as_str() == "cumulative_kwh_p";
            let values: Vec<Value> =
                values.into_iter().filter(|(_, value)| !is_counter || *value > 0).collect();
            if values.is_empty() {
                prop_assert_eq!(rollup.metrics.get(&name), None);
                continue;
            }
            let of_kind = match name.as_str() {
                "cumulative_kwh_p" => {
                    let steps: Vec<_> = pairs(&values).map(|(a, b)| meter.step(a, b)).collect();
                    let increase = steps.iter().map(|(step, _)| step).sum();
                    let flags = union(steps.iter().filter_map(|(_, flag)| *flag));
                    OfKind::Counter { increase: exact(increase, -3), flags }
                }
                "current_w" => {
                    let held: Vec<(i64, i128)> =
                        pairs(&values).map(|(a, b)| ((b.0 - a.0).min(HOUR / 4), a.1)).collect();
                    let area = held.iter().map(|(millis, watts)| watts * i128::from(*millis)).sum();
                    let held = held.iter().map(|(millis, _)| millis).sum();
                    OfKind::Power { area: exact(area, -3), held: TimeDelta::milliseconds(held) }
                }
                _ => OfKind::Gauge,
            };
            let all = samples(&values);
            let only = || values.iter().map(|(_, value)| *value);
            let expected = MetricRollup {
                count: values.len() as u64,
                sum: exact(only().sum(), -3),
                min: thousandths(only().min().expect("a value")),
                max: thousandths(only().max().expect("a value")),
                first: all[0].clone(),
                last: all[all.len() - 1].clone(),
                of_kind,
            };
            prop_assert_eq!(rollup.metrics.get(&name), Some(&expected));
        }
    }

    #[test]
    fn endless_metrics_stay_bounded_and_combine(
        known in prop::collection::btree_set(0..500usize, 0..=256),
        spans in prop::collection::vec((0..500usize, 1..350usize), 1..5),
        cuts in prop::collection::vec(any::<Index>(), 0..3),
    ) {
        let name = |n: usize| metric(&format!("m{n:03}"));
        let infos = known.iter().map(|n| (name(*n), MetricInfo::from(&name(*n))));
        let rules = FoldRules::of(&device(infos));
        let readings: Vec<Reading> = (0..)
            .zip(&spans)
            .map(|(minute, (start, length))| {
                let sent = (*start..start + length).map(|n| (name(n % 500), thousandths(1)));
                reading(minute * 60_000, None, sent.collect())
            })
            .collect();
        let whole = Rollup::fold(&readings, &rules);
        prop_assert!(whole.metrics.len() <= 256);
        let sent: BTreeSet<usize> =
            spans.iter().flat_map(|(start, length)| *start..start + length).map(|n| n % 500).collect();
        prop_assert!(known.intersection(&sent).all(|n| whole.metrics.contains_key(&name(*n))));
        prop_assert_eq!(by_pieces(&readings, &cuts, &rules), [whole.clone(), whole]);
    }
}

#[test]
fn a_sum_loses_no_digit_of_the_smallest_value() {
    let value = |millis: i64, text: &str| {
        let value = number(text);
        reading(millis, None, [(metric("charge"), value)].into())
    };
    let readings = [value(0, "1e20"), value(1, "1e-20"), value(2, "-1e20")];
    let rollup = |readings: &[Reading]| Rollup::fold(readings, &FoldRules::default());
    let sum = |rollup: &Rollup| rollup.metrics[&metric("charge")].sum.clone();
    assert_eq!(sum(&rollup(&readings)), exact(1, -20));
    let mut pieces = rollup(&readings[..2]);
    assert_eq!(sum(&pieces), &exact(1, 20) + &exact(1, -20));
    let json = serde_json::to_string(&sum(&pieces)).expect("a number");
    assert_eq!(Exact::parse(&json), Some(sum(&pieces)));
    pieces.append(&rollup(&readings[2..]), &FoldRules::default());
    assert_eq!(sum(&pieces), exact(1, -20));
}

#[test]
fn endless_rooms_stay_bounded_and_combine() {
    let room = |n: usize| format!("room-{:03}", n * 37 % 100);
    let readings: Vec<Reading> = (0..)
        .zip(0..100)
        .map(|(at, n)| reading(at, Some(&room(n)), [(metric("charge"), thousandths(1))].into()))
        .collect();
    let rules = FoldRules::default();
    let whole = Rollup::fold(&readings, &rules);
    assert_eq!(whole.rooms.len(), MAX_ROLLUP_ROOMS);
    for cut in [1, 20, 50, 99] {
        let mut pieces = Rollup::fold(&readings[..cut], &rules);
        pieces.append(&Rollup::fold(&readings[cut..], &rules), &rules);
        assert_eq!(pieces, whole);
    }
    for n in 0..100 {
        let id = [room(n).parse().expect("an id")].into();
        assert!(whole.may_be_of(&id) && !whole.is_only_of(&id), "{id:?}");
    }
    let one = Rollup::fold(&readings[..1], &rules);
    let rooms = |names: &[usize]| names.iter().map(|n| room(*n).parse().expect("an id")).collect();
    for of in [rooms(&[0]), rooms(&[0, 1])] {
        assert!(one.is_only_of(&of) && one.may_be_of(&of));
    }
    let two = Rollup::fold(&readings[..2], &rules);
    assert!(!two.is_only_of(&rooms(&[0])) && two.may_be_of(&rooms(&[0])));
    assert!(two.is_only_of(&rooms(&[0, 1])) && !two.may_be_of(&rooms(&[2])));
}

#[test]
fn readings_whose_values_take_no_part_still_have_a_room() {
    let zero = reading(0, Some("hall"), [(metric("cumulative_kwh_p"), thousandths(0))].into());
    let rollup = Rollup::fold([&zero], &FoldRules::default());
    assert!(rollup.metrics.is_empty() && !rollup.is_empty());
    assert!(Rollup::fold([], &FoldRules::default()).is_empty());
}
