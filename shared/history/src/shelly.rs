//! The logs of Shelly's energy meters: CSV with the energy of each interval. Sends nothing.
//!
//! The meter itself sends totals. So the amounts are added up to the same counters, with an offset that fits the
//! meter's own values.
//!
//! Sources: <https://shelly-api-docs.shelly.cloud/gen2/ComponentsAndServices/EMData#csv-file-download>, and for the first
//! generation, which does not document its files, samples:
//! <https://github.com/patrickvorgers/Home-Assistant-Import-Energy-Data/tree/main/Datasources/Shelly%20EM3/Sample%20files>

mod columns;
mod log;

pub use columns::is_header;
pub use log::{Anchors, Log};

#[cfg(test)]
mod tests;
