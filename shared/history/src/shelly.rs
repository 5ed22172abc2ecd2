//! The logs of Shelly's energy meters: CSV with the energy of each interval. Sends nothing.
//!
//! The meter's own readings have totals. So the amounts of the log are added up to counters with the same names, and an
//! offset fits the counters to the meter's own values.
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
