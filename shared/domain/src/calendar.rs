//! The calendar: time zones, local dates, and the buckets for which totals are computed. Reads no clock.
//!
//! A local day runs from the first instant of its date to the first instant of the next date. Midnight is not always
//! this instant: in many zones a change of the clock skips midnight or shows it twice.

mod date;
#[cfg(test)]
mod tests;
mod unit;
mod zone;

pub use date::{LocalDate, LocalDateError};
pub use unit::{CalendarUnit, CalendarUnitError};
pub use zone::{Zone, ZoneError};
