//! Reads the items that decide about the messages of a channel: waiting messages, messages of the last ten minutes, and
//! the states and rules of due messages. Sends nothing.
//!
//! If the table throttles a read, the rest is left to the next round. The messages that were read are sent.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::RuleId;
use runtime::clock::Clock;
use table::{AlertKey, Invocation, Listing, StoreError, StoredAlertState, WaitingMessage};

use crate::Alerting;
use crate::paged::ReadItems;
use crate::ports::Store;
use crate::round::ChannelRound;
use crate::storm::{Storms, may_storm, read_recent};
use crate::waiting::{Waiting, hold_back, is_test, lasting_key};

/// The number of states that are read at once.
const STATES: usize = 50;
/// The time that is kept for sending the messages that were read.
const SENDING: Duration = Duration::from_secs(10);

/// The items that were read by some keys, and the keys whose items could not be read.
pub(crate) struct ReadAbout<T, K> {
    pub(crate) found: T,
    unread: BTreeSet<K>,
}

/// The states of alerts, as far as they could be read.
pub(crate) type ReadStates = ReadAbout<Listing<StoredAlertState>, AlertKey>;
/// The rules that were deleted or are off, as far as they could be read.
pub(crate) type EndedRules = ReadAbout<BTreeSet<RuleId>, RuleId>;

impl<T, K: Ord> ReadAbout<T, K> {
    /// Whether the item of a key was read, or did not have to be.
    pub(crate) fn is_read(&self, key: &K) -> bool {
        !self.unread.contains(key)
    }
}

impl<S: Store, C: Clock> Alerting<S, C> {
    /// The messages that wait for a channel. Reading begins where the round before ran out of time. While a process
    /// sends a message, later messages of its state wait. If the process dies, or cannot note the result, the message
    /// is sent once more.
    pub(crate) async fn waiting(&self, on_channel: &mut ChannelRound<'_, S>) -> Waiting {
        let (for_sending, now) = (on_channel.round.for_sending, self.clock.now());
        let read_time = time_to_read(for_sending.invocation);
        let session = for_sending.within(&read_time).at(now);
        let read = self.waiting_positions.read_on(session, &on_channel.channel.id).await;
        let ReadItems { items: mut waiting, unreadable, has_begun_later, is_cut, failure } = read;

        let is_delivered =
            |message: &mut WaitingMessage| self.undeleted.get(&lasting_key(message), now).is_some();
        // Delivered messages are taken out first: their leases would hold back later messages of their states.
        let delivered = waiting.extract_if(.., is_delivered).collect();

        let is_part = is_cut || has_begun_later;
        // Damaged messages do not count: they cannot be sent.
        let is_whole = !is_part && failure.is_none();
        let count = is_whole.then_some(waiting.len());

        on_channel.result.is_cut |= is_part;
        on_channel.result.unreadable.extend(unreadable);
        on_channel.result.is_unread = failure.is_some();
        on_channel.result.error = failure;

        hold_back(&mut waiting, |message| message.is_leased(now));
        // A postponed message delays no later message: when its time comes, it is sent only if it is still true.
        waiting.retain(|message| message.is_due(now));
        Waiting { free: waiting, delivered, count }
    }

    /// Finds storms: due messages about many devices of a rule. Reads nothing if no message may be of one.
    pub(crate) async fn storms(
        &self,
        due: &[WaitingMessage],
        on_channel: &mut ChannelRound<'_, S>,
    ) -> Storms {
        if !due.iter().any(may_storm) {
            return Storms::default();
        }

        let now = self.clock.now();
        let read_time = time_to_read(on_channel.round.for_sending.invocation);
        let session = on_channel.round.for_sending.within(&read_time).at(now);
        let recent = on_channel
            .round
            .recent
            .get_or_init(|| read_recent(session, &mut on_channel.result))
            .await;
        let begun = |rule: &RuleId| {
            self.begun_storms.get(&(on_channel.channel.id.clone(), rule.clone()), now).flatten()
        };
        Storms::of(due, recent, begun)
    }

    /// The states of messages, read some at a time.
    pub(crate) async fn states(
        &self,
        keys: &[AlertKey],
        on_channel: &mut ChannelRound<'_, S>,
    ) -> ReadStates {
        let time = on_channel.round.for_sending.invocation.remaining().saturating_sub(SENDING);
        let read_time = on_channel.round.for_sending.invocation.shortened_to(time);
        let mut found = Listing::default();
        for (nth, some) in keys.chunks(STATES).enumerate() {
            match on_channel.round.for_sending.within(&read_time).alert_states(some).await {
                Ok(states) => {
                    found.found.extend(states.found);
                    found.unreadable.extend(states.unreadable);
                }
                Err(error) => {
                    on_channel.result.error = Some(error);
                    let unread = keys[nth * STATES..].iter().cloned().collect();
                    return ReadAbout { found, unread };
                }
            }
        }

        ReadAbout { found, unread: BTreeSet::new() }
    }

    /// The rules of messages, if they were deleted or are off. A rule that this process remembers as on is not read.
    /// Other rules are read, because they may be new, or on again.
    pub(crate) async fn ended_rules(
        &self,
        messages: &[WaitingMessage],
        on_channel: &mut ChannelRound<'_, S>,
    ) -> EndedRules {
        let named = messages.iter().filter(|message| !is_test(message));
        let named = named.map(|message| &message.logged.alert.rule);
        let is_on =
            |id: &RuleId| on_channel.round.rules.get(id).is_some_and(|rule| rule.definition.is_on);
        let doubtful: BTreeSet<_> = named.filter(|id| !is_on(id)).collect();

        let read_time = time_to_read(on_channel.round.for_sending.invocation);
        let mut about = ReadAbout { found: BTreeSet::new(), unread: BTreeSet::new() };
        for id in doubtful {
            match on_channel.round.for_sending.within(&read_time).alert_rule(id).await {
                Ok(Some(rule)) if rule.definition.is_on => {}
                Ok(_) => drop(about.found.insert(id.clone())),
                // A rule that cannot be read was not deleted.
                Err(StoreError::Unreadable(_)) => {}
                Err(error) => {
                    about.unread.insert(id.clone());
                    on_channel.result.error = Some(error);
                }
            }
        }

        about
    }
}

/// The time for reading one kind of items. The rest is for other kinds, and for sending.
fn time_to_read(invocation: &Invocation) -> Invocation {
    invocation.shortened_to(invocation.remaining() / 3)
}
