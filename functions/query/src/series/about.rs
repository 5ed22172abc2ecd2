//! The members of an answer beside its rows: range, zone, sources, and the plan with its cost.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    CalendarUnit, Device, DeviceId, Meter, MetricName, NotCounted, Role, Timestamp, Zone,
};
use serde::Serialize;
use series::{DeviceValues, Grid, Lacking, Lag, Level};
use table::Invocation;

use super::subject::Subject;
use crate::registry::presence::Knowledge;

/// The range and the unit of the rows.
#[derive(Debug, Serialize)]
pub(crate) struct Span {
    from: Timestamp,
    to: Timestamp,
    every: Option<&'static str>,
    tz: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rollups_lack: Option<Lag>,
    /// What the answer may lack because it is not known of all devices where they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    rooms_lack: Option<Knowledge>,
    /// The devices with readings that are in no row, because they are of no room that the registry has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    without_room: Vec<DeviceId>,
}

impl Span {
    /// That of a grid.
    pub(crate) fn of(grid: &Grid, unit: Option<CalendarUnit>, zone: Zone) -> Self {
        let range = grid.range();
        let every = unit.map(CalendarUnit::as_str);
        let (from, to, tz) = (range.from(), range.to(), zone.name());
        let without_room = Vec::new();
        Self { from, to, every, tz, rollups_lack: None, rooms_lack: None, without_room }
    }

    /// The same of these rooms.
    pub(crate) fn of_rooms(self, subject: &Subject) -> Self {
        let rooms_lack = subject.knowledge.filter(|it| it.lacks_devices());
        Self { rooms_lack, ..self }
    }

    /// With devices that have readings in no row.
    pub(crate) fn without_room(self, without_room: Vec<DeviceId>) -> Self {
        Self { without_room, ..self }
    }

    /// With what the rollups may lack.
    pub(crate) fn lacking(self, rollups_lack: Option<Lag>) -> Self {
        Self { rollups_lack, ..self }
    }

    /// Whether the rows may not be what they are soon.
    pub(crate) const fn is_lacking(&self) -> bool {
        self.rollups_lack.is_some()
    }
}

/// How the rows came about and what they cost.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    /// What it reads; what the rollups lack comes from the level below.
    reads: &'static str,
    sources: Vec<&'static str>,
    /// How it is known which devices were in the rooms that are asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<Knowledge>,
    /// The number of rollups, and of rows' parts folded from readings.
    pieces: usize,
    /// Rollups of older settings whose readings are not read again.
    outdated: usize,
    /// Rollups that a reading has changed since, too late to be folded.
    frozen: usize,
    /// By the sizes of the items that were found, about: the queries of the devices, those that tell which devices
    /// these are, and what the rollups lack. What is read again of the registry and of the rollups' state is not in it.
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
        devices: &[&DeviceValues<'_>],
        subject: &Subject,
        coarsest: Level,
        lacking: Option<&Lacking>,
    ) -> Self {
        let gathered = || devices.iter().map(|it| &it.gathered);
        Self {
            reads: match coarsest {
                Level::Days => "the rollups of a device's days between two dates",
                Level::QuarterHours => {
                    "the rollups of a device's quarters of an hour between two timestamps"
                }
                Level::Readings => "the readings of a device between two timestamps",
            },
            sources: sources(devices.iter().copied()),
            devices: subject.knowledge,
            pieces: gathered().map(|it| it.number).sum(),
            outdated: gathered().map(|it| it.outdated).sum(),
            frozen: gathered().map(|it| it.frozen).sum(),
            estimated_read_units: subject.units + lacking.map_or(0.0, |_| Lacking::READ_UNITS),
            consumed_read_units: 0.0,
            zone_database: Zone::database_version(),
            meters: Vec::new(),
        }
    }

    /// With what the answer has cost in the end, and what the queries of its devices cost about.
    pub(crate) fn at_end(self, estimated: f64, invocation: &Invocation) -> Self {
        Self {
            estimated_read_units: self.estimated_read_units + estimated,
            consumed_read_units: invocation.read_units(),
            ..self
        }
    }

    /// With what the metrics of the devices count as.
    pub(crate) fn with_meters(mut self, meters: &[(&Device, Meter<'_>)]) -> Self {
        let names = |names: &[&MetricName]| names.iter().map(|name| (*name).clone()).collect();
        let meters = meters.iter().map(|(device, meter)| ExplainedMeter {
            device_id: device.id().clone(),
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

/// The kinds of items that the rows are made from, the finest first.
pub(crate) fn sources<'a>(
    devices: impl Iterator<Item = &'a DeviceValues<'a>>,
) -> Vec<&'static str> {
    let all: BTreeSet<Level> = devices.flat_map(|it| it.gathered.levels.iter().copied()).collect();
    all.into_iter().map(Level::as_str).collect()
}
