//! The endpoints of readings: ranges, newest values, deletion. Sums nothing up.

pub(crate) mod latest;
pub(crate) mod newest;
pub(crate) mod ranges;
pub(crate) mod remove;
