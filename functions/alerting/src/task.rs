//! Reads what a minute is to judge: states that are due, and looks. Judges none.
//!
//! A minute that could not read to the end leaves its place to the next one: with many states and few read units each
//! minute would otherwise read the first ones only.

use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::Timestamp;
use table::{
    Invocation, Listing, Look, Looked, StoreError, StoreResult, StoredAlertState, UnreadableItem,
};

use crate::ports::Store;

/// The states that are read at once, whether or not they are due: one request of at most 1 MB.
const STATES: usize = 1_000;
/// The looks that are read at once.
const LOOKS: usize = 100;
/// The most tasks of a kind that a minute reads.
const MAX_TASKS: usize = 10_000;

/// What a minute judges.
pub(crate) trait Task: Sized + Send {
    /// What the log calls tasks of the kind.
    const NAME: &'static str;
    /// Behind which one the next page begins.
    type Place: Clone + Debug + Send + Sync;

    fn page(
        store: &impl Store,
        now: Timestamp,
        after: Option<&Self::Place>,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Page<Self>>> + Send;
}

/// Some tasks, and where further ones begin.
pub(crate) struct Page<T: Task> {
    tasks: Vec<T>,
    unreadable: Vec<UnreadableItem>,
    next: Option<T::Place>,
}

/// The tasks that a minute has read.
pub(crate) struct ReadTasks<T> {
    /// In an order that is drawn by lot, so that none waits for ever behind others that the table throttles.
    pub(crate) tasks: Vec<T>,
    /// Those that are damaged, so that nobody knows what is to be judged.
    pub(crate) unreadable: Vec<UnreadableItem>,
    pub(crate) is_cut: bool,
    /// Why further ones could not be read.
    pub(crate) failure: Option<StoreError>,
}

impl Task for StoredAlertState {
    const NAME: &'static str = "states that are due";
    type Place = String;

    async fn page(
        store: &impl Store,
        now: Timestamp,
        after: Option<&String>,
        invocation: &Invocation,
    ) -> StoreResult<Page<Self>> {
        let after = after.map(String::as_str);
        let due = store.due_alert_states(now, after, STATES, invocation).await?;
        let Listing { found: tasks, unreadable, .. } = due.listing;
        Ok(Page { tasks, unreadable, next: due.next })
    }
}

impl Task for Look {
    const NAME: &'static str = "looks";
    type Place = Looked;

    async fn page(
        store: &impl Store,
        _: Timestamp,
        after: Option<&Looked>,
        invocation: &Invocation,
    ) -> StoreResult<Page<Self>> {
        let page = store.looks(after, LOOKS, invocation).await?;
        let Listing { found: tasks, unreadable, .. } = page.listing;
        let last = tasks.last().filter(|_| page.has_more);
        Ok(Page { next: last.map(|look| look.what.clone()), tasks, unreadable })
    }
}

/// Where the next minute goes on.
#[derive(Debug)]
pub(crate) struct KeptPlace<T: Task>(Mutex<Option<T::Place>>);

impl<T: Task> Default for KeptPlace<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Task> KeptPlace<T> {
    /// The tasks behind the place. Those before it are read by the minute after the one that comes to the end.
    pub(crate) async fn read_on(
        &self,
        store: &impl Store,
        now: Timestamp,
        invocation: &Invocation,
    ) -> ReadTasks<T> {
        let (mut tasks, mut unreadable, mut failure) = (Vec::new(), Vec::new(), None);
        let mut place = self.lock().clone();
        loop {
            match T::page(store, now, place.as_ref(), invocation).await {
                Ok(page) => {
                    tasks.extend(page.tasks);
                    unreadable.extend(page.unreadable);
                    place = page.next;
                }
                Err(error) => failure = Some(error),
            }
            if place.is_none() || failure.is_some() || tasks.len() >= MAX_TASKS {
                break;
            }
        }

        let is_cut = place.is_some();
        *self.lock() = place;
        fastrand::shuffle(&mut tasks);
        ReadTasks { tasks, unreadable, is_cut, failure }
    }

    fn lock(&self) -> MutexGuard<'_, Option<T::Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use table::EditAlertStates as _;
    use table::given::{firing, invocation};
    use table::memory::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn a_minute_goes_on_where_the_one_before_was_cut() {
        let store = MemoryStore::default();
        for number in 0..1_500 {
            let state = firing("r", &format!("d{number:04}"));
            assert!(store.put_alert_state(&state, &invocation()).await.expect("memory"));
        }
        let place = KeptPlace::<StoredAlertState>::default();
        let read = async || place.read_on(&store, Timestamp::MAX, &invocation()).await;

        store.fail_after(1, StoreError::Throttled("for now".into()));
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
