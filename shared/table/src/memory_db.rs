//! A table in memory for tests, which refuses the requests that `DynamoDB` refuses. Counts no units and lets no item
//! expire by itself.
//!
//! A test makes requests fail by their action and target, after a number of requests that pass. Requests that the table
//! never accepts, such as two writes to one item in a transaction, are mistakes of the caller and panic.

mod evaluate;
mod items;
mod mistakes;
mod pages;
mod troubles;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::evaluate::{Effect, Evaluated};
use self::items::StoredItems;
use self::troubles::Troubles;
pub use self::views::Calls;
use crate::db::{Db, Each, ItemQuery, Items, RefusedWrites, Write, WriteChange, WriteOutcome};
use crate::item::Item;
use crate::layout::{Index, Layout};
use crate::shards::Shards;
use crate::{
    Action, Invocation, ItemKey, Permission, PutOutcome, StoreError, StoreResult, Target,
    while_throttled,
};

/// `DynamoDB` takes at most 25 puts in a `BatchWriteItem`. If one item is too large, the whole batch is not stored.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html>
const MAX_BATCH: usize = 25;

/// A table in memory. Clones share the items, the failures and the record of requests.
#[derive(Clone)]
#[must_use]
pub struct MemoryDb {
    state: Arc<Mutex<State>>,
    layout: Layout,
    has_checked_shards: Arc<AtomicBool>,
    /// The permissions of the role; `None` for a role that may do everything.
    role: Option<Arc<BTreeSet<Permission>>>,
}

#[derive(Default)]
struct State {
    items: StoredItems,
    /// By the name of a frozen index, the items that it shows. A frozen index does not follow the table.
    frozen: BTreeMap<&'static str, StoredItems>,
    /// The permissions that each request needed.
    requests: Vec<BTreeSet<Permission>>,
    troubles: Troubles,
}

impl Default for MemoryDb {
    fn default() -> Self {
        Self::of(Layout::default())
    }
}

impl fmt::Debug for MemoryDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryDb").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// A filter for requests with this action on this target.
pub fn on(action: Action, target: Target) -> impl Fn(Permission) -> bool + Send + 'static {
    move |asked| asked == (action, target)
}

impl MemoryDb {
    /// An empty table.
    pub fn of(layout: Layout) -> Self {
        Self {
            state: Arc::default(),
            layout,
            // In an empty table, a single partition needs no check. The number of several partitions must be stored
            // first.
            has_checked_shards: Arc::new((layout.shards == Shards::ONE).into()),
            role: None,
        }
    }

    /// An empty table with the conditions index.
    pub fn with_conditions_index() -> Self {
        Self::of(Layout { conditions_index: true, ..Layout::default() })
    }

    /// The same table for the role of a function. A request that needs other permissions is refused.
    pub fn for_role(&self, permissions: &[&[Permission]]) -> Self {
        Self { role: Some(Arc::new(permissions.concat().into_iter().collect())), ..self.clone() }
    }

    /// The same table for a process with another layout.
    pub fn with_layout(&self, layout: Layout) -> Self {
        Self { layout, has_checked_shards: Arc::default(), ..self.clone() }
    }

    /// Freezes an index: it goes on showing the items as they are now.
    pub fn freeze_index(&self, index: &Index) {
        let mut state = self.state();
        let items = state.items.clone();
        state.frozen.insert(index.name, items);
    }

    /// Ends the freeze of an index: it shows the present items again.
    pub fn follow_index(&self, index: &Index) {
        self.state().frozen.remove(index.name);
    }

    /// The number of requests so far that needed a permission for which `hits` returns true.
    pub fn count(&self, hits: impl Fn(Permission) -> bool) -> usize {
        let state = self.state();
        state.requests.iter().filter(|needed| needed.iter().any(|one| hits(*one))).count()
    }

    /// The permissions that each request so far needed, in order.
    pub fn requests(&self) -> Vec<BTreeSet<Permission>> {
        self.state().requests.clone()
    }

    /// All items, sorted by key.
    pub fn items(&self) -> Vec<Item> {
        self.state().items.all().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while a test throttles an action on a partition, as a client of the table does.
    async fn wait_while_throttled(
        &self,
        action: Action,
        partition: &str,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        while_throttled(invocation, || async {
            if self.state().troubles.throttles(action, partition) {
                return Err(StoreError::Throttled("on demand".into()));
            }
            Ok(())
        })
        .await
    }

    /// Records a request. Refuses it if the role does not permit it. Fails or panics if a test has asked for this.
    fn begin(
        &self,
        needed: impl IntoIterator<Item = Permission>,
    ) -> StoreResult<MutexGuard<'_, State>> {
        let needed: BTreeSet<Permission> = needed.into_iter().collect();
        let mut state = self.state();
        state.requests.push(needed.clone());
        if let Some(role) = &self.role
            && let Some((action, target)) = needed.difference(role).next()
        {
            let why = format!("the role is not permitted {action:?} on {target:?}");
            return Err(StoreError::Refused(why.into()));
        }

        match state.troubles.meet(&needed) {
            Ok(()) => Ok(state),
            Err(trouble) => {
                drop(state);
                Err(trouble.into_error())
            }
        }
    }
}

/// The permission that an action on an item needs.
fn permission(action: Action, key: &ItemKey) -> Permission {
    (action, Target::of_partition(&key.pk))
}

impl Db for MemoryDb {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn has_checked_shards(&self) -> &AtomicBool {
        &self.has_checked_shards
    }

    async fn get(&self, key: &ItemKey, invocation: &Invocation) -> StoreResult<Option<Item>> {
        self.wait_while_throttled(Action::GetItem, &key.pk, invocation).await?;
        let state = self.begin([permission(Action::GetItem, key)])?;
        Ok(state.items.get(key).cloned())
    }

    async fn get_all(
        &self,
        keys: Vec<ItemKey>,
        invocation: &Invocation,
        each: Each<'_>,
    ) -> StoreResult<Vec<ItemKey>> {
        mistakes::refuse_duplicates(&keys);
        if keys.is_empty() {
            return Ok(Vec::new());
        }

        for key in &keys {
            self.wait_while_throttled(Action::BatchGetItem, &key.pk, invocation).await?;
        }

        let state = self.begin(keys.iter().map(|key| permission(Action::BatchGetItem, key)))?;
        for item in keys.iter().filter_map(|key| state.items.get(key)) {
            each(&mut item.clone().into_iter());
        }

        Ok(Vec::new())
    }

    async fn query(
        &self,
        query: &ItemQuery,
        invocation: &Invocation,
        each: Each<'_>,
    ) -> StoreResult<Option<Item>> {
        mistakes::check_query(query, self.layout);
        self.wait_while_throttled(Action::Query, &query.partition, invocation).await?;

        let target = match query.index {
            Some(index) => Target::of_index(index),
            None => Target::of_partition(&query.partition),
        };
        let (next, pause) = {
            let state = self.begin([(Action::Query, target)])?;
            let frozen = query.index.and_then(|index| state.frozen.get(index.name));
            let page = pages::page(frozen.unwrap_or(&state.items), query);
            for item in page.sent {
                each(&mut pages::sent_attributes(query, item));
            }
            (page.next, state.troubles.pause((Action::Query, target)) * page.visited)
        };

        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        Ok(next)
    }

    async fn write(&self, write: Write, invocation: &Invocation) -> StoreResult<WriteOutcome> {
        mistakes::check_write(&write, self.layout);
        assert!(
            !matches!(write.change, WriteChange::Check(_)),
            "a check is a part of a transaction"
        );

        let key = write.key();
        self.wait_while_throttled(write.action(), &key.pk, invocation).await?;
        let mut state = self.begin([permission(write.action(), &key)])?;

        let effect = match state.items.evaluate(&write)? {
            Evaluated::Applies(effect) => effect,
            Evaluated::Refused(stored) => return Ok(WriteOutcome::Refused(stored)),
        };

        // As in DynamoDB, an update returns the new item, a deletion the deleted item, and a put nothing.
        let is_update = matches!(write.change, WriteChange::Update(..));
        let updated = match &effect {
            Effect::Store(item) if is_update => Some(item.clone()),
            _ => None,
        };
        let deleted = state.items.apply(&key, effect);
        Ok(WriteOutcome::Done(updated.or(deleted)))
    }

    async fn transact(
        &self,
        writes: Vec<Write>,
        invocation: &Invocation,
    ) -> StoreResult<Result<(), RefusedWrites>> {
        mistakes::check_transaction(&writes, self.layout);
        let keys: Vec<ItemKey> = writes.iter().map(Write::key).collect();
        for (write, key) in writes.iter().zip(&keys) {
            self.wait_while_throttled(write.action(), &key.pk, invocation).await?;
        }

        let needed = writes.iter().zip(&keys).map(|(write, key)| permission(write.action(), key));
        let mut state = self.begin(needed)?;

        let (mut effects, mut refused, mut error) = (Vec::new(), Vec::new(), None);
        for (position, write) in writes.iter().enumerate() {
            match state.items.evaluate(write) {
                Ok(Evaluated::Applies(effect)) => effects.push(effect),
                Ok(Evaluated::Refused(stored)) => refused.push((position, stored)),
                Err(inapplicable) => error = error.or(Some(inapplicable)),
            }
        }

        if !refused.is_empty() {
            return Ok(Err(refused.into_iter().collect()));
        }
        if let Some(error) = error {
            return Err(error);
        }

        for (key, effect) in keys.iter().zip(effects) {
            state.items.apply(key, effect);
        }

        Ok(Ok(()))
    }

    async fn put_all(&self, items: &impl Items, _invocation: &Invocation) -> PutOutcome {
        let all: Vec<Item> = (0..items.count()).map(|position| items.item(position)).collect();
        let keys = mistakes::check_items(&all, self.layout);
        if all.is_empty() {
            return PutOutcome::default();
        }

        let needed = keys.iter().map(|key| permission(Action::BatchWriteItem, key));
        let mut state = match self.begin(needed) {
            Ok(state) => state,
            Err(error) => {
                return PutOutcome { not_stored: (0..all.len()).collect(), cause: Some(error) };
            }
        };
        let mut outcome = state.troubles.take_not_stored(all.len());

        for (batch, number) in all.chunks(MAX_BATCH).zip(0..) {
            if let Some(error) = batch.iter().find_map(items::refuse_large) {
                let first = number * MAX_BATCH;
                outcome.not_stored.extend(first..first + batch.len());
                outcome.cause.get_or_insert(error);
            }
        }

        outcome.not_stored.sort_unstable();
        outcome.not_stored.dedup();
        for (position, item) in all.into_iter().enumerate() {
            if outcome.not_stored.binary_search(&position).is_err() {
                state.items.store(item);
            }
        }
        outcome
    }

    async fn insert_all(
        &self,
        items: &impl Items,
        positions: &[usize],
        _invocation: &Invocation,
    ) -> Vec<bool> {
        assert!(positions.len() <= MAX_BATCH, "a batch has at most {MAX_BATCH} statements");
        let all: Vec<Item> = positions.iter().map(|position| items.item(*position)).collect();
        let keys = mistakes::check_items(&all, self.layout);
        if all.is_empty() {
            return Vec::new();
        }

        let needed = keys.iter().map(|key| permission(Action::PartiQLInsert, key));
        let Ok(mut state) = self.begin(needed) else { return vec![false; positions.len()] };

        let insert = |(item, key): (Item, &ItemKey)| {
            let is_new = state.items.get(key).is_none() && items::refuse_large(&item).is_none();
            if is_new {
                state.items.store(item);
            }
            is_new
        };
        all.into_iter().zip(&keys).map(insert).collect()
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;
    use crate::given::{device_of, invocation, reading};
    use crate::{LookUpRegistry, RegisterDevices as _};

    #[tokio::test]
    async fn a_role_is_refused_what_it_does_not_permit() {
        let db = MemoryDb::default();
        let device = device_of([&reading("d", Timestamp::MIN, None, &[("t", "1")])]);
        db.register_device(&device, &invocation()).await.expect("every role is permitted");

        let reader = db.for_role(&[<MemoryDb as LookUpRegistry>::PERMISSIONS]);
        let found = reader.device(device.id(), &invocation()).await.expect("permitted");
        assert_eq!(found.as_ref(), Some(&device));
        let refused = reader.register_device(&device, &invocation()).await.expect_err("refused");
        assert!(matches!(refused, StoreError::Refused(_)), "{refused}");
    }
}
