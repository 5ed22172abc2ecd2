//! The question of a request about time: parameters, rows, devices, and groups of devices.

pub(super) mod devices;
pub(super) mod groups;
pub(super) mod plan;
pub(super) mod request;
