//! Pages of a requested size, with items of any kind. Builds no key.

use crate::db::{Db, ItemQuery};
use crate::item::{Attribute, Decode};
use crate::{Page, Patterns, StoreResult};

/// About how many bytes the items of a page may have. An answer of Lambda has no room for more.
const MAX_PAGE_BYTES: usize = 6 << 20;

/// A limit that is greater than the number of items in any range.
pub(super) const UNLIMITED: usize = usize::MAX - 1;

impl<D: Db> Patterns<'_, D> {
    /// Reads page after page of a query until it has `limit` items for which `keep` is true, or as many bytes as an
    /// answer may have. Reads one more item to know whether there is another page. Skips unreadable items, because
    /// other writers may have stored them.
    pub(super) async fn range<T: Decode + Send>(
        self,
        mut query: ItemQuery,
        limit: usize,
        keep: impl Fn(&T) -> bool + Send + Sync,
        size: impl Fn(&T) -> usize + Send + Sync,
    ) -> StoreResult<Page<T>> {
        let mut items = Vec::new();
        let mut bytes = 0;
        let mut skipped = 0;
        loop {
            // Reads at least as many items as were skipped so far, so that there are few requests, even if most items
            // are skipped.
            let wanted = (limit + 1 - items.len()).max(skipped);
            // DynamoDB's limit also counts the items that a filter leaves out.
            query.limit = query.filter.is_empty().then_some(wanted);
            let mut each =
                |attributes: &mut dyn Iterator<Item = (String, Attribute)>| match T::decode(
                    attributes,
                ) {
                    Ok(item) if keep(&item) => {
                        bytes += size(&item);
                        items.push(item);
                    }
                    _ => skipped += 1,
                };
            query.start = self.db.query(&query, self.invocation, &mut each).await?;

            let is_full = items.len() > limit || bytes > MAX_PAGE_BYTES;
            if query.start.is_none() || is_full {
                break;
            }
        }

        let has_more = items.len() > limit || query.start.is_some();
        items.truncate(limit);
        Ok(Page { items, has_more })
    }
}
