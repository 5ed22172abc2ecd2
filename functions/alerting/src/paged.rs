//! Reads the items of judging and sending in pages: due states, rechecks, waiting messages. Judges and sends nothing.
//!
//! If the time or the read units do not suffice, the next call goes on where this call ended. Otherwise each call would
//! see only the first of many items. Items that belong together are returned together: those that were read are kept
//! until the rest is read.

use std::fmt::Debug;
use std::hash::Hash;

use chrono::TimeDelta;
use domain::ChannelId;
use table::{
    BoundedMemory, ListPage, Listing, Recheck, Rechecked, Session, StoreError, StoreResult,
    StoredAlertState, UnreadableItem, WaitingKey, WaitingMessage,
};

use crate::ports::Store;
use crate::storm::may_storm;
use crate::waiting::MAX_READ;

/// The number of states, due or not, that one request reads, at most 1 MB.
const STATES: usize = 1_000;
/// The number of rechecks that one request reads.
const RECHECKS: usize = 100;
/// The number of messages that one request reads.
const MESSAGES: usize = 100;
/// How long the position where reading ended is kept, so that the next minute goes on there. Later, another process may
/// have read the rest.
const MAX_KEPT: TimeDelta = TimeDelta::minutes(2);
/// The largest number of owners whose position is kept. With more, all are forgotten.
const MAX_OWNERS: usize = 10_000;
/// The largest number of items of a kind that a minute reads.
const MAX_ITEMS: usize = 10_000;

/// An item of judging or sending.
pub(crate) trait Paged: Sized + Clone + Debug + Send {
    /// The name of this kind of items in the log.
    const NAME: &'static str;
    /// A call of [`ReadPositions::read_on`] reads pages until it has this number of items.
    const MAX: usize;
    /// The owner of items. The items of each owner are read separately.
    type Owner: Eq + Hash + Clone + Debug + Send + Sync;
    /// The key of an item, after which the next page begins.
    type Key: Clone + Debug + Send + Sync;

    fn page(
        session: Session<'_, impl Store>,
        owner: &Self::Owner,
        after: Option<&Self::Key>,
    ) -> impl Future<Output = StoreResult<ItemPage<Self>>> + Send;

    /// Whether an item must be handled together with the items after `key`.
    fn belongs_with(&self, _: &Self::Key) -> bool {
        false
    }
}

/// A page of items, and where the next page begins.
pub(crate) struct ItemPage<T: Paged> {
    items: Vec<T>,
    unreadable: Vec<UnreadableItem>,
    next: Option<T::Key>,
}

impl<T: Paged> ItemPage<T> {
    /// Makes a page. The next page begins after the last item.
    fn of(page: ListPage<T>, key: impl Fn(&T) -> T::Key) -> Self {
        let Listing { found: items, unreadable, .. } = page.listing;
        let last = items.last().filter(|_| page.has_more);
        Self { next: last.map(key), items, unreadable }
    }
}

/// The items that were read, in order.
pub(crate) struct ReadItems<T> {
    pub(crate) items: Vec<T>,
    /// Damaged items, which cannot be done.
    pub(crate) unreadable: Vec<UnreadableItem>,
    /// Whether reading went on after earlier items, and did not begin with the first one.
    pub(crate) has_begun_later: bool,
    /// Whether further items are left to the next call.
    pub(crate) is_cut: bool,
    /// Why further items could not be read.
    pub(crate) failure: Option<StoreError>,
}

impl Paged for StoredAlertState {
    const NAME: &'static str = "states that are due";
    const MAX: usize = MAX_ITEMS;
    type Owner = ();
    type Key = String;

    async fn page(
        session: Session<'_, impl Store>,
        (): &(),
        after: Option<&String>,
    ) -> StoreResult<ItemPage<Self>> {
        let after = after.map(String::as_str);
        let due = session.due_alert_states(session.now, after, STATES).await?;
        let Listing { found: items, unreadable, .. } = due.listing;
        Ok(ItemPage { items, unreadable, next: due.next })
    }
}

impl Paged for Recheck {
    const NAME: &'static str = "rechecks";
    const MAX: usize = MAX_ITEMS;
    type Owner = ();
    type Key = Rechecked;

    async fn page(
        session: Session<'_, impl Store>,
        (): &(),
        after: Option<&Rechecked>,
    ) -> StoreResult<ItemPage<Self>> {
        let page = session.rechecks(after, RECHECKS).await?;
        Ok(ItemPage::of(page, |recheck| recheck.target.clone()))
    }
}

/// Messages of one state belong together, because only the newest may be sent; messages of a storm, because they are
/// counted.
impl Paged for WaitingMessage {
    const NAME: &'static str = "messages that wait";
    const MAX: usize = MAX_READ;
    type Owner = ChannelId;
    type Key = WaitingKey;

    async fn page(
        session: Session<'_, impl Store>,
        channel: &ChannelId,
        after: Option<&WaitingKey>,
    ) -> StoreResult<ItemPage<Self>> {
        let page = session.waiting_messages(channel, after, MESSAGES).await?;
        Ok(ItemPage::of(page, Self::key))
    }

    fn belongs_with(&self, key: &WaitingKey) -> bool {
        let alert = &self.logged.alert;
        *alert == key.alert || alert.rule == key.alert.rule && may_storm(self)
    }
}

/// For each owner of items, where the last call stopped reading; `None` if it read the last item.
#[derive(Debug)]
pub(crate) struct ReadPositions<T: Paged>(BoundedMemory<T::Owner, Option<ReadPosition<T>>>);

/// Where a call stopped reading.
#[derive(Debug, Clone)]
struct ReadPosition<T: Paged> {
    /// The key after which the next call begins.
    after: T::Key,
    /// Items that the call read and left undone, because they belong together with items after the key.
    unfinished: Vec<T>,
}

impl<T: Paged> Default for ReadPositions<T> {
    fn default() -> Self {
        Self(BoundedMemory::new(MAX_OWNERS, MAX_KEPT))
    }
}

impl<T: Paged> ReadPositions<T> {
    /// Reads items from where the last call ended. If that call read the last item, begins with the first item.
    pub(crate) async fn read_on(
        &self,
        session: Session<'_, impl Store>,
        owner: &T::Owner,
    ) -> ReadItems<T> {
        let last = self.0.get(owner, session.now).flatten();
        let has_begun_later = last.is_some();
        let (mut next, mut items) = match last {
            Some(ReadPosition { after, unfinished }) => (Some(after), unfinished),
            None => (None, Vec::new()),
        };

        let most = items.len() + T::MAX;
        let (mut unreadable, mut failure) = (Vec::new(), None);
        loop {
            match T::page(session, owner, next.as_ref()).await {
                Ok(page) => {
                    items.extend(page.items);
                    unreadable.extend(page.unreadable);
                    next = page.next;
                }
                Err(error) => failure = Some(error),
            }
            if next.is_none() || failure.is_some() || items.len() >= most {
                break;
            }
        }

        let is_cut = next.is_some();
        let position = next.map(|after| {
            let unfinished = items.extract_if(.., |item| item.belongs_with(&after)).collect();
            ReadPosition { after, unfinished }
        });
        self.0.keep(owner.clone(), position, session.now);
        ReadItems { items, unreadable, has_begun_later, is_cut, failure }
    }
}

#[cfg(test)]
mod tests {
    use table::EditAlertStates as _;
    use table::given::{firing, invocation, session};
    use table::memory_db::MemoryDb;

    use super::*;

    #[tokio::test]
    async fn a_minute_goes_on_where_the_one_before_was_cut() {
        let store = MemoryDb::default();
        for number in 0..1_500 {
            let state = firing("r", &format!("d{number:04}"));
            assert!(store.put_alert_state(&state, &invocation()).await.expect("memory"));
        }
        let positions = ReadPositions::<StoredAlertState>::default();
        let read = async || positions.read_on(session(&store, &invocation()), &()).await;

        store.fail_after(1, [StoreError::Throttled("for now".into())]);
        let first = read().await;
        assert_eq!((first.items.len(), first.is_cut), (1_000, true));
        assert!(first.failure.is_some());

        store.fail_with([StoreError::Throttled("for now".into())]);
        let none = read().await;
        assert_eq!((none.items.len(), none.is_cut), (0, true), "the position stays");

        let last = read().await;
        assert_eq!((last.items.len(), last.is_cut), (500, false));
        assert!(
            last.items.iter().all(|state| state.key.subject.to_string().as_str() >= "device:d1000")
        );
        assert_eq!(read().await.items.len(), 1_500, "from the first one on");
    }
}
