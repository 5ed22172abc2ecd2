//! Energy from the world: what meters, their owners and the grid do to a counter, and what the rows of a
//! series then say. Every figure is worked out by hand.

use chrono::TimeDelta;
use domain::given::{self, exact, number};
use domain::{
    CounterRule, EnergyUnit, Exact, Exchange, Flag, Flags, MetricInfo, MetricRule, Neighbours,
    QuarterHour, RowIncrease, Sample, Timestamp, Verdict, increases,
};

use super::{answer, fold, metric};

/// A time in January 2026: day, hour and minute, and seconds if there are any.
fn at(text: &str) -> Timestamp {
    let (day, time) = text.split_once(' ').expect("a day and a time");
    let seconds = if time.len() == 5 { ":00" } else { "" };
    given::at(&format!("2026-01-{day}T{time}{seconds}Z"))
}

fn values(list: &[(&str, &str)]) -> Vec<Sample> {
    list.iter().map(|(time, value)| Sample::new(at(time), number(value))).collect()
}

/// Values in steps of 0.1, the first of them on January 1.
fn tenths(every: TimeDelta, list: impl IntoIterator<Item = i64>) -> Vec<Sample> {
    let mut next = at("01 00:00");
    let sample = |tenths: i64| {
        let sample = Sample::new(next, number(&format!("{tenths}e-1")));
        next = next.saturating_add(every);
        sample
    };
    list.into_iter().map(sample).collect()
}

/// A meter in kWh with the default settings.
fn meter() -> MetricInfo {
    MetricInfo::from(&metric("cumulative_kwh_p"))
}

fn meter_in(unit: &str) -> MetricInfo {
    MetricInfo { unit: Some(given::unit(unit)), ..meter() }
}

fn with_modulus(modulus: &str) -> MetricInfo {
    MetricInfo { modulus: Some(number(modulus)), ..meter() }
}

fn with_exchanges(exchanges: &[(&str, &str, &str)]) -> MetricInfo {
    let exchange = |old: &str, new: &str| Exchange { old: number(old), new: number(new) };
    let exchanges = exchanges.iter().map(|(time, old, new)| (at(time), exchange(old, new)));
    MetricInfo { exchanges: exchanges.collect(), ..meter() }
}

/// What the meter counted between consecutive edges.
fn rows(info: &MetricInfo, values: &[Sample], edges: &[Timestamp]) -> Vec<RowIncrease> {
    let counting = || values.iter().filter(|sample| sample.value.is_positive());
    let (from, to) = (edges[0], *edges.last().expect("there are edges"));
    let neighbours = Neighbours {
        before: counting().rfind(|sample| sample.at < from).cloned(),
        after: counting().find(|sample| sample.at >= to).cloned(),
    };
    answer(values, edges, &MetricRule::of(info), |rows| {
        increases(rows, &neighbours, &CounterRule::of(info))
    })
}

/// Edges from one time to another.
fn edges(from: Timestamp, to: Timestamp, every: TimeDelta) -> Vec<Timestamp> {
    std::iter::successors(Some(from), |edge| Some(edge.saturating_add(every)))
        .take_while(|edge| *edge <= to)
        .collect()
}

fn sum(rows: &[RowIncrease]) -> Exact {
    rows.iter().filter_map(|row| row.amount.as_ref()).fold(Exact::zero(), |sum, it| &sum + it)
}

fn flags(rows: &[RowIncrease]) -> Vec<Flag> {
    let flags = rows.iter().map(|row| row.flags).reduce(Flags::union);
    flags.unwrap_or_default().iter().collect()
}

/// Asserts what the meter counted from its first to its last value, asked as one row and by quarters.
#[track_caller]
fn assert_counts(info: &MetricInfo, list: &[(&str, &str)], amount: &str, flagged: &[Flag]) {
    assert_counts_samples(info, &values(list), amount, flagged);
}

#[track_caller]
fn assert_counts_samples(info: &MetricInfo, values: &[Sample], amount: &str, flagged: &[Flag]) {
    let (first, last) = (values[0].at, values.last().expect("values").at);
    let whole = rows(info, values, &[first, last.saturating_add(TimeDelta::milliseconds(1))]);
    assert_eq!((sum(&whole).to_string().as_str(), flags(&whole).as_slice()), (amount, flagged));
    let (first, end) = (QuarterHour::of(first).start(), QuarterHour::of(last).end());
    let quarters = rows(info, values, &edges(first, end, QuarterHour::LENGTH));
    assert_eq!(
        (sum(&quarters).to_string().as_str(), flags(&quarters).as_slice()),
        (amount, flagged),
        "by quarters"
    );
}

fn amounts(rows: &[RowIncrease]) -> Vec<String> {
    let text = |row: &RowIncrease| row.amount.as_ref().map_or("-".to_owned(), Exact::to_string);
    rows.iter().map(text).collect()
}

#[test]
fn a_meter_that_begins_again_at_zero_is_a_reset() {
    let replaced = [("11 10:00", "8048.1"), ("11 10:01", "8048.3"), ("11 12:00", "0.2")];
    assert_counts(&meter(), &replaced, "0.4", &[Flag::Reset]);
}

#[test]
fn a_declared_exchange_counts_what_both_meters_measured() {
    let fresh = [("11 10:00", "8048.1"), ("11 10:01", "8048.3"), ("11 12:00", "0.2")];
    let info = with_exchanges(&[("11 11:00", "8050", "0")]);
    assert_counts(&info, &fresh, "2.1", &[Flag::Exchanged]);

    // A used meter is lower or higher than the old one by any amount.
    let lower = [("11 10:00", "8048.3"), ("11 10:01", "512.3"), ("11 10:02", "512.4")];
    assert_counts(&meter(), &lower, "0.1", &[Flag::Suspect]);
    let info = with_exchanges(&[("11 10:00:30", "8048.4", "512.3")]);
    assert_counts(&info, &lower, "0.2", &[Flag::Exchanged]);
    let higher = [("11 10:00", "8048.3"), ("11 10:01", "20000"), ("11 10:02", "20000.1")];
    assert_counts(&meter(), &higher, "0.1", &[Flag::Suspect]);
    let info = with_exchanges(&[("11 10:00:30", "8048.3", "19999.9")]);
    assert_counts(&info, &higher, "0.2", &[Flag::Exchanged]);
}

#[test]
fn a_value_at_the_time_of_an_exchange_is_the_new_meters() {
    let list = [("11 10:00", "8048.3"), ("11 10:15", "0.1"), ("11 10:30", "0.3")];
    let info = with_exchanges(&[("11 10:15", "8048.5", "0")]);
    assert_counts(&info, &list, "0.5", &[Flag::Exchanged]);
    // One millisecond later the new meter has not taken over, so 0.1 is of the old one, which cannot have
    // gone on to 8048.5.
    let info = with_exchanges(&[("11 10:15:00.001", "8048.5", "0")]);
    assert_counts(&info, &list, "0.1", &[Flag::Reset, Flag::Suspect]);
}

#[test]
fn two_exchanges_in_one_gap_count_all_three_meters() {
    let list = [("11 10:00", "8048.3"), ("13 10:00", "5.5")];
    let info = with_exchanges(&[("11 12:00", "8050", "100"), ("12 12:00", "107.5", "2")]);
    assert_counts(&info, &list, "12.7", &[Flag::Exchanged]);
}

#[test]
fn an_exchange_with_figures_that_cannot_be_is_suspect_until_it_is_judged() {
    let list = [("11 10:00", "8091.1"), ("11 13:00", "1.5")];
    // A digit too many, and a last figure below the reading before.
    for last in ["80911.2", "8080"] {
        let mut info = with_exchanges(&[("11 12:00", last, "0.5")]);
        assert_counts(&info, &list, "0", &[Flag::Suspect]);
        info.verdicts.insert(at("11 13:00"), Verdict::Discard);
        assert_counts(&info, &list, "0", &[Flag::Discarded]);
    }
    assert_counts(
        &with_exchanges(&[("11 12:00", "8091.2", "0.5")]),
        &list,
        "1.1",
        &[Flag::Exchanged],
    );
}

#[test]
fn a_counter_wraps_at_its_modulus() {
    let list = [
        ("11 10:00", "99999.8"),
        ("11 10:10", "99999.9"),
        ("11 10:20", "0.0"),
        ("11 10:30", "0.1"),
        ("11 10:40", "0.2"),
    ];
    assert_counts(&with_modulus("100000"), &list, "0.4", &[Flag::Wrapped]);
    assert_counts(&meter(), &list, "0.3", &[Flag::Reset]);
}

#[test]
fn a_counter_far_from_its_modulus_does_not_wrap() {
    let list = [("01 10:00", "70000"), ("31 10:00", "0.5")];
    assert_counts(&with_modulus("100000"), &list, "0.5", &[Flag::Ambiguous]);
    // 30 days at 40 kW are not enough for 30,000 kWh.
    let info = MetricInfo { max_w: Some(number("40000")), ..with_modulus("100000") };
    assert_counts(&info, &list, "0.5", &[Flag::Reset]);
    // Nobody knows how fast water runs.
    let water = MetricInfo { modulus: Some(number("100000")), ..meter_in("m³") };
    let list = [("11 10:00", "5000"), ("11 10:01", "0.1")];
    assert_counts(&water, &list, "0.1", &[Flag::Ambiguous]);
}

/// The steps that the rule knows something of, by the verdicts that would change them.
#[track_caller]
fn assert_fits(info: &MetricInfo, [from, to]: [(&str, &str); 2], expected: &[&str]) {
    let list = values(&[from, to]);
    let fitting = CounterRule::of(info).verdicts(&list[0], &list[1]);
    let fitting: Vec<&str> = fitting.into_iter().map(Verdict::as_str).collect();
    assert_eq!(fitting, expected, "{from:?} to {to:?}");
}

#[test]
fn a_fall_that_may_be_a_wrap_or_a_new_meter_is_told_with_both_figures_and_judged() {
    let info = MetricInfo {
        max_w: Some(number("12000")),
        tolerance: Some(number("0.2")),
        ..with_modulus("1000")
    };
    let list = [("04 07:22:40", "807.86"), ("06 19:16:22", "28.80"), ("06 19:20", "28.90")];
    assert_counts(&info, &list, "28.9", &[Flag::Ambiguous]);
    let samples = values(&list);
    let if_wrapped = CounterRule::of(&info).if_wrapped(&samples[0], &samples[1]);
    assert_eq!(if_wrapped, Some(exact("220.94")));
    let judged =
        |verdict| MetricInfo { verdicts: [(at("06 19:16:22"), verdict)].into(), ..info.clone() };
    for (verdict, amount, flag) in [
        (Verdict::Wrap, "221.04", Flag::Wrapped),
        (Verdict::Reset, "28.9", Flag::Reset),
        (Verdict::Accept, "28.9", Flag::Accepted),
        (Verdict::Discard, "0.1", Flag::Discarded),
        (Verdict::Dip, "-778.96", Flag::Dip),
    ] {
        assert_counts(&judged(verdict), &list, amount, &[flag]);
        let rule = CounterRule::of(&judged(verdict));
        assert_eq!(rule.verdict(&samples[0], &samples[1]), Some(verdict));
        assert_eq!(rule.verdict(&samples[1], &samples[2]), None, "of its step only");
    }
    let all = ["accept", "discard", "reset", "wrap", "dip"];
    assert_fits(&info, [list[0], list[1]], &all);
}

#[test]
fn a_verdict_fits_falls_and_suspect_steps_only_and_changes_something() {
    let known = with_modulus("1000");
    assert_fits(&meter(), [("11 10:00", "808"), ("11 10:10", "808.1")], &[]);
    let reset = [("11 10:00", "808"), ("11 10:10", "0.1")];
    assert_fits(&meter(), reset, &["accept", "discard", "dip"]);
    // Too fast for a wrap, but a person may know better.
    assert_fits(&known, reset, &["accept", "discard", "wrap", "dip"]);
    let wrapped = [("11 10:00", "999.9"), ("11 10:10", "0.1")];
    assert_fits(&known, wrapped, &["accept", "discard", "reset", "dip"]);
    let dip = [("11 10:00", "808.1"), ("11 10:10", "808")];
    assert_fits(&meter(), dip, &["accept", "discard", "reset"]);
    let rise = [("11 10:00", "808"), ("11 10:10", "908")];
    assert_fits(&known, rise, &["accept", "discard"]);
    let fall = [("11 10:00", "908"), ("11 10:10", "808")];
    assert_fits(&meter(), fall, &["accept", "discard", "reset", "dip"]);
    let exchanged = with_exchanges(&[("11 10:05", "8048.4", "512.3")]);
    assert_fits(&exchanged, [("11 10:00", "8048.3"), ("11 10:10", "512.3")], &[]);
    let wrong = with_exchanges(&[("11 10:05", "80484", "512.3")]);
    let step = [("11 10:00", "8048.3"), ("11 10:10", "512.3")];
    assert_fits(&wrong, step, &["accept", "discard"]);
}

#[test]
fn a_counter_that_flickers_at_its_modulus_counts_once() {
    let list = [
        ("11 10:00", "99999.9"),
        ("11 10:10", "0.1"),
        ("11 10:20", "99999.9"),
        ("11 10:30", "0.1"),
    ];
    assert_counts(&with_modulus("100000"), &list, "0.2", &[Flag::Dip, Flag::Wrapped]);
}

#[test]
fn a_wrap_that_would_need_too_much_power_is_a_reset() {
    let list = [("11 10:00", "5000"), ("11 11:00", "0.3")];
    assert_counts(&with_modulus("100000"), &list, "0.3", &[Flag::Reset]);
    // 50 kW for an hour and 1 kWh: 99949.3 to 0.3 is 51 kWh, which is just possible.
    let list = [("11 10:00", "99949.3"), ("11 11:00", "0.3")];
    assert_counts(&with_modulus("100000"), &list, "51", &[Flag::Wrapped]);
    let list = [("11 10:00", "99949.2"), ("11 11:00", "0.3")];
    assert_counts(&with_modulus("100000"), &list, "0.3", &[Flag::Reset]);
}

#[test]
fn a_value_above_the_modulus_does_not_wrap_to_less_than_nothing() {
    let list = [("11 10:00", "25.5"), ("11 10:01", "0.5")];
    assert_counts(&with_modulus("10"), &list, "0.5", &[Flag::Reset]);
}

#[test]
fn dips_cancel_over_days() {
    // 0.1 kWh every half-hour, and at 03:00, 11:00 and 19:00 a value that is 0.1 kWh too low.
    let dips = [6, 22, 38];
    let is_low = |n: i64| n > 48 && dips.contains(&(n % 48));
    let counted = (0..=48 * 30).map(|n| 80_481 + n - 2 * i64::from(is_low(n)));
    let values = tenths(TimeDelta::minutes(30), counted);
    let (first, last) = (values[0].at, values[48 * 30].at);
    let days = rows(&meter(), &values, &edges(first, last, TimeDelta::days(1)));
    assert_eq!(amounts(&days), ["4.8"; 30]);
    assert!(days[0].flags.is_empty());
    assert!(days[1..].iter().all(|day| day.flags == Flag::Dip.into()));
    assert_counts_samples(&meter(), &values, "144", &[Flag::Dip]);
}

#[test]
fn a_fall_of_less_than_the_tolerance_is_a_dip_although_there_is_a_modulus() {
    let list = [("11 10:00", "808.5"), ("11 10:10", "808.1"), ("11 10:20", "808.6")];
    for info in [meter(), with_modulus("100000"), with_modulus("1000")] {
        assert_counts(&info, &list, "0.1", &[Flag::Dip]);
    }
    let fall = rows(&meter(), &values(&list), &[at("11 10:00"), at("11 10:10")]);
    assert_eq!(amounts(&fall), ["-0.4"], "a row may be negative by the tolerance");
}

#[test]
fn a_counter_that_flickers_counts_what_was_used() {
    // 300 W for a day, read every minute, each odd minute 0.1 kWh too low.
    let values = tenths(TimeDelta::minutes(1), (0..=1440).map(|n| 80_481 + n / 20 - n % 2));
    assert_counts_samples(&meter(), &values, "7.2", &[Flag::Dip]);
}

#[test]
fn a_coarse_counter_read_often_counts_each_of_its_steps() {
    // 500 W for a day, read every 10 s: 0.1 kWh in 10 s would be 36 kW.
    let values = tenths(TimeDelta::seconds(10), (0..=8640).map(|n| 79_995 + n / 72));
    assert_counts_samples(&meter(), &values, "12", &[]);
    let strict =
        MetricInfo { max_w: Some(number("1000")), tolerance: Some(number("0.01")), ..meter() };
    assert_counts_samples(&strict, &values, "12", &[]);
}

#[test]
fn a_boot_to_zero_before_a_gap_is_no_reset() {
    let list = [("11 10:00", "808.1"), ("11 10:01", "0"), ("14 10:01", "830.0")];
    assert_counts(&meter(), &list, "21.9", &[]);
}

#[test]
fn values_that_mean_unknown_take_no_part() {
    let list = [("11 10:00", "808.1"), ("11 10:01", "-1.0"), ("11 10:02", "808.2")];
    assert_counts(&meter(), &list, "0.1", &[]);
    let fold = |list| fold(&values(list), &MetricRule::of(&meter()));
    let rollup = fold(&list).expect("two values take part");
    assert_eq!((rollup.count, rollup.min), (2, number("808.1")));
    assert_eq!(fold(&[("11 10:00", "0"), ("11 10:01", "-1")]), None);
}

#[test]
fn a_breaker_off_for_a_month_uses_nothing() {
    let list = [("01 10:00", "808.0"), ("01 10:10", "808.1"), ("31 10:10", "808.1")];
    assert_counts(&meter(), &list, "0.1", &[]);
    let days = edges(at("02 00:00"), at("31 00:00"), TimeDelta::days(1));
    let days = rows(&meter(), &values(&list), &days);
    assert_eq!(amounts(&days), ["0"; 29]);
    assert!(days.iter().all(|day| day.estimated));
    // A new meter came with the light.
    let list = [("01 10:10", "808.1"), ("31 10:10", "5.5")];
    assert_counts(&meter(), &list, "5.5", &[Flag::Reset]);
}

#[test]
fn a_reset_exactly_at_an_edge_counts_before_it() {
    let list =
        [("11 10:00", "807.9"), ("11 10:14", "808.1"), ("11 10:15", "0.3"), ("11 10:29", "0.4")];
    let list = values(&list);
    let quarters =
        rows(&meter(), &list, &edges(at("11 10:00"), at("11 10:30"), QuarterHour::LENGTH));
    assert_eq!(amounts(&quarters), ["0.5", "0.1"]);
    assert_eq!(flags(&quarters[..1]), [Flag::Reset]);
    assert!(quarters[1].flags.is_empty());
    assert_counts_samples(&meter(), &list, "0.6", &[Flag::Reset]);
}

#[test]
fn hourly_values_are_shared_among_quarters() {
    let list = values(&[("11 10:00", "808"), ("11 11:00", "812"), ("11 12:00", "812.1")]);
    let quarters =
        rows(&meter(), &list, &edges(at("11 10:00"), at("11 12:00"), QuarterHour::LENGTH));
    assert_eq!(amounts(&quarters), ["1", "1", "1", "1", "0.025", "0.025", "0.025", "0.025"]);
    assert!(quarters.iter().all(|row| row.estimated));
    let hours = rows(&meter(), &list, &edges(at("11 10:00"), at("11 12:00"), TimeDelta::hours(1)));
    assert_eq!(amounts(&hours), ["4", "0.1"]);
    assert!(hours.iter().all(|row| !row.estimated), "each has the whole of its step");
    // 0.1 kWh in 70 minutes: shares with endless digits still add up.
    let list = values(&[("11 10:00", "808"), ("11 11:10", "808.1")]);
    let quarters =
        rows(&meter(), &list, &edges(at("11 10:00"), at("11 11:15"), QuarterHour::LENGTH));
    let shares = ["0.021428571", "0.021428571", "0.021428572", "0.021428571", "0.014285715"];
    assert_eq!(amounts(&quarters), shares);
    assert_eq!(sum(&quarters), exact("0.1"));
}

#[test]
fn digits_beyond_those_of_a_share_are_not_lost() {
    let list =
        [("11 10:05", "12.000000000001"), ("11 10:20", "12.5"), ("11 10:50", "12.5000000000021")];
    assert_counts(&meter_in("m³"), &list, "0.5000000000011", &[]);
}

#[test]
fn a_step_of_at_most_15_minutes_is_no_estimate() {
    let estimated = |minute: &str| {
        let list = values(&[("11 10:05", "808"), (minute, "808.5")]);
        rows(&meter(), &list, &[at("11 10:00"), at("11 10:15")])[0].estimated
    };
    assert!(!estimated("11 10:20"));
    assert!(estimated("11 10:20:00.001"));
}

#[test]
fn a_row_that_no_two_values_tell_anything_of_has_no_amount() {
    let list = values(&[("11 10:15", "808"), ("11 10:25", "808.5"), ("11 10:30", "808.7")]);
    let quarters =
        rows(&meter(), &list, &edges(at("11 10:00"), at("11 11:00"), QuarterHour::LENGTH));
    assert_eq!(amounts(&quarters), ["-", "0.7", "-", "-"]);
    assert_eq!(rows(&meter(), &[], &[at("11 10:00"), at("11 10:15")])[0], RowIncrease::default());
}

#[test]
fn every_unit_of_energy_has_the_same_limits() {
    for (unit, just, too_much) in
        [("Wh", "51000", "51000.001"), ("kWh", "51", "51.000001"), ("MWh", "0.051", "0.051000001")]
    {
        let info = meter_in(unit);
        let kwh = EnergyUnit::of(info.unit.as_ref()).expect("a unit of energy");
        // All that 50 kW make in an hour, and the tolerance of 1 kWh.
        let total = |amount: &str| (&exact("8") + &exact(amount)).to_string();
        let rise = |amount| [("11 10:00", "8".to_owned()), ("11 11:00", total(amount))];
        let list = rise(just);
        assert_counts(&info, &list.each_ref().map(|(t, v)| (*t, v.as_str())), just, &[]);
        assert_eq!(kwh.to_kwh(&exact(just)), exact("51"));
        let list = rise(too_much);
        let list = list.each_ref().map(|(t, v)| (*t, v.as_str()));
        assert_counts(&info, &list, "0", &[Flag::Suspect]);
    }
}

#[test]
fn a_dip_is_1_kwh_in_every_unit() {
    for (unit, list) in [
        ("Wh", ["808000", "807000", "806999"]),
        ("kWh", ["808", "807", "806.999"]),
        ("MWh", ["0.808", "0.807", "0.806999"]),
    ] {
        let [start, dip, fall] = list;
        let counted = |value: &str| {
            let list = values(&[("11 10:00", start), ("11 10:01", value)]);
            flags(&rows(&meter_in(unit), &list, &[at("11 10:00"), at("11 10:01")]))
        };
        assert_eq!((counted(dip), counted(fall)), (vec![Flag::Dip], vec![Flag::Suspect]), "{unit}");
    }
}

#[test]
fn water_has_no_limit_of_its_rise() {
    let water = meter_in("m³");
    let list = [("11 10:00", "12"), ("11 10:00:01", "4012.5")];
    assert_counts(&water, &list, "4000.5", &[]);
    let list = [("11 10:00", "4012.5"), ("11 10:00:01", "512.25")];
    assert_counts(&water, &list, "512.25", &[Flag::Reset]);
    // It flickers by its last decimal, and no further.
    let list = [("11 10:00", "12.001"), ("11 10:01", "12"), ("11 10:02", "12.001")];
    assert_counts(&water, &list, "0", &[Flag::Dip]);
    let list = [("11 10:00", "12.002"), ("11 10:01", "12"), ("11 10:02", "12.002")];
    assert_counts(&water, &list, "12.002", &[Flag::Reset]);
    assert_eq!(EnergyUnit::of(water.unit.as_ref()), None);
}

#[test]
fn the_limits_are_inside() {
    let info =
        MetricInfo { max_w: Some(number("6000")), tolerance: Some(number("0.2")), ..meter() };
    // 6 kW for ten minutes and 0.2: 1.2 kWh.
    for (start, end, amount, flagged) in [
        ("808", "809.2", "1.2", &[][..]),
        ("808", "809.201", "0", &[Flag::Suspect]),
        ("808", "807.8", "-0.2", &[Flag::Dip]),
        ("808", "807.799", "0", &[Flag::Suspect]),
        ("808", "1.2", "1.2", &[Flag::Reset]),
        ("808", "1.201", "0", &[Flag::Suspect]),
        ("2", "1.8", "-0.2", &[Flag::Dip]),
        ("1.9", "1.7", "0", &[Flag::Suspect]),
        ("1", "0.9", "-0.1", &[Flag::Dip]),
        ("1", "0.899", "0.899", &[Flag::Reset]),
    ] {
        assert_counts(&info, &[("11 10:00", start), ("11 10:10", end)], amount, flagged);
    }
}

#[test]
fn a_person_accepts_or_discards_a_suspect_step() {
    let judged = |time: &str, verdict: Verdict| MetricInfo {
        verdicts: [(at(time), verdict)].into(),
        ..meter()
    };
    let rise = [("11 10:00", "808"), ("11 10:10", "908"), ("11 10:20", "908.1")];
    assert_counts(&meter(), &rise, "0.1", &[Flag::Suspect]);
    assert_counts(&judged("11 10:10", Verdict::Accept), &rise, "100.1", &[Flag::Accepted]);
    assert_counts(&judged("11 10:10", Verdict::Discard), &rise, "0.1", &[Flag::Discarded]);
    let fall = [("11 10:00", "908"), ("11 10:10", "808"), ("11 10:20", "808.1")];
    assert_counts(&judged("11 10:10", Verdict::Accept), &fall, "808.1", &[Flag::Accepted]);
    assert_counts(&judged("11 10:10", Verdict::Discard), &fall, "0.1", &[Flag::Discarded]);
    // It is of the value that ends the step, and only of a step that is notable.
    assert_counts(&judged("11 10:00", Verdict::Accept), &rise, "0.1", &[Flag::Suspect]);
    assert_counts(&judged("11 10:20", Verdict::Discard), &rise, "0.1", &[Flag::Suspect]);
}
