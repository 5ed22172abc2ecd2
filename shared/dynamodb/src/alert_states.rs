//! `BatchGetItem`, `Query`, `PutItem` and `DeleteItem` on the states of rules; and pages of alerts of any kind. Judges
//! nothing.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::{Order, RuleId, Timestamp};
use futures_util::{StreamExt as _, stream};

use crate::answer::TakeItems;
use crate::attribute::to_sdk;
use crate::find_registry::whole;
use crate::pause::asked;
use crate::put::Put;
use crate::range::{Filter, Range};
use crate::{DynamoStore, note_read};
use table::item::attribute::{DUE, VERSION};
use table::item::{self, Attribute, Decode};
use table::keys::{self, ALERT_STATES, Key, PK, SK};
use table::{
    AlertKey, AlertState, DeleteAlertStates, DueStates, EditAlertStates, Invocation, ItemKey,
    ListPage, Listing, ReadAlertStates, StoreResult, StoredAlertState, UnreadableItem,
    UpdateOutcome,
};

/// A limit that no list reaches.
const UNLIMITED: usize = usize::MAX - 1;
/// How many states are deleted at once. A role that may delete in batches may also put in batches.
const DELETE_CONCURRENCY: usize = 16;

impl ReadAlertStates for DynamoStore {
    async fn alert_states(
        &self,
        keys: &[AlertKey],
        invocation: &Invocation,
    ) -> StoreResult<Listing<StoredAlertState>> {
        whole(self.find_some(keys, |key| Key::AlertState(key.clone()), invocation).await?)
    }

    async fn alert_state_page(
        &self,
        rule: Option<&RuleId>,
        after: Option<&AlertKey>,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<ListPage<StoredAlertState>> {
        let range = Range { consistent: true, ..states(rule, after, limit) };
        self.alert_page(range, |_| true, invocation).await
    }

    async fn due_alert_states(
        &self,
        now: Timestamp,
        after: Option<&str>,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<DueStates> {
        let (now_or_before, after_that) = AlertState::due_bounds(now);
        let text = |at: Timestamp| AttributeValue::S(at.to_string());
        let filter = Filter {
            expression: "#due <= :due OR #due > :far",
            names: &[("#due", DUE)],
            values: [
                (":due".to_owned(), text(now_or_before)),
                (":far".to_owned(), text(after_that)),
            ]
            .into(),
        };
        let start = after.map(|sk| {
            [(PK, ALERT_STATES), (SK, sk)]
                .map(|(name, text)| (name.to_owned(), AttributeValue::S(text.to_owned())))
                .into()
        });
        let range = Range { filter: Some(filter), start, ..states(None, None, limit) };
        // The limit counts the states that are read, and a filter leaves some of them out:
        // https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.Other.html
        let request = self.query(range).limit(i32::try_from(limit).unwrap_or(i32::MAX));
        let found = TakeItems::<Result<StoredAlertState, UnreadableItem>>::new();
        let send = || request.clone().customize().interceptor(found.clone()).send();
        let answer = asked(invocation, send).await?;
        note_read(invocation, answer.consumed_capacity());

        let last = answer.last_evaluated_key.and_then(|mut key| key.remove(SK));
        let next = last.and_then(|sk| sk.as_s().ok().cloned());
        let listing = listing(found.taken().into_iter().flatten());
        Ok(DueStates { listing, next })
    }
}

/// The states of a rule, or all.
fn states(rule: Option<&RuleId>, after: Option<&AlertKey>, limit: usize) -> Range {
    Range {
        index: None,
        partition: ALERT_STATES.to_owned(),
        between: rule.map_or_else(keys::all_ids, keys::alert_states_of),
        order: Order::Ascending,
        start: after.map(|after| to_sdk(item::key(&Key::AlertState(after.clone())))),
        limit,
        consistent: false,
        filter: None,
    }
}

impl EditAlertStates for DynamoStore {
    async fn put_alert_state(
        &self,
        state: &StoredAlertState,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let put = Put::new(item::from_alert_state(state), state.expected());
        Ok(matches!(put.send(self, invocation).await?, UpdateOutcome::Updated(())))
    }
}

impl DeleteAlertStates for DynamoStore {
    async fn delete_alert_states(
        &self,
        rule: &RuleId,
        invocation: &Invocation,
    ) -> StoreResult<usize> {
        let range = Range { consistent: true, ..states(Some(rule), None, UNLIMITED) };
        let page = self.alert_page(range, |_: &StoredAlertState| true, invocation).await?;
        let Listing { found, unreadable, .. } = page.listing;
        let found = found.into_iter().map(|it| ItemKey::of(&Key::AlertState(it.key)));
        let unreadable = unreadable.into_iter().map(|it| ItemKey { pk: it.pk, sk: it.sk });
        let keys: Vec<ItemKey> = found.chain(unreadable).collect();
        let count = keys.len();
        let deleting: Vec<_> =
            keys.into_iter().map(|key| self.delete_item(key.pk, key.sk, invocation)).collect();
        let deleted: Vec<StoreResult<()>> =
            stream::iter(deleting).buffer_unordered(DELETE_CONCURRENCY).collect().await;
        deleted.into_iter().collect::<StoreResult<()>>()?;
        Ok(count)
    }

    async fn delete_alert_state(
        &self,
        key: &AlertKey,
        version: u64,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let still = [(VERSION, Some(Attribute::number(version)))];
        self.delete_if_still(&Key::AlertState(key.clone()), still, invocation).await
    }
}

impl DynamoStore {
    /// A page of a partition of alerts. An item that cannot be read is named: it would otherwise be told of by nobody.
    pub(super) async fn alert_page<T: Decode + Send + 'static>(
        &self,
        range: Range,
        keep: impl Fn(&T) -> bool,
        invocation: &Invocation,
    ) -> StoreResult<ListPage<T>> {
        let range = Range { limit: range.limit.min(UNLIMITED), ..range };
        let keep = |it: &Result<T, UnreadableItem>| it.as_ref().map_or(true, &keep);
        let page = self.range(range, keep, |_| 0, invocation).await?;
        Ok(ListPage { listing: listing(page.items), has_more: page.has_more })
    }
}

/// Items of alerts, with those that cannot be read.
fn listing<T>(items: impl IntoIterator<Item = Result<T, UnreadableItem>>) -> Listing<T> {
    let mut listing = Listing::default();
    for item in items {
        match item {
            Ok(found) => listing.found.push(found),
            Err(unreadable) => listing.unreadable.push(unreadable),
        }
    }
    listing
}
