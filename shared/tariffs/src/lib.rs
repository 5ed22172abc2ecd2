//! Tariffs, and the bill that a tariff makes of energy. Has no store and no clock.
//!
//! `written` is a tariff as a person writes it, `tariff` the same checked, with its dates as times. `zones` says when a
//! price holds, `prices` what a series of prices had at a time, `standing` what a charge by day, month or year is of a
//! part of its time. `bill` folds energy into sums; `missing` names what the sums lack.

mod bill;
mod missing;
mod prices;
mod standing;
mod tariff;
#[cfg(test)]
mod tests;
mod written;
mod zones;

pub use bill::{Bill, BillInput, BillLine, BillRow, EnergyStep, SpreadOver};
pub use missing::{Missing, MissingKind};
pub use prices::{PriceSource, Prices};
pub use tariff::Tariff;
pub use written::{MAX_LINES, Per, TariffMeter, WrittenTariff};
