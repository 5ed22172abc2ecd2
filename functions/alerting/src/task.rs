//! Reads tasks for judging and sending: due states, rechecks, waiting messages. Judges and sends nothing.
//!
//! If the time or the read units do not suffice, the next call goes on where this call ended. Otherwise each call would
//! see only the first of many items. Tasks that belong together are returned together: the tasks that were read are
//! kept until the rest is read.

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

/// The states that are read at once, due or not: one request of at most 1 MB.
const STATES: usize = 1_000;
/// The number of rechecks that are read at once.
const RECHECKS: usize = 100;
/// The number of messages that are read at once.
const MESSAGES: usize = 100;
/// How long it is kept where reading ended, so that the next minute goes on there. Later, another process may have read
/// the rest.
const MAX_KEPT: TimeDelta = TimeDelta::minutes(2);
/// The largest number of owners for whom it is kept where reading ended. With more, all are forgotten.
const MAX_OWNERS: usize = 10_000;
/// The largest number of tasks of a kind that a minute reads.
const MAX_TASKS: usize = 10_000;

/// A task for judging or sending.
pub(crate) trait Task: Sized + Clone + Debug + Send {
    /// The name of this kind of tasks in the log.
    const NAME: &'static str;
    /// The largest number of tasks that are read at once.
    const MAX: usize;
    /// The owner of tasks, which are read for each owner by itself.
    type Owner: Eq + Hash + Clone + Debug + Send + Sync;
    /// The key of an item, after which the next page begins.
    type Key: Clone + Debug + Send + Sync;

    fn page(
        session: Session<'_, impl Store>,
        owner: &Self::Owner,
        after: Option<&Self::Key>,
    ) -> impl Future<Output = StoreResult<TaskPage<Self>>> + Send;

    /// Whether a task must be handled together with the items after `key`.
    fn belongs_with(&self, _: &Self::Key) -> bool {
        false
    }
}

/// A page of tasks, and where the next page begins.
pub(crate) struct TaskPage<T: Task> {
    tasks: Vec<T>,
    unreadable: Vec<UnreadableItem>,
    next: Option<T::Key>,
}

impl<T: Task> TaskPage<T> {
    /// Makes a page. The next page begins after the last task.
    fn of(page: ListPage<T>, key: impl Fn(&T) -> T::Key) -> Self {
        let Listing { found: tasks, unreadable, .. } = page.listing;
        let last = tasks.last().filter(|_| page.has_more);
        Self { next: last.map(key), tasks, unreadable }
    }
}

/// The tasks that were read, in order.
pub(crate) struct ReadTasks<T> {
    pub(crate) tasks: Vec<T>,
    /// Damaged tasks, which cannot be done.
    pub(crate) unreadable: Vec<UnreadableItem>,
    /// Whether reading went on after earlier tasks, and did not begin with the first one.
    pub(crate) has_begun_later: bool,
    /// Whether further tasks are left to the next call.
    pub(crate) is_cut: bool,
    /// Why further tasks could not be read.
    pub(crate) failure: Option<StoreError>,
}

impl Task for StoredAlertState {
    const NAME: &'static str = "states that are due";
    const MAX: usize = MAX_TASKS;
    type Owner = ();
    type Key = String;

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
    type Key = Rechecked;

    async fn page(
        session: Session<'_, impl Store>,
        (): &(),
        after: Option<&Rechecked>,
    ) -> StoreResult<TaskPage<Self>> {
        let page = session.rechecks(after, RECHECKS).await?;
        Ok(TaskPage::of(page, |recheck| recheck.target.clone()))
    }
}

/// Messages of one state belong together, because only the newest may be sent; messages of a storm, because they are
/// counted.
impl Task for WaitingMessage {
    const NAME: &'static str = "messages that wait";
    const MAX: usize = MAX_READ;
    type Owner = ChannelId;
    type Key = WaitingKey;

    async fn page(
        session: Session<'_, impl Store>,
        channel: &ChannelId,
        after: Option<&WaitingKey>,
    ) -> StoreResult<TaskPage<Self>> {
        let page = session.waiting_messages(channel, after, MESSAGES).await?;
        Ok(TaskPage::of(page, Self::key))
    }

    fn belongs_with(&self, key: &WaitingKey) -> bool {
        let alert = &self.logged.alert;
        *alert == key.alert || alert.rule == key.alert.rule && may_storm(self)
    }
}

/// For each owner of tasks, where the last call stopped reading; `None` if it read the last task.
#[derive(Debug)]
pub(crate) struct ReadPositions<T: Task>(BoundedMemory<T::Owner, Option<ReadPosition<T>>>);

/// Where a call stopped reading.
#[derive(Debug, Clone)]
struct ReadPosition<T: Task> {
    /// The key after which the next call begins.
    after: T::Key,
    /// Tasks that the call read and left undone, because they belong together with tasks after the key.
    unfinished: Vec<T>,
}

impl<T: Task> Default for ReadPositions<T> {
    fn default() -> Self {
        Self(BoundedMemory::new(MAX_OWNERS, MAX_KEPT))
    }
}

impl<T: Task> ReadPositions<T> {
    /// Reads tasks from where the last call ended. If that was the last task, begins with the first one.
    pub(crate) async fn read_on(
        &self,
        session: Session<'_, impl Store>,
        owner: &T::Owner,
    ) -> ReadTasks<T> {
        let last = self.0.get(owner, session.now).flatten();
        let has_begun_later = last.is_some();
        let (mut next, mut tasks) = match last {
            Some(ReadPosition { after, unfinished }) => (Some(after), unfinished),
            None => (None, Vec::new()),
        };

        let most = tasks.len() + T::MAX;
        let (mut unreadable, mut failure) = (Vec::new(), None);
        loop {
            match T::page(session, owner, next.as_ref()).await {
                Ok(page) => {
                    tasks.extend(page.tasks);
                    unreadable.extend(page.unreadable);
                    next = page.next;
                }
                Err(error) => failure = Some(error),
            }
            if next.is_none() || failure.is_some() || tasks.len() >= most {
                break;
            }
        }

        let is_cut = next.is_some();
        let position = next.map(|after| {
            let unfinished = tasks.extract_if(.., |task| task.belongs_with(&after)).collect();
            ReadPosition { after, unfinished }
        });
        self.0.keep(owner.clone(), position, session.now);
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
        let positions = ReadPositions::<StoredAlertState>::default();
        let read = async || positions.read_on(session(&store, &invocation()), &()).await;

        store.fail_after(1, [StoreError::Throttled("for now".into())]);
        let first = read().await;
        assert_eq!((first.tasks.len(), first.is_cut), (1_000, true));
        assert!(first.failure.is_some());

        store.fail_with([StoreError::Throttled("for now".into())]);
        let none = read().await;
        assert_eq!((none.tasks.len(), none.is_cut), (0, true), "the position stays");

        let last = read().await;
        assert_eq!((last.tasks.len(), last.is_cut), (500, false));
        assert!(
            last.tasks.iter().all(|state| state.key.subject.to_string().as_str() >= "device:d1000")
        );
        assert_eq!(read().await.tasks.len(), 1_500, "from the first one on");
    }
}
