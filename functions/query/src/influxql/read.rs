//! Reads the data of a `SELECT` device by device, from rollups of days, rollups of 15 minutes or readings: the cheapest
//! that give the exact result. Groups nothing.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use domain::{Device, MetricName, Order, QuarterHour, Reading, TimeRange, Timestamp};
use influxql::{DeviceData, QueryError, ReadWay, WantedDevice};
use table::{RangeQuery, ReadingKey, Session, at_once};

use super::failure::Failure;
use crate::ports::Store;
use series::{
    DEVICE_CONCURRENCY, Densities, DeviceQuestion, Grid, Horizon, Level, ReadAllowance, TooDear,
    gather, readings,
};

/// The maximum number of read units of a statement, as estimated before reading. It is lower than the API's own
/// maximum, because a dashboard repeats a query every few seconds.
pub(super) const MAX_UNITS: f64 = 2_000.0;
/// Rows of at least this length are read from rollups of days, wherever the rows begin and end.
const LONG_ROW: TimeDelta = TimeDelta::days(2);
/// The estimated read units of a search for the newest or oldest readings, whose first page mostly has them.
const UNITS_OF_A_FEW: f64 = 1.0;
/// The sizes of the first two pages, if a given number of readings is searched.
const PAGES: [usize; 2] = [10, 100];
/// The maximum number of a device's readings that are read to find a given number of them.
const MAX_READ: usize = 100_000;
/// The shortest time between two readings.
const INSTANT: TimeDelta = TimeDelta::milliseconds(1);
/// The distances, back or ahead, up to which rollups are searched for a rare metric, step by step.
const REACH: [TimeDelta; 3] = [TimeDelta::days(2), TimeDelta::days(31), TimeDelta::days(400)];

/// The parameters that all devices of a read share.
pub(super) struct Reads<'a, S> {
    pub(super) session: Session<'a, S>,
    pub(super) way: ReadWay,
    pub(super) range: TimeRange,
    /// The rows, if they are made from rollups. If readings are read, the whole range is one row.
    pub(super) grid: Grid,
    pub(super) horizon: &'a Horizon,
    /// Whether a device's readings in different rooms are different points.
    pub(super) is_by_room: bool,
}

/// Reads the wanted data of each device, in order. All subqueries of a statement share the allowance of read units.
pub(super) async fn read(
    reads: &Reads<'_, impl Store>,
    wanted: &[WantedDevice<'_>],
    allowance: &mut ReadAllowance<'_>,
) -> Result<Vec<DeviceData>, Failure> {
    let densities = allowance.densities;
    let levels = wanted.iter().map(|device| reads.level(device, densities));
    let levels: Vec<(Level, f64)> = at_once(DEVICE_CONCURRENCY, levels).await?;
    allowance.add_units(levels.iter().map(|(_, units)| units).sum()).map_err(too_dear)?;

    let found = wanted.iter().zip(levels);
    let found = found.map(|(device, (level, _))| reads.found(device, level));
    at_once(DEVICE_CONCURRENCY, found).await
}

fn too_dear(TooDear { units, max_units }: TooDear) -> QueryError {
    QueryError::new(format!(
        "max-select-read-units limit exceeded: ({units:.0}/{max_units}); narrow the time range, ask for fewer \
         series, or by windows of whole quarters of an hour or of days with tz()"
    ))
}

impl<S: Store> Reads<'_, S> {
    /// The question about one device. `coarsest` is the coarsest kind of items to read.
    pub(super) fn question<'b>(
        &'b self,
        device: &'b Device,
        coarsest: Level,
    ) -> DeviceQuestion<'b> {
        let question =
            DeviceQuestion::of(device, &self.grid, self.horizon, coarsest, self.session.now);
        DeviceQuestion { is_by_room: self.is_by_room, max_read: TimeDelta::MAX, ..question }
    }

    /// Whether rollups may be read.
    pub(super) fn has_rollups(&self) -> bool {
        self.way == ReadWay::Rollups && self.coarsest() > Level::Readings
    }

    /// The kind of items from which a device's rows are made, and the estimated read units.
    async fn level(
        &self,
        wanted: &WantedDevice<'_>,
        densities: &Densities,
    ) -> Result<(Level, f64), Failure> {
        let coarsest = match self.way {
            ReadWay::NewestOrOldest(..) => return Ok((Level::Readings, UNITS_OF_A_FEW)),
            ReadWay::Readings => Level::Readings,
            ReadWay::Rollups => self.coarsest(),
        };

        let question = self.question(wanted.device, coarsest);
        let cost = densities.cost(self.session, &question).await?;
        let level = match coarsest {
            Level::QuarterHours if cost.quarters >= cost.readings => Level::Readings,
            level => level,
        };
        Ok((level, cost.of(level)))
    }

    /// The coarsest kind of items that lie within one row each, except for a few at the edges.
    fn coarsest(&self) -> Level {
        let zone = self.horizon.zone();
        let is_midnight =
            |at: Timestamp| zone.day(zone.date(at)).is_some_and(|day| day.from() == at);

        let rows = self.grid.rows();
        // Only the edges between two rows count: the range itself may begin and end anywhere.
        let edges = || rows.iter().skip(1).map(|row| row.from());
        let is_long = |row: &TimeRange| row.length() >= LONG_ROW;
        let has_days = self.range.length() >= TimeDelta::days(1);
        let is_of_days = edges().all(is_midnight)
            || rows.len() <= 3
            || rows[1..rows.len() - 1].iter().all(is_long);

        if has_days && is_of_days {
            return Level::Days;
        }

        if edges().all(|at| QuarterHour::starting_at(at).is_some()) {
            Level::QuarterHours
        } else {
            Level::Readings
        }
    }

    async fn found(&self, wanted: &WantedDevice<'_>, level: Level) -> Result<DeviceData, Failure> {
        match self.way {
            ReadWay::Rollups => {
                let question = self.question(wanted.device, level);
                let gathered = gather(self.session, &question).await?;
                let pieces = gathered.pieces.into_iter().map(|piece| (piece.range, piece.rollup));
                Ok(DeviceData::Pieces(pieces.collect()))
            }
            ReadWay::Readings => {
                let question = self.question(wanted.device, level);
                Ok(DeviceData::Readings(readings(self.session, &question, self.range).await?))
            }
            ReadWay::NewestOrOldest(order, number) => {
                self.some(wanted, order, number).await.map(DeviceData::Readings)
            }
        }
    }

    /// Reads the newest or the oldest readings until each metric has `number` values. Returns the readings oldest
    /// first.
    async fn some(
        &self,
        wanted: &WantedDevice<'_>,
        order: Order,
        number: usize,
    ) -> Result<Vec<Reading>, Failure> {
        const PAGE: usize = 1_000;

        let mut found: Vec<Reading> = Vec::new();
        let mut pages = PAGES.into_iter();

        loop {
            let limit = match pages.next() {
                Some(limit) => limit.max(number.min(PAGE)),
                None if number == 1 && self.horizon.state().is_some() => {
                    found.extend(self.of_rollups(wanted, &found, order).await?);
                    break;
                }
                None => PAGE,
            };

            let after = found.last().map(ReadingKey::of);
            let query = RangeQuery { range: self.range, order, after, limit, consistent: false };
            let page = self.session.device_readings(wanted.device.id(), &query).await?;
            found.extend(page.items);
            if !page.has_more || wanted.lacking(&found, number).is_empty() {
                break;
            }
            if found.len() >= MAX_READ {
                return Err(QueryError::new(format!(
                    "max-select-point limit exceeded: ({}/{MAX_READ}); narrow the time range",
                    found.len()
                ))
                .into());
            }
        }

        found.sort_by_key(|reading| reading.at);
        found.dedup_by_key(|reading| reading.at);
        Ok(found)
    }

    /// Finds, by rollups, the newest or the oldest readings with the metrics that are still missing. The time before
    /// the first rollup is not searched.
    async fn of_rollups(
        &self,
        wanted: &WantedDevice<'_>,
        found: &[Reading],
        order: Order,
    ) -> Result<Vec<Reading>, Failure> {
        let Some(last) = found.last().map(|reading| reading.at) else { return Ok(Vec::new()) };

        let rolled_up = self.horizon.rolled_up(wanted.device.id());
        let first = rolled_up.map_or(Timestamp::MIN, TimeRange::from).max(self.range.from());
        let mut near = match order {
            Order::Ascending => last.saturating_add(INSTANT).max(first),
            Order::Descending => last,
        };

        let mut lacking = wanted.lacking(found, 1);
        let mut more: Vec<Reading> = Vec::new();
        for days in REACH {
            let far = match order {
                Order::Ascending => last.saturating_add(days).min(self.range.to()),
                Order::Descending => last.saturating_add(-days).max(first),
            };
            let Ok(part) = TimeRange::new(near.min(far), near.max(far)) else { continue };
            more.extend(self.nearest(wanted.device, part, &lacking, order).await?);

            let still = wanted.lacking(&more, 1);
            lacking.retain(|metric| still.contains(metric));
            if lacking.is_empty() {
                break;
            }
            near = far;
        }
        Ok(more)
    }

    /// The readings of a range with the newest or the oldest value of each metric. Rollups, and the readings after
    /// them, say when each metric was sent. Only the readings of these instants are then returned.
    async fn nearest(
        &self,
        device: &Device,
        range: TimeRange,
        metrics: &[&MetricName],
        order: Order,
    ) -> Result<Vec<Reading>, Failure> {
        let grid = Grid::total(range);
        let question =
            DeviceQuestion::of(device, &grid, self.horizon, Level::Days, self.session.now);
        let question = DeviceQuestion { max_read: TimeDelta::MAX, ..question };
        let pieces = gather(self.session, &question).await?.pieces;

        let mut instants: BTreeSet<Timestamp> = BTreeSet::new();
        for metric in metrics {
            let mut rollups = pieces.iter().filter_map(|piece| piece.rollup.metrics.get(*metric));
            instants.extend(match order {
                Order::Ascending => rollups.next().map(|rollup| rollup.first.at),
                Order::Descending => rollups.next_back().map(|rollup| rollup.last.at),
            });
        }

        let mut found = Vec::new();
        for at in instants {
            let instant = TimeRange::new(at, at.saturating_add(INSTANT)).expect("it has a length");
            found.extend(readings(self.session, &question, instant).await?);
        }
        Ok(found)
    }
}
