//! Devices and metrics that an answer about several devices leaves out, and why. Reads nothing.

use domain::{Device, DeviceId, MetricName};
use serde::Serialize;

use super::left_out::LeftOut;

/// A device that a sum leaves out, or a metric of a device that means leave out.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum NotCombined<'a> {
    /// What it measures is a part of what another measures.
    Behind(LeftOut<'a>),
    /// It is not the room's.
    NotOfRoom {
        /// The device.
        device_id: &'a DeviceId,
        /// The metric that is left out.
        metric: &'a MetricName,
        /// Why.
        not_of_room: &'static str,
    },
}

impl<'a> NotCombined<'a> {
    /// The entry of a metric that means of rooms leave out; `None` if it counts.
    #[must_use]
    pub fn of(device: &'a Device, metric: &'a MetricName) -> Option<Self> {
        let reason = device.not_of_room(metric)?;
        let not_of_room = reason.as_str();
        Some(Self::NotOfRoom { device_id: device.id(), metric, not_of_room })
    }
}
