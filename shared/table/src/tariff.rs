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
    /// The number of times that a person saved the tariff.
    pub version: u64,
    /// When a person last saved the tariff.
    pub edited: Timestamp,
    /// The tariff as a person wrote it, as JSON.
    pub written: String,
}

impl StoredTariff {
    /// A save of this version expects that the previous version is stored.
    pub const fn expected(&self) -> Expected {
        Expected::before(self.version)
    }
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
        /// Stores a tariff in place of its previous version. A first version is stored only if there is no tariff of
        /// this id. Returns whether the tariff is stored. A repeat is refused.
        fn save_tariff(tariff: &StoredTariff) -> StoreResult<bool>;

        /// Deletes a tariff. A repeat changes nothing.
        fn delete_tariff(id: &TariffId) -> StoreResult<()>;
    }
}
