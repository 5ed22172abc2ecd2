//! Reads what a minute judges and what a round sends: states that are due, rechecks, messages that wait. Judges and sends
//! none.
//!
//! Who could not read to the end leaves a place to the next one. With many items and few read units each would otherwise
//! read the first ones only. What belongs together is taken together: a part of it is kept with the place, until the
//! rest is read.

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

/// The states that are read at once, whether or not they are due: one request of at most 1 MB.
const STATES: usize = 1_000;
/// The rechecks that are read at once.
const RECHECKS: usize = 100;
/// The messages of a page.
const MESSAGES: usize = 100;
/// For how long a place is kept: each minute goes on from the last one, and another process may have done the rest since.
const MAX_KEPT: TimeDelta = TimeDelta::minutes(2);
/// The most owners whose places are kept. Beyond, all are forgotten.
const MAX_OWNERS: usize = 10_000;
/// The most tasks of a kind that a minute reads.
const MAX_TASKS: usize = 10_000;

/// What a minute judges or a round sends.
pub(crate) trait Task: Sized + Clone + Debug + Send {
    /// What the log calls tasks of the kind.
    const NAME: &'static str;
    /// The most that are read at once.
    const MAX: usize;
    /// The owner of tasks. Each owner has a place of its own.
    type Owner: Eq + Hash + Clone + Debug + Send + Sync;
    /// The item after which the next page begins.
    type Place: Clone + Debug + Send + Sync;

    fn page(
        session: Session<'_, impl Store>,
        owner: &Self::Owner,
        after: Option<&Self::Place>,
    ) -> impl Future<Output = StoreResult<TaskPage<Self>>> + Send;

    /// Whether it is handled together with the item at a place.
    fn belongs_to(&self, _: &Self::Place) -> bool {
        false
    }
}

/// Some tasks, and where further ones begin.
pub(crate) struct TaskPage<T: Task> {
    tasks: Vec<T>,
    unreadable: Vec<UnreadableItem>,
    next: Option<T::Place>,
}

impl<T: Task> TaskPage<T> {
    /// The tasks of a page; further ones begin after the place of its last.
    fn of(page: ListPage<T>, place: impl Fn(&T) -> T::Place) -> Self {
        let Listing { found: tasks, unreadable, .. } = page.listing;
        let last = tasks.last().filter(|_| page.has_more);
        Self { next: last.map(place), tasks, unreadable }
    }
}

/// The tasks that were read, in their order.
pub(crate) struct ReadTasks<T> {
    pub(crate) tasks: Vec<T>,
    /// Damaged tasks: nobody knows what is to be done.
    pub(crate) unreadable: Vec<UnreadableItem>,
    /// Whether some come before the place at which reading began.
    pub(crate) has_begun_later: bool,
    /// Whether some come after the place that is kept.
    pub(crate) is_cut: bool,
    /// Why further ones could not be read.
    pub(crate) failure: Option<StoreError>,
}

impl Task for StoredAlertState {
    const NAME: &'static str = "states that are due";
    const MAX: usize = MAX_TASKS;
    type Owner = ();
    type Place = String;

    async fn page(
        session: Session<'_, impl Store>,
        (): &(),
        after: Option<&String>,
    ) -> StoreResult<TaskPage<Self>> {
        let after = after.map(String::as_str);
        let due = session.due_alert_states(session.now, after, STATES).await?;
        let Listing { found: tasks, unreadable, .. } = due.listing;
        Ok(TaskPage { tasks, unreadable, next: due.next })
    }
}

impl Task for Recheck {
    const NAME: &'static str = "rechecks";
    const MAX: usize = MAX_TASKS;
    type Owner = ();
    type Place = Rechecked;

    async fn page(
        session: Session<'_, impl Store>,
        (): &(),
        after: Option<&Rechecked>,
    ) -> StoreResult<TaskPage<Self>> {
        let page = session.rechecks(after, RECHECKS).await?;
        Ok(TaskPage::of(page, |recheck| recheck.what.clone()))
    }
}

/// Each state says what is newest of it, and a storm how many devices there are.
impl Task for WaitingMessage {
    const NAME: &'static str = "messages that wait";
    const MAX: usize = MAX_READ;
    type Owner = ChannelId;
    type Place = WaitingKey;

    async fn page(
        session: Session<'_, impl Store>,
        channel: &ChannelId,
        after: Option<&WaitingKey>,
    ) -> StoreResult<TaskPage<Self>> {
        let page = session.waiting_messages(channel, after, MESSAGES).await?;
        Ok(TaskPage::of(page, Self::key))
    }

    fn belongs_to(&self, place: &WaitingKey) -> bool {
        let alert = &self.told.alert;
        *alert == place.alert || alert.rule == place.alert.rule && may_storm(self)
    }
}

/// The place where reading goes on next, by the owner of what is read.
#[derive(Debug)]
pub(crate) struct KeptPlace<T: Task>(BoundedMemory<T::Owner, Option<KeptPart<T>>>);

/// A place, and the tasks before it that are taken together with tasks behind it.
#[derive(Debug, Clone)]
struct KeptPart<T: Task> {
    place: T::Place,
    part: Vec<T>,
}

impl<T: Task> Default for KeptPlace<T> {
    fn default() -> Self {
        Self(BoundedMemory::new(MAX_OWNERS, MAX_KEPT))
    }
}

impl<T: Task> KeptPlace<T> {
    /// The tasks after the kept place. After the end, the next call starts anew.
    pub(crate) async fn read_on(
        &self,
        session: Session<'_, impl Store>,
        owner: &T::Owner,
    ) -> ReadTasks<T> {
        let kept = self.0.get(owner, session.now).flatten();
        let has_begun_later = kept.is_some();
        let (mut place, mut tasks) = match kept {
            Some(KeptPart { place, part }) => (Some(place), part),
            None => (None, Vec::new()),
        };

        let most = tasks.len() + T::MAX;
        let (mut unreadable, mut failure) = (Vec::new(), None);
        loop {
            match T::page(session, owner, place.as_ref()).await {
                Ok(page) => {
                    tasks.extend(page.tasks);
                    unreadable.extend(page.unreadable);
                    place = page.next;
                }
                Err(error) => failure = Some(error),
            }
            if place.is_none() || failure.is_some() || tasks.len() >= most {
                break;
            }
        }

        let is_cut = place.is_some();
        let kept = place.map(|place| {
            let part = tasks.extract_if(.., |task| task.belongs_to(&place)).collect();
            KeptPart { place, part }
        });
        self.0.keep(owner.clone(), kept, session.now);
        ReadTasks { tasks, unreadable, has_begun_later, is_cut, failure }
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
        let place = KeptPlace::<StoredAlertState>::default();
        let read = async || place.read_on(session(&store, &invocation()), &()).await;

        store.fail_after(1, [StoreError::Throttled("for now".into())]);
        let first = read().await;
        assert_eq!((first.tasks.len(), first.is_cut), (1_000, true));
        assert!(first.failure.is_some());

        store.fail_with([StoreError::Throttled("for now".into())]);
        let none = read().await;
        assert_eq!((none.tasks.len(), none.is_cut), (0, true), "the place stays");

        let last = read().await;
        assert_eq!((last.tasks.len(), last.is_cut), (500, false));
        assert!(
            last.tasks.iter().all(|state| state.key.subject.to_string().as_str() >= "device:d1000")
        );
        assert_eq!(read().await.tasks.len(), 1_500, "from the first one on");
    }
}
