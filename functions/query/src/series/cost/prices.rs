//! The prices of the series of tariffs, by quarters of an hour. Averages none.

use std::collections::{BTreeMap, BTreeSet};

use domain::{CalendarUnit, Device, DeviceId, Exact, QuarterHour, TimeRange};
use series::{
    DeviceQuestion, DeviceRows, Grid, Level, RowReader, SeriesError, Store, device_values,
};
use tariffs::{PriceSource, Prices, Tariff};

use crate::series::plan::RowPlan;

/// Reads the prices that the rows need. A device or a metric that is not known has none.
pub(super) async fn read<S: Store>(
    tariffs: &[&Tariff],
    devices: &BTreeMap<DeviceId, Device>,
    plan: &RowPlan,
    reader: &mut RowReader<'_, S>,
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
        Box::pin(reader.check_and_charge(&[DeviceRows::of(question, &names)])).await?;
        let values = Box::pin(device_values(reader.session, &question, &names, |_| false)).await?;
        let Some(metric) = values.metrics.get(&source.metric) else { continue };
        let of_quarters = grid.rows().iter().zip(&metric.rows).filter_map(|(range, row)| {
            let last = &row.rollup.as_ref()?.last.value;
            Some((QuarterHour::of(range.from()), Exact::from(last)))
        });
        prices.insert(source.clone(), of_quarters.collect());
    }
    Ok(prices)
}
