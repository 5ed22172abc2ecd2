//! The devices of a file of readings, as a dry run lists them: spans, gaps, metrics, units and rooms. Estimates
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use domain::{DeviceId, MetricName, Reading, RoomId, Unit};

use super::span::Span;

/// The maximum number of devices or series that are shown.
pub(super) const MAX_SHOWN: usize = 40;
/// The maximum number of rooms shown for a device.
const MAX_ROOMS: usize = 3;

/// The devices of a dry run, by id.
#[derive(Debug, Default)]
pub(super) struct Listed(BTreeMap<DeviceId, Device>);

#[derive(Debug)]
struct Device {
    span: Span,
    /// The unit of each metric, if the file or the metric's name tells one.
    metrics: BTreeMap<MetricName, Option<Unit>>,
    rooms: BTreeSet<RoomId>,
}

impl Listed {
    /// Adds a reading. Readings of a device must come in order of time.
    pub(super) fn add(&mut self, reading: &Reading) {
        let Reading { device, at, room, .. } = reading;
        let millis = at.as_millis();
        if let Some(known) = self.0.get_mut(device) {
            known.span.add(millis);
        } else {
            let (metrics, rooms) = (BTreeMap::new(), BTreeSet::new());
            self.0.insert(device.clone(), Device { span: Span::at(millis), metrics, rooms });
        }
        let Some(known) = self.0.get_mut(device) else { return };
        for name in reading.metrics().keys() {
            if !known.metrics.contains_key(name) {
                known.metrics.insert(name.clone(), name.well_known().1);
            }
        }
        if let Some(room) = room.as_ref().filter(|room| !known.rooms.contains(*room)) {
            known.rooms.insert(room.clone());
        }
    }

    /// Sets the unit that the file gives a metric.
    pub(super) fn set_unit(&mut self, device: &DeviceId, name: &MetricName, unit: Option<Unit>) {
        let device = self.0.get_mut(device);
        if let Some(known) = device.and_then(|it| it.metrics.get_mut(name)) {
            *known = unit;
        }
    }
}

pub(super) fn with_unit(name: &MetricName, unit: Option<&Unit>) -> String {
    unit.map_or_else(|| name.to_string(), |unit| format!("{name} ({})", unit.as_str()))
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, Device { span, metrics, rooms }) in self.0.iter().take(MAX_SHOWN) {
            writeln!(f, "  {id}")?;
            let metrics = metrics.iter().map(|(name, unit)| with_unit(name, unit.as_ref()));
            let mut becomes = metrics.collect::<Vec<_>>().join(", ");
            for room in rooms.iter().take(MAX_ROOMS) {
                becomes.push_str(&format!(", room {room}"));
            }
            if rooms.len() > MAX_ROOMS {
                becomes.push_str(&format!(" and {} more", rooms.len() - MAX_ROOMS));
            }
            span.write(f, "readings", &becomes)?;
        }
        if self.0.len() > MAX_SHOWN {
            writeln!(f, "  and {} more", self.0.len() - MAX_SHOWN)?;
        }
        Ok(())
    }
}
