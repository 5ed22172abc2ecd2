//! The way of a source's points to the server: sorted, united, sent as line protocol. Reads no source.
//!
//! They go to the write endpoint and not to `POST /readings`, because a write teaches the devices their units, kinds and
//! names, and maps by the settings of the token: so the points become what the sender itself would have made of them.

mod report;
mod send;
mod unite;

pub(super) use report::Report;
pub(super) use send::send;
pub(super) use unite::United;

/// Where points are written. Its answers name refused lines by their numbers.
pub(super) const WRITE: &str = "/api/v3/write_lp?precision=nanosecond";
