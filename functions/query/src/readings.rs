//! Readings themselves: ranges, newest values, removal. Sums nothing up.

pub(crate) mod latest;
pub(crate) mod newest;
pub(crate) mod ranges;
pub(crate) mod remove;
