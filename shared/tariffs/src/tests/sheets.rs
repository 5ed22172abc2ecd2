//! The bills of published sheets, line by line to the last digit. What is exact in the sheet is exact here; a charge pro
//! rata is rounded down to 9 decimals.

use std::collections::BTreeMap;

use domain::given::{at, date, exact, zone};
use domain::{Amount, Exact, QuarterHour, TimeRange, Timestamp};
use serde::Deserialize;

use crate::{Bill, BillInput, EnergyStep, Missing, PriceSource, Prices, Tariff, WrittenTariff};

/// A sheet: a tariff, what was used, and the bill.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sheet {
    title: String,
    zone: String,
    from: String,
    to: String,
    /// The kWh of each quarter of an hour.
    each: Option<String>,
    /// The kWh of some hours, spread evenly.
    #[serde(default)]
    hours: BTreeMap<String, String>,
    /// The kWh of some quarters.
    #[serde(default)]
    quarters: BTreeMap<String, String>,
    /// The prices of devices by the begin of their time.
    #[serde(default)]
    prices: BTreeMap<String, BTreeMap<String, String>>,
    tariff: WrittenTariff,
    lines: Vec<String>,
    used: String,
    amount: Option<String>,
    due: Option<String>,
    missing: Vec<String>,
}

impl Sheet {
    fn all() -> Vec<Self> {
        serde_json::from_str(include_str!("sheets.json")).expect("sheets")
    }

    fn range(&self) -> TimeRange {
        let [from, to] = [&self.from, &self.to].map(|text| zone(&self.zone).midnight(date(text)));
        TimeRange::new(from, to).expect("a range")
    }

    fn used(&self, quarter: QuarterHour) -> Exact {
        let hour = quarter.start().as_millis() / 3_600_000 * 3_600_000;
        let text = |at: Timestamp| at.to_string().replace(".000Z", "Z");
        let of_hour = self.hours.get(&text(Timestamp::from_millis(hour).expect("an hour")));
        let of_quarter = self.quarters.get(&text(quarter.start())).or(self.each.as_ref());
        match (of_hour, of_quarter) {
            (Some(kwh), _) => &exact(kwh) * &exact("0.25"),
            (None, kwh) => kwh.map_or_else(Exact::zero, |kwh| exact(kwh)),
        }
    }

    /// The quarters of the range.
    fn steps(&self) -> Vec<EnergyStep> {
        let range = self.range();
        let mut steps = Vec::new();
        let mut quarter = QuarterHour::of(range.from());
        while quarter.start() < range.to() {
            let used = Some(Amount::counted(self.used(quarter)));
            let metered = used.clone();
            let range = quarter.range();
            steps.push(EnergyStep {
                range,
                used,
                sold: None,
                metered,
                is_unknown: false,
                estimated: Vec::new(),
            });
            quarter = quarter.next();
        }
        steps
    }

    fn prices(&self) -> Prices {
        let values = |of: &BTreeMap<String, String>| {
            of.iter().map(|(time, price)| (QuarterHour::of(at(time)), exact(price))).collect()
        };
        let source = |device: &str| PriceSource {
            device: device.parse().expect("an id"),
            metric: "price".parse().expect("a name"),
        };
        self.prices.iter().map(|(device, of)| (source(device), values(of))).collect()
    }

    fn bill(&self, rows: &[TimeRange], steps: &[EnergyStep]) -> Bill {
        let tariff = Tariff::of(&self.tariff, zone(&self.zone)).expect("a tariff");
        let (prices, until) = (self.prices(), Timestamp::MAX);
        Bill::of(BillInput {
            tariff: &tariff,
            rows,
            steps,
            prices: &prices,
            missing: &[],
            until,
            is_share: false,
        })
    }
}

fn lines(bill: &Bill) -> Vec<String> {
    let text = |line: &crate::BillLine| {
        let zone = line.zone.as_ref().map_or_else(String::new, |zone| format!(" {zone}"));
        let quantity = line.quantity.as_ref();
        let quantity = quantity.map_or_else(String::new, |amount| format!(": {}", amount.shown()));
        format!("{}{zone}{quantity} = {}", line.name, line.amount.shown())
    };
    bill.lines.iter().map(text).collect()
}

fn missing(bill: &Bill) -> Vec<String> {
    let text = |missing: &Missing| {
        let line = missing.line.as_deref().unwrap_or("-");
        let energy = missing.kwh.as_ref().map_or_else(Exact::zero, Amount::shown);
        format!("{} {line} {} {} {energy}", missing.what.as_str(), missing.from, missing.to)
    };
    bill.missing.iter().map(text).collect()
}

#[test]
fn the_bills_of_published_sheets_are_theirs_line_by_line() {
    for sheet in Sheet::all() {
        let bill = sheet.bill(&[sheet.range()], &sheet.steps());
        let name = &sheet.title;
        assert_eq!(lines(&bill), sheet.lines, "{name}");
        let used = bill.total.used.as_ref().expect("used").shown();
        assert_eq!(used.to_string(), sheet.used, "{name}");
        if let Some(amount) = &sheet.amount {
            assert_eq!(bill.total.amount.shown().to_string(), *amount, "{name}");
        }
        assert_eq!(bill.due, sheet.due, "{name}");
        assert_eq!(missing(&bill), sheet.missing, "{name}");
    }
}

/// The guide shows the tariffs of the sheets, and each tariff that it shows can be billed.
#[test]
fn the_guide_has_the_sheets() {
    let guide = include_str!("../../../../docs/guide/cost.md");
    let blocks = guide.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    let shown: Vec<WrittenTariff> =
        blocks.map(|block| serde_json::from_str(block).expect(block)).collect();
    for tariff in &shown {
        Tariff::of(tariff, zone("Europe/Oslo"))
            .unwrap_or_else(|why| panic!("{}: {why}", tariff.name.as_str()));
    }
    for sheet in Sheet::all() {
        assert!(shown.contains(&sheet.tariff), "{}", sheet.title);
    }
}

/// Cuts a range at random times and the steps with it. Energy within a quarter is even, as far as decimals go.
fn cut(sheet: &Sheet, random: &mut fastrand::Rng) -> (Vec<TimeRange>, Vec<EnergyStep>) {
    let range = sheet.range();
    let mut edges = vec![range.from(), range.to()];
    for _ in 0..random.usize(0..30) {
        edges.push(
            Timestamp::from_millis(random.i64(range.from().as_millis()..range.to().as_millis()))
                .expect("in the range"),
        );
    }
    edges.sort_unstable();
    edges.dedup();
    let rows: Vec<TimeRange> =
        edges.windows(2).map(|pair| TimeRange::new(pair[0], pair[1]).expect("in order")).collect();

    let mut steps = Vec::new();
    for step in sheet.steps() {
        let whole = step.used.as_ref().expect("used").shown();
        let (from, length) = (step.range.from(), step.range.length().num_milliseconds());
        let upto = |at: Timestamp| whole.part(at.since(from).num_milliseconds(), length);
        for part in rows.iter().filter_map(|row| row.intersection(step.range)) {
            let used = Some(Amount::counted(&upto(part.to()) - &upto(part.from())));
            steps.push(EnergyStep { range: part, metered: used.clone(), used, ..step.clone() });
        }
    }
    (rows, steps)
}

#[test]
fn any_partition_adds_up_to_the_last_digit() {
    let mut random = fastrand::Rng::with_seed(7);
    for sheet in Sheet::all() {
        let whole = sheet.bill(&[sheet.range()], &sheet.steps());
        for _ in 0..20 {
            let (rows, steps) = cut(&sheet, &mut random);
            let parts = sheet.bill(&rows, &steps);
            assert_eq!(lines(&parts), lines(&whole), "{}", sheet.title);
            assert_eq!(
                (parts.total.amount, parts.due),
                (whole.total.amount.clone(), whole.due.clone())
            );
            assert_eq!(parts.rows.len(), rows.len());

            // Each row alone is what it is among the others, with the steps of its month before it.
            let place = random.usize(0..rows.len());
            let before: Vec<EnergyStep> =
                steps.iter().filter(|step| step.range.from() < rows[place].to()).cloned().collect();
            let alone = sheet.bill(&rows[place..=place], &before);
            assert_eq!(alone.total.amount, parts.rows[place].amount, "{}", sheet.title);
        }
    }
}

#[test]
fn the_work_of_a_bill_counts_tiers_and_the_quarters_of_a_slot_and_no_zones() {
    let work = |title: &str| {
        let sheet = Sheet::all().into_iter().find(|sheet| sheet.title == title).expect(title);
        Tariff::of(&sheet.tariff, zone(&sheet.zone)).expect("a tariff").work(10)
    };
    assert_eq!(work("japan"), 60, "three lines and three tiers");
    assert_eq!(work("britain"), 40, "a series");
    assert_eq!(work("spain"), 40, "four lines; zones are bits and take no time");
}
