//! The stored form of a tariff, and the ports of tariffs. Knows no price.

use domain::{TariffId, Timestamp};

use crate::ports_macro::ports;
use crate::{Expected, Listing, StoreResult};

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

ports! {
    /// The tariffs.
    ReadTariffs [(Query, Tariffs), (GetItem, Tariffs)] {
        /// All tariffs as they are this moment, sorted by id.
        fn tariffs() -> StoreResult<Listing<StoredTariff>>;

        /// A tariff as it is this moment.
        fn tariff(id: &TariffId) -> StoreResult<Option<StoredTariff>>;
    }

    /// A person's edits of the tariffs.
    EditTariffs [(UpdateItem, Tariffs), (DeleteItem, Tariffs)] {
        /// Stores a tariff in place of what was read. Returns whether the tariff is stored. A repeat is refused.
        fn save_tariff(tariff: &StoredTariff, before: Expected) -> StoreResult<bool>;

        /// Deletes a tariff if it has this version. Returns whether the tariff is deleted. A repeat is refused.
        fn delete_tariff(tariff: &StoredTariff) -> StoreResult<bool>;
    }
}
