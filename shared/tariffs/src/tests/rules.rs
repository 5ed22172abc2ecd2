//! The rules of a line that the published sheets leave open, each by a small bill.

use chrono::TimeDelta;
use domain::given::{at, exact, range, zone};
use domain::{Amount, Exact, QuarterHour, TimeRange, Timestamp};

use crate::{Bill, BillInput, EnergyStep, PriceSource, Prices, Tariff};

const OSLO: &str = "Europe/Oslo";

/// A bill of some lines over steps of a quarter of an hour from a time on, in one row.
struct Small<'a> {
    /// Members of the tariff, in JSON.
    tariff: &'a str,
    from: &'a str,
    to: &'a str,
    /// What is used from a time on, in each quarter.
    used: (&'a str, &'a [&'a str]),
    /// The prices of `spot`.
    prices: &'a [(&'a str, &'a str)],
    until: Timestamp,
    is_share: bool,
}

impl Default for Small<'_> {
    fn default() -> Self {
        Self {
            tariff: "",
            from: "2026-01-11T00:00:00Z",
            to: "2026-01-12T00:00:00Z",
            used: ("2026-01-11T00:00:00Z", &[]),
            prices: &[],
            until: Timestamp::MAX,
            is_share: false,
        }
    }
}

/// The bill of 1 kWh in the quarter of an hour from a time on.
fn bill_of_quarter(tariff: &str, time: &str) -> Bill {
    let to = at(time).saturating_add(TimeDelta::minutes(15)).to_string();
    Small { tariff, from: time, to: &to, used: (time, &["1"]), ..Small::default() }.bill()
}

impl Small<'_> {
    fn bill(&self) -> Bill {
        self.bill_of(&[range(at(self.from), at(self.to))])
    }

    fn bill_of(&self, rows: &[TimeRange]) -> Bill {
        let text = format!(r#"{{"name": "Small", "currency": "EUR", {}}}"#, self.tariff);
        let written = serde_json::from_str(&text).expect(&text);
        let tariff = Tariff::of(&written, zone(OSLO)).expect(&text);
        let source = PriceSource {
            device: "spot".parse().expect("an id"),
            metric: "price".parse().expect("a name"),
        };
        let prices =
            self.prices.iter().map(|(time, price)| (QuarterHour::of(at(time)), exact(price)));
        let prices = Prices::from([(source, prices.collect())]);

        let (tariff, steps, prices) = (&tariff, &self.steps(), &prices);
        let (missing, until, is_share) = (&[][..], self.until, self.is_share);
        Bill::of(BillInput { tariff, rows, steps, prices, missing, until, is_share })
    }

    /// The quarters up to the end. The meter of a share uses ten times as much.
    fn steps(&self) -> Vec<EnergyStep> {
        let (mut begin, used) = (at(self.used.0).min(at(self.from)), self.used.1);
        let mut steps = Vec::new();
        while begin < at(self.to) {
            let end = begin.saturating_add(TimeDelta::minutes(15));
            let quarter = begin.since(at(self.used.0)).num_minutes().div_euclid(15);
            let of_quarter = usize::try_from(quarter).ok().and_then(|quarter| used.get(quarter));
            let amount = |factor: i64| of_quarter.map(|kwh| Amount::counted(&exact(kwh) * factor));
            steps.push(EnergyStep {
                range: range(begin, end),
                used: amount(1),
                sold: amount(1),
                metered: amount(if self.is_share { 10 } else { 1 }),
                is_unknown: false,
                estimated: Vec::new(),
            });
            begin = end;
        }
        steps
    }
}

fn money(bill: &Bill) -> String {
    bill.total.amount.shown().to_string()
}

fn amounts(bill: &Bill) -> Vec<String> {
    bill.lines.iter().map(|line| line.amount.shown().to_string()).collect()
}

#[test]
fn the_newest_line_holds_and_where_it_has_ended_only_a_line_with_a_later_end() {
    let tariff = r#""lines": [
        {"name": "Energy", "to": "2026-01-13", "price": 1},
        {"name": "Grid", "price": 5},
        {"name": "VAT", "per": "percent", "price": 10},
        {"name": "Energy", "from": "2026-01-11", "to": "2026-01-12", "price": 2},
        {"name": "Grid", "from": "2026-01-11", "to": "2026-01-12", "price": 0}]"#;
    for (time, expected) in [
        ("2026-01-10T12:00:00Z", ["1", "5", "0.6"].as_slice()),
        ("2026-01-11T12:00:00Z", &["2", "0", "0.2"]),
        ("2026-01-12T12:00:00Z", &["1", "0.1"]),
        ("2026-01-13T12:00:00Z", &["0"]),
    ] {
        assert_eq!(amounts(&bill_of_quarter(tariff, time)), expected, "{time}");
    }
}

#[test]
fn month_weekday_and_list_are_those_of_the_day_that_has_begun_and_hours_those_of_the_clock() {
    let tariff = r#""tz": "UTC", "day_begins": "06:00", "days": {"red": ["2026-01-13"]}, "lines": [
        {"name": "Energy", "price": 1, "zones": [
            {"name": "sunday", "days": "sun", "price": 2},
            {"name": "red", "days": "red", "price": 3},
            {"name": "february", "months": "feb", "price": 4},
            {"name": "noon", "hours": "12:00-13:00", "price": 5}]}]"#;
    for (time, price) in [
        ("2026-01-11T05:45:00Z", "1"),
        ("2026-01-11T06:00:00Z", "2"),
        ("2026-01-12T05:45:00Z", "2"),
        ("2026-01-13T06:00:00Z", "3"),
        ("2026-01-14T05:45:00Z", "3"),
        ("2026-02-01T05:45:00Z", "1"),
        ("2026-02-02T06:00:00Z", "4"),
        ("2026-02-02T12:45:00Z", "5"),
        ("2026-02-02T18:00:00Z", "4"),
    ] {
        assert_eq!(money(&bill_of_quarter(tariff, time)), price, "{time}");
    }
}

#[test]
fn days_suffice_where_no_price_changes_within_a_day_of_the_home() {
    let whole = range(at("2026-01-01T00:00:00Z"), at("2026-02-01T00:00:00Z"));
    for (tariff, needs_quarters) in [
        (
            r#""lines": [{"name": "E", "price": 1, "zones": [{"name": "s", "days": "sun", "price": 2}]}]"#,
            false,
        ),
        (r#""lines": [{"name": "E", "tiers": [{"to": 1, "price": 1}, {"price": 2}]}]"#, false),
        (r#""day_begins": "06:00", "lines": [{"name": "E", "price": 1}]"#, false),
        (
            r#""day_begins": "06:00", "lines": [{"name": "E", "price": 1, "zones": [{"name": "s", "days": "sun", "price": 2}]}]"#,
            true,
        ),
        (
            r#""lines": [{"name": "E", "price": 1, "zones": [{"name": "n", "hours": "22:00-06:00", "price": 2}]}]"#,
            true,
        ),
        (
            r#""lines": [{"name": "E", "series": {"device": "spot", "metric": "price", "slot": "1h"}}]"#,
            true,
        ),
        (r#""tz": "Etc/GMT-1", "lines": [{"name": "E", "price": 1}]"#, true),
    ] {
        let text = format!(r#"{{"name": "Small", "currency": "EUR", {tariff}}}"#);
        let written = serde_json::from_str(&text).expect(&text);
        let tariff = Tariff::of(&written, zone(OSLO)).expect(&text);
        assert_eq!(tariff.needs_quarters(whole, zone(OSLO)), needs_quarters, "{text}");
    }
}

#[test]
fn tiers_share_a_step_and_begin_again_with_the_local_month_and_below_zero_the_first_goes_on() {
    let tariff = r#""lines": [{"name": "Energy", "tiers": [{"to": 1, "price": 1}, {"to": 3, "price": 10}, {"price": 100}]}]"#;
    // Midnight in Oslo is 23:00 of UTC.
    let month = |used: &[&str]| {
        let (from, to) = ("2026-01-31T22:00:00Z", "2026-02-01T01:00:00Z");
        money(&Small { tariff, from, to, used: (from, used), ..Small::default() }.bill())
    };
    assert_eq!(month(&["4"]), "121");
    assert_eq!(month(&["0.5", "0.5", "2", "1"]), "121");
    assert_eq!(month(&["4", "0", "0", "0", "4"]), "242");
    assert_eq!(month(&["4", "0", "0", "0", "1", "0", "0", "0", "1"]), "132");
    assert_eq!(month(&["-2"]), "-2");
    assert_eq!(month(&["-2", "3"]), "1");
    assert_eq!(month(&["2", "-1.5"]), "0.5");

    let fallen = Small { tariff, used: ("2026-01-11T00:00:00Z", &["-2"]), ..Small::default() };
    assert_eq!(fallen.bill().total.mean, None);

    // What was used before the row counts.
    let (from, to) = ("2026-01-31T22:15:00Z", "2026-01-31T22:30:00Z");
    let used = ("2026-01-31T22:00:00Z", &["2", "2"][..]);
    assert_eq!(money(&Small { tariff, from, to, used, ..Small::default() }.bill()), "110");
    // A share has the tier of the meter when its quarter began; at a limit that is the next tier.
    let used = ("2026-01-31T22:00:00Z", &["0.1", "2"][..]);
    let share = Small { tariff, from, to, used, is_share: true, ..Small::default() };
    assert_eq!(money(&share.bill()), "20");
}

#[test]
fn a_share_has_neither_standing_charges_nor_what_is_sold_nor_a_sum_that_is_due() {
    let tariff = r#""lines": [{"name": "Basic", "per": "month", "price": 31}, {"name": "Energy", "price": 2},
        {"name": "Feed-in", "per": "sold", "price": 1}, {"name": "VAT", "per": "percent", "price": 10}]"#;
    let (from, to) = ("2025-12-31T23:00:00Z", "2026-01-31T23:00:00Z");
    let whole = Small { tariff, from, to, used: (from, &["10"]), ..Small::default() };
    assert_eq!(amounts(&whole.bill()), ["31", "20", "-10", "4.1"]);
    assert_eq!(whole.bill().due.as_deref(), Some("45.10"));
    let share = Small { is_share: true, ..whole }.bill();
    assert_eq!((amounts(&share), share.due), (vec!["20".to_owned(), "2".to_owned()], None));
}

#[test]
fn what_is_due_is_rounded_once_a_month_and_needs_whole_months_that_are_over() {
    let tariff = r#""lines": [{"name": "Basic", "per": "month", "price": 1.005}, {"name": "Discount", "per": "month", "price": -0.001, "round": "down"}]"#;
    let due = |from: &str, to: &str, until: Timestamp| {
        Small { tariff, from, to, until, ..Small::default() }.bill().due
    };
    let [january, february, march] =
        ["2025-12-31T23:00:00Z", "2026-01-31T23:00:00Z", "2026-02-28T23:00:00Z"];
    assert_eq!(due(january, february, at(february)).as_deref(), Some("1.01"));
    assert_eq!(due(january, march, at(march)).as_deref(), Some("2.02"));
    assert_eq!(due(january, march, at("2026-02-28T22:59:00Z")), None);
    assert_eq!(due("2026-01-01T00:00:00Z", february, at(march)), None);
    assert_eq!(due(january, "2026-02-28T22:00:00Z", at(march)), None);
}

#[test]
fn a_charge_counts_whole_days_and_of_a_part_its_share() {
    let bill = |line: &str, from: &str, to: &str, until: &str| {
        let tariff = format!(r#""lines": [{line}]"#);
        money(&Small { tariff: &tariff, from, to, until: at(until), ..Small::default() }.bill())
    };
    let day = r#"{"name": "Basic", "per": "day", "price": 23}"#;
    // The day on which the clock goes forward has 23 hours.
    let (midnight, noon, next) =
        ("2026-03-28T23:00:00Z", "2026-03-29T10:00:00Z", "2026-03-29T22:00:00Z");
    assert_eq!(bill(day, midnight, noon, next), "11");
    assert_eq!(bill(day, midnight, next, next), "23");
    assert_eq!(bill(day, midnight, next, noon), "11");
    let month = r#"{"name": "Basic", "per": "month", "price": 31}"#;
    assert_eq!(bill(month, midnight, next, next), "1");
    let year = r#"{"name": "Basic", "per": "year", "price": 365}"#;
    assert_eq!(bill(year, midnight, next, next), "1");
}

#[test]
fn a_price_holds_from_its_quarter_to_the_end_of_its_slot_and_a_gap_is_a_gap() {
    let (from, to) = ("2026-01-11T16:00:00Z", "2026-01-11T17:00:00Z");
    let bill = |slot: &str, prices: &[(&str, &str)]| {
        let tariff = format!(
            r#""lines": [{{"name": "Energy", "times": 10, "price": 1, "series": {{"device": "spot", "metric": "price", {slot}}}}}]"#
        );
        let used = (from, &["1"; 4][..]);
        Small { tariff: &tariff, from, to, used, prices, ..Small::default() }.bill()
    };
    let lacking = |bill: &Bill| {
        let kwh = bill
            .missing
            .iter()
            .map(|missing| missing.kwh.as_ref().map_or_else(Exact::zero, Amount::shown));
        kwh.map(|kwh| kwh.to_string()).collect::<Vec<_>>()
    };
    let hourly = bill(r#""slot": "1h""#, &[(from, "2")]);
    assert_eq!((money(&hourly), lacking(&hourly)), ("84".to_owned(), vec![]));
    assert_eq!(hourly.total.mean, Some(exact("21")));
    let late = bill(r#""slot": "1h""#, &[("2026-01-11T16:15:00Z", "2")]);
    assert_eq!((money(&late), lacking(&late)), ("0".to_owned(), vec!["4".to_owned()]));
    assert_eq!(late.total.mean, None);
    let by_quarters = bill(r#""slot": "15m""#, &[(from, "2"), ("2026-01-11T16:30:00Z", "-2")]);
    assert_eq!(
        (money(&by_quarters), lacking(&by_quarters)),
        ("2".to_owned(), vec!["1".to_owned(), "1".to_owned()])
    );
    let held =
        bill(r#""slot": "15m", "holds": "30m""#, &[(from, "2"), ("2026-01-11T16:45:00Z", "-2")]);
    assert_eq!((money(&held), lacking(&held)), ("23".to_owned(), vec!["1".to_owned()]));
    let mean =
        bill(r#""slot": "1h", "holds": "30m""#, &[(from, "2"), ("2026-01-11T16:30:00Z", "-1")]);
    assert_eq!((money(&mean), lacking(&mean)), ("24".to_owned(), vec![]));
}
