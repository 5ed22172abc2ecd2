//! The states of rules, and judgements with their messages. Judges nothing.

use domain::{RuleId, Timestamp};
use futures_util::{StreamExt as _, stream};
use ports::port;

use super::expected;
use super::range::UNLIMITED;
use crate::db::{Db, ItemQuery, above, any, at_most, check, delete, is, put};
use crate::item::attribute::{DUE, RULE_CHANGED, VERSION};
use crate::item::{self, Attribute, Kind as _};
use crate::keys::{self, ALERT_STATES, Key};
use crate::{
    AlertKey, AlertState, DueStates, Expected, ItemKey, JudgementOutcome, ListPage, Listing,
    NewJudgement, Patterns, StoreResult, StoredAlertState,
};

/// The number of states that are deleted at once, each by a request of its own, because a role that may delete in
/// batches may also put in batches.
const DELETE_CONCURRENCY: usize = 16;

/// The states of rules.
#[port(ReadAlertStates, BatchGetItem(AlertStates), Query(AlertStates))]
impl<D: Db> Patterns<'_, D> {
    /// The stored states with these keys, in any order, as they are this moment. No key may be given twice.
    pub async fn alert_states(self, keys: &[AlertKey]) -> StoreResult<Listing<StoredAlertState>> {
        let keys = keys.iter().map(|key| ItemKey::of(&Key::AlertState(key.clone())));
        self.find_all(keys.collect()).await
    }

    /// A page of the states of a rule, or of all states, in the order of their keys, as they are this moment.
    pub async fn alert_state_page(
        self,
        rule: Option<&RuleId>,
        after: Option<&AlertKey>,
        limit: usize,
    ) -> StoreResult<ListPage<StoredAlertState>> {
        let start = after.map(|after| item::key(&Key::AlertState(after.clone())));
        self.alert_page(ItemQuery { start, ..states(rule) }, limit, |_| true).await
    }

    /// Reads the next `limit` states in the order of their keys, and returns the due states
    /// ([`AlertState::is_due`](crate::AlertState::is_due)). Makes a single request, so that a caller that reads all
    /// states keeps its position when the table throttles. The read is not consistent, for half the price: new states
    /// may be missing, and changed states old.
    pub async fn due_alert_states(
        self,
        now: Timestamp,
        after: Option<&str>,
        limit: usize,
    ) -> StoreResult<DueStates> {
        let (due_until, unjudged_from) = AlertState::due_bounds(now);
        let start = after.map(|sk| ItemKey { pk: ALERT_STATES.to_owned(), sk: sk.to_owned() });
        // The limit also counts the states that the filter leaves out:
        // https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.Other.html
        let query = ItemQuery {
            start: start.map(ItemKey::into_item),
            limit: Some(limit),
            consistent: false,
            filter: vec![any([
                at_most(DUE, Attribute::text(&due_until)),
                above(DUE, Attribute::text(&unjudged_from)),
            ])],
            ..states(None)
        };

        let mut listing = Listing::default();
        let mut each = |attributes: &mut dyn Iterator<Item = _>| listing.add(attributes);
        let next = self.db.query(&query, self.invocation, &mut each).await?;
        Ok(DueStates { listing, next: next.map(|last| ItemKey::of_item(&last).sk) })
    }
}

/// Edits stored states, such as by an acknowledgement.
#[port(EditAlertStates, PutItem(AlertStates))]
impl<D: Db> Patterns<'_, D> {
    /// Stores a state in place of its previous version; returns whether it is stored. A repeat is refused.
    pub async fn put_alert_state(self, state: &StoredAlertState) -> StoreResult<bool> {
        let new = put(state.item()).when([expected(Expected::before(state.version))]);
        self.is_written(new).await
    }
}

/// Stores a judgement.
#[port(
    PutJudgements,
    PutItem(AlertStates, AlertTold, AlertWaiting),
    ConditionCheckItem(AlertRules)
)]
impl<D: Db> Patterns<'_, D> {
    /// Stores a state in place of its previous version together with all its messages, or nothing. The rule must still
    /// have the version by which the state was judged.
    ///
    /// A judgement without messages is stored as the state alone. This takes a quarter of the units, but does not check
    /// the rule. So the state may outlive its rule; it is then deleted when it is due.
    ///
    /// A repeat is refused, because the state has a newer version. So no message is stored twice.
    ///
    /// All judgements of a rule check the rule's item. So if there are several at once, their transactions conflict and
    /// are repeated.
    pub async fn put_judgement(self, judgement: &NewJudgement) -> StoreResult<JudgementOutcome> {
        if judgement.logged().is_empty() {
            let is_put = self.put_alert_state(judgement.state()).await?;
            return Ok(if is_put {
                JudgementOutcome::Stored
            } else {
                JudgementOutcome::StateMoved
            });
        }

        let (rule, changed) = judgement.rule();
        let rule = check(&Key::AlertRule(rule.clone()))
            .when([is(RULE_CHANGED, Attribute::text(&changed))]);
        let state = judgement.state();
        let state = put(state.item()).when([expected(Expected::before(state.version))]);
        // The messages need no condition: if the state's condition fails, nothing is written.
        let logged = judgement.logged().iter().map(|message| put(message.item()));
        let waiting = judgement.waiting().iter().map(|message| put(message.item()));
        let writes = [rule, state].into_iter().chain(logged).chain(waiting).collect();

        Ok(match self.transact(writes).await? {
            Ok(()) => JudgementOutcome::Stored,
            Err(refused) if refused.at(0) => JudgementOutcome::RuleChanged,
            Err(_) => JudgementOutcome::StateMoved,
        })
    }
}

/// Deletes the states of a deleted rule, or of a device or room that is gone.
#[port(DeleteAlertStates, Query(AlertStates), DeleteItem(AlertStates))]
impl<D: Db> Patterns<'_, D> {
    /// Deletes all states of a rule, even unreadable ones; returns their number. A repeat returns 0.
    pub async fn delete_alert_states(self, rule: &RuleId) -> StoreResult<usize> {
        let page = self.alert_page(states(Some(rule)), UNLIMITED, |_| true).await?;
        let Listing::<StoredAlertState> { found, unreadable, .. } = page.listing;
        let found = found.into_iter().map(|state| ItemKey::of(&Key::AlertState(state.key)));
        let unreadable = unreadable.into_iter().map(|item| ItemKey { pk: item.pk, sk: item.sk });
        let deleting: Vec<_> = found.chain(unreadable).map(|key| self.write(delete(key))).collect();

        let count = deleting.len();
        let deleted = stream::iter(deleting).buffer_unordered(DELETE_CONCURRENCY);
        // All deletions are tried, even if one fails.
        let deleted: Vec<StoreResult<_>> = deleted.collect().await;
        deleted.into_iter().try_for_each(|deleted| deleted.map(drop))?;
        Ok(count)
    }

    /// Deletes a state, if it still has this version; returns whether it was deleted.
    pub async fn delete_alert_state(self, key: &AlertKey, version: u64) -> StoreResult<bool> {
        let still = is(VERSION, Attribute::number(version));
        self.is_written(delete(&Key::AlertState(key.clone())).when([still])).await
    }
}

/// The query for the states of a rule, or for all states.
fn states(rule: Option<&RuleId>) -> ItemQuery {
    let states = rule.map_or_else(keys::all_ids, keys::alert_states_of);
    ItemQuery::of(ALERT_STATES).between(states)
}
