//! The tariffs: read, saved in place of what was read, and deleted. Knows no price.

use domain::TariffId;

use super::expected;
use crate::db::{Db, delete, replace_all, upsert};
use crate::keys::{Key, TARIFFS};
use crate::{Expected, Listing, Patterns, StoreResult, StoredTariff};

impl<D: Db> Patterns<'_, D> {
    /// All tariffs as they are this moment.
    pub async fn tariffs(self) -> StoreResult<Listing<StoredTariff>> {
        self.list(TARIFFS).await
    }

    /// A tariff as it is this moment.
    pub async fn tariff(self, id: &TariffId) -> StoreResult<Option<StoredTariff>> {
        self.find(&Key::Tariff(id.clone())).await
    }

    /// Stores a tariff in place of what was read.
    pub async fn save_tariff(self, tariff: &StoredTariff, before: Expected) -> StoreResult<bool> {
        let key = Key::Tariff(tariff.id.clone());
        self.is_written(upsert(&key).when([expected(before)]).with(replace_all(tariff))).await
    }

    /// Deletes a tariff if it has this version.
    pub async fn delete_tariff(self, tariff: &StoredTariff) -> StoreResult<bool> {
        let still = expected(Expected::Version(tariff.version));
        self.is_written(delete(&Key::Tariff(tariff.id.clone())).when([still])).await
    }
}
