//! The ports of the table that the function uses.

use table::{FindRegistry, QueryReadings, RegisterDevices, UpdateRegistry};

table::store! {
    /// The ports of the table that the function uses.
    pub trait Store: FindRegistry + RegisterDevices + UpdateRegistry + QueryReadings
}
