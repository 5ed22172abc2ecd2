//! Tariffs, and the bill that a tariff makes of energy. Has no store and no clock.
//!
//! `written` is a tariff as a person writes it; `tariff` is the checked form, with dates as times. `zones` says when a
//! price holds, `prices` finds the price of a series at a time, `standing` divides a charge by day, month or year.
//! `bill` folds the energy of its `input` into sums; `missing` names what the sums lack, such as energy that is
//! `spread` over several prices.

mod bill;
mod input;
mod missing;
mod prices;
mod spread;
mod standing;
mod tariff;
#[cfg(test)]
mod tests;
mod written;
mod zones;

pub use bill::{Bill, BillLine, BillRow};
pub use input::{BillInput, EnergyStep, EstimatedEnergy};
pub use missing::{Missing, MissingKind};
pub use prices::{PriceSource, Prices};
pub use tariff::Tariff;
pub use written::{MAX_LINES, Per, TariffMeter, WrittenTariff};
