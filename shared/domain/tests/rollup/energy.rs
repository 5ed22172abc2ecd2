//! Energy from the world: what meters, their owners and the grid do to a counter, and what the rows of a
//! series then say. Every figure is worked out by hand; `energy.txt` has those that need no loop.

use chrono::TimeDelta;
use domain::given::{self, cases, exact, number};
use domain::{
    CounterRule, EnergyUnit, Exact, Exchange, Flag, Flags, MetricInfo, MetricRule, Neighbours,
    QuarterHour, RowIncrease, Sample, Timestamp, Verdict, increases,
};

use super::{answer, fold, metric};

/// A time in January 2026: day, hour and minute, and seconds if there are any.
fn at(text: &str) -> Timestamp {
    let seconds = if text.len() == 8 { ":00" } else { "" };
    given::at(&format!("2026-01-{text}{seconds}Z"))
}

/// Values of a case, as `TIME=VALUE ...`.
fn values(list: &str) -> Vec<Sample> {
    let pairs = list.split_whitespace().map(|pair| pair.split_once('=').expect("TIME=VALUE"));
    pairs.map(|(time, value)| Sample::new(at(time), number(value))).collect()
}

/// A meter in kWh with the settings of a case, as `NAME=VALUE ...`; a verdict is the name of its time.
fn meter(settings: &str) -> MetricInfo {
    let mut info = MetricInfo::from(&metric("cumulative_kwh_p"));
    for setting in settings.split_whitespace() {
        let (name, value) = setting.split_once('=').expect("NAME=VALUE");
        match name {
            "unit" => info.unit = Some(given::unit(value)),
            "modulus" => info.modulus = Some(number(value)),
            "max_w" => info.max_w = Some(number(value)),
            "tolerance" => info.tolerance = Some(number(value)),
            "exchange" => {
                let [time, old, new] = value.split(',').collect::<Vec<_>>()[..] else {
                    panic!("exchange=TIME,OLD,NEW")
                };
                let exchange = Exchange { old: number(old), new: number(new) };
                info.exchanges.insert(at(time), exchange);
            }
            verdict => {
                info.verdicts.insert(at(value), Verdict::parse(verdict).expect("a verdict"));
            }
        }
    }
    info
}

/// Values in steps of 0.1, the first of them on January 1.
fn tenths(every: TimeDelta, list: impl IntoIterator<Item = i64>) -> Vec<Sample> {
    let mut next = at("01T00:00");
    let sample = |tenths: i64| {
        let sample = Sample::new(next, number(&format!("{tenths}e-1")));
        next = next.saturating_add(every);
        sample
    };
    list.into_iter().map(sample).collect()
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

/// What the meter counted from its first to its last value, with its flags: asked as one row, and the same by quarters.
#[track_caller]
fn counted(info: &MetricInfo, values: &[Sample]) -> String {
    let shown = |rows: &[RowIncrease]| {
        let flags = flags(rows).into_iter().map(|flag| format!(" {}", flag.as_str()));
        format!("{}{}", sum(rows), flags.collect::<String>())
    };
    let (first, last) = (values[0].at, values.last().expect("values").at);
    let whole = rows(info, values, &[first, last.saturating_add(TimeDelta::milliseconds(1))]);

    let (first, end) = (QuarterHour::of(first).start(), QuarterHour::of(last).end());
    let quarters = rows(info, values, &edges(first, end, QuarterHour::LENGTH));
    assert_eq!(shown(&quarters), shown(&whole), "by quarters");
    shown(&whole)
}

fn amounts(rows: &[RowIncrease]) -> Vec<String> {
    let text = |row: &RowIncrease| row.amount.as_ref().map_or("-".to_owned(), Exact::to_string);
    rows.iter().map(text).collect()
}

/// The rows of a statement `FROM to TO by LENGTH`: amounts, `~` at those that are estimates, and flags.
fn shown_rows(info: &MetricInfo, values: &[Sample], asked: &str) -> String {
    let [from, "to", to, "by", every] = asked.split(' ').collect::<Vec<_>>()[..] else {
        panic!("FROM to TO by LENGTH: {asked}")
    };
    let every = if every == "1d" {
        TimeDelta::days(1)
    } else {
        TimeDelta::minutes(every.trim_end_matches('m').parse().expect("minutes"))
    };
    let rows = rows(info, values, &edges(at(from), at(to), every));
    let shown = rows.iter().zip(amounts(&rows)).map(|(row, amount)| {
        let flags = row.flags.iter().map(|flag| format!(" {}", flag.as_str()));
        let estimated = if row.estimated.is_empty() { "" } else { "~" };
        format!("{amount}{estimated}{}", flags.collect::<String>())
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// A case is `SETTINGS | VALUES`. Expected are what was counted, rows, and the verdicts that fit the first step.
#[test]
fn each_meter_counts_what_its_case_says() {
    for case in cases(include_str!("energy.txt")) {
        let (settings, list) = case.given.split_once('|').expect("SETTINGS | VALUES");
        let (info, values) = (meter(settings), values(list));
        for expected in &case.expected {
            let found = if let Some((asked, _)) = expected.split_once(": ") {
                format!("{asked}: {}", shown_rows(&info, &values, asked))
            } else if expected.starts_with("fits") {
                let fitting = CounterRule::of(&info).verdicts(&values[0], &values[1]);
                let fitting = fitting.into_iter().map(|verdict| format!(" {}", verdict.as_str()));
                format!("fits{}", fitting.collect::<String>())
            } else {
                counted(&info, &values)
            };
            assert_eq!(found, *expected, "{case}");
        }
    }
}

#[test]
fn a_verdict_is_of_its_step_only_and_a_possible_wrap_has_its_figure() {
    let samples = values("04T07:22:40=807.86 06T19:16:22=28.80 06T19:20=28.90");
    let settings = "modulus=1000 max_w=12000 tolerance=0.2";
    let if_wrapped = CounterRule::of(&meter(settings)).if_wrapped(&samples[0], &samples[1]);
    assert_eq!(if_wrapped, Some(exact("220.94")));
    for verdict in ["wrap", "reset", "accept", "discard", "dip"] {
        let rule = CounterRule::of(&meter(&format!("{settings} {verdict}=06T19:16:22")));
        let told = rule.verdict(&samples[0], &samples[1]).map(Verdict::as_str);
        assert_eq!(told, Some(verdict));
        assert_eq!(rule.verdict(&samples[1], &samples[2]), None, "of its step only");
    }
}

#[test]
fn dips_cancel_over_days() {
    // 0.1 kWh every half-hour, and at 03:00, 11:00 and 19:00 a value that is 0.1 kWh too low.
    let dips = [6, 22, 38];
    let is_low = |n: i64| n > 48 && dips.contains(&(n % 48));
    let values = (0..=48 * 30).map(|n| 80_481 + n - 2 * i64::from(is_low(n)));
    let values = tenths(TimeDelta::minutes(30), values);
    let (first, last) = (values[0].at, values[48 * 30].at);
    let days = rows(&meter(""), &values, &edges(first, last, TimeDelta::days(1)));
    assert_eq!(amounts(&days), ["4.8"; 30]);
    assert!(days[0].flags.is_empty());
    assert!(days[1..].iter().all(|day| day.flags == Flag::Dip.into()));
    assert_eq!(counted(&meter(""), &values), "144 dip");
}

#[test]
fn a_counter_that_flickers_counts_what_was_used() {
    // 300 W for a day, read every minute, each odd minute 0.1 kWh too low.
    let values = tenths(TimeDelta::minutes(1), (0..=1440).map(|n| 80_481 + n / 20 - n % 2));
    assert_eq!(counted(&meter(""), &values), "7.2 dip");
}

#[test]
fn a_coarse_counter_read_often_counts_each_of_its_steps() {
    // 500 W for a day, read every 10 s: 0.1 kWh in 10 s would be 36 kW.
    let values = tenths(TimeDelta::seconds(10), (0..=8640).map(|n| 79_995 + n / 72));
    assert_eq!(counted(&meter(""), &values), "12");
    assert_eq!(counted(&meter("max_w=1000 tolerance=0.01"), &values), "12");
}

#[test]
fn values_that_mean_unknown_are_in_no_rollup() {
    let fold = |list| fold(&values(list), &MetricRule::of(&meter("")));
    let rollup = fold("11T10:00=808.1 11T10:01=-1.0 11T10:02=808.2").expect("two take part");
    assert_eq!((rollup.count, rollup.min), (2, number("808.1")));
    assert_eq!(fold("11T10:00=0 11T10:01=-1"), None);
}

#[test]
fn a_row_without_values_is_empty() {
    let quarter = [at("11T10:00"), at("11T10:15")];
    assert_eq!(rows(&meter(""), &[], &quarter)[0], RowIncrease::default());
}

#[test]
fn units_of_energy_are_known() {
    for (unit, amount) in [("Wh", "51000"), ("kWh", "51"), ("MWh", "0.051")] {
        let energy = EnergyUnit::of(Some(&given::unit(unit))).expect("a unit of energy");
        assert_eq!(energy.to_kwh(&exact(amount)), exact("51"));
    }
    assert_eq!(EnergyUnit::of(Some(&given::unit("m³"))), None);
}
