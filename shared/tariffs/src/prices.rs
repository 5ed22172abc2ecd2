//! Series of prices: what a quarter of an hour cost. Reads nothing.

use std::collections::BTreeMap;

use domain::{CalendarUnit, DeviceId, Exact, MetricName, QuarterHour, Zone};

use crate::written::PriceSlot;

/// The metric that is a series of prices.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PriceSource {
    /// The device.
    pub device: DeviceId,
    /// The metric.
    pub metric: MetricName,
}

/// The last value of each quarter of an hour, of each series.
pub type Prices = BTreeMap<PriceSource, BTreeMap<QuarterHour, Exact>>;

/// A price by a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceSeries {
    pub(crate) source: PriceSource,
    pub(crate) slot: PriceSlot,
    pub(crate) holds: PriceSlot,
    /// The factor of the series' values.
    pub(crate) times: Exact,
    /// What is added to each price.
    pub(crate) adder: Exact,
}

impl PriceSlot {
    /// The unit of the calendar with the same length.
    pub(crate) const fn unit(self) -> CalendarUnit {
        match self {
            Self::Quarter => CalendarUnit::QuarterHour,
            Self::Half => CalendarUnit::HalfHour,
            Self::Hour => CalendarUnit::Hour,
        }
    }
}

impl PriceSeries {
    /// The price of a quarter's slot: the mean of all quarters of the slot. `None` if a quarter has no price.
    pub(crate) fn price(&self, prices: &Prices, quarter: QuarterHour, zone: Zone) -> Option<Exact> {
        let values = prices.get(&self.source)?;
        let slot = self.slot.unit().bucket_of(quarter.start(), zone);

        let (mut sum, mut count) = (Exact::zero(), 0_i64);
        let mut quarter = QuarterHour::of(slot.from());
        while quarter.start() < slot.to() {
            sum += self.held_value(values, quarter, zone)?;
            count += 1;
            quarter = quarter.next();
        }

        let mean = sum.rounded_quotient(&Exact::from(count))?;
        Some(&(&mean * &self.times) + &self.adder)
    }

    /// The last value from the start of its time up to the quarter's end.
    fn held_value<'a>(
        &self,
        values: &'a BTreeMap<QuarterHour, Exact>,
        quarter: QuarterHour,
        zone: Zone,
    ) -> Option<&'a Exact> {
        let held = self.holds.unit().bucket_of(quarter.start(), zone);
        let first = QuarterHour::of(held.from());
        values.range(first..=quarter).next_back().map(|(_, value)| value)
    }
}
