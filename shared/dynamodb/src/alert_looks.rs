//! `UpdateItem`, `Query` and `DeleteItem` on devices and rules to be looked at again, and the mark of when the system last ran.
//! Looks at nothing.

use domain::{DeviceId, Order, Timestamp};
use futures_util::{StreamExt as _, stream};

use crate::DynamoStore;
use crate::attribute::to_sdk;
use crate::put::Put;
use crate::range::Range;
use crate::update::Update;
use table::item;
use table::item::Attribute;
use table::item::attribute::{AFTER, SINCE, TOUCH};
use table::keys::{self, ALERT_LOOKS, Key};
use table::{
    Expected, FinishLooks, Invocation, ListPage, Look, Looked, MarkRunning, NoteLooks, PutOutcome,
    ReadLooks, ReadRunning, RunningMark, StoreError, StoreResult, UpdateOutcome,
};

/// How many are noted at once.
const NOTE_CONCURRENCY: usize = 16;
/// The number of attempts at one that others note and remove at the same time.
const MAX_ATTEMPTS: usize = 8;

impl NoteLooks for DynamoStore {
    async fn note_looks(
        &self,
        touched: &[(Looked, Timestamp)],
        invocation: &Invocation,
    ) -> PutOutcome {
        let noting: Vec<_> =
            touched.iter().map(|(what, since)| self.note_look(what, *since, invocation)).collect();
        let noted: Vec<StoreResult<()>> =
            stream::iter(noting).buffered(NOTE_CONCURRENCY).collect().await;
        let mut outcome = PutOutcome::default();
        for (position, noted) in noted.into_iter().enumerate() {
            if let Err(error) = noted {
                outcome.not_stored.push(position);
                outcome.cause.get_or_insert(error);
            }
        }
        outcome
    }
}

impl DynamoStore {
    /// Notes an instant, or where an earlier one is noted, only that something was touched again. A rule begins anew.
    async fn note_look(
        &self,
        what: &Looked,
        since: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        let key = || Key::AlertLook(what.clone());
        // Random, so that no look is taken for one that was removed before.
        let [(_, at), (_, touch)] = item::from_look(since, fastrand::u64(..));
        for _ in 0..MAX_ATTEMPTS {
            let mut first = Update::or_put(key());
            first.only_if_absent_or_at_least(&[SINCE], at.clone());
            first.set(&[SINCE], at.clone());
            first.set(&[TOUCH], touch.clone());
            first.remove(&[AFTER]);
            if let UpdateOutcome::Updated(_) = first.send(self, invocation).await? {
                return Ok(());
            }
            let mut later = Update::of(key());
            later.only_if_below(&[SINCE], at.clone());
            later.set(&[TOUCH], touch.clone());
            later.remove(&[AFTER]);
            if let UpdateOutcome::Updated(_) = later.send(self, invocation).await? {
                return Ok(());
            }
        }
        Err(StoreError::Contended(format!("the look at {what}")))
    }
}

impl ReadLooks for DynamoStore {
    async fn looks(
        &self,
        after: Option<&Looked>,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<ListPage<Look>> {
        let range = Range {
            index: None,
            partition: ALERT_LOOKS.to_owned(),
            between: keys::all_ids(),
            order: Order::Ascending,
            start: after.map(|after| to_sdk(item::key(&Key::AlertLook(after.clone())))),
            limit,
            consistent: false,
            filter: None,
        };
        self.alert_page(range, |_| true, invocation).await
    }
}

impl FinishLooks for DynamoStore {
    async fn move_look(
        &self,
        look: &Look,
        after: &DeviceId,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut update = Update::of(Key::AlertLook(look.what.clone()));
        for (name, known) in item::from_look(look.since, look.touch) {
            update.only_if_still(&[name], Some(known));
        }
        update.set(&[AFTER], Attribute::S(after.to_string()));
        Ok(matches!(update.send(self, invocation).await?, UpdateOutcome::Updated(_)))
    }

    async fn remove_look(&self, look: &Look, invocation: &Invocation) -> StoreResult<bool> {
        let still = item::from_look(look.since, look.touch).map(|(name, it)| (name, Some(it)));
        self.delete_if_still(&Key::AlertLook(look.what.clone()), still, invocation).await
    }
}

impl ReadRunning for DynamoStore {
    async fn running_mark(&self, invocation: &Invocation) -> StoreResult<Option<RunningMark>> {
        self.find(&Key::AlertRunning, invocation).await
    }
}

impl MarkRunning for DynamoStore {
    async fn put_running_mark(
        &self,
        mark: &RunningMark,
        expected: Expected,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let put = Put::new(item::from_running_mark(mark), expected);
        Ok(matches!(put.send(self, invocation).await?, UpdateOutcome::Updated(())))
    }
}
