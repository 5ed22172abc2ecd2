//! The members of an answer beside its rows: range, zone, sources, and what the rows may lack.

use std::collections::BTreeSet;

use domain::{CalendarUnit, DeviceId, NotCounted, Role, Timestamp, Zone};
use serde::Serialize;
use series::{DeviceValues, Grid, Lag, Level};

use super::subject::Subject;
use crate::registry::presence::RoomsLack;

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
    rooms_lack: Option<RoomsLack>,
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
        Self { rooms_lack: subject.rooms_lack, ..self }
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

/// Why a metric of a device counts nothing.
pub(crate) fn reason(why: NotCounted<'_>) -> String {
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
