//! The prices of the series of tariffs, by quarters of an hour. Averages none.

use std::collections::{BTreeMap, BTreeSet};

use domain::{CalendarUnit, Device, DeviceId, Exact, QuarterHour, TimeRange};
use series::{
    DeviceQuestion, Grid, Level, PlannedRead, ReadAllowance, SeriesError, Store, device_values,
};
use table::Session;
use tariffs::{PriceSource, Prices, Tariff};

use crate::series::question::plan::RowPlan;

/// Reads the prices that the rows need. A device or a metric that is not known has none.
pub(super) async fn read<S: Store>(
    tariffs: &[&Tariff],
    devices: &BTreeMap<DeviceId, Device>,
    plan: &RowPlan,
    allowance: &mut ReadAllowance<'_>,
    session: Session<'_, S>,
) -> Result<Prices, SeriesError> {
    let range = plan.grid.range();
    let sources: BTreeSet<&PriceSource> =
        tariffs.iter().flat_map(|tariff| tariff.sources(range)).collect();
    let zones: Vec<_> = tariffs.iter().map(|tariff| tariff.zone).collect();

    let mut prices = Prices::new();
    for source in sources {
        let Some(device) = devices.get(&source.device) else { continue };
        // Slots of an hour reach beyond the range at both ends.
        let edge = |at, zone| CalendarUnit::Hour.bucket_of(at, zone);
        let from = zones.iter().map(|zone| edge(range.from(), *zone).from()).min();
        let to = zones.iter().map(|zone| edge(range.last(), *zone).to()).max();
        let widened = TimeRange::new(from.unwrap_or(range.from()), to.unwrap_or(range.to()));
        let grid = Grid::quarters(widened.expect("at least the range"));
        let level = Level::QuarterHours;
        let question = DeviceQuestion::of(device, &grid, &plan.horizon, level, plan.now);

        let names = [source.metric.clone()];
        Box::pin(allowance.charge(session, &[PlannedRead::of(question, &names)])).await?;
        let values = Box::pin(device_values(session, &question, &names, |_| false)).await?;
        let Some(metric) = values.metrics.get(&source.metric) else { continue };
        let of_quarters = grid.rows().iter().zip(&metric.rows).filter_map(|(range, row)| {
            let last = &row.rollup.as_ref()?.last.value;
            Some((QuarterHour::of(range.from()), Exact::from(last)))
        });
        prices.insert(source.clone(), of_quarters.collect());
    }
    Ok(prices)
}
