//! The values of one metric in the rows of one device, made from gathered rollups. Reads nothing.

use chrono::TimeDelta;
use domain::{
    MetricName, MetricRollup, MetricRule, Neighbours, Rollup, Row, RowArea, RowIncrease, TimeRange,
    Timestamp, areas, increases,
};

use super::gather::{DeviceRollups, Level, RollupPiece};
use super::grid::{Grid, uncovered};

/// The values of one metric of one device in one row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowValues {
    /// The rollup of the values inside the row.
    pub rollup: Option<MetricRollup>,
    /// The increase of a counter in the row.
    pub increase: RowIncrease,
    /// The area under a power in the row: its energy.
    pub area: Option<RowArea>,
}

/// One metric of a device, with its rule of folding and its neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metric<'a> {
    pub name: &'a MetricName,
    pub rule: &'a MetricRule,
    pub neighbours: &'a Neighbours,
}

/// Computes the values of each row.
///
/// Time in a room that the question does not have splits the range into stays. A counter's increase from the last
/// reading in one room to the first reading in the next counts in neither room. `left_after_range` is the device's first
/// reading in another room after the range. The last power of a stay counts to the end of the stay's last row. In
/// a row that reaches beyond now, it counts until now. If a reading ahead of the clock shows that the device leaves
/// later, it counts until then.
pub(crate) fn values(
    pieces: &[RollupPiece],
    grid: &Grid,
    metric: Metric<'_>,
    now: Timestamp,
    left_after_range: Option<Timestamp>,
) -> Vec<RowValues> {
    let mut values = vec![RowValues::default(); grid.rows().len()];
    let elsewhere = pieces.iter().filter(|piece| piece.is_in_other_room);
    let elsewhere = elsewhere.map(RollupPiece::since_first_reading);

    for stay in uncovered(grid.range(), elsewhere) {
        // A stay that ends inside of the range ends because the device left.
        let left = if stay.to() < grid.range().to() { Some(stay.to()) } else { left_after_range };
        let until = left.map_or(now, |left| left.max(now));
        add_stay(&mut values, stay, pieces, grid, metric, until);
    }
    values
}

fn add_stay(
    values: &mut [RowValues],
    stay: TimeRange,
    pieces: &[RollupPiece],
    grid: &Grid,
    metric: Metric<'_>,
    until: Timestamp,
) {
    let whole = grid.range();
    let neighbours = Neighbours {
        before: metric.neighbours.before.clone().filter(|_| stay.from() == whole.from()),
        after: metric.neighbours.after.clone().filter(|_| stay.to() == whole.to()),
    };

    let parts: Vec<(usize, TimeRange)> = grid.cut(stay).collect();
    let rollups: Vec<Option<MetricRollup>> =
        parts.iter().map(|(_, part)| folded(pieces, *part, metric)).collect();
    let rows: Vec<Row<'_>> = parts
        .iter()
        .zip(&rollups)
        .map(|((_, range), rollup)| Row { range: *range, rollup: rollup.as_ref() })
        .collect();

    let counted = match metric.rule {
        MetricRule::Counter(rule) => increases(&rows, &neighbours, rule),
        _ => vec![RowIncrease::default(); rows.len()],
    };
    let held = match metric.rule {
        MetricRule::Power(hold) => areas(&rows, &neighbours, *hold, until),
        _ => vec![None; rows.len()],
    };

    for (((row, _), rollup), (counted, held)) in
        parts.iter().zip(&rollups).zip(counted.into_iter().zip(held))
    {
        values[*row].append(rollup.as_ref(), &counted, held);
    }
}

/// Joins the rollups of a metric that lie in a part of a row.
fn folded(pieces: &[RollupPiece], part: TimeRange, metric: Metric<'_>) -> Option<MetricRollup> {
    let first = pieces.partition_point(|piece| piece.range.from() < part.from());
    let inside = pieces[first..].iter().take_while(|piece| piece.range.to() <= part.to());
    let rollups = inside.filter_map(|piece| piece.rollup.metrics.get(metric.name));
    let fold = |sum: Option<MetricRollup>, next: &MetricRollup| match sum {
        None => Some(next.clone()),
        Some(mut sum) => {
            sum.append(next, metric.rule);
            Some(sum)
        }
    };
    rollups.fold(None, fold)
}

impl RowValues {
    /// Adds the rollup, the increase and the area of a later stay to the row.
    pub(crate) fn append(
        &mut self,
        rollup: Option<&MetricRollup>,
        counted: &RowIncrease,
        held: Option<RowArea>,
    ) {
        match (&mut self.rollup, rollup) {
            // Joined as for a gauge, so that a counter's step between two stays counts in neither stay.
            (Some(sum), Some(later)) => sum.append(later, &MetricRule::Gauge),
            (none, later) => *none = none.take().or_else(|| later.cloned()),
        }

        if let Some(amount) = &counted.amount {
            *self.increase.amount.get_or_insert_with(domain::Exact::zero) += amount;
        }

        self.increase.flags = self.increase.flags.union(counted.flags);
        self.increase.estimated.extend_from_slice(&counted.estimated);
        self.increase.measured += counted.measured;

        if let Some(held) = held {
            let sum = self.area.get_or_insert_with(RowArea::default);
            sum.area += &held.area;
            sum.held += held.held;
        }
    }
}

/// The usual time between two values of a device. It is the median over all days and quarters of an hour, stored or
/// folded from readings, of the mean time between values. `None` if no bucket has two values.
pub(crate) fn usual_interval(gathered: &DeviceRollups, names: &[MetricName]) -> Option<TimeDelta> {
    let interval = |rollup: &Rollup| {
        let metrics = names.iter().filter_map(|name| rollup.metrics.get(name));
        let most = metrics.max_by_key(|metric| metric.count)?;
        let steps = i64::try_from(most.count).ok()? - 1;
        (steps > 0).then(|| most.last.at.since(most.first.at).num_milliseconds() / steps)
    };

    let stored = gathered.pieces.iter().filter(|piece| piece.level > Level::Readings);
    let all = stored.map(|piece| &piece.rollup).chain(&gathered.of_readings);
    let mut intervals: Vec<i64> = all.filter_map(interval).collect();
    intervals.sort_unstable();
    intervals.get(intervals.len() / 2).map(|millis| TimeDelta::milliseconds((*millis).max(1)))
}
