//! Puts folded rollups in one transaction, with the readings that they sum up. Folds nothing.

use rollups::Change;
use table::ItemKey;
use table::item::Kind as _;

use crate::engine::{Load, NewItem, Unchanged};

/// Writes many rollups at once, bypassing the table's protocol. Drop the value before the system ends.
#[derive(Clone)]
pub struct Bulk(Load);

impl Bulk {
    pub(crate) const fn of(load: Load) -> Self {
        Self(load)
    }

    /// Puts rollups in one transaction. Returns `false` and stores nothing if the table has another version of a rollup
    /// than the change replaces.
    pub async fn put_rollups(&self, changes: Vec<Change>) -> anyhow::Result<bool> {
        self.put(Vec::new(), changes).await
    }

    /// Puts items and rollups in one transaction. Returns `false` and stores nothing if the table has another version
    /// of a rollup than the change replaces.
    pub(crate) async fn put(
        &self,
        mut items: Vec<NewItem>,
        changes: Vec<Change>,
    ) -> anyhow::Result<bool> {
        let mut unchanged = Vec::with_capacity(changes.len());
        for change in changes {
            let item = change.rollup.item();
            let key = ItemKey::of_item(&item);
            unchanged.push(Unchanged { key, version: change.replaced_version() });
            items.push(NewItem { item, keeps_others: false });
        }
        let load = self.0.clone();
        tokio::task::spawn_blocking(move || load.put(items, &unchanged)).await?
    }
}

impl std::fmt::Debug for Bulk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bulk")
    }
}
