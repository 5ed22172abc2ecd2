//! The prices of the series of tariffs, by quarters of an hour. Averages no prices.

use std::collections::BTreeSet;

use api::Problem;
use domain::{CalendarUnit, Exact, QuarterHour, TimeRange};
use series::{Grid, Level};
use tariffs::{PriceSource, Prices, Tariff};

use super::{Biller, StepPlan};
use crate::ports::Store;

impl<S: Store> Biller<'_, S> {
    /// The prices that the rows need. An unknown device or metric has no prices.
    pub(super) async fn prices(&mut self, tariffs: &[&Tariff]) -> Result<Prices, Problem> {
        let range = self.plan.grid.range();
        let sources: BTreeSet<&PriceSource> =
            tariffs.iter().flat_map(|tariff| tariff.sources(range)).collect();

        // Slots of an hour reach beyond the range at both ends.
        let hours =
            |at| tariffs.iter().map(move |tariff| CalendarUnit::Hour.bucket_of(at, tariff.zone));
        let from = hours(range.from()).map(TimeRange::from).min().unwrap_or(range.from());
        let to = hours(range.last()).map(TimeRange::to).max().unwrap_or(range.to());
        let widened = TimeRange::new(from, to).expect("at least the range");
        let quarters = StepPlan { grid: Grid::quarters(widened), level: Level::QuarterHours };

        let mut prices = Prices::new();
        for source in sources {
            let Some(device) = self.devices.get(&source.device) else { continue };
            let names = [source.metric.clone()];
            let read = self.read_rows(device, &names, &quarters).await?;
            let Some(metric) = read.metrics.get(&source.metric) else { continue };

            let of_quarters = quarters.grid.rows().iter().zip(&metric.rows);
            let of_quarters = of_quarters.filter_map(|(range, row)| {
                let last = &row.rollup.as_ref()?.last.value;
                Some((QuarterHour::of(range.from()), Exact::from(last)))
            });
            prices.insert(source.clone(), of_quarters.collect());
        }
        Ok(prices)
    }
}
