//! What a bill is made of: a tariff, the energy of steps of time, and prices. Bills nothing.

use domain::{Amount, Exact, QuarterHour, TimeRange, Timestamp};

use crate::missing::Missing;
use crate::prices::Prices;
use crate::tariff::{NamedLine, Pricing, Tariff, TariffLine};
use crate::written::Per;

/// What was used and sold in one step of time: a quarter of an hour, a local day, or a part of these.
#[derive(Debug, Clone)]
pub struct EnergyStep {
    /// The time of the step, which lies in one row.
    pub range: TimeRange,
    /// What was used; `None` if nothing is known.
    pub used: Option<Amount>,
    /// What was sold; `None` if nothing is known.
    pub sold: Option<Amount>,
    /// What the meter used, which tiers count. Differs from `used` in the bill of a share.
    pub metered: Option<Amount>,
    /// Whether the energy of a meter is unknown.
    pub is_unknown: bool,
    /// The parts of `used` and `sold` that were measured over a longer time than a quarter of an hour.
    pub estimated: Vec<EstimatedEnergy>,
}

/// Energy of a step that was measured over a longer time than a quarter of an hour, and so is spread evenly over that
/// time.
#[derive(Debug, Clone)]
pub struct EstimatedEnergy {
    /// Whether the energy was used or sold.
    pub per: Per,
    /// The energy.
    pub amount: Amount,
    /// The time over which the energy was measured.
    pub over: TimeRange,
}

/// The inputs of a bill.
#[derive(Debug, Clone, Copy)]
pub struct BillInput<'a> {
    /// The tariff.
    pub tariff: &'a Tariff,
    /// The rows, which follow each other.
    pub rows: &'a [TimeRange],
    /// The steps, which follow each other. Steps before the first row only count for tiers.
    pub steps: &'a [EnergyStep],
    /// The prices of the tariff's series.
    pub prices: &'a Prices,
    /// What the steps lack, before they are billed.
    pub missing: &'a [Missing],
    /// Now. Standing charges accrue up to this time. A bill whose rows end later has no `due`.
    pub until: Timestamp,
    /// Whether the bill is that of a device's share: no standing charges, nothing sold, and each quarter of an hour at
    /// the price of the tier in which it begins.
    pub is_share: bool,
}

impl<'a> BillInput<'a> {
    /// The time of all rows.
    pub(crate) fn range(&self) -> TimeRange {
        let to = self.rows[self.rows.len() - 1].to();
        TimeRange::new(self.rows[0].from(), to).expect("rows follow each other")
    }

    /// Whether a line is in the bill. A share has only the lines per used energy and the percentages.
    pub(crate) fn is_billed(&self, named: &NamedLine) -> bool {
        !self.is_share || matches!(named.per, Per::Used | Per::Percent)
    }

    /// The zone and the price of energy at a time. Both are `None` with tiers, whose price depends on the amount.
    pub(crate) fn price_at(
        &self,
        line: &'a TariffLine,
        at: Timestamp,
    ) -> (Option<&'a str>, Option<Exact>) {
        match &line.pricing {
            Pricing::Zones { price, zones } => match self.tariff.zone_at(zones, at) {
                Some(zone) => (Some(&zone.name), Some(zone.price.clone())),
                None => (None, Some(price.clone())),
            },
            Pricing::Tiers(_) => (None, None),
            Pricing::Series(series) => {
                (None, series.price(self.prices, QuarterHour::of(at), self.tariff.zone))
            }
        }
    }
}
