//! The stored form of a tariff. Knows no price.

use domain::{TariffId, Timestamp};

/// A tariff.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct StoredTariff {
    /// The id of the tariff.
    pub id: TariffId,
    /// The version, which rises with each save. It is at least the time of the save in milliseconds, so that a tariff
    /// that is saved after a deletion does not get an old version again.
    pub version: u64,
    /// When a person last saved the tariff.
    pub edited: Timestamp,
    /// The tariff as a person wrote it, as JSON.
    pub written: String,
}
