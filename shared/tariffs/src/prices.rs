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
pub(crate) struct PriceSeries {
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

        // The share of a quarter in its slot (1, 1/2 or 1/4) has few digits, so the mean is exact.
        let share = Exact::from(1_i64).rounded_quotient(&Exact::from(count))?;
        Some(&(&(&sum * &share) * &self.times) + &self.adder)
    }

    /// The value that holds in a quarter: the last one from the start of the time for which values hold up to the
    /// quarter's end.
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

#[cfg(test)]
mod tests {
    use domain::given::{at, exact};

    use super::*;

    #[test]
    fn the_mean_of_a_slot_has_each_digit() {
        let source = PriceSource {
            device: "spot".parse().expect("an id"),
            metric: "price".parse().expect("a name"),
        };
        let first = QuarterHour::of(at("2026-01-11T16:00:00Z"));
        let quarters = std::iter::successors(Some(first), |quarter| Some(quarter.next()));
        let values = ["0.12345678901234567890123456789", "0", "1", "0.5"].map(exact);
        let prices = Prices::from([(source.clone(), quarters.zip(values).collect())]);

        for (slot, mean) in [
            (PriceSlot::Quarter, "0.12345678901234567890123456789"),
            (PriceSlot::Half, "0.061728394506172839450617283945"),
            (PriceSlot::Hour, "0.4058641972530864197253086419725"),
        ] {
            let (source, holds) = (source.clone(), PriceSlot::Quarter);
            let (times, adder) = (Exact::from(1_i64), Exact::zero());
            let series = PriceSeries { source, slot, holds, times, adder };
            let price = series.price(&prices, first, Zone::UTC).expect("a price");
            assert_eq!(price.to_string(), mean);
        }
    }
}
