//! The log of messages, and the messages that wait to be sent. Sends nothing.

use domain::{ChannelId, Order, Timestamp};
use ports::port;

use super::read;
use crate::db::{
    Db, If, ItemQuery, Write, WriteOutcome, absent, add, delete, present, put, remove, set, still,
    update,
};
use crate::item::attribute::{ATTEMPTS, LEASE, NEXT, STORM};
use crate::item::{self, Attribute, Kind as _};
use crate::keys::{self, ALERT_TOLD, ALERT_WAITING, Key, PK};
use crate::{
    ListPage, LoggedMessage, MessageQuery, Patterns, StoreResult, WaitingKey, WaitingMessage,
};

/// The log of messages.
#[port(ReadToldMessages, Query(AlertTold))]
impl<D: Db> Patterns<'_, D> {
    /// A page of the messages of a range, newest first. To find the messages of one rule, all messages of the range are
    /// read.
    pub async fn told_messages(self, query: &MessageQuery) -> StoreResult<ListPage<LoggedMessage>> {
        let start = query.after.clone().map(|after| item::key(&Key::AlertTold(after)));
        let range = ItemQuery {
            order: Order::Descending,
            start,
            consistent: false,
            ..ItemQuery::of(ALERT_TOLD).between(keys::told_in(query.range))
        };
        let is_asked = |message: &LoggedMessage| {
            query.rule.as_ref().is_none_or(|rule| message.alert.rule == *rule)
        };
        self.alert_page(range, query.limit, is_asked).await
    }
}

/// The messages that wait for a channel.
#[port(ReadWaitingMessages, Query(AlertWaiting))]
impl<D: Db> Patterns<'_, D> {
    /// A page of the messages that wait for a channel, in the order of their keys, as they are this moment. Includes
    /// messages that are not due yet ([`WaitingMessage::is_due`]), and messages that another process is sending
    /// ([`WaitingMessage::is_leased`]). The read is consistent, because a new message must be sent at once.
    pub async fn waiting_messages(
        self,
        channel: &ChannelId,
        after: Option<&WaitingKey>,
        limit: usize,
    ) -> StoreResult<ListPage<WaitingMessage>> {
        let range = ItemQuery {
            start: after.map(|after| item::key(&Key::AlertWaiting(after.clone()))),
            ..ItemQuery::of(ALERT_WAITING).between(keys::waiting_of(channel))
        };
        self.alert_page(range, limit, |_| true).await
    }
}

/// Stores a test message, by which a person sees that a channel works.
#[port(PutTestMessages, PutItem(AlertWaiting))]
impl<D: Db> Patterns<'_, D> {
    /// Stores a message ([`WaitingMessage::test`]), unless it is there already; returns whether it was stored.
    pub async fn put_test_message(self, message: &WaitingMessage) -> StoreResult<bool> {
        self.is_written(put(message.item()).when([absent(PK)])).await
    }
}

/// Sending a message: it is leased, sent, and then deleted or postponed.
///
/// Only one of several senders at the same time gets the lease. If this sender dies, another one may take the message
/// after the end of the lease.
#[port(SendWaitingMessages, UpdateItem(AlertWaiting), DeleteItem(AlertWaiting))]
impl<D: Db> Patterns<'_, D> {
    /// Leases `known` until a timestamp, stores its `storm` and counts an attempt, unless its lease has changed since
    /// the read. Returns the leased message, or `None` if another sender was faster or the message is gone. A repeat is
    /// refused.
    pub async fn lease_waiting(
        self,
        known: &WaitingMessage,
        until: Timestamp,
    ) -> StoreResult<Option<WaitingMessage>> {
        let storm = known
            .storm
            .map_or_else(|| remove(STORM), |devices| set(STORM, Attribute::number(devices)));
        let lease = set(LEASE, Attribute::text(&until));
        let lease = update_of(known).with([lease, storm, add(ATTEMPTS, Attribute::number(1))]);
        Ok(match self.write(lease).await? {
            WriteOutcome::Done(now) => Some(read(now.unwrap_or_default())?),
            WriteOutcome::Refused(_) => None,
        })
    }

    /// Deletes a message that was sent or is no longer needed, if its lease is still as in `known`. Returns whether the
    /// message was deleted.
    pub async fn delete_waiting(self, known: &WaitingMessage) -> StoreResult<bool> {
        let deletion = delete(&Key::AlertWaiting(known.key()));
        self.is_written(deletion.when([present(PK), is_leased_as(known)])).await
    }

    /// Postpones a message until `next`, if its lease is still that of `leased`; returns whether it is postponed. A
    /// message that may have arrived keeps its lease, and is not sent again before the end of the lease.
    pub async fn postpone_waiting(
        self,
        leased: &WaitingMessage,
        next: Timestamp,
        may_have_arrived: bool,
    ) -> StoreResult<bool> {
        let lease = (!may_have_arrived).then(|| remove(LEASE));
        self.is_written(update_of(leased).with([set(NEXT, Attribute::text(&next))]).with(lease))
            .await
    }
}

/// An update of a message, on the condition that its lease is still that of `known`.
fn update_of(known: &WaitingMessage) -> Write {
    update(&Key::AlertWaiting(known.key())).when([is_leased_as(known)])
}

fn is_leased_as(known: &WaitingMessage) -> If {
    still(LEASE, known.lease.as_ref().map(Attribute::text))
}
