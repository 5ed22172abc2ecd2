//! When the price of energy changes, and so which energy was measured over several prices. Bills nothing.

use chrono::TimeDelta;
use domain::{CalendarUnit, Exact, QuarterHour, Timestamp};

use crate::input::{BillInput, EnergyStep, EstimatedEnergy};
use crate::tariff::{Pricing, TariffLine};
use crate::written::Per;

const HALF_QUARTER: TimeDelta = TimeDelta::seconds(450);

/// The times at which the price of used energy, and of sold energy, changes within a bill.
pub(crate) struct PriceChanges<'a> {
    input: BillInput<'a>,
    used: Vec<Timestamp>,
    sold: Vec<Timestamp>,
}

/// The price of a line at a time.
#[derive(PartialEq)]
enum LinePrice {
    /// `None` if no line holds, or the price is unknown.
    Price(Option<Exact>),
    /// Prices by what was used since the begin of the month. Another line has other prices.
    ByTier { month: Timestamp, line: Timestamp },
}

impl<'a> PriceChanges<'a> {
    /// Searches the rows for changes, if some energy was measured over a longer time than a quarter of an hour.
    pub(crate) fn of(input: BillInput<'a>) -> Self {
        let has = |per: Per| {
            let mut estimated = input.steps.iter().flat_map(|step| &step.estimated);
            estimated.any(|part| part.per == per)
        };
        let changes = |per: Per| if has(per) { changes(&input, per) } else { Vec::new() };
        Self { used: changes(Per::Used), sold: changes(Per::Sold), input }
    }

    /// Whether the price changes in the time over which energy of a step was measured. Prices change at quarters of an
    /// hour, so both ends are rounded to the nearest quarter: some minutes beyond a change do not count.
    pub(crate) fn are_within(&self, part: &EstimatedEnergy, step: &EnergyStep) -> bool {
        let changes = if part.per == Per::Sold { &self.sold } else { &self.used };
        let [from, to] = [part.over.from(), part.over.to()].map(nearest_quarter);
        let next = changes.partition_point(|change| *change <= from);
        if changes.get(next).is_some_and(|change| *change < to) {
            return true;
        }

        // Beyond the rows no changes are known. There the prices at the two ends decide.
        let prices = |at: Timestamp| prices_at(&self.input, part.per, at);
        let ends = [from, to.saturating_add(TimeDelta::milliseconds(-1))];
        !self.input.range().covers(part.over)
            && ends.map(prices).iter().any(|end| *end != prices(step.range.from()))
    }
}

fn nearest_quarter(at: Timestamp) -> Timestamp {
    QuarterHour::of(at.saturating_add(HALF_QUARTER)).start()
}

/// The begins of steps in rows at which a price differs from that of the step before.
fn changes(input: &BillInput<'_>, per: Per) -> Vec<Timestamp> {
    let mut changes = Vec::new();
    let mut before = None;
    for step in input.steps.iter().filter(|step| input.range().contains(step.range.from())) {
        let prices = prices_at(input, per, step.range.from());
        if before.is_some_and(|before| before != prices) {
            changes.push(step.range.from());
        }
        before = Some(prices);
    }
    changes
}

/// The price of each line for energy, and of each percentage, at a time.
fn prices_at(input: &BillInput<'_>, per: Per, at: Timestamp) -> Vec<LinePrice> {
    let month = CalendarUnit::Month.bucket_of(at, input.tariff.zone).from();
    let mut prices = Vec::new();
    for named in &input.tariff.lines {
        if !input.is_billed(named) || (named.per != per && named.per != Per::Percent) {
            continue;
        }
        let line = named.at(at);
        prices.push(match line {
            Some(TariffLine { pricing: Pricing::Tiers(_), range, .. }) => {
                LinePrice::ByTier { month, line: range.from() }
            }
            _ => LinePrice::Price(line.and_then(|line| input.price_at(line, at).1)),
        });
    }

    prices
}
