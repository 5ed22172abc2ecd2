//! What devices measured by rows of time: from rollups where there are some, else from readings. Knows no request
//! and no response, and chooses no devices.
//!
//! `horizon` says how far the rollups reach and `unfolded` what they may lack. `gather` reads the pieces of one
//! device, `neighbours` what is beside its range; `values` gives each row its share, `device` has both for all
//! metrics. `presence` says when a meter was in the rooms, `left_out` which devices a sum leaves out for it, `combine` makes one value
//! of several devices, `energy` kWh of meters, `events` finds the notable steps of counters, `verdicts` what can be
//! said of one, and `conditions` finds episodes. `allowance` says what an answer may cost, by `density`. All arithmetic is the domain's.

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

pub use allowance::{DeviceRows, MAX_ROW_UNITS, MAX_ROW_VALUES, ReadAllowance, RowReader, TooDear};
pub use combine::{Combine, value_of};
pub use density::{Cost, Densities};
pub use device::{DeviceValues, MetricValues, device_values};
pub use energy::{Amount, EnergyDevice, RowEnergy, sum};
pub use error::SeriesError;
pub use events::{Event, Events, Value, events};
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
pub use verdicts::Step;
