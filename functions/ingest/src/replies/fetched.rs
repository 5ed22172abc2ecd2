//! The reply to `fetching`: the result of storing fetched readings, or of a dry run. Decides nothing about a reading.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    Decimal, DeviceId, DeviceObservation, Label, MetricInfo, MetricKind, MetricName, Reading,
    RoomId, Timestamp, Unit,
};
use serde::Serialize;

use super::StoreReport;
use super::native::Receipt;

/// The largest number of readings in the reply to a dry run.
const MAX_SHOWN: usize = 50;

/// The result of storing fetched readings; in a dry run, the readings as they would be stored.
#[derive(Debug, Clone, Serialize)]
pub struct FetchedReceipt {
    /// The number of readings that are stored, and those that are refused.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// The devices that the source leaves out, with the number of their readings.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<DeviceId, usize>,
    /// The devices of the stored readings.
    pub devices: BTreeSet<DeviceId>,
    /// In a dry run, the first readings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readings: Option<Vec<FetchedReading>>,
}

/// A reading as it would be stored.
#[derive(Debug, Clone, Serialize)]
pub struct FetchedReading {
    /// The device.
    pub device: DeviceId,
    /// The time of the measurement.
    pub timestamp: Timestamp,
    /// The room that the source names.
    pub room: Option<RoomId>,
    /// The name that the room gets if it has none.
    pub room_name: Option<Label>,
    /// The name that the device gets if it has none.
    pub name: Option<Label>,
    /// The values.
    pub metrics: BTreeMap<MetricName, FetchedValue>,
}

/// A value as it would be stored, with the unit and the kind that its metric has on a new device.
#[derive(Debug, Clone, Serialize)]
pub struct FetchedValue {
    /// The value.
    pub value: Decimal,
    /// The unit.
    pub unit: Option<Unit>,
    /// Gauge or counter.
    pub kind: MetricKind,
}

impl FetchedReceipt {
    /// The reply for a report. In a dry run the reply has readings.
    pub(crate) fn of(mut report: StoreReport, is_dry: bool) -> Self {
        let stored = std::mem::take(&mut report.stored);
        Self {
            left_out: std::mem::take(&mut report.left_out),
            devices: stored.iter().map(|reading| reading.device.clone()).collect(),
            readings: is_dry
                .then(|| stored.iter().take(MAX_SHOWN).map(FetchedReading::from).collect()),
            receipt: Receipt::from(report),
        }
    }
}

impl From<&Reading> for FetchedReading {
    fn from(reading: &Reading) -> Self {
        let about = reading.about.as_deref();
        let new = DeviceObservation::of(reading).new_device(reading.device.clone(), |_| true);
        let value = |(name, value): (&MetricName, &Decimal)| {
            let info = new.metrics().get(name).cloned().unwrap_or_else(|| name.into());
            let MetricInfo { unit, kind, .. } = info;
            (name.clone(), FetchedValue { value: value.clone(), unit, kind })
        };

        Self {
            device: reading.device.clone(),
            timestamp: reading.at,
            room: reading.room.clone(),
            room_name: about.and_then(|about| about.room_name.clone()),
            name: about.and_then(|about| about.name.clone()),
            metrics: reading.metrics().iter().map(value).collect(),
        }
    }
}
