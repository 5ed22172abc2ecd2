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

fn verdicts(list: &[(i64, Verdict)]) -> MetricPatch {
    let verdicts = list.iter().map(|(at, verdict)| (at_millis(*at), *verdict)).collect();
    MetricPatch { verdicts: Edit::Set(verdicts), ..MetricPatch::default() }
}

/// The water becomes a counter.
fn count_water(device: &mut Device) -> Option<Extent> {
    let kind = Edit::Set(MetricKind::Counter);
    extent(device, "water", MetricPatch { kind, ..MetricPatch::default() })
}

#[test]
fn a_change_counts_where_it_changes_the_fold() {
    let none = MetricPatch::default;
    let unit = |text: &str| MetricPatch { unit: Edit::Set(given::unit(text)), ..none() };
    let kind = |kind| MetricPatch { kind: Edit::Set(kind), ..none() };
    let hold = |minutes| MetricPatch { hold: Edit::Set(TimeDelta::minutes(minutes)), ..none() };
    let modulus = |value| MetricPatch { modulus: Edit::Set(thousandths(value)), ..none() };
    let max_w = |value| MetricPatch { max_w: Edit::Set(thousandths(value)), ..none() };
    let tolerance = |value| MetricPatch { tolerance: Edit::Set(thousandths(value)), ..none() };
    let exchange = Exchange { old: thousandths(808_100), new: thousandths(0) };
    let exchanges = Edit::Set([(at_millis(7), exchange)].into());
    let (counter, all) = ("cumulative_kwh_p", Some(Extent::ALL));
    for (name, patch, expected) in [
        ("temperature", none(), None),
        ("temperature", unit("°F"), None),
        ("temperature", MetricPatch { unit: Edit::Clear, ..none() }, None),
        ("temperature", unit("W"), all),
        ("temperature", kind(MetricKind::Gauge), None),
        ("temperature", modulus(1000), None),
        ("temperature", hold(1), None),
        ("temperature", verdicts(&[(5, Verdict::Accept)]), None),
        ("temperature", kind(MetricKind::Counter), all),
        ("current_w", unit("kW"), None),
        ("current_w", unit("°C"), all),
        ("current_w", hold(15), None),
        ("current_w", hold(14), all),
        (counter, unit("Wh"), all),
        (counter, unit("m³"), all),
        (counter, MetricPatch { kind: Edit::Clear, ..none() }, None),
        (counter, max_w(50_000_000), None),
        (counter, max_w(1000), all),
        (counter, tolerance(1000), None),
        (counter, tolerance(999), all),
        (counter, modulus(1), all),
        (counter, verdicts(&[(5, Verdict::Discard)]), Some(instant(5))),
        (counter, MetricPatch { exchanges, ..none() }, Some(instant(7))),
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
    assert_eq!(count_water(&mut device), Some(Extent::ALL));
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
    let verdict = verdicts(&[(5, Verdict::Accept)]);
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
    assert_eq!(count_water(&mut device), Some(Extent::ALL));
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
    for (number, first) in [(14, 15), (1, 2)] {
        let expected = Extent { first: at_millis(first), last: at_millis(17) };
        assert_eq!(settings.changed_since(number), Some(expected));
    }
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
