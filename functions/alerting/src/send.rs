//! Sends waiting messages, each channel by itself, so that a failing channel delays no other channel. Judges nothing.
//!
//! A process leases a message, so that no other process sends it. Then it sends the message, and deletes it or gives it
//! back. After a crash, another process sends the message again when the lease has ended, marked as a repeat. So each
//! message is sent at least once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use alerts::{MAX_PAUSE, Outgoing, Secret, next_attempt};
use chrono::TimeDelta;
use domain::Timestamp;
use futures_util::future::{join, join_all};
use futures_util::{StreamExt as _, stream};
use runtime::clock::Clock;
use table::panic::catching;
use table::{
    AlertKey, Failing, Session, StoreError, StoreResult, StoredChannel, WaitingKey, WaitingMessage,
};

use crate::Alerting;
use crate::carrier::NotCarried;
use crate::names::RegisteredNames;
use crate::ports::Store;
use crate::post::Envelope;
use crate::read_about::{EndedRules, ReadStates};
use crate::round::{ChannelRound, SendingRound};
use crate::sent::ChannelResult;
use crate::storm::Storms;
use crate::waiting::{
    self, Chosen, MAX_MESSAGES, Waiting, first_attempt, hold_back, hold_back_following, is_test,
    lasting_key, most_at_once, put_in_order, put_off_stubborn, states_needed, take_ended,
    take_repeated,
};

/// The time of a lease: longer than an invocation. After a shorter lease, another process could send messages again
/// whose delivery is done, but whose deletion is throttled and still repeated.
const LEASE: TimeDelta = TimeDelta::seconds(60);
/// The time that preparing a request needs. With less time left, no request is begun.
const ENOUGH: Duration = Duration::from_secs(5);
/// The longest time from a lease to its request. A request that begins much later could end after the lease, when
/// another process sends the same messages.
const MAX_PREPARING: Duration = Duration::from_secs(10);
/// The largest number of messages that are leased, deleted or given back at once.
const CONCURRENCY: usize = 50;

/// Messages that only this invocation may send.
#[derive(Default)]
struct Leased {
    messages: Vec<WaitingMessage>,
    /// The messages that may have arrived by an earlier attempt.
    repeated: BTreeSet<WaitingKey>,
    /// Messages that another process sends, and later messages of the same states.
    of_others: Vec<WaitingMessage>,
    /// Whether some messages were not leased, and are left to the next minute.
    is_cut: bool,
    /// Why the table refused a lease.
    error: Option<StoreError>,
}

impl<S: Store, C: Clock> Alerting<S, C> {
    /// Serves all channels at once. Returns the id and the result of each channel, in the order of `channels`.
    pub(crate) async fn send_all(
        &self,
        channels: &[StoredChannel],
        round: &SendingRound<'_, S>,
    ) -> Vec<(String, ChannelResult)> {
        join_all(channels.iter().map(async |channel| {
            let failing_since = channel.failing.map(|failing| failing.since);
            let result = ChannelResult { failing_since, ..ChannelResult::default() };
            let mut on_channel = ChannelRound { channel, round, result };
            let mut waiting = self.waiting(&mut on_channel).await;

            // Messages are deleted while others are sent, because a throttled deletion may use up all the time.
            let delivered = std::mem::take(&mut waiting.delivered);
            let deleting = self.delete_delivered(round.for_noting, &delivered);
            let serving = Box::pin(self.serve(waiting, &mut on_channel));
            let (deleted, served) = join(deleting, serving).await;
            if let Err(error) = deleted.and(served) {
                on_channel.result.error = Some(error);
            }
            (channel.id.to_string(), on_channel.result)
        }))
        .await
    }

    /// Chooses among the messages that wait for a channel, leases and delivers them, and notes the result.
    async fn serve(
        &self,
        waiting: Waiting,
        on_channel: &mut ChannelRound<'_, S>,
    ) -> StoreResult<()> {
        let ChannelRound { channel, round, .. } = *on_channel;
        let Waiting { free, count, .. } = waiting;
        let (mut chosen, storms) = self.choose_for_channel(free, on_channel).await;
        self.drop_messages(&mut chosen, on_channel).await;
        // A dropped message counts as sent in the next round. So its storm is noted as begun here; otherwise that round
        // would hold the other messages of the storm back.
        storms.note_begun(&self.begun_storms, &channel.id, &chosen.obsolete, self.clock.now());

        if chosen.send.is_empty() {
            // If every waiting message was dropped, nothing can fail or succeed any more.
            if count == Some(on_channel.result.dropped) {
                self.end_failing(round.for_sending, on_channel).await?;
            }
            return Ok(());
        }

        if round.for_sending.invocation.remaining() < ENOUGH {
            on_channel.result.is_cut = true;
            return Ok(());
        }

        let preparing = round.for_sending.invocation.shortened_to(MAX_PREPARING);
        let session = round.for_sending.within(&preparing);
        // The secret is read before the lease: a leased message that is not sent waits for the end of its lease.
        let secret = self.secret(session, channel).await?;
        // Half of the time is for leases, the other half for reading names.
        let leasing = preparing.shortened_to(preparing.remaining() / 2);
        let leased = self.lease(session.within(&leasing), &chosen.send).await?;
        on_channel.result.is_cut |= leased.is_cut;
        if leased.messages.is_empty() {
            return Ok(());
        }

        match self.deliver(session, secret, &leased, &storms, round).await {
            Ok(()) => {
                on_channel.result.messages = leased.messages.len();
                // What another process has leased counts as sent.
                let done = [&chosen.obsolete[..], &leased.messages, &leased.of_others].concat();
                storms.note_begun(&self.begun_storms, &channel.id, &done, self.clock.now());
                self.note_delivered(&leased.messages, on_channel).await?;
            }
            Err(failure) => {
                let noted = self.note_failed(round.for_noting, channel, &leased, &failure).await;
                on_channel.result.failure = Some(failure.reason);
                noted?;
            }
        }

        Ok(())
    }

    /// Chooses among the messages that wait for a channel. A message is left to the next round if its state or rule
    /// cannot be read. Messages of other states are still chosen.
    async fn choose_for_channel(
        &self,
        mut waiting: Vec<WaitingMessage>,
        on_channel: &mut ChannelRound<'_, S>,
    ) -> (Chosen, Storms) {
        let now = self.clock.now();
        // Looked up for all messages, not only for due ones: a message that was given up never becomes due, and would
        // stay for ever.
        let ended = self.ended_rules(&waiting, on_channel).await;
        let mut of_ended = take_ended(&mut waiting, on_channel.channel, &ended.found, now);
        of_ended.truncate(MAX_MESSAGES);
        let mut due = waiting::due(waiting, on_channel.channel, on_channel.round.rules, now);

        on_channel.result.is_cut |= put_off_stubborn(&mut due, now);
        let repeated = take_repeated(&mut due);
        let again = self.choose_repeated(&repeated, &due, &ended, on_channel).await;
        let (mut chosen, storms) = if again.send.is_empty() {
            hold_back_following(&mut due, &repeated);
            self.choose_new(due, &ended, on_channel).await
        } else {
            on_channel.result.is_cut |= !due.is_empty();
            on_channel.result.due_since = due_since(&repeated);
            (Chosen { send: again.send, ..Chosen::default() }, Storms::sent_again(&repeated))
        };

        chosen.obsolete.extend(again.obsolete);
        chosen.obsolete.extend(of_ended);
        for message in &mut chosen.send {
            message.storm = storms.device_count(message);
        }

        (chosen, storms)
    }

    /// Chooses among messages that were never tried, or that did not arrive.
    async fn choose_new(
        &self,
        mut due: Vec<WaitingMessage>,
        ended: &EndedRules,
        on_channel: &mut ChannelRound<'_, S>,
    ) -> (Chosen, Storms) {
        let storms = self.storms(&due, on_channel).await;
        hold_back(&mut due, |message| storms.holds(message));
        on_channel.result.due_since = due_since(&due);
        let most = most_at_once(&due);
        on_channel.result.is_cut |= due.len() > most;
        due.truncate(most);
        if due.is_empty() {
            return (Chosen::default(), storms);
        }

        let now = self.clock.now();
        let states =
            self.states(&states_needed(&due, &storms.device_counts, now), on_channel).await;
        due.retain(|message| is_known(message, &states, ended));
        (waiting::newest_or_all(due, &storms.device_counts, &states.found, now), storms)
    }

    /// Chooses among messages that may have arrived. They stay together, because fewer messages would give the request
    /// another id. If something about one of them cannot be read, none is chosen.
    async fn choose_repeated(
        &self,
        repeated: &[WaitingMessage],
        later: &[WaitingMessage],
        ended: &EndedRules,
        on_channel: &mut ChannelRound<'_, S>,
    ) -> Chosen {
        let needed = states_needed(repeated, &BTreeMap::new(), self.clock.now());
        let states = self.states(&needed, on_channel).await;
        if !repeated.iter().all(|message| is_known(message, &states, ended)) {
            on_channel.result.is_cut = true;
            return Chosen::default();
        }
        waiting::without_overtaken(repeated.to_vec(), later, &states.found)
    }

    /// Deletes obsolete messages. If a message cannot be deleted, all messages of its state are left to the next round.
    /// Otherwise the receiver could get the obsolete message last.
    async fn drop_messages(&self, chosen: &mut Chosen, on_channel: &mut ChannelRound<'_, S>) {
        // Half of the time is for deleting, the other half for sending.
        let for_sending = on_channel.round.for_sending;
        let dropping = for_sending.invocation.shortened_to(for_sending.invocation.remaining() / 2);
        let session = for_sending.within(&dropping);
        let finished = chosen.obsolete.iter().map(|message| session.delete_waiting(message));
        let finished: Vec<_> = finished.collect();
        let results: Vec<_> = stream::iter(finished).buffered(CONCURRENCY).collect().await;

        let mut staying = BTreeSet::new();
        for (message, is_finished) in chosen.obsolete.iter().zip(results) {
            match is_finished {
                Ok(true) => on_channel.result.dropped += 1,
                Ok(false) => {
                    staying.insert(message.logged.alert.clone());
                }
                Err(error) => {
                    staying.insert(message.logged.alert.clone());
                    on_channel.result.error = Some(error);
                }
            }
        }

        for messages in [&mut chosen.obsolete, &mut chosen.send] {
            messages.retain(|message| !staying.contains(&message.logged.alert));
        }
    }

    /// Leases messages; messages of one state in order. Fails only if no message is leased. Leased messages are sent
    /// even if others cannot be leased, because another attempt would have to wait for the end of their lease.
    async fn lease(
        &self,
        session: Session<'_, S>,
        messages: &[WaitingMessage],
    ) -> StoreResult<Leased> {
        let until = self.clock.now().saturating_add(LEASE);
        let mut of_states: BTreeMap<&AlertKey, Vec<&WaitingMessage>> = BTreeMap::new();
        for message in messages {
            of_states.entry(&message.logged.alert).or_default().push(message);
        }

        let mut of_states: Vec<_> = of_states.into_values().collect();
        of_states.sort_by_key(|messages| messages[0].logged.key());

        let leasing =
            of_states.into_iter().map(|messages| self.lease_in_order(session, messages, until));
        let leasing: Vec<_> = leasing.collect();
        let parts: Vec<Leased> = stream::iter(leasing).buffered(CONCURRENCY).collect().await;

        let mut leased = Leased::default();
        for part in parts {
            leased.messages.extend(part.messages);
            leased.repeated.extend(part.repeated);
            leased.of_others.extend(part.of_others);
            leased.is_cut |= part.is_cut;
            leased.error = leased.error.or(part.error);
        }

        put_in_order(&mut leased.messages);
        match leased.error.take() {
            Some(error) if leased.messages.is_empty() => Err(error),
            _ => Ok(leased),
        }
    }

    /// Leases messages of a state up to the first that cannot be leased. The messages after it stay, so that the
    /// receiver gets them in order.
    async fn lease_in_order(
        &self,
        session: Session<'_, S>,
        messages: Vec<&WaitingMessage>,
        until: Timestamp,
    ) -> Leased {
        let mut leased = Leased::default();
        for (position, known) in messages.iter().enumerate() {
            match session.lease_waiting(known, until).await {
                Ok(Some(message)) => {
                    if known.lease.is_some() {
                        leased.repeated.insert(message.key());
                    }
                    leased.messages.push(message);
                }
                Ok(None) => {
                    let of_others = messages[position..].iter().copied().cloned().collect();
                    return Leased { is_cut: true, of_others, ..leased };
                }
                Err(error) => return Leased { is_cut: true, error: Some(error), ..leased },
            }
        }

        leased
    }

    /// The secret of a channel. Without it no message can be delivered.
    async fn secret(
        &self,
        session: Session<'_, S>,
        channel: &StoredChannel,
    ) -> StoreResult<Result<Secret, NotCarried>> {
        let stored = session.channel_secret(&channel.id).await?;
        Ok(match stored.map(|stored| stored.secret()) {
            Some(Ok(secret)) => Ok(secret),
            Some(Err(_)) => Err(NotCarried::lasting("its stored secret cannot be read")),
            None => Err(NotCarried::lasting("it has no secret")),
        })
    }

    /// Sends leased messages to their channel, in one request.
    async fn deliver(
        &self,
        session: Session<'_, S>,
        secret: Result<Secret, NotCarried>,
        leased: &Leased,
        storms: &Storms,
        round: &SendingRound<'_, S>,
    ) -> Result<(), NotCarried> {
        let secret = secret?;
        // A message whose text cannot be made counts as refused by its receiver, and the minute goes on.
        let composing = Box::pin(self.compose(session, &secret, leased, storms, round));
        let outgoing = catching(composing).await;
        let outgoing = outgoing.map_err(|panic| NotCarried::lasting(&panic.to_string()))?;
        self.carrier.carry(outgoing, &self.clock).await
    }

    /// Makes the request with the leased messages.
    async fn compose(
        &self,
        session: Session<'_, S>,
        secret: &Secret,
        leased: &Leased,
        storms: &Storms,
        round: &SendingRound<'_, S>,
    ) -> Outgoing {
        let Leased { messages, repeated, .. } = leased;
        let registered = RegisteredNames::of(session, messages).await;

        let (page_url, zone) = (self.settings.page_url.as_str(), round.rules.zone());
        let envelope = Envelope { page_url, zone, storms: &storms.device_counts };
        let (is_repeated, now) = (!repeated.is_empty(), self.clock.now());
        envelope.outgoing(messages, &registered, secret, is_repeated, now)
    }

    /// Deletes messages that were delivered, and notes that their channel no longer fails.
    async fn note_delivered(
        &self,
        leased: &[WaitingMessage],
        on_channel: &mut ChannelRound<'_, S>,
    ) -> StoreResult<()> {
        let deleting = self.delete_delivered(on_channel.round.for_noting, leased);
        let ending = self.end_failing(on_channel.round.for_noting, on_channel);
        let (deleted, ended) = join(deleting, ending).await;
        deleted.and(ended)
    }

    /// Deletes messages that were delivered. A message that is gone already does no harm. If a deletion fails, the next
    /// round deletes all of them, so a throttled deletion takes only a quarter of this round's time.
    async fn delete_delivered(
        &self,
        session: Session<'_, S>,
        messages: &[WaitingMessage],
    ) -> StoreResult<()> {
        let part = session.invocation.with_quarter_patience();
        let session = session.within(&part);
        let deleting = messages.iter().map(|message| session.delete_waiting(message));
        let deleted = some_at_once(deleting.collect()).await;
        if deleted.is_err() {
            let kept = messages.iter().map(|message| (lasting_key(message), ()));
            self.undeleted.keep_all(kept, self.clock.now());
        }
        deleted.map(drop)
    }

    /// Notes that a channel no longer fails.
    async fn end_failing(
        &self,
        session: Session<'_, S>,
        on_channel: &mut ChannelRound<'_, S>,
    ) -> StoreResult<()> {
        on_channel.result.failing_since = None;
        if on_channel.channel.failing.is_some() {
            let part = session.invocation.with_quarter_patience();
            session.within(&part).note_channel(on_channel.channel, None).await?;
        }
        Ok(())
    }

    /// Gives back messages that were not delivered. The channel is noted as failing at the second attempt; at once if a
    /// person has to mend something, if all are tests, or if the receiver asks for a pause, which holds later messages
    /// too.
    async fn note_failed(
        &self,
        session: Session<'_, S>,
        channel: &StoredChannel,
        leased: &Leased,
        failure: &NotCarried,
    ) -> StoreResult<()> {
        let Leased { messages: leased, repeated, .. } = leased;
        let now = self.clock.now();
        let in_an_hour = now.saturating_add(MAX_PAUSE);
        let next_of = |message: &WaitingMessage| {
            let first = first_attempt(message, channel, now);
            // Without further attempts, the hour is not a retry time: `waiting::due` holds the message until a newer
            // message is sent.
            next_attempt(first, message.attempts, now, failure.retry_after).unwrap_or(in_an_hour)
        };
        let first_retry = leased.iter().map(next_of).min().unwrap_or(in_an_hour);

        // Giving back takes only a part of the time, because a lease also ends by itself. The rest is for noting the
        // channel.
        let part = session.invocation.with_quarter_patience();
        let giving_back = session.within(&part);
        let postponed = leased.iter().map(|message| {
            // Even if the receiver refused this attempt, an earlier attempt may have arrived.
            let may_have_arrived = failure.may_have_arrived || repeated.contains(&message.key());
            // Messages that may have arrived are sent again together.
            let next = if may_have_arrived { first_retry } else { next_of(message) };
            giving_back.postpone_waiting(message, next, may_have_arrived)
        });
        let postponed = some_at_once(postponed.collect()).await;

        // A test is sent even in a pause that the receiver asked for. Its retry time must not shorten the pause.
        let pause = channel.failing.map(|failing| failing.next);
        let pause = pause.filter(|next| *next <= in_an_hour);
        let next = pause.map_or(first_retry, |next| first_retry.max(next));

        let is_second = leased.iter().any(|message| message.attempts > 1);
        let is_only_tested = leased.iter().all(is_test);
        let is_noted_at_once =
            failure.is_lasting || failure.retry_after.is_some() || is_only_tested;
        // The channel is noted as failing even if a message could not be given back: its lease ends by itself.
        if is_noted_at_once || is_second || channel.failing.is_some() {
            let since = channel.failing.map_or(now, |failing| failing.since);
            let failing = Failing { since, next };
            let part = session.invocation.with_quarter_patience();
            session.within(&part).note_channel(channel, Some(failing)).await?;
        }

        postponed.map(drop)
    }
}

/// Whether everything was read that decides about a message.
fn is_known(message: &WaitingMessage, states: &ReadStates, ended: &EndedRules) -> bool {
    let alert = &message.logged.alert;
    is_test(message) || states.is_read(alert) && ended.is_read(&alert.rule)
}

/// When the oldest of some messages became due.
fn due_since(due: &[WaitingMessage]) -> Option<Timestamp> {
    due.iter().map(|message| message.logged.at.max(message.next)).min()
}

/// Makes requests, some of them at once. Returns their results in order. If one fails, the others are still made.
async fn some_at_once<T>(
    requests: Vec<impl Future<Output = StoreResult<T>>>,
) -> StoreResult<Vec<T>> {
    let results: Vec<_> = stream::iter(requests).buffered(CONCURRENCY).collect().await;
    results.into_iter().collect()
}
