//! The tariffs: read, saved in place of what was read, and deleted. Knows no price.

use domain::TariffId;

use super::expected;
use crate::db::{Db, delete, replace_all, upsert};
use crate::keys::{Key, TARIFFS};
use crate::{Listing, Patterns, StoreResult, StoredTariff};

impl<D: Db> Patterns<'_, D> {
    /// All tariffs as they are this moment.
    pub async fn tariffs(self) -> StoreResult<Listing<StoredTariff>> {
        self.list(TARIFFS).await
    }

    /// A tariff as it is this moment.
    pub async fn tariff(self, id: &TariffId) -> StoreResult<Option<StoredTariff>> {
        self.find(&Key::Tariff(id.clone())).await
    }

    /// Stores a tariff in place of its previous version.
    pub async fn save_tariff(self, tariff: &StoredTariff) -> StoreResult<bool> {
        let key = Key::Tariff(tariff.id.clone());
        let saved = upsert(&key).when([expected(tariff.expected())]).with(replace_all(tariff));
        self.is_written(saved).await
    }

    /// Deletes a tariff.
    pub async fn delete_tariff(self, id: &TariffId) -> StoreResult<()> {
        self.write(delete(&Key::Tariff(id.clone()))).await.map(drop)
    }
}
