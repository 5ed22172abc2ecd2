//! What an answer says of its rows beside them: range, zone, sources, and how they came about.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    CalendarUnit, Device, DeviceId, Meter, MetricName, NotCounted, Role, Timestamp, Zone,
};
use serde::Serialize;
use table::Invocation;

use super::device::DeviceValues;
use super::gather::Level;
use super::grid::Grid;
use super::horizon::{Horizon, Lag};

/// The range and the unit of the rows.
#[derive(Debug, Serialize)]
pub(crate) struct Span {
    from: Timestamp,
    to: Timestamp,
    every: Option<&'static str>,
    tz: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rollups_lack: Option<Lag>,
}

impl Span {
    /// That of a grid.
    pub(crate) fn of(
        grid: &Grid,
        unit: Option<CalendarUnit>,
        zone: Zone,
        horizon: &Horizon,
        now: Timestamp,
    ) -> Self {
        let range = grid.range();
        let every = unit.map(CalendarUnit::as_str);
        let has_rollups = Level::of(unit) > Level::Readings;
        let rollups_lack = horizon.lag(now).filter(|_| has_rollups);
        Self { from: range.from(), to: range.to(), every, tz: zone.name(), rollups_lack }
    }
}

/// How the rows came about and what they cost.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    /// What it reads; what the rollups lack comes from the level below.
    reads: &'static str,
    sources: Vec<&'static str>,
    /// The number of rollups, and of rows' parts folded from readings.
    pieces: usize,
    /// Rollups of older settings whose readings are not read again.
    outdated: usize,
    /// Rollups that a reading has changed since, too late to be folded.
    frozen: usize,
    estimated_read_units: f64,
    consumed_read_units: f64,
    zone_database: &'static str,
    /// Of energy, what each device's metrics count as.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    meters: Vec<ExplainedMeter>,
}

/// What the metrics of a device count as.
#[derive(Debug, Serialize)]
struct ExplainedMeter {
    device_id: DeviceId,
    used: Vec<MetricName>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sold: Vec<MetricName>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    not_counted: BTreeMap<MetricName, String>,
}

impl Explanation {
    /// That of the devices' rows.
    pub(crate) fn of(
        devices: &[DeviceValues<'_>],
        coarsest: Level,
        grid: &Grid,
        invocation: &Invocation,
    ) -> Self {
        let gathered = || devices.iter().map(|it| &it.gathered);
        let estimated = devices.iter().map(|it| estimate(it.device.metrics.len(), coarsest, grid));
        Self {
            reads: match coarsest {
                Level::Days => "the rollups of a device's days between two dates",
                Level::Quarters => {
                    "the rollups of a device's quarters of an hour between two timestamps"
                }
                Level::Readings => "the readings of a device between two timestamps",
            },
            sources: sources(devices),
            pieces: gathered().map(|it| it.pieces.len()).sum(),
            outdated: gathered().map(|it| it.outdated).sum(),
            frozen: gathered().map(|it| it.frozen).sum(),
            estimated_read_units: estimated.sum::<f64>() + STATE_UNITS,
            consumed_read_units: invocation.read_units(),
            zone_database: Zone::database_version(),
            meters: Vec::new(),
        }
    }

    /// With what the metrics of the devices count as.
    pub(crate) fn with_meters(mut self, meters: &[(&Device, Meter<'_>)]) -> Self {
        let names = |names: &[&MetricName]| names.iter().map(|name| (*name).clone()).collect();
        let meters = meters.iter().map(|(device, meter)| ExplainedMeter {
            device_id: device.id.clone(),
            used: names(&meter.used),
            sold: names(&meter.sold),
            not_counted: meter
                .left_out
                .iter()
                .map(|(name, why)| ((*name).clone(), reason(*why)))
                .collect(),
        });
        self.meters = meters.collect();
        self
    }
}

fn reason(why: NotCounted<'_>) -> String {
    match why {
        NotCounted::Role(Role::None) => "it counts as nothing".to_owned(),
        NotCounted::Role(role) => format!("it is {}", role.as_str()),
        NotCounted::PartOf(whole) => format!("it is in {whole}"),
        NotCounted::CounterInstead => "the device has counters".to_owned(),
    }
}

/// The read units of the state of the rollups.
const STATE_UNITS: f64 = 1.0;
/// The size of a rollup's keys and own attributes, about.
pub(crate) const ROLLUP_BYTES: i64 = 150;
/// The size of one metric of a rollup, about.
pub(crate) const METRIC_BYTES: i64 = 70;
/// The time between two readings where nothing is known of it.
const READING_INTERVAL: i64 = 60_000;

/// What one device costs, about: what it has of items of the coarsest kind, read to their ends.
fn estimate(metrics: usize, coarsest: Level, grid: &Grid) -> f64 {
    let each = match coarsest {
        Level::Days => 86_400_000,
        Level::Quarters => 900_000,
        Level::Readings => READING_INTERVAL,
    };
    let range = grid.range();
    let items = range.to().since(range.from()).num_milliseconds() / each + 1;
    let metrics = i64::try_from(metrics).unwrap_or(i64::MAX);
    let bytes = items.saturating_mul(ROLLUP_BYTES + METRIC_BYTES.saturating_mul(metrics));
    let halves = u32::try_from(bytes / 4_096 + 1).unwrap_or(u32::MAX);
    f64::from(halves) / 2.0
}

/// The kinds of items that the rows are made from, the finest first.
pub(crate) fn sources(devices: &[DeviceValues<'_>]) -> Vec<&'static str> {
    let all: BTreeSet<Level> =
        devices.iter().flat_map(|it| it.gathered.levels.iter().copied()).collect();
    all.into_iter().map(Level::as_str).collect()
}
