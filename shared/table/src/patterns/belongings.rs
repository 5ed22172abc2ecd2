//! The belongings of a device: found in the device's partitions, and removed. Chooses nothing.

use domain::DeviceId;
use ports::port;

use crate::db::{Db, ItemQuery, delete};
use crate::item::attribute::STAY_ROOM;
use crate::item::{Attribute, Item};
use crate::keys::{self, Key, PK, SK};
use crate::{Belonging, Belongings, ItemKey, Patterns, PutOutcome, StoreError, StoreResult};

/// The number of belongings that are removed at once, each by a request of its own. A role that may delete in batches
/// may also put in batches, and a function that deletes devices must not be able to replace a reading.
const REMOVE_CONCURRENCY: usize = 32;

/// Removes the items of a device, except its own item in the registry.
#[port(
    RemoveBelongings,
    Query(Readings, Rollups, Stays, Attributes, Annotations),
    DeleteItem(Readings, Rollups, Stays, SeenIn, Attributes, Annotations)
)]
impl<D: Db> Patterns<'_, D> {
    /// The belongings of a device, as they are this moment: at most `limit`. Every item in the device's partitions is a
    /// belonging, even if it cannot be read.
    pub async fn belongings(self, id: &DeviceId, limit: usize) -> StoreResult<Belongings> {
        let mut found = Vec::new();
        for partition in keys::partitions_of(id) {
            if found.len() > limit {
                break;
            }
            let left = limit + 1 - found.len();
            let items = ItemQuery { only: &[PK, SK, STAY_ROOM], ..ItemQuery::of(partition) };
            let add = |attributes: &mut dyn Iterator<Item = (String, Attribute)>| {
                found.push(belonging(&attributes.collect()));
            };
            self.read_items(items, left, add).await?;
        }

        if let Some(more) = (limit + 1).checked_sub(found.len()).filter(|more| *more > 0) {
            found.extend(self.annotations_of(id, more).await?);
        }

        let has_more = found.len() > limit;
        found.truncate(limit);
        Ok(Belongings { found, has_more })
    }

    /// Removes belongings. A repeat changes nothing. Positions in the outcome are indices into `belongings`.
    pub async fn remove_belongings(self, belongings: &[Belonging]) -> PutOutcome {
        let removing = belongings.iter().map(|belonging| self.remove_belonging(belonging));
        PutOutcome::of_all(REMOVE_CONCURRENCY, removing).await
    }

    async fn remove_belonging(self, Belonging(keys): &Belonging) -> StoreResult<()> {
        if let [key] = &keys[..] {
            return self.write(delete(key.clone())).await.map(drop);
        }

        let deletions = keys.iter().cloned().map(delete).collect();
        let removed = self.transact(deletions).await?;
        removed.map_err(|_| StoreError::Contended(format!("{keys:?}")))
    }
}

/// The belonging of an item: two items for a stay, or for a room in which the device was seen; otherwise the item
/// alone.
fn belonging(item: &Item) -> Belonging {
    let key = ItemKey::of_item(item);
    let room = match item.get(STAY_ROOM) {
        Some(Attribute::S(room)) => room.parse().ok(),
        _ => None,
    };
    match (Key::parse(&key.pk, &key.sk), room) {
        (Some(Key::StayOf(device, since)), Some(room)) => Belonging::of_stay(&device, &room, since),
        (Some(Key::SeenOf(device, room)), _) => Belonging::of_seen(&device, &room),
        _ => Belonging(vec![key]),
    }
}
