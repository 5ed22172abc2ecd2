//! The rows of one device: its gathered rollups, and the values of each metric.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use domain::{
    Device, MetricName, MetricRule, Neighbours, Order, QuarterHour, TimeRange, Timestamp,
};
use table::{NearestReading, Session};

use super::error::SeriesError;
use super::gather::{DeviceQuestion, DeviceRollups, gather, gather_with_day_before};
use super::grid::uncovered;
use super::neighbours::neighbours;
use super::values::{Metric, RowValues, usual_interval, values};
use crate::ports::Store;

/// The rows of one device.
#[derive(Debug)]
pub struct DeviceRows<'a> {
    /// The device.
    pub device: &'a Device,
    /// The gathered pieces with their times and rooms. Their values are dropped, because `metrics` has them.
    pub gathered: DeviceRollups,
    /// The requested metrics of the device.
    pub metrics: BTreeMap<MetricName, MetricRows>,
    /// The range, extended by the time in which rollups were searched for the nearest values outside of it.
    pub reach: TimeRange,
    /// The usual time between two readings of the device.
    pub interval: Option<TimeDelta>,
}

/// The rows of one metric.
#[derive(Debug)]
pub struct MetricRows {
    /// The rule by which the metric is folded.
    pub rule: MetricRule,
    /// The values, one for each row of the grid.
    pub rows: Vec<RowValues>,
}

impl DeviceRows<'_> {
    /// Whether any row has a part of a counter's step or of a power.
    pub fn has_share(&self) -> bool {
        let mut rows = self.metrics.values().flat_map(|metric| &metric.rows);
        rows.any(|row| row.increase.amount.is_some() || row.area.is_some())
    }

    /// The start of the first quarter of an hour that has readings but no rollup; without such a quarter, the end of
    /// the range. If the table throttles a device, its quarters wait in the queue and count as rolled up.
    pub async fn folded_until(
        &self,
        session: Session<'_, impl Store>,
        range: TimeRange,
    ) -> Result<Timestamp, SeriesError> {
        let (device, order) = (self.device.id(), Order::Ascending);
        for gap in uncovered(range, self.gathered.pieces.iter().map(|piece| piece.range)) {
            let nearest = NearestReading { device, range: gap, order, consistent: true };
            if let Some(reading) = nearest.find(session).await? {
                return Ok(QuarterHour::of(reading.at).start());
            }
        }
        Ok(range.to())
    }
}

/// Reads the rows of the metrics in `names` that the device has. Neighbours of the range are read only for rules that
/// need neighbours.
pub async fn device_rows<'a>(
    session: Session<'_, impl Store>,
    question: &DeviceQuestion<'a>,
    names: &[MetricName],
    needs_neighbours: impl Fn(&MetricRule) -> bool,
) -> Result<DeviceRows<'a>, SeriesError> {
    let names: Vec<MetricName> = names
        .iter()
        .filter(|name| question.device.metrics().contains_key(*name))
        .cloned()
        .collect();
    let wanted: BTreeSet<MetricName> = names.iter().cloned().collect();
    let (device, question) =
        (question.device, &DeviceQuestion { metrics: Some(&wanted), ..*question });

    let rule = |name: &MetricName| MetricRule::of(&device.metrics()[name]);
    let with_neighbours = names.iter().map(|name| (name.clone(), rule(name)));
    let with_neighbours: BTreeMap<_, _> =
        with_neighbours.filter(|(_, rule)| needs_neighbours(rule)).collect();

    // Gauges have no neighbours, even if the caller asks for them.
    let mut gathered = if with_neighbours.values().all(|rule| *rule == MetricRule::Gauge) {
        gather(session, question).await?
    } else {
        gather_with_day_before(session, question).await?
    };
    let day_before = gathered.day_before.as_ref();
    let outside = neighbours(session, question, &with_neighbours, day_before).await?;

    let none = Neighbours::default();
    let metrics = names.iter().map(|name| {
        let rule = rule(name);
        let neighbours = outside.values.get(name).unwrap_or(&none);
        let metric = Metric { name, rule: &rule, neighbours };
        let rows = values(&gathered.pieces, question.grid, metric, question.now, outside.left);
        (name.clone(), MetricRows { rule, rows })
    });
    let metrics = metrics.collect();

    let interval = usual_interval(&gathered, &names);
    gathered.drop_values();
    Ok(DeviceRows { device, gathered, metrics, reach: outside.reach, interval })
}
