//! `Query` on what was told and on what waits to be sent, and `PutItem`, `UpdateItem` and `DeleteItem` on what waits.
//! Sends nothing.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::{ChannelId, Order, Timestamp};

use crate::DynamoStore;
use crate::attribute::{read, to_sdk};
use crate::put::Put;
use crate::range::{Filter, Range};
use crate::update::Update;
use table::item::attribute::{ATTEMPTS, JUDGED_AT, LEASE, NEXT};
use table::item::{self, Attribute};
use table::keys::{self, ALERT_TOLD, ALERT_WAITING, Key};
use table::{
    Expected, Invocation, ListPage, MAX_LEASE, MAX_POSTPONED, PutTestMessages, ReadToldMessages,
    ReadWaitingMessages, SendWaitingMessages, StoreResult, ToldMessage, ToldQuery, UpdateOutcome,
    WaitingKey, WaitingMessage,
};

impl ReadToldMessages for DynamoStore {
    async fn told_messages(
        &self,
        query: &ToldQuery,
        invocation: &Invocation,
    ) -> StoreResult<ListPage<ToldMessage>> {
        let after = query.after.as_ref();
        let range = Range {
            index: None,
            partition: ALERT_TOLD.to_owned(),
            between: keys::told_in(query.range),
            order: Order::Descending,
            start: after.map(|after| to_sdk(item::key(&Key::AlertTold(after.clone())))),
            limit: query.limit,
            consistent: false,
            filter: None,
        };
        let is_asked =
            |it: &ToldMessage| query.rule.as_ref().is_none_or(|rule| it.alert.rule == *rule);
        self.alert_page(range, is_asked, invocation).await
    }
}

impl ReadWaitingMessages for DynamoStore {
    /// Consistent: whoever stores a message asks at once for it to be sent.
    async fn waiting_messages(
        &self,
        channel: &ChannelId,
        now: Timestamp,
        after: Option<&WaitingKey>,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<ListPage<WaitingMessage>> {
        let text = |at: Timestamp| AttributeValue::S(at.to_string());
        let filter = Filter {
            expression: "(#next <= :now OR #next <= #judged OR #next > :far) \
                         AND (attribute_not_exists(#lease) OR #lease <= :now OR #lease > :held)",
            names: &[("#next", NEXT), ("#judged", JUDGED_AT), ("#lease", LEASE)],
            values: [
                (":now".to_owned(), text(now)),
                (":far".to_owned(), text(now.saturating_add(MAX_POSTPONED))),
                (":held".to_owned(), text(now.saturating_add(MAX_LEASE))),
            ]
            .into(),
        };
        let range = Range {
            index: None,
            partition: ALERT_WAITING.to_owned(),
            between: keys::waiting_of(channel),
            order: Order::Ascending,
            start: after.map(|after| to_sdk(item::key(&Key::AlertWaiting(after.clone())))),
            limit,
            consistent: true,
            filter: Some(filter),
        };
        self.alert_page(range, |it: &WaitingMessage| it.is_free(now), invocation).await
    }
}

impl PutTestMessages for DynamoStore {
    async fn put_test_message(
        &self,
        message: &WaitingMessage,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let put = Put::new(item::from_waiting(message), Expected::Absent);
        Ok(matches!(put.send(self, invocation).await?, UpdateOutcome::Updated(())))
    }
}

impl SendWaitingMessages for DynamoStore {
    async fn lease_waiting(
        &self,
        known: &WaitingMessage,
        until: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<Option<WaitingMessage>> {
        let mut update = update_of(known);
        update.set(&[LEASE], text(until));
        update.add_number(&[ATTEMPTS], 1);
        Ok(match update.send(self, invocation).await? {
            UpdateOutcome::Updated(now) => Some(read(now)?),
            UpdateOutcome::ConditionFailed(_) => None,
        })
    }

    async fn finish_waiting(
        &self,
        leased: &WaitingMessage,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let still = [(LEASE, leased.lease.map(text))];
        self.delete_if_still(&Key::AlertWaiting(leased.key()), still, invocation).await
    }

    async fn postpone_waiting(
        &self,
        leased: &WaitingMessage,
        next: Timestamp,
        may_have_arrived: bool,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut update = update_of(leased);
        update.set(&[NEXT], text(next));
        if !may_have_arrived {
            update.remove(&[LEASE]);
        }
        Ok(matches!(update.send(self, invocation).await?, UpdateOutcome::Updated(_)))
    }
}

/// An update of a message whose lease is still the one of `known`.
fn update_of(known: &WaitingMessage) -> Update {
    let mut update = Update::of(Key::AlertWaiting(known.key()));
    update.only_if_still(&[LEASE], known.lease.map(text));
    update
}

fn text(at: Timestamp) -> Attribute {
    Attribute::S(at.to_string())
}
