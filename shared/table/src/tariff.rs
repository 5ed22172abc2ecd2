//! The stored form of a tariff. Knows no price.

use domain::{TariffId, Timestamp};

/// A tariff.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct StoredTariff {
    /// The id of the tariff.
    pub id: TariffId,
    /// Rises with each save. No later tariff of the same id has it, also after a deletion.
    pub version: u64,
    /// When a person last saved the tariff.
    pub edited: Timestamp,
    /// The tariff as a person wrote it, as JSON.
    pub written: String,
}
