//! Devices and metrics that an answer about several devices leaves out, and why. Reads nothing.

use domain::{Device, DeviceId, MetricName, NotOfRoom};
use serde::Serialize;

use super::left_out::LeftOut;

/// A device that a sum leaves out, or a metric of a device that means leave out.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum NotCombined<'a> {
    /// What it measures is a part of what another measures.
    Behind(LeftOut<'a>),
    /// It is not the room's.
    NotOfRoom(OutOfMeans<'a>),
}

/// A metric of a device that means of rooms leave out.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "NotOfRoom"))]
pub struct OutOfMeans<'a> {
    device_id: &'a DeviceId,
    metric: &'a MetricName,
    not_of_room: NotOfRoom,
}

impl<'a> OutOfMeans<'a> {
    /// The entry of a metric; `None` if it counts.
    #[must_use]
    pub fn of(device: &'a Device, metric: &'a MetricName) -> Option<Self> {
        let not_of_room = device.not_of_room(metric)?;
        Some(Self { device_id: device.id(), metric, not_of_room })
    }
}
