//! Values of devices in rows of time, made from rollups, or from readings where there are no rollups. Knows no request
//! and no response, and chooses no devices.
//!
//! `horizon` says up to when rollups are complete, `unfolded` which changes they may not have yet. `gather` reads the
//! rollups and readings of one device, `neighbours` the nearest values outside its range. `values` computes the rows of
//! one metric, `device` the rows of all metrics of a device. `presence` says when a meter was in the rooms, `left_out`
//! which devices a sum leaves out, `combine` makes one value of several devices. `energy` computes the kWh of meters,
//! `events` finds notable steps of counters, `verdicts` checks a person's verdict on a step, and `conditions` finds
//! episodes. `allowance` limits the cost of an answer, estimated by `density`. The arithmetic is in `domain`.

mod allowance;
mod combine;
pub mod conditions;
mod density;
mod device;
mod energy;
mod error;
mod events;
mod gather;
mod grid;
mod horizon;
mod left_out;
mod neighbours;
mod ports;
mod presence;
#[cfg(test)]
mod tests;
mod unfolded;
mod values;
mod verdicts;

pub use allowance::{MAX_ROW_VALUES, PlannedRead, ReadAllowance, TooDear};
pub use combine::{Combine, value_of};
pub use density::{Cost, Densities};
pub use device::{DeviceRows, MetricRows, device_rows};
pub use energy::{EnergyDevice, RowEnergy, counted, counted_amount, sum};
pub use error::SeriesError;
pub use events::{CounterStep, CounterSteps, Value, events};
pub use gather::{
    DeviceQuestion, DeviceRollups, Level, MAX_READ, MAX_ROLLUPS, RollupPiece, gather, readings,
};
pub use grid::{Grid, MAX_ROWS};
pub use horizon::{Horizon, RollupStateCache, ceiling};
pub use left_out::{
    BehindMeters, DEVICE_CONCURRENCY, LeftOut, MAX_DEVICES, MovedMeter, NotCombined, OutOfMeans,
    too_many,
};
pub use ports::{ConditionsStore, Store};
pub use presence::{Presence, presences};
pub use unfolded::{RollupLag, UnfoldedChanges};
pub use values::RowValues;
pub use verdicts::VerdictStep;
