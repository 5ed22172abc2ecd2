//! The tariffs: read, saved in place of the version that was read, and deleted. Knows no price.

use domain::TariffId;
use ports::port;

use super::expected;
use crate::db::{Db, delete, replace_all, upsert};
use crate::keys::{Key, TARIFFS};
use crate::{Expected, Listing, Patterns, StoreResult, StoredTariff};

/// The tariffs.
#[port(ReadTariffs, Query(Tariffs), GetItem(Tariffs))]
impl<D: Db> Patterns<'_, D> {
    /// All tariffs as they are this moment, sorted by id.
    pub async fn tariffs(self) -> StoreResult<Listing<StoredTariff>> {
        self.list(TARIFFS).await
    }

    /// A tariff as it is this moment.
    pub async fn tariff(self, id: &TariffId) -> StoreResult<Option<StoredTariff>> {
        self.find(&Key::Tariff(id.clone())).await
    }
}

/// A person's edits of the tariffs.
#[port(EditTariffs, UpdateItem(Tariffs), DeleteItem(Tariffs))]
impl<D: Db> Patterns<'_, D> {
    /// Stores a tariff, if the stored one is as expected. Returns whether the tariff is stored. A repeat is refused.
    pub async fn save_tariff(self, tariff: &StoredTariff, before: Expected) -> StoreResult<bool> {
        let key = Key::Tariff(tariff.id.clone());
        self.is_written(upsert(&key).when([expected(before)]).with(replace_all(tariff))).await
    }

    /// Deletes a tariff if it has this version. Returns whether the tariff is deleted. A repeat is refused.
    pub async fn delete_tariff(self, tariff: &StoredTariff) -> StoreResult<bool> {
        let still = expected(Expected::Version(tariff.version));
        self.is_written(delete(&Key::Tariff(tariff.id.clone())).when([still])).await
    }
}
