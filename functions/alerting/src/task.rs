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
/// How long the place where reading ended is kept, so that the next minute goes on there. Later, another process may
/// have read the rest.
const MAX_KEPT: TimeDelta = TimeDelta::minutes(2);
/// The largest number of owners for whom the place where reading ended is kept. With more, all are forgotten.
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
    /// The key of the item after which the next page begins.
    type Place: Clone + Debug + Send + Sync;

    fn page(
        session: Session<'_, impl Store>,
        owner: &Self::Owner,
        after: Option<&Self::Place>,
    ) -> impl Future<Output = StoreResult<TaskPage<Self>>> + Send;

    /// Whether a task must be handled together with the item at `place`.
    fn belongs_to(&self, _: &Self::Place) -> bool {
        false
    }
}

/// A page of tasks, and where the next page begins.
pub(crate) struct TaskPage<T: Task> {
    tasks: Vec<T>,
    unreadable: Vec<UnreadableItem>,
    next: Option<T::Place>,
}

impl<T: Task> TaskPage<T> {
    /// Makes a page. The next page begins after the last task.
    fn of(page: ListPage<T>, place: impl Fn(&T) -> T::Place) -> Self {
        let Listing { found: tasks, unreadable, .. } = page.listing;
        let last = tasks.last().filter(|_| page.has_more);
        Self { next: last.map(place), tasks, unreadable }
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

/// Messages of one state belong together, because only the newest may be sent; messages of a storm, because they are
/// counted.
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
        let alert = &self.logged.alert;
        *alert == place.alert || alert.rule == place.alert.rule && may_storm(self)
    }
}

/// For each owner of tasks, the place where the next call goes on reading.
#[derive(Debug)]
pub(crate) struct ReadPosition<T: Task>(BoundedMemory<T::Owner, Option<KeptTasks<T>>>);

/// Where the next call goes on, and tasks that were read before and belong together with later ones.
#[derive(Debug, Clone)]
struct KeptTasks<T: Task> {
    place: T::Place,
    part: Vec<T>,
}

impl<T: Task> Default for ReadPosition<T> {
    fn default() -> Self {
        Self(BoundedMemory::new(MAX_OWNERS, MAX_KEPT))
    }
}

impl<T: Task> ReadPosition<T> {
    /// Reads tasks from where the last call ended. If that was the last task, begins with the first one.
    pub(crate) async fn read_on(
        &self,
        session: Session<'_, impl Store>,
        owner: &T::Owner,
    ) -> ReadTasks<T> {
        let kept = self.0.get(owner, session.now).flatten();
        let has_begun_later = kept.is_some();
        let (mut place, mut tasks) = match kept {
            Some(KeptTasks { place, part }) => (Some(place), part),
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
            KeptTasks { place, part }
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
        let place = ReadPosition::<StoredAlertState>::default();
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
