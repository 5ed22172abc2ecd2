//! The settings of metrics: which changes count, and which readings each concerns.

use chrono::TimeDelta;
use domain::given::{self, label};
use domain::{
    CounterRule, DEFAULT_HOLD, Device, DevicePatch, Edit, Exchange, Extent, FoldRules,
    FoldSettings, MetricInfo, MetricKind, MetricPatch, MetricRule, Verdict,
};
use proptest::prelude::*;

use super::integers::{Meter, counter, edges, meter, resolved, samples};
use super::{at_millis, device, fold, metric, thousandths};

proptest! {
    #[test]
    fn a_change_of_settings_changes_no_fold_outside_of_its_extent(
        (before, after, values) in counter().prop_flat_map(|(meter_before, values)| {
            let times = values.iter().map(|(at, _)| *at).collect();
            (Just(meter_before), meter(times), Just(values))
        }),
        judgements_only: bool,
        exchanges_too: bool,
        edges in edges(),
    ) {
        let after = if judgements_only {
            let exchanges = if exchanges_too { after.exchanges } else { before.exchanges.clone() };
            Meter { exchanges, verdicts: after.verdicts, ..before.clone() }
        } else {
            after
        };
        let (before, after) = (before.info(), after.info());
        let name = metric("cumulative_kwh_p");
        let mut meter = device([(name.clone(), before.clone())]);
        let patch = MetricPatch {
            unit: Edit::Set(after.unit.clone().expect("it has one")),
            modulus: after.modulus.clone().map_or(Edit::Clear, Edit::Set),
            max_w: after.max_w.clone().map_or(Edit::Clear, Edit::Set),
            tolerance: after.tolerance.clone().map_or(Edit::Clear, Edit::Set),
            exchanges: Edit::Set(after.exchanges.clone()),
            verdicts: Edit::Set(after.verdicts.clone()),
            ..MetricPatch::default()
        };
        let extent = extent(&mut meter, name.as_str(), patch);
        // A person has described it.
        let after = MetricInfo { is_described: true, ..after };
        prop_assert_eq!(&meter.metrics()[&name], &after);
        prop_assert!(!judgements_only || extent != Some(Extent::ALL));
        let edges = resolved(&edges, &values);
        let values = samples(&values);
        for edge in edges.windows(2) {
            let (start, end) = (at_millis(edge[0]), at_millis(edge[1]));
            if extent.is_some_and(|extent| extent.first < end && start <= extent.last) {
                continue;
            }
            let fold = |info| {
                fold(values.iter().filter(|it| (start..end).contains(&it.at)), &MetricRule::of(info))
            };
            prop_assert_eq!(fold(&before), fold(&after));
        }
    }
}

/// A meter, a plug and a thermometer.
fn home() -> Device {
    let names = ["cumulative_kwh_p", "current_w", "temperature", "water"].map(metric);
    device(names.map(|name| (name.clone(), MetricInfo::from(&name))))
}

/// The extent of a patch of one metric, where it counts.
fn extent(device: &mut Device, name: &str, patch: MetricPatch) -> Option<Extent> {
    let done = device.fold_settings().number;
    let patch =
        DevicePatch { metrics: [(metric(name), Some(patch))].into(), ..DevicePatch::default() };
    patch.apply(device, at_millis(0));
    device.fold_settings().changed_since(done)
}

fn instant(millis: i64) -> Extent {
    Extent { first: at_millis(millis), last: at_millis(millis) }
}

#[test]
fn a_change_counts_where_it_changes_the_fold() {
    let text = |text: &str| Edit::Set(text.parse().expect("a unit"));
    let number = |value| Edit::Set(thousandths(value));
    let none = MetricPatch::default;
    let exchange = Exchange { old: thousandths(808_100), new: thousandths(0) };
    for (name, patch, expected) in [
        ("temperature", none(), None),
        ("temperature", MetricPatch { unit: text("°F"), ..none() }, None),
        ("temperature", MetricPatch { unit: Edit::Clear, ..none() }, None),
        ("temperature", MetricPatch { unit: text("W"), ..none() }, Some(Extent::ALL)),
        ("temperature", MetricPatch { kind: Edit::Set(MetricKind::Gauge), ..none() }, None),
        ("temperature", MetricPatch { modulus: number(1000), ..none() }, None),
        ("temperature", MetricPatch { hold: Edit::Set(TimeDelta::minutes(1)), ..none() }, None),
        (
            "temperature",
            MetricPatch { verdicts: Edit::Set([(at_millis(5), Verdict::Accept)].into()), ..none() },
            None,
        ),
        (
            "temperature",
            MetricPatch { kind: Edit::Set(MetricKind::Counter), ..none() },
            Some(Extent::ALL),
        ),
        ("current_w", MetricPatch { unit: text("kW"), ..none() }, None),
        ("current_w", MetricPatch { unit: text("°C"), ..none() }, Some(Extent::ALL)),
        ("current_w", MetricPatch { hold: Edit::Set(TimeDelta::minutes(15)), ..none() }, None),
        (
            "current_w",
            MetricPatch { hold: Edit::Set(TimeDelta::minutes(14)), ..none() },
            Some(Extent::ALL),
        ),
        ("cumulative_kwh_p", MetricPatch { unit: text("Wh"), ..none() }, Some(Extent::ALL)),
        ("cumulative_kwh_p", MetricPatch { unit: text("m³"), ..none() }, Some(Extent::ALL)),
        ("cumulative_kwh_p", MetricPatch { kind: Edit::Clear, ..none() }, None),
        ("cumulative_kwh_p", MetricPatch { max_w: number(50_000_000), ..none() }, None),
        ("cumulative_kwh_p", MetricPatch { max_w: number(1000), ..none() }, Some(Extent::ALL)),
        ("cumulative_kwh_p", MetricPatch { tolerance: number(1000), ..none() }, None),
        ("cumulative_kwh_p", MetricPatch { tolerance: number(999), ..none() }, Some(Extent::ALL)),
        ("cumulative_kwh_p", MetricPatch { modulus: number(1), ..none() }, Some(Extent::ALL)),
        (
            "cumulative_kwh_p",
            MetricPatch {
                verdicts: Edit::Set([(at_millis(5), Verdict::Discard)].into()),
                ..none()
            },
            Some(instant(5)),
        ),
        (
            "cumulative_kwh_p",
            MetricPatch { exchanges: Edit::Set([(at_millis(7), exchange)].into()), ..none() },
            Some(instant(7)),
        ),
    ] {
        let (mut device, mut twice) = (home(), home());
        assert_eq!(extent(&mut device, name, patch.clone()), expected, "{name}: {patch:?}");
        assert_eq!(device.fold_settings().number, u64::from(expected.is_some()));
        extent(&mut twice, name, patch.clone());
        assert_eq!(extent(&mut twice, name, patch), None, "the same patch again changes nothing");
    }
}

#[test]
fn units_without_a_limit_of_the_rise_are_alike() {
    let mut device = home();
    let counter = MetricPatch { kind: Edit::Set(MetricKind::Counter), ..MetricPatch::default() };
    assert_eq!(extent(&mut device, "water", counter), Some(Extent::ALL));
    let patch = MetricPatch {
        unit: Edit::Set(given::unit("m³")),
        max_w: Edit::Set(thousandths(1000)),
        ..MetricPatch::default()
    };
    assert_eq!(extent(&mut device, "water", patch), None);
    let tolerance = MetricPatch { tolerance: Edit::Set(thousandths(1)), ..MetricPatch::default() };
    assert_eq!(extent(&mut device, "water", tolerance), Some(Extent::ALL));
}

#[test]
fn a_changed_verdict_concerns_its_timestamp_and_an_unchanged_one_none() {
    let mut device = home();
    let verdicts = |list: &[(i64, Verdict)]| MetricPatch {
        verdicts: Edit::Set(list.iter().map(|(at, verdict)| (at_millis(*at), *verdict)).collect()),
        ..MetricPatch::default()
    };
    let mut judge = |patch| extent(&mut device, "cumulative_kwh_p", patch);
    let (accept, discard) = (Verdict::Accept, Verdict::Discard);
    assert_eq!(judge(verdicts(&[(3, accept)])), Some(instant(3)));
    assert_eq!(judge(verdicts(&[(3, accept), (9, accept)])), Some(instant(9)));
    assert_eq!(judge(verdicts(&[(3, accept), (9, discard)])), Some(instant(9)));
    let moved = judge(verdicts(&[(4, accept), (9, discard)]));
    assert_eq!(moved, Some(Extent { first: at_millis(3), last: at_millis(4) }));
    let clear = MetricPatch { verdicts: Edit::Clear, ..MetricPatch::default() };
    assert_eq!(judge(clear), Some(Extent { first: at_millis(4), last: at_millis(9) }));
    // Beside a setting that concerns everything, a verdict adds nothing.
    let both = MetricPatch { modulus: Edit::Set(thousandths(1)), ..verdicts(&[(3, accept)]) };
    assert_eq!(judge(both), Some(Extent::ALL));
}

#[test]
fn one_patch_is_one_change_whatever_it_edits() {
    let mut device = home();
    let verdict = MetricPatch {
        verdicts: Edit::Set([(at_millis(5), Verdict::Accept)].into()),
        ..MetricPatch::default()
    };
    let hold = MetricPatch { hold: Edit::Set(TimeDelta::minutes(1)), ..MetricPatch::default() };
    let patch = DevicePatch {
        name: Edit::Set(label("Meter")),
        behind: Edit::Set(given::device("main-meter")),
        metrics: [
            (metric("cumulative_kwh_p"), Some(verdict.clone())),
            (metric("current_w"), Some(hold)),
        ]
        .into(),
        ..DevicePatch::default()
    };
    device = patch.edited(&device, at_millis(0)).expect("it has sent both");
    let changes = [(1, Extent::ALL)].into();
    assert_eq!(*device.fold_settings(), FoldSettings { number: 1, changes });
    let unsent = DevicePatch { metrics: [(metric("unsent"), Some(verdict))].into(), ..patch };
    assert!(unsent.edited(&device, at_millis(0)).is_err());
}

#[test]
fn a_dropped_metric_counts_where_its_name_says_something_else() {
    let drop = |device: &mut Device, name: &str| {
        let patch =
            DevicePatch { metrics: [(metric(name), None)].into(), ..DevicePatch::default() };
        *device = patch.edited(device, at_millis(0)).expect("a dropped metric");
        device.fold_settings().number
    };
    let mut device = home();
    assert_eq!(drop(&mut device, "cumulative_kwh_p"), 0);
    let counter = MetricPatch { kind: Edit::Set(MetricKind::Counter), ..MetricPatch::default() };
    assert_eq!(extent(&mut device, "water", counter), Some(Extent::ALL));
    assert_eq!(drop(&mut device, "water"), 2);
}

#[test]
fn what_has_changed_since_a_number_is_all_that_is_known_of_the_newer_changes() {
    let mut device = home();
    assert_eq!(device.fold_settings().changed_since(0), None);
    for n in 1..=17 {
        let verdict = if n % 2 == 0 { Verdict::Accept } else { Verdict::Discard };
        let mut verdicts = device.metrics()[&metric("cumulative_kwh_p")].verdicts.clone();
        verdicts.insert(at_millis(n), verdict);
        let patch = MetricPatch { verdicts: Edit::Set(verdicts), ..MetricPatch::default() };
        assert_eq!(extent(&mut device, "cumulative_kwh_p", patch), Some(instant(n)));
    }
    let settings = device.fold_settings();
    assert_eq!((settings.number, settings.changes.len()), (17, 16));
    assert_eq!(settings.changed_since(17), None);
    assert_eq!(settings.changed_since(18), None, "another process may be ahead");
    assert_eq!(settings.changed_since(16), Some(instant(17)));
    assert_eq!(
        settings.changed_since(14),
        Some(Extent { first: at_millis(15), last: at_millis(17) })
    );
    assert_eq!(
        settings.changed_since(1),
        Some(Extent { first: at_millis(2), last: at_millis(17) })
    );
    assert_eq!(settings.changed_since(0), Some(Extent::ALL), "the first is forgotten");
}

#[test]
fn an_unset_counter_counts_as_its_name_says() {
    let name = metric("cumulative_kwh_p");
    let rule = FoldRules::default().rule(&name);
    assert_eq!(rule, MetricRule::Counter(CounterRule::of(&MetricInfo::from(&name))));
    assert_eq!(FoldRules::default().rule(&metric("current_w")), MetricRule::Power(DEFAULT_HOLD));
    assert_eq!(FoldRules::default().rule(&metric("pm2_5")), MetricRule::Gauge);
}
