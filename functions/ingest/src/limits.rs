//! Limits: the devices that a sender introduces, the rooms that a device introduces, and the metrics that merging adds
//! to a device.

pub(crate) mod counted_sender;
pub(crate) mod introductions;
pub(crate) mod new_names;
